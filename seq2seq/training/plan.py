"""How many steps a run has: the number configured, or as many as fit its time, counted once and written down."""

import json
import shlex
import time
from pathlib import Path

from ...data.errors import UsageError
from ...data.files import replace_json
from .config import TrainingConfig, parse_duration
from .loop import PLAN_STEP
from .reporter import Reporter
from .schedule import same_up_to


class Plan:
    """The length of a run.

    Args:
        run: Its directory; `plan.json` in it remembers what a time limit came to.
        config: Steps or time, and the schedule that they shape.
        reporter: Hears what was decided.
        started: Monotonic time at which the time limit began.
    """

    def __init__(self, run: Path, config: TrainingConfig, reporter: Reporter, started: float) -> None:
        self._run, self._config, self._reporter, self.started = run, config, reporter, started
        self._path = run / "plan.json"

    def steps(self, step: int, before: int | None) -> int | None:
        """Steps in all, or None while a time limit has still to be turned into a number.

        Args:
            step: How far the run has come.
            before: Steps in all as of then, if it has begun.

        Raises:
            UsageError: Another length than the one that has already shaped the schedule.
        """
        total = self._config.max_steps
        if self._config.max_time is not None:
            decided = self._steps_decided(step, self._config.max_time)
            if decided is None:
                return None
            total = min(decided, total)
        if before is not None and not same_up_to(step, self._config, before, total):
            quoted = shlex.quote(str(self._run))
            raise UsageError(
                f"{self._run} was planned for {before:,} steps and its {self._config.schedule} schedule has already"
                f" been shaped by that at step {step:,}; start a new run: --init-from {quoted} --run NEW"
            )
        return total

    def _steps_decided(self, step: int, max_time: str) -> int | None:
        if self._path.exists():
            decided = json.loads(self._path.read_text())
            if decided["max_time"] == max_time:
                return decided["max_steps"]
            if step:
                raise UsageError(
                    f"{self._run} was planned for {decided['max_time']}, which was {decided['max_steps']:,} steps;"
                    " say --max-steps to change that number"
                )
        if step >= self._config.max_steps:  # it ended before there was anything to decide
            return self._config.max_steps
        schedule = self._config.schedule
        if schedule in ("cosine", "trapezoid"):
            if step:
                raise UsageError(
                    f"{self._run} began with a number of steps, which shapes its {schedule} schedule, and cannot go on"
                    " with a time limit; say --max-steps"
                )
            if self._config.warmup_steps < PLAN_STEP:
                raise UsageError(
                    f"with max_time the {schedule} schedule needs warmup_steps of at least {PLAN_STEP},"
                    f" but has {self._config.warmup_steps}"
                )
        return None

    def decide(self, step: int, seconds_per_step: float, seconds_per_validation: float) -> int:
        """Turns the time limit into a number of steps, and writes it down before any step depends on it."""
        max_time = self._config.max_time or ""
        left = parse_duration(max_time) - (time.monotonic() - self.started) - seconds_per_validation
        per_step = seconds_per_step + seconds_per_validation / self._config.validate_every
        fitting, most = step + max(int(left / per_step), 1), self._config.max_steps
        steps = min(fitting, most)
        replace_json(self._path, {"max_time": max_time, "max_steps": steps})
        beyond = f"; training.max_steps ends it at {most:,}" if fitting > most else ""
        self._reporter.say(f"{max_time} is time for {fitting:,} steps ({seconds_per_step:.3f} s each){beyond}")
        return steps
