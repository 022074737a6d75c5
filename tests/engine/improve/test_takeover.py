"""A better model becomes a checkpoint of the run: the best and the last, with its own vocabulary."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tfm.data.config import TokenizerConfig
from tfm.data.tokenizer import Tokenizer
from tfm.data.vocabulary_training import build_tokenizer
from tfm.engine.improve.takeover import take_over
from tfm.engine.runs.checkpoint import checkpoint_step, damage
from tfm.engine.runs.directory import RunDirectory, best_checkpoint, improved_with
from tfm.engine.runs.weights import load_model, model_tensors, write_checkpoint
from tfm.engine.translator import Translator
from tfm.seq2seq.model.encoder_decoder import Transformer
from tfm.system.errors import ModelError


@pytest.fixture
def run(run_directory: Path, tmp_path: Path) -> RunDirectory:
    return RunDirectory(shutil.copytree(run_directory, tmp_path / "run"))


@pytest.fixture
def other(
    tmp_path: Path, make_model: Callable[[int], Transformer], describe_model: Callable, tokenizer: Tokenizer
) -> Path:
    """A checkpoint of another run, with a score that is lower than those of the run."""
    model, target = make_model(99), RunDirectory(tmp_path / "other").checkpoint_path(7)
    progress = {"step": 7, "epoch": 1, "tokens": 700, "stopped_early": False}
    state = {"score": 0.5, "loss": 1.0, "max_steps": 7, "data": "other", "environment": {}, "progress": progress}
    write_checkpoint(
        target,
        tensors={"model": model_tensors(model)},
        description=describe_model(model),
        state=state,
        vocabulary=tokenizer.files(),
    )
    return target


def test_it_is_the_best_and_the_last_and_the_others_stay(run: RunDirectory, other: Path) -> None:
    before = run.checkpoints()
    placed = take_over(run, other, "a text")
    assert run.checkpoints() == [*before, placed] and checkpoint_step(placed) == 31
    assert not damage(placed) and run.is_improved
    assert run.find_model("best").checkpoint == run.find_model("last").checkpoint == placed
    assert best_checkpoint(run.checkpoints()) == placed
    ours, theirs = load_model(placed)[0].state_dict(), load_model(other)[0].state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert take_over(run, other, "a text") == placed and run.checkpoints() == [*before, placed]


def test_training_goes_on_from_its_own_and_prunes_no_other(run: RunDirectory, other: Path) -> None:
    placed = take_over(run, other, "a text")
    assert run.prune(keep=1) == []
    assert [checkpoint_step(path) for path in run.checkpoints()] == [20, 30, checkpoint_step(placed)]


def test_a_damaged_one_gives_way_to_the_best_before_it(run: RunDirectory, other: Path) -> None:
    placed = take_over(run, other, "a text")
    weights = placed / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    warned: list[str] = []
    assert checkpoint_step(run.find_model("best", warn=warned.append).checkpoint) == 20
    assert len(warned) == 1


def test_its_vocabulary_is_its_own_and_that_of_others_is_still_refused(run: RunDirectory, other: Path) -> None:
    expected = Translator.load(run.path, checkpoint="20").translate(["the cat sees the house."])
    foreign = build_tokenizer(zip(["abc abd"] * 9, ["xyz"] * 9, strict=True), TokenizerConfig(vocab_size=300))
    placed = take_over(run, other, "a text")
    assert Translator.load(run.path, checkpoint="20").translate(["the cat sees the house."]) == expected
    shutil.rmtree(run.tokenizer)
    foreign.save(run.tokenizer)
    assert Translator.load(run.path).checkpoint == placed
    with pytest.raises(ModelError, match="not the tokenizer"):
        Translator.load(run.path, checkpoint="20")
    assert run.starting_tokenizer(None, None) is None
    assert RunDirectory(run.path.parent / "new").starting_tokenizer(None, run.path) == placed


def test_only_improve_says_so(run: RunDirectory) -> None:
    assert not run.is_improved and improved_with({}) == ""
