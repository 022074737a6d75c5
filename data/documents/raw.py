"""Lines of text files with their ends, so that what is not changed is written as it was read."""

from pathlib import Path

from ..reading import open_bytes, read_lines

BYTE_ORDER_MARK = "\ufeff"


def raw_lines(path: Path) -> list[str]:
    """The lines of a file in UTF-8, each with its line end; a byte-order mark stays in the first one.

    Raises:
        DataError: The file cannot be read, or is not UTF-8.
    """
    for _ in read_lines(path):
        pass  # says in words what is wrong with it, and where
    with open_bytes(path) as file:
        lines = file.read().decode("utf-8").split("\n")
    return [*(f"{line}\n" for line in lines[:-1]), *([lines[-1]] if lines[-1] else [])]


def line_end(line: str) -> str:
    """What a line ends with: nothing at the end of some files."""
    return line[len(line.rstrip("\r\n")) :]
