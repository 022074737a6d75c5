"""Reads files of run directories, which may come from anybody. Standard library only.

A name in a directory may be a pipe that blocks for ever, a device that never ends, a link to somewhere else, or a file
larger than memory. So a file is opened without following links and without waiting, looked at, and only then read.
"""

import errno
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from .errors import ModelError

MAX_JSON_BYTES = 1_000_000
"""Largest JSON file of a run."""
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def read_plain(path: Path, max_bytes: int, *, follow: bool = False) -> bytes:
    """The content of a regular file, which may be a link only if a user has named it: `follow`.

    ModelError if it is missing, a link, a pipe, a device or a directory, or larger.
    """
    try:
        with open(os.open(path, _FLAGS if follow else _FLAGS | _NO_LINK), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise ModelError(f"{path} is not a plain file; a run holds plain files alone")
            if found.st_size > max_bytes:
                raise ModelError(f"{path} is larger than such a file can be ({max_bytes:,} bytes)")
            return file.read(found.st_size)  # not `max_bytes`: so much memory would be taken at once
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise ModelError(f"{path} is a symbolic link; a run holds plain files alone") from error
        raise ModelError(f"cannot read {path}: {error.strerror}") from error


def parse_object(content: bytes, path: Path) -> dict[str, Any]:
    """The JSON object in a file; ModelError if there is none, or it is nested too deeply."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is damaged: it is not JSON") from error
    if not isinstance(value, dict):
        raise ModelError(f"{path} is damaged: it is not a JSON object")
    return value


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a small file of a run; ModelError as of `read_plain` and `parse_object`."""
    return parse_object(read_plain(path, MAX_JSON_BYTES), path)


LONGEST_STRING = 1_000
"""Characters of a string in a JSON file of a run."""
LARGEST_INTEGER = 2**63 - 1


def check_fields(content: Mapping[str, Any], type_: type, path: Path) -> None:
    """Compares a JSON object with the dataclass that is to be made of it. Fields may be missing.

    ModelError if a key is unknown, or a value has another type, is too large, or has characters that are not shown.
    """
    hints = get_type_hints(type_)
    known = {field.name for field in fields(type_)}
    for key, value in content.items():
        if key not in known:
            raise ModelError(f"{path} has an unknown key {key[:20]!r}; another tfm wrote it, or it is damaged")
        if not _fits(value, hints[key]):
            raise ModelError(f"{path} is damaged: {key} cannot be {repr(value)[:40]}")


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type; numbers are no booleans, and a whole number is a number."""
    origin = get_origin(hint)
    if origin is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if hint is NoneType:
        return value is None
    if origin is list:
        return isinstance(value, list) and all(_fits(one, *get_args(hint)) for one in value)
    if (origin or hint) is dict:
        return isinstance(value, dict)
    if hint is float and type(value) is float:
        return True
    if hint in (int, float):
        return type(value) is int and abs(value) <= LARGEST_INTEGER
    if hint is str:
        return isinstance(value, str) and len(value) <= LONGEST_STRING and value.isprintable()
    return type(value) is hint


def refuse_links(directory: Path, depth: int = 3) -> None:
    """Refuses a directory in which links lead to somewhere else: what is written through them would land there.

    The directory itself may be a link: its owner has named it.
    """
    if not depth:
        return
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_symlink():
                    raise ModelError(
                        f"{entry.path} is a symbolic link, and nothing outside the run is to be changed; put a copy"
                        " in its place, or make the whole run directory a link"
                    )
                if entry.is_dir(follow_symlinks=False):
                    refuse_links(Path(entry.path), depth - 1)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise ModelError(f"cannot read {directory}: {error.strerror}") from error
