"""Training into a run directory: begins a run, or goes on with the one that is there."""

import contextlib
from pathlib import Path

from ...configs import RunConfig
from ...system.errors import DirectoryInUse, UsageError
from ...system.interrupts import Interrupts
from ...system.reporter import Reporter
from ..device import keep_freed_memory, pick_device
from ..runs.directory import RunDirectory
from ..workers.ranks import joined, started_by_torchrun
from ..workers.watch import watched
from .finish import parse_request
from .follower import follow
from .leader import TrainingResult
from .setup import check_device
from .start import started as start


def train(
    settings: RunConfig,
    *,
    run: str | Path,
    reporter: Reporter,
    interrupts: Interrupts,
    tokenizer: Path | None = None,
    init_from: Path | None = None,
    started: float | None = None,
    finish_in: str | None = None,
) -> TrainingResult | None:
    """Trains a model into a run directory, or continues the run that is there.

    Args:
        settings: The configuration.
        run: The directory.
        reporter: Hears what happens.
        interrupts: Entered; asked for Ctrl-C and SIGTERM.
        tokenizer: A tokenizer directory, instead of building one.
        init_from: A run whose best weights to start from; it brings its tokenizer.
        started: Monotonic time at which the time limit began.
        finish_in: Lets the learning rate of the run that is there fall now, and ends it in this time (`10m`) or after
            so many updates. If another process is training it, that one is told.

    Returns:
        How it ended; None in a process that torchrun started to help another one, or that told another one to finish.

    Raises:
        UsageError: The directory holds another run, or the settings ask for what is not possible.
        Interrupted: Stopped on request, after saving.
        TfmError: As its other subclasses say.
    """
    if finish_in is not None and started_by_torchrun() is not None:
        raise UsageError("one process tells a run to finish: say --finish-in without torchrun")
    keep_freed_memory()
    check_device(settings.training, pick_device(settings.training.device))
    place = started_by_torchrun()
    with contextlib.nullcontext() if place is None else watched(place.rank, place.count, interrupts):
        if place is not None and place.rank > 0:
            with interrupts.held(), joined(place):  # to stop is the leader's to decide
                return follow(place)
        return _lead(settings, RunDirectory(run), reporter, interrupts, tokenizer, init_from, started, finish_in)


def _lead(
    settings: RunConfig,
    directory: RunDirectory,
    reporter: Reporter,
    interrupts: Interrupts,
    tokenizer: Path | None,
    init_from: Path | None,
    started: float | None,
    finish_in: str | None,
) -> TrainingResult | None:
    """What the process does that the user started, see `train`."""
    request = None if finish_in is None else parse_request(finish_in)
    try:
        with start(
            settings,
            directory,
            reporter=reporter,
            interrupts=interrupts,
            tokenizer=tokenizer,
            init_from=init_from,
            begun_at=started,
            request=request,
        ) as leader:
            return leader.train(init_from)
    except DirectoryInUse:
        if request is None:
            raise
        reporter.say(f"{directory} is in use; the training that is under way there was told to finish in {request}")
        return None
