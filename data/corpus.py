"""Parallel corpora: sentence pairs streamed from files, tables, Hugging Face data sets or the toy language."""

import csv
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, compress, islice, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from .cleaning import clean
from .config import DataConfig
from .errors import DataError, UsageError
from .files import replace_file, sha256_bytes, sha256_file
from .reading import count_lines, open_bytes, read_lines
from .toy import toy_pairs

Pair = tuple[str, str]
"""A source sentence and its translation; both empty where a line was unreadable and is to be skipped."""

TOY = "toy"
TOY_SIZES = {"train": 40_000, "dev": 500, "test": 1_000}
HOLD_OUT_SHARE, HOLD_OUT_PAIRS = 0.05, 1_000

_TABLES = {".tsv", ".csv", ".jsonl", ".parquet", ".arrow"}
_COMPRESSION_SUFFIXES = {".gz", ".bz2", ".xz"}


@dataclass(frozen=True)
class Corpus:
    """A re-readable stream of sentence pairs.

    Args:
        name: What the user called it, for messages.
        identity: Changes whenever the text does; caches are filed under it.
        pairs: Opens the stream anew at each call.
        quick_count: A quicker way to the number of pairs than reading them, where there is one.
    """

    name: str
    identity: str
    pairs: Callable[[], Iterator[Pair]]
    quick_count: Callable[[], int] | None = None

    def count(self) -> int:
        """The number of pairs in the stream, blank ones included.

        Raises:
            DataError: A file cannot be read.
        """
        return self.quick_count() if self.quick_count else sum(1 for _ in self.pairs())


def training_corpus(config: DataConfig) -> Corpus:
    """The corpus named by `src`/`tgt` or by `data`.

    Raises:
        UsageError: Neither is given, or the two lists do not match.
        DataError: A file cannot be read (raised now where it can be seen now, else while streaming).
    """
    corpus = _corpus(config, config.src, config.tgt, config.data, "train", ("src", "tgt", "data"))
    if corpus is None:
        raise UsageError("no training data: give --src and --tgt, or --data, or leave all out for the toy language")
    return corpus


def dev_corpus(config: DataConfig) -> Corpus | None:
    """The validation set, or None if the configuration names none.

    Raises:
        UsageError: The two lists of files do not match.
    """
    return _corpus(config, config.dev_src, config.dev_tgt, config.dev, "dev", ("dev-src", "dev-tgt", "dev"))


def _corpus(
    config: DataConfig, src: list[str], tgt: list[str], specs: list[str], split: str, flags: tuple[str, str, str]
) -> Corpus | None:
    if (src or tgt) and specs:
        raise UsageError(f"give either --{flags[0]} and --{flags[1]}, or --{flags[2]}, not both")
    if len(src) != len(tgt):
        raise UsageError(f"--{flags[0]} names {len(src)} files and --{flags[1]} {len(tgt)}; they must pair up")
    parts = [_parallel_files(Path(s), Path(t), config.bad_lines == "skip") for s, t in zip(src, tgt, strict=True)]
    parts += [open_spec(spec, config, split) for spec in specs]
    return join_corpora(parts) if parts else None


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
    )


def open_spec(spec: str, config: DataConfig, split: str = "train") -> Corpus:
    """Opens one SPEC: `toy`, a table file, or `hf:NAME[/SUBSET][:SPLIT][@REVISION]`.

    Raises:
        UsageError: The SPEC cannot be understood.
        DataError: It names something that cannot be read.
    """
    if spec == TOY:
        size = TOY_SIZES[split]
        identity = f"toy-{split}-{size}"
        return Corpus(f"the toy language ({split})", identity, lambda: toy_pairs(split, size=size), lambda: size)
    if spec.startswith("hf:"):
        return _hub_corpus(spec, config, split)
    path = Path(spec)
    suffixes = [suffix for suffix in path.suffixes if suffix not in _COMPRESSION_SUFFIXES]
    suffix = suffixes[-1] if suffixes else ""
    if suffix not in _TABLES:
        raise UsageError(
            f"cannot tell the format of {spec}: name a file that ends in {', '.join(sorted(_TABLES))},"
            f" or hf:NAME, or {TOY}; for two text files use --src and --tgt"
        )
    identity = _file_identity([path], (config.src_column, config.tgt_column))
    if suffix in (".parquet", ".arrow"):
        return Corpus(
            spec,
            identity,
            lambda: _dataset_pairs(spec, _load_table(path, suffix), config),
            lambda: _count_rows(path, suffix),
        )
    reader = {".tsv": _tsv_pairs, ".csv": _csv_pairs, ".jsonl": _jsonl_pairs}[suffix]
    counter = None if suffix == ".csv" else lambda: count_lines(path)  # a quoted field of CSV may span lines
    return Corpus(spec, identity, lambda: reader(path, config), counter)


