"""What is written and shown of a run under way: metrics.jsonl, timing.jsonl, the learning curve, the progress bar."""

import math
import time
from pathlib import Path
from typing import Any

from ...seq2seq.training.config import TrainingConfig, parse_duration
from ...seq2seq.training.progress import Progress
from ...system.errors import EnvironmentFault
from ...system.files import replace_file
from ...system.reporter import Reporter, in_words
from .curves import panels, picture
from .directory import RunDirectory

_BETWEEN_CURVES = 10.0
"""Seconds from one drawing of the learning curve to the next: one takes as long as a hundred updates of a toy model."""


class RunLog:
    """Keeps account of a run. `timing.jsonl` counts from `started`; `counted` is what the loss is a mean over."""

    def __init__(
        self, run: RunDirectory, config: TrainingConfig, reporter: Reporter, started: float, *, counted: str
    ) -> None:
        self._run, self._config, self._reporter, self._started = run, config, reporter, started
        self._counted = counted
        self._drawn = time.monotonic()
        self._events = _Events(run.tensorboard) if config.tensorboard else None

    def open(self, progress: Progress, max_steps: int | None) -> None:
        """Cuts the logs back to where training stands, and begins a progress bar; `max_steps` if that is known."""
        if progress.step >= self._config.log_every and not self._run.metrics.path.exists():
            self._reporter.warn(
                f"{self._run.metrics.path} is not there any more: it begins anew after step {progress.step:,}; the"
                " model does not depend on it"
            )

        def happened(record: dict[str, Any]) -> bool:
            """Before the checkpoint; what came after it will be logged again."""
            last = progress.validated_step if record.get("kind") == "validation" else progress.step
            return record.get("step", math.inf) <= last

        for log in (self._run.metrics, self._run.timing):
            damaged = log.keep(happened)
            if damaged:
                self._reporter.warn(
                    f"{log.path}: {damaged:,} lines could not be read and are left out; {log.path.name}.damaged is the"
                    " file as it was"
                )
        if self._events is not None:
            self._events.go_on(progress.step)
        self._bar = self._reporter.progress("training", max_steps, "step", done=progress.step)
        self._tick(progress)

    def _tick(self, progress: Progress) -> None:
        self._last_tick = (time.monotonic(), progress.tokens)

    def after_update(self, progress: Progress, max_steps: int | None, phase: str) -> None:
        """Moves the bar; writes how long it took, now and then. `phase` says what the learning rate does."""
        now, (then, tokens) = time.monotonic(), self._last_tick
        speed = (progress.tokens - tokens) / max(now - then, 1e-9)
        loss = progress.mean_loss
        note = f"{speed:,.0f} {self._counted}/s" + (f", loss {loss:.3f}" if loss is not None else "")
        if phase:
            note += f", {phase}"
        if max_steps is None and self._config.max_time is not None:  # the bar cannot tell yet how long it will be
            note += f", {in_words(parse_duration(self._config.max_time) - (now - self._started))} left"
        self._bar.update(progress.step, note, total=max_steps)
        if progress.step % self._config.log_every == 0:
            seconds = round(now - self._started, 3)
            self._run.timing.append({"step": progress.step, "seconds": seconds, "tokens_per_second": round(speed, 1)})
            self._tick(progress)

    def record(self, record: dict[str, Any], progress: Progress) -> None:
        """Writes deterministic figures to metrics.jsonl."""
        self._run.metrics.append(record)
        if self._events is not None:
            self._events.add(record)
        if record["kind"] == "validation":
            if time.monotonic() - self._drawn >= _BETWEEN_CURVES:
                self.draw_curve()
            self._tick(progress)

    def sync(self) -> None:
        """Makes what was logged outlast a power cut: a checkpoint never outlives what was logged before it."""
        for log in (self._run.metrics, self._run.timing):
            log.sync()

    def close(self) -> None:
        """Ends the bar and draws the curve."""
        self._bar.close()
        if self._events is not None:
            self._events.close()
        self.draw_last_curve()

    def draw_last_curve(self) -> None:
        """Draws the curve unless it is newer than the log: a kill may have come between the two.

        The run does not depend on a picture, nor may it hide why the run ends.
        """
        try:
            files = self._run.learning_curve, self._run.metrics.path
            picture, metrics = (path.stat().st_mtime if path.exists() else -math.inf for path in files)
            if picture <= metrics:
                self.draw_curve()
        except EnvironmentFault as error:
            self._reporter.warn(str(error))

    def draw_curve(self) -> None:
        """Draws losses and scores so far to learning_curve.png."""
        if records := self._run.metrics.records():
            replace_file(self._run.learning_curve, picture(panels(records, self._config)))
            self._drawn = time.monotonic()


class _Events:
    """For TensorBoard: writes the figures of `metrics.jsonl` into a folder, under `train/` and `validation/`.

    Raises:
        EnvironmentFault: TensorBoard is not installed.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard.writer import SummaryWriter
        except ImportError as error:
            raise EnvironmentFault("training.tensorboard needs TensorBoard: pip install 'tfm[tensorboard]'") from error
        self._make, self._folder, self._writer = SummaryWriter, folder, None

    def go_on(self, step: int) -> None:
        """Takes back what is after a step: it will come again."""
        self._writer = self._make(str(self._folder), purge_step=step + 1)

    def add(self, record: dict[str, Any]) -> None:
        """A line of metrics.jsonl."""
        assert self._writer is not None, "go_on was called"
        for name, value in record.items():
            if name not in ("step", "epoch") and isinstance(value, int | float):
                self._writer.add_scalar(f"{record['kind']}/{name}", value, record["step"])
        self._writer.flush()

    def close(self) -> None:
        """Ends the file."""
        if self._writer is not None:
            self._writer.close()
