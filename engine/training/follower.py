"""What a rank other than the leader does: it builds the same model and makes the same updates on its micro-batches."""

import json
import sys
from dataclasses import asdict, dataclass, fields
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from ...data.store import open_store
from ...data.tokenizer import Tokenizer
from ...seq2seq.training.config import TrainingConfig
from ...seq2seq.training.progress import Progress
from ...system.errors import EnvironmentFault
from ..device import keep_freed_memory, own_device
from ..runs.checkpoint import ModelDescription
from ..workers.handout import handed_out
from ..workers.ranks import Ranks, started_follower
from .build import build_trainer
from .precision import DTYPES, Precision


@dataclass(frozen=True)
class Start:
    """All that a follower needs to stand where the leader stands, besides the leader's files.

    It travels as JSON and safetensors; its tensors are on the CPU.
    """

    config: TrainingConfig
    description: ModelDescription
    progress: Progress
    device: str
    precision: Precision
    muon_precision: Precision
    parts: int
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]

    def to_bytes(self) -> bytes:
        """Itself as bytes: the length of a JSON header, the header, a safetensors file."""
        tensors = {f"weights/{name}": tensor for name, tensor in self.weights.items()}
        tensors |= {f"optimizer/{name}": tensor for name, tensor in self.optimizer.items()}
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("config", "description", "progress"):
            plain[name] = asdict(plain[name])
        del plain["weights"], plain["optimizer"]
        contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
        header = json.dumps(plain).encode()
        return len(header).to_bytes(8) + header + safetensors.torch.save(contiguous)

    @classmethod
    def from_bytes(cls, content: bytes) -> "Start":
        """The opposite."""
        start = 8 + int.from_bytes(content[:8])
        plain: dict[str, Any] = json.loads(content[8:start])
        tensors = safetensors.torch.load(content[start:])
        config = plain.pop("config")
        config["adam_betas"] = tuple(config["adam_betas"])
        return cls(
            config=TrainingConfig(**config),
            description=ModelDescription(**plain.pop("description")),
            progress=Progress(**plain.pop("progress")),
            weights=_below("weights/", tensors),
            optimizer=_below("optimizer/", tensors),
            **plain,
        )


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def follow(ranks: Ranks) -> None:
    """Takes the leader's `Start` and trains along until the leader stops."""
    keep_freed_memory()
    content = ranks.broadcast()
    if not content:  # the run is finished
        return
    start = Start.from_bytes(content)
    with handed_out(ranks) as (tokenizer, train_store):
        store = open_store(train_store)
        if store is None:
            raise EnvironmentFault(f"{train_store} is damaged; run the same command once more")
        trainer = build_trainer(
            start.config,
            start.description,
            Tokenizer.load(tokenizer),
            store,
            device=own_device(start.device),
            dtype=DTYPES[start.precision],
            muon_dtype=DTYPES[start.muon_precision],
            parts=start.parts,
            group=ranks,
            progress=start.progress,
        )
        with torch.no_grad():
            for name, parameter in trainer.model.named_parameters():
                parameter.copy_(start.weights[name])
        trainer.optimizer.restore(trainer.model, start.optimizer)
        ranks.share_memory(trainer.gradients.flat.nbytes)
        for learning_rate in ranks.rates():
            trainer.update(learning_rate)


if __name__ == "__main__":
    follow(started_follower(sys.argv[1:]))
