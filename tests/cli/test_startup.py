"""Standard streams that are closed, full or left: no result is lost without a word."""

import os
import subprocess
from pathlib import Path

import pytest
from helpers.command import TFM


def ended(redirection: str, *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command with redirected streams."""
    command = ["sh", "-c", f'exec "$0" "$@" {redirection}', str(TFM), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("arguments", [["presets"], ["--help"], ["presets", "--help"], ["--version"]])
def test_output_that_cannot_be_written_is_an_error(arguments: list[str]) -> None:
    assert ended(">&-", *arguments) == (5, "", "tfm: error: standard output is closed\n")
    full = "tfm: error: cannot write standard output: No space left on device\n"
    assert ended(">/dev/full", *arguments) == (5, "", full)


def test_a_reader_that_has_gone_is_none() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([TFM, "presets"], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_that_nobody_reads_the_messages_changes_nothing(redirection: str) -> None:
    assert ended(redirection, "presets", "nowhere")[0] == 2
    code, presets, _ = ended(redirection, "presets")
    assert code == 0 and presets.startswith("preset ")


def test_no_file_takes_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("one\teins\n" * 3)
    code, out, _ = ended(">&- 2>&-", "data", "--data", str(tmp_path / "a.tsv"), "--report", str(tmp_path / "report"))
    assert (code, out) == (5, "")
    assert all(line.count("\t") == 2 for line in (tmp_path / "report").read_text().splitlines())
