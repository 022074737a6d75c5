"""What a rank other than the leader does: it builds the same model and makes the same updates on its micro-batches."""

import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ...data.errors import EnvironmentFault
from ...data.store import open_store
from ...data.subword_dropout import SubwordDropout
from ..checkpoint import ModelDescription
from ..device import keep_freed_memory, own_device
from .config import TrainingConfig
from .loop import Progress, Trainer
from .optimizer import Optimizer
from .prepare import StoreBatches
from .ranks import Ranks, started_follower


@dataclass(frozen=True)
class Start:
    """All that a follower needs to stand where the leader stands."""

    config: TrainingConfig
    device: str
    dtype: torch.dtype
    muon_dtype: torch.dtype
    parts: int
    description: ModelDescription
    train_store: Path
    subword_dropout: tuple[SubwordDropout, SubwordDropout] | None
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    progress: Progress


def follow(ranks: Ranks) -> None:
    """Takes the leader's `Start` and trains along until the leader stops."""
    keep_freed_memory()
    start: Start | None = ranks.hand_out()
    if start is None:  # the run is finished
        return
    device = own_device(start.device)
    model = start.description.build()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(start.weights[name])
    model.to(device)
    optimizer = Optimizer(model, start.config, ranks=ranks, dtype=start.muon_dtype)
    optimizer.restore(model, start.optimizer)
    store = open_store(start.train_store)
    if store is None:
        raise EnvironmentFault(f"{start.train_store} is not there; all processes of a run must see its directory")
    trainer = Trainer(
        model=model,
        optimizer=optimizer,
        average=None,  # the leader's, who validates and saves
        config=start.config,
        batches=StoreBatches(store, start.config, device, start.subword_dropout),
        dtype=start.dtype,
        progress=start.progress,
        ranks=ranks,
        parts=start.parts,
    )
    trainer.follow()


if __name__ == "__main__":
    follow(started_follower(sys.argv[1:]))
