"""How good a machine is on its validation set, as one figure; and in how few bits its weights do as well."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from ....data.batching import training_rows
from ....data.corpus import Pair
from ....seq2seq.training.batch import Batch
from ...browser.precision import rounded
from ...embedder import Embedder
from ...evaluation.loss import evaluate_loss
from ...evaluation.retrieval import top_1
from ...evaluation.scores import score
from ...exportable import Weights
from ...generator import Generator
from ...runs.checkpoint import Purpose
from ...runs.load import TrainedRun
from ...translator import Translator

Machine = Translator | Generator | Embedder
_BATCH = 32


@dataclass(frozen=True)
class Figure:
    """What the quality of a kind of machine is called, which is better, and what 8 bits may cost of it."""

    name: str
    may_cost: float
    less_is_better: bool = False

    def cost(self, before: float, after: float) -> float:
        """How much worse one value is than another."""
        return after - before if self.less_is_better else before - after


BLEU = Figure("BLEU", 0.3)
LOSS = Figure("nats per piece", 0.01, less_is_better=True)
FOUND = Figure("% of translations found", 0.3)


MACHINES: dict[Purpose, type[Machine]] = {
    "translator": Translator,
    "language model": Generator,
    "sentence encoder": Embedder,
}
"""What puts a run to use."""


def machine_of(loaded: TrainedRun) -> Machine:
    """What puts this run to use."""
    return MACHINES[loaded.description.purpose].of(loaded)


def figure_of(machine: Machine) -> Figure:
    """What a machine is judged by."""
    if isinstance(machine, Translator):
        return BLEU
    return LOSS if isinstance(machine, Generator) else FOUND


def quality(machine: Machine, pairs: Sequence[Pair]) -> float:
    """The figure of a machine on pairs; a language model reads their targets.

    A translator searches as the run does by itself.
    """
    sources, targets = ([pair[side] for pair in pairs] for side in (0, 1))
    if isinstance(machine, Translator):
        return bleu([one.text for one in machine.translate(sources)], targets)
    if isinstance(machine, Embedder):
        return found(torch.from_numpy(machine.embed(sources)), torch.from_numpy(machine.embed(targets)), pairs)
    rows = training_rows(([], ids) for ids in _read(machine, targets))
    batches = (Batch.of(rows[start : start + _BATCH]) for start in range(0, len(rows), _BATCH))
    return evaluate_loss(machine.model, batches).loss


def bleu(outputs: Sequence[str], targets: Sequence[str]) -> float:
    """BLEU of outputs, each with one reference."""
    return score("bleu", list(outputs), [[target] for target in targets]).value


def found(sources: torch.Tensor, targets: torch.Tensor, pairs: Sequence[Pair]) -> float:
    """Share of sentences, in percent, whose vector is nearest to that of their translation; vectors (N, D) of pairs."""
    keys = [torch.tensor([side.index(text) for text in side]) for side in map(list, zip(*pairs, strict=True))]
    return top_1(sources, targets, keys[0], keys[1]).mean


def _read(generator: Generator, texts: Sequence[str]) -> list[list[int]]:
    """Ids of the texts that a language model reads whole."""
    encoded = [generator.tokenizer.tgt.encode(text) for text in texts]
    return [ids for ids in encoded if len(ids) < generator.max_pieces]


@dataclass(frozen=True)
class WeightsChoice:
    """In how many bits weights are stored, and why."""

    weights: Weights
    reason: str


def choose_weights(loaded: TrainedRun, pairs: Sequence[Pair]) -> WeightsChoice:
    """8 bits, or 16 where 8 cost too much of the quality on pairs of the validation set."""
    if not pairs:
        return WeightsChoice("int8", "weights in int8; without a validation set no one knows what that costs")
    machine, in_8_bits = machine_of(loaded), machine_of(replace(loaded, model=rounded(loaded.model, "int8")))
    figure, before, after = figure_of(machine), quality(machine, pairs), quality(in_8_bits, pairs)
    said = f"{figure.name} {before:.2f}, with weights in int8 {after:.2f} ({after - before:+.2f})"
    if figure.cost(before, after) <= figure.may_cost:
        return WeightsChoice("int8", said)
    return WeightsChoice("float16", f"{said}: that costs more than {figure.may_cost:g}, so that weights are float16")
