"""Where the checkpoints of a run lie. Needs no torch, so that the command line can look without waiting for it."""

import re
from pathlib import Path

_STEP_NAME = re.compile(r"step-(\d{6,})")


def checkpoint_path(run: Path, step: int) -> Path:
    """Where the checkpoint of a step lies."""
    return run / "checkpoints" / f"step-{step:06d}"


def checkpoint_step(directory: Path) -> int:
    """The step that a checkpoint directory is named after."""
    match = _STEP_NAME.fullmatch(directory.name)
    return int(match[1]) if match else -1


def list_checkpoints(run: Path) -> list[Path]:
    """All checkpoint directories of a run, oldest first, valid or not, but not what a save that was cut short left."""
    folder = run / "checkpoints"
    found = [path for path in folder.iterdir() if _STEP_NAME.fullmatch(path.name)] if folder.is_dir() else []
    return sorted(found, key=checkpoint_step)
