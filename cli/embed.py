"""`tfm embed`: sentences to vectors, or their pieces; or, for pairs of sentences, how similar they are."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from ..engine.file_guard import READS_FILE, WRITES_FILE
from ..system.errors import DataError, UsageError
from ..system.files import BinaryOutputFile, json_line
from ..system.reporter import Console
from . import options
from .startup import importing

if TYPE_CHECKING:
    from ..engine.embedder import Embedder, PieceEmbedder, Vectors
    from .lines import Chunk, LineDecoder

_HEADER_BYTES = 128
"""Length of the header of a .npy file; the format wants a multiple of 64."""
_Part = tuple[Iterable[str | bytes], int, int]
"""What is written for a chunk of lines or of pairs of lines, how many they are, and how many of them are blank."""


def embed(
    text: options.Sentences = None,
    run: options.Run = None,
    checkpoint: options.Checkpoint = "best",
    input_: Annotated[
        Path | None,
        typer.Option(
            "--input", "-i", metavar="FILE", callback=options.or_stream, help="Text file, one sentence per line."
        ),
        READS_FILE,
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            callback=options.or_stream,
            help="File for the vectors, .npy or .jsonl, or for the similarities. [default: stdout]",
        ),
        WRITES_FILE,
    ] = None,
    pieces: Annotated[
        bool,
        typer.Option(
            "--pieces", help="Write the encoder's output for each piece of a line, of a translator's encoder, too."
        ),
    ] = False,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Print how similar each line of --src is to the same line of --tgt.")
    ] = False,
    src: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --pairs: one side, line by line."), READS_FILE
    ] = None,
    tgt: Annotated[Path | None, typer.Option(metavar="FILE", help="With --pairs: the other side."), READS_FILE] = None,
    encoding: options.Encoding = None,
    device: options.Device = "auto",
) -> None:
    """Turn sentences into vectors with a sentence encoder.

    One vector comes out for each line.

    tfm embed --run runs/toy-encoder --input test.en --output test.npy

    A .npy file holds one row of float32 for each line. JSON Lines hold the text, too:

    tfm embed --run runs/toy-encoder "the old woman sleeps"

    What does the encoder of a translator give? A vector for each piece of the line:

    tfm embed --run runs/toy --pieces "the old woman sleeps"

    How similar are the lines of two files, 1 being the most? This finds wrong pairs in a corpus:

    tfm embed --run runs/toy-encoder --pairs --src train.en --tgt train.de --output similarities.txt
    """
    from ..engine.runs.find import find_run
    from .lines import LineDecoder, file_lines, line_chunks, lines_too_long, output_or_stdout

    _check_flags(text, input_, output, pieces, pairs, src, tgt)
    console = Console()
    directory = find_run(run, console)
    with importing():
        from ..engine.device import keep_freed_memory
        from ..engine.embedder import Embedder, PieceEmbedder

    keep_freed_memory()
    known = options.checked_encoding(encoding)
    both = _paired(file_lines(src, known), file_lines(tgt, known), f"{src} and {tgt}") if src and tgt else None
    chunks = line_chunks(text, input_, console, encoding=known) if both is None else ()
    decoder = LineDecoder(known, 0 if both is None else None)
    how: dict[str, Any] = {"checkpoint": checkpoint, "device": device, "warn": console.warn}
    if pieces:
        parts = _pieces(PieceEmbedder.load(directory, **how), chunks, decoder)
        remark = _write(parts, output_or_stdout(output), "lines are blank: they have no pieces")
    else:
        embedder = Embedder.load(directory, **how)
        if both is not None:
            parts = _similarities(embedder, both, decoder)
            remark = _write(parts, output_or_stdout(output), "pairs have a blank side: their similarity is 0")
        else:
            array = output if output is not None and output.suffix == ".npy" else None
            parts = _vectors(embedder, chunks, decoder, as_rows=array is not None)
            to = output_or_stdout(output) if array is None else _array_file(array, embedder.size)
            remark = _write(parts, to, "lines are blank: their vectors are zero")
    decoder.report(console)
    if remark:
        console.warn(remark)
    if decoder.too_long:
        without = "they have no pieces" if pieces else "their vectors are zero"
        raise DataError(f"{lines_too_long(decoder.too_long)}; {without}")


def _check_flags(
    text: list[str] | None,
    input_: Path | None,
    output: Path | None,
    pieces: bool,
    pairs: bool,
    src: Path | None,
    tgt: Path | None,
) -> None:
    """Refuses flags that contradict each other, and a name for a file of another kind."""
    from ..data.formats import suffix_of

    if pairs and (text or input_ or not src or not tgt):
        raise UsageError("--pairs compares two files: give --src and --tgt, and no other sentences")
    if not pairs and (src or tgt):
        raise UsageError("--src and --tgt are compared with --pairs; for vectors of one file give --input")
    if pieces and pairs:
        raise UsageError("--pairs compares whole lines, --pieces writes vectors of their pieces; leave one of both out")
    if pieces and output is not None and suffix_of(output) != ".jsonl":
        raise UsageError(f"--output {output} must end in .jsonl: with --pieces each line has as many vectors as pieces")
    if text and input_:
        raise UsageError("give sentences as arguments or --input, not both")
    if output is not None and not pairs and output.suffix != ".npy" and suffix_of(output) != ".jsonl":
        raise UsageError(f"--output {output} must end in .npy (NumPy) or .jsonl (JSON Lines)")


def _vectors(
    embedder: "Embedder", chunks: "Iterable[Chunk]", decoder: "LineDecoder", *, as_rows: bool
) -> Iterator[_Part]:
    """A vector for each line: the rows of a .npy file, or JSON Lines with the texts."""
    line = 0
    for chunk in chunks:
        texts = decoder.decode(chunk)
        vectors = embedder.embed(texts, first_line=line)
        if as_rows:
            content = [vectors.astype("<f4").tobytes()]
        else:
            records = ({"text": text, "vector": _numbers(one)} for text, one in zip(texts, vectors, strict=True))
            content = (json_line(record) + "\n" for record in records)
        yield content, len(texts), int((~vectors.any(axis=1)).sum())
        line += len(texts)


def _numbers(vector: "Vectors") -> list[float]:
    """A vector, each number as short as float32 allows: nine digits give it back."""
    return [float(f"{value:.9g}") for value in vector.tolist()]


def _pieces(embedder: "PieceEmbedder", chunks: "Iterable[Chunk]", decoder: "LineDecoder") -> Iterator[_Part]:
    """The pieces of each line and their vectors."""
    line = 0
    for chunk in chunks:
        texts = decoder.decode(chunk)
        found = embedder.embed_pieces(texts, first_line=line)
        records = (
            {"text": text, "pieces": one.pieces, "vectors": [_numbers(vector) for vector in one.vectors]}
            for text, one in zip(texts, found, strict=True)
        )
        yield (json_line(record) + "\n" for record in records), len(texts), sum(not one.pieces for one in found)
        line += len(texts)


def _similarities(
    embedder: "Embedder", both: "Iterable[tuple[Chunk, Chunk]]", decoder: "LineDecoder"
) -> Iterator[_Part]:
    """A similarity for each pair of lines."""
    line = 0
    for src_chunk, tgt_chunk in both:
        sources = embedder.embed(decoder.decode(src_chunk), first_line=line)
        targets = embedder.embed(decoder.decode(tgt_chunk), first_line=line)
        content = (f"{similarity:.4f}\n" for similarity in (sources * targets).sum(axis=1).tolist())
        yield content, len(sources), int((~(sources.any(axis=1) & targets.any(axis=1))).sum())
        line += len(sources)


def _write(parts: Iterable[_Part], to: AbstractContextManager[IO[Any]], blank_ones: str) -> str:
    """Writes the parts as they come; returns what is to be said of blank lines: how many `blank_ones`."""
    lines = blank = 0
    with to as stream:
        for content, count, blank_count in parts:
            stream.writelines(content)
            stream.flush()
            lines += count
            blank += blank_count
    return f"{blank:,} of {lines:,} {blank_ones}" if blank else ""


@contextmanager
def _array_file(path: Path, size: int) -> Iterator[IO[bytes]]:
    """A .npy file (`numpy.lib.format`, version 1.0) for rows of `size` numbers; it gets its header last."""
    with BinaryOutputFile(path) as file:
        file.seek(_HEADER_BYTES)
        yield file
        rows = (file.tell() - _HEADER_BYTES) // (4 * size)
        array = {"descr": "<f4", "fortran_order": False, "shape": (rows, size)}
        start = b"\x93NUMPY\x01\x00" + (_HEADER_BYTES - 10).to_bytes(2, "little")
        file.seek(0)
        file.write(start + repr(array).encode().ljust(_HEADER_BYTES - 11) + b"\n")


def _paired(src: "Iterable[Chunk]", tgt: "Iterable[Chunk]", names: str) -> "Iterator[tuple[Chunk, Chunk]]":
    """The lines of two files side by side, in chunks of as many lines each; DataError if one has more lines."""
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
