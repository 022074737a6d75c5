"""`tfm embed`: vectors and similarities of lines, in files that are complete or absent; what it refuses."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.command import TINY_FLAGS, Tfm, error_of, records, write_lines

from tfm.engine import Embedder, PieceEmbedder

ENCODER_FLAGS = [
    *TINY_FLAGS,
    *("--set", "model.architecture=encoder_only"),
    *("--set", "model.num_decoder_layers=0"),
    *("--set", "training.best_metric=retrieval"),
]
LINES = ["one two three", "", "four five", "six " * 60, "  ", "one two three"]


@pytest.fixture(scope="session")
def encoder_run(forked: Tfm, tmp_path_factory: pytest.TempPathFactory, sentences: list[tuple[str, str]]) -> Path:
    """A sentence encoder, trained for a few steps by the command itself; not to be changed."""
    folder = tmp_path_factory.mktemp("encoder")
    write_lines(folder / "train.tsv", ["\t".join(pair) for pair in sentences])
    done = forked("train", "--data", "train.tsv", "--max-steps", 5, "--run", "run", *ENCODER_FLAGS, cwd=folder)
    assert done.returncode == 0, done.stderr.decode()
    assert "Embed with: tfm embed --run run" in done.stderr.decode()
    return folder / "run"


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "lines.txt", LINES)


def test_a_npy_file_has_one_row_for_each_line(tfm: Tfm, encoder_run: Path, lines: Path, tmp_path: Path) -> None:
    done = tfm("embed", "--run", encoder_run, "--input", lines, "--output", "out.npy")
    said = error_of(done)
    assert done.returncode == 0 and done.stdout == b""
    assert "line 4 has" in said and "its vector is that of the first 31" in said
    assert "2 of 6 lines are blank: their vectors are zero" in said
    vectors = np.load(tmp_path / "out.npy")
    assert vectors.dtype == np.float32 and vectors.shape == (6, 16)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 0, 1, 1, 0, 1], abs=1e-5)
    np.testing.assert_allclose(vectors, Embedder.load(encoder_run).embed(LINES), atol=1e-6)
    np.testing.assert_allclose(vectors[0], vectors[5], atol=1e-6)
    assert not list(tmp_path.glob("*.partial"))


def test_json_lines_hold_the_text_and_the_same_vector(tfm: Tfm, encoder_run: Path, lines: Path, tmp_path: Path) -> None:
    assert tfm("embed", "--run", encoder_run, "-i", lines, "-o", "out.npy").returncode == 0
    assert tfm("embed", "--run", encoder_run, "-i", lines, "-o", "out.jsonl").returncode == 0
    found = records(tmp_path / "out.jsonl")
    assert [record["text"] for record in found] == LINES
    written = np.array([record["vector"] for record in found], dtype=np.float32)
    np.testing.assert_array_equal(written, np.load(tmp_path / "out.npy"))


def test_more_lines_than_fit_a_chunk(tfm: Tfm, encoder_run: Path, tmp_path: Path) -> None:
    texts = [f"{'one two ' * (i % 4)}three" for i in range(2345)]
    write_lines(tmp_path / "many.txt", texts)
    assert tfm("embed", "--run", encoder_run, "-i", "many.txt", "-o", "out.npy").returncode == 0
    vectors = np.load(tmp_path / "out.npy", mmap_mode="r")
    assert vectors.shape == (2345, 16)
    np.testing.assert_allclose(vectors[2340:], vectors[:5], atol=1e-5)


@pytest.mark.parametrize("name", ["out.npy", "out.jsonl"])
def test_no_lines_are_no_rows(tfm: Tfm, encoder_run: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "empty.txt").touch()
    assert tfm("embed", "--run", encoder_run, "-i", "empty.txt", "-o", name).returncode == 0
    if name.endswith("npy"):
        assert np.load(tmp_path / name).shape == (0, 16)
    else:
        assert (tmp_path / name).read_bytes() == b""


def test_arguments_and_standard_input_go_to_standard_output(tfm: Tfm, encoder_run: Path) -> None:
    given = tfm("embed", "--run", encoder_run, "one two", "three")
    piped = tfm("embed", "--run", encoder_run, stdin=b"one two\nthree\n")
    assert [json.loads(line)["text"] for line in given.stdout.splitlines()] == ["one two", "three"]
    for first, second in zip(given.stdout.splitlines(), piped.stdout.splitlines(), strict=True):
        np.testing.assert_allclose(json.loads(first)["vector"], json.loads(second)["vector"], atol=1e-6)


def test_a_translator_gives_a_vector_for_each_piece(tfm: Tfm, tiny_run: Path, lines: Path, tmp_path: Path) -> None:
    done = tfm("embed", "--run", tiny_run, "--pieces", "-i", lines, "-o", "out.jsonl")
    said = error_of(done)
    assert done.returncode == 0 and done.stdout == b"", said
    assert "line 4 has" in said and "only the first 31 have vectors" in said
    assert "2 of 6 lines are blank: they have no pieces" in said
    found = records(tmp_path / "out.jsonl")
    assert [record["text"] for record in found] == LINES
    expected = PieceEmbedder.load(tiny_run).embed_pieces(LINES)
    for record, one in zip(found, expected, strict=True):
        assert record["pieces"] == one.pieces
        np.testing.assert_array_equal(np.array(record["vectors"], np.float32).reshape(one.vectors.shape), one.vectors)
    assert found[0]["pieces"][-1] == "</s>" and found[0] == found[5]


def test_similarities_are_dot_products_of_the_vectors(tfm: Tfm, encoder_run: Path, corpus: Path) -> None:
    flags = ("embed", "--run", encoder_run, "--pairs", "--src", "dev.en", "--tgt", "dev.de")
    printed = tfm(*flags)
    assert printed.returncode == 0, error_of(printed)
    embedder = Embedder.load(encoder_run)
    sides = [embedder.embed((corpus / f"dev.{side}").read_text().splitlines()) for side in ("en", "de")]
    expected = (sides[0] * sides[1]).sum(axis=1)
    assert [float(line) for line in printed.stdout.split()] == pytest.approx(expected.tolist(), abs=6e-5)
    assert all(len(line.partition(b".")[2]) == 4 for line in printed.stdout.split())
    assert tfm(*flags, "--output", "similarities.txt").returncode == 0
    assert (corpus / "similarities.txt").read_bytes() == printed.stdout


@pytest.mark.parametrize("lengths", [(3, 2), (2, 3), (1000, 1001), (2001, 1000), (0, 1)])
def test_files_that_do_not_match_are_refused(
    tfm: Tfm, encoder_run: Path, tmp_path: Path, lengths: tuple[int, int]
) -> None:
    for name, length in zip(("a", "b"), lengths, strict=True):
        write_lines(tmp_path / name, ["one"] * length)
    done = tfm("embed", "--run", encoder_run, "--pairs", "--src", "a", "--tgt", "b", "--output", "out.txt")
    assert done.returncode == 3
    message = f"a and b do not match line by line: one ends after {min(lengths):,} lines, the other goes on"
    assert message in error_of(done)
    assert not (tmp_path / "out.txt").exists()


def test_blank_sides_are_said(tfm: Tfm, encoder_run: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "a", ["one", "", "two", ""])
    write_lines(tmp_path / "b", ["eins", "zwei", "", ""])
    done = tfm("embed", "--run", encoder_run, "--pairs", "--src", "a", "--tgt", "b")
    assert done.stdout.split()[1:] == [b"0.0000"] * 3
    assert "3 of 4 pairs have a blank side: their similarity is 0" in error_of(done)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["-i", "lines.txt", "-o", "out.txt"], "--output out.txt must end in .npy (NumPy) or .jsonl (JSON Lines)"),
        (["-i", "lines.txt", "-o", "out.npy.gz"], "--output out.npy.gz must end in .npy (NumPy) or .jsonl"),
        (["one", "-i", "lines.txt"], "give sentences as arguments or --input, not both"),
        (["--pairs", "--src", "lines.txt"], "--pairs compares two files: give --src and --tgt"),
        (["--pairs", "one"], "--pairs compares two files: give --src and --tgt"),
        (["--pieces", "--pairs", "--src", "lines.txt", "--tgt", "lines.txt"], "--pairs compares whole lines, --pieces"),
        (["--pieces", "one", "-o", "out.npy"], "--output out.npy must end in .jsonl: with --pieces each line has as"),
        (["--src", "lines.txt", "--tgt", "lines.txt"], "--src and --tgt are compared with --pairs"),
    ],
)
def test_contradictions_are_refused_in_one_line(
    tfm: Tfm, encoder_run: Path, lines: Path, flags: list[str], message: str
) -> None:
    del lines
    done = tfm("embed", "--run", encoder_run, *flags)
    assert done.returncode == 2
    assert message in error_of(done)
    assert len(error_of(done).splitlines()) == 1


@pytest.mark.parametrize("name", ["out.npy", "out.jsonl"])
def test_what_fails_leaves_no_file(tfm: Tfm, encoder_run: Path, tmp_path: Path, name: str) -> None:
    done = tfm("embed", "--run", encoder_run, "-i", "missing.txt", "-o", name)
    assert done.returncode == 3 and "cannot read missing.txt" in error_of(done)
    assert not list(tmp_path.glob("out*"))


def test_a_run_of_another_kind_is_refused_with_the_command_for_it(
    tfm: Tfm, encoder_run: Path, tiny_run: Path, corpus: Path
) -> None:
    done = tfm("embed", "--run", tiny_run, "one")
    assert done.returncode == 2
    assert f"{tiny_run} is a translator, and this needs a sentence encoder; use tfm translate" in error_of(done)
    sets = ("--src", corpus / "dev.en", "--tgt", corpus / "dev.de")
    for command in (["translate", "one"], ["generate", "one"], ["evaluate", *sets]):
        done = tfm(command[0], "--run", encoder_run, *command[1:])
        assert done.returncode == 2
        assert f"{encoder_run} is a sentence encoder, and this needs a" in error_of(done)
        assert error_of(done).rstrip().endswith("use tfm embed")
        assert error_of(done).count("tfm: error: ") == 1


def test_it_cannot_be_exported_and_says_so(tfm: Tfm, encoder_run: Path) -> None:
    pytest.importorskip("ctranslate2")
    done = tfm("export", "--run", encoder_run, "--output", "out")
    assert done.returncode == 4
    assert "tfm export writes encoder-decoders, and this model is encoder_only" in error_of(done)
    assert error_of(done).count("tfm: error: ") == 1


def test_vectors_of_a_model_that_has_only_guessed_words_are_warned_of(
    tfm: Tfm, encoder_run: Path, tmp_path: Path
) -> None:
    shutil.copytree(encoder_run, tmp_path / "guesser")
    config = tmp_path / "guesser" / "config.yaml"
    text = re.sub(r"objective:.*", "objective: masked_lm", config.read_text()).replace("retrieval", "loss")
    config.write_text(text)
    done = tfm("embed", "--run", "guesser", "one two")
    assert done.returncode == 0
    assert "guesser learned to guess hidden words (masked_lm)" in done.stderr.decode()
    assert b"masked_lm" not in tfm("embed", "--run", encoder_run, "one two").stderr
