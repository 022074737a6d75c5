"""Graphs do what an update does, bit for bit; without a GPU a stand-in records what it would compute again."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.fixed_batches import PAIRS, FixedBatches, WholeBatches, build_model, make_trainer
from torch import Tensor

from tfm.data.batching import training_rows
from tfm.seq2seq.training import graphs as graphs_module
from tfm.seq2seq.training.batch import Batch, Packer
from tfm.seq2seq.training.graphs import CudaGraphs
from tfm.seq2seq.training.optimizer import MovingAverage, Optimizer
from tfm.seq2seq.training.update import Trainer

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
RATES = [3e-3, 1e-3, 2e-3, 5e-4, 1e-3, 4e-3]


class Again:
    """Stands in for a graph: to replay it is to do the same work again."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.replay = work


class Faked(CudaGraphs):
    """Graphs without a GPU. Real ones compute nothing while they are recorded: these undo what they compute then."""

    recorded = 0

    def _warm_up(self, batch: Batch) -> None:
        del batch

    def _capture(self, work: Callable[[], None]) -> Any:
        self.recorded += 1
        changed = [*self._parameters, *(one.grad for one in self._parameters if one.grad is not None)]
        then = [tensor.detach().clone() for tensor in changed]
        if work.__name__ == "passes":  # the tensor of the loss must be there
            with torch.random.fork_rng():
                work()
        with torch.no_grad():
            for tensor, before in zip(changed, then, strict=True):
                tensor.copy_(before)
        return Again(work)


def batches(device: str) -> WholeBatches:
    packer = Packer(60)
    parts = [[0, 1, 2, 3], [1, 3], [0, 2], [3]]
    rows = [training_rows([PAIRS[number] for number in part]) for part in parts]
    return WholeBatches(*(packer.pack(some, torch.device(device)) for some in rows))


def trained(device: str, graphs: type[CudaGraphs] | None, **settings: Any) -> tuple[Trainer, list[Tensor]]:
    """A trainer after some updates, and its weights, their averages, and the optimizer's state."""
    model = build_model(dropout=0.1).to(device)
    trainer = make_trainer(model, batches(device), **settings)
    trainer.average = MovingAverage(model, 0.9)
    if graphs is not None:
        trainer.graphs = graphs(lambda batch: trainer.loss(model, batch), list(model.parameters()))
    for rate in RATES:
        trainer.update(rate)
    everything = model.state_dict() | trainer.optimizer.tensors(model)
    everything |= {f"average/{name}": value for name, value in trainer.average.tensors().items()}
    # A bias of keys changes no output: its gradient is rounding, and AdamW makes of it what it is in size.
    return trainer, [value for name, value in everything.items() if "k_proj.bias" not in name]


def raising(message: str) -> Callable[..., None]:
    def fail(graphs: CudaGraphs, batch: Batch) -> None:
        raise RuntimeError(message)

    return fail


@pytest.mark.parametrize("settings", [{}, {"optimizer": "muon"}, {"grad_accum_steps": 2}])
def test_a_stand_in_for_graphs_makes_the_same_updates(settings: dict[str, Any]) -> None:
    """Weights differ by rounding alone: a rate in a tensor is a float32."""
    trainer, found = trained("cpu", Faked, **settings)
    _, expected = trained("cpu", None, **settings)
    shapes = {batch.shape for batch in batches("cpu").batches}
    assert isinstance(trainer.graphs, Faked) and trainer.graphs.recorded == len(shapes) + 1  # and the step
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_what_is_not_packed_has_no_graph() -> None:
    model = build_model()
    graphs = Faked(lambda batch: (torch.zeros(()), batch.num_tokens), list(model.parameters()))
    assert not graphs.ready(batches("cpu").batches[0].unpacked()) and graphs.recorded == 0


def test_no_more_graphs_than_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs_module, "MOST_GRAPHS", 1)
    rows = training_rows(PAIRS)
    one, other = (Packer(size).pack(rows) for size in (60, 6000))
    trainer = make_trainer(build_model(), FixedBatches(one))
    graphs = Faked(lambda batch: trainer.loss(trainer.model, batch), list(trainer.model.parameters()))
    assert graphs.ready(one) and not graphs.ready(other) and graphs.ready(one)


def test_where_memory_is_short_the_plain_way_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Faked, "_warm_up", raising("CUDA out of memory"))
    trainer, found = trained("cpu", Faked)
    _, expected = trained("cpu", None)
    assert isinstance(trainer.graphs, Faked) and not trainer.progress.divided
    for one, another in zip(found, expected, strict=True):
        torch.testing.assert_close(one, another, rtol=1e-4, atol=1e-6)


def test_other_errors_of_a_recording_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Faked, "_warm_up", raising("something else"))
    with pytest.raises(RuntimeError, match="something else"):
        trained("cpu", Faked)


@needs_cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("settings", [{}, {"optimizer": "muon"}, {"grad_accum_steps": 2}])
def test_graphs_give_the_bits_of_the_plain_way(settings: dict[str, Any], dtype: torch.dtype) -> None:
    class PlainPasses(CudaGraphs):
        """The step takes its rate from a tensor here, too."""

        def ready(self, batch: Batch) -> bool:
            return False

        def step(self, optimizer: Optimizer, rate: float) -> None:
            optimizer.step(self._rate.fill_(rate))

    _, found = trained("cuda", CudaGraphs, dtype=dtype, **settings)
    _, expected = trained("cuda", PlainPasses, dtype=dtype, **settings)
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)


@needs_cuda
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_a_trainer_that_goes_on_makes_the_updates_of_one_that_was_not_stopped(optimizer: Any) -> None:
    """Its first step is a replay, as the same step of the other one is."""

    def start() -> Trainer:
        model = build_model(dropout=0.1).to("cuda")
        trainer = make_trainer(model, batches("cuda"), dtype=torch.bfloat16, optimizer=optimizer)
        trainer.graphs = CudaGraphs(lambda batch: trainer.loss(model, batch), list(model.parameters()))
        return trainer

    whole, stopped, resumed = start(), start(), start()
    for rate in RATES:
        whole.update(rate)
    for rate in RATES[:3]:
        stopped.update(rate)
    resumed.model.load_state_dict(stopped.model.state_dict())
    resumed.optimizer.restore(resumed.model, stopped.optimizer.tensors(stopped.model))
    resumed.progress.__dict__.update(stopped.progress.__dict__)
    for rate in RATES[3:]:
        resumed.update(rate)
    for one, other in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(one, other)
