"""Messages of programs in gettext's PO files, and in the MO files that are made of them."""

from collections.abc import Iterator
from pathlib import Path

from ...system.errors import DataError
from ..config import DataConfig
from ..reading import open_bytes
from .format import FileSummary, Pair, common_language, file_format, first_line
from .plurals import Plurals
from .po import PoFile


def read_po(path: Path, config: DataConfig) -> Iterator[Pair]:
    """Each message and its translation; an empty pair where it is missing, fuzzy or obsolete."""
    file = PoFile(path)
    file.refuse_other_languages(config.languages[1])
    yield from _pairs_of(file)


def _pairs_of(file: PoFile) -> Iterator[Pair]:
    plurals = {domain: Plurals.of(header.msgstr[0].text) for domain, header in file.headers.items()}
    for message in file.messages:
        if message.state != "translated":
            yield "", ""
            continue
        plural = message.msgid_plural.text if message.msgid_plural else None
        forms = plurals.get(message.domain, Plurals())
        yield from _pairs(message.msgid.text, plural, [part.text for part in message.msgstr], forms)


def look_through(path: Path, config: DataConfig) -> FileSummary:
    """Counts what `read_po` yields, and says what it is."""
    file = PoFile(path)
    file.refuse_other_languages(config.languages[1])
    language = common_language(file.languages)
    named = f" to {language}" if language else ""
    return FileSummary(sum(1 for _ in _pairs_of(file)), ("", language), f"{path}{named}: {file.counts()}")


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
    plurals = Plurals.of("".join(f"{name}: {value}\n" for name, value in messages.metadata.items()))
    for message in messages:
        forms = [message.msgstr_plural[form] for form in sorted(message.msgstr_plural)] or [message.msgstr]
        yield from _pairs(message.msgid, message.msgid_plural or None, forms, plurals)


def _pairs(msgid: str, plural: str | None, forms: list[str], plurals: Plurals) -> list[Pair]:
    if plural is None:
        return [(msgid, forms[0])]
    pairs = [(msgid, plurals.one)] if plurals.is_singular(plurals.one, msgid, plural) else []
    return [(text, forms[form]) for text, form in [*pairs, (plural, plurals.many)] if form < len(forms)]


PO = file_format(read_po, look_through=look_through, incomplete=True)
MO = file_format(read_mo, incomplete=True)
