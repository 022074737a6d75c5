"""A folder with many files of one kind, at any depth: the messages of a program, the chapters of a manual."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...system.errors import DataError, UsageError
from ..config import DataConfig
from . import FORMATS, suffix_of
from .format import Corpus, OtherLanguages, Stamp, common_language, identity_of

_ONE_KIND = ("gettext", "xliff")
"""Modules whose suffixes are one kind. An `.mo` is made of the `.po` beside it."""
_ASIDE = {".json", ".xlsx", ".ods", ".mo", ".pot"}
"""Suffixes that do not count where there are files of another kind: those of a program have other ends, too, and a
template lies beside the messages that are made of it."""
KINDS = {suffix: module if module in _ONE_KIND else suffix for suffix, (module, _) in FORMATS.items()}
"""The kind of files of pairs, by suffix."""


def files_below(folder: Path, kinds: Mapping[str, str]) -> list[Path]:
    """The files of a folder that are of a kind, in the order of their names; what is hidden is left out.

    Args:
        kinds: The kind of files, by suffix.

    Raises:
        UsageError: It has none, or files of several kinds.
    """
    files = all_below(folder, kinds)
    files = [path for path in files if suffix_of(path) not in _ASIDE] or files
    found = {kinds[suffix_of(path)]: suffix_of(path) for path in files}
    if not files:
        raise UsageError(f"{folder} has no file that ends in {', '.join(sorted(kinds))}")
    if len(found) > 1:
        raise UsageError(
            f"{folder} has files of several kinds, {' and '.join(sorted(found.values()))}; name one folder for each"
        )
    return files


def all_below(folder: Path, suffixes: Container[str]) -> list[Path]:
    """The files of a folder with one of these suffixes, in the order of their names; what is hidden is left out."""
    files = [path for path in sorted(folder.rglob("*")) if suffix_of(path) in suffixes and path.is_file()]
    return [path for path in files if not any(part.startswith(".") for part in path.relative_to(folder).parts)]


def refuse_several_languages(folder: Path, files: Sequence[tuple[Path, str]]) -> None:
    """Refuses a folder whose files are in several target languages, where nobody says which is wanted.

    Args:
        files: Each with its target language, which may be empty.

    Raises:
        UsageError: They are.
    """
    known = {code: path for path, code in reversed(files) if code}
    if known and not common_language(known):
        named = ", ".join(f"{code} ({path.relative_to(folder)})" for code, path in sorted(known.items()))
        raise UsageError(
            f"{folder} has files of several target languages: {named}; name the one to take: --tgt-language"
            f" {min(known)}"
        )


def open_folder(spec: str, config: DataConfig, split: str) -> Corpus:
    """One corpus of all files. Each is read once to see whether it can be, and what is wrong is kept for who asks.

    Files that are in none of the languages wanted are left out, which is said.

    Raises:
        DataError: No file has a pair.
        UsageError: The files have several target languages, and none is wanted.
    """
    from ..corpus import join_corpora, open_spec

    folder = Path(spec)
    stamp = Stamp(spec, lambda: files_below(folder, KINDS))
    parts: list[Corpus] = []
    remarks, failed, others = list[str](), list[str](), list[str]()
    languages = list[tuple[Path, str]]()
    count = 0
    for path in files_below(folder, KINDS):
        try:
            part = None if not path.stat().st_size else open_spec(str(path), config, split)
            pairs = [bool(src.strip() and tgt.strip()) for src, tgt in part.pairs()] if part is not None else []
        except OtherLanguages as error:
            others.append(str(error))
            remarks.append(f"{error.named}; it is left out")
            continue
        except DataError as error:
            failed.append(str(error))
            continue
        remarks.append(f"{path}: {sum(pairs):,} pairs")
        if part is not None:
            parts.append(part)
            languages.append((path, part.languages[1]))
            remarks += part.remarks
            count += len(pairs)
    if not parts:
        raise DataError("\n".join([*failed, *others, f"{spec}: no file has a pair"]))
    if not config.languages[1]:
        refuse_several_languages(folder, languages)
    whole = join_corpora(parts)
    return replace(
        whole,
        name=spec,
        identity=identity_of([part.identity for part in parts], "folder"),
        pairs=stamp.guard(whole.pairs),
        quick_count=lambda: count,
        remarks=tuple(remarks),
        failed=tuple(failed),
    )
