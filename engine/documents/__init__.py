"""Documents that are translated in place: empty places are filled in, all else stays as it is.

A new format is a module with a class that is a `Document`, and one line in `DOCUMENTS`. Each class opens a file with
settings, which may name its columns or languages. It raises a DataError if the file cannot be read.
"""

from collections.abc import Callable
from pathlib import Path

from ...data.config import DataConfig
from ...data.formats import suffix_of
from ...data.formats.folder import all_below, files_below, refuse_several_languages
from ...system.errors import DataError, UsageError
from .document import Document
from .gettext import PoDocument
from .subtitles import SubtitleDocument
from .table import CsvDocument, JsonlDocument, TsvDocument
from .tmx import TmxDocument
from .xliff import XliffDocument

DOCUMENTS: dict[str, Callable[[Path, DataConfig], Document]] = {
    ".po": PoDocument,
    ".pot": PoDocument,
    ".xlf": XliffDocument,
    ".xliff": XliffDocument,
    ".sdlxliff": XliffDocument,
    ".mqxliff": XliffDocument,
    ".mxliff": XliffDocument,
    ".txlf": XliffDocument,
    ".tmx": TmxDocument,
    ".srt": SubtitleDocument,
    ".vtt": SubtitleDocument,
    ".tsv": TsvDocument,
    ".csv": CsvDocument,
    ".jsonl": JsonlDocument,
}
"""The classes that open files, by suffix."""
_WRITTEN_AS = {".pot": ".po"}
"""Suffixes of outputs, where they differ from those of the inputs."""

WITH_NOTES = frozenset(
    suffix for suffix, opens in DOCUMENTS.items() if opens in (PoDocument, XliffDocument, TmxDocument)
)
"""Suffixes of the formats that have a place for what a reviewer is told."""
KINDS = {suffix: ".pot" if suffix == ".pot" else opens.__name__ for suffix, opens in DOCUMENTS.items()}
"""The kind of a document, by suffix."""


def is_document(path: Path) -> bool:
    """Whether a file is translated in place."""
    return suffix_of(path) in DOCUMENTS


def written_as(suffix: str) -> str:
    """The suffix of what a document with a suffix is written as: a template of messages becomes messages."""
    return _WRITTEN_AS.get(suffix, suffix)


def open_document(path: Path, output: Path | None, config: DataConfig) -> Document:
    """Reads a document.

    Raises:
        DataError: It cannot be read.
        UsageError: The output is missing, or would have another format.
    """
    suffix = suffix_of(path)
    wanted = written_as(suffix)
    if output is None:
        raise UsageError(f"{path} is translated as a whole: name the file to write, --output FILE{wanted}")
    if output.suffix.lower() != wanted:
        raise UsageError(f"{path} is translated in its own format: the --output must end in {wanted}, not {output}")
    document = DOCUMENTS[suffix](path, config)
    document.fields.language = document.fields.language or config.languages[1]
    return document


def documents_below(folder: Path, output: Path | None, config: DataConfig) -> list[tuple[Path, Path]]:
    """The documents of a folder, and for each the file to write, at the same place in another folder.

    Raises:
        UsageError: The other one is missing, or a file, or has links to what is read; or there are no documents, or of
            several kinds, or of several target languages where the settings name none.
    """
    if output is None or output.is_file():
        raise UsageError(f"{folder} is a folder: name another one to write its files to, --output DIR")
    files = ((path, path.relative_to(folder)) for path in files_below(folder, KINDS))
    pairs = [(path, output / name.with_suffix(written_as(name.suffix))) for path, name in files]
    read = {path.resolve() for path, _ in pairs}
    if (linked := next((target for _, target in pairs if target.resolve() in read), None)) is not None:
        raise UsageError(f"{linked} leads to {linked.resolve()}, which would be overwritten; name another --output")
    if not config.languages[1] and suffix_of(pairs[0][0]) in WITH_NOTES:  # the other formats name no language
        refuse_several_languages(folder, [(path, _language_of(path, config)) for path, _ in pairs])
    return pairs


def templates_beside(folder: Path, files: list[tuple[Path, Path]]) -> list[Path]:
    """The templates of messages in a folder of messages: those are translated, and these are not."""
    there = {path for path, _ in files}
    return [path for path in all_below(folder, {".pot"}) if path not in there]


def _language_of(path: Path, config: DataConfig) -> str:
    """The target language that a document names; empty if it cannot be read, which is said when it is its turn."""
    try:
        return DOCUMENTS[suffix_of(path)](path, config).fields.language
    except DataError:
        return ""
