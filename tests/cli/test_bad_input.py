"""Bad input gets one clear line, the documented exit code, and nothing is lost."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import TINY_FLAGS, Tfm, error_of, write_lines
from helpers.forkserver import without_privileges

Spoil = Callable[[Path], object]
FILES = ["--src", "train.en", "--tgt", "train.de"]
WIDTH = ["--set", "model.d_model=100"]


def latin1(folder: Path) -> None:
    (folder / "train.de").write_bytes("eins\nzwölf\n".encode("latin-1"))


def utf16(folder: Path) -> None:
    (folder / "train.en").write_bytes("one two\n".encode("utf-16-le"))


def misspelt_config(folder: Path) -> None:
    (folder / "c.yaml").write_text("model:\n  d_modell: 9\n")


def one_line_more(folder: Path) -> None:
    with open(folder / "train.de", "a", encoding="utf-8") as file:
        file.write("zuviel\n")


CASES: list[tuple[str, Spoil, list[str], int, str]] = [
    ("missing file", lambda d: (d / "train.de").unlink(), FILES, 3, "cannot read train.de: no such file"),
    ("directory", lambda d: ((d / "train.de").unlink(), (d / "train.de").mkdir()), FILES, 3, "Is a directory"),
    ("unequal line counts", one_line_more, FILES, 3, "train.en has 180 lines and train.de 181"),
    ("invalid UTF-8", latin1, FILES, 3, "or drop such pairs: --set data.bad_lines=skip"),
    ("UTF-16", utf16, FILES, 3, "--encoding utf-16-le"),
    ("empty corpus", lambda d: [write_lines(d / f"train.{s}", [""] * 9) for s in ("en", "de")], FILES, 3, "no usable"),
    ("empty file", lambda d: [(d / f"train.{s}").write_bytes(b"") for s in ("en", "de")], FILES, 3, "no usable"),
    ("unknown key", lambda d: None, [*FILES, "--set", "training.learing_rate=1"], 2, "did you mean 'learning_rate'?"),
    ("impossible sizes", lambda d: None, [*FILES, *WIDTH, "--set", "model.num_heads=8"], 2, "try 96 or 104"),
    ("negative steps", lambda d: None, [*FILES, "--set", "training.log_every=-1"], 2, "log_every must be at least 1"),
    ("source alone", lambda d: None, FILES[:2], 2, "they must pair up"),
    ("preset's name", lambda d: None, ["--config", "mulit30k", *FILES], 2, "did you mean multi30k?"),
    ("config key", misspelt_config, ["--config", "c.yaml", *FILES], 2, "c.yaml:2: unknown"),
    ("duration", lambda d: None, [*FILES, "--max-time", "soon"], 2, "90s, 20m or 8h"),
    ("tokenizer", lambda d: None, [*FILES, "--tokenizer", "nowhere"], 4, "not a tokenizer directory"),
    ("init-from", lambda d: None, [*FILES, "--init-from", "nowhere"], 4, "nowhere is not a run"),
    ("two tokenizers", lambda d: None, [*FILES, "--init-from", "a", "--tokenizer", "b"], 2, "leave --tokenizer out"),
    ("spec", lambda d: None, ["--data", "train.en"], 2, "cannot tell the format of train.en"),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "flags", "code", "words"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_train_refuses(tfm: Tfm, corpus: Path, spoil: Spoil, flags: list[str], code: int, words: str) -> None:
    spoil(corpus)
    done = tfm("train", *TINY_FLAGS, *flags, "--run", "r")
    assert done.returncode == code, error_of(done)
    errors = [line for line in error_of(done).splitlines() if line.startswith("tfm: error:")]
    assert len(errors) == 1, errors
    assert words in errors[0]
    assert not (corpus / "r" / "checkpoints").exists()


def test_bad_lines_can_be_skipped_in_pairs(tfm: Tfm, corpus: Path) -> None:
    lines = (corpus / "train.de").read_bytes().split(b"\n")
    lines[3] = b"\xff\xfe bad"
    (corpus / "train.de").write_bytes(b"\n".join(lines))
    done = tfm("train", *FILES, "--run", "r", "--max-steps", 1, *TINY_FLAGS, "--set", "data.bad_lines=skip")
    assert done.returncode == 0, error_of(done)
    assert "dropped: 1 empty" in error_of(done)


@pytest.mark.parametrize("arguments", [["data", "--src", "locked"], ["translate", "--input", "locked"]])
def test_a_file_that_may_not_be_read(installed: Tfm, tiny_run: Path, tmp_path: Path, arguments: list[str]) -> None:
    write_lines(tmp_path / "locked", ["one"]).chmod(0)
    more = ["--tgt", "locked"] if "data" in arguments else ["--run", tiny_run]
    done = installed(*arguments, *more, preexec_fn=without_privileges)
    assert (done.returncode, error_of(done)) == (3, "tfm: error: cannot read locked: Permission denied\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_may_not_be_written(tfm: Tfm, corpus: Path) -> None:
    (corpus / "locked").mkdir(mode=0o500)
    done = tfm("train", *FILES, "--run", "locked/r", *TINY_FLAGS)
    assert done.returncode == 5
    assert "Permission denied" in error_of(done)


def test_a_run_directory_that_cannot_be_one(tfm: Tfm, corpus: Path) -> None:
    done = tfm("train", *FILES, "--run", "train.en/r", *TINY_FLAGS)
    assert done.returncode == 5
    assert "cannot create" in error_of(done)


def test_a_model_too_large_for_the_memory(tfm: Tfm, corpus: Path) -> None:
    huge = ["--set", "model.d_model=100000", "--set", "model.d_ff=1000000", "--run", "r"]
    huge += ["--precision", "fp32", "--set", "training.ranks=1"]  # its products are not timed, which fill the memory
    done = tfm("train", *FILES, *TINY_FLAGS, *huge)
    assert done.returncode == 5, error_of(done)
    assert "not enough memory" in error_of(done)


def test_control_characters_in_names_do_not_reach_the_terminal(tfm: Tfm) -> None:
    done = tfm("translate", "--run", "a\x1b[31mb", "x")
    assert b"\x1b" not in done.stderr
    assert "a\\x1b[31mb" in error_of(done)


@pytest.mark.parametrize("name", ["out.zip", "out.Z", "out.docx", "out.po", "out.srt", "out.json", "out.csv.gz"])
def test_lines_go_into_no_file_of_another_format(tfm: Tfm, tiny_run: Path, tmp_path: Path, name: str) -> None:
    done = tfm("translate", "--run", tiny_run, "--output", name, "one two")
    assert (done.returncode, done.stdout, (tmp_path / name).exists()) == (2, b"", False)
    assert f"tfm: error: --output {name}: what is written is no " in error_of(done)
    if name == "out.json":
        done = tfm("translate", "--run", tiny_run, "--output", name, "--json", "one two")
        assert done.returncode == 0 and (tmp_path / name).read_bytes().startswith(b"{")


def test_a_page_goes_into_no_file_of_another_format(tfm: Tfm, tiny_run: Path) -> None:
    done = tfm("explain", "--run", tiny_run, "one two", "--output", "x.pdf")
    assert done.returncode == 2 and "--output x.pdf: what is written is no .pdf" in error_of(done)


@pytest.mark.skipif(not Path("/dev/stdin").exists(), reason="this system has no such file")
def test_a_pipe_with_a_name_is_known_by_how_it_begins(tfm: Tfm, tiny_run: Path) -> None:
    done = tfm("translate", "--run", tiny_run, "--input", "/dev/stdin", stdin=b"WEBVTT\nKind: captions\n\n00:01.000\n")
    assert (done.returncode, done.stdout) == (3, b"")
    assert "/dev/stdin looks like WebVTT: its lines are not sentences; give it the suffix .vtt" in error_of(done)
