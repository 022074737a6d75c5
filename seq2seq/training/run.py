"""Training into a run directory: begins a run, or goes on with the one that is there."""

import time
from pathlib import Path

from ...data.files import DirectoryLock, remove_debris, remove_tree, replace_file
from ..device import keep_freed_memory, pick_device
from ..run_directory import list_checkpoints
from .follower import follow
from .interrupts import Interrupts
from .plan import Plan
from .prepare import RunSettings, prepare_data
from .ranks import joined, started_by_torchrun
from .reporter import Reporter
from .session import Session, TrainingResult, describe_model
from .setup import check_device, settle, setup_path
from .state import newest_saved


def train(
    settings: RunSettings,
    *,
    run: Path,
    config_text: str,
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
        config_text: What goes to `config.yaml`.
        reporter: Hears what happens.
        interrupts: Entered; asked for Ctrl-C and SIGTERM.
        tokenizer: A tokenizer directory, instead of building one.
        init_from: A run whose best weights to start from; its tokenizer must be the one given.
        started: Monotonic time at which the time limit began.

    Returns:
        How it ended; None in a process that torchrun started to help another one.

    Raises:
        Interrupted: Stopped on request, after saving.
        TfmError: As its subclasses say.
    """
    started = time.monotonic() if started is None else started
    keep_freed_memory()
    device = pick_device(settings.training.device)
    check_device(settings.training, device)
    if (place := started_by_torchrun()) is not None and place.rank > 0:
        with interrupts.held(), joined(place):  # to stop is the leader's to decide
            return follow(place)
    with DirectoryLock(run):
        if (run / "config.yaml").exists():  # else what is unfinished in the directory is not ours
            for directory in (run, run / "checkpoints", run / "cache"):
                remove_debris(directory)
        saved = newest_saved(run, reporter)
        _forget_other_configuration(run, config_text, given=tokenizer)
        plan = Plan(run, settings.training, reporter, started)
        max_steps = plan.steps(saved.step if saved else 0, saved.state.max_steps if saved else None)
        if saved is None:
            replace_file(run / "config.yaml", config_text.encode())
        prepared = prepare_data(settings, run, given_tokenizer=tokenizer, reporter=reporter, saved=saved)
        if saved is not None:  # its files may have other names by now, but hold what they did
            replace_file(run / "config.yaml", config_text.encode())
        description = describe_model(settings, prepared)
        setup = settle(run, settings.training, description.build, device, saved, reporter)
        session = Session(settings, run, prepared, description, reporter, interrupts, plan, setup)
        return session.run_to_end(max_steps, saved=saved, init_from=init_from)


def _forget_other_configuration(run: Path, config_text: str, given: Path | None) -> None:
    """Takes over from a run of other settings that never came to a checkpoint only a vocabulary that is named."""
    if begun_otherwise(run, config_text):
        for settled in (run / "plan.json", setup_path(run)):
            remove_tree(settled)
        if given is None or given.resolve() != (run / "tokenizer").resolve():
            remove_tree(run / "tokenizer")


def begun_otherwise(run: Path, config_text: str) -> bool:
    """Whether an earlier start in this directory had other settings, and never came to a checkpoint."""
    path = run / "config.yaml"
    return path.exists() and not list_checkpoints(run) and path.read_text(encoding="utf-8") != config_text
