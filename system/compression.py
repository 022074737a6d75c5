"""Ways to compress a file: known by the first bytes of what is read, by the name of what is written."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any


@dataclass(frozen=True)
class Compression:
    """One way to compress a file."""

    magic: bytes
    read: Callable[[IO[bytes]], IO[bytes]]
    write: Callable[[IO[bytes]], IO[bytes]]
    """From an open file to a stream whose content is compressed into it. The same content gives the same file."""


def _read_zstd(file: IO[bytes]) -> IO[bytes]:
    import io

    import pyarrow as pa

    stream: Any = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")
    return io.BufferedReader(stream)


def _write_zstd(file: IO[bytes]) -> Any:
    import pyarrow as pa

    return pa.CompressedOutputStream(pa.PythonFile(file, mode="w"), "zstd")


def _write_gzip(file: IO[bytes]) -> Any:
    """Without a name and a date, and at the level of the program `gzip`."""
    return gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)


def _with(open_: Callable[..., Any], mode: str) -> Callable[[IO[bytes]], Any]:
    return lambda file: open_(file, mode)


COMPRESSIONS = {
    ".gz": Compression(b"\x1f\x8b", _with(gzip.open, "rb"), _write_gzip),
    ".bz2": Compression(b"BZh", _with(bz2.open, "rb"), _with(bz2.open, "wb")),
    ".xz": Compression(b"\xfd7zXZ", _with(lzma.open, "rb"), _with(lzma.open, "wb")),
    ".zst": Compression(b"(\xb5/\xfd", _read_zstd, _write_zstd),
}
"""All ways to compress, by the suffix of a file."""


def compression_of(path: Path) -> Compression | None:
    """What the name of a file asks for."""
    return COMPRESSIONS.get(path.suffix.lower())
