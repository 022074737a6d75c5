"""How many updates a run has: the number configured, as many as fit its time, or as many as bring it further.

A time limit becomes a number of updates after the first ones have been timed. The number is written to `plan.json`
before any update depends on it: so a run that was stopped and goes on has the learning rates of one that was not. As
long as no learning rate has depended on it (the flat part of a trapezoid), the number is revised in the same way when
the machine becomes faster or slower; afterwards a run that will take longer says so. A run that goes on after a stop
keeps the number that is written.

Where the time is too short for the schedule, the learning rate falls from then on, as in a run that is told to finish.

With `training.patience` a run finds its length by itself: once the validation loss has stopped falling, the learning
rate begins to fall, and the number of updates follows from where it began. That depends on losses alone, which are the
same in a run that was stopped and goes on.

A run that is told to finish (see `finish`) lets its learning rate fall from there on, whatever else was planned.
"""

import contextlib
import math
import statistics
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator

from ...seq2seq.training.config import TrainingConfig, parse_duration
from ...seq2seq.training.schedule import NO_LIMIT, Finish, learning_rate, length_matters_after, same_up_to, warmup_fits
from ...system.errors import ModelError, UsageError
from ...system.files import read_sealed, replace_sealed
from ...system.reporter import Reporter, in_words
from ..runs.directory import RunDirectory
from .finish import Finishing, Request

PLAN_STEP = 60
"""Updates that are timed before a time limit becomes a number of them; the first third is warm-up."""
FEWEST_TIMED = 3
"""This many are enough where a third of the time has gone before `PLAN_STEP`."""
REVISE_EVERY = 20
"""Updates between two looks at whether the number still fits the time."""
TOLERANCE = 0.02
"""Share by which the number may be wrong before it is revised: clocks are never quite the same."""
SAID_FROM = 0.2
"""Share by which it changes before that is said again."""
LATE = 0.1
"""A run warns when it will be late by more than this share of its time."""
LATER = 0.25
"""It warns again when the expected time has changed by more than this share."""
SHORT = 4
"""A run of at most this many times the updates that were timed is too short for a warm-up: its rate falls at once."""
TIMED_TO_FINISH = 20
"""Updates that are timed before a run that is told to finish in a time decides how many more that is."""
NEWEST = 4
"""The pace is taken from the newest fourth of the updates. One slow minute does not decide it; a machine that became
slower does."""
REMEMBERED = 10_000
"""Updates whose times are remembered."""


def can_wait_for_length(config: TrainingConfig) -> bool:
    """Whether the updates that are timed have the same learning rates for every length that the run may get."""
    return length_matters_after(config, NO_LIMIT) >= PLAN_STEP


