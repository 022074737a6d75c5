"""Tries a SentencePiece file that this machine does not know, in a process of its own, and remembers how that went.

SentencePiece is written in C++, and a file made for it can crash the process that opens it. So such a file is first
opened by a child with limits (`vocabulary_trial_worker`). One that passes is remembered by its hash, and by the version
of SentencePiece, in the user's cache directory, and is not tried again. So is every vocabulary that tfm saves.
"""

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import sentencepiece

from ..system.errors import EnvironmentFault, ModelError
from ..system.files import make_directory, sha256_bytes, write_file

if TYPE_CHECKING:
    from ..system.processes import Ending

MOST_SECONDS = 30.0
"""The longest that a trial may take on a busy machine; its processor time has a lower limit."""


def try_vocabulary(model: bytes, path: Path) -> None:
    """Lets a child process open a vocabulary that is not known to be harmless; ModelError if that goes wrong."""
    if _is_known(_mark(model)):
        return
    from ..system.processes import Child  # nobody whose vocabulary is known waits for this

    with Child(f"{__package__}.vocabulary_trial_worker", purpose="to try a vocabulary in") as child:
        with contextlib.suppress(OSError):  # it has ended: why is asked next
            child.stdin.write(model)
            child.stdin.close()
        ending = child.ended_within(MOST_SECONDS)
    if reason := _complaint(ending):
        raise ModelError(f"{path} is not a vocabulary that tfm wrote: {reason}")
    remember_vocabulary(model)


def _complaint(ending: "Ending | None") -> str:
    """What is wrong with a vocabulary, by the end of the process that opened it; empty if nothing is."""
    if ending is None:
        return "SentencePiece takes too long to open it"
    if ending.status < 0:
        return f"SentencePiece crashes when it opens it (signal {-ending.status})"
    return (ending.last_line[:100] or f"exit code {ending.status}") if ending.status else ""


def remember_vocabulary(model: bytes) -> None:
    """Remembers that a vocabulary is harmless. Where that cannot be written, it is tried again next time."""
    mark = _mark(model)
    if mark is not None and not _is_known(mark):
        with contextlib.suppress(EnvironmentFault):
            make_directory(mark.parent)
            write_file(mark, b"")


def _is_known(mark: Path | None) -> bool:
    with contextlib.suppress(OSError):
        return mark is not None and mark.is_file()
    return False


def _mark(model: bytes) -> Path | None:
    """The empty file that stands for a harmless vocabulary; None where the user has no cache directory."""
    name = f"{sha256_bytes(model)}-{sentencepiece.__version__}"
    with contextlib.suppress(RuntimeError):  # nobody's home is known
        return _cache_directory() / "tfm" / "vocabularies" / name
    return None


def _cache_directory() -> Path:
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if given.is_absolute():
        return given
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path.home() / "AppData" / "Local"
    return Path.home() / ".cache"
