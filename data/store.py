"""Tokenised sentence pairs on disk: memory-mapped Arrow files, so that a corpus never has to fit in memory.

A store is a directory, `cache/<key>/` in the run: disposable, built aside, renamed into place complete, checked by hash
when it is opened again.
"""

import os
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..system.errors import DataError, EnvironmentFault, ModelError
from ..system.files import fault, free_space, json_bytes, read_sealed, sealed, sha256_file, staged_directory, write_file
from ..system.untrusted import check_fields
from .cleaning import clean
from .corpus import Corpus, Pair, Reservoir
from .encoding import Encoded, Ids, Rows, encode_pairs
from .facts import SAMPLE, CorpusFacts, look_at
from .formats.format import unit_of
from .reading import count_controls
from .tokenizer import Tokenizer

ROWS_PER_BLOCK = 65_536
"""Rows of one Arrow record batch: every block but the last is full, so row i lies in block i // 65,536."""

_SCHEMA = pa.schema([("src", pa.list_(pa.int32())), ("tgt", pa.list_(pa.int32()))])
_TABLE, _REPORT = "pairs.arrow", "report.json"


@dataclass
class FilterReport:
    """What became of the lines of a corpus; everything dropped is counted."""

    read: int = 0
    kept: int = 0
    empty: int = 0
    too_long: int = 0
    unequal: int = 0
    in_dev_set: int = 0
    """Kept pairs that also stand in the validation set: a leak to warn of, not a reason to drop."""
    identical: int = 0
    """Kept pairs with the same text on both sides."""
    copies: int = 0
    """Kept pairs that were there before."""
    controls: int = 0
    """Control characters in kept pairs, each of which becomes a space."""
    src_tokens: int = 0
    tgt_tokens: int = 0
    text_only: bool = False
    """The pairs are texts alone."""

    @property
    def unit(self) -> str:
        """What a row of the corpus is called."""
        return unit_of(self.text_only)

    def __str__(self) -> str:
        dropped = {"empty": self.empty, "too long": self.too_long, "of very unequal length": self.unequal}
        found = {
            "of them copies": self.copies,
            "of them with the same text on both sides": self.identical,
            "control characters made spaces": self.controls,
        }
        left_out, remarks = _counted(dropped), _counted(found)
        return (
            f"{self.kept:,} of {self.read:,} {self.unit}s kept"
            + (f" (dropped: {left_out})" if left_out else "")
            + (f", {remarks}" if remarks else "")
        )


def _counted(counts: dict[str, int]) -> str:
    """The counts above zero, each with its name."""
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)


@dataclass(frozen=True)
class Limits:
    """Which pairs a store takes."""

    max_tokens: int
    """Longest side, in pieces, before `</s>` is added."""
    max_length_ratio: float
    """A side may have this many times the other's pieces, plus 5."""


