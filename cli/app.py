"""The `tfm` command: a group of commands, each in a module of its name, which is imported when it is called.

So `tfm --help` waits for typer alone, and a command for no other.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ..system.errors import UsageError

_PATHS = re.compile("FILE|DIR|RUN|SPEC")
"""What help shows for a value that names a file or a folder has one of these words."""
COMMANDS = {
    "data": "Look for what is wrong with a corpus before training on it.",
    "tokenize": "Build a vocabulary from text, or look at one.",
    "train": "Train a translator, a language model or a sentence encoder.",
    "improve": "Make a translator better with text that has no translations.",
    "translate": "Translate sentences, a file, or standard input.",
    "generate": "Continue texts with a language model.",
    "embed": "Turn sentences into vectors with a sentence encoder.",
    "evaluate": "Score a run on a test set, or outputs that you have.",
    "check": "Test whether a model does what a Transformer must.",
    "explain": "Write a page that walks through one forward pass of your model.",
    "info": "Describe a run: what it is, how good it is, and what would help.",
    "runs": "List the runs: what each is, its pairs, its best score.",
    "curves": "Draw the losses and scores of runs together.",
    "export": "Write a run for CTranslate2, a browser or Argos Translate.",
    "serve": "Let other programs translate with a run, over HTTP.",
    "presets": "List the presets, or print the settings of one.",
}
"""Each command with the first line of its help."""


def command_function(name: str) -> Callable[..., None]:
    """The function of a command."""
    return getattr(import_module(f".{name}", __package__), name)


@cache
def _command(name: str) -> TyperCommand:
    from ..engine.file_guard import guarded

    function = command_function(name)
    for annotation in function.__annotations__.values():
        for option in getattr(annotation, "__metadata__", ()):
            if hasattr(option, "readable"):
                option.readable = False  # whether a file can be read is said by what reads it, in words of its own
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    alone.command(cls=TextCommand)(guarded(function))
    command: Any = typer.main.get_command(alone)
    command.params += _options_of_all()
    return command


def _options_of_all() -> list[Any]:
    """`--debug`, which no command is handed: `main` looks for it, as an error can come before options are read."""
    alone = typer.Typer(add_completion=False)

    @alone.command()
    def options(  # pyright: ignore[reportUnusedFunction]
        debug: Annotated[
            bool, typer.Option("--debug", expose_value=False, help="Show a traceback when something fails.")
        ] = False,
    ) -> None:
        del debug

    return typer.main.get_command(alone).params


class _Commands(Mapping[str, TyperCommand]):
    """The commands by their names."""

    def __getitem__(self, name: str) -> TyperCommand:
        if name not in COMMANDS:
            raise KeyError(name)
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Group(TyperGroup):
    """The group of `COMMANDS`."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        lazy: Any = _Commands()
        self.commands = lazy

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of `COMMANDS`."""
        del ctx
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Lists the commands as any group does, but from `COMMANDS`: no module is imported."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


class TextCommand(TyperCommand):
    """A command that takes an argument such as `- the cat sleeps` for a text, as no option has a space in it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuses an option of one value that is given twice, and an empty name of a file, such as `"$UNSET"`.

        Click would take the last value, and the working directory, without a word.
        """
        args = self._with_texts_last(args)
        values, _, given = self.make_parser(ctx).parse_args(list(args))
        for option, times in Counter(given).items():
            name = max(option.opts, key=len)
            if times > 1 and _takes_one_value(option):
                raise typer.BadParameter(f"tfm {self.name} takes one {name}, but it is given {times} times.", ctx)
            value = values[option.name]
            names_file = option.param_type_name == "option" and _PATHS.search(option.metavar or "")
            if names_file and "" in (value if isinstance(value, list) else [value]):
                raise typer.BadParameter(f"{name} is given an empty name.", ctx)
        return super().parse_args(ctx, args)

    def _with_texts_last(self, args: list[str]) -> list[str]:
        """The same arguments with the texts behind `--`, where nothing is taken for an option."""
        flags = {name: getattr(option, "is_flag", False) for option in self.params for name in option.opts}
        options, texts = list[str](), list[str]()
        left = iter(args)
        for arg in left:
            if arg == "--":
                texts += left
            elif flags.get(arg) is False and arg.startswith("-"):
                value = next(left, None)
                if value is None:  # which is told
                    return args
                options += [arg, value]
            elif not arg.startswith("-") or arg == "-" or _is_text(arg, flags):
                texts.append(arg)
            else:
                options.append(arg)
        return [*options, "--", *texts] if texts else args


def _takes_one_value(option: Any) -> bool:
    """Whether an option has a value, and only one: no flag, none that may be repeated, no argument."""
    is_option = option.param_type_name == "option"
    return is_option and not option.multiple and not option.is_flag and not option.count


def _is_text(arg: str, options: Container[str]) -> bool:
    """Whether an argument that begins with a dash is none of `--name=a value` and `-nvalue`."""
    return bool(re.search(r"\s", arg)) and arg.partition("=")[0] not in options and arg[:2] not in options


app = typer.Typer(
    cls=_Group,
    help="Train your own Transformer from text files: a translator, a language model, a sentence encoder.",
    epilog="Begin with `tfm train`: without any option it trains a built-in toy language in about two minutes.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


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
        raise typer.Exit(UsageError.exit_code)
