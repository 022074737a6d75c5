"""The README.md of an export: how to translate with it, and how to get exactly what `tfm translate` gives."""

from ...data.tokenizer import Tokenizer
from ..runs.checkpoint import ModelDescription
from .specification import POSITIONS, known

_TEMPLATE = """# A translator for CTranslate2

Exported by tfm (weights in {quantization}). It needs `pip install ctranslate2 sentencepiece`, and nothing of tfm:

```python
import unicodedata

import ctranslate2
import sentencepiece

translator = ctranslate2.Translator(".", device="auto")
source = sentencepiece.SentencePieceProcessor(model_file="tokenizer/{src}.model")
target = sentencepiece.SentencePieceProcessor(model_file="tokenizer/{tgt}.model")


def score(hypothesis, log_prob):
    return log_prob / ((5 + len(hypothesis)) / 6) ** {alpha}


def translate(texts):
    texts = [" ".join(unicodedata.normalize("NFC", text).split()) for text in texts]
    results = translator.translate_batch(
        [source.encode(text, out_type=str) for text in texts],
        beam_size={beam_size},
        num_hypotheses={beam_size},
        length_penalty=1e-9,
        return_scores=True,
        return_end_token=True,
        min_decoding_length=0,
        max_decoding_length={max_seq_len},
        no_repeat_ngram_size={no_repeat_ngram_size},
        max_batch_size=2048,
        batch_type="tokens",
    )
    best = [max(zip(r.hypotheses, r.scores), key=lambda pair: score(*pair))[0] for r in results]
    return [target.decode([piece for piece in pieces if piece != "</s>"]) for pieces in best]


print(translate(["One sentence."]))
```

eos is added to sources, and control and unknown pieces are never generated, whoever calls: both are part of the model.

## Exactly what `tfm translate` gives

In float32 the lines above find what `tfm translate` finds, but for rounding where two outputs are equally likely, for
rare sentences of which more than {beam_size} hypotheses end at once, and for beams under a limit on repetitions:

* **Length.** tfm divides the log-probability of n pieces, eos included, by ((5 + n) / 6)^{alpha}, CTranslate2 by n to
  the power of its `length_penalty`. The lines above therefore ask for all hypotheses (`1e-9` is no penalty; at 0 the
  search may stop by another rule) and rank them by tfm's formula. `length_penalty={alpha}` alone is quicker to write,
  and differs now and then.
* **Limits.** tfm ends a translation of n source pieces at min({factor:g} * n + {offset}, {max_seq_len}) pieces, eos
  included, and lets it end there; CTranslate2 stops at `max_decoding_length`, without an end. Sources of more than
  {max_source} pieces, which this model has never seen, tfm splits at sentence ends; do so before, for it {too_long}.
* **Repetitions.** `no_repeat_ngram_size` is the same limit in both; 0 is none. Where it forbids pieces, CTranslate2
  raises the probabilities of the others until they sum to 1 again. tfm does not, so that beams may be ranked otherwise.
* **Placeholders.** {placeholders}
* **Text.** tfm also drops invisible characters, makes control characters spaces, gives a blank translation for a blank
  text, and spells the characters U+2581 and U+E000, which it needs itself, as U+E000 `b` and U+E000 `a`. Where tfm is
  installed, `tfm.data.tokenizer.Tokenizer.load("tokenizer")` does all that: `.src.encode_as_pieces(text)`,
  `.tgt.decode(ids)`.
"""


def render_readme(description: ModelDescription, tokenizer: Tokenizer, *, quantization: str) -> str:
    """The text, with the numbers of this model."""
    config, decoding = description.model_config(), description.decoding_config()
    return _TEMPLATE.format(
        quantization=quantization,
        src="tokenizer" if tokenizer.joint else "src",
        tgt="tokenizer" if tokenizer.joint else "tgt",
        alpha=decoding.length_penalty,
        beam_size=decoding.beam_size,
        factor=decoding.max_length_factor,
        offset=decoding.max_length_offset,
        max_seq_len=config.max_seq_len,
        no_repeat_ngram_size=decoding.no_repeat_ngram_size,
        max_source=config.max_seq_len - 1,
        too_long=known(POSITIONS, "positions", config.positions)[1],
        placeholders=_of_placeholders(tokenizer),
    )


def _of_placeholders(tokenizer: Tokenizer) -> str:
    """How `%s`, `<b>` and the like are translated."""
    again = (
        "Where a translation lacks one of its source (`%s`, `<b>`, a URL), tfm searches once more, by a beam\n"
        "  search that ends no output without it; CTranslate2 does not."
    )
    if not tokenizer.has_placeholders:
        return again
    return (
        "This model has learnt to carry symbols through in their place: translate\n"
        '  `masked.text` of `masked = Tokenizer.load("tokenizer").mask(text)`, and put them back with\n'
        f"  `masked.unmask(translation)`. {again}"
    )