def hold_out(corpus: Corpus, *, seed: int, memo: Path | None = None) -> tuple[Corpus, Corpus]:
    """Splits a validation set off a corpus: 5 % of it, at most 1,000 pairs, and no source sentence on both sides.

    The same seed always holds out the same pairs of a corpus.

    Args:
        corpus: To split.
        seed: Decides who is held out.
        memo: A directory where the split is kept, so that the corpus need not be read for it again.

    Returns:
        The corpus that is left for training, and the one held out.
    """
    split = _remembered_split(corpus, seed, memo) if memo else _split(corpus, seed)

    def identity(name: str) -> str:
        return sha256_bytes(f"{corpus.identity} {seed} {split.threshold} {name}".encode())

    rest = Corpus(f"{corpus.name} (rest)", identity("rest"), lambda: _without(corpus.pairs(), split.rows))
    return rest, Corpus(f"{corpus.name} (held out)", identity("held out"), lambda: iter(split.pairs))


def first_pairs(corpus: Corpus, count: int) -> Corpus:
    """The first `count` pairs of a corpus, read once and held in memory; another identity if there are more."""
    pairs = list(islice(corpus.pairs(), count + 1))
    identity = corpus.identity if len(pairs) <= count else f"{corpus.identity} {count}"
    return Corpus(corpus.name, identity, lambda: iter(pairs[:count]))


@dataclass(frozen=True)
class _Split:
    """The rows of a corpus, and the pairs in them, that are held out: those whose rank is below a threshold."""

    threshold: int
    rows: list[int]
    pairs: list[Pair]


def _split(corpus: Corpus, seed: int) -> _Split:
    salt = zlib.crc32(f"{seed}\t".encode())

    def rank(pair: Pair) -> int:
        source = clean(pair[0])
        return zlib.crc32(source.encode(), salt) if source else 2**32 - 1  # blank lines stay where they are

    ranks = np.fromiter(map(rank, corpus.pairs()), dtype=np.uint32)
    size = min(math.ceil(HOLD_OUT_SHARE * len(ranks)), HOLD_OUT_PAIRS)
    threshold = int(np.partition(ranks, size)[size]) if len(ranks) > 1 else 0
    held = ranks < threshold
    return _Split(threshold, np.flatnonzero(held).tolist(), list(compress(corpus.pairs(), held)))


def _without(pairs: Iterator[Pair], rows: list[int]) -> Iterator[Pair]:
    """All pairs but those in these rows, which are in order."""
    next_row = 0
    for row in rows:
        yield from islice(pairs, row - next_row)
        next(pairs, None)
        next_row = row + 1
    yield from pairs


def _remembered_split(corpus: Corpus, seed: int, memo: Path) -> _Split:
    path = memo / f"held-out-{sha256_bytes(f'{corpus.identity} {seed}'.encode())[:16]}.json"
    try:
        recorded = json.loads(path.read_bytes())
        if sha256_bytes(_ascii_json(recorded["split"])) == recorded["sha256"]:
            split = recorded["split"]
            return _Split(split["threshold"], split["rows"], [(src, tgt) for src, tgt in split["pairs"]])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # absent or damaged: made again
    split = _split(corpus, seed)
    record = _ascii_json(asdict(split))
    replace_file(path, b'{"sha256": "%s",\n"split": %s}\n' % (sha256_bytes(record).encode(), record))
    return split


