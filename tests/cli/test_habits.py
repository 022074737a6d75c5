"""Options of other tools: each leads to a setting or an option that there is."""

import re
from typing import Any

import pytest
import typer

from tfm.cli import habits
from tfm.cli.app import COMMANDS, app
from tfm.configs.loader import setting_names

OPTIONS: dict[str, set[str]] = {
    name: {flag for parameter in command.params for flag in parameter.opts}
    for name in COMMANDS
    for group in [typer.main.get_command(app)]
    for command in [group.commands[name]]  # pyright: ignore[reportAttributeAccessIssue]
}


def test_every_name_of_other_tools_leads_to_a_setting() -> None:
    for setting, names in habits._SETTINGS.items():
        for name in names:
            meant = habits.meant(f"--{name.replace('_', '-')}", "train")
            assert re.fullmatch(rf"--set \w+\.{setting}=VALUE", meant), name
            assert meant.split()[1].partition("=")[0] in setting_names()


@pytest.mark.parametrize(
    ("table", "command"),
    [
        (habits._TRAIN, "train"),
        (habits._READING, "translate"),
        ({names: habits._EVALUATE[names] for names in habits._EVALUATE.keys() - habits._READING}, "evaluate"),
    ],
)
def test_what_is_said_names_options_that_there_are(table: dict[Any, str], command: str) -> None:
    for words in table.values():
        assert set(re.findall(r"--[a-z-]+", words)) <= OPTIONS[command], words
        for setting in re.findall(r"(?:--set )(\S+)=", words):
            assert setting in setting_names()


@pytest.mark.parametrize(
    ("option", "command", "words"),
    [
        ("--epochs=3", "train", "--max-steps N counts updates"),
        ("--batch-size", "train", "training.max_tokens_per_batch=N, which counts tokens"),
        ("--num-beams", "translate", "--beam-size N"),
        ("--lr", "translate", ""),
        ("--data", "translate", "--input FILE"),
        ("--ref", "evaluate", "--tgt FILE"),
        ("--ref", "translate", ""),
        ("--anything", "train", ""),
    ],
)
def test_what_is_said(option: str, command: str, words: str) -> None:
    found = habits.meant(option, command)
    assert words in found and bool(words) == bool(found)
