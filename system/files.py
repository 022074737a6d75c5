"""Every write, rename, removal and lock of tfm. Standard library only.

The rule that makes a power cut harmless: write under a temporary name *in the same directory*, fsync the file, rename
it over the final name, fsync the directory. A reader therefore sees the old content or the new, never half of it.
What differs by operating system (locks, directory fsync) is in this module and nowhere else.
"""

import contextlib
import errno
import hashlib
import io
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

from .compression import compression_of
from .errors import ClosedPipe, DirectoryInUse, DiskFull, EnvironmentFault, ModelError
from .untrusted import read_object, read_plain

PARTIAL = ".partial"
"""Suffix of everything unfinished; anything that still carries it at start-up is debris of a crash."""
_REPLACED, _REMOVED, _WORK, _PACKED = (f".{what}{PARTIAL}" for what in ("replaced", "removed", "work", "packed"))
LOCK = ".lock"
"""The file by which a directory is held."""


def unfinished(path: Path) -> list[Path]:
    """Temporary names that may stand beside a path while it is written."""
    return [path.parent / (path.name + suffix) for suffix in (PARTIAL, _REPLACED, _REMOVED, _WORK, _PACKED)]


def is_stream(path: Path) -> bool:
    """Whether a name is that of a pipe, a terminal, `/dev/null` or, as `/dev/stdout`, of a file that is open already.

    What is written there goes straight to it: a rename would put a file in the place of its name.
    """
    name = Path(os.path.realpath(path.parent), path.name)
    if re.fullmatch(r"/dev/std(out|err)|(/dev|/proc/[^/]+)/fd/\d+", str(name)):
        return True
    return path.exists() and (path.is_fifo() or path.is_char_device())


def fault(action: str, path: Path, error: OSError) -> EnvironmentFault | ClosedPipe:
    """Turns an OSError into one line that names the path, the reason and, when the disk is full, the space left."""
    if error.errno == errno.EPIPE:
        return ClosedPipe()
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        with contextlib.suppress(OSError):
            reason += f", {free_space(path)}"
    kind = DiskFull if error.errno == errno.ENOSPC else EnvironmentFault
    return kind(f"cannot {action} {path}: {reason}")


def free_space(path: Path) -> str:
    """What is free where a file or directory lies, or is to lie, such as `12.5 MB free`."""
    there = next((one for one in (path, *path.parents) if one.exists()), path)
    return f"{shutil.disk_usage(there).free / 1e6:.1f} MB free"