def _ascii_json(value: Any) -> bytes:
    return json.dumps(value).encode("ascii")  # half characters, which JSON Lines can bring, survive as \\u escapes


def _file_identity(paths: Iterable[Path], salt: object = "") -> str:
    for path in paths:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise DataError(f"{path} is a pipe or a device, which can be read only once; training needs a file")
    try:
        return sha256_bytes(f"{[sha256_file(path) for path in paths]} {salt}".encode())
    except OSError:
        for path in paths:
            with open_bytes(path):
                pass  # says in words what is wrong with it
        raise


def _parallel_files(src: Path, tgt: Path, skip_bad: bool) -> Corpus:
    identity = _file_identity((src, tgt), skip_bad)
    return Corpus(f"{src} and {tgt}", identity, lambda: _parallel_pairs(src, tgt, skip_bad), lambda: count_lines(src))


def _parallel_pairs(src: Path, tgt: Path, skip_bad: bool) -> Iterator[Pair]:
    missing = object()
    src_lines, tgt_lines = read_lines(src, skip_bad=skip_bad), read_lines(tgt, skip_bad=skip_bad)
    for number, (s, t) in enumerate(zip_longest(src_lines, tgt_lines, fillvalue=missing)):
        if s is missing or t is missing:
            longer = number + 1 + sum(1 for _ in (tgt_lines if s is missing else src_lines))
            counts = (number, longer) if s is missing else (longer, number)
            raise DataError(
                f"{src} has {counts[0]:,} lines and {tgt} {counts[1]:,}; the two files must match line by line"
            )
        yield (s, t) if isinstance(s, str) and isinstance(t, str) else ("", "")


def _tsv_pairs(path: Path, config: DataConfig) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(path, skip_bad=config.bad_lines == "skip"), start=1):
        if line is None or not line.strip():
            yield "", ""
            continue
        fields = line.split("\t")
        if len(fields) < 2:
            raise DataError(f"{path}:{number}: no tab; a .tsv line is source<TAB>target")
        yield fields[0], fields[1]


def _csv_pairs(path: Path, config: DataConfig) -> Iterator[Pair]:
    lines = read_lines(path, skip_bad=config.bad_lines == "skip")
    rows = csv.reader((line or "").replace("\r", " ") + "\n" for line in lines)
    try:
        header = next(rows, [])
        src, tgt = (header.index(column) for column in _pick_columns(path.name, header, config))
        for row in rows:
            if row and len(row) <= max(src, tgt):
                raise DataError(f"{path}:{rows.line_num}: {len(row)} fields, but the header names {len(header)}")
            yield (row[src], row[tgt]) if row else ("", "")
    except csv.Error as error:
        raise DataError(f"{path}:{rows.line_num}: {error}") from error


def _jsonl_pairs(path: Path, config: DataConfig) -> Iterator[Pair]:
    columns: tuple[str, str] | None = None
    for number, line in enumerate(read_lines(path, skip_bad=config.bad_lines == "skip"), start=1):
        if line is None or not line.strip():
            yield "", ""
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}:{number}: not a JSON object: {error}") from error
        if not isinstance(row, dict):
            raise DataError(f"{path}:{number}: not a JSON object")
        row = _inside_translation(row)
        columns = columns or _pick_columns(f"{path}:{number}", list(row), config)
        yield _row_pair(f"{path}:{number}", row, columns)


def _inside_translation(row: dict[str, Any]) -> dict[str, Any]:
    """Hugging Face's translation data sets have the two sides inside a `translation` field."""
    inner = row.get("translation")
    return inner if isinstance(inner, dict) else row


def _row_pair(place: str, row: dict[str, Any], columns: tuple[str, str]) -> Pair:
    """Takes the two sides out of a row; the columns were picked at the first one."""
    if not set(columns) <= set(row):
        raise DataError(f"{place}: no {' and '.join(columns)}, which the rows before have")
    src, tgt = (row[column] for column in columns)
    if src is None or tgt is None:
        return "", ""
    if not isinstance(src, str) or not isinstance(tgt, str):
        raise DataError(f"{place}: source and target must be strings")
    return src, tgt


