"""What a process does to files, seen by the kernel: written to a log, or refused. Linux on x86-64 alone.

`watch` is a `before` function of the fork server. It has the kernel ask another process (seccomp, "user notification")
before each call that changes a file. So nothing is missed: neither Arrow's writer, which is C++, nor a child process.
"""

import base64
import contextlib
import ctypes
import errno
import fcntl
import json
import os
import platform
import select
import socket
import stat
import struct
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

_CALLS = {
    1: "write", 2: "open", 3: "close", 18: "pwrite", 20: "writev", 74: "fsync", 75: "fsync", 76: "truncate",
    77: "ftruncate", 82: "rename", 83: "mkdir", 84: "rmdir", 85: "open", 87: "unlink", 257: "open", 258: "mkdir",
    263: "unlink", 264: "rename", 316: "rename",
}  # fmt: skip
"""The calls that are watched, by their numbers on x86-64."""
_OPEN, _CREAT, _OPENAT = 2, 85, 257
_AT = {257, 258, 263, 264, 316}
"""Those whose names count from a directory that is given."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
"""ioctl numbers of <linux/seccomp.h>."""
_NOTIFICATION, _RESPONSE = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI")
_CONTINUE = 1
_MARK = ".mark-"


@dataclass(frozen=True)
class Call:
    """One call, before it is made.

    Attributes:
        kind: `open`, `write`, `fsync`, `rename`, `unlink`, `rmdir`, `mkdir`, `truncate`, `close` or `mark`.
        path: Its file, or what a mark says.
        to: The new name, of a rename.
        offset: Of a write; the new size, of a truncation; the flags, of an open.
        data: What is written, in base64.
    """

    kind: str
    path: str
    to: str = ""
    offset: int = 0
    data: str = ""

    @property
    def content(self) -> bytes:
        """What is written."""
        return base64.b64decode(self.data)


def can_watch() -> bool:
    """Whether this system lets one process watch another."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return False
    actions = Path("/proc/sys/kernel/seccomp/actions_avail")
    return actions.exists() and "user_notif" in actions.read_text().split()


def mark(folder: Path, text: str) -> None:
    """Leaves a mark in the log of a process that is watched; nothing else happens."""
    with contextlib.suppress(FileNotFoundError):
        (folder / (_MARK + text)).rmdir()


def read_log(path: Path) -> list[Call]:
    """The calls of a log."""
    return [Call(**json.loads(line)) for line in path.read_text().splitlines()]


def watch(told: dict[str, Any]) -> None:
    """Has every call of this process and its children watched.

    Args:
        told: `roots`, the folders in which calls count, the first of them for temporary files; `log`, a file for the
            calls, with what is written if `data` is true; and `fault`, if one of the calls is to fail: `kind`, `nth`,
            `error` (a name of `errno`, or `short` for a write of half) and `for_ever`, if all that follow fail, too.
    """
    os.environ["TMPDIR"] = tempfile.tempdir = told["roots"][0]
    ours, theirs = socket.socketpair()
    if not os.fork():
        ours.close()
        try:
            listener = socket.recv_fds(theirs, 1, 1)[1][0]
            _Supervisor(listener, told).serve()
        finally:
            os._exit(0)
    theirs.close()
    with ours:
        socket.send_fds(ours, [b"x"], [_install_filter()])


def _install_filter() -> int:
    """Asks the kernel to notify of the calls of this process from now on; returns what notifications are read from."""
    libc = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    libc.prctl(0x59616D61, ctypes.c_ulong(2**64 - 1), zero, zero, zero)  # PR_SET_PTRACER: it may be looked at
    libc.prctl(38, ctypes.c_ulong(1), zero, zero, zero)  # PR_SET_NO_NEW_PRIVS
    program = b"".join(struct.pack("=HBBI", *instruction) for instruction in _filter())
    content = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HQ", len(program) // 8, ctypes.addressof(content))
    listener = libc.syscall(317, ctypes.c_ulong(1), ctypes.c_ulong(1 << 3), header)  # SECCOMP_SET_MODE_FILTER
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return listener


