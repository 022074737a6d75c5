"""The course of a training: rate, update, log; now and then validate and save.

Nothing here changes the weights. Validation alone decides something: when the learning rate begins to fall
(`training.patience`), and whether the run ends early (`training.early_stopping`).
"""

import contextlib
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor

from ...seq2seq.training.update import Trainer, diverged
from ...system.errors import DiskFull, EnvironmentFault, Interrupted, InterruptedAtOnce
from ...system.files import free_space
from ..runs.checkpoint import RunState, read_state
from ..runs.directory import RunDirectory
from ..runs.weights import model_tensors, write_checkpoint
from .run import Run
from .validation import IN_WORDS


def fit(run: Run, *, validate_first: bool = False) -> None:
    """Trains until the last update, or until validation no longer improves. May score the first weights, too.

    Raises:
        Interrupted: A stop was requested; the state has been saved, or the message says that it has not.
        TrainingDiverged: Several updates in a row had no finite gradient.
        EnvironmentFault: The run directory has got another name; the state has been saved there.
    """
    progress, plan, config = run.progress, run.plan, run.config
    if validate_first or _validation_is_due(run):
        _validate(run)
    while not run.has_ended:
        _stop_if_asked(run)
        _say_if_the_rate_begins_to_fall(run)
        rate = plan.learning_rate(progress.step + 1)
        run.ranks.send_rate(rate)
        divided = progress.divided
        grad_norm = run.trainer.update(rate)
        if progress.divided and not divided:
            _warn_of_pieces(run)
        _follow_directory(run)
        _log(run, rate, grad_norm)
        with _saving(run):
            plan.after_update(progress.step, lambda: score(run))
        run.log.after_update(progress, plan.max_steps, plan.phase(progress.step))
        if _validation_is_due(run):
            _validate(run)
        elif progress.step % config.checkpoint_every == 0:
            _save(run)
        _stop_if_moved(run)


def _warn_of_pieces(run: Run) -> None:
    """Says when a batch first does not fit into memory: the run is then another one."""
    run.reporter.warn(
        f"step {run.progress.step:,}: memory was not enough for a batch; it was computed in pieces, and such"
        " batches are from now on. No sentence is left out, and the result will be as good, but not bit for"
        " bit that of a run with enough memory (a smaller training.max_tokens_per_batch fits, in a new --run)"
    )


def _log(run: Run, rate: float, grad_norm: float | None) -> None:
    progress = run.progress
    if progress.step % run.config.log_every == 0:
        record = {"step": progress.step, "kind": "train", "epoch": progress.epoch, "loss": progress.mean_loss or 0.0}
        run.log.record(record | {"lr": rate, "grad_norm": grad_norm, "tokens": progress.tokens}, progress)
        progress.loss_sum, progress.loss_tokens = 0.0, 0


def _say_if_the_rate_begins_to_fall(run: Run) -> None:
    """Says that the rate begins to fall, where a run with `patience` has come near `max_steps` before its loss stopped
    falling."""
    plan, progress = run.plan, run.progress
    if not run.config.patience or progress.falling_since or plan.told_to_finish:
        return
    if plan.phase(progress.step) != "lr falls" and plan.phase(progress.step + 1) == "lr falls":
        run.reporter.say(
            f"step {progress.step:,}: the learning rate falls from now on, to 0 at step {plan.limit:,}, where the"
            " run ends: no more updates are allowed"
        )


# --- stopping ---


def _stop_if_asked(run: Run) -> None:
    if (number := run.interrupts.received) is not None:
        _save(run)
        raise Interrupted(f"stopped after step {run.progress.step:,}{_unsaved(run)}", number)


def _follow_directory(run: Run) -> None:
    """Takes note where somebody has moved the run directory, before anything is written."""
    before = run.directory.quoted
    if run.directory.follow():
        now = run.directory.quoted
        run.moved = f"{before} was moved to {now}; go on there: the same command with --run {now}"


def _stop_if_moved(run: Run) -> None:
    """Saves where the run directory is by now, and stops: going on would create a second run under the old name."""
    if run.moved:
        _save(run)
        raise EnvironmentFault(f"stopped after step {run.progress.step:,}{_unsaved(run)}: {run.moved}")


@contextlib.contextmanager
def _saving(run: Run) -> Iterator[None]:
    """Saves if a stop is requested inside the block."""
    try:
        yield
    except InterruptedAtOnce:
        raise  # perhaps while averages and weights were being exchanged; it says itself what is lost
    except Interrupted as error:
        _save(run)
        raise Interrupted(f"{error}{_unsaved(run)}", error.signal_number) from error


def _unsaved(run: Run) -> str:
    """What to say of stopping now if it loses something."""
    lost = ", before the time limit became a number of steps: these are not saved"
    return lost if run.length_is_open else ""


def _save(run: Run) -> None:
    """Saves. A run whose length is still open leaves no checkpoint: it would resume with another measurement."""
    if not run.length_is_open:
        save(run)


# --- saving ---


