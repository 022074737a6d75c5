"""`tfm tokenize`: builds SentencePiece vocabularies and shows what they do to text."""

import shlex
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.reading import Controls
from ..engine.file_guard import WRITES_FOLDER
from ..system.errors import UsageError
from ..system.reporter import Console
from . import options

if TYPE_CHECKING:
    from ..data.corpus import Corpus, Pair
    from ..data.tokenizer import Tokenizer, Vocabulary

_TICK = 1_000
"""The bar moves once for this many texts."""
_EXAMPLES = 3


def tokenize(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", help="The tokenizer directory to make, or to look at."),
        WRITES_FOLDER,
    ],
    specs: options.Specs = None,
    src: options.Src = None,
    tgt: options.Tgt = None,
    data: options.Data = None,
    src_column: options.SrcColumn = None,
    tgt_column: options.TgtColumn = None,
    src_language: options.SrcLanguage = None,
    tgt_language: options.TgtLanguage = None,
    encoding: options.Encoding = None,
    vocab_size: Annotated[
        int, typer.Option(metavar="N", min=1, help="Pieces; reduced to what the corpus supports.")
    ] = 8000,
    type_: Annotated[str, typer.Option("--type", metavar="TYPE", help="unigram, bpe, char or word.")] = "unigram",
    separate: Annotated[
        bool, typer.Option("--separate", help="One vocabulary per side instead of a joint one.")
    ] = False,
    show: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Show the pieces and ids of this text; may be repeated.")
    ] = None,
) -> None:
    """Build a vocabulary from text, or look at one.

    tfm tokenize --src train.en --tgt train.de --vocab-size 8000 --output vocab

    tfm tokenize --output vocab --show "a sentence"
    """
    from ..configs import parse_config
    from ..data.tokenizer import Tokenizer
    from ..data.vocabulary_training import build_tokenizer

    console = Console()
    paths = options.named_files(src=src, tgt=tgt) | {"data": [*(data or []), *(specs or [])]}
    if any(paths.values()):
        if output.exists():
            raise UsageError(f"{output} exists already; remove it or name another --output")
        settings = parse_config(
            {
                "data": paths | options.named_sides(src_column, tgt_column, src_language, tgt_language, encoding),
                "tokenizer": {"vocab_size": vocab_size, "type": type_, "separate": separate},
            }
        )
        corpus = _corpus(settings)
        for remark in corpus.remarks:
            console.say(remark)
        notes: list[str] = []
        console.say(f"reading {corpus.name}")
        controls = Controls("source"), Controls("target")
        pairs = _watched(_counted(corpus.pairs(), controls), corpus, console, f"building a {type_} vocabulary")
        tokenizer = build_tokenizer(pairs, settings.tokenizer, notes=notes)
        notes += [f"{side.name}: {side.found:,} control characters made spaces" for side in controls if side.found]
        tokenizer.save(output)
        for note in notes:
            console.say(note)
        for line in _report(tokenizer, corpus):
            print(line)
        console.say(f"saved {output}; train with it: tfm train --tokenizer {shlex.quote(str(output))} ..")
    elif not show:
        raise UsageError("nothing to do: give --src and --tgt (or --data) to build, or --show TEXT to look")
    else:
        tokenizer = Tokenizer.load(output)
    sides = {"": tokenizer.src} if tokenizer.joint else {"source ": tokenizer.src, "target ": tokenizer.tgt}
    for text in show or []:
        for name, vocabulary in sides.items():
            print(f"{name}pieces: {' '.join(vocabulary.encode_as_pieces(text))}")
            print(f"{name}ids:    {' '.join(map(str, vocabulary.encode(text)))}")


def _corpus(settings: Any) -> "Corpus":
    """The corpus of both sides; with files of one side only, that side twice."""
    from ..data.corpus import open_corpus

    data = settings.data
    if data.src and not data.tgt:
        data = replace(data, tgt=data.src)
    elif data.tgt and not data.src:
        data = replace(data, src=data.tgt)
    return open_corpus(data)


def _counted(pairs: Iterator["Pair"], controls: tuple[Controls, Controls]) -> Iterator["Pair"]:
    """The pairs, the control characters of their sides counted."""
    for pair in pairs:
        for text, side in zip(pair, controls, strict=True):
            if not text.isprintable():
                side.add(text.encode("utf-8", "surrogatepass"))
        yield pair


def _watched(pairs: Iterator["Pair"], corpus: "Corpus", console: Console, then: str) -> Iterator["Pair"]:
    """The pairs, with a bar while they are read. When all are read, says what is done next."""
    with closing(console.progress("reading", corpus.count(), corpus.unit)) as bar:
        for number, pair in enumerate(pairs, start=1):
            yield pair
            if number % _TICK == 0:
                bar.update(number)
    console.say(then)


def _report(tokenizer: "Tokenizer", corpus: "Corpus") -> Iterator[str]:
    """Size, coverage and pieces per word of each side, and a few segmentations."""
    sides = (("source", tokenizer.src), ("target", tokenizer.tgt))
    kind = "joint (one for both sides)" if tokenizer.joint else "separate (one for each side)"
    yield f"vocabulary: {tokenizer.type}, {kind}, " + " + ".join(
        f"{len(vocabulary):,} pieces" for _, vocabulary in (sides[:1] if tokenizer.joint else sides)
    )
    for index, (name, vocabulary) in enumerate(sides):
        texts = (pair[index] for pair in islice(corpus.pairs(), 20_000))
        words, pieces, characters, covered = _count(vocabulary, texts)
        yield (
            f"{name}: {100 * covered / max(characters, 1):.2f} % of characters covered by pieces,"
            f" {pieces / max(words, 1):.2f} pieces per word"
        )
    for pair in islice(corpus.pairs(), _EXAMPLES):
        for (_, vocabulary), text in zip(sides, pair, strict=True):
            yield "  " + " ".join(vocabulary.encode_as_pieces(text))


def _count(vocabulary: "Vocabulary", texts: Iterator[str]) -> tuple[int, int, int, int]:
    """Words, pieces, characters, and characters that are not spelt in bytes or unknown."""
    from ..data.cleaning import clean
    from ..data.tokenizer import UNK_ID

    words = pieces = characters = covered = 0
    for text in texts:
        ids = vocabulary.encode(text)
        cleaned = clean(text)
        words += len(cleaned.split())
        pieces += len(ids)
        length = len(cleaned.replace(" ", ""))
        characters += length
        known = [i for i in ids if i != UNK_ID and not vocabulary.is_byte(i)]
        covered += min(sum(len(vocabulary.piece(i).replace("▁", "")) for i in known), length)
    return words, pieces, characters, covered
