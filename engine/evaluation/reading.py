"""Test sets: sources, and for each its references."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress
from pathlib import Path
from typing import TypeVar

from ...data.cleaning import clean
from ...data.config import DataConfig
from ...data.corpus import Corpus, Pair, dev_corpus, join_corpora, open_corpus, open_spec, usable_pairs, whole
from ...data.formats import suffix_of
from ...data.formats.refused import refuse_known_format
from ...data.formats.text import TEST_SETS, open_two_files
from ...data.holdout import hold_out
from ...system.errors import DataError, TfmError, UsageError
from ...system.reporter import Console
from ..runs.directory import RunDirectory

Row = TypeVar("Row")


@dataclass(frozen=True)
class TestSet:
    """Sources, and for each of them one or more references; and for each entry of the corpus whether it was kept."""

    sources: list[str]
    references: list[list[str]]
    kept: list[bool]

    @property
    def lines(self) -> list[int]:
        """The number of each source in the corpus, counted from 1."""
        return [number for number, kept in enumerate(self.kept, start=1) if kept]


def read_test_set(
    src: list[Path],
    tgt: list[Path],
    data: list[str],
    run: Path | None,
    sides: dict[str, str],
    console: Console,
    *,
    sources_count: bool = True,
    or_dev: bool = False,
) -> TestSet:
    """Reads sources and references. An entry without a text on both sides is left out, which is said.

    As many `tgt` as `src`: one test set after the other. Several of one `src`, or of none: each has a reference for
    each line. The lines of a `.tsv` are references with tabs between them. What is blank is no reference.

    Args:
        run: Columns and languages of its training data are those of `data`, as far as `sides` does not name them. Its
            encoding is not: a test set may be in another.
        sources_count: Whether an entry needs a source.
        or_dev: Where nothing is named, the run's validation set is taken, or an even sample of it.

    Raises:
        UsageError: The files are not given, or do not match.
        DataError: They cannot be read, or no entry is left.
    """
    directory = None if run is None else RunDirectory(run)
    if or_dev and directory is not None and not (src or tgt or data):
        return _dev_set(directory)
    config = DataConfig()
    if directory is not None and directory.has_begun:
        config = directory.configuration().data
    elif directory is not None:  # an export, say
        config = replace(config, **dict(zip(("src_language", "tgt_language"), directory.languages, strict=True)))
    config = replace(config, **{"encoding": "", **sides})
    if data and not (src or tgt):
        corpus = whole(join_corpora([open_spec(spec, config, "test") for spec in data]), config)
        entries = [(source, [reference]) for source, reference in _said(corpus, console).pairs()]
    elif tgt and (src or not sources_count) and not data:
        _refuse_pairs(src)
        _refuse_pairs(tgt, ".tsv")  # several references of a source
        groups = _groups(src, tgt)
        entries = [entry for group in groups for entry in _entries(*group, config, console)]
    else:
        raise UsageError("give a test set: --src and --tgt, or --data")
    texts = [(source, [text for text in texts if clean(text)]) for source, texts in entries]
    kept = [bool(references and (clean(source) or not sources_count)) for source, references in texts]
    if not any(kept):
        raise DataError(f"{' and '.join(map(str, data or [*src, *tgt]))}: no pair with a text on both sides")
    if left_out := len(kept) - sum(kept):
        console.say(f"{left_out:,} of {len(kept):,} entries left out: no text on one side")
    sources, references = zip(*compress(texts, kept), strict=True)
    return TestSet(list(sources), list(references), kept)


def _said(corpus: Corpus, console: Console) -> Corpus:
    for remark in corpus.remarks:
        console.say(remark)
    return corpus


def _groups(src: list[Path], tgt: list[Path]) -> list[tuple[Path, list[Path]]]:
    """Which files of references go with which file of sources; without any, the first of them stands in for it."""
    if len(src) == len(tgt):
        return [(one, [other]) for one, other in zip(src, tgt, strict=True)]
    if len(src) > 1:
        raise UsageError(
            f"--src names {len(src)} files and --tgt {len(tgt)}; give one --tgt for each --src, or one --src and for it"
            " several --tgt"
        )
    return [((src or tgt)[0], tgt)]


def _refuse_pairs(paths: Iterable[Path], *but: str) -> None:
    for path in paths:
        refuse_known_format(path, "it holds both sides; give it to --data", but=(*TEST_SETS, *but))


def _entries(src: Path, tgt: list[Path], config: DataConfig, console: Console) -> Iterator[tuple[str, list[str]]]:
    """Each line of a file, and what stands in this line of the files of references."""
    tables = {path for path in tgt if suffix_of(path) == ".tsv"}
    corpora = [_said(open_two_files(src, one, config), console) for one in tgt]
    for lines in zip(*(corpus.pairs() for corpus in corpora), strict=True):
        texts = zip(tgt, (text for _, text in lines), strict=True)
        cells = (text.split("\t") if path in tables else [text] for path, text in texts)
        yield lines[0][0], list(chain.from_iterable(cells))


CALIBRATED_WITH = 1_000
"""A run is calibrated with at most this many pairs of its validation set: more hardly make the intervals better."""


def _dev_set(run: RunDirectory) -> TestSet:
    """The validation set of a run, or an even sample of it; DataError if it is gone."""
    problems: list[str] = []
    pairs = dev_pairs(run, CALIBRATED_WITH, problems.append, f"{run} has nothing to be calibrated with")
    if not pairs:
        raise DataError(f"{'; '.join(problems)}; give a set with references: --src and --tgt, or --data")
    return TestSet([src for src, _ in pairs], [[tgt] for _, tgt in pairs], [True] * len(pairs))


def dev_pairs(run: RunDirectory, count: int, say: Callable[[str], None], without: str) -> list[Pair]:
    """At most `count` pairs of a run's validation set, evenly spaced.

    If it is gone there are none: `say` hears why, after `without`, which says what is then not done.
    """
    try:
        settings = run.configuration()
        dev = dev_corpus(settings.data) or hold_out(open_corpus(settings.data), seed=settings.training.seed)[1]
        pairs = usable_pairs(dev)
    except TfmError as error:
        say(f"{without}: its validation set is not there ({error})")
        return []
    return spaced(pairs, count)


def spaced(rows: Sequence[Row], count: int) -> list[Row]:
    """At most `count` of them, evenly spaced."""
    count = min(count, len(rows))
    return [rows[i * len(rows) // count] for i in range(count)]
