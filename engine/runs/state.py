"""`state.json`: where a run stood when a checkpoint was written, besides its tensors."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...seq2seq.training.progress import Progress
from ...system.errors import ModelError
from ...system.reporter import Reporter
from .checkpoint import checkpoint_step, read_state
from .directory import RunDirectory


@dataclass(frozen=True)
class RunState:
    """The content of `state.json`.

    Attributes:
        progress: Where the loop stood.
        max_steps: Updates in all, as planned then; None while that is not known.
        data: A hash of the texts that the run is trained and validated on.
        environment: What bit-identical results depend on besides the code and the data.
    """

    progress: Progress
    max_steps: int | None
    data: str
    environment: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """With the validation score and loss of this very step beside it, by which checkpoints are ranked."""
        return asdict(self) | {"score": self.progress.score, "loss": self.progress.loss}


@dataclass(frozen=True)
class Saved:
    """A sound checkpoint to go on from."""

    checkpoint: Path
    state: RunState

    @property
    def step(self) -> int:
        """The step at which it was written."""
        return self.state.progress.step


def newest_saved(run: RunDirectory, reporter: Reporter) -> Saved | None:
    """What a run goes on from; None if it has not been saved yet. Warns of damaged checkpoints.

    Raises:
        ModelError: All checkpoints are damaged: starting anew would take the place of what may still be rescued.
    """
    sound, problems = run.sound_checkpoints()
    if problems and not sound:
        raise ModelError(
            f"no valid checkpoint in {run} ({'; '.join(problems)}); use a new --run, or remove the damaged"
        )
    for problem in problems:
        reporter.warn(f"{problem}; continuing from step {checkpoint_step(sound[-1]):,}")
    return _saved(sound[-1]) if sound else None


def _saved(checkpoint: Path) -> Saved:
    state = read_state(checkpoint)
    try:
        kept = RunState(Progress(**state["progress"]), state["max_steps"], state["data"], state["environment"])
    except KeyError as error:
        raise ModelError(f"{checkpoint / 'state.json'} is damaged: it has no {error}") from error
    return Saved(checkpoint, kept)
