"""The documents of the benchmarks show commands and settings that there are."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from helpers.command import TFM, TINY_FLAGS, write_lines
from helpers.documents import commands

from tfm.configs import load_config, merge, parse_config
from tfm.configs.loader import parse_assignment

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "benchmarks"
JOURNAL = (FOLDER / "journal.md").read_text(encoding="utf-8")
SCRIPTS = {
    command.partition("#")[0].strip()
    for name in ("README", "speed", "quality", "journal")
    for command in re.findall(
        r"benchmarks/\w+\.py[^`\n]*", (ROOT / "benchmarks" / f"{name}.md").read_text(encoding="utf-8")
    )
}
PARSE_ONLY = """
import argparse, json, runpy, sys
def parsed(parser, *arguments):
    given = parser.parse_known_args(*arguments)[1]
    sys.exit(f"unknown: {given}" if given else 77)
argparse.ArgumentParser.parse_args = argparse.ArgumentParser.parse_intermixed_args = parsed
sys.path.insert(0, "benchmarks")
for sys.argv in json.load(sys.stdin):
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as ended:
        if ended.code != 77:
            sys.exit(f"{sys.argv}: {ended.code}")
    else:
        sys.exit(f"{sys.argv} parses nothing")
"""


def test_scripts_are_shown() -> None:
    assert len(SCRIPTS) >= 10


def test_the_scripts_know_the_flags_they_are_shown_with() -> None:
    """In one process: what they import takes far longer than they do."""
    shown = json.dumps([shlex.split(command) for command in sorted(SCRIPTS)])
    command = [sys.executable, "-c", PARSE_ONLY]
    done = subprocess.run(command, cwd=ROOT, input=shown, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_commands_of_the_journal_start(tmp_path: Path) -> None:
    lines = [f"one two three number {i}" for i in range(80)]
    for corpus, language in (("multi30k", "de"), ("tatoeba_en_fr", "fr")):
        (tmp_path / corpus).mkdir()
        for part in ("train", "valid"):
            for side in ("en", language):
                write_lines(tmp_path / corpus / f"{part}.{side}", lines)
    for side in ("en", "fr"):
        write_lines(tmp_path / f"20k.{side}", lines)
    environment = {**os.environ, "TFM_CORPORA": str(tmp_path)}
    shown = commands(JOURNAL, "tfm", "awk")
    assert len(shown) >= 3
    for command in shown:
        line = command.replace("PRESET", "pairs-100k").replace("TIME", "10m")
        if line.startswith("tfm "):
            line = f"{shlex.quote(str(TFM))}{line.removeprefix('tfm')} {shlex.join(TINY_FLAGS)} --dry-run"
        done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=environment, capture_output=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stderr.decode()}"


def test_the_settings_of_the_journal_are_settings() -> None:
    preset = load_config("multi30k")
    shown = {
        assignment
        for code in re.findall(r"`([^`\n]+)`", JOURNAL)
        for assignment in re.findall(r"(?<!\S)(?:[a-z_]+\.)?[a-z_]+=[\w.+-]+(?!\S)", code)
    }
    assert len(shown) > 15
    for assignment in shown:
        full = assignment if "." in assignment.partition("=")[0] else f"training.{assignment}"
        parse_config(merge(preset, parse_assignment(full)))
