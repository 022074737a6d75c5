"""Runs the `tfm` command, and turns errors into one line and an exit code.

Exit codes: 0 ok, 1 bug in tfm, 2 usage or configuration, 3 bad input data, 4 bad or untrusted model, 5 environment
(disk, memory, permission), 6 training diverged, 129/130/143 interrupted after saving, 141 closed pipe.
"""

import re
import shlex
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from ..seq2seq.out_of_memory import is_out_of_memory
from ..system.errors import EnvironmentFault, Interrupted, TfmError, UsageError
from ..system.interrupts import Interrupts
from ..system.reporter import painted, visible
from .app import app
from .startup import discard_stdout, leave_at_once, leave_garbage, set_up_libraries, set_up_streams

EXIT_BUG = 1


def main() -> NoReturn:
    """Runs the command line."""
    debug = "--debug" in sys.argv
    set_up_streams()
    set_up_libraries()
    try:
        with Interrupts():
            code = _run()
    except BaseException as error:
        if debug and not isinstance(error, SystemExit):
            import traceback

            traceback.print_exc()
        code = report(error)
        if is_out_of_memory(error):
            leave_at_once(code)
    discard_stdout()
    leave_garbage()
    sys.exit(code)


def _run() -> int:
    """Runs a command. Its output is flushed before it ends, so that a closed pipe or a full disk is met here."""
    try:
        result = app(standalone_mode=False)
    except Interrupted:
        discard_stdout()  # a pipe that is full would hold us up
        raise
    finally:
        sys.stdout.flush()
    return result if isinstance(result, int) else 0


def report(error: BaseException) -> int:
    """Prints one line about an error, on stderr; returns the exit code."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else EXIT_BUG
    if isinstance(error, Interrupted):  # what somebody has asked for is no error
        print(visible(f"tfm: {error}"), file=sys.stderr)
        return error.exit_code
    if isinstance(error, TfmError):
        if str(error):
            _print_error(str(error) + _command_with(getattr(error, "flags", [])))
        return error.exit_code
    if hasattr(error, "format_message"):  # one of click's usage errors
        _print_error(_usage_message(error))
        return UsageError.exit_code
    if is_out_of_memory(error):
        _print_error(
            "not enough memory: end other programs; a smaller --beam-size needs less; for tfm train --set"
            " training.ranks=1, or in a new --run a smaller model or training.max_tokens_per_batch"
        )
        return EnvironmentFault.exit_code
    if isinstance(error, OSError):
        _print_error(f"{error.filename or 'input/output'}: {error.strerror or error}")
        return EnvironmentFault.exit_code
    if (interrupt := _interrupt_before(error)) is not None:
        return report(interrupt)
    _print_error(f"this is a bug in tfm: {type(error).__name__}: {error} (run again with --debug for a traceback)")
    return EXIT_BUG


def _command_with(flags: list[str]) -> str:
    """The command as it was given, to be copied, with these flags in place of its own of the same names."""
    if not flags:
        return ""
    words = sys.argv[1:]
    for name in flags[::2]:
        while name in words[:-1]:
            place = words.index(name)
            del words[place : place + 2]
    words = [word for word in words if word.partition("=")[0] not in flags[::2]]
    return f", such as: {shlex.join(['tfm', *words[:1], *flags, *words[1:]])}"


def _interrupt_before(error: BaseException) -> Interrupted | None:
    """The interrupt that caused an error: an import that was cut short can fail in any way."""
    before = error.__cause__ or error.__context__
    return before if before is None or isinstance(before, Interrupted) else _interrupt_before(before)


def _usage_message(error: Any) -> str:
    context = getattr(error, "ctx", None)
    message = str(error.format_message()).strip().replace("\n", " ")
    if context is None:
        return message
    return (
        f"{_habit(error, context) or _run_as_argument(message, context) or message} See {context.command_path} --help."
    )


def _habit(error: Any, context: Any) -> str:
    """What to type instead of an option of another tool."""
    option = getattr(error, "option_name", None) or ""
    if type(error).__name__ != "NoSuchOption" or not option.startswith("--"):
        return ""
    from .habits import meant

    near = get_close_matches(option, getattr(error, "possibilities", None) or [], n=1, cutoff=0.85)
    words = "" if near else meant(option, context.info_name)
    return f"{context.command_path} has no option {option}; instead: {words}." if words else ""


def _run_as_argument(message: str, context: Any) -> str:
    """What to type instead of a run without `--run`."""
    extra = re.search(r"unexpected extra arguments?(?:\(s\))? \((\S+)\)", message)
    takes_runs = any("--run" in option.opts for option in context.command.params)
    if not (extra and takes_runs and Path(extra[1]).is_dir()) or any(one.startswith("--run") for one in sys.argv):
        return ""
    return f"{context.command_path} takes a run as an option: --run {extra[1]}."


def _print_error(message: str) -> None:
    for line in message.splitlines() or [""]:
        print(painted("tfm: error:", "red", sys.stderr), visible(line), file=sys.stderr)
