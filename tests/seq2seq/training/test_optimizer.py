"""AdamW's groups and state, and the moving average."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tfm.seq2seq.model import ModelConfig, Transformer
from tfm.seq2seq.training.config import TrainingConfig
from tfm.seq2seq.training.optimizer import MovingAverage, Optimizer
from tfm.seq2seq.training.update import counter_seed, seed_torch

NAME = "encoder.layers.0.self_attn.q_proj.weight"


@pytest.fixture
def model() -> Transformer:
    torch.manual_seed(0)
    config = ModelConfig(d_model=8, d_ff=8, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, max_seq_len=8)
    return Transformer(config, src_vocab_size=9, tgt_vocab_size=9, shared_vocab=True)


def gradients(model: Transformer, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def test_weight_decay_spares_embeddings_norms_and_biases(model: Transformer) -> None:
    optimizer = Optimizer(model, TrainingConfig(weight_decay=0.1))
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    decayed = {names[id(p)] for group in optimizer.param_groups if group["weight_decay"] for p in group["params"]}
    spared = {names[id(p)] for group in optimizer.param_groups if not group["weight_decay"] for p in group["params"]}
    assert decayed | spared == set(names.values())
    assert all(name.endswith("weight") and "norm" not in name and "tokens" not in name for name in decayed)
    assert any("norm.weight" in name for name in spared)
    assert "src_embedding.tokens.weight" in spared
    assert "encoder.layers.0.self_attn.q_proj.weight" in decayed


def test_restored_moments_continue_bit_for_bit(model: Transformer) -> None:
    config = TrainingConfig(weight_decay=0.01)
    optimizer = Optimizer(model, config)
    for seed in range(3):
        gradients(model, seed)
        optimizer.step(1.0)
    saved = {name: tensor.clone() for name, tensor in optimizer.tensors(model).items()}
    weights = [parameter.detach().clone() for parameter in model.parameters()]
    gradients(model, 3)
    optimizer.step(1.0)
    expected = [parameter.detach().clone() for parameter in model.parameters()]

    with torch.no_grad():
        for parameter, weight in zip(model.parameters(), weights, strict=True):
            parameter.copy_(weight)
    fresh = Optimizer(model, config)
    fresh.restore(model, saved)
    gradients(model, 3)
    fresh.step(1.0)
    assert all(torch.equal(p, e) for p, e in zip(model.parameters(), expected, strict=True))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda moments: moments.update({"exp_avg/nobody": torch.zeros(1)}), "the model has no weight 'nobody'"),
        (lambda moments: moments.update({"nothing": torch.zeros(1)}), "the model has no weight ''"),
        (lambda moments: moments.pop(f"exp_avg/{NAME}"), f"{NAME} needs exp_avg, exp_avg_sq, step"),
        (lambda moments: moments.update({f"x/{NAME}": torch.zeros(1)}), "needs"),
        (lambda moments: moments.update({f"momentum_buffer/{NAME}": torch.zeros(1)}), "needs"),
        (lambda moments: moments.update({f"exp_avg/{NAME}": torch.zeros(1)}), "another shape or type"),
        (lambda moments: moments.update({f"exp_avg/{NAME}": moments[f"exp_avg/{NAME}"].half()}), "another shape"),
        (lambda moments: moments[f"exp_avg/{NAME}"].fill_(float("nan")), "impossible numbers"),
        (lambda moments: moments[f"exp_avg_sq/{NAME}"].fill_(-1), "impossible numbers"),
        (lambda moments: moments[f"step/{NAME}"].fill_(-1), "impossible numbers"),
    ],
)
def test_moments_of_another_model_are_refused(
    model: Transformer, change: Callable[[dict[str, Tensor]], object], words: str
) -> None:
    optimizer = Optimizer(model, TrainingConfig())
    gradients(model, 0)
    optimizer.step(1.0)
    moments = {name: tensor.clone() for name, tensor in optimizer.tensors(model).items()}
    Optimizer(model, TrainingConfig()).restore(model, moments)
    change(moments)
    with pytest.raises(ValueError, match=words):
        Optimizer(model, TrainingConfig()).restore(model, moments)


def test_the_moving_average_follows_the_formula(model: Transformer) -> None:
    average = MovingAverage(model, decay=0.9)
    expected = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for step in range(1, 200):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)
        average.update(step)
        decay = min(0.9, (1 + step) / (10 + step))
        for name, parameter in model.named_parameters():
            expected[name] = decay * expected[name] + (1 - decay) * parameter.detach()
    for name, tensor in average.tensors().items():
        torch.testing.assert_close(tensor, expected[name])


def test_swapping_twice_changes_nothing(model: Transformer) -> None:
    average = MovingAverage(model, decay=0.5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1)
    weights = [parameter.detach().clone() for parameter in model.parameters()]
    average.swap()
    assert not any(torch.equal(p, w) for p, w in zip(model.parameters(), weights, strict=True))
    average.swap()
    assert all(torch.equal(p, w) for p, w in zip(model.parameters(), weights, strict=True))


def test_counter_seeds_differ_by_every_argument_and_never_change() -> None:
    seeds = [
        counter_seed(1, "dropout", 5, 0),
        counter_seed(2, "dropout", 5, 0),
        counter_seed(1, "weights", 5, 0),
        counter_seed(1, "dropout", 6, 0),
        counter_seed(1, "dropout", 5, 1),
        counter_seed(1, "dropout", 51, 0),
    ]
    assert len(set(seeds)) == len(seeds)
    assert counter_seed(1, "dropout", 5, 0) == seeds[0]
    seed_torch(1, "dropout", 5, 0)
    first = torch.rand(4)
    torch.rand(100)
    seed_torch(1, "dropout", 5, 0)
    assert torch.equal(torch.rand(4), first)