def _filter() -> Iterator[tuple[int, int, int, int]]:
    """The program that the kernel runs at each call: code, jump if true, jump if false, constant."""
    load, equal, any_bit, answer = 0x20, 0x15, 0x45, 0x06
    allow, notify = 0x7FFF0000, 0x7FC00000
    yield load, 0, 0, 4
    yield equal, 1, 0, 0xC000003E  # x86-64
    yield answer, 0, 0, allow
    yield load, 0, 0, 0
    for number, flags_at in ((_OPEN, 24), (_OPENAT, 32)):
        yield equal, 0, 4, number
        yield load, 0, 0, flags_at
        yield any_bit, 0, 1, _WRITING
        yield answer, 0, 0, notify
        yield answer, 0, 0, allow
    for number in sorted(_CALLS.keys() - {_OPEN, _OPENAT}):
        yield equal, 0, 1, number
        yield answer, 0, 0, notify
    yield answer, 0, 0, allow


class _Supervisor:
    """Answers the kernel's questions.

    Args:
        listener: Where they are read from.
        told: See `watch`.
    """

    def __init__(self, listener: int, told: dict[str, Any]) -> None:
        self._listener, self._roots = listener, tuple(root.rstrip("/") + "/" for root in told["roots"])
        self._log: IO[str] = open(told["log"], "a", buffering=1)  # noqa: SIM115
        self._with_data, self._fault, self._met = told.get("data", False), told.get("fault") or {}, 0

    def serve(self) -> None:
        """Answers until the last process that is watched has ended."""
        ready = select.poll()
        ready.register(self._listener, select.POLLIN)
        while True:
            if not any(event & select.POLLIN for _, event in ready.poll()):
                return
            question = bytearray(_NOTIFICATION.size)
            try:
                fcntl.ioctl(self._listener, _RECEIVE, question)
                number, pid, _, call, _, _, *arguments = _NOTIFICATION.unpack(question)
                value, error, flags = self._answer(pid, call, arguments)
                fcntl.ioctl(self._listener, _SEND, _RESPONSE.pack(number, value, -error, flags))
            except OSError as failure:
                if failure.errno != errno.ENOENT:  # it was killed meanwhile
                    raise

    def _answer(self, pid: int, number: int, arguments: list[int]) -> tuple[int, int, int]:
        """What a call returns, or its error; or that it goes on."""
        call = _describe(pid, number, arguments, self._with_data)
        if call is None or not f"{call.path}/".startswith(self._roots):
            return 0, 0, _CONTINUE
        failing = self._is_due(call)
        if Path(call.path).name.startswith(_MARK):
            call = Call("mark", Path(call.path).name.removeprefix(_MARK))
        self._log.write(json.dumps(asdict(call) | ({"kind": f"failed {call.kind}"} if failing else {})) + "\n")
        if not failing:
            return 0, 0, _CONTINUE
        if self._fault["error"] == "short":
            written = _write_half(pid, number, arguments)
            return (written, 0, 0) if written else (0, 0, _CONTINUE)
        return 0, getattr(errno, self._fault["error"]), 0

    def _is_due(self, call: Call) -> bool:
        """Whether the call is to fail."""
        if self._fault.get("kind") != call.kind:
            return False
        self._met += 1
        return self._met == self._fault["nth"] or (self._fault["for_ever"] and self._met > self._fault["nth"])


