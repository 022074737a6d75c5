"""What is logged of a run under way, and the same figures for TensorBoard; one line where that is missing."""

import os
from pathlib import Path

import pytest
from helpers.command import TINY_FLAGS, error_of, records, run_command
from helpers.tiny_run import TrainTiny

from tfm.engine.runs.curves import Panel

ACCUMULATOR = "tensorboard.backend.event_processing.event_accumulator"


@pytest.mark.parametrize(("between", "drawn"), [(1e9, 1), (0.0, 3)])
def test_the_curve_is_drawn_now_and_then_and_at_the_end(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, between: float, drawn: int
) -> None:
    """There are three validations, the last one at the end."""
    curves: list[bytes] = []

    def draw(drawn: list[Panel]) -> bytes:
        curves.append(b"of %d points" % sum(len(curve.steps) for curve in drawn[0].curves))
        return curves[-1]

    monkeypatch.setattr("tfm.engine.runs.log.picture", draw)
    monkeypatch.setattr("tfm.engine.runs.log._BETWEEN_CURVES", between)
    train_tiny(tmp_path / "run")
    assert len(curves) == drawn
    assert (tmp_path / "run" / "learning_curve.png").read_bytes() == curves[-1] == b"of 11 points"


@pytest.mark.filterwarnings("ignore")
def test_the_figures_of_a_run_that_was_continued(tmp_path: Path, corpus: dict[str, list[str]]) -> None:
    accumulator = pytest.importorskip(ACCUMULATOR)
    files = [word for key, (name, *_) in corpus.items() for word in (f"--{key.replace('_', '-')}", name)]
    flags = [*files, "--run", "r", *TINY_FLAGS, "--set", "training.tensorboard=true", "--set", "training.ranks=1"]
    for steps in (10, 20):
        done = run_command("train", *flags, "--max-steps", steps, cwd=tmp_path)
        assert done.returncode == 0, error_of(done)
    events = accumulator.EventAccumulator(str(tmp_path / "r" / "tensorboard")).Reload()
    logged = records(tmp_path / "r" / "metrics.jsonl")
    for kind, name in (("train", "loss"), ("validation", "bleu"), ("train", "lr")):
        expected = [(one["step"], one[name]) for one in logged if one["kind"] == kind]
        found = [(event.step, event.value) for event in events.Scalars(f"{kind}/{name}")]
        assert found == [(step, pytest.approx(value, rel=1e-5)) for step, value in expected]


def test_without_tensorboard_one_line_says_what_to_install_before_the_corpus_is_read(
    tmp_path: Path, corpus: dict[str, list[str]]
) -> None:
    (tmp_path / "blocked" / "tensorboard").mkdir(parents=True)
    missing = "raise ModuleNotFoundError(\"No module named 'tensorboard'\")"
    (tmp_path / "blocked" / "tensorboard" / "__init__.py").write_text(missing)
    path = os.pathsep.join([str(tmp_path / "blocked"), os.environ.get("PYTHONPATH", "")])
    files = [word for key in ("src", "tgt") for word in (f"--{key}", corpus[key][0])]
    flags = [*files, "--run", "r", "--set", "training.tensorboard=true"]
    done = run_command("train", *flags, cwd=tmp_path, env={"PYTHONPATH": path})
    assert done.returncode == 5
    assert error_of(done).splitlines()[-1].endswith("pip install 'tfm[tensorboard]'")
    assert "building a" not in error_of(done)
    assert not (tmp_path / "r").exists()
