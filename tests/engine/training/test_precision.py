"""Which precision is faster is what the clock says, for the products of the model itself."""

import itertools
from collections.abc import Callable

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tfm.engine.training import precision as products
from tfm.engine.training.precision import Shapes, layer_matrices, muon_matrices, time_layers, time_muon
from tfm.seq2seq.model import ModelConfig, Transformer
from tfm.seq2seq.training.config import TrainingConfig
from tfm.seq2seq.training.optimizer import Optimizer


def build(d_model: int = 64, vocab_size: int = 500, **settings: str) -> Transformer:
    config = ModelConfig(d_model=d_model, d_ff=2 * d_model, num_heads=2, **settings)  # pyright: ignore[reportArgumentType]
    return Transformer(config, src_vocab_size=vocab_size, tgt_vocab_size=vocab_size, shared_vocab=True)


class Clock:
    """Passes so many seconds while something is computed, in turn, and none between."""

    def __init__(self, *seconds: float) -> None:
        self.now, self.calls = 0.0, 0
        self._seconds = itertools.cycle(seconds)

    def __call__(self) -> float:
        if self.calls % 2:
            self.now += next(self._seconds)
        self.calls += 1
        return self.now


def stub(monkeypatch: pytest.MonkeyPatch, *seconds: float) -> Clock:
    clock = Clock(*seconds)
    monkeypatch.setattr(products, "clock", clock)
    return clock


@pytest.mark.parametrize(("fp32", "bf16", "faster"), [(2e-3, 1e-3, "bf16"), (1e-3, 2e-3, "fp32")])
def test_the_faster_is_taken(monkeypatch: pytest.MonkeyPatch, fp32: float, bf16: float, faster: str) -> None:
    shapes: Shapes = layer_matrices(build())
    stub(monkeypatch, fp32, bf16)
    layers = time_layers(shapes, tokens=100)
    stub(monkeypatch, fp32, bf16)
    muon = time_muon(muon_matrices(build()))
    assert (layers.faster, muon.faster) == (faster, faster)
    assert layers.fp32 / layers.bf16 == pytest.approx(bf16 / fp32)


def test_rates_are_operations_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two matrices of 10 x 20 and one of 30 x 40, with 50 tokens: 3 products of 2 operations a multiplication."""
    stub(monkeypatch, 0.5, 1.0)
    rates = time_layers(Shapes({(10, 20): 2, (30, 40): 1}), tokens=50)
    operations = 3 * 2 * 50 * (2 * 10 * 20 + 30 * 40)
    assert rates == pytest.approx((operations / (3 * 0.5) / 1e9, operations / (3 * 1.0) / 1e9))


def test_the_fastest_of_the_rounds_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One pause in either precision; alone it would decide."""
    stub(monkeypatch, 30.0, 1.1, 1.0, 1.1, 1.0, 1.1)
    assert time_layers(Shapes({(8, 8): 1}), tokens=8).faster == "fp32"
    stub(monkeypatch, 1.1, 30.0, 1.1, 1.0, 1.1, 1.0)
    assert time_layers(Shapes({(8, 8): 1}), tokens=8).faster == "bf16"


def test_emulated_arithmetic_is_found_out_at_the_first_product(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = stub(monkeypatch, 1.0, 50.0)
    assert time_layers(Shapes({(8, 8): 1}), tokens=8).faster == "fp32"
    assert clock.calls == 2 * 2 * 2  # two rounds of both, each timed from here to there
    seen: list[torch.dtype] = []
    linear = torch.nn.functional.linear

    def see(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        seen.append(x.dtype)
        return linear(x, weight)

    monkeypatch.setattr(torch.nn.functional, "linear", see)
    time_layers(Shapes({(8, 8): 1, (80, 80): 1}), tokens=8)
    assert seen.count(torch.bfloat16) == 3  # one to prepare, two timed, none of the larger matrix
    assert seen.count(torch.float32) > 3


def count_operations(function: Callable[[], object]) -> float:
    with FlopCounterMode(display=False) as counter:
        function()
    return counter.get_total_flops()


def test_timing_takes_well_under_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """The base model with a large vocabulary, and more, on a processor of 30 GFLOP/s in both precisions."""
    with torch.device("meta"):
        base = Transformer(ModelConfig(), src_vocab_size=37_000, tgt_vocab_size=37_000, shared_vocab=True)
    stub(monkeypatch, 1.0)
    assert count_operations(lambda: time_layers(layer_matrices(base), tokens=4096)) / 30e9 < 0.9
    assert count_operations(lambda: time_muon(Shapes({(4096, 16384): 3}))) / 30e9 < 0.9
    toy = build(128, 1421)
    assert count_operations(lambda: time_layers(layer_matrices(toy), tokens=2048)) / 30e9 < 0.4


@pytest.mark.parametrize("activation", ["relu", "swiglu"])
def test_the_matrices_are_those_of_a_forward_pass(activation: str) -> None:
    """torch's own counter of operations sees the same in the layers, attention's products of heads left out."""
    model, tokens = build(activation=activation), 64  # of shorter sentences, attention adds up weights with `mm`
    ids = torch.ones(1, tokens, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        model(ids, ids)
    linear = {str(op): flops for op, flops in counter.get_flop_counts()["Global"].items() if "bmm" not in str(op)}
    shapes = layer_matrices(model)
    assert sum(linear.values()) == sum(2 * tokens * i * o * count for (i, o), count in shapes.items())


def test_muons_matrices_are_those_that_it_turns() -> None:
    model = build()
    optimizer = Optimizer(model, TrainingConfig(optimizer="muon"))
    turned = [sorted(p.shape) for p in optimizer.param_groups[-1]["params"]]
    assert muon_matrices(model) == Shapes(map(tuple, turned))  # pyright: ignore[reportArgumentType]
    assert (64, 500) not in muon_matrices(model)
