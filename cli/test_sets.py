"""Test sets: sources, and for each its references."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path

from ..data.cleaning import clean
from ..data.config import DataConfig
from ..data.corpus import Corpus, Pair, dev_corpus, join_corpora, open_corpus, open_spec
from ..data.errors import DataError, TfmError, UsageError
from ..data.holdout import hold_out
from ..seq2seq.runs.directory import RunDirectory
from .console import Console


def open_test_set(
    src: list[Path], tgt: list[Path], data: list[str], run: Path | None, columns: dict[str, str]
) -> Corpus:
    """The pairs to translate and to compare with. What is not in `columns` is called as in the run's training data."""
    directory = None if run is None else RunDirectory(run)
    config = directory.configuration().data if directory is not None and directory.has_begun else DataConfig()
    config = replace(config, src=[str(one) for one in src], tgt=[str(one) for one in tgt], data=[], text=[], **columns)
    if data and not (src or tgt):
        return join_corpora([open_spec(spec, config, "test") for spec in data])
    if src and tgt and not data:
        return open_corpus(config)
    raise UsageError("give a test set: --src and --tgt, or --data")


@dataclass(frozen=True)
class TestSet:
    """What is to be translated, and compared with.

    Attributes:
        sources: The texts.
        references: For each of them one or more translations.
        kept: For each entry of the corpus whether it is among them.
    """

    sources: list[str]
    references: list[list[str]]
    kept: list[bool]

    @property
    def lines(self) -> list[int]:
        """The number of each text in the corpus, counted from 1."""
        return [number for number, kept in enumerate(self.kept, start=1) if kept]


def sides(corpus: Corpus, tgt: list[Path], console: Console) -> TestSet:
    """Sources and references of a corpus.

    Of files of pairs, entries without a text on both sides are left out: there is nothing to compare with.
    """
    for remark in corpus.remarks:
        console.say(remark)
    separator = "\t" if tgt and all(".tsv" in one.suffixes for one in tgt) else None
    pairs = list(corpus.pairs())
    kept = [bool(tgt or (s.strip() and t.strip())) for s, t in pairs]
    missing = len(pairs) - sum(kept)
    if missing == len(pairs):
        raise DataError(f"{corpus.name}: no pair with a text on both sides")
    if missing:
        console.say(f"{missing:,} of {len(pairs):,} entries left out: no text on one side")
    wanted = list(compress(pairs, kept))
    return TestSet([s for s, _ in wanted], [t.split(separator) if separator else [t] for _, t in wanted], kept)


def dev_pairs(run: RunDirectory, count: int, say: Callable[[str], None], without: str) -> list[Pair]:
    """At most so many pairs of a run's validation set, evenly spaced; none where it is gone.

    Args:
        run: Its directory.
        count: How many at most.
        say: Hears why there are none.
        without: What is not done then.
    """
    try:
        settings = run.configuration()
        dev = dev_corpus(settings.data) or hold_out(open_corpus(settings.data), seed=settings.training.seed)[1]
        pairs = [(src, tgt) for src, tgt in dev.pairs() if (dev.text_only or clean(src)) and clean(tgt)]
    except TfmError as error:
        say(f"{without}: its validation set is not there ({error})")
        return []
    count = min(count, len(pairs))
    return [pairs[i * len(pairs) // count] for i in range(count)]
