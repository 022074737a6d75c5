"""Training into a run directory: begins a run, or goes on with the one that is there."""

import time
from pathlib import Path

from ...configs import RunConfig
from ..device import keep_freed_memory, pick_device
from ..interrupts import Interrupts
from ..parallel.follower import follow
from ..parallel.ranks import joined, started_by_torchrun
from ..reporter import Reporter
from .assemble import describe_model
from .directory import RunDirectory
from .leader import Leader, TrainingResult
from .machine import fixed_parts
from .plan import Plan
from .prepare import prepare_data
from .setup import check_device, settle
from .state import newest_saved
from .weights import build_model


def train(
    settings: RunConfig,
    *,
    run: str | Path,
    reporter: Reporter,
    interrupts: Interrupts,
    tokenizer: Path | None = None,
    init_from: Path | None = None,
    started: float | None = None,
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

    Returns:
        How it ended; None in a process that torchrun started to help another one.

    Raises:
        UsageError: The directory holds another run, or the settings ask for what is not possible.
        Interrupted: Stopped on request, after saving.
        TfmError: As its other subclasses say.
    """
    started = time.monotonic() if started is None else started
    keep_freed_memory()
    device = pick_device(settings.training.device)
    check_device(settings.training, device)
    if (place := started_by_torchrun()) is not None and place.rank > 0:
        with interrupts.held(), joined(place):  # to stop is the leader's to decide
            return follow(place)
    directory = RunDirectory(run)
    given = directory.starting_tokenizer(tokenizer, init_from)
    with directory.lock():
        directory.remove_debris()
        directory.refuse_other(settings)
        saved = newest_saved(directory, reporter)
        directory.forget_other_start(settings, given)
        plan = Plan(directory, settings.training, reporter, started)
        if saved is None:
            plan.begin(0, None)
        else:
            plan.begin(saved.step, saved.state.max_steps, saved.state.progress.falling_since)
        if saved is None:
            directory.write_configuration(settings)
        prepared = prepare_data(settings, directory, given_tokenizer=given, reporter=reporter, saved=saved)
        if saved is not None:  # its files may have other names by now, but hold what they did
            directory.write_configuration(settings)
        description = describe_model(settings, prepared.tokenizer)
        setup = settle(
            directory,
            settings.training,
            lambda: build_model(description),
            device,
            saved,
            reporter,
            parts=fixed_parts(settings),
        )
        leader = Leader(directory, settings, prepared, description, setup, plan, reporter, interrupts, saved)
        return leader.train(init_from)
