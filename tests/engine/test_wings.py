"""The wings (explain, export, improve, serve) are imported by their commands alone: without one, all others work."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.command import TINY_FLAGS, write_lines
from helpers.forkserver import ForkServer

import tfm.engine
from tfm.cli.app import COMMANDS

WINGS = {
    "explain": ["--run", "tiny", "one two", "--format", "text"],
    "export": ["--run", "tiny", "--output", "made", "--check", "0"],
    "improve": [
        *("--run", "tiny", "--tgt-text", "text.txt", "--set", "training.max_steps=4", *TINY_FLAGS),
        *("--set", "training.ranks=1"),
    ],
    "serve": ["--run", "en-de=tiny", "--host", "203.0.113.1"],  # an address that no machine has
}
KEPT = Path(__file__).parents[1] / "keepsakes"
OTHERS = {
    "train": ["--data", "pairs.tsv", "--run", "tiny", "--max-steps", "10", *TINY_FLAGS, "--set", "training.ranks=1"],
    "data": ["--data", "pairs.tsv"],
    "tokenize": ["--data", "pairs.tsv", "--vocab-size", "300", "--output", "vocabulary"],
    "translate": ["--run", "tiny", "one two"],
    "generate": ["--run", f"{KEPT / 'text'}", "--seed", "3", "eins"],
    "embed": ["--run", f"{KEPT / 'encoder_only'}", "--input", "text.txt", "--output", "vectors.npy"],
    "evaluate": ["--run", "tiny", "--data", "pairs.tsv"],
    "check": ["--run", "tiny", "--data", "pairs.tsv"],
    "info": ["--run", "tiny"],
    "runs": [],
    "curves": ["tiny"],
    "presets": [],
}
"""Each other command at work, in this order: the first one trains the model of most others."""
CODES = {"check": 4, "serve": 5}
"""The tiny run has hardly learned; a server cannot listen where it is told to."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the fork server needs Linux")


@pytest.fixture(params=WINGS)
def missing(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def server(missing: str, tmp_path: Path) -> Iterator[ForkServer]:
    """Runs a copy of tfm in which one wing is missing."""
    packages = tmp_path / "packages"
    installed = Path(tfm.engine.__file__).parents[1]
    shutil.copytree(installed, packages / "tfm")
    shutil.rmtree(packages / "tfm" / "engine" / missing)
    with ForkServer(tmp_path, packages) as running:
        yield running


def test_every_command_but_its_own_works_without_a_wing(server: ForkServer, missing: str, tmp_path: Path) -> None:
    assert set(COMMANDS) == set(WINGS) | set(OTHERS)
    folder = tmp_path / "folder"
    folder.mkdir()
    pairs = (KEPT / "pairs.tsv").read_text(encoding="utf-8").splitlines()
    write_lines(folder / "pairs.tsv", pairs)
    write_lines(folder / "text.txt", [line.partition("\t")[0] for line in pairs])
    for name in COMMANDS:
        done = server.run(name, "--help", cwd=folder)
        assert done.code == 0, done.said
    for name, arguments in {**OTHERS, **WINGS}.items():
        done = server.run(name, *arguments, cwd=folder)
        if name == missing:
            assert done.code != 0
            assert f"No module named 'tfm.engine.{missing}'" in done.said
        else:
            assert done.code == CODES.get(name, 0), f"{name}: {done.said}"
