"""Messages of programs in gettext's PO files, and in the MO files that are made of them."""

import codecs
import re
from collections.abc import Iterator
from gettext import c2py  # pyright: ignore[reportAttributeAccessIssue]
from pathlib import Path
from typing import Any

from ...system.errors import DataError
from ..config import DataConfig
from ..reading import open_bytes
from .format import Pair, file_format, first_line

_UNCLOSED = re.compile(r"""\s*(?:msg\w+(?:\[\d+\])?\s+)?"(?:[^"\\]|\\.)*\\?\s*""")
_CHARSET = re.compile(rb'charset=([\w.:-]+?)(?:\\n|")')


def read_po(path: Path, config: DataConfig) -> Iterator[Pair]:
    """Each message and its translation; an empty pair where it is missing, fuzzy or obsolete."""
    del config
    messages = open_po(path)
    for message in messages:
        yield from _pairs(message, plural_forms(messages)) if message.translated() else [("", "")]


def open_po(path: Path) -> Any:
    """The content of a PO file."""
    import polib

    text = _text(path)
    for number, line in enumerate(text.split("\n"), start=1):
        if _UNCLOSED.fullmatch(line):  # polib would cut a letter off
            raise DataError(f"{path}:{number}: the string has no double quote at its end")
    try:
        # The empty line keeps polib from taking the content of a file of one line for a path.
        messages = polib.pofile("\n" + text)
    except OSError as error:
        line = re.search(r"\(line (\d+)\)", str(error))
        raise DataError(f"{path}:{int(line[1]) - 1 if line else 1}: no valid gettext file") from error
    if not len(messages):
        raise DataError(f"{path} has no message")
    return messages


def _text(path: Path) -> str:
    """The content of a file, in the encoding that it declares."""
    with open_bytes(path) as file:
        content = file.read().removeprefix(codecs.BOM_UTF8)
    declared = _CHARSET.search(content)
    charset = declared[1].decode("ascii") if declared else "utf-8"
    try:
        return content.decode("utf-8" if charset == "CHARSET" else charset).replace("\r\n", "\n")
    except LookupError as error:
        raise DataError(f"{path}: it declares charset={charset}, which is none; write the true one there") from error
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        problem = f"invalid {charset}, which the file declares; convert it, or declare what it is"
        raise DataError(f"{path}:{number}: {problem}") from error


def read_mo(path: Path, config: DataConfig) -> Iterator[Pair]:
    """Each message and its translation."""
    import polib

    del config
    with open_bytes(path, text=False):
        pass  # says in words what is wrong with it
    try:
        messages = polib.mofile(str(path))
    except Exception as error:  # polib raises whatever its unpacking meets in a damaged file
        raise DataError(f"cannot read {path}: {first_line(error)}") from error
    for message in messages:
        yield from _pairs(message, plural_forms(messages))


def plural_forms(messages: Any) -> tuple[int, int]:
    """Which translations of a message with a plural go with one thing, and with a great many."""
    rule = re.search(r"plural\s*=\s*([^;]+)", messages.metadata.get("Plural-Forms", ""))
    try:
        form = c2py(rule[1].strip()) if rule else c2py("n != 1")
        return form(1), form(1000)
    except (ValueError, OverflowError, RecursionError):  # the rule is none
        return 0, 1


def _pairs(message: Any, forms: tuple[int, int]) -> list[Pair]:
    if not message.msgid_plural:
        return [(message.msgid, message.msgstr)]
    one, many = (message.msgstr_plural.get(form, "") for form in forms)
    singular = [(message.msgid, one)] if forms[0] != forms[1] else []
    return [*singular, (message.msgid_plural, many)]


PO = file_format((".po",), read_po, incomplete=True)
MO = file_format((".mo",), read_mo, incomplete=True)
FORMATS = {".po": PO, ".mo": MO}
