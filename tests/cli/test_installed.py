"""Each command through the console script, as a user runs it: it does what the forked one of the other tests does."""

from pathlib import Path

import pytest
from helpers.command import TINY_FLAGS, Tfm, error_of, run_command, write_lines

from tfm.cli import app

KEPT = Path(__file__).parents[1] / "keepsakes"
FILES = ["--src", "train.en", "--tgt", "train.de", "--dev-src", "dev.en", "--dev-tgt", "dev.de"]
SETTLED = ["--precision", "fp32", "--set", "training.ranks=1"]
"""Nothing is measured at the start."""
COMMANDS: dict[str, list[str]] = {
    "data": [*FILES, "--json"],
    "tokenize": [*FILES[:4], "--vocab-size", "300", "--output", "vocabulary"],
    "train": [*FILES, "--run", "r", "--max-steps", "10", *TINY_FLAGS, *SETTLED],
    "improve": ["--run", "none", "--tgt-text", "dev.de"],
    "translate": ["--run", "tiny", "one two", "three"],
    "generate": ["--run", f"{KEPT / 'text'}", "--seed", "3", "one"],
    "embed": ["--run", f"{KEPT / 'encoder_only'}", "--input", "dev.en", "--output", "vectors.npy"],
    "evaluate": ["--run", "tiny", "--src", "dev.en", "--tgt", "dev.de", "--json"],
    "check": ["--run", "tiny", "--src", "dev.en", "--tgt", "dev.de"],
    "explain": ["--run", "tiny", "one two", "--format", "text"],
    "info": ["--run", "tiny", "--json"],
    "runs": ["."],
    "curves": ["tiny", "--output", "curves.png"],
    "export": ["--run", "tiny", "--output", "made", "--check", "0"],
    "presets": ["multi30k"],
}
CODES = {"check": 4, "improve": 4}
"""The tiny run has hardly learned. How a run is improved is tried in test_improve."""
COMPARED = (".safetensors", ".npy", ".model", ".bin")


def test_they_are_all_here() -> None:
    assert list(app.COMMANDS) == [*list(COMMANDS)[:-1], "serve", "presets"]  # serve runs on: tests/cli/test_serve.py


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_the_same_installed_and_forked(
    forked: Tfm, tmp_path: Path, sentences: list[tuple[str, str]], tiny_run: Path, command: str
) -> None:
    found: list[object] = []
    for name, run in (("installed", run_command), ("forked", forked)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "tiny").symlink_to(tiny_run)
        for part, pairs in (("train", sentences[20:]), ("dev", sentences[:20])):
            for side, language in enumerate(("en", "de")):
                write_lines(folder / f"{part}.{language}", [pair[side] for pair in pairs])
        done = run(command, *COMMANDS[command], cwd=folder)
        assert done.returncode == CODES.get(command, 0), error_of(done)
        said = "" if command == "train" else error_of(done)  # a training says how fast it is
        files = {
            str(path.relative_to(folder)): path.read_bytes() if path.suffix in COMPARED else b""
            for path in folder.rglob("*")
            if path.is_file()
        }
        found.append((done.stdout, said, files))
    assert found[0] == found[1]
    if command == "train":  # a forked one does not draw
        assert (tmp_path / "installed" / "r" / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
