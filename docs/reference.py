"""The generated parts of the pages, as Markdown: commands, settings, presets. All of it comes from the code."""

import ast
import inspect
import re
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import typer.main

from tfm.cli.app import app
from tfm.configs import RunConfig, preset_text
from tfm.configs.presets import PRESETS

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|$])")
_FLAG = re.compile(r"(?<![\w`-])(--?[a-z][\w-]*)")


def commands() -> str:
    """Each command: its help, its arguments and options, as `tfm COMMAND --help` shows them."""
    group: Any = typer.main.get_command(app)
    root = group.make_context("tfm", [], resilient_parsing=True)
    parts: list[str] = []
    for name, command in group.commands.items():
        context = command.make_context(name, [], parent=root, resilient_parsing=True)
        usage = " ".join(["tfm", name, *command.collect_usage_pieces(context)])
        parts += [f"## `tfm {name}`", f"```text\n{usage}\n```", *_help(command.help)]
        parts.append(f"```{{program}} tfm {name}\n```")
        for parameter in command.params:
            if (record := parameter.get_help_record(context)) is not None:
                shown, said = record
                if parameter.param_type_name == "argument":
                    shown = parameter.metavar + (" .." if parameter.nargs == -1 else "")
                parts.append(f"```{{option}} {shown}\n{_plain(said)}\n```")
    return "\n\n".join(parts)


def _help(text: str) -> list[str]:
    """The paragraphs of a command's help; those that are commands themselves as such."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text))
    return [f"```text\n{one}\n```" if one.startswith("tfm ") else _plain(" ".join(one.split())) for one in paragraphs]


def _plain(text: str) -> str:
    """Plain text as Markdown, the flags in it as code."""
    return _FLAG.sub(r"`\1`", _SPECIAL.sub(r"\\\1", " ".join(text.split())))


def settings() -> str:
    """Each key of a configuration: what it may be, its default, and what it does."""
    parts: list[str] = []
    for section in fields(RunConfig):
        config: Any = section.default_factory
        types, notes = get_type_hints(config), attribute_docstrings(config)
        parts += [f"## `{section.name}`", inspect.cleandoc(config.__doc__)]
        for field in fields(config):
            note, values = " ".join(notes[field.name].split()), _values(types[field.name])
            values = values[0].upper() + values[1:]
            about = f"{note}\n\n{values}; default {_default(field)}."
            parts.append(f"```{{confval}} {section.name}.{field.name}\n{about}\n```")
    return "\n\n".join(parts)


def attribute_docstrings(config: type) -> dict[str, str]:
    """The strings that stand below the fields of a dataclass, by the names of these."""
    body = ast.parse(inspect.cleandoc(inspect.getsource(config))).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for field, note in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(note, ast.Expr):
            found[field.target.id] = ast.literal_eval(note.value)
    return found


_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "`true` or `false`", NoneType: "`null`"}


def _values(kind: Any) -> str:
    """What a value may be, in words."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (UnionType, Union):
        return _any_of([_values(one) for one in inner])
    if origin is Literal:
        return _any_of([f"`{choice}`" for choice in inner])
    if origin is list:
        return "a list of texts"
    if origin is tuple:
        return f"{len(inner)} numbers"
    return _WORDS[kind]


def _any_of(choices: list[str]) -> str:
    return " or ".join([", ".join(choices[:-1]), choices[-1]] if len(choices) > 1 else choices)


def _default(field: Field[Any]) -> str:
    value = field.default if field.default is not MISSING else []
    if value == "":
        return "empty"
    if isinstance(value, bool) or value is None:
        return f"`{ {True: 'true', False: 'false', None: 'null'}[value] }`"
    return f"`{list(value) if isinstance(value, tuple) else value}`"


def presets() -> str:
    """Each preset: what it is for, and its settings."""
    parts: list[str] = []
    for preset in PRESETS:
        parts += [
            f"## `{preset.name}`",
            f"For: {_plain(preset.made_for)}. On two cores: {_plain(preset.cost)}. Result: {_plain(preset.result)}.",
            f"```yaml\n{preset_text(preset.name).strip()}\n```",
        ]
    return "\n\n".join(parts)


GENERATED: dict[str, Callable[[], str]] = {"commands": commands, "settings": settings, "presets": presets}
"""What a page can ask for."""
