"""Parallel corpora: streams of sentence pairs, each of one or several parts in the formats of `formats`."""

import random
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import Generic, TypeVar

from ..system.errors import DataError, UsageError
from ..system.files import sha256_bytes
from .cleaning import clean
from .config import DataConfig
from .formats import FORMATS, PREFIX, SUFFIXES, is_saved_folder, parse_hub_spec, suffix_of
from .formats.format import Corpus as Corpus
from .formats.format import Format, common_language
from .formats.format import Pair as Pair
from .formats.text import TEST_SETS, TOY, open_text, open_toy, open_two_files
from .reading import did_you_mean

MIXED_IN = 10_000
"""At least this many older pairs are mixed in."""
MAX_TIMES = 1_000
"""A part of a corpus may be asked for at most this many times."""


def open_corpus(config: DataConfig, *, partly: bool = False) -> Corpus:
    """The corpus named by `src`/`tgt`, by `data` or by `text`; UsageError if none is given, or two of them.

    Args:
        partly: Files of a folder that fail do not stop the others: they are in its `failed`.
    """
    if config.text:
        if config.src or config.tgt or config.data:
            raise UsageError(
                "give either --text, for a language model, or pairs (--src and --tgt, or --data), not both"
            )
        return _texts(config, config.text, "train")
    corpus = _corpus(config, config.src, config.tgt, config.data, "train", ("src", "tgt", "data"))
    if corpus is None:
        raise UsageError(
            "no training data: give --src and --tgt, --data or --text; or leave all out for the toy language"
        )
    return corpus if partly else whole(corpus, config)


def dev_corpus(config: DataConfig) -> Corpus | None:
    """The validation set, or None if the configuration names none."""
    pairs = config.dev_src or config.dev_tgt or config.dev
    if config.text and pairs:
        raise UsageError("the validation set of a language model is text: --dev-text")
    if config.dev_text and not config.text:
        raise UsageError("--dev-text goes with --text; for pairs use --dev-src and --dev-tgt, or --dev")
    if config.dev_text:
        return _texts(config, config.dev_text, "dev")
    dev = _corpus(config, config.dev_src, config.dev_tgt, config.dev, "dev", ("dev-src", "dev-tgt", "dev"))
    return dev and whole(dev, config)


def replay_corpus(config: DataConfig) -> Corpus | None:
    """The older pairs to mix in, or None if the configuration names none."""
    if config.text and (config.replay or config.replay_src):
        raise UsageError("--replay mixes in pairs, but the new data are text alone; give older texts to --text, too")
    flags = ("replay-src", "replay-tgt", "replay")
    files = _corpus(config, config.replay_src, config.replay_tgt, [], "train", flags)
    columns = {
        "src_column": config.replay_src_column or config.src_column,
        "tgt_column": config.replay_tgt_column or config.tgt_column,
    }
    specs = _corpus(replace(config, **columns), [], [], config.replay, "train", flags)
    parts = [part for part in (files, specs) if part is not None]
    return whole(join_corpora(parts), config) if parts else None


def usable_pairs(corpus: Corpus) -> list[Pair]:
    """The pairs with text on both sides; of texts alone, which have no sources, those that are not blank."""
    return [(src, tgt) for src, tgt in corpus.pairs() if (corpus.text_only or clean(src)) and clean(tgt)]


def dev_flags(corpus: Corpus) -> str:
    """The flags that name a validation set of this kind."""
    return "--dev-text" if corpus.text_only else "--dev-src and --dev-tgt, or --dev"


def mix(new: Corpus, old: Corpus, *, seed: int) -> Corpus:
    """Two corpora as one: a third of it the newer one, as often as fits, and two thirds a sample of the older one.

    The sample has `MIXED_IN` pairs, or twice as many as there are new ones if these are more.
    """
    count = new.count()
    sample = _sampled(old, max(MIXED_IN, 2 * count), seed)
    times = max(round(sample.count() / (2 * max(count, 1))), 1)
    again = new if times == 1 else _repeated(new, times)
    return replace(join_corpora([again, sample]), name=f"{new.name} with {old.name} mixed in", remarks=new.remarks)


def _sampled(corpus: Corpus, size: int, seed: int) -> Corpus:
    """A random sample of the pairs with text on both sides, in their order; held in memory."""
    sample = Reservoir[tuple[int, Pair]](size, seed)
    for numbered in enumerate(pair for pair in corpus.pairs() if pair[0].strip() and pair[1].strip()):
        sample.add(numbered)
    pairs = [pair for _, pair in sorted(sample.kept)]
    return replace(
        corpus, identity=f"{corpus.identity} {size} {seed}", pairs=lambda: iter(pairs), quick_count=lambda: len(pairs)
    )


def _texts(config: DataConfig, specs: list[str], split: str) -> Corpus:
    for spec in specs:
        _refuse_known_format(spec, "a language model learns from plain text, one text per line")
    return join_corpora([open_text(spec, split, config) for spec in specs])


def _corpus(
    config: DataConfig, src: list[str], tgt: list[str], specs: list[str], split: str, flags: tuple[str, str, str]
) -> Corpus | None:
    if (src or tgt) and specs:
        raise UsageError(f"give either --{flags[0]} and --{flags[1]}, or --{flags[2]}, not both")
    if len(src) != len(tgt):
        raise UsageError(f"--{flags[0]} names {len(src)} files and --{flags[1]} {len(tgt)}; they must pair up")
    for path in (*src, *tgt):
        _refuse_known_format(path, f"it holds both sides; give it to --{flags[2]}", but=TEST_SETS)
    parts = [open_two_files(Path(s), Path(t), config) for s, t in zip(src, tgt, strict=True)]
    parts += [open_spec(spec, config, split) for spec in specs]
    return join_corpora(parts) if parts else None


