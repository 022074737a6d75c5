"""A folder with many files of one kind, at any depth: the messages of a program, the chapters of a manual."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ...system.errors import DataError, UsageError
from ..config import DataConfig
from . import FORMATS, suffix_of
from .format import Corpus, Stamp, identity_of

_ONE_KIND = ("gettext", "xliff")
"""Modules whose suffixes are one kind. An `.mo` is made of the `.po` beside it."""
_ASIDE = {".json", ".xlsx", ".ods", ".mo"}
"""Suffixes that do not count where there are files of another kind: those of a program have other ends, too."""
KINDS = {suffix: module if module in _ONE_KIND else suffix for suffix, (module, _) in FORMATS.items()}
"""The kind of files of pairs, by suffix."""


def files_below(folder: Path, kinds: Mapping[str, str]) -> list[Path]:
    """The files of a folder that are of a kind, in the order of their names; what is hidden is left out.

    Args:
        kinds: The kind of files, by suffix.

    Raises:
        UsageError: It has none, or files of several kinds.
    """
    files = [path for path in sorted(folder.rglob("*")) if suffix_of(path) in kinds and path.is_file()]
    files = [path for path in files if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    files = [path for path in files if suffix_of(path) not in _ASIDE] or files
    found = {kinds[suffix_of(path)]: suffix_of(path) for path in files}
    if not files:
        raise UsageError(f"{folder} has no file that ends in {', '.join(sorted(kinds))}")
    if len(found) > 1:
        raise UsageError(
            f"{folder} has files of several kinds, {' and '.join(sorted(found.values()))}; name one folder for each"
        )
    return files


def open_folder(spec: str, config: DataConfig, split: str) -> Corpus:
    """One corpus of all files. Each is read once to see whether it can be, and what is wrong is kept for who asks."""
    from ..corpus import join_corpora, open_spec

    folder = Path(spec)
    stamp = Stamp(spec, lambda: files_below(folder, KINDS))
    parts: list[Corpus] = []
    remarks, failed = list[str](), list[str]()
    count = 0
    for path in files_below(folder, KINDS):
        try:
            part = None if not path.stat().st_size else open_spec(str(path), config, split)
            pairs = [bool(src.strip() and tgt.strip()) for src, tgt in part.pairs()] if part is not None else []
        except DataError as error:
            failed.append(str(error))
            continue
        remarks.append(f"{path}: {sum(pairs):,} pairs")
        if part is not None:
            parts.append(part)
            remarks += part.remarks
            count += len(pairs)
    if not parts:
        raise DataError("\n".join([*failed, f"{spec}: no file has a pair"]))
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
