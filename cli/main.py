"""Assembles the `tfm` command and turns errors into one line and an exit code.

Exit codes: 0 ok, 1 bug in tfm, 2 usage or configuration, 3 bad input data, 4 bad or untrusted model, 5 environment
(disk, memory, permission), 6 training diverged, 130/143 interrupted after saving, 141 closed pipe.

Only typer is imported here: `tfm --help` must not wait for torch.
"""

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NoReturn

import typer

from ..data.errors import ClosedPipe, Interrupted, TfmError
from .check import check
from .data import data
from .embed import embed
from .evaluate import evaluate
from .explain import explain
from .export import export
from .generate import generate
from .info import info
from .libraries import leave_garbage, set_up_libraries
from .presets import presets
from .tokenize import tokenize
from .train import train
from .translate import translate

EXIT_BUG, EXIT_USAGE, EXIT_ENVIRONMENT, EXIT_INTERRUPTED = 1, 2, 5, 130

app = typer.Typer(
    help="Train your own Transformer from text files: a translator, a language model, a sentence encoder.",
    epilog="Begin with `tfm train`: without any option it trains a built-in toy language in about two minutes.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@contextlib.contextmanager
def _flushed() -> Iterator[None]:
    """Flushes the output at the end of the block, so that a closed pipe or a full disk is met here."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError as error:
        _discard_stdout()
        raise ClosedPipe from error
    except OSError:
        _discard_stdout()
        raise


def _flushing(command: Callable[..., None]) -> Callable[..., None]:
    """The command, its output flushed before it returns: typer has an answer of its own to a closed pipe."""

    @functools.wraps(command)
    def run(**options: Any) -> None:
        try:
            with _flushed():
                command(**options)
        except KeyboardInterrupt as error:  # typer would say nothing
            raise Interrupted("interrupted") from error

    return run


def _discard_stdout() -> None:
    """Python flushes stdout once more when it exits; lets that go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


for command in (data, tokenize, train, translate, generate, embed, evaluate, check, explain, info, export, presets):
    app.command()(_flushing(command))


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        print(f"tfm {metadata.version('tfm')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Train your own Transformer translator from two text files, and translate with it."""
    del version
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(EXIT_USAGE)


def main() -> NoReturn:
    """Runs the command line; the console script `tfm`."""
    debug = "--debug" in sys.argv
    _open_what_is_closed()
    _write_utf8()
    set_up_libraries()
    try:
        code = _run()
    except BaseException as error:
        if debug and not isinstance(error, SystemExit | KeyboardInterrupt):
            import traceback

            traceback.print_exc()
        code = report(error)
    leave_garbage()
    sys.exit(code)


def _open_what_is_closed() -> None:
    """Opens the null device in place of standard streams that were closed (`tfm .. >&-`)."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # so that no other file takes the number of a standard stream
    os.close(number)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _write_utf8() -> None:
    """Makes pipes and files UTF-8 with `\\n` on every system; a terminal keeps its encoding, with `?` for the rest.

    Windows, and PYTHONIOENCODING, can choose an encoding that most of the world's letters are not in.
    """
    stdout: Any = sys.stdout
    if stdout.isatty():
        stdout.reconfigure(errors="replace")
    else:
        stdout.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")


def _run() -> int:
    with _flushed():  # --help and --version are no commands
        result = app(standalone_mode=False)
    return result if isinstance(result, int) else 0


def report(error: BaseException) -> int:
    """Prints one line about an error, on stderr.

    Returns:
        The exit code.
    """
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else EXIT_BUG
    if isinstance(error, Interrupted):  # what somebody has asked for is no error
        _print_line(f"tfm: {error}")
        return error.exit_code
    if isinstance(error, TfmError):
        if str(error):
            _print_error(str(error))
        return error.exit_code
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        _print_line("tfm: interrupted")
        return EXIT_INTERRUPTED
    if hasattr(error, "format_message"):  # one of click's usage errors
        _print_error(_usage_message(error))
        return EXIT_USAGE
    if isinstance(error, MemoryError) or ("allocate" in str(error) and "memory" in str(error)):
        _print_error(
            "not enough memory: a smaller beam needs less; for tfm train --set training.ranks=1, or in a new --run a"
            " smaller training.max_tokens_per_batch"
        )
        return EXIT_ENVIRONMENT
    if isinstance(error, OSError):
        _print_error(f"{error.filename or 'input/output'}: {error.strerror or error}")
        return EXIT_ENVIRONMENT
    _print_error(f"this is a bug in tfm: {type(error).__name__}: {error} (run again with --debug for a traceback)")
    return EXIT_BUG


def _usage_message(error: Any) -> str:
    message = str(error.format_message()).strip().replace("\n", " ") + _setting_meant(getattr(error, "option_name", ""))
    context = getattr(error, "ctx", None)
    return f"{message} See {context.command_path} --help." if context is not None else message


def _setting_meant(option: str | None) -> str:
    """What to say where somebody gives a setting as an option of its own, perhaps misspelt."""
    if not option or not option.startswith("--"):
        return ""
    from ..configs.loader import nearest_setting

    setting = nearest_setting(option[2:].replace("-", "_"))
    return f" Settings are given as --set {setting}=VALUE." if setting else ""


def _print_error(message: str) -> None:
    for line in message.splitlines() or [""]:
        _print_line(f"tfm: error: {line}")


def _print_line(line: str) -> None:
    visible = "".join(character if character.isprintable() else repr(character)[1:-1] for character in line)
    with contextlib.suppress(OSError):  # nobody reads it
        print(visible, file=sys.stderr)