def whole(corpus: Corpus, config: DataConfig) -> Corpus:
    """A corpus none of whose files failed, or without those that did where `bad_lines` says that they are skipped.

    Raises:
        DataError: Files of a folder could not be read.
    """
    if corpus.failed and config.bad_lines == "error":
        many = f"{len(corpus.failed):,} of its files cannot be read; mend them, or take them out of the folder"
        raise DataError("\n".join([*corpus.failed, f"{corpus.name}: {many}"]))
    return replace(corpus, remarks=(*corpus.remarks, *(f"left out: {one}" for one in corpus.failed)), failed=())


def open_spec(spec: str, config: DataConfig, split: str = "train") -> Corpus:
    """Opens one SPEC: `toy`, a file, a folder of `datasets`, or `hf:NAME[/SUBSET][:SPLIT][@REVISION]`.

    `=3` behind it gives each pair three times.
    """
    spec, times = _weighted(spec)
    corpus = format_of(spec)(spec, config, split)
    return corpus if times == 1 else _repeated(corpus, times)


def format_of(spec: str) -> Format:
    """The format of a SPEC. What reads it is imported now: no training waits for the formats that it does not read."""
    if spec.startswith(PREFIX) or is_saved_folder(spec):
        from .formats.arrow import open_disk, open_hub

        return open_hub if spec.startswith(PREFIX) else open_disk
    if spec == TOY:
        return open_toy
    if spec and Path(spec).is_dir():
        from .formats.folder import open_folder

        return open_folder
    if (suffix := suffix_of(Path(spec))) in FORMATS:
        module, name = FORMATS[suffix]
        return getattr(import_module(f".formats.{module}", __package__), name)
    path = Path(spec)
    _refuse_known_format(spec)
    missing = "" if path.exists() else f", and there is no such file{did_you_mean(path)}"
    raise UsageError(
        f"cannot tell the format of {spec}{missing}: name a file that ends in {', '.join(sorted(SUFFIXES))}, or"
        f" {PREFIX}NAME, or a folder written by save_to_disk, or {TOY}; for two text files use --src and --tgt"
    )


def _refuse_known_format(name: str, instead: str = "", but: tuple[str, ...] = ()) -> None:
    from .formats.refused import refuse_known_format  # no file is read for the toy language

    refuse_known_format(Path(name), instead, but=but)


def spec_path(spec: str) -> Path | None:
    """The file or folder on this machine that a SPEC names; None for `toy` and what comes from the hub."""
    name, _ = _weighted(spec)
    if name.startswith(PREFIX):
        folder = Path(parse_hub_spec(name)[0])
        return folder if folder.exists() else None
    return None if name == TOY and not is_saved_folder(name) else Path(name)


def _repeated(corpus: Corpus, times: int) -> Corpus:
    """A corpus that is read several times, one after the other."""
    return replace(
        corpus,
        name=f"{corpus.name} ({times} times)",
        identity=f"{corpus.identity} {times}",
        pairs=lambda: chain.from_iterable(corpus.pairs() for _ in range(times)),
        quick_count=lambda: times * corpus.count(),
        repeats=True,
    )


def _weighted(spec: str) -> tuple[str, int]:
    """Splits `FILE=3` into the file and how many times its pairs are in the corpus."""
    name, sign, weight = spec.rpartition("=")
    if not sign or Path(spec).exists() or suffix_of(Path(weight)):  # a file with such a name
        return spec, 1
    if not weight.isascii() or not weight.isdecimal() or not 1 <= int(weight) <= MAX_TIMES:
        raise UsageError(f"{spec}: the weight after = must be a whole number from 1 to {MAX_TIMES:,}")
    return name, int(weight)


def join_corpora(parts: Sequence[Corpus]) -> Corpus:
    """Several corpora read one after another as one."""
    if len(parts) == 1:
        return parts[0]
    identity = sha256_bytes("".join(part.identity for part in parts).encode())
    name = " + ".join(part.name for part in parts)
    return Corpus(
        name,
        identity,
        lambda: chain.from_iterable(part.pairs() for part in parts),
        lambda: sum(part.count() for part in parts),
        tuple(remark for part in parts for remark in part.remarks),
        any(part.incomplete for part in parts),
        any(part.repeats for part in parts),
        text_only=parts[0].text_only,
        languages=(
            common_language(part.languages[0] for part in parts),
            common_language(part.languages[1] for part in parts),
        ),
        failed=tuple(one for part in parts for one in part.failed),
    )


def first_pairs(corpus: Corpus, count: int) -> Corpus:
    """The first `count` pairs of a corpus, read once and held in memory.

    If there are more, it has another identity, and a remark that says so.
    """
    pairs = list(islice(corpus.pairs(), count + 1))
    identity, remarks = corpus.identity, ()
    if len(pairs) > count:
        identity = f"{identity} {count}"
        remarks = (f"{corpus.name}: only the first {count:,} {corpus.unit}s are used",)
    return Corpus(corpus.name, identity, lambda: iter(pairs[:count]), remarks=remarks, text_only=corpus.text_only)


Item = TypeVar("Item")


class Reservoir(Generic[Item]):
    """A sample of a stream whose length is not known before its end: each item is equally likely to be in `kept`.

    The same stream and the same seed give the same sample.
    """

    def __init__(self, size: int, seed: int) -> None:
        self.kept: list[Item] = []
        self._size, self._seen, self._rng = size, 0, random.Random(seed)

    def add(self, item: Item) -> None:
        """Takes the next item of the stream, or leaves it."""
        self._seen += 1
        if len(self.kept) < self._size:
            self.kept.append(item)
        elif (place := self._rng.randrange(self._seen)) < self._size:
            self.kept[place] = item