class Plan:
    """The length of a run, whose time limit began at the monotonic time `started`.

    `plan.json` in its directory remembers what the limit came to; while it has still to be turned into a number of
    updates, the plan is `pending`. `limit` is updates in all, as far as is known; `NO_LIMIT` if nothing limits them.
    """

    def __init__(self, run: RunDirectory, config: TrainingConfig, reporter: Reporter, started: float) -> None:
        self._run, self._config, self._reporter, self.started = run, config, reporter, started
        self._most = NO_LIMIT if config.max_steps is None else config.max_steps
        self.limit, self.pending = self._most, False
        self._measured = False  # whether the time limit was turned into updates here, and counts
        self._revisable = False
        self._said = 0  # updates in all
        self._foretold: float | None = None  # seconds in all, of a run that will be late
        self._timed = 0
        self._last_end: float | None = None  # of the newest update or validation, monotonic
        self._seconds: deque[float] = deque(maxlen=REMEMBERED)  # that each update took
        self._seconds_per_validation: float | None = None
        self._finishing = Finishing(run)
        self._finish: Finish | None = None  # what the next update obeys

    @property
    def max_steps(self) -> int | None:
        """Updates in all, None while that is not known; what checkpoints remember."""
        return None if self.pending or self.limit >= NO_LIMIT else self.limit

    def begin(self, step: int, before: int | None, falling_since: int = 0) -> None:
        """Finds out how many updates the run has, or that they have still to be counted.

        Args:
            before: Updates in all as of then, if it has begun and that was known.
            falling_since: Step after which its learning rate falls because validation had stopped improving; 0 if
                it does not.

        Raises:
            UsageError: Another length than the one that has already shaped the schedule.
        """
        if (decided := self._finishing.latest()) is not None:
            self._reporter.say(f"{self._run} was told to finish: it ends at step {decided.until:,} (finish.json)")
        self._obey(step)
        if self.told_to_finish:
            return
        if falling_since and before is not None:
            self._most = min(self._most, before)
            self.limit = self._most
        if self._config.max_time is not None:
            decided = self._decided(step, self._config.max_time)
            if decided is None:
                self.pending = True
                return
            self.limit = min(decided, self._most)
        if before is None and step and self._config.patience and self._config.max_time is None:
            before = NO_LIMIT  # it was open how long it would be
        if before is not None and not same_up_to(step, self._config, before, self.limit):
            planned = "as long as validation improves" if before >= NO_LIMIT else f"{before:,} steps"
            raise UsageError(
                f"{self._run} was planned for {planned} and its {self._config.schedule} schedule has"
                f" already been shaped by that at step {step:,}; start a new run: --init-from {self._run.quoted}"
                " --run NEW"
            )

    @property
    def told_to_finish(self) -> bool:
        """Whether its end was decided while it was under way: somebody asked, or its time is too short."""
        return self._finish is not None

    def learning_rate(self, step: int) -> float:
        """The learning rate of the next update, which has this number."""
        if self._finish is not None:
            return self._finish.learning_rate(step)
        return learning_rate(step, self._config, self.limit)

    def phase(self, step: int) -> str:
        """Of the update with this number, what its learning rate does, in words; nothing while that is not known."""
        if self.pending or step < 1:
            return ""
        if step <= self._config.warmup_steps and not self.told_to_finish:
            return "lr rises"
        before, rate = self.learning_rate(max(step - 1, 1)), self.learning_rate(step)
        if math.isclose(rate, before, rel_tol=1e-9):  # the end of the warm-up may differ from the peak in its last bit
            return "lr stays"
        return "lr falls" if rate < before else "lr rises"

    def fall(self, step: int) -> bool:
        """Lets the learning rate fall from the next update on, to 0 at the end of the shortest run that allows it.

        Returns whether that makes the run shorter; else its rate falls already, or is still rising.
        """
        if self.pending or self._finish is not None or step <= self._config.warmup_steps:
            return False
        shortest = self._shortest(step, step + 1)
        if shortest >= self.limit:
            return False
        self.limit = self._most = shortest
        self._revisable = False
        return True

    def _decided(self, step: int, max_time: str) -> int | None:
        """What the time limit came to at an earlier start; None if that has still to be measured."""
        if self._run.plan.exists():
            decided = read_sealed(self._run.plan)
            known = decided.keys() == {"max_time", "max_steps"}
            if not known or not isinstance(decided["max_time"], str) or type(decided["max_steps"]) is not int:
                raise ModelError(f"{self._run.plan} is damaged: it does not say how many steps the time was; remove it")
            if decided["max_time"] == max_time:
                return decided["max_steps"]
            if step:
                raise UsageError(
                    f"{self._run} was planned for {decided['max_time']}, which was {decided['max_steps']:,} steps;"
                    " say --max-steps to change that number"
                )
        if step >= self._most:  # it ended before there was anything to decide
            return self._most
        self._refuse_if_shaped_too_early(step)
        return None

    def _refuse_if_shaped_too_early(self, step: int) -> None:
        """Refuses to time updates whose learning rates depend on the number that they are timed for."""
        config, schedule = self._config, self._config.schedule
        if length_matters_after(config, PLAN_STEP + 1) >= NO_LIMIT:
            return
        if step:
            raise UsageError(
                f"{self._run} began without a time limit, and a time limit would shape its {schedule} schedule; say"
                " --max-steps"
            )
        if not can_wait_for_length(config):
            raise UsageError(
                f"with max_time the {schedule} schedule needs warmup_steps of at least {PLAN_STEP},"
                f" but has {config.warmup_steps}; say --set training.warmup_steps={PLAN_STEP}"
            )

    def after_update(self, step: int, validate: Callable[[], object]) -> None:
        """Times update `step`, which has just ended. Decides, or revises, the run's length where that is due.

        `validate` makes a validation, to see how long that takes.
        """
        self._time_update()
        if step >= self.limit:
            return
        request = self._finishing.request()
        if self.pending and self._is_timed_enough(request):
            with self.timing_validation():
                validate()
            self._decide(step)
        elif self._measured and self._timed % REVISE_EVERY == 0:
            self._revise(step)
            self._say_if_late(step)
        if request is not None and not self.pending:
            self._finish_as_asked(request, step, validate)
        self._obey(step)

    def _time_update(self) -> None:
        now = time.monotonic()
        if self._last_end is not None:
            self._seconds.append(now - self._last_end)
        self._last_end = now
        self._timed += 1

    def _is_timed_enough(self, request: Request | None) -> bool:
        """Whether the time limit can become a number of updates: sooner if a third of the time has gone."""
        is_short = self._seconds_left() < parse_duration(self._config.max_time or "") * 2 / 3
        return self._timed == PLAN_STEP or (self._timed >= FEWEST_TIMED and (request is not None or is_short))

    def _obey(self, step: int) -> None:
        """Takes up what has been decided about the updates after this one, now or at an earlier start."""
        self._finish = self._finishing.after(step)
        if self._finish is not None:
            self.limit, self._revisable = self._finish.until, False

    def _finish_as_asked(self, request: Request, step: int, validate: Callable[[], object]) -> None:
        """Decides how many more updates there are, once it is known what one takes, and lets the rate fall."""
        if request.steps is None:
            enough = FEWEST_TIMED if request.is_urgent else TIMED_TO_FINISH
            if self._timed < enough and request.seconds_left > 0:
                return
            if self._seconds_per_validation is None:
                with self.timing_validation():
                    validate()
        until = step + (request.steps or self._fitting(request.seconds_left)[0])
        if until >= self.limit:
            self._finishing.forget_request()
            self._reporter.say(f"told to finish in {request}: it ends before that, at step {self.limit:,}")
            return
        self._finishing.decide(Finish(step, until, self.learning_rate(step)))
        self._finishing.forget_request()
        self._measured = False
        self._reporter.say(
            f"told to finish in {request}: the learning rate falls from now on, to 0 at step {until:,}, where the"
            " run ends"
        )

    @contextlib.contextmanager
    def timing_validation(self) -> Iterator[None]:
        """Inside the block a validation is made. The time of the next update does not include it."""
        before = time.monotonic()
        yield
        self._last_end = time.monotonic()
        self._seconds_per_validation = self._last_end - before

    def _decide(self, step: int) -> None:
        more, seconds = self._fitting(self._seconds_left())
        fitting = step + more
        limit, rate = min(fitting, self._most), self.learning_rate(step)
        shortest = self._shortest(step, limit)
        self.limit = self._said = limit
        self.pending, self._revisable, self._measured = False, True, True
        self._write(max(fitting, shortest))
        more_said = f"; training.max_steps ends it at {self._most:,}" if fitting > self._most else ""
        fits = limit == self._most or warmup_fits(self._config, limit)
        if shortest > limit or (not fits and limit <= SHORT * step):
            self._finishing.decide(Finish(step, limit, rate))
            more_said += ": too short for the schedule, so the learning rate falls from now on, to 0 at the end"
        elif not fits:
            more_said += (
                f": too few for a warm-up of {self._config.warmup_steps:,}, a better one is --set"
                f" training.warmup_steps={limit // SHORT}, in a new --run"
            )
        self._reporter.say(f"{self._config.max_time} is time for {fitting:,} steps ({seconds:.3f} s each){more_said}")

    def _revise(self, step: int) -> None:
        """Changes the number of updates if it does not fit the time any more, and no update has depended on it."""
        if not self._revisable:
            return
        more, seconds = self._fitting(self._seconds_left())
        fitting = step + more
        revised = min(fitting, self._most)
        if abs(revised - self.limit) <= TOLERANCE * self.limit:
            return
        if step > length_matters_after(self._config, self.limit):
            self._revisable = False
            return
        self.limit = self._shortest(step, revised) if revised < self.limit else revised
        self._write(max(self.limit, fitting))
        if abs(self.limit - self._said) <= SAID_FROM * self._said:
            return
        self._said = self.limit
        late = "" if self.limit == revised else f"; the learning rate has come too far, so there will be {self.limit:,}"
        self._reporter.say(f"{self._config.max_time} is now time for {revised:,} steps ({seconds:.3f} s each){late}")

    def _say_if_late(self, step: int) -> None:
        """Warns that the run will take longer than its time, where its number of updates is shaped already.

        Once, and again where what it says changes much.
        """
        seconds, per_step = self._pace()
        left = self.limit - step
        over = left * per_step + (self._seconds_per_validation or 0.0) - self._seconds_left()
        allowed = parse_duration(self._config.max_time or "")
        total = allowed + over
        if over <= LATE * allowed or (self._foretold and abs(total - self._foretold) <= LATER * self._foretold):
            return
        self._foretold = total
        self._reporter.warn(
            f"it will take about {in_words(total)}, not {self._config.max_time}: updates take {seconds:.3f} s now, and"
            f" the learning rate has come too far for fewer than {left:,} more; to end it sooner say in another window"
            f" tfm train --run {self._run.quoted} --finish-in {max(round(self._seconds_left()), 10)}s"
        )

    def _shortest(self, step: int, wanted: int) -> int:
        """The shortest run of at least `wanted` updates that gives the updates so far the learning rates they had."""
        lengths = range(wanted, self.limit)
        return wanted + bisect_left(lengths, step, key=lambda n: length_matters_after(self._config, n))

    def _seconds_left(self) -> float:
        return parse_duration(self._config.max_time or "") - (time.monotonic() - self.started)

    def _fitting(self, seconds_left: float) -> tuple[int, float]:
        """More updates that fit a time, at least one, and seconds that one takes."""
        seconds, per_step = self._pace()
        left = seconds_left - (self._seconds_per_validation or 0.0)  # the last one
        return max(int(left / per_step), 1) if per_step else 1, seconds

    def _pace(self) -> tuple[float, float]:
        """Seconds that an update takes, by itself and with its share of a validation.

        That is the mean without the shortest and the longest tenth: a laptop that was closed for a while is not in it,
        another program that takes its turns is.
        """
        newest = max(2 * PLAN_STEP // 3, len(self._seconds) // NEWEST)
        timed = sorted(list(self._seconds)[-newest:])
        extreme = len(timed) // 10
        seconds = statistics.fmean(timed[extreme : len(timed) - extreme]) if timed else 0.0
        return seconds, seconds + (self._seconds_per_validation or 0.0) / self._config.validate_every

    def _write(self, fitting: int) -> None:
        """Remembers what the time limit comes to; a number of steps that is configured may end the run before that."""
        replace_sealed(self._run.plan, {"max_time": self._config.max_time, "max_steps": fitting})