def _describe(pid: int, number: int, arguments: list[int], with_data: bool) -> Call | None:
    """A call in words; None if it is none of a file that has a name."""
    kind = _CALLS[number]
    try:
        match kind:
            case "write" | "pwrite" | "writev":
                path, offset = _link(f"/proc/{pid}/fd/{arguments[0]}"), arguments[3]
                if kind != "pwrite":
                    offset = _fdinfo(pid, arguments[0])["pos"]
                data = base64.b64encode(_written(pid, kind, arguments)).decode() if with_data else ""
                return Call("write", path, offset=offset, data=data)
            case "fsync" | "ftruncate":
                path = _link(f"/proc/{pid}/fd/{arguments[0]}")
                return Call(kind.removeprefix("f") if kind == "ftruncate" else kind, path, offset=arguments[1])
            case "close":
                path = _link(f"/proc/{pid}/fd/{arguments[0]}")
                is_written = path.startswith("/") and _fdinfo(pid, arguments[0])["flags"] & 3
                return Call("close", path) if is_written else None
            case _:
                return _describe_names(pid, number, kind, arguments)
    except OSError:  # a bad descriptor, say: the call will fail by itself
        return None


def _describe_names(pid: int, number: int, kind: str, arguments: list[int]) -> Call:
    """A call that names files."""
    if number not in _AT:
        path, rest = _name(pid, None, arguments[0]), arguments[1:]
    else:
        path, rest = _name(pid, arguments[0], arguments[1]), arguments[2:]
    if kind == "rename":
        to = _name(pid, None, rest[0]) if number not in _AT else _name(pid, rest[0], rest[1])
        return Call("rename", path, to)
    if kind == "unlink" and number in _AT and rest[0] & 0x200:  # AT_REMOVEDIR
        return Call("rmdir", path)
    flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC if number == _CREAT else rest[0]
    return Call(kind, path, offset=flags if kind in ("open", "truncate") else 0)


def _name(pid: int, directory: int | None, address: int) -> str:
    """The name that a process has written down somewhere, made absolute."""
    name = os.fsdecode(_memory(pid, address, 4096).split(b"\0")[0])
    if name.startswith("/"):
        return os.path.normpath(name)
    at_cwd = directory is None or directory & 0xFFFFFFFF == 0xFFFFFF9C  # AT_FDCWD
    return os.path.normpath(f"{_link(f'/proc/{pid}/cwd' if at_cwd else f'/proc/{pid}/fd/{directory}')}/{name}")


def _link(path: str) -> str:
    """What a link of /proc leads to."""
    return str(Path(path).readlink())


def _memory(pid: int, address: int, size: int) -> bytes:
    """Some memory of a process; less where no more is there."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        return os.pread(memory.fileno(), size, address)


def _written(pid: int, kind: str, arguments: list[int]) -> bytes:
    """What a call writes."""
    if kind != "writev":
        return _memory(pid, arguments[1], arguments[2])
    parts = struct.iter_unpack("=QQ", _memory(pid, arguments[1], 16 * arguments[2]))
    return b"".join(_memory(pid, address, size) for address, size in parts if size)


def _fdinfo(pid: int, number: int) -> dict[str, int]:
    """Position and flags of an open file."""
    lines = Path(f"/proc/{pid}/fdinfo/{number}").read_text().splitlines()[:2]
    pairs = dict(line.split(":") for line in lines)
    return {"pos": int(pairs["pos"]), "flags": int(pairs["flags"], 8)}


def _write_half(pid: int, number: int, arguments: list[int]) -> int:
    """Writes the first half of what a call was to write, in its place; returns how many bytes, 0 if it has only one."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    leader = next(int(line.split()[1]) for line in lines if line.startswith("Tgid:"))
    data = _written(pid, _CALLS[number], arguments)
    data = data[: len(data) // 2]
    process = os.pidfd_open(leader)
    file: int = ctypes.CDLL(None).syscall(438, process, ctypes.c_int(arguments[0] & 0x7FFFFFFF), 0)  # pidfd_getfd
    try:
        is_file = file >= 0 and stat.S_ISREG(os.fstat(file).st_mode)
        if not data or not is_file:
            return 0
        return os.pwrite(file, data, arguments[3]) if _CALLS[number] == "pwrite" else os.write(file, data)
    finally:
        for descriptor in (process, file):
            if descriptor >= 0:
                os.close(descriptor)
