"""Runs `tfm` thousands of times: a server imports everything once, and forks a process for each command.

Such a command differs from a typed one in three things: its imports are done, it ends without freeing what they made,
and a training draws no learning curve, which would take a fifth of its time. It has one thread.
It dies with the server.
"""

import atexit
import contextlib
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NoReturn

from helpers.command import TFM

TESTS = Path(__file__).parent.parent
_POLL = 0.001
"""Seconds between two looks at whether a process has ended."""


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes:
        code: Its exit code, or the negative number of the signal that killed it.
        stdout, stderr: What it wrote; empty where that went to a file that the test named.
        seconds: How long it took.
    """

    code: int
    stdout: bytes
    stderr: bytes
    seconds: float

    @property
    def said(self) -> str:
        """Its stderr as text."""
        return self.stderr.decode(errors="replace")


class Job:
    """A process under way.

    Args:
        server: Its parent.
        pid: Its number; it leads a process group of this number.
        folder: Where what it writes is kept.
    """

    def __init__(self, server: "ForkServer", pid: int, folder: Path) -> None:
        self.pid, self._server, self._folder = pid, server, folder
        self._began = time.monotonic()
        self._status: int | None = None

    def kill(self, number: int = signal.SIGKILL, *, alone: bool = False) -> None:
        """Sends a signal to it and to its children, or to it alone. Nothing happens if it is known to have ended."""
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                (os.kill if alone else os.killpg)(self.pid, number)

    def wait(self, seconds: float = 120) -> Ended:
        """Waits until it ends.

        Raises:
            TimeoutError: It had not after so many seconds, and has been killed.
        """
        status = self.ended(seconds)
        if status is None:
            self.kill()
            self.ended(10)
            raise TimeoutError(f"still running after {seconds} s: {self._read('stderr').decode(errors='replace')}")
        ended = Ended(status, self._read("stdout"), self._read("stderr"), time.monotonic() - self._began)
        shutil.rmtree(self._folder, ignore_errors=True)
        return ended

    def ended(self, seconds: float = 0) -> int | None:
        """Its exit code, or minus the signal that killed it; None if it has not ended within so many seconds."""
        if self._status is None:
            self._status = self._server.ask({"wait": self.pid, "seconds": seconds})["status"]
        return self._status

    def _read(self, name: str) -> bytes:
        path = self._folder / name
        return path.read_bytes() if path.exists() else b""


class ForkServer:
    """Starts processes that have imported everything.

    Args:
        folder: For what they write.
        packages: A folder with another `tfm`, which is imported in place of the installed one.
    """

    def __init__(self, folder: Path, packages: Path | None = None) -> None:
        self._folder = folder
        path = os.pathsep.join(map(str, filter(None, (packages, TESTS))))
        settings = {"OMP_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false", "PYTHONPATH": path}
        environment = {**os.environ, **settings}
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, "-P", "-m", "helpers.forkserver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )

    def __enter__(self) -> "ForkServer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """One request to the server, and its answer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def call(
        self,
        function: str,
        *arguments: object,
        cwd: Path,
        stdin: bytes | str | None = b"",
        stdout: str | None = "",
        stderr: str | None = "",
        env: Mapping[str, str] | None = None,
        limits: Mapping[str, int] | None = None,
        before: str = "",
        told: object = None,
    ) -> Job:
        """Calls a function in a process of its own.

        Args:
            function: `module:name`.
            arguments: What JSON can carry.
            cwd: Where it runs.
            stdin: Bytes, or the name of a file; None closes it.
            stdout, stderr: The name of a file; empty keeps what is written for `Ended`; None closes it.
            env: Added to the environment.
            limits: Names of `resource`, such as RLIMIT_FSIZE, and their values.
            before: `module:name` of a function that is called first, with `told`: it arranges a fault.
            told: What JSON can carry.
        """
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        if isinstance(stdin, bytes):
            (folder / "stdin").write_bytes(stdin)
            stdin = str(folder / "stdin")
        names = [stdin, *(str(folder / n) if s == "" else s for n, s in (("stdout", stdout), ("stderr", stderr)))]
        answer = self.ask(
            {
                "function": function,
                "arguments": arguments,
                "cwd": str(cwd),
                "streams": names,
                "env": dict(env or {}),
                "limits": dict(limits or {}),
                "before": before,
                "told": told,
            }
        )
        return Job(self, answer["pid"], folder)

    def start(self, *arguments: object, cwd: Path, **options: Any) -> Job:
        """Starts `tfm` with these arguments; for the options see `call`."""
        return self.call("helpers.forkserver:tfm", *map(str, arguments), cwd=cwd, **options)

    def run(self, *arguments: object, cwd: Path, seconds: float = 120, **options: Any) -> Ended:
        """Runs `tfm` to its end."""
        return self.start(*arguments, cwd=cwd, **options).wait(seconds)


