"""Assembles the `tfm` command and turns errors into one line and an exit code.

Exit codes: 0 ok, 1 bug in tfm, 2 usage or configuration, 3 bad input data, 4 bad or untrusted model, 5 environment
(disk, memory, permission), 6 training diverged, 129/130/143 interrupted after saving, 141 closed pipe.

Only typer is imported here: `tfm --help` must not wait for torch.
"""

import sys
from typing import Annotated, Any, NoReturn

import typer

from ..engine.guard import guarded
from ..seq2seq.out_of_memory import is_out_of_memory
from ..system.console import visible
from ..system.errors import Interrupted, TfmError
from ..system.interrupts import Interrupts
from .arguments import TextCommand
from .check import check
from .data import data
from .embed import embed
from .evaluate import evaluate
from .explain import explain
from .export import export
from .generate import generate
from .info import info
from .libraries import leave_at_once, leave_garbage, set_up_libraries
from .presets import presets
from .streams import discard_stdout, set_up_streams
from .tokenize import tokenize
from .train import train
from .translate import translate

EXIT_BUG, EXIT_USAGE, EXIT_ENVIRONMENT = 1, 2, 5

app = typer.Typer(
    help="Train your own Transformer from text files: a translator, a language model, a sentence encoder.",
    epilog="Begin with `tfm train`: without any option it trains a built-in toy language in about two minutes.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


for command in (data, tokenize, train, translate, generate, embed, evaluate, check, explain, info, export, presets):
    for annotation in command.__annotations__.values():
        for option in getattr(annotation, "__metadata__", ()):
            if hasattr(option, "readable"):
                option.readable = False  # whether a file can be read is said by what reads it, in words of its own
    app.command(cls=TextCommand)(guarded(command))


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
    if hasattr(error, "format_message"):  # one of click's usage errors
        _print_error(_usage_message(error))
        return EXIT_USAGE
    if is_out_of_memory(error):
        _print_error(
            "not enough memory: end other programs; a smaller --beam-size needs less; for tfm train --set"
            " training.ranks=1, or in a new --run a smaller model or training.max_tokens_per_batch"
        )
        return EXIT_ENVIRONMENT
    if isinstance(error, OSError):
        _print_error(f"{error.filename or 'input/output'}: {error.strerror or error}")
        return EXIT_ENVIRONMENT
    if (interrupt := _interrupt_before(error)) is not None:
        return report(interrupt)
    _print_error(f"this is a bug in tfm: {type(error).__name__}: {error} (run again with --debug for a traceback)")
    return EXIT_BUG


def _interrupt_before(error: BaseException) -> Interrupted | None:
    """The interrupt that an error came of: an import that was cut short can fail in any way."""
    before = error.__cause__ or error.__context__
    return before if before is None or isinstance(before, Interrupted) else _interrupt_before(before)


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
    print(visible(line), file=sys.stderr)
