"""Errors that a user can cause or mend, each with the exit code the command line gives it.

    TfmError
    ├── UsageError          2    wrong flag, wrong configuration
    ├── DataError           3    text that cannot be used
    ├── ModelError          4    a model or checkpoint that cannot be trusted or does not fit
    ├── EnvironmentFault    5    disk, permission, memory, a missing extra; DirectoryInUse, a busy run directory;
    │                            DiskFull; OutOfMemory
    ├── TrainingDiverged    6    loss or gradient no longer finite
    └── ClosedPipe        141    whoever read our output has stopped reading; says nothing

    Interrupted   129/130/143    a closed terminal, Ctrl-C or SIGTERM, after saving; InterruptedAtOnce, without

A message is one sentence or two: what, where, and the fix. Anything else that is raised is a bug in tfm (exit code 1).
"""

import signal
from pathlib import Path


class TfmError(Exception):
    """Base of all errors that tfm reports in one line."""

    exit_code = 1


class UsageError(TfmError):
    """A flag or a configuration value that cannot be used."""

    exit_code = 2


class DataError(TfmError):
    """Input text that is missing, damaged or misaligned."""

    exit_code = 3


class MissingFile(DataError):
    """A file of text that is not there."""

    def __init__(self, path: Path, hint: str) -> None:
        super().__init__(f"cannot read {path}: no such file{hint}")
        self.path = path


class ModelError(TfmError):
    """A run, checkpoint or tokenizer that is damaged, foreign or does not fit."""

    exit_code = 4


class EnvironmentFault(TfmError):
    """The machine refuses: no space, no permission, no memory, directory in use."""

    exit_code = 5


class DiskFull(EnvironmentFault):
    """There is no space left."""


class DirectoryInUse(EnvironmentFault):
    """Another process holds a run directory."""


class OutOfMemory(EnvironmentFault):
    """Memory is not enough, however little is done at a time."""


class TrainingDiverged(TfmError):
    """Loss or gradients stopped being finite numbers."""

    exit_code = 6


class Interrupted(BaseException):
    """SIGINT, SIGTERM or SIGHUP arrived; whatever had to be saved has been saved, or the message says what is not.

    No `Exception`, as KeyboardInterrupt is none: a signal can arrive anywhere, and libraries go on after an exception
    that they did not expect.
    """

    def __init__(self, message: str, signal_number: int = signal.SIGINT) -> None:
        super().__init__(message)
        self.signal_number = int(signal_number)
        self.exit_code = 128 + self.signal_number


class InterruptedAtOnce(Interrupted):
    """A second signal: wherever training was, in the middle of an update or a validation, it is left there."""


class ClosedPipe(TfmError):
    """The reader of standard output has gone: `tfm translate .. | head -1`."""

    exit_code = 141


def check_type(value: object, name: str, *types: type) -> None:
    """Refuses an argument of a Python program that is of none of these types; True and False are no numbers.

    Raises:
        TypeError: It names the argument, what it has to be, and what came.
    """
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        expected = " or ".join("None" if one is type(None) else one.__name__ for one in types)
        raise TypeError(f"{name} must be {expected}, but is {value!r:.60}")
