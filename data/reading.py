"""Text files as lines. Only `\\n` ends a line: U+2028, VT, FF and NEL inside a sentence never shift a pair."""

import contextlib
import difflib
import hashlib
import io
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from ..system.compression import COMPRESSIONS
from ..system.errors import DataError, MissingFile
from ..system.files import sha256_file
from ..system.reporter import counted
from .charset import UTF8_MARK, Undecoded, encoding_of, in_utf8, is_iso_2022_jp, marked_encoding, wide_encoding

MAX_LINE_BYTES = 1_000_000
"""A longer line is cut here, so that memory stays bounded; no model reads a sentence of this length anyway."""

_BLOCK_BYTES = 1 << 20
_C0 = bytes({*range(0x20), 0x7F} - set(b"\t\n\v\f\r"))
_C1 = re.compile(rb"\xc2[\x80-\x84\x86-\x9f]")
"""The control characters of Latin-1, in UTF-8, but for U+0085, which ends a line in some texts."""


_FOREIGN = {
    b"PK\x03\x04": "a zip archive (a .docx or .xlsx, perhaps); take the text out of it first",
    b"%PDF": "a PDF document; take the text out of it first",
    b"\x80\x02": "a pickle file",
    b"PAR1": "a Parquet file; give it to --data",
    b"ARROW1": "an Arrow file; give it to --data",
    b"<?xml": "XML; give a .tmx, .xlf or .xliff to --data",
    b"\xde\x12\x04\x95": "gettext's .mo; give it to --data",
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"GIF8": "a GIF picture",
    b"\x7fELF": "a program",
}
_HEAD_BYTES = 4096


class UndecodableText(DataError):
    """Text that is not in the encoding in which it is read."""


def read_lines(path: Path, *, skip_bad: bool = False, encoding: str = "") -> Iterator[str | None]:
    """Streams the lines of a text file, without their line ends. Reads .gz, .bz2, .xz and .zst by their first bytes.

    Args:
        skip_bad: Yield None for a line that is not in its encoding, instead of raising.
        encoding: Of a file without a byte-order mark, if not UTF-8.
    """
    controls, sound, has_end = Controls(str(path)), 0, True

    def on_open_end() -> None:
        nonlocal has_end
        has_end = False

    with open_bytes(path, encoding=encoding) as file:
        lines = iter_raw_lines(file, str(path), on_open_end=on_open_end)
        for number, raw in enumerate(lines, start=1):
            controls.add(raw)
            if controls.bytes > _BLOCK_BYTES:
                controls.refuse_binary()
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                if not skip_bad:
                    bad = Undecoded(number - 1, sound)
                    bad.add(raw)
                    for other in lines:
                        controls.add(other)
                        bad.add(other)
                    controls.refuse_binary()
                    count = f"{counted(bad.count, 'line')} in all"
                    place = f"{path}:{number} byte {error.start + 1}: invalid UTF-8 ({count});"
                    if encoding:
                        place = f"{path}:{number}: invalid {encoding} ({count});"
                        raise UndecodableText(f"{place} name another --encoding") from error
                    raise UndecodableText(f"{place} {bad.advice(cut=not has_end)}") from error
                yield None
            else:
                sound += not raw.isascii()
                yield text
    controls.refuse_binary()


def count_controls(raw: bytes) -> int:
    """The control characters in UTF-8 text. White space such as tabs and form feeds is none."""
    return len(raw) - len(raw.translate(None, _C0)) + len(_C1.findall(raw))


FEW_CONTROLS = 20
"""A short text may have this many control characters."""


