"""What documents show, made runnable: small files under the names that the pages use, and trainings cut short."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from helpers.command import TFM, TINY_FLAGS, Tfm, write_lines
from helpers.documents import blocks, commands

from tfm.data.formats.text import TOY_SIZES

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
SRC = [" ".join(WORDS[(i + j * j) % 10] for j in range(1 + i % 7)) for i in range(120)]
TGT = [" ".join(reversed(line.split())) for line in SRC]
FILES = {
    "": ["train.en", "train.de", "test.en", "test.de", "new.en", "new.de", "stories.txt", "beginnings.txt"],
    "multi30k": ["train.en", "train.de", "valid.en", "valid.de", "test2016.en", "test2016.de"],
    "scan": ["simple.train.src", "simple.train.tgt", "simple.test.src", "simple.test.tgt"],
    "cmudict_g2p": [f"{part}.{side}" for part in ("train", "valid", "test") for side in ("src", "tgt")],
    "tatoeba_en_fr": [f"{part}.{side}" for part in ("train", "valid", "test") for side in ("en", "fr")],
}
MESSAGES = ['msgid ""', 'msgstr "Language: de\\n"', "", 'msgid "one two"', 'msgstr ""']


def fill(folder: Path) -> Path:
    """Writes the files that the pages name."""
    for directory, names in FILES.items():
        (folder / directory).mkdir(exist_ok=True)
        for name in names:
            write_lines(folder / directory / name, SRC if name.endswith(("en", "src", "txt")) else TGT)
    for name, lines in (("news.en", SRC), ("news.de", TGT)):
        write_lines(folder / name, [f"{line} {line}" for line in lines])
    write_lines(folder / "app.po", MESSAGES)
    (folder / "messages").mkdir()
    write_lines(folder / "messages" / "app.po", MESSAGES)
    pairs = [f"{src},{tgt}" for src, tgt in zip(SRC, TGT, strict=True)]
    write_lines(folder / "pairs.csv", ["english,german", *pairs])
    write_lines(folder / "table.csv", ["id,english,german", "1,one two,", "2,three four,"])
    write_lines(folder / "terms.tsv", ["one\teins"])
    write_lines(folder / "cmudict_g2p" / "test.refs.tsv", [f"{line}\t{line} x" for line in TGT])
    return folder


def train_tiny(forked: Tfm, folder: Path, *names: str) -> None:
    """Makes the runs that a page takes for granted: `mine`, `other`, `toy`, `vectors`."""
    for name in names:
        data = "" if name == "toy" else " --src train.en --tgt train.de"
        config = " --config multi30k-encoder" if name == "vectors" else ""
        code, said = run(shortened(f"tfm train{config}{data} --run runs/{name}"), forked, folder)
        assert code == 0, said


def shortened(command: str) -> str:
    """The command, its training cut to a few steps of a tiny model."""
    if " train" in command.partition("--")[0] and "--finish-in" not in command:
        command = re.sub(r"--max-(steps|time) \S+", "", command).replace("--set training.max_steps=null", "")
        missing = ["model.num_encoder_layers=0"] if "--text" in command or "-decoder" in command else []
        missing += ["model.num_decoder_layers=0"] if "-encoder" in command else []
        stacks = [flag for setting in missing for flag in ("--set", setting)]
        tiny = [] if "--init-from" in command and "--config" not in command else TINY_FLAGS
        if not re.search(r"--(src|text|data|init-from) |train \w+\.csv", command):  # the toy language has more letters
            tiny = [flag.replace("vocab_size=320", "vocab_size=400") for flag in tiny]
        return f"{command} --max-steps 2 {shlex.join([*tiny, *stacks])}"
    if command.endswith("--calibrate"):  # the validation set of so small a corpus is too small
        return f"{command} --src train.en --tgt train.de"
    if command.startswith("tfm improve"):
        return f"{command} --set training.max_steps=2 {shlex.join(TINY_FLAGS)}"
    return command


def few_toy_sentences(_: object = None) -> None:
    """Makes the toy language a small corpus: to draw 40,000 pairs takes far longer than a training of a few steps."""
    TOY_SIZES.update(train=2_000, dev=50, test=100)


def run(command: str, forked: Tfm, folder: Path) -> tuple[int, str]:
    """The exit code of a command, and what it said. Those with pipes are left to a shell."""
    if "|" in command:
        path = os.pathsep.join([str(TFM.parent), os.environ["PATH"]])
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PATH": path}
        shell = ["bash", "-o", "pipefail", "-c", command]
        done = subprocess.run(shell, cwd=folder, env=environment, capture_output=True, check=False)
    else:
        words = shlex.split(command.replace("$TFM_CORPORA", str(folder)), comments=True)
        done = forked(*words[1:], cwd=folder, before="helpers.shown:few_toy_sentences")
    return done.returncode, done.stderr.decode()


def run_commands(text: str, forked: Tfm, folder: Path) -> None:
    """Runs each `tfm` command of a page, in order; each must succeed."""
    for command in commands(text, "tfm", "cat"):
        code, said = run(shortened(command), forked, folder)
        if command.startswith("tfm check"):  # of two updates a model has not learned to use its source
            assert said.endswith("fails 1 of 8 tests: source\n"), said
        elif "--finish-in" in command:  # nothing is under way
            assert "is already finished" in said
        else:
            assert code == 0, f"{command}\n{said}"


def run_python(text: str, folder: Path) -> str:
    """Runs all Python of a page as one program, its trainings cut short.

    Returns:
        What it printed.
    """
    settings = dict(flag.split("=") for flag in TINY_FLAGS if "=" in flag)
    given = {name: float(value) if "." in value else int(value) for name, value in settings.items()}
    code = "\n".join(blocks(text, "python"))
    code = re.sub(r"(\btrain\(src=.*?)(, max_steps=\d+)?\)", rf"\1, max_steps=2, settings={given})", code)
    environment = {**os.environ, "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
