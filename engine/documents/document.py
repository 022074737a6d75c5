"""The base of all documents: texts to translate, and the places where their translations go."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Protocol

from ...data.reading import open_bytes, read_lines

Put = Callable[[str], bool]
"""Puts a translation in its place, or says that it does not fit there."""
BYTE_ORDER_MARK = "\ufeff"
_LINE_END = re.compile(r"([ \t]*\r?\n[ \t]*)")


class Fields:
    """Texts of a document, line by line: white space and line ends stay as they are.

    Attributes:
        texts: The texts to translate, in order.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._fields: list[tuple[list[str | int], Put]] = []

    def __len__(self) -> int:
        return len(self._fields)

    def add(self, text: str, put: Put) -> None:
        """Adds a text, with its line ends; `put` is called with its translation, once there is one."""
        parts: list[str | int] = []
        for piece in _LINE_END.split(text):
            inner = piece.strip()
            if not inner:
                parts.append(piece)
                continue
            before, _, after = piece.partition(inner)
            parts += [before, len(self.texts), after]
            self.texts.append(inner)
        self._fields.append((parts, put))

    def fill(self, translations: Sequence[str]) -> int:
        """Puts a translation of each text in its place; an empty one leaves the place as it was.

        Returns:
            How many places were left.
        """
        left = 0
        for parts, put in self._fields:
            pieces = [translations[part] if isinstance(part, int) else part for part in parts]
            whole = all(pieces[i] for i, part in enumerate(parts) if isinstance(part, int))
            left += not (whole and put("".join(pieces)))
        return left


class Document(Protocol):
    """A file with places for translations; `remark` describes it in lines for people."""

    fields: Fields
    remark: str

    def save(self, stream: IO[bytes]) -> None:
        """Writes the whole file, with the translations that have been filled in."""
        ...


class RawDocument:
    """Pieces of a file in UTF-8, each with its line end; a byte-order mark stays in the first one.

    A piece that is not filled is written as it was read, to the byte.

    Raises:
        DataError: The file cannot be read, or is not UTF-8.
    """

    def __init__(self, path: Path) -> None:
        self.fields = Fields()
        self._pieces = _lines(path)

    def _replace(self, place: int, content: str) -> None:
        """Puts content in the place of a piece, between its byte-order mark and its line end, if it has them."""
        old = self._pieces[place]
        mark = BYTE_ORDER_MARK if old.startswith(BYTE_ORDER_MARK) else ""
        self._pieces[place] = mark + content + line_end(old)

    def save(self, stream: IO[bytes]) -> None:
        """Writes the file in UTF-8."""
        stream.writelines(piece.encode() for piece in self._pieces)


def _lines(path: Path) -> list[str]:
    for _ in read_lines(path):
        pass  # an error names what is wrong with the file, and where
    with open_bytes(path) as file:
        lines = file.read().decode("utf-8").split("\n")
    return [*(f"{line}\n" for line in lines[:-1]), *([lines[-1]] if lines[-1] else [])]


def line_end(line: str) -> str:
    """The line feed of a line, and a carriage return before it; the last line of a file may have none."""
    return line[len(line.rstrip("\r\n")) :]
