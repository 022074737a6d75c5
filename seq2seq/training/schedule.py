"""The learning rate as a function of the step: linear warm-up to the peak, then a shape by name."""

import math
from dataclasses import dataclass, replace

from ..model.config import unknown
from .config import TrainingConfig

NO_LIMIT = 2**40
"""The number of updates of a run whose length is not known: more than anybody waits for."""


def learning_rate(step: int, config: TrainingConfig, max_steps: int) -> float:
    """The learning rate of one update.

    With w warm-up steps, N steps in all and peak p, for step t = 1 .. N:

    * warm-up, t <= w:   p * t / w
    * inverse_sqrt:      p * sqrt(w / t), the paper's schedule (section 5.3) with p = 1 / sqrt(d_model * w)
    * cosine:            p * (1 + cos(pi * (t - w) / (N - w))) / 2
    * trapezoid:         p, then over the last `decay_fraction` of N linearly down to 0 at step N + 1
    * constant:          p

    Args:
        step: t, from 1.
        config: Peak, warm-up and shape.
        max_steps: N.
    """
    peak, warmup = config.learning_rate, config.warmup_steps
    if step <= warmup:
        return peak * step / warmup
    match config.schedule:
        case "inverse_sqrt":
            return peak * math.sqrt(max(warmup, 1) / step)
        case "cosine":
            progress = (step - warmup) / max(max_steps - warmup, 1)
            return peak * (1 + math.cos(math.pi * min(progress, 1.0))) / 2
        case "trapezoid":
            decay_steps = max(round(config.decay_fraction * max_steps), 1)
            return peak * max(min((max_steps + 1 - step) / decay_steps, 1.0), 0.0)
        case "constant":
            return peak
        case _:
            raise unknown("schedule", config.schedule)


@dataclass(frozen=True)
class Finish:
    """The end of a run that was told to finish while it was under way, whatever its schedule.

    Attributes:
        since: Step s, the last one before the learning rate falls.
        until: Step u, the last one of the run.
        rate: Learning rate r at step s.
    """

    since: int
    until: int
    rate: float

    def learning_rate(self, step: int) -> float:
        """r * (u + 1 - t) / (u + 1 - s) for step t = s + 1 .. u: a straight line from r down to 0 at step u + 1."""
        return self.rate * max(self.until + 1 - step, 0) / (self.until + 1 - self.since)


def length_matters_after(config: TrainingConfig, max_steps: int) -> float:
    """The last step whose learning rate is the same in every longer run; infinite where the length never matters.

    Up to this step a run of `max_steps` may still become a longer one. It may become a shorter one as long as it has
    not gone beyond this step of the shorter run.
    """
    warmup = config.warmup_steps
    match config.schedule:
        case "inverse_sqrt" | "constant":
            return math.inf
        case "cosine":
            return warmup
        case "trapezoid":
            return max(warmup, max_steps + 1 - max(round(config.decay_fraction * max_steps), 1))
        case _:
            raise unknown("schedule", config.schedule)


def warmup_fits(config: TrainingConfig, max_steps: int) -> bool:
    """Whether a run of `max_steps` updates comes to its peak: the warm-up ends before the run does, and before the rate
    falls."""
    if config.schedule != "trapezoid":
        return config.warmup_steps < max_steps
    return config.warmup_steps <= length_matters_after(replace(config, warmup_steps=0), max_steps)


def same_up_to(step: int, config: TrainingConfig, max_steps: int, other_max_steps: int) -> bool:
    """Whether the first `step` updates have the same learning rates under two different totals.

    If so, a run that has done them under the one total is the run that the other total would have begun with.
    """
    shorter = min(max_steps, other_max_steps)
    return max_steps == other_max_steps or step <= length_matters_after(config, shorter)