def tfm(*arguments: str) -> None:
    """The console script."""
    from tfm.cli.__main__ import main

    sys.argv = ["tfm", *arguments]
    sys.modules["__main__"].__package__ = ""  # or the usage would name this module
    main()


def installed(*arguments: str) -> None:
    """The console script as a program of its own, which imports everything anew."""
    os.execv(TFM, [str(TFM), *arguments])


def without_privileges(_: object = None) -> None:
    """Gives up what root may do with files that are not open to him. To be called before a command."""
    import ctypes

    libc = ctypes.CDLL(None)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH in <linux/capability.h>
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP: another program does not get it back
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    libc.capget(header, sets)
    for number in range(3):
        sets[number] &= ~0b110
    libc.capset(header, sets)


def without_reader(_: object = None) -> None:
    """Makes standard output a pipe that nobody reads any more. To be called before a command."""
    reading, writing = os.pipe()
    os.dup2(writing, 1)
    os.close(writing)
    os.close(reading)


def with_temporary_folder(folder: str) -> None:
    """Has temporary files made there. To be called before a command."""
    tempfile.tempdir = folder


def _named(function: str) -> Callable[..., None]:
    module, name = function.split(":")
    return getattr(import_module(module), name)


def _become(request: dict[str, Any]) -> None:
    """Makes the forked process what was asked for."""
    import resource

    from tfm.data.sentencepiece_worker import end_with_parent

    os.setsid()
    end_with_parent()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, (stream, mode) in enumerate(zip(request["streams"], ("r", "w", "w"), strict=True)):
        if stream is None:
            os.close(number)
        else:
            opened = os.open(stream, os.O_RDONLY if mode == "r" else os.O_WRONLY | os.O_CREAT, 0o666)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
    os.environ.update(request["env"])
    sys.stdin, sys.stdout, sys.stderr = (_opened(n, m) for n, m in enumerate(("r", "w", "w")))
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    os.chdir(request["cwd"])
    for name, value in request["limits"].items():
        resource.setrlimit(getattr(resource, name), (value, value))


def _opened(number: int, mode: str) -> Any:
    """A standard stream as Python opens it at its start; None if it is closed."""
    try:
        os.fstat(number)
    except OSError:
        return None
    encoding = os.environ.get("PYTHONIOENCODING", "utf-8")
    return open(number, mode, encoding=encoding, errors="backslashreplace" if number == 2 else None, closefd=False)


def _serve(requests: IO[bytes], answers: int) -> None:
    """Answers until the requests end."""
    while line := requests.readline():
        request = json.loads(line)
        if "wait" in request:
            answer: dict[str, Any] = {"status": _status(request["wait"], request["seconds"])}
        else:
            pid = os.fork()
            if not pid:
                os.close(answers)
                _become(request)
                if request["before"]:
                    _named(request["before"])(request["told"])
                _call(request)
            answer = {"pid": pid}
        os.write(answers, json.dumps(answer).encode() + b"\n")


def _call(request: dict[str, Any]) -> NoReturn:
    """Calls the function and ends the process as Python does, but leaves the modules as they are.

    To clear them away would copy all their pages into this process first, which takes longer than most commands.
    """
    code: Any = 0
    try:
        _named(request["function"])(*request["arguments"])
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except OSError:
        code = 120
    os._exit(code)


def _status(pid: int, seconds: float) -> int | None:
    """How a child ended; None if it has not yet."""
    last = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= last:
            return None
        time.sleep(_POLL)


def _main() -> None:
    from tfm.cli.app import COMMANDS
    from tfm.cli.startup import set_up_libraries

    set_up_libraries()
    for module in (
        "matplotlib.backends.backend_agg",
        "matplotlib.figure",
        "pandas",  # which pyarrow imports
        "pydantic.dataclasses",
        "ruamel.yaml",
        "sacrebleu.tokenizers.tokenizer_13a",
        "tfm.system.reporter",
        "tfm.cli.__main__",
        "tfm.cli.lines",
        "tfm.cli.main",
        *(f"tfm.cli.{command}" for command in COMMANDS),
        "tfm.engine.choose",
        "tfm.configs.loader",
        "tfm.data.store",
        "tfm.seq2seq.decoding",
        "tfm.engine.runs.log",
        "tfm.engine.training.train",
        "tqdm",
    ):
        import_module(module)
    log: Any = import_module("tfm.engine.runs.log")
    log.picture = lambda drawn: b"a picture"
    gc.collect()
    gc.freeze()  # a search for garbage would copy all pages into each forked process
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        sys.exit("the fork server has threads: a forked process could wait for one of them for ever")
    answers = os.dup(1)
    requests = open(os.dup(0), "rb")  # noqa: SIM115
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(0, 1)
    _serve(requests, answers)


if __name__ == "__main__":
    _main()
