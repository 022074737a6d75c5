"""Vectors to a file, as they come: NumPy's .npy, or JSON Lines."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from ..data.formats import suffix_of
from ..system.errors import UsageError
from ..system.files import BinaryOutputFile, OutputFile, json_line

if TYPE_CHECKING:
    from ..engine.embedder import Vectors

_HEADER_BYTES = 128
"""Of a .npy file; a multiple of 64, as the format wants it."""


class VectorSink(Protocol):
    """Where vectors go."""

    def write(self, texts: Sequence[str], vectors: "Vectors") -> None:
        """Takes the vectors of some texts, one for each."""
        ...


class JsonLines:
    """Writes a line of JSON for each text.

    Args:
        stream: Where it goes.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, texts: Sequence[str], vectors: "Vectors") -> None:
        """See `VectorSink`."""
        for text, vector in zip(texts, vectors, strict=True):
            # as short as float32 allows: nine digits give each of its numbers back
            numbers = [float(f"{value:.9g}") for value in vector.tolist()]
            self._stream.write(json_line({"text": text, "vector": numbers}) + "\n")
        self._stream.flush()


class Npy:
    """Writes an array of one row for each text: the rows first, and before them the header, once their number is known.

    The format is that of `numpy.lib.format`, version 1.0.

    Args:
        stream: A file that is empty and can be written anywhere.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._rows = stream, 0
        stream.seek(_HEADER_BYTES)

    def write(self, texts: Sequence[str], vectors: "Vectors") -> None:
        """See `VectorSink`."""
        del texts
        self._stream.write(vectors.astype("<f4").tobytes())
        self._rows += len(vectors)

    def finish(self, size: int) -> None:
        """Writes the header.

        Args:
            size: Length of a vector.
        """
        array = {"descr": "<f4", "fortran_order": False, "shape": (self._rows, size)}
        start = b"\x93NUMPY\x01\x00" + (_HEADER_BYTES - 10).to_bytes(2, "little")
        self._stream.seek(0)
        self._stream.write(start + repr(array).encode().ljust(_HEADER_BYTES - 11) + b"\n")


@contextmanager
def open_sink(output: Path | None, stdout: IO[str], size: int) -> Iterator[VectorSink]:
    """The sink for a file, complete or absent in the end; without a file, JSON Lines on standard output.

    Args:
        output: Its suffix says which format.
        stdout: Standard output.
        size: Length of a vector.

    Raises:
        EnvironmentFault: The file cannot be written.
    """
    if output is None:
        yield JsonLines(stdout)
    elif output.suffix == ".npy":
        with BinaryOutputFile(output) as stream:
            sink = Npy(stream)
            yield sink
            sink.finish(size)
    else:
        with OutputFile(output) as stream:
            yield JsonLines(stream)


def check_suffix(output: Path) -> None:
    """Refuses a file name that does not say in which format to write.

    Raises:
        UsageError: It ends in neither .npy nor .jsonl.
    """
    if output.suffix != ".npy" and suffix_of(output) != ".jsonl":
        raise UsageError(f"--output {output} must end in .npy (NumPy) or .jsonl (JSON Lines)")
