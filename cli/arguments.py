"""Texts as arguments: they may begin with a dash and have several lines; the name of a file is none."""

import os
import re
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from ..system.errors import UsageError


class _OneRun(TyperCommand):
    """A command that reads one run."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuses a second `--run`, of which click would take the last without a word.

        Raises:
            BadParameter: It is given, and the command does not take several.
        """
        given = self.make_parser(ctx).parse_args(list(args))[2]
        runs = sum(option.name == "run" and not getattr(option, "multiple", False) for option in given)
        if runs > 1:
            raise typer.BadParameter(f"tfm {self.name} takes one run, but --run is given {runs} times.", ctx)
        return super().parse_args(ctx, args)


class TextCommand(_OneRun):
    """A command that takes an argument such as `- the cat sleeps` as a text, for no option has a space in its name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts the texts behind `--`, where nothing is taken for an option."""
        flags = {name: getattr(option, "is_flag", False) for option in self.params for name in option.opts}
        options: list[str] = []
        texts: list[str] = []
        left = iter(args)
        for arg in left:
            if arg == "--":
                texts += left
            elif flags.get(arg) is False and arg.startswith("-"):
                value = next(left, None)
                if value is None:  # which is told
                    return super().parse_args(ctx, args)
                options += [arg, value]
            elif not arg.startswith("-") or arg == "-" or _is_text(arg, flags):
                texts.append(arg)
            else:
                options.append(arg)
        return super().parse_args(ctx, [*options, "--", *texts] if texts else args)


def _is_text(arg: str, options: Container[str]) -> bool:
    """Whether an argument that begins with a dash is none of `--name=a value` and `-nvalue`."""
    return bool(re.search(r"\s", arg)) and arg.partition("=")[0] not in options and arg[:2] not in options


def lines_of(text: str) -> list[str]:
    """The lines of an argument such as `"$(cat FILE)"`; one that is empty has one."""
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def refuse_file_names(texts: Sequence[str], fix: str) -> None:
    """Refuses arguments that are all names of files, with a suffix or a folder: nobody wants those translated.

    Args:
        texts: The arguments.
        fix: What to give instead of `{name}`.

    Raises:
        UsageError: They are.
    """
    if texts and all(map(_is_file_name, texts)):
        raise UsageError(f"{texts[0]} is a file: {fix.format(name=texts[0])}")


def _is_file_name(text: str) -> bool:
    path = Path(text)
    try:
        return bool(path.suffix or os.sep in text) and path.is_file()
    except OSError:  # too long for a name
        return False
