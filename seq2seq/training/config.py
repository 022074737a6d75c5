"""How a model is trained. A plain dataclass: no torch."""

import math
import re
from dataclasses import dataclass
from typing import ClassVar, Literal

Objective = Literal["next_token", "contrastive", "masked_lm"]
"""What can be minimised."""
Schedule = Literal["inverse_sqrt", "cosine", "trapezoid", "constant"]


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of the optimisation and of the run's cadence."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    seed: int = 1
    """Weights, batch order, dropout and the held-out split are functions of it."""
    objective: Objective | None = None
    """What is minimised; if not given, what the architecture is for. `next_token`: each target token from what is
    before it. An encoder_only model has `contrastive`: which target belongs to which source of its batch; or
    `masked_lm`: some tokens that were hidden, from those around them."""
    max_steps: int | None = 20_000
    """Optimizer updates; may be left open (`null`) where `max_time` or `patience` ends the run."""
    max_time: str | None = None
    """Time in all, such as `20m`, `8h` or `90s`. It becomes a number of steps, after the first ones are timed."""
    patience: int = 0
    """Validations without a lower loss after which a trapezoid's learning rate begins to fall, so that the run finds
    its length by itself: with f = decay_fraction it then has 1 / (1 - f) times the steps so far. `max_steps` and
    `max_time` can only shorten it. 0: they alone decide."""
    max_tokens_per_batch: int = 4096
    """Most positions of a batch on either side, padding included. What subword dropout adds comes on top; on a
    GPU about an eighth more, at most, to have few sizes."""
    grad_accum_steps: int = 1
    """Batches whose gradients are added before an update; the loss is normalised by all their tokens."""
    ranks: int | None = None
    """Processes that share an update; if not given, on a CPU, as many as serve the cores. Batches are cut for them."""
    optimizer: Literal["adamw", "muon"] = "adamw"
    """`muon`: Muon for the matrices inside the layers, AdamW for all else."""
    learning_rate: float = 1e-3
    """Peak learning rate of AdamW."""
    muon_learning_rate: float = 0.02
    """Peak learning rate of Muon."""
    schedule: Schedule = "inverse_sqrt"
    """Shape of the learning rate after warm-up."""
    warmup_steps: int = 1000
    """Updates over which the learning rate rises linearly to its peak."""
    decay_fraction: float = 0.5
    """Share of all steps, at the end, over which the trapezoid schedule falls to zero."""
    adam_betas: tuple[float, float] = (0.9, 0.98)
    """Decay of AdamW's running means of the gradient and of its square."""
    adam_eps: float = 1e-9
    """What AdamW adds to the root that it divides by."""
    weight_decay: float = 0.0
    """Decoupled weight decay on matrices, in AdamW and Muon; biases, norms and embeddings have none."""
    max_grad_norm: float = 1.0
    """Gradients are scaled down to this norm; 0 switches clipping off."""
    label_smoothing: float = 0.1
    """Share of the target distribution spread evenly over the vocabulary (paper section 5.4; as F.cross_entropy).
    `contrastive` has none."""
    subword_dropout: float = 0.0
    """Probability of reading a piece as two shorter ones, drawn anew each epoch; 0 for none. For small corpora."""
    both_directions: bool = False
    """Whether each pair is turned round, from target to source, in every second epoch. For small corpora; only a
    translator with one vocabulary learns from that."""
    ema_decay: float = 0.0
    """Decay of the exponential moving average of the weights that validation and translation use; 0 for none."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Precision of matrix products; `auto` measures on a CPU which one is faster, at the first start of a run."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where it is computed; `auto` takes a GPU if there is one."""
    log_every: int = 50
    """Steps between two lines of metrics.jsonl."""
    tensorboard: bool = False
    """Whether TensorBoard gets the figures of metrics.jsonl, too: `tensorboard --logdir runs`; needs the extra
    `tfm[tensorboard]`."""
    validate_every: int = 500
    """Steps between two validations."""
    checkpoint_every: int = 500
    """Steps between two checkpoints; one is also written after each validation."""
    keep_checkpoints: int = 2
    """Newest checkpoints kept, besides the best."""
    validation_sentences: int = 500
    """Sentences of the validation set that are translated (greedily) at each validation; the loss takes all of it."""
    best_metric: Literal["bleu", "chrf", "exact", "loss", "retrieval"] = "bleu"
    """What makes a checkpoint the best, and what early stopping watches."""
    early_stopping: int = 0
    """Validations without improvement after which training stops; 0 for never."""

    def __post_init__(self) -> None:
        problems = [
            f"{name} must be at least 1, but is {getattr(self, name)}"
            for name in (
                "max_steps",
                "max_tokens_per_batch",
                "grad_accum_steps",
                "ranks",
                "log_every",
                "validate_every",
                "checkpoint_every",
                "keep_checkpoints",
                "validation_sentences",
            )
            if getattr(self, name) is not None and getattr(self, name) < 1
        ]
        if self.max_steps is None and self.max_time is None and not self.patience:
            problems.append("max_steps must be given where there is neither max_time nor patience")
        problems += self._contradicts_patience() + self._out_of_range()
        if problems:
            raise ValueError("\n".join(problems))

    def _contradicts_patience(self) -> list[str]:
        """What patience does not go with."""
        problems: list[str] = []
        if self.patience and self.schedule != "trapezoid":
            problems.append(
                f"patience needs the trapezoid schedule, but schedule is {self.schedule}; set training.patience=0"
            )
        if self.patience and self.decay_fraction == 1:
            problems.append("patience needs a flat part, and with decay_fraction 1 there is none")
        if self.patience and self.early_stopping:
            problems.append("patience and early_stopping both end a run; leave one of them at 0")
        return problems

    def _out_of_range(self) -> list[str]:
        problems: list[str] = []
        for name in ("seed", "patience", "warmup_steps", "weight_decay", "max_grad_norm", "early_stopping"):
            if not 0 <= getattr(self, name) < 2**63:
                problems.append(f"{name} must be at least 0 and below 2^63, but is {getattr(self, name)}")
        for name in ("learning_rate", "muon_learning_rate"):
            if not 0 < getattr(self, name) < math.inf:
                problems.append(f"{name} must be above 0, but is {getattr(self, name)}")
        if not 0 < self.decay_fraction <= 1:
            problems.append(f"decay_fraction must be above 0 and at most 1, but is {self.decay_fraction}")
        if not all(0 <= beta < 1 for beta in self.adam_betas):
            problems.append(f"adam_betas must be at least 0 and below 1, but are {list(self.adam_betas)}")
        if not 0 < self.adam_eps < 1:
            problems.append(f"adam_eps must be above 0 and below 1, but is {self.adam_eps}")
        for name in ("label_smoothing", "subword_dropout", "ema_decay"):
            if not 0 <= getattr(self, name) < 1:
                problems.append(f"{name} must be at least 0 and below 1, but is {getattr(self, name)}")
        if self.max_time is not None:
            try:
                parse_duration(self.max_time)
            except ValueError as error:
                problems.append(f"max_time: {error}")
        return problems


def parse_duration(text: str) -> float:
    """Seconds of a duration such as `90s`, `20m`, `8h`, `1h30m` or `2d`.

    Raises:
        ValueError: Not such a text, or zero.
    """
    units = {"d": 86400, "h": 3600, "m": 60, "s": 1}
    parts = re.findall(r"(\d+(?:\.\d+)?)([dhms])", text)
    seconds = sum(float(number) * units[unit] for number, unit in parts)
    if "".join(number + unit for number, unit in parts) != text or not seconds:
        raise ValueError(f"a duration is a number with a unit, such as 90s, 20m or 8h, but this is {text!r:.60}")
    return seconds
