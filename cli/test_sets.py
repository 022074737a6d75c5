"""Test sets: sources, and for each its references."""

from dataclasses import replace
from itertools import compress
from pathlib import Path

from ..data.config import DataConfig
from ..data.corpus import Corpus, join_corpora, open_corpus, open_spec
from ..data.errors import DataError, UsageError
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


def sides(corpus: Corpus, tgt: list[Path], console: Console) -> tuple[list[str], list[list[str]], list[bool]]:
    """Sources, for each its references, and for each entry of the test set whether it is among them.

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
    return [s for s, _ in wanted], [t.split(separator) if separator else [t] for _, t in wanted], kept
