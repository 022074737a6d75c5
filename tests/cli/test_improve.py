"""`tfm improve`: from a run and a text to a better run, or to the same."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from helpers.command import Completed, Tfm, error_of, write_lines
from helpers.little_language import FILES, IMPROVE, MORE, TRAIN, TRAINED, write_language

from tfm.data.tokenizer import Tokenizer
from tfm.engine.improve.models import Trial
from tfm.engine.improve.sources import TAGS, read_pairs
from tfm.engine.runs.directory import RunDirectory


@pytest.fixture(scope="module")
def trained(forked: Tfm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the language, and a run that has learned little of it; not to be changed."""
    folder = tmp_path_factory.mktemp("trained")
    write_language(folder)
    done = forked(*TRAIN, cwd=folder)
    assert done.returncode == 0, error_of(done)
    return folder


@pytest.fixture(scope="module")
def improved(forked: Tfm, trained: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Completed]:
    """A copy of it whose run was improved, and what the command said; not to be changed."""
    folder = shutil.copytree(trained, tmp_path_factory.mktemp("improved") / "copy")
    done = forked(*IMPROVE, "--src-text", "text.en", "--json", cwd=folder)
    assert done.returncode == 0, error_of(done)
    return folder, done


@pytest.fixture
def in_copy(forked: Tfm, trained: Path, tmp_path: Path) -> tuple[Path, Callable[..., Completed]]:
    """A copy of its own of the run that has learned little, and the command started there."""
    folder = shutil.copytree(trained, tmp_path / "copy")
    return folder, partial(forked, cwd=folder)


def bleu(tfm: Callable[..., Completed], *flags: str) -> float:
    done = tfm("evaluate", "--run", "r", "--src", "dev.en", "--tgt", "dev.de", "--json", *flags)
    assert done.returncode == 0, error_of(done)
    return json.loads(done.stdout)["scores"]["bleu"]


def test_a_run_becomes_better_and_says_by_how_much(forked: Tfm, improved: tuple[Path, Completed]) -> None:
    folder, done = improved
    said = json.loads(done.stdout)
    tfm = partial(forked, cwd=folder)
    assert said["step"] == said["before"] + 1
    assert said["trial"]["after"] > said["trial"]["before"] + 10 and said["trial"]["p_value"] < 0.05
    better = [one for one in said["stages"] if Trial(**one["trial"]).better]
    assert bool(list(improved[0].rglob("whole"))) == (len(better) > 1)  # one alone was compared with the first model
    assert bleu(tfm) == pytest.approx(said["trial"]["after"])
    assert bleu(tfm, "--checkpoint", "last") == pytest.approx(said["trial"]["after"])
    assert bleu(tfm, "--checkpoint", str(said["before"])) == pytest.approx(said["trial"]["before"])
    assert said["seconds"].keys() >= {"training the opposite direction", "translating", "training models"}


def test_made_pairs_have_tags_that_the_vocabulary_knows_and_no_line_of_the_validation_set(
    improved: tuple[Path, Completed],
) -> None:
    folder, _ = improved
    (round_,) = (folder / "r" / "improve").glob("*/*/round-1")
    back, forward = (read_pairs(round_ / f"{kind}-kept.jsonl") for kind in ("back", "forward"))
    assert all(src.startswith(f"{TAGS['back']} ") for src, _ in back) and len(back) > 50
    assert all(src.startswith(f"{TAGS['forward']} ") for src, _ in forward)
    tokenizer = Tokenizer.load(round_ / "model" / "tokenizer")
    assert TAGS["back"] in tokenizer.src.texts  # a piece, and not spelt as bytes
    dev, train = ((folder / f"{name}.de").read_text(encoding="utf-8").splitlines() for name in ("dev", "train"))
    assert not {tgt for _, tgt in back} & {*dev, *train}
    text = (folder / "text.de").read_text(encoding="utf-8").splitlines()
    assert set(text) & {*dev, *train}  # so that something was left out


def test_an_improved_run_is_used_as_any_other(forked: Tfm, improved: tuple[Path, Completed], tmp_path: Path) -> None:
    folder, _ = improved
    shutil.copytree(folder, tmp_path / "copy")
    tfm = partial(forked, cwd=tmp_path / "copy")
    assert "tfm improve has made it better since" in tfm("info", "--run", "r").stdout.decode()
    assert tfm(*TRAIN).returncode == 0  # its training has come to its end
    more = tfm(*TRAIN[:-4], "--run", "r", "--max-steps", "40")
    assert more.returncode == 2 and "was improved after its training" in error_of(more)
    tuned = tfm("train", *FILES, "--init-from", "r", "--run", "tuned", "--max-steps", "3", "--set", "training.ranks=1")
    assert tuned.returncode == 0, error_of(tuned)
    new, old = (RunDirectory(tmp_path / "copy" / name).find_model().description for name in ("r", "tuned"))
    assert new.tokenizer_sha256 == old.tokenizer_sha256


