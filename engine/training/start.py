"""Starting: the leader of a new run, or of one that goes on, ready to train."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from ...configs import RunConfig
from ...system.errors import DirectoryInUse, UsageError
from ...system.interrupts import Interrupts
from ...system.reporter import Reporter
from ..device import pick_device
from ..runs.directory import RunDirectory
from ..runs.weights import blank_model
from .assemble import describe_model
from .finish import Finishing, Request
from .leader import Leader
from .plan import Plan
from .prepare import prepare_data
from .purpose import fixed_parts
from .setup import settle


@contextlib.contextmanager
def started(
    settings: RunConfig,
    directory: RunDirectory,
    *,
    reporter: Reporter,
    interrupts: Interrupts,
    tokenizer: Path | None,
    init_from: Path | None,
    begun_at: float | None = None,
    request: Request | None = None,
    dry: bool = False,
) -> Iterator[Leader]:
    """The leader of a run, whose directory it holds inside the block. What is missing in the directory is made.

    Args:
        settings, reporter, interrupts, tokenizer, init_from: As in `train.train`.
        directory: Of the run.
        begun_at: Monotonic time at which a time limit began; now if not given.
        request: To finish, as in `train.train`.
        dry: Nothing will be trained: a run that has come to a checkpoint keeps the settings that it has.

    Raises:
        DirectoryInUse: Another process trains there. If there is a request, it has been told.
        TfmError: As in `train.train`.
    """
    plan_began = time.monotonic() if begun_at is None else begun_at
    given = directory.starting_tokenizer(tokenizer, init_from)
    with _locked(directory, request):
        directory.remove_debris()
        directory.refuse_other(settings)
        saved = directory.newest_saved(reporter.warn)
        finishing = Finishing(directory)
        finishing.forget_request()  # of another day
        if request is not None:
            if saved is None:
                raise UsageError(
                    f"{directory} has no checkpoint to go on from; --max-time or --max-steps says how long it trains"
                )
            finishing.ask(request)
        directory.forget_other_start(settings, given)
        plan = Plan(directory, settings.training, reporter, plan_began)
        if saved is None:
            plan.begin(0, None)
            directory.write_configuration(settings)
        else:
            plan.begin(saved.step, saved.state.max_steps, saved.state.progress.falling_since)
        prepared = prepare_data(settings, directory, given_tokenizer=given, reporter=reporter, saved=saved)
        if saved is not None and not dry:  # its files may have other names by now, but hold what they did
            directory.write_configuration(settings)
        description = describe_model(settings, prepared.tokenizer, prepared.train.facts)
        setup = settle(
            directory,
            settings.training,
            lambda: blank_model(description),
            pick_device(settings.training.device),
            saved,
            reporter,
            parts=fixed_parts(settings),
        )
        try:
            yield Leader(directory, settings, prepared, description, setup, plan, reporter, interrupts, saved)
        finally:
            if (undecided := finishing.request()) is not None:
                reporter.warn(f"it was told to finish in {undecided}, too late to be decided: say --finish-in again")
            finishing.forget_request()


@contextlib.contextmanager
def _locked(directory: RunDirectory, request: Request | None) -> Iterator[None]:
    """Holds the directory inside the block; where another process does, that one is told to finish."""
    if request is not None and not directory.has_begun:
        raise UsageError(f"there is no run {directory} to finish; --max-time or --max-steps says how long one trains")
    try:
        lock = directory.lock()
    except DirectoryInUse:
        if request is not None:
            Finishing(directory).ask(request)
        raise
    with lock:
        yield
