"""The README: short, and every command and all Python in it run, on small files under the same names."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer.main
from helpers.command import Tfm
from helpers.documents import blocks, commands
from helpers.shown import fill, run_commands, run_python

from tfm.cli.app import app

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = commands(README, "tfm", "cat", "make")
NAMED = re.findall(r"`(tfm [a-z]+[^`]*)`", README)
TFM: Any = typer.main.get_command(app)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the files that the README names, small."""
    return fill(tmp_path_factory.mktemp("readme"))


def test_the_readme_is_read_in_five_minutes() -> None:
    assert len(README.splitlines()) <= 150
    assert len(README.split()) <= 1_500


def test_the_readme_has_commands() -> None:
    assert sum(command.startswith("tfm ") for command in COMMANDS) >= 6


def test_every_make_target_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for command in COMMANDS:
        if command.startswith("make "):
            assert re.search(rf"^{command.split()[1]}:", makefile, re.MULTILINE), command


def test_every_tfm_command_runs_in_order(forked: Tfm, workplace: Path) -> None:
    run_commands("\n".join(f"```\n{block}```" for block in blocks(README)), forked, workplace)


def test_the_python_of_the_readme_runs(workplace: Path) -> None:
    assert (workplace / "runs" / "mine").is_dir(), "the commands above have trained it"
    assert "name='bleu'" in run_python(README, workplace)


@pytest.mark.parametrize("named", NAMED)
def test_what_is_named_in_passing_is_a_command_with_such_options(named: str) -> None:
    name, *words = shlex.split(named)[1:]
    options = {option for one in TFM.commands[name].params for option in one.opts}
    assert {word for word in words if word.startswith("-")} <= options


def test_every_link_leads_somewhere() -> None:
    """Anchors are those that GitHub makes of headings."""
    links = [link for link in re.findall(r"\]\(([^()\s]+)\)", README) if "://" not in link]
    assert len(links) > 25
    for link in links:
        name, _, anchor = link.partition("#")
        text = (ROOT / name).read_bytes().decode(errors="replace")
        headings = [heading.lower() for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]
        assert not anchor or anchor in {re.sub(r"[^\w -]", "", one).replace(" ", "-") for one in headings}, link


def test_the_figures_are_those_of_the_benchmarks() -> None:
    """Each row of the table rounds a row of benchmarks/quality.md: minutes and BLEU."""
    quality = (ROOT / "benchmarks" / "quality.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d,]+) ([^|]*) \| [^|]* \| (\d+) \| (\d+) \|$", README, re.MULTILINE)
    assert len(rows) == 5
    first_table = quality.partition("## ")[0]
    for pairs, what, minutes, bleu in rows:
        row = rf"^\| {pairs} {re.escape(what)}.*\| {minutes} \| ([\d.]+)"
        found = re.search(row, first_table, re.MULTILINE)
        assert found and abs(float(found[1]) - int(bleu)) <= 0.5, what


def test_the_figures_of_text_without_translations_are_those_of_the_benchmarks() -> None:
    """The first table of their part of benchmarks/quality.md: minutes after the pairs alone, and BLEU at the end."""
    part = (ROOT / "benchmarks" / "quality.md").read_text(encoding="utf-8").partition("## Text without translations")[2]
    _, *later = re.findall(r"^\| ([^|]+) \| (\d+) \| ([\d.]*)", part.partition("The same with")[0], re.MULTILINE)
    (row,) = re.findall(r"`tfm improve` \| (\d+) more \| (\d+) \|", README)
    assert int(row[0]) == sum(int(minutes) for _, minutes, _ in later)
    (bleu,) = [float(score) for _, _, score in later if score]
    assert abs(bleu - int(row[1])) <= 0.5


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the git checkout")
def test_no_path_of_a_machine_is_written_down() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in listed:
        path = ROOT / name
        if path.suffix in (".py", ".md", ".yaml", ".yml", ".toml", ".txt", "") and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            assert not re.search(r"/(root|home|work)/", text), name