def test_what_is_done_is_not_done_again(forked: Tfm, improved: tuple[Path, Completed]) -> None:
    folder, done = improved
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}
    again = forked(*IMPROVE, "--src-text", "text.en", "--json", cwd=folder)
    assert json.loads(again.stdout) == json.loads(done.stdout)
    after = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}
    assert {path for path in before if after[path] != before[path]} == set()


def test_unrelated_text_leaves_the_run_as_it_was(in_copy: tuple[Path, Callable[..., Completed]]) -> None:
    folder, tfm = in_copy
    write_lines(folder / "other.de", [f"{i * i} kilometres of {'xyz' * (i % 7)} rain" for i in range(150)])
    run = ["improve", "--run", "r", "--tgt-text", "other.de", *TRAINED, "--set", "training.max_steps=10"]
    before = bleu(tfm)
    done = tfm(*run)
    assert done.returncode == 0, error_of(done)
    assert "r stays as it was" in done.stdout.decode()
    assert bleu(tfm) == before
    assert [path.name for path in RunDirectory(folder / "r").checkpoints()] == ["step-000010", "step-000020"]


def test_what_cannot_be_done_is_said_in_one_line(in_copy: tuple[Path, Callable[..., Completed]]) -> None:
    folder, tfm = in_copy
    write_lines(folder / "empty", [])
    held = (folder / "train.de").read_bytes()

    def refused(*flags: str, code: int) -> str:
        done = tfm("improve", "--run", "r", *(flags or ("--tgt-text", "text.de")))
        assert done.returncode == code and done.stdout == b""
        line = error_of(done).splitlines()[-1]
        assert line.startswith("tfm: error: ")
        return line

    assert "cannot read nowhere: no such file" in refused("--tgt-text", "nowhere", code=3)
    assert "has no line to learn from: it is empty" in refused("--tgt-text", "empty", code=3)
    assert "among the training pairs" in refused("--tgt-text", "train.de", code=3)
    assert "in the validation set" in refused("--tgt-text", "dev.de", code=3)
    assert "no time of day" not in refused("--tgt-text", "text.de", "--until", "25:00", code=2)
    assert "not both" in refused("--tgt-text", "text.de", "--until", "07:00", "--max-time", "1h", code=2)
    assert "--max-time: a duration" in refused("--tgt-text", "text.de", "--max-time", "1x", code=2)
    assert "there is no run" in error_of(tfm("improve", "--run", "other", "--tgt-text", "text.de"))
    (folder / "train.de").rename(folder / "moved.de")
    line = refused(code=3)
    assert "cannot read train.de: no such file" in line and "say once where they are now, with --src, --tgt" in line
    moved = [word.replace("train.de", "moved.de") for word in TRAIN]
    assert tfm(*moved).returncode == 0  # as it was told
    (folder / "moved.de").write_bytes(held.replace(b"eins", b"Eins"))
    assert "changed since it was trained" in refused(code=3)
    (folder / "moved.de").write_bytes(held)
    write_lines(folder / "dev.en", [""] * 40)
    assert "has no validation set" in refused(code=3)


def test_a_model_of_another_purpose_is_refused(forked: Tfm, tmp_path: Path) -> None:
    kept = Path(__file__).parents[1] / "keepsakes" / "encoder_only"
    shutil.copytree(kept, tmp_path / "r")
    write_lines(tmp_path / "text.de", ["eins"])
    done = forked("improve", "--run", "r", "--tgt-text", "text.de", cwd=tmp_path)
    assert done.returncode == 2 and "is a sentence encoder, and this needs a translator" in error_of(done)


def test_another_text_in_another_time_takes_the_opposite_direction_that_is_there(
    in_copy: tuple[Path, Callable[..., Completed]],
) -> None:
    folder, tfm = in_copy
    lines = (folder / "text.de").read_text(encoding="utf-8").splitlines()
    write_lines(folder / "half.de", lines[::2])
    write_lines(folder / "third.de", lines[::3])
    planned: list[str | None] = []
    for text, time in (("text.de", "5m"), ("half.de", "4m"), ("third.de", "9m")):
        done = tfm("improve", "--run", "r", "--tgt-text", text, *TRAINED, *MORE, "--max-time", time, "--json")
        assert done.returncode == 0, error_of(done)
        (opposite,) = (folder / "r" / "improve").glob("*/opposite")
        planned.append(RunDirectory(opposite).configuration().training.max_time)
    assert planned[0] == planned[1] != planned[2]  # one that had less time is trained anew


def test_time_ends_it(in_copy: tuple[Path, Callable[..., Completed]]) -> None:
    folder, tfm = in_copy
    limited = ["improve", "--run", "r", "--tgt-text", "text.de", *TRAINED, *MORE, "--max-time", "1s", "--json"]
    done = tfm(*limited)
    assert done.returncode == 0, error_of(done)
    assert len(json.loads(done.stdout)["stages"]) <= 1
    (verdict,) = (folder / "r" / "improve").glob("*/*/verdict.json")
    verdict.unlink()  # as if it had been stopped just before
    late = tfm(*limited)
    assert late.returncode == 2 and "no time is left to improve r" in error_of(late)
