"""Follows a process from system call to system call, and kills it before one of them. Linux alone."""

import ctypes
import os
import platform
import signal
import sys
import traceback
from collections.abc import Callable

_RENAMES = {"x86_64": {82, 264, 316}, "aarch64": {38, 276}}.get(platform.machine(), set[int]())
"""Numbers of the system calls that rename a file."""
_TRACEME, _SYSCALL, _SETOPTIONS, _GET_SYSCALL_INFO = 0, 24, 0x4200, 0x420E
_TRACESYSGOOD, _EXITKILL = 1, 1 << 20
_SYSCALL_STOP = signal.SIGTRAP | 0x80
_ENTRY = 1


class _SyscallInfo(ctypes.Structure):
    """The beginning of struct ptrace_syscall_info, and room for the rest."""

    _fields_ = (
        ("op", ctypes.c_uint8),
        ("pad", ctypes.c_uint8 * 3),
        ("arch", ctypes.c_uint32),
        ("instruction_pointer", ctypes.c_uint64),
        ("stack_pointer", ctypes.c_uint64),
        ("number", ctypes.c_uint64),
        ("rest", ctypes.c_uint64 * 8),
    )


def why_not() -> str:
    """Why processes cannot be followed on this machine; empty if they can."""
    if sys.platform != "linux":
        return "ptrace is Linux's"
    try:
        follow(lambda: None)
    except OSError as error:
        return f"this machine refuses ptrace: {error.strerror}"
    return ""


def follow(work: Callable[[], None], kill_before: int = 0) -> list[int]:
    """Does something in a forked process and follows its system calls.

    Args:
        work: What it does.
        kill_before: The number of the system call before which it is killed, from 1; 0 lets it come to its end.

    Returns:
        The system calls that it made, by their numbers in the kernel; those that follow the work left out.

    Raises:
        OSError: The machine does not let a process be followed.
        RuntimeError: The work failed.
    """
    child = os.fork()
    if not child:
        _be_followed(work)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        raise OSError(os.WEXITSTATUS(status), os.strerror(os.WEXITSTATUS(status)))
    _ptrace(_SETOPTIONS, child, 0, _TRACESYSGOOD | _EXITKILL)
    calls = list[int]()
    passed_on = 0
    while True:
        _ptrace(_SYSCALL, child, 0, passed_on)
        _, status = os.waitpid(child, 0)
        if not os.WIFSTOPPED(status):
            break
        stop = os.WSTOPSIG(status)
        passed_on = 0 if stop == _SYSCALL_STOP else stop
        if stop == _SYSCALL_STOP and (number := _entered(child)) is not None:
            if len(calls) + 1 == kill_before:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return calls
            calls.append(number)
    if status:
        raise RuntimeError(f"the work ended with status {status}")
    return calls[:-1]  # the last one ends the process


def telling(calls: list[int]) -> list[int]:
    """Of the calls of a work those before which a kill tells most: the renames, and what is around them."""
    renames = [call for call, number in enumerate(calls, 1) if number in _RENAMES]
    return sorted({len(calls) // 3, *renames, *(call + 1 for call in renames), len(calls) - 5})


def _be_followed(work: Callable[[], None]) -> None:
    """In the forked process: lets its parent follow it, works, and ends."""
    try:
        _ptrace(_TRACEME, 0, 0, 0)
    except OSError as error:
        os._exit(error.errno or 1)
    code = 1
    try:
        os.kill(os.getpid(), signal.SIGSTOP)
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _entered(child: int) -> int | None:
    """The system call that a stopped process is about to make; None if it has just made one."""
    info = _SyscallInfo()
    _ptrace(_GET_SYSCALL_INFO, child, ctypes.sizeof(info), ctypes.addressof(info))
    return info.number if info.op == _ENTRY else None


def _ptrace(request: int, process: int, address: int, data: int) -> None:
    function = ctypes.CDLL(None, use_errno=True).ptrace
    function.restype = ctypes.c_long
    function.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    if function(request, process, address, data) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
