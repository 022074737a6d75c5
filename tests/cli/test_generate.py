"""`tfm generate`, and `tfm train --text`: a language model from a text file, and texts from it."""

import json
from pathlib import Path

import pytest
from helpers.command import TINY_FLAGS, Tfm, error_of, write_lines

TEXT_FLAGS = [
    flag.replace("num_encoder_layers=1", "num_encoder_layers=0").replace("optimizer=muon", "optimizer=adamw")
    for flag in TINY_FLAGS
]


@pytest.fixture(scope="module")
def text_run(forked: Tfm, tmp_path_factory: pytest.TempPathFactory, sentences: list[tuple[str, str]]) -> Path:
    """A language model trained for a few steps by the command itself; not to be changed."""
    folder = tmp_path_factory.mktemp("text")
    write_lines(folder / "stories.txt", [src for src, _ in sentences])
    done = forked("train", "--text", "stories.txt", "--max-steps", 20, *TEXT_FLAGS, cwd=folder)
    assert done.returncode == 0, done.stderr.decode()
    said = done.stderr.decode()
    assert "text alone: a language model, preset text-100k" in said
    assert "perplexity" in said and "per byte" in said
    assert "Generate with: tfm generate --run runs/stories" in said
    return folder / "runs" / "stories"


def test_beginnings_as_arguments(tfm: Tfm, text_run: Path) -> None:
    done = tfm("generate", "--run", text_run, "--seed", 4, "one two", "", "three")
    assert done.returncode == 0, error_of(done)
    lines = done.stdout.decode().split("\n")
    assert len(lines) == 4
    assert lines[0].startswith("one two") and lines[2].startswith("three")
    assert tfm("generate", "--run", text_run, "--seed", 4, "one two", "", "three").stdout == done.stdout
    assert tfm("generate", "--run", text_run, "--seed", 5, "one two", "", "three").stdout != done.stdout


def test_a_file_gives_what_stdin_gives(tfm: Tfm, text_run: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "in.txt", ["one", "two three", ""])
    done = tfm("generate", "--run", text_run, "--input", "in.txt", "--output", "out.txt", "--top-k", 5)
    assert done.returncode == 0, error_of(done)
    streamed = tfm("generate", "--run", text_run, "--top-k", 5, stdin=(tmp_path / "in.txt").read_bytes())
    assert (tmp_path / "out.txt").read_bytes() == streamed.stdout
    assert streamed.stdout.count(b"\n") == 3


def test_json(tfm: Tfm, text_run: Path) -> None:
    done = tfm("generate", "--run", text_run, "--json", "--max-length", 6, "one")
    record = json.loads(done.stdout)
    assert record["beginning"] == "one" and record["text"].startswith("one")
    assert len(record["tokens"]) < 6 and record["log_prob"] < 0


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["--temperature", "0", "x"], 2, "temperature must be above 0"),
        (["--top-p", "2", "x"], 2, "top_p must be above 0 and at most 1"),
        (["--input", "no.txt"], 3, "cannot read no.txt: no such file"),
        (["--input", "no.txt", "x"], 2, "give beginnings as arguments or --input, not both"),
        (["--max-length", "10000", "x"], 2, "a text of this model has at most"),
    ],
)
def test_mistakes_are_said_in_one_line(tfm: Tfm, text_run: Path, arguments: list[str], code: int, reason: str) -> None:
    done = tfm("generate", "--run", text_run, *arguments)
    assert done.returncode == code
    assert reason in error_of(done)
    assert done.stdout == b""


def test_a_beginning_that_cannot_be_continued_does_not_end_the_others(tfm: Tfm, text_run: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "in.txt", ["one", "two " * 100, "three"])
    done = tfm("generate", "--run", text_run, "--input", "in.txt", "--output", "out.txt")
    assert done.returncode == 3
    assert "line 2: the beginning has 100 pieces, but a text has at most" in done.stderr.decode()
    assert "beginnings that could not be continued, and are in the output unchanged: 1" in error_of(done)
    first, *others, last = (tmp_path / "out.txt").read_text(encoding="utf-8").splitlines()
    assert first.startswith("one") and last.startswith("three")
    assert others == [("two " * 100).strip()]
    done = tfm("generate", "--run", text_run, "--input", "in.txt", "--json")
    record = json.loads(done.stdout.splitlines()[1])
    assert record.keys() == {"beginning", "text", "problem"} and "100 pieces" in record["problem"]


