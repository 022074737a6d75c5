"""`tfm embed`: sentences to vectors; or, for pairs of sentences, how similar they are."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..engine.guard import READS_FILE, WRITES_FILE
from .options import Checkpoint, Debug, Device, Run

if TYPE_CHECKING:
    from ..engine.embedder import Embedder
    from ..system.console import Console
    from .lines import Chunk


def embed(
    text: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Sentences; without any, lines come from --input or stdin."),
    ] = None,
    run: Run = None,
    checkpoint: Checkpoint = "best",
    input_: Annotated[
        Path | None, typer.Option("--input", "-i", metavar="FILE", help="Text file, one sentence per line."), READS_FILE
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File for the vectors, .npy or .jsonl, or for the similarities. [default: stdout]",
        ),
        WRITES_FILE,
    ] = None,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Print how similar each line of --src is to the same line of --tgt.")
    ] = False,
    src: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --pairs: one side, line by line."), READS_FILE
    ] = None,
    tgt: Annotated[Path | None, typer.Option(metavar="FILE", help="With --pairs: the other side."), READS_FILE] = None,
    device: Device = "auto",
    debug: Debug = False,
) -> None:
    """Turn sentences into vectors with a sentence encoder, one vector for each line.

    tfm embed --run runs/toy-encoder --input test.en --output test.npy

    A .npy file holds one row of float32 for each line. JSON Lines hold the text, too:

    tfm embed --run runs/toy-encoder "the old woman sleeps"

    How similar are the lines of two files, 1 being the most? This finds wrong pairs in a corpus:

    tfm embed --run runs/toy-encoder --pairs --src train.en --tgt train.de --output similarities.txt
    """
    del debug
    from ..data.reading import MAX_LINE_BYTES
    from ..engine.runs.find import find_run
    from ..system.console import Console
    from ..system.errors import DataError
    from .lines import file_lines, line_chunks
    from .startup import importing
    from .vectors import check_suffix

    console = Console()
    _check_flags(pairs, [bool(text), input_ is not None], [src is not None, tgt is not None])
    if output is not None and not pairs:
        check_suffix(output)
    directory = find_run(run, console)
    with importing():
        from ..engine.device import keep_freed_memory
        from ..engine.embedder import Embedder

    keep_freed_memory()
    if src is not None and tgt is not None:
        both = _paired(file_lines(src), file_lines(tgt), f"{src} and {tgt}")
        embedder = Embedder.load(directory, checkpoint=checkpoint, device=device, warn=console.warn)
        too_long = _write_similarities(embedder, both, output, console)
    else:
        chunks = line_chunks(text, input_, console)
        embedder = Embedder.load(directory, checkpoint=checkpoint, device=device, warn=console.warn)
        too_long = _write_vectors(embedder, chunks, output, console)
    if too_long:
        raise DataError(f"{too_long:,} lines were longer than {MAX_LINE_BYTES:,} bytes; their vectors are zero")


def _check_flags(pairs: bool, single: list[bool], paired: list[bool]) -> None:
    """Refuses flags that contradict each other.

    Args:
        pairs: Whether to compare.
        single: Whether sentences and --input were given.
        paired: Whether --src and --tgt were.
    """
    from ..system.errors import UsageError

    if pairs and (any(single) or not all(paired)):
        raise UsageError("--pairs compares two files: give --src and --tgt, and no other sentences")
    if not pairs and any(paired):
        raise UsageError("--src and --tgt are compared with --pairs; for vectors of one file give --input")
    if all(single):
        raise UsageError("give sentences as arguments or --input, not both")


def _write_vectors(embedder: "Embedder", chunks: "Iterable[Chunk]", output: Path | None, console: "Console") -> int:
    """Writes a vector for each line; returns how many lines were too long to be read whole."""
    from .lines import Decoder
    from .vectors import open_sink

    decoder, blank, line = Decoder(), 0, 0
    with open_sink(output, sys.stdout, embedder.size) as sink:
        for chunk in chunks:
            texts = decoder.decode(chunk)
            vectors = embedder.embed(texts, first_line=line)
            blank += int((~vectors.any(axis=1)).sum())
            sink.write(texts, vectors)
            line += len(texts)
    decoder.report(console)
    if blank:
        console.warn(f"{blank:,} of {line:,} lines are blank: their vectors are zero")
    return decoder.too_long


def _write_similarities(
    embedder: "Embedder", both: "Iterable[tuple[Chunk, Chunk]]", output: Path | None, console: "Console"
) -> int:
    """Writes a similarity for each pair of lines; returns how many lines were too long to be read whole."""
    from ..system.files import OutputFile
    from .lines import Decoder

    decoder, blank, line = Decoder(), 0, 0
    with nullcontext(sys.stdout) if output is None else OutputFile(output) as stream:
        for src_chunk, tgt_chunk in both:
            sources = embedder.embed(decoder.decode(src_chunk), first_line=line)
            targets = embedder.embed(decoder.decode(tgt_chunk), first_line=line)
            blank += int((~(sources.any(axis=1) & targets.any(axis=1))).sum())
            similarities = (sources * targets).sum(axis=1).tolist()
            stream.writelines(f"{similarity:.4f}\n" for similarity in similarities)
            stream.flush()
            line += len(sources)
    decoder.report(console)
    if blank:
        console.warn(f"{blank:,} of {line:,} pairs have a blank side: their similarity is 0")
    return decoder.too_long


def _paired(src: "Iterable[Chunk]", tgt: "Iterable[Chunk]", names: str) -> "Iterator[tuple[Chunk, Chunk]]":
    """The lines of two files side by side, in chunks of as many lines each.

    Raises:
        DataError: One file has more lines than the other.
    """
    from ..system.errors import DataError
    from .lines import CHUNK_LINES

    missing: Any = object()
    lines = 0
    pairs = zip_longest(chain.from_iterable(src), chain.from_iterable(tgt), fillvalue=missing)
    while both := list(islice(pairs, CHUNK_LINES)):
        for number, pair in enumerate(both, start=lines):
            if missing in pair:
                raise DataError(
                    f"{names} do not match line by line: one ends after {number:,} lines, the other goes on"
                )
        lines += len(both)
        yield [one for one, _ in both], [other for _, other in both]
