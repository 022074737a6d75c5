"""Messages of programs in gettext's PO files. A translation by machine is fuzzy: no program shows it unreviewed."""

import re
from pathlib import Path
from typing import IO, Any

from ...data.config import DataConfig
from ...data.formats.gettext import open_po, plural_forms
from .document import Fields

COMMENT = "machine translation, not reviewed"


class PoDocument:
    """Fills messages without a translation, and those whose translation is fuzzy."""

    def __init__(self, path: Path, config: DataConfig) -> None:
        del config
        self._file = open_po(path)
        self._file.metadata["Content-Type"] = "text/plain; charset=UTF-8"
        self._file.encoding = "utf-8"
        self.fields = Fields()
        self.fields.language = self._file.metadata.get("Language", "")
        count = re.match(r"\s*nplurals\s*=\s*(\d+)", self._file.metadata.get("Plural-Forms", ""))
        without_forms = 0
        current = [message for message in self._file if not message.obsolete]
        forms = int(count[1]) if count else 0
        waiting = [message for message in current if _is_open(message, forms)]
        for message in waiting:
            if not message.msgid_plural:
                self.fields.add(message.msgid, lambda text, one=message: _put(one, text))
            elif count is None:
                without_forms += 1
            else:
                self._add_plural(message, forms)
        self.remark = f"{path}: {len(waiting):,} of {len(current):,} messages are empty or fuzzy"
        if without_forms:
            self.remark += f"; {without_forms:,} with a plural stay so, as the header has no Plural-Forms"

    def _add_plural(self, message: Any, count: int) -> None:
        one, many = plural_forms(self._file)
        message.msgstr_plural = {form: message.msgstr_plural.get(form, "") for form in range(count)}
        for form in range(count):
            if message.msgstr_plural[form] and not message.fuzzy:
                continue
            source = message.msgid if form == one and form != many else message.msgid_plural
            self.fields.add(source, lambda text, form=form: _put_form(message, form, text))

    def save(self, stream: IO[bytes]) -> None:
        """Writes the file in UTF-8."""
        stream.write(f"{self._file}\n".encode())


def _is_open(message: Any, forms: int) -> bool:
    """Whether a message has no translation, one that is fuzzy, or not all of its plural forms."""
    missing = any(not message.msgstr_plural.get(form) for form in range(forms)) if message.msgid_plural else False
    return missing or not message.translated()


def _put(message: Any, text: str) -> bool:
    message.msgstr = text
    _mark(message)
    return True


def _put_form(message: Any, form: int, text: str) -> bool:
    message.msgstr_plural[form] = text
    _mark(message)
    return True


def _mark(message: Any) -> None:
    """Says in the format's own way that nobody has looked at a translation yet."""
    if not message.fuzzy:
        message.flags.append("fuzzy")
    if COMMENT not in message.tcomment.splitlines():
        message.tcomment = f"{message.tcomment}\n{COMMENT}".strip("\n")
    message.previous_msgid = message.previous_msgid_plural = message.previous_msgctxt = (
        None  # they belong to the replaced translation
    )
