"""The better model becomes a checkpoint of the run that it was to improve: its best and its last one."""

from dataclasses import asdict, replace
from pathlib import Path

from ...seq2seq.training.progress import Progress
from ...system.files import json_bytes
from ..runs.checkpoint import MODEL_FILES, checkpoint_step, read_file, read_state, write_files
from ..runs.directory import IMPROVED, RunDirectory, improved_with


def take_over(run: RunDirectory, checkpoint: Path, text: str) -> Path:
    """Puts a model beside the checkpoints of a run, in one rename, unless it is there; returns where it is.

    It has its vocabulary with it, and no moments: no training goes on from it.

    Args:
        checkpoint: Of the training that made the model.
        text: What it was improved with.
    """
    there = [path for path in run.sound_checkpoints()[0] if improved_with(read_state(path)) == text]
    weights = read_file(checkpoint, "model.safetensors")
    for path in there:
        if read_file(path, "model.safetensors") == weights:
            return path
    state = read_state(checkpoint)
    step = checkpoint_step(run.checkpoints()[-1]) + 1
    progress = replace(Progress(**state["progress"]), step=step, best_step=step, validated_step=step)
    state |= {"progress": asdict(progress), "environment": {**state["environment"], IMPROVED: text}}
    files = {name: read_file(checkpoint, name) for name in MODEL_FILES if (checkpoint / name).exists()}
    target = run.checkpoint_path(step)
    write_files(target, {**files, "state.json": json_bytes(state)})
    return target