def test_other_commands_name_the_one_that_can(tfm: Tfm, text_run: Path, tiny_run: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "a.txt", ["one"])
    for command in (["translate", "x"], ["evaluate", "--src", "a.txt", "--tgt", "a.txt"]):
        done = tfm(*command[:1], "--run", text_run, *command[1:])
        assert done.returncode == 2
        assert "is a language model, and this needs a translator; use tfm generate" in error_of(done)
    done = tfm("generate", "--run", tiny_run, "x")
    assert done.returncode == 2
    assert "is a translator, and this needs a language model; use tfm translate" in error_of(done)
    done = tfm("export", "--run", text_run, "--output", "x.ct2")
    assert done.returncode == 4
    assert "tfm export writes encoder-decoders, and this model is decoder_only" in error_of(done)


def test_info_says_what_machine_it_is(tfm: Tfm, text_run: Path, tiny_run: Path) -> None:
    assert "architecture  language model (decoder_only)" in tfm("info", "--run", text_run).stdout.decode()
    assert "architecture  translator (encoder_decoder)" in tfm("info", "--run", tiny_run).stdout.decode()


def test_a_stopped_language_model_goes_on(tfm: Tfm, tmp_path: Path, sentences: list[tuple[str, str]]) -> None:
    write_lines(tmp_path / "t.txt", [src for src, _ in sentences])
    write_lines(tmp_path / "d.txt", [src for src, _ in sentences[:20]])
    train = ["train", "--text", "t.txt", "--dev-text", "d.txt", *TEXT_FLAGS, "--set", "training.schedule=constant"]
    assert tfm(*train, "--run", "once", "--max-steps", 10).returncode == 0
    assert tfm(*train, "--run", "twice", "--max-steps", 5).returncode == 0
    again = tfm(*train, "--run", "twice", "--max-steps", 10)
    assert again.returncode == 0 and "continuing at step 5" in again.stderr.decode()
    once, twice = (
        (tmp_path / run / "checkpoints/step-000010/model.safetensors").read_bytes() for run in ("once", "twice")
    )
    assert once == twice


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--text", "t.txt", "--src", "t.txt", "--tgt", "t.txt"], "give either --text, for a language model, or pairs"),
        (["--text", "t.txt", "--dev", "toy"], "the validation set of a language model is text: --dev-text"),
        (["--dev-text", "t.txt"], "no training data: give --src and --tgt, --data or --text"),
        (["--text", "t.txt", "--config", "toy"], "--text needs model.architecture decoder_only"),
        (
            ["--config", "toy-decoder", "--set", "tokenizer.separate=true"],
            "one vocabulary; leave tokenizer.separate out",
        ),
        (["--text", "t.txt", "--set", "training.best_metric=bleu"], "best_metric of a language model must be loss"),
    ],
)
def test_what_does_not_suit_the_machine_is_refused(tfm: Tfm, tmp_path: Path, arguments: list[str], reason: str) -> None:
    write_lines(tmp_path / "t.txt", ["one two"] * 30)
    done = tfm("train", *arguments)
    assert done.returncode == 2, error_of(done)
    assert reason in error_of(done)


def test_two_runs_are_compared_only_if_both_translate(tfm: Tfm, tiny_run: Path, text_run: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "a.en", ["one"])
    write_lines(tmp_path / "a.de", ["eins"])
    refused = tfm("evaluate", "--run", tiny_run, "--run", text_run, "--src", "a.en", "--tgt", "a.de")
    assert refused.returncode == 2 and "is a language model, and this needs a translator" in error_of(refused)
    assert "translating" not in error_of(refused), "before the first is asked for anything"