def _pick_columns(place: str, columns: list[str], config: DataConfig) -> tuple[str, str]:
    """The configured columns; where the defaults are absent, `source`/`target`, or the only two columns there are."""
    wanted = (config.src_column, config.tgt_column)
    for candidate in (wanted, ("source", "target")):
        if set(candidate) <= set(columns):
            return candidate
    if wanted == ("src", "tgt") and len(columns) == 2:
        return columns[0], columns[1]
    raise DataError(
        f"{place}: no columns {wanted[0]!r} and {wanted[1]!r} among {', '.join(map(repr, columns)) or 'none'};"
        " name them when training: tfm train --set data.src_column=.. --set data.tgt_column=.."
    )


def _load_table(path: Path, suffix: str) -> Any:
    from datasets import Dataset

    try:
        if suffix == ".parquet":
            return Dataset.from_parquet(str(path))
        mapped: Any = pa.memory_map(str(path))
        if mapped.read(6) == b"ARROW1":  # Arrow's file format; `datasets` itself writes the streaming format
            return Dataset(pa.ipc.open_file(mapped).read_all())
        return Dataset.from_file(str(path))
    except Exception as error:  # pyarrow and datasets raise a dozen different types for a damaged file
        raise DataError(f"cannot read {path}: {_first_line(error)}") from error


def _count_rows(path: Path, suffix: str) -> int:
    if suffix == ".arrow":
        return len(_load_table(path, suffix))
    from pyarrow import parquet

    try:
        return parquet.read_metadata(path).num_rows
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"cannot read {path}: {_first_line(error)}") from error


def parse_hub_spec(spec: str) -> tuple[str, str | None, str | None, str | None]:
    """Splits `hf:NAME[/SUBSET][:SPLIT][@REVISION]` into name, subset, split and revision.

    A hub name is `owner/name` or an old one-word name; a third component is the subset. A path to a local directory
    (one that starts with `.` or `/`, or exists) is taken whole.
    """
    rest = spec.removeprefix("hf:")
    if Path(rest).exists():
        return rest, None, None, None
    rest, _, revision = rest.partition("@")
    rest, _, split = rest.partition(":")  # at the first colon: a split can be a slice, `train[:1000]`
    name, subset = rest, None
    if not rest.startswith((".", "/")) and not Path(rest).exists() and rest.count("/") == 2:
        name, _, subset = rest.rpartition("/")
    return name, subset, split or None, revision or None


def _hub_corpus(spec: str, config: DataConfig, default_split: str) -> Corpus:
    from datasets import load_dataset

    name, subset, split, revision = parse_hub_spec(spec)
    if not name:
        raise UsageError(f"{spec} names no data set; write hf:NAME[/SUBSET][:SPLIT][@REVISION]")
    split = split or {"dev": "validation"}.get(default_split, default_split)
    try:
        dataset = load_dataset(name, subset, split=split, revision=revision)
    except Exception as error:  # the hub client raises network, lookup and value errors of many libraries
        raise DataError(f"cannot load {spec} (split {split}): {_first_line(error)}") from error
    folder = Path(name)
    # The library's fingerprint of local files follows their dates; what is in them is what counts.
    local = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
    content = _file_identity(local) if local else dataset._fingerprint
    identity = sha256_bytes(f"{content} {split} {config.src_column} {config.tgt_column}".encode())
    return Corpus(spec, identity, lambda: _dataset_pairs(spec, dataset, config), lambda: len(dataset))


def _dataset_pairs(place: str, dataset: Any, config: DataConfig) -> Iterator[Pair]:
    columns: tuple[str, str] | None = None
    for row in dataset:
        inner = _inside_translation(row)
        columns = columns or _pick_columns(place, list(inner), config)
        yield _row_pair(place, inner, columns)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
