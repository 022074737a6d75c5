"""Documents that are lines of text: what is not filled is written as it was read, to the byte."""

from pathlib import Path
from typing import IO

from ...data.reading import open_bytes, read_lines
from .document import Fields

BYTE_ORDER_MARK = "\ufeff"


class RawDocument:
    """Pieces of a file in UTF-8, each with its line end; a byte-order mark stays in the first one.

    Args:
        path: The file.

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
        pass  # says in words what is wrong with it, and where
    with open_bytes(path) as file:
        lines = file.read().decode("utf-8").split("\n")
    return [*(f"{line}\n" for line in lines[:-1]), *([lines[-1]] if lines[-1] else [])]


def line_end(line: str) -> str:
    """What a line ends with: nothing at the end of some files."""
    return line[len(line.rstrip("\r\n")) :]