def save(run: Run) -> None:
    """Writes a checkpoint, and removes old ones; EnvironmentFault says which is safe if it cannot be written."""
    max_steps, score, loss = run.plan.max_steps, run.progress.score, run.progress.loss
    state = asdict(RunState(run.progress, max_steps, run.data.identity, run.environment(), score, loss))
    target = run.directory.checkpoint_path(run.progress.step)
    if target.is_dir() and not run.directory.examine(target) and read_state(target) == state:
        return  # a stop right after a save: what is there is what would be written
    trainer = run.trainer
    tensors = {"model": model_tensors(trainer.model), "optimizer": trainer.optimizer.tensors(trainer.model)}
    if trainer.average is not None:
        tensors["ema"] = trainer.average.tensors()
    _refuse_broken(tensors, run)
    try:
        run.log.sync()  # a checkpoint never outlives what was logged before it
        vocabulary = run.data.tokenizer.files()
        write_checkpoint(target, tensors=tensors, description=run.description, state=state, vocabulary=vocabulary)
    except EnvironmentFault as error:
        raise EnvironmentFault(_not_saved(run.directory, target, tensors, error)) from error
    run.directory.verified(target)
    prune(run)


def prune(run: Run) -> None:
    """Removes the checkpoints that are not kept, and says which of them were damaged."""
    for reason in run.directory.prune(keep=run.config.keep_checkpoints):
        run.reporter.warn(f"removed a checkpoint, as a newer one is sound: {reason}")


def _refuse_broken(tensors: dict[str, dict[str, Tensor]], run: Run) -> None:
    """Refuses to save what no training can go on from: a weight, a moment or an average that is not finite."""
    for name, group in tensors.items():
        for key, tensor in group.items():
            if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
                raise diverged(f"step {run.progress.step:,}", f"{key} ({name}) is not finite", run.config)


def _not_saved(
    directory: RunDirectory, target: Path, tensors: dict[str, dict[str, Tensor]], error: EnvironmentFault
) -> str:
    """Why a checkpoint could not be written, and what a start goes on from now."""
    reason = str(error)
    if isinstance(error, DiskFull):
        needed = sum(tensor.nbytes for group in tensors.values() for tensor in group.values())
        sizes = f"needs {needed / 1e6:.1f} MB, {free_space(target)}"
        reason = f"no space left on the disk of {target.parent} ({sizes})"
    safe = directory.newest_known_sound()
    goes_on = f"{safe.name} is safe, and the same command goes on from there" if safe else "None was saved before"
    return f"cannot save {target.name}: {reason}. {goes_on}"


# --- validation ---


def _validation_is_due(run: Run) -> bool:
    """Whether to validate: at every `validate_every`-th step and at the last one, once what follows may be saved."""
    progress = run.progress
    due = progress.step > 0 and (progress.step % run.config.validate_every == 0 or run.has_ended)
    return due and progress.validated_step != progress.step and not run.length_is_open


def _validate(run: Run) -> None:
    """Scores the model, keeps account of the best, lets the rate fall where it is time, and saves."""
    progress = run.progress
    with _saving(run), run.plan.timing_validation():
        result = score(run)
    _follow_directory(run)
    for name in ("loss", "score"):
        if not math.isfinite(result.get(name, 0.0)):
            raise diverged(f"step {progress.step:,}", f"the validation gave no finite {name}", run.config)
    if progress.best_score is None and (words := IN_WORDS.get(run.description.purpose)):
        run.reporter.say(words)
    progress.count_validation(result["score"], result.get("loss"), run.config.early_stopping)
    run.log.record({"step": progress.step, "kind": "validation", "epoch": progress.epoch, **result}, progress)
    _fall_if_due(run, result)
    _save(run)


def score(run: Run) -> dict[str, Any]:
    """Runs validation on the averaged weights, if there are any; keeps no account of it."""
    run.trainer.model.eval()
    with run.ranks.others_idle(), _averaged_weights(run.trainer):
        return run.validator(run.trainer.model, run.progress.step)


@contextlib.contextmanager
def _averaged_weights(trainer: Trainer) -> Iterator[None]:
    """Inside the block the model has the averaged weights, if there are any."""
    if trainer.average is None:
        yield
        return
    trainer.average.swap()
    try:
        yield
    finally:
        trainer.average.swap()


def _fall_if_due(run: Run, result: dict[str, Any]) -> None:
    """Lets the learning rate fall once the validation loss has not fallen for `training.patience` validations.

    Losses before the rate has come to its peak do not count: those of a model to start from may be lower.
    """
    progress, patience = run.progress, run.config.patience
    if not patience or progress.falling_since or progress.step <= run.config.warmup_steps:
        return
    progress.count_loss(result["loss"])
    if progress.validations_since < patience or not run.plan.fall(progress.step):
        return
    progress.falling_since = progress.step
    lowest = ""
    if progress.lowest_loss is not None:
        lowest = f" below {progress.lowest_loss:.3f}, that of step {progress.lowest_loss_step:,},"
    run.reporter.say(
        f"the validation loss has not fallen{lowest} for {progress.validations_since} validations:"
        f" the learning rate falls from now on, to 0 at step {run.plan.limit:,}, where the run ends"
    )
