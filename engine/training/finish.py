"""Telling a run that is under way to end soon: `tfm train --run RUN --finish-in 10m`.

Whoever types that leaves a request in the run directory. The process that trains there finds it after its next update,
and decides from when to when the learning rate falls to zero. The decision is written to `finish.json` before any
update depends on it; so a run that was stopped and goes on has the learning rates of one that was not. A time limit too
short for the schedule is decided in the same way (see `plan`).
"""

import time
from dataclasses import asdict, dataclass, replace

from ...seq2seq.training.config import parse_duration
from ...seq2seq.training.schedule import Finish
from ...system.errors import ModelError, UsageError
from ...system.files import read_sealed, remove_tree, replace_json, replace_sealed
from ...system.reporter import counted
from ...system.untrusted import read_object
from ..runs.directory import RunDirectory


@dataclass(frozen=True)
class Request:
    """What `--finish-in` asks for: after how many updates, or after how much time, a run must end."""

    text: str
    """As it was typed: a number of updates, or a duration such as `10m`."""
    asked: float
    """When it was asked for, in seconds since 1970."""

    @property
    def steps(self) -> int | None:
        """Updates still to be made; None where a duration was asked for."""
        return int(self.text) if self.text.isdecimal() else None

    @property
    def seconds_left(self) -> float:
        """Seconds that are left of the duration that was asked for."""
        return parse_duration(self.text) - (time.time() - self.asked)

    @property
    def is_urgent(self) -> bool:
        """Whether a third of the duration has gone."""
        return self.seconds_left < parse_duration(self.text) * 2 / 3

    def __str__(self) -> str:
        return self.text if self.steps is None else counted(self.steps, "update")


def parse_request(text: str) -> Request:
    """What `--finish-in` asks for, from now on; UsageError if that is neither a number of updates nor a duration."""
    request = Request(text, time.time())
    try:
        if request.steps is None:
            parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--finish-in: {error}, or a number of updates") from error
    if request.steps == 0:
        raise UsageError("--finish-in 0: at least one update is needed; Ctrl-C stops a run at once")
    return request


class Finishing:
    """What a run has been told about its end; ModelError if what was decided cannot be read."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        try:
            decided = read_sealed(run.finish)["decided"] if run.finish.exists() else []
            self._decided = [Finish(**finish) for finish in decided]
        except (ModelError, KeyError, ValueError, TypeError) as error:
            raise ModelError(f"{run.finish} is damaged: when the run is to finish is not known; remove it") from error

    def after(self, step: int) -> Finish | None:
        """The decision that the update after this step obeys; the newest one counts."""
        return next((finish for finish in reversed(self._decided) if finish.since <= step), None)

    def latest(self) -> Finish | None:
        """The newest decision, even if it is for a later step."""
        return self._decided[-1] if self._decided else None

    def decide(self, finish: Finish) -> None:
        """Writes a decision down, in the place of earlier ones for the same step or a later one."""
        self._decided = [earlier for earlier in self._decided if earlier.since < finish.since] + [finish]
        replace_sealed(self._run.finish, {"decided": [asdict(finish) for finish in self._decided]})

    def ask(self, request: Request) -> None:
        """Leaves a request for the process that trains."""
        replace_json(self._run.finish_request, asdict(request))

    def request(self) -> Request | None:
        """What is asked and not decided yet."""
        path = self._run.finish_request
        if not path.exists():
            return None
        try:
            request = Request(**read_object(path))
            return replace(parse_request(request.text), asked=float(request.asked))
        except (ValueError, TypeError, AttributeError, UsageError, ModelError):  # somebody else wrote it
            self.forget_request()
            return None

    def forget_request(self) -> None:
        """Removes the request."""
        remove_tree(self._run.finish_request)
