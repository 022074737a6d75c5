"""The leader's files on machines that do not see its disk: handed out when a training starts, gone when it ends."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from ...system.errors import EnvironmentFault
from ...system.files import fault, sha256_file
from .ranks import Ranks, remove_what_the_killed_left

_FOLDER = "tfm-copies-"
"""Begins the names of folders for copies; the number of the process that makes it follows."""
_CHUNK = 1 << 24
"""Bytes that travel at a time."""
_LONGEST_PATH = 4096

Manifest = dict[str, dict[str, str]]
"""By directory, the sha256 of each of its files by name."""


def hand_out(ranks: Ranks, directories: Sequence[Path]) -> None:
    """For the leader: gives the other ranks directories that hold only files. The others call `handed_out`."""
    if ranks.count == 1:
        return
    on_one_machine = ranks.threads is not None  # the leader has started the others itself
    manifest = {os.fspath(path): {} if on_one_machine else _hashes(path) for path in directories}
    ranks.broadcast(json.dumps(manifest).encode())
    if any(ranks.all_of(False)):
        for directory, files in manifest.items():
            for name in files:
                with open(Path(directory, name), "rb") as file:
                    while chunk := file.read(_CHUNK):
                        ranks.broadcast(chunk)
                    ranks.broadcast(b"")
        _paths_of_all(ranks, None)


@contextlib.contextmanager
def handed_out(ranks: Ranks) -> Iterator[list[Path]]:
    """For a follower: the leader's directories if this machine sees them, else copies, removed after the block.

    What this machine has under the same name counts only if its content is the same. A machine holds one copy, in its
    temporary directory.

    Raises:
        EnvironmentFault: A copy cannot be written, or its disk does not keep what is written.
    """
    manifest: Manifest = json.loads(ranks.broadcast())
    lacks = not all(_has(Path(directory), files) for directory, files in manifest.items())
    lacking = ranks.all_of(lacks)
    with contextlib.ExitStack() as copies:
        found = [Path(directory) for directory in manifest]
        if any(lacking):
            keeper = lacking.index(True, ranks.rank - ranks.local_rank) if lacks else -1  # the first of this machine
            folder = None
            if ranks.rank == keeper:
                remove_what_the_killed_left(_FOLDER)
                name = tempfile.TemporaryDirectory(prefix=f"{_FOLDER}{os.getpid()}-", ignore_cleanup_errors=True)
                folder = Path(copies.enter_context(name))
            _receive(ranks, manifest, folder)
            folders = _paths_of_all(ranks, folder)
            if lacks:
                found = [folders[keeper] / str(number) for number in range(len(manifest))]
        yield found


def _hashes(directory: Path) -> dict[str, str]:
    return {path.name: sha256_file(path) for path in sorted(directory.iterdir()) if path.is_file()}


def _has(directory: Path, files: dict[str, str]) -> bool:
    """Whether this machine has the same files in a directory of that name."""
    try:
        return all(sha256_file(directory / name) == sha256 for name, sha256 in files.items())
    except (OSError, EnvironmentFault):
        return False


def _receive(ranks: Ranks, manifest: Manifest, folder: Path | None) -> None:
    """Takes all files that the leader sends, and keeps them in the folder, if there is one, below `0/`, `1/` .."""
    for number, files in enumerate(manifest.values()):
        for name, sha256 in files.items():
            if folder is None:
                while ranks.broadcast():
                    pass
                continue
            path = folder / str(number) / name
            try:
                path.parent.mkdir(exist_ok=True)
                with open(path, "wb") as file:
                    while chunk := ranks.broadcast():
                        file.write(chunk)
            except OSError as error:
                raise fault("write", path, error) from error
            if sha256_file(path) != sha256:
                raise EnvironmentFault(f"{path} is not what the leader has sent; is the disk in order?")


def _paths_of_all(ranks: Ranks, folder: Path | None) -> list[Path]:
    """The folder of each rank, as its own machine names it; of those without one `.`. All are filled by now."""
    rows = torch.zeros(ranks.count, _LONGEST_PATH, dtype=torch.uint8)
    if folder is not None:
        name = os.fsencode(folder)
        rows[ranks.rank, : len(name)] = torch.frombuffer(bytearray(name), dtype=torch.uint8)
    ranks.all_reduce(rows)
    names = (row.numpy().tobytes().rstrip(b"\0") for row in rows)
    return [Path(os.fsdecode(name)) for name in names]
