"""Every command in the README runs: the long ones shortened, on small files under the same names."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.command import TFM, TINY_FLAGS, Tfm, write_lines
from helpers.documents import blocks, commands

from tfm.data.formats import SUFFIXES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = commands(README, "tfm", "cat", "make")


def shortened(command: str) -> str:
    """The command, its training cut to a few steps of a tiny model."""
    if " train" in command.partition("--")[0]:
        command = re.sub(r"--max-(steps|time) \S+", "", command)
        missing = ["model.num_encoder_layers=0"] if "--text" in command or "-decoder" in command else []
        missing += ["model.num_decoder_layers=0"] if "-encoder" in command else []
        stacks = [flag for setting in missing for flag in ("--set", setting)]
        return f"{command} --max-steps 2 {shlex.join([*TINY_FLAGS, *stacks])}"
    if command.startswith("tfm improve"):
        return f"{command} --set training.max_steps=2 {shlex.join(TINY_FLAGS)}"
    return command


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the files that the README names, small."""
    folder = tmp_path_factory.mktemp("readme")
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    src = [" ".join(words[(i + j * j) % 10] for j in range(1 + i % 7)) for i in range(120)]
    tgt = [" ".join(reversed(line.split())) for line in src]
    files = {
        "": ["train.en", "train.de", "test.en", "test.de", "stories.txt", "beginnings.txt"],
        "multi30k": ["train.en", "train.de", "valid.en", "valid.de", "test2016.en", "test2016.de"],
        "scan": ["simple.train.src", "simple.train.tgt", "simple.test.src", "simple.test.tgt"],
        "cmudict_g2p": [f"{part}.{side}" for part in ("train", "valid", "test") for side in ("src", "tgt")],
    }
    for directory, names in files.items():
        (folder / directory).mkdir(exist_ok=True)
        for name in names:
            write_lines(folder / directory / name, src if name.endswith(("en", "src")) else tgt)
    for name, lines in (("news.en", src), ("news.de", tgt)):
        write_lines(folder / name, [f"{line} {line}" for line in lines])
    write_lines(folder / "app.po", ['msgid "one two"', 'msgstr ""'])
    write_lines(folder / "table.csv", ["id,english,german", "1,one two,", "2,three four,"])
    write_lines(folder / "terms.tsv", ["one\teins"])
    write_lines(folder / "cmudict_g2p" / "test.refs.tsv", [f"{line}\t{line} x" for line in tgt])
    return folder


def test_the_readme_has_commands() -> None:
    assert sum(command.startswith("tfm ") for command in COMMANDS) >= 12


def test_every_make_target_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for command in COMMANDS:
        if command.startswith("make "):
            assert re.search(rf"^{command.split()[1]}:", makefile, re.MULTILINE), command


def run(command: str, forked: Tfm, folder: Path) -> tuple[int, str]:
    """The exit code of a command, and what it said. Those with pipes are left to a shell."""
    if "|" in command:
        path = os.pathsep.join([str(TFM.parent), os.environ["PATH"]])
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PATH": path}
        shell = ["bash", "-o", "pipefail", "-c", command]
        done = subprocess.run(shell, cwd=folder, env=environment, capture_output=True, check=False)
    else:
        words = shlex.split(command.replace("$TFM_CORPORA", str(folder)), comments=True)
        done = forked(*words[1:], cwd=folder)
    return done.returncode, done.stderr.decode()


def test_every_tfm_command_runs_in_order(forked: Tfm, workplace: Path) -> None:
    for command in COMMANDS:
        if command.startswith("make "):
            continue
        code, said = run(shortened(command), forked, workplace)
        if command.startswith("tfm check"):  # of two updates a model has not learned to use its source
            assert said.endswith("fails 1 of 8 tests: source\n"), said
        else:
            assert code == 0, f"{command}\n{said}"


def test_the_python_of_the_readme_runs(workplace: Path) -> None:
    assert (workplace / "runs" / "mine").is_dir(), "the commands above have trained it"
    for code in blocks(README, "python"):
        done = subprocess.run([sys.executable, "-c", code], cwd=workplace, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_every_format_of_pairs_is_named() -> None:
    assert all(re.search(rf"{re.escape(suffix)}\b", README) for suffix in SUFFIXES)


def test_the_tree_is_the_tree() -> None:
    tree = next(block for block in blocks(README) if block.startswith("cli/"))
    named = [line.split()[0].rstrip("/") for line in tree.splitlines()]
    places = ("{}", "*/{}", "*/*/{}")
    assert all(any(list(ROOT.glob(place.format(name))) for place in places) for name in named), named
    ignored = {"build", "dist", "runs"}
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "." and "egg" not in path.name}
    assert folders - ignored <= set(named)


@pytest.mark.skipif(shutil.which("git") is None or not (ROOT / ".git").exists(), reason="needs the git checkout")
def test_no_path_of_a_machine_is_written_down() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in listed:
        path = ROOT / name
        if path.suffix in (".py", ".md", ".yaml", ".yml", ".toml", ".txt", "") and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            assert not re.search(r"/(root|home|work)/", text), name