def make_directory(path: Path) -> None:
    """Creates a directory and its parents, and makes them survive a power cut."""
    try:
        missing = [one for one in (path, *path.parents) if not one.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for made in missing:
            sync_directory(made.parent)
    except OSError as error:
        raise fault("create", path, error) from error


def sync_directory(path: Path) -> None:
    """Makes renames inside a directory survive a power cut (a no-op on Windows, which has no such call)."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_file(path: Path, content: bytes) -> None:
    """Writes a new file and forces it to the disk; for files inside a directory that is itself staged."""
    try:
        with open(path, "wb", opener=_no_link) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise fault("write", path, error) from error


def _no_link(path: str, flags: int) -> int:
    """Opens a file of ours, and never what a link of its name points to."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def replace_file(path: Path, content: bytes) -> None:
    """Replaces a file's content in one step: afterwards it holds all of the old content or all of the new."""
    staged = path.with_name(path.name + PARTIAL)
    make_directory(path.parent)
    try:
        write_file(staged, content)
        os.replace(staged, path)
        sync_directory(path.parent)
    except OSError as error:
        raise fault("write", path, error) from error
    finally:
        with contextlib.suppress(OSError):
            staged.unlink()


def replace_json(path: Path, value: Any) -> None:
    """Like `replace_file`, for a JSON document."""
    replace_file(path, json_bytes(value))


def json_bytes(value: Any) -> bytes:
    """The one JSON spelling that tfm writes: UTF-8, two spaces, a final newline."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


_SEAL = "sha256_of_the_rest"


def sealed(value: dict[str, Any]) -> dict[str, Any]:
    """A JSON object with a hash of itself, by which `read_sealed` notices that it has changed."""
    return value | {_SEAL: sha256_bytes(json_bytes(value))}


def replace_sealed(path: Path, value: dict[str, Any]) -> None:
    """Like `replace_json`, for an object that `read_sealed` reads."""
    replace_json(path, sealed(value))


def read_sealed(path: Path) -> dict[str, Any]:
    """Reads an object that `sealed` made, without its hash. One that an earlier tfm wrote has none."""
    value = read_object(path)
    seal = value.pop(_SEAL, None)
    if seal is not None and seal != sha256_bytes(json_bytes(value)):
        raise ModelError(f"{path} is damaged: it is not what tfm wrote")
    return value


_OBEYED = re.compile("[\x7f-\x9f\u2028\u2029]")


def json_line(value: Any) -> str:
    """JSON for a line of its own. What terminals obey, and what some readers take for a line end, is escaped."""
    return _OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


@contextlib.contextmanager
def staged_directory(target: Path) -> Iterator[Path]:
    """Builds a directory aside, the one that it yields, and renames it into place when the block ends without an error.

    `target` is absent or complete at every moment, and replaced if it existed.
    """
    target = target.resolve()  # `.` has no name
    make_directory(target.parent)
    staged = target.with_name(target.name + PARTIAL)
    remove_tree(staged)
    try:
        staged.mkdir()
        yield staged
        for path in sorted(staged.rglob("*")):
            if path.is_file():
                _sync_file(path)
        sync_directory(staged)
        replaced = target.with_name(target.name + _REPLACED)
        if target.exists():
            os.replace(target, replaced)
        os.replace(staged, target)
        sync_directory(target.parent)
        remove_tree(replaced)
    except OSError as error:
        _put_back(target)
        raise fault("write", target, error) from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _put_back(target: Path) -> None:
    """Undoes the first of the two renames of `staged_directory`, where the second has not happened."""
    replaced = target.with_name(target.name + _REPLACED)
    if replaced.exists() and not target.exists():
        os.replace(replaced, target)


def _sync_file(path: Path) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def remove_tree(path: Path) -> None:
    """Removes a file or directory if it is there. A directory is renamed aside first, so that it goes in one step."""
    try:
        if path.is_dir() and not path.is_symlink():
            doomed = path.with_name(path.name.removesuffix(PARTIAL) + _REMOVED)
            shutil.rmtree(doomed, ignore_errors=True)
            os.replace(path, doomed)
            shutil.rmtree(doomed)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise fault("remove", path, error) from error


def remove_debris(directory: Path) -> None:
    """Removes what a killed process left unfinished directly inside a directory. Call it while holding the lock."""
    for path in directory.glob(f"*{_REPLACED}"):
        _put_back(path.with_name(path.name.removesuffix(_REPLACED)))
    for path in directory.glob(f"*{PARTIAL}"):
        remove_tree(path)


_MAX_LOG_BYTES = 1_000_000_000


class LineLog:
    """A text file that grows by whole lines and can be cut back (metrics.jsonl, timing.jsonl).

    An object that is not of the records that it can have, as `is_record` says, counts as damage.
    """

    def __init__(self, path: Path, is_record: Callable[[dict[str, Any]], bool] = lambda record: True) -> None:
        self.path, self._is_record = path, is_record

    def append(self, record: dict[str, Any]) -> None:
        """Adds one JSON object as one line."""
        try:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        except OSError as error:
            raise fault("write", self.path, error) from error

    def sync(self) -> None:
        """Makes what has been added outlast a power cut."""
        if self.path.exists():
            try:
                _sync_file(self.path)
                sync_directory(self.path.parent)  # it may be new
            except OSError as error:
                raise fault("write", self.path, error) from error

    def records(self) -> list[dict[str, Any]]:
        """The whole lines that parse; a line torn by a crash is left out."""
        return self._read()[0]

    def _read(self) -> tuple[list[dict[str, Any]], int]:
        """The lines that parse, and how many of the others a crash cannot have torn: all but the last one."""
        if not self.path.exists():
            return [], 0
        records: list[dict[str, Any]] = []
        *whole, torn = read_plain(self.path, _MAX_LOG_BYTES).split(b"\n")
        damaged = 0
        for line in whole:
            if record := self._record(line):
                records.append(record)
            elif line.strip():
                damaged += 1
        if record := self._record(torn):
            records.append(record)
        return records, damaged

    def _record(self, line: bytes) -> dict[str, Any] | None:
        """The record in a line; None if there is none."""
        with contextlib.suppress(ValueError, RecursionError):
            record = json.loads(line)
            return record if isinstance(record, dict) and self._is_record(record) else None
        return None

    def keep(self, wanted: Callable[[dict[str, Any]], bool]) -> int:
        """Drops every other record, so that a resumed run writes each once.

        Returns how many lines could not be read. The file as it was then lies beside it, as `.damaged`.
        """
        records, damaged = self._read()
        if self.path.exists():
            if damaged:
                replace_file(self.path.with_name(self.path.name + ".damaged"), read_plain(self.path, _MAX_LOG_BYTES))
            lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records if wanted(record)]
            replace_file(self.path, "".join(lines).encode())
        return damaged


class _NamedFile(io.FileIO):
    """A file whose errors name it. Python's say that a write failed, and not of which file."""

    def write(self, content: Any, /) -> int:
        try:
            return super().write(content)
        except OSError as error:
            error.filename = self.name
            raise


def _open_bytes(path: Path, mode: str = "w") -> IO[bytes]:
    if is_stream(path):
        mode = "a"  # what is in the file behind /dev/stdout stays
    return io.BufferedWriter(_NamedFile(str(path), mode))


def _open_text(path: Path, mode: str = "w") -> IO[str]:
    return io.TextIOWrapper(_open_bytes(path, mode), encoding="utf-8", newline="\n")


Stream = TypeVar("Stream", bound=IO[Any])

_BETWEEN_SAVES = 1.0
"""Seconds between two savings of a result that is not complete yet."""


class StagedFile(Generic[Stream]):
    """A result file (`--output`) that gets its name only when it is complete; until then it ends in `.partial`.

    `with` creates it, so that it is known before any work is done if this fails. If an error ends the block before
    anything was written, no file is left. A name that ends in `.gz` and the like gets a compressed file. A pipe or a
    device is written to directly.
    """

    stream: Stream

    def __init__(self, path: Path, open_: Callable[[Path], Stream]) -> None:
        self.path, self._open = path, open_
        self._direct = is_stream(path)
        self.staged = path if self._direct else path.parent / (path.name + PARTIAL)

    def __enter__(self) -> Stream:
        if not self._direct and self.path.exists() and not self.path.is_file():  # a rename would remove it
            what = "is a directory" if self.path.is_dir() else "is not a regular file"
            raise EnvironmentFault(f"cannot write {self.path}: it {what}; name a file")
        try:
            self.stream = self._open(self.staged)
        except OSError as error:
            raise fault("write", self.path, error) from error
        except BaseException:  # an interrupt, after the file was made
            self._remove_if_empty()
            raise
        return self.stream

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        try:
            with self.stream:
                self.stream.flush()
                if not self._direct:
                    os.fsync(self.stream.fileno())
            if kind is None:
                self._put_in_place()
            else:
                self._remove_if_empty()
        except OSError as failure:
            raise fault("write", self.path, failure) from failure
        if isinstance(error, OSError) and error.filename == str(self.staged):
            raise fault("write", self.path, error) from error

    def _put_in_place(self) -> None:
        """Renames the complete file into place; compresses it first if its name says so."""
        if self._direct:
            return
        compression = compression_of(self.path)
        if compression is None:
            os.replace(self.staged, self.path)
            return
        packed = self.path.parent / (self.path.name + _PACKED)
        try:
            with open(self.staged, "rb") as plain, _open_bytes(packed) as file, compression.write(file) as stream:
                shutil.copyfileobj(plain, stream)
            _sync_file(packed)
            os.replace(packed, self.path)
        finally:
            packed.unlink(missing_ok=True)
        self.staged.unlink()

    def _remove_if_empty(self) -> None:
        if not self._direct and self.staged.exists() and not self.staged.stat().st_size:
            self.staged.unlink()


class OutputFile(StagedFile[IO[str]]):
    """A result file of text."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _open_text)


class ResumedFile(StagedFile[IO[str]]):
    """A result file of lines that goes on where the same work was interrupted; other work begins anew.

    Beside the unfinished file lies another one that says of which work it is, and how much of it outlasts a power cut.
    `done` is the number of lines that were there when it was opened.
    """

    def __init__(self, path: Path, work: str) -> None:
        self._work, self._mark = work, path.parent / (path.name + _WORK)
        self._saved = time.monotonic()
        self.done = self._complete = 0

        def open_staged(staged: Path) -> IO[str]:
            safe = self._safe_bytes()
            if safe and staged.exists() and staged.stat().st_size >= safe:
                self.done = _keep_whole_lines(staged, safe)
                self._complete = staged.stat().st_size
            else:
                _open_bytes(staged).close()
                self._write_mark()  # before the first line: what other work left is never taken for this one's
            return _open_text(staged, "a")

        super().__init__(path, open_staged)

    def save(self) -> None:
        """Says that what has been written so far is complete. Now and then makes it outlast a power cut.

        An interrupt may come in the midst of a write, and have the same bytes written twice: what follows the last
        call does not count.
        """
        try:
            self.stream.flush()
            self._complete = os.fstat(self.stream.fileno()).st_size
            if time.monotonic() - self._saved < _BETWEEN_SAVES:
                return
            os.fsync(self.stream.fileno())
        except OSError as error:
            raise fault("write", self.path, error) from error
        self._write_mark()
        self._saved = time.monotonic()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *rest: object) -> None:
        super().__exit__(kind, error, *rest)
        if self.staged.exists():
            self._write_mark()
        else:
            remove_tree(self._mark)

    def _remove_if_empty(self) -> None:
        super()._remove_if_empty()
        if not self.staged.exists():
            remove_tree(self._mark)

    def _safe_bytes(self) -> int:
        """How much of the unfinished file is sure to be this work's."""
        try:
            mark = json.loads(self._mark.read_bytes())
            return mark["bytes"] if mark["work"] == self._work else 0
        except (OSError, ValueError, KeyError, TypeError):
            return 0

    def _write_mark(self) -> None:
        replace_json(self._mark, {"work": self._work, "bytes": self._complete})


def _keep_whole_lines(path: Path, safe_bytes: int) -> int:
    """Cuts off what follows the last line end among the first bytes of a file; returns the number of lines."""
    lines = size = 0
    with open(path, "rb+") as file:
        for line in file:
            if not line.endswith(b"\n") or size + len(line) > safe_bytes:
                break
            lines, size = lines + 1, size + len(line)
        file.truncate(size)
    return lines


class BinaryOutputFile(StagedFile[IO[bytes]]):
    """A result file of bytes."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _open_bytes)


class DirectoryLock:
    """Holds a run directory for one writer. The kernel frees the lock when the process dies, however it dies."""

    def __init__(self, directory: Path) -> None:
        make_directory(directory)
        self.directory, self.path = directory, directory / LOCK
        self._descriptor: int | None = None
        try:
            self._file = open(self.path, "a+b")  # noqa: SIM115
            if os.name != "nt":  # Windows moves no directory with an open file in it
                self._descriptor = os.open(directory, os.O_RDONLY)
        except OSError as error:
            raise fault("lock", directory, error) from error
        try:
            _lock(self._file)
        except OSError as error:
            self.__exit__()
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):  # a file system without locks, say
                raise fault("lock", directory, error) from error
            raise DirectoryInUse(
                f"{directory} is in use by another tfm process; wait for it or name another directory with --run"
            ) from error

    def __enter__(self) -> "DirectoryLock":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # nothing was written to it; and no other error is to be hidden
            self._file.close()
            if self._descriptor is not None:
                os.close(self._descriptor)

    def whereabouts(self) -> Path | None:
        """Where the directory is now; None if it is not under its name, and the system does not tell a new one."""
        if self._descriptor is None:
            return self.directory
        held = os.fstat(self._descriptor)
        with contextlib.suppress(OSError):
            if os.path.samestat(self.directory.stat(), held):
                return self.directory
        with contextlib.suppress(OSError):
            moved = Path(f"/proc/self/fd/{self._descriptor}").readlink()
            if os.path.samestat(moved.stat(), held):
                return moved
        return None


if os.name == "nt":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # pyright: ignore[reportAttributeAccessIssue]
else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def sha256_file(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_bytes(content: bytes) -> str:
    """SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()