class TokenStore:
    """Random access to the pairs of one store. Rows are views into the mapped file; only lengths are in memory.

    `src_lengths` and `tgt_lengths` are pieces of every row, int32, shape (N,).
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        recorded = read_sealed(directory / _REPORT)
        for name, type_ in (("report", FilterReport), ("facts", CorpusFacts)):
            check_fields(recorded[name], type_, directory / _REPORT)
        self.report, self.facts = FilterReport(**recorded["report"]), CorpusFacts(**recorded["facts"])
        self._file = pa.memory_map(os.fsencode(directory / _TABLE))  # a name need not be UTF-8
        reader = pa.ipc.open_file(self._file)
        batches: list[Any] = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        self._src, self._tgt = ([_Column(batch.column(side)) for batch in batches] for side in (0, 1))
        self.src_lengths, self.tgt_lengths = _lengths(self._src), _lengths(self._tgt)

    def __len__(self) -> int:
        return len(self.src_lengths)

    def __getitem__(self, row: int) -> tuple[Ids, Ids]:
        """The source and target ids of a row, without bos and eos."""
        block, row = divmod(row, ROWS_PER_BLOCK)
        return self._src[block][row], self._tgt[block][row]


class _Column:
    """One list column of one record batch as two flat arrays, without a copy."""

    def __init__(self, column: Any) -> None:
        self.offsets: npt.NDArray[np.int32] = _numbers(column.offsets)
        self.values: Ids = _numbers(column.values)

    def __getitem__(self, row: int) -> Ids:
        return self.values[self.offsets[row] : self.offsets[row + 1]]


def _lengths(columns: list[_Column]) -> npt.NDArray[np.int32]:
    return np.concatenate([np.diff(column.offsets) for column in columns] or [np.empty(0, np.int32)])


def open_store(directory: Path) -> TokenStore | None:
    """Opens a store built earlier, or returns None if it is absent, incomplete or damaged (it is then built again)."""
    try:
        if sha256_file(directory / _TABLE) == read_sealed(directory / _REPORT)["sha256"]:
            return TokenStore(directory)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ModelError, pa.ArrowInvalid):
        pass
    return None


def build_store(
    directory: Path,
    corpus: Corpus,
    tokenizer: Tokenizer,
    limits: Limits,
    *,
    dev_pairs: frozenset[Pair] = frozenset(),
    on_read: Callable[[int], None] = lambda count: None,
    processes: int | None = None,
) -> TokenStore:
    """Tokenises a corpus into a store. The same corpus makes the same bytes, by however many processes.

    The pairs of the validation set are for the count of leaks; `processes` is for the test of these bytes.

    Raises:
        DataError: Nothing in the corpus is usable, or more than half of it is empty.
    """
    filter_ = _Filter(corpus, limits, dev_pairs)
    with (
        staged_directory(directory) as staged,
        closing(encode_pairs(corpus.pairs(), tokenizer, processes=processes)) as encoded,
    ):
        try:
            with pa.OSFile(os.fsencode(staged / _TABLE), "wb") as sink, pa.ipc.new_file(sink, _SCHEMA) as writer:
                for block in _blocks(filter_.kept(chunk, on_read) for chunk in encoded):
                    writer.write_batch(block)
        except OSError as error:
            if error.errno is not None:
                raise fault("write", directory, error) from error
            # Arrow often gives no error number, but a text of its own.
            raise EnvironmentFault(f"cannot write {directory}: {error}, {free_space(directory)}") from error
        report = filter_.whole_report()
        facts = filter_.facts(tokenizer.placeholders.expected)
        record = {"sha256": sha256_file(staged / _TABLE), "corpus": corpus.name}
        record |= {"report": asdict(report), "facts": asdict(facts)}
        write_file(staged / _REPORT, json_bytes(sealed(record)))
    return TokenStore(directory)


class _Filter:
    """Takes the pairs that a store can have, and counts what becomes of all."""

    def __init__(self, corpus: Corpus, limits: Limits, dev_pairs: frozenset[Pair]) -> None:
        self._corpus, self._limits, self._dev_pairs = corpus, limits, dev_pairs
        self._report = FilterReport(text_only=corpus.text_only)
        self._hashes = array("q")
        self._sample = Reservoir[Pair](SAMPLE, seed=SAMPLE)

    def kept(self, chunk: Encoded, on_read: Callable[[int], None]) -> tuple[Rows, Rows]:
        """The rows of a chunk that the store takes."""
        pairs, src, tgt = chunk
        shorter, longer = np.minimum(src.lengths, tgt.lengths), np.maximum(src.lengths, tgt.lengths)
        if self._corpus.text_only:
            shorter = longer
        empty = shorter == 0
        too_long = ~empty & (longer > self._limits.max_tokens)
        unequal = ~empty & ~too_long & (longer > self._limits.max_length_ratio * shorter + 5)
        kept = ~(empty | too_long | unequal)
        src, tgt = src.where(kept), tgt.where(kept)
        report = self._report
        report.read += len(pairs)
        report.empty += int(empty.sum())
        report.too_long += int(too_long.sum())
        report.unequal += int(unequal.sum())
        report.kept += len(src)
        report.src_tokens += len(src.ids)
        report.tgt_tokens += len(tgt.ids)
        for pair in compress(pairs, kept):
            self._look_at(pair)
        on_read(report.read)
        return src, tgt

    def _look_at(self, pair: Pair) -> None:
        """Counts what is odd about a pair that is kept."""
        src, tgt = pair
        self._hashes.append(hash(pair))
        self._sample.add(pair)
        self._report.identical += src == tgt
        self._report.in_dev_set += pair in self._dev_pairs
        if not (src.isprintable() and tgt.isprintable()):
            self._report.controls += sum(count_controls(one.encode("utf-8", "surrogatepass")) for one in pair)

    def whole_report(self) -> FilterReport:
        """What became of all pairs; DataError if there is nothing to train on, or the files look like wrong ones."""
        corpus, report = self._corpus, self._report
        if not report.kept:
            raise DataError(f"{corpus.name} has no usable {corpus.unit}: {report}")
        gaps = corpus.text_only or corpus.incomplete  # a text may have a blank line after each other line
        if report.empty > report.read / 2 and not gaps:
            raise DataError(
                f"{corpus.name}: more than half of the pairs have an empty side ({report}); are the files right?"
            )
        if not corpus.repeats:  # else some pairs are there several times on purpose
            report.copies = len(self._hashes) - len(np.unique(np.asarray(self._hashes)))
        return report

    def facts(self, placeholder_kinds: Collection[str]) -> CorpusFacts:
        """What a sample of the kept pairs is like."""
        return look_at([(clean(src), clean(tgt)) for src, tgt in self._sample.kept], placeholder_kinds)


def _blocks(parts: Iterable[tuple[Rows, Rows]]) -> Iterator[Any]:
    """Record batches of `ROWS_PER_BLOCK` rows; the last one has what is left."""
    sides: tuple[list[Rows], list[Rows]] = [], []
    waiting = 0
    for part in parts:
        for side, rows in zip(sides, part, strict=True):
            side.append(rows)
        waiting += len(part[0])
        while waiting >= ROWS_PER_BLOCK:
            (src, src_rest), (tgt, tgt_rest) = (Rows.joined(side).split(ROWS_PER_BLOCK) for side in sides)
            yield _record_batch(src, tgt)
            sides = [src_rest], [tgt_rest]
            waiting -= ROWS_PER_BLOCK
    if waiting:
        yield _record_batch(*map(Rows.joined, sides))


def _record_batch(*sides: Rows) -> Any:
    columns: list[Any] = []
    for rows in sides:
        offsets = np.zeros(len(rows) + 1, dtype=np.int32)
        np.cumsum(rows.lengths, out=offsets[1:])
        columns.append(pa.ListArray.from_arrays(_array(offsets), _array(rows.ids)))
    return pa.record_batch(columns, schema=_SCHEMA)


# `pa.array` and `to_numpy` would do the same, but they import pandas first, which takes a quarter of a second.


def _array(numbers: npt.NDArray[np.int32]) -> Any:
    return pa.Array.from_buffers(pa.int32(), len(numbers), [None, pa.py_buffer(numbers)])


def _numbers(array: Any) -> npt.NDArray[np.int32]:
    return np.frombuffer(array.buffers()[1], np.int32, len(array), array.offset * np.dtype(np.int32).itemsize)
