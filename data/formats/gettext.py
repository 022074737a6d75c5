"""Messages of programs in gettext's PO files, and in the MO files that are made of them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..config import DataConfig
from ..errors import DataError
from ..reading import open_bytes
from .format import FileFormat, Pair, first_line

_CHARSET = re.compile(rb'charset=([\w.:-]+?)(?:\\n|")')


def read_po(path: Path, config: DataConfig) -> Iterator[Pair]:
    """Each message and its translation; an empty pair where it is missing, fuzzy or obsolete."""
    import polib

    del config
    with open_bytes(path, text=False) as file:
        content = file.read()
    declared = _CHARSET.search(content)
    charset = declared[1].decode("ascii") if declared else "utf-8"
    try:
        # The empty line keeps polib from taking the content of a file of one line for a path.
        messages = polib.pofile("\n" + content.decode("utf-8" if charset == "CHARSET" else charset))
    except (OSError, UnicodeDecodeError, LookupError) as error:
        raise DataError(f"cannot read {path}: {_explained(error)}") from error
    for message in messages:
        yield from _pairs(message) if message.translated() else [("", "")]


def read_mo(path: Path, config: DataConfig) -> Iterator[Pair]:
    """Each message and its translation."""
    import polib

    del config
    with open_bytes(path, text=False):
        pass  # says in words what is wrong with it
    try:
        messages = polib.mofile(str(path))
    except Exception as error:  # polib raises whatever its unpacking meets in a damaged file
        raise DataError(f"cannot read {path}: {_explained(error)}") from error
    for message in messages:
        yield from _pairs(message)


def _explained(error: Exception) -> str:
    """polib's message, without the content that it takes for the name of a file."""
    line = re.search(r"\(line (\d+)\)", str(error))
    return f"it is no gettext file at line {int(line[1]) - 1}" if line else first_line(error)


def _pairs(message: Any) -> list[Pair]:
    if not message.msgid_plural:
        return [(message.msgid, message.msgstr)]
    # Form 0 is the singular's where there are several; the last one goes with most numbers.
    forms = [message.msgstr_plural[number] for number in sorted(message.msgstr_plural)]
    singular = [(message.msgid, forms[0])] if len(forms) > 1 else []
    return [*singular, (message.msgid_plural, forms[-1])]


PO = FileFormat((".po",), read_po, incomplete=True)
MO = FileFormat((".mo",), read_mo, incomplete=True)
