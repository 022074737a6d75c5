"""Losses and scores as events for TensorBoard: `training.tensorboard`. Nothing else needs the extra of this name."""

from pathlib import Path
from typing import Any

from ...system.errors import EnvironmentFault


class Events:
    """Writes the figures of `metrics.jsonl` into a folder, under `train/` and `validation/`.

    Raises:
        EnvironmentFault: TensorBoard is not installed.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard.writer import SummaryWriter
        except ImportError as error:
            raise EnvironmentFault("training.tensorboard needs TensorBoard: pip install 'tfm[tensorboard]'") from error
        self._make, self._folder, self._writer = SummaryWriter, folder, None

    def go_on(self, step: int) -> None:
        """Takes back what is after a step: it will come again."""
        self._writer = self._make(str(self._folder), purge_step=step + 1)

    def add(self, record: dict[str, Any]) -> None:
        """A line of metrics.jsonl."""
        assert self._writer is not None, "go_on was called"
        for name, value in record.items():
            if name not in ("step", "epoch") and isinstance(value, int | float):
                self._writer.add_scalar(f"{record['kind']}/{name}", value, record["step"])
        self._writer.flush()

    def close(self) -> None:
        """Ends the file."""
        if self._writer is not None:
            self._writer.close()