class Controls:
    """Counts control characters. A few are read as spaces; input with many is refused as binary."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found = self.bytes = 0

    def add(self, raw: bytes) -> None:
        """Counts the control characters of a line."""
        self.found += count_controls(raw)
        self.bytes += len(raw)

    def refuse_binary(self) -> None:
        """Refuses input that is not text.

        Raises:
            DataError: More than 1 % of it are control characters.
        """
        if self.found > max(FEW_CONTROLS, self.bytes // 100):
            raise DataError(
                f"{self.name} does not look like text: {self.found:,} of {self.bytes:,} bytes are control characters;"
                " is it a binary file, or in another encoding than UTF-8?"
            )


@dataclass(frozen=True)
class Survey:
    """What one reading of a whole file tells.

    Attributes:
        sha256: The hash of its bytes as they are on the disk.
        lines: How many lines its content has, decompressed.
        marked: The encoding that a byte-order mark before its content says; empty if it has none.
    """

    sha256: str
    lines: int
    marked: str


def survey(path: Path, encoding: str = "") -> Survey:
    """Reads a file once to identify it and to count its lines. A file that is not changed is not read for it again.

    Raises:
        DataError: It cannot be read, or only once.
    """
    with _readable(path):
        return _survey(path, encoding, stamp_of(path))


def hash_file(path: Path) -> str:
    """The SHA-256 of a file that is no text."""
    with _readable(path):
        return sha256_file(path)


def stamp_of(path: Path) -> tuple[int, ...]:
    """What a file is known by without being read: its place, its size and the time of its last change."""
    is_ = path.stat()
    return is_.st_dev, is_.st_ino, is_.st_size, is_.st_mtime_ns


@lru_cache(maxsize=256)
def _survey(path: Path, encoding: str, stamp: tuple[int, ...]) -> Survey:
    del stamp  # part of the key: a file with another stamp is another file
    count, last = 0, b"\n"
    with open(path, "rb", buffering=0) as raw:
        hashed = _Hashed(raw)
        file = io.BufferedReader(hashed, _BLOCK_BYTES)
        with decompressed(str(path), file) as content:
            marked = marked_encoding(_head(content))
            content = in_utf8(content, encoding_of(_head(content), encoding))
            while block := content.read(_BLOCK_BYTES):
                count += block.count(b"\n")
                last = block[-1:]
            while file.read(_BLOCK_BYTES):  # what follows the end of an archive
                pass
    return Survey(hashed.digest.hexdigest(), count + (last != b"\n"), marked)


class _Hashed(io.RawIOBase):
    """A file whose bytes are hashed while they are read, once, from the first to the last."""

    def __init__(self, raw: io.RawIOBase | Any) -> None:
        self._raw, self.digest = raw, hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        size = self._raw.readinto(buffer)
        self.digest.update(memoryview(buffer)[:size])
        return size


def count_lines(path: Path, encoding: str = "") -> int:
    """How many lines `read_lines` yields, without looking at them."""
    with open_bytes(path, encoding=encoding):
        pass  # says what it is, if it is not text
    return survey(path, encoding).lines


def iter_raw_lines(
    file: IO[bytes],
    name: str,
    *,
    on_cut: Callable[[], None] = lambda: None,
    on_open_end: Callable[[], None] = lambda: None,
) -> Iterator[bytes]:
    """Splits a byte stream at `\\n` alone, dropping one `\\r` before it and a byte-order mark at the very start.

    Args:
        on_cut: Called just before a line is yielded that was longer than `MAX_LINE_BYTES` and has been cut.
        on_open_end: Called just before the last line is yielded, if no line end follows it.
    """
    first = True
    while line := file.readline(MAX_LINE_BYTES):
        if first:
            _refuse_old_mac(name, line)
        if not line.endswith(b"\n") and len(line) == MAX_LINE_BYTES:
            on_cut()
            _skip_rest_of_line(file)
            line = _whole_characters(line)
        elif not line.endswith(b"\n"):
            on_open_end()
        if first:
            line, first = line.removeprefix(UTF8_MARK), False
        yield line.removesuffix(b"\n").removesuffix(b"\r")


def _refuse_old_mac(name: str, first_line: bytes) -> None:
    """Refuses text that is one line, though it was many on the Macs of the last century.

    Raises:
        DataError: The line does not end, and has many `\\r` inside: one at least, and one for 10 kB.
    """
    count = first_line[:-1].count(b"\r")
    if b"\n" not in first_line and count > len(first_line) // 10_000:
        how = "in an editor" if sys.platform == "win32" else "in an editor, or with tr '\\r' '\\n' < OLD > NEW"
        raise DataError(f"{name} has the line ends of old Macs (CR alone); save it with others {how}")


def _skip_rest_of_line(file: IO[bytes]) -> None:
    while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
        pass


def _whole_characters(line: bytes) -> bytes:
    """Cuts a torn last character, so that a cut line is not mistaken for invalid UTF-8."""
    for back in range(1, 4):
        if line[-back] & 0xC0 != 0x80:
            width = 4 if line[-back] >= 0xF0 else 3 if line[-back] >= 0xE0 else 2 if line[-back] >= 0xC0 else 1
            return line[:-back] if width > back else line
    return line


@contextlib.contextmanager
def open_bytes(path: Path, *, text: bool = True, encoding: str = "") -> Iterator[IO[bytes]]:
    """Opens a file for reading, decompressed.

    Args:
        text: Refuse what is recognisably no text; what is text comes in UTF-8.
        encoding: Of a text without a byte-order mark, if not UTF-8.
    """
    with _explained(path), open(path, "rb") as file, decompressed(str(path), file) as content:
        yield as_text(str(path), content, encoding) if text else content


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise MissingFile(path, did_you_mean(path)) from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Says what is wrong with a file that cannot be read, or only once."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise DataError(f"{path} is a pipe or a device, which can be read only once; give a file")
    with _explained(path):
        yield


@contextlib.contextmanager
def decompressed(name: str, file: IO[bytes]) -> Iterator[IO[bytes]]:
    """The content of an open file, decompressed if its first bytes say so. They are peeked at: a pipe has them once."""
    head = _head(file)
    compression = next((one for one in COMPRESSIONS.values() if head.startswith(one.magic)), None)
    if compression is None:
        yield file
        return
    try:
        with compression.read(file) as content:
            yield content
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise DataError(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from error


def as_text(name: str, file: IO[bytes], encoding: str) -> IO[bytes]:
    """The content of an open file in UTF-8.

    Args:
        encoding: What it is in without a byte-order mark, if not UTF-8.

    Raises:
        DataError: Its first bytes say that it is no text, or that its lines are no sentences.
    """
    head = _head(file)
    known = encoding_of(head, encoding)
    for magic, description in _FOREIGN.items():
        if head.removeprefix(UTF8_MARK).startswith(magic):
            raise DataError(f"{name} is not a text file: it is {description}")
    if known == "utf-8" and head.count(0) > max(len(head) // 5, 1):
        if wide := wide_encoding(head):
            looks = f"{name} looks like {wide[:6].upper()} without a byte-order mark"
            raise DataError(f"{looks}, not UTF-8; name what it is in: --encoding {wide}")
        raise DataError(f"{name} does not look like text: much of it is NUL; is it a binary file?")
    if known == "utf-8" and is_iso_2022_jp(head):
        raise DataError(f"{name} looks like ISO-2022-JP, not UTF-8; name what it is in: --encoding iso2022_jp")
    return in_utf8(file, known)


def first_text(file: IO[bytes]) -> str:
    """The beginning of a text, which is still to be read."""
    head = _head(file)
    return head.decode(encoding_of(head), errors="replace").removeprefix("\ufeff")


def _head(file: IO[bytes]) -> bytes:
    """The first bytes of a file, as far as they are there without waiting; they are still to be read."""
    return file.peek(_HEAD_BYTES)[:_HEAD_BYTES]  # pyright: ignore[reportAttributeAccessIssue]


def bad_quotes(path: Path, line: int, error: Exception) -> DataError:
    """What to say of a row of CSV that cannot be read."""
    problem = "a double quote that opens a field is not closed, or one inside it is not doubled"
    return DataError(f"{path}:{line}: {problem} ({error})")


def did_you_mean(path: Path) -> str:
    """The file beside it with the most similar name, in brackets; empty if none is similar."""
    with contextlib.suppress(OSError):
        near = difflib.get_close_matches(path.name, [sibling.name for sibling in path.parent.iterdir()], n=1)
        if near:
            return f" (did you mean {path.with_name(near[0])}?)"
    return ""
