"""The pages in docs/: their commands have options that there are. What goes into them is tested in `test_site.py`."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main
from helpers.documents import commands

from tfm.cli.app import app

DOCS = Path(__file__).parent.parent.parent / "docs"
TFM: Any = typer.main.get_command(app)
SHOWN = [
    pytest.param(command, id=f"{page.stem}: {command}")
    for page in sorted(DOCS.glob("*.md"))
    for command in commands(page.read_text(encoding="utf-8"), "tfm")
]


def test_commands_are_shown() -> None:
    assert len(SHOWN) >= 20


@pytest.mark.parametrize("shown", SHOWN)
def test_a_command_can_be_given_so(shown: str) -> None:
    name, *arguments = shlex.split(shown)[1:]
    if name == "--version":
        return
    TFM.commands[name].make_context(name, arguments)
