"""Saving: a checkpoint of where a training stands; older ones go when it is sound."""

from pathlib import Path

from torch import Tensor

from ...seq2seq.training.loop import diverged
from ...system.errors import DiskFull, EnvironmentFault
from ...system.files import free_space
from ..runs.checkpoint import read_state
from ..runs.directory import RunDirectory
from ..runs.state import RunState
from ..runs.weights import model_tensors, write_checkpoint
from .run import Run


def save(run: Run) -> None:
    """Writes a checkpoint, and removes old ones.

    Raises:
        EnvironmentFault: It cannot be written. Says which checkpoint is safe.
        TrainingDiverged: A number in it is not finite.
    """
    state = RunState(run.progress, run.plan.max_steps, run.data.identity, run.environment()).as_json()
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
