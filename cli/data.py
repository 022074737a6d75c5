"""`tfm data`: the audit of a corpus, before a night is spent on it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.config import DataConfig
from ..engine.file_guard import READS_FILE, READS_SPEC, WRITES_FILE, Place, Writes, file_places
from ..system.errors import DataError, UsageError
from ..system.files import OutputFile, make_directory
from ..system.reporter import Console, shortened
from . import options

if TYPE_CHECKING:
    from ..data.audit import Audit, Lengths
    from ..data.corpus import Corpus, Pair

EXAMPLES = 3
"""Lines of each kind of fault that are shown."""


def _clean_names(src: Sequence[str | Path], tgt: Sequence[str | Path]) -> list[str]:
    """Names of the two clean files: those of the corpus, where it is two files."""
    names = [Path(path).name for path in (*src, *tgt)]
    return names if len(set(names)) == len(names) == 2 else ["clean.src", "clean.tgt"]


def _clean_files(folder: Path, given: Mapping[str, Any]) -> Iterator[Place]:
    for name in _clean_names(given["src"] or [], given["tgt"] or []):
        yield from file_places(folder / name)


def data(
    specs: options.Specs = None,
    src: options.Src = None,
    tgt: options.Tgt = None,
    data: options.Data = None,
    dev_src: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Sources of validation and test sets; may be repeated."),
        READS_FILE,
    ] = None,
    dev_tgt: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Line by line their translations."), READS_FILE
    ] = None,
    dev: Annotated[
        list[str] | None,
        typer.Option(metavar="SPEC", help="Validation and test sets in the notation of --data."),
        READS_SPEC,
    ] = None,
    src_column: options.SrcColumn = None,
    tgt_column: options.TgtColumn = None,
    src_language: options.SrcLanguage = None,
    tgt_language: options.TgtLanguage = None,
    encoding: options.Encoding = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File for all faults: line, kind, detail, between tabs."),
        WRITES_FILE,
    ] = None,
    clean: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for two files without the faulty pairs; other numbers are no reason."),
        Writes(_clean_files),
    ] = None,
    json_: options.Json = False,
) -> None:
    """Look for what is wrong with a corpus before training on it.

    Copies, broken characters, lost tags, other numbers, shifted lines and more are counted and shown.

    tfm data --src train.en --tgt train.de

    tfm data --data pairs.tsv --dev test.tsv --report faults.tsv --clean cleaned
    """
    from ..data.audit import audit
    from ..data.corpus import dev_corpus, open_corpus
    from ..data.facts import sample_rows, swap_remark

    named = options.named_files(src=src, tgt=tgt, dev_src=dev_src, dev_tgt=dev_tgt)
    named |= options.named_sides(src_column, tgt_column, src_language, tgt_language, encoding)
    config = replace(DataConfig(data=[*(data or []), *(specs or [])], dev=dev or []), **named)
    if not (config.src or config.tgt or config.data):
        raise UsageError("name the corpus: --src and --tgt, or --data")
    console = Console()
    corpus, others = open_corpus(config, partly=True), dev_corpus(config)
    for remark in corpus.remarks:
        console.say(remark)
    for problem in corpus.failed:
        console.warn(f"{problem}; it is left out")
    console.say(f"reading {corpus.name}")
    pairs = list(corpus.pairs())
    if not pairs:
        raise DataError(f"{corpus.name} has no pair")
    dev_pairs = [] if others is None else list(others.pairs())
    if (remark := swap_remark([pairs[row] for row in sample_rows(len(pairs))], dev_pairs)) is not None:
        console.warn(remark)
    found = audit(pairs, dev_pairs, incomplete=corpus.incomplete)
    if report is not None:
        with OutputFile(report) as stream:
            stream.writelines(f"{fault.row + 1}\t{fault.kind}\t{fault.detail}\n" for fault in found.faults)
    kept = _write_clean(found, pairs, clean, config) if clean is not None else None
    if json_:
        print(json.dumps(_as_dict(found, kept), ensure_ascii=False))
    else:
        _print(found, pairs, corpus, reported=report is not None)
        if kept is not None:
            print(f"{clean}: {kept:,} pairs kept, {len(pairs) - kept:,} left out")
    if corpus.failed:
        raise DataError(f"{len(corpus.failed):,} files of {corpus.name} cannot be read, as said above")


def _print(found: "Audit", pairs: list["Pair"], corpus: "Corpus", *, reported: bool) -> None:
    """For a person."""
    from ..data.audit import KINDS

    print(f"{corpus.name}: {found.pairs:,} pairs")
    for name, lengths in (("source", found.src), ("target", found.tgt)):
        print(f"  {name}  {_lengths(lengths)}")
    for kind, meaning in KINDS.items():
        count = found.count(kind)
        if not count:
            continue
        print(f"{kind:<10} {count:>7,}  ({100 * count / found.pairs:.2f} %)  {meaning}")
        if kind == "untranslated":  # their texts were not read
            continue
        if kind == "shifted":
            for shift in found.shifts:
                where = (
                    f"{abs(shift.offset)} line{'s' * (abs(shift.offset) > 1)} {'down' if shift.offset > 0 else 'up'}"
                )
                print(f"  lines {shift.first + 1:,} to {shift.last + 1:,}: the target seems to be {where}")
            continue
        for fault in [fault for fault in found.faults if fault.kind == kind][:EXAMPLES]:
            src, tgt = (shortened(side, 100) for side in pairs[fault.row])
            print(f"  line {fault.row + 1:,}{': ' + fault.detail if fault.detail else ''}\n    {src}\n    {tgt}")
    if all(fault.kind == "untranslated" for fault in found.faults):
        print("no fault found")
    elif not reported:
        print("all of them to a file: --report FILE; a copy without them: --clean DIR")


def _lengths(lengths: "Lengths") -> str:
    return (
        f"{lengths.total:,} {lengths.unit}; half of the lines have at most {lengths.median:,}, one has {lengths.most:,}"
    )


def _write_clean(found: "Audit", pairs: list["Pair"], folder: Path, config: DataConfig) -> int:
    """Writes two files, line by line translations of each other; returns how many pairs they have."""
    from ..data.audit import REMOVED

    faulty = found.rows(REMOVED)
    names = _clean_names(config.src, config.tgt)
    make_directory(folder)
    with ExitStack() as stack:
        streams = [stack.enter_context(OutputFile(folder / name)) for name in names]
        for row, pair in enumerate(pairs):
            if row not in faulty:
                for stream, text in zip(streams, pair, strict=True):
                    stream.write(" ".join(text.splitlines()) + "\n")
    return len(pairs) - len(faulty)


def _as_dict(found: "Audit", kept: int | None) -> dict[str, Any]:
    from ..data.audit import KINDS

    return {
        "pairs": found.pairs,
        "source": asdict(found.src),
        "target": asdict(found.tgt),
        "faults": {kind: found.count(kind) for kind in KINDS},
        "shifts": [{"first": s.first + 1, "last": s.last + 1, "offset": s.offset} for s in found.shifts],
        "kept": kept,
    }
