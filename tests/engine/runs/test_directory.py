"""A run directory that is moved, or removed, while it is trained."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.tiny_run import Recorder, TrainTiny

from tfm.engine.runs.directory import RunDirectory
from tfm.seq2seq.training.update import Trainer
from tfm.system.errors import EnvironmentFault
from tfm.system.files import sha256_file

SETTINGS: dict[str, Any] = {"log_every": 1}

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and directories that move")


class Deed(Recorder):
    """Does something to the run directory while an update is computed, or the validation after it.

    Args:
        at: Number of the update.
        do: What.
        in_validation: Whether it waits for the validation.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, at: int, do: Callable[[], object], *, in_validation: bool = False
    ) -> None:
        super().__init__()
        self._do, self._beginning = do, f"step {at}: validation" if in_validation else "-"
        update = Trainer.update

        def watched(trainer: Trainer, learning_rate: float) -> float | None:
            figures = update(trainer, learning_rate)
            if trainer.progress.step == at and not in_validation:
                do()
            return figures

        monkeypatch.setattr(Trainer, "update", watched)

    def say(self, text: str) -> None:
        if text.startswith(self._beginning):
            self._do()


def final(run: Path) -> dict[str, str]:
    return {
        **{path.name: sha256_file(path) for path in RunDirectory(run).checkpoints()[-1].iterdir()},
        "metrics": sha256_file(run / "metrics.jsonl"),
    }


@pytest.fixture(scope="module")
def uninterrupted(train_tiny: TrainTiny, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What comes of a run that nobody moves."""
    run = tmp_path_factory.mktemp("whole") / "run"
    train_tiny(run, **SETTINGS)
    return final(run)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(("at", "in_validation"), [(2, False), (5, False), (8, False), (15, False), (8, True)])
def test_a_run_that_is_moved_stops_in_one_piece(
    train_tiny: TrainTiny,
    uninterrupted: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    at: int,
    in_validation: bool,
    again: bool,
) -> None:
    """Also where another directory has got its name by then. What it has done is saved where it is."""
    run, moved = tmp_path / "run", tmp_path / "a new name"

    def move() -> None:
        run.rename(moved)
        if again:
            run.mkdir()

    with pytest.raises(EnvironmentFault) as caught:
        train_tiny(run, reporter=Deed(monkeypatch, at, move, in_validation=in_validation), **SETTINGS)
    assert f"{run} was moved to '{moved}'; go on there" in str(caught.value)
    assert f"--run '{moved}'" in str(caught.value)
    assert list(run.iterdir()) == [] if again else not run.exists()
    assert int(RunDirectory(moved).checkpoints()[-1].name.removeprefix("step-")) == at
    monkeypatch.undo()
    assert train_tiny(moved, **SETTINGS).step == 24
    assert final(moved) == uninterrupted


def test_a_run_that_is_removed_stops_and_makes_no_other(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    with pytest.raises(EnvironmentFault, match=r"run was moved or removed while it was being trained; if it was moved"):
        train_tiny(run, reporter=Deed(monkeypatch, 5, lambda: shutil.rmtree(run)))
    assert not run.exists()


def test_a_name_that_leads_to_the_same_directory_is_no_move(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"

    def move_and_link() -> None:
        run.rename(tmp_path / "elsewhere")
        run.symlink_to(tmp_path / "elsewhere")

    assert train_tiny(run, reporter=Deed(monkeypatch, 5, move_and_link)).step == 24
