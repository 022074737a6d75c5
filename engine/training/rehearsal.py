"""A few updates and a validation, timed, to tell beforehand what a run will take. Nothing of them is kept."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from ...seq2seq.training.update import Trainer
from ..device import peak_memory
from ..workers.ranks import Ranks

WARM_UP = 3
"""Updates that are not timed: the first ones find memory, and prepare code for their shapes."""
FEWEST_UPDATES, MOST_UPDATES = 8, 60
"""That are timed .."""
ENOUGH_SECONDS = 30.0
""".. until so much time has gone."""


@dataclass(frozen=True)
class Rehearsal:
    """What was measured.

    Attributes:
        seconds_per_update, seconds_per_validation: Of the clock.
        memory: Bytes, at the most, of all processes of this machine together, libraries included; on a GPU those of
            tensors on it. None where the system does not tell.
    """

    seconds_per_update: float
    seconds_per_validation: float
    memory: int | None

    def seconds(self, updates: int, validate_every: int) -> float:
        """What so many updates take, with a validation after each `validate_every` of them and at the end."""
        validations = -(-updates // validate_every)
        return updates * self.seconds_per_update + validations * self.seconds_per_validation


def rehearse(trainer: Trainer, rate: Callable[[int], float], ranks: Ranks, validate: Callable[[], object]) -> Rehearsal:
    """Makes updates and a validation.

    Args:
        trainer: Its model changes.
        rate: The learning rate of each update, by its number.
        ranks: The other processes, waiting for updates.
        validate: Makes a validation.
    """
    ends = [time.monotonic()]

    def go_on() -> bool:
        timed = len(ends) - 1 - WARM_UP
        return timed < FEWEST_UPDATES or (timed < MOST_UPDATES and ends[-1] - ends[0] < ENOUGH_SECONDS)

    while go_on():
        learning_rate = rate(trainer.progress.step + 1)
        ranks.go_on(learning_rate)
        trainer.update(learning_rate)
        ends.append(time.monotonic())
    seconds = [after - before for before, after in zip(ends[WARM_UP:], ends[WARM_UP + 1 :], strict=False)]
    trainer.model.eval()
    with ranks.others_idle():
        before = time.monotonic()
        validate()
        validation = time.monotonic() - before
    return Rehearsal(statistics.fmean(seconds), validation, _memory(next(trainer.model.parameters()).device, ranks))


def _memory(device: torch.device, ranks: Ranks) -> int | None:
    """Of all ranks that the leader has started, or of one GPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return peak_memory(1 if ranks.threads is None else ranks.count)
