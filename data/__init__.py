"""Text in, integer batches out. Nothing here knows a model, and nothing here imports torch. Read in this order:

config               settings
reading, cleaning    bytes to lines, lines to clean text
formats/, corpus     files and data sets as streams of pairs; holdout takes a validation set out of one
placeholders         tags, URLs and other parts that come through as they are
scripts              what Unicode says of text: where sentences and characters end, scripts without spaces
sentences, words     long texts cut and joined; where words end; glossary has terms and their translations
languages            what Unicode says of a language by its code
facts                what is usual in a corpus: repetition, numbers, text without letters
tokenizer            text to ids and back; vocabulary_training builds, vocabulary_trial tries those of strangers
usual_form           text in capitals, or without a last sign, as a model reads it; slips of typing, too
encoding, store      all pairs to ids, kept in Arrow files
batching             which pairs are trained on together; subword_dropout
audit, alignment     what is wrong with a corpus: `tfm data`
size                 how large a corpus is, for the recipe
toy/                 the built-in language
"""

Pair = tuple[str, str]
"""A source sentence and its translation; both empty where a line was unreadable and is to be skipped."""
