"""x = E[ids] * sqrt(D) + PE, and what the sinusoids PE are for ([Anonymous n.d.] and [Zhou n.d.])."""

import math
from collections.abc import Callable
from typing import get_args

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.config import Positions
from tfm.seq2seq.model.embedding import (
    Embedding,
    LearnedPositions,
    SinusoidalPositions,
    build_positions,
    embedding_parameters,
    sinusoidal_positions,
)

V, D = 11, 16


def embedding(config: ModelConfig) -> Embedding:
    module = Embedding(nn.Embedding(V, D), config)
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module


@pytest.mark.parametrize("d_model", [2, 6, 16, 512])
def test_sinusoids_are_the_formula_of_the_paper(d_model: int) -> None:
    length = 50
    formula = torch.empty(length, d_model, dtype=torch.float64)
    for pos in range(length):
        for i in range(d_model // 2):
            formula[pos, 2 * i] = math.sin(pos / 10000 ** (2 * i / d_model))
            formula[pos, 2 * i + 1] = math.cos(pos / 10000 ** (2 * i / d_model))
    table = sinusoidal_positions(length, d_model)
    assert table.dtype == torch.float32
    torch.testing.assert_close(table.double(), formula, atol=1e-7, rtol=0)


def test_sinusoids_stay_exact_far_away() -> None:
    pos = 100_000
    assert sinusoidal_positions(pos + 1, 2)[pos].tolist() == pytest.approx([math.sin(pos), math.cos(pos)], abs=1e-6)


def test_sinusoids_do_not_depend_on_the_length_of_the_table() -> None:
    assert sinusoidal_positions(100, D)[:10].equal(sinusoidal_positions(10, D))


def shift(k: int, d_model: int) -> Tensor:
    """The matrix that turns each (sin, cos) pair by the angle k / 10000^(2i / D)."""
    turn = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(d_model // 2):
        angle = k / 10000 ** (2 * i / d_model)
        sin, cos = math.sin(angle), math.cos(angle)
        turn[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.tensor([[cos, sin], [-sin, cos]])
    return turn


@pytest.mark.parametrize("k", [1, 2, 7, 30])
def test_a_shift_by_k_is_one_rotation_whatever_the_position(k: int) -> None:
    table = sinusoidal_positions(100, D).double()
    rotation = shift(k, D)
    torch.testing.assert_close(rotation @ rotation.t(), torch.eye(D, dtype=torch.float64))
    torch.testing.assert_close(table[k:], table[:-k] @ rotation.t(), atol=1e-6, rtol=0)


def test_sinusoids_are_bounded() -> None:
    assert sinusoidal_positions(5000, D).abs().max() <= 1


def test_each_position_has_its_own_vector() -> None:
    table = sinusoidal_positions(500, D)
    distances = torch.cdist(table, table, compute_mode="donot_use_mm_for_euclid_dist").fill_diagonal_(math.inf)
    assert distances.min() > 0.1


@pytest.mark.parametrize("scale", [True, False])
def test_tokens_are_one_hot_rows_times_the_matrix(tiny_config: Callable[..., ModelConfig], scale: bool) -> None:
    module = embedding(tiny_config(positions="none", scale_embeddings=scale))
    ids = torch.randint(V, (3, 5))
    one_hot = F.one_hot(ids, V).float()
    expected = one_hot @ module.tokens.weight * (math.sqrt(D) if scale else 1)
    torch.testing.assert_close(module(ids), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_positions_are_added_unscaled(tiny_config: Callable[..., ModelConfig], scale: bool, positions: str) -> None:
    module = embedding(tiny_config(positions=positions, scale_embeddings=scale))
    added = module.positions.weight if isinstance(module.positions, LearnedPositions) else sinusoidal_positions(32, D)
    ids = torch.randint(V, (3, 5))
    expected = module.tokens.weight[ids] * (4 if scale else 1) + added[:5]  # sqrt(16) = 4
    torch.testing.assert_close(module(ids), expected, atol=1e-6, rtol=0)


def test_build_positions_builds_what_the_name_says(tiny_config: Callable[..., ModelConfig]) -> None:
    assert isinstance(build_positions(tiny_config(positions="sinusoidal"), 8), SinusoidalPositions)
    assert isinstance(build_positions(tiny_config(positions="learned"), 8), LearnedPositions)
    assert build_positions(tiny_config(positions="none"), 8) is None


def test_positions_that_are_not_known_are_refused(tiny_config: Callable[..., ModelConfig]) -> None:
    config = tiny_config()
    object.__setattr__(config, "positions", "unheard-of")  # as if added after all else
    with pytest.raises(NotImplementedError, match=r"^positions 'unheard-of' is not implemented here$"):
        build_positions(config, 8)


def test_learned_positions_learn_and_sinusoids_do_not(tiny_config: Callable[..., ModelConfig]) -> None:
    ids = torch.randint(V, (2, 5))
    learned = embedding(tiny_config(positions="learned"))
    learned(ids).sum().backward()
    assert isinstance(learned.positions, LearnedPositions)
    gradient = learned.positions.weight.grad
    assert gradient is not None
    assert gradient[:5].equal(torch.full((5, D), 2.0))  # two sentences each
    assert not gradient[5:].any()
    assert [name for name, _ in embedding(tiny_config()).named_parameters()] == ["tokens.weight"]


@pytest.mark.parametrize("positions", get_args(Positions))
def test_all_of_it_is_looked_up(tiny_config: Callable[..., ModelConfig], positions: str) -> None:
    """So that positions of any kind begin as embeddings do, and have no weight decay."""
    module = embedding(tiny_config(positions=positions))
    assert {*map(id, embedding_parameters(module))} == {*map(id, module.parameters())}


@pytest.mark.parametrize("positions", get_args(Positions))
def test_a_longer_sentence_begins_as_the_shorter_one(tiny_config: Callable[..., ModelConfig], positions: str) -> None:
    module = embedding(tiny_config(positions=positions))
    ids = torch.randint(V, (2, 9))
    assert module(ids)[:, :4].equal(module(ids[:, :4]))


def test_learned_positions_end_at_max_seq_len(tiny_config: Callable[..., ModelConfig]) -> None:
    module = embedding(tiny_config(positions="learned", max_seq_len=6))
    assert module(torch.ones(2, 6, dtype=torch.long)).shape == (2, 6, D)
    with pytest.raises(ValueError, match=r"^sequence of 7 tokens, but max_seq_len is 6$"):
        module(torch.ones(2, 7, dtype=torch.long))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sinusoids_go_on_beyond_the_table(tiny_config: Callable[..., ModelConfig], dtype: torch.dtype) -> None:
    module, length = embedding(tiny_config(max_seq_len=6)).to(dtype), 40
    with torch.no_grad():
        module.tokens.weight.zero_()
        found = module(torch.zeros(1, length, dtype=torch.long))[0]
    for pos in range(length):
        angles = [pos / 10000 ** (2 * i / D) for i in range(D // 2)]
        formula = [value for angle in angles for value in (math.sin(angle), math.cos(angle))]
        assert found[pos].tolist() == pytest.approx(formula, abs=1e-6)
    assert found.dtype == dtype


def test_without_positions_there_is_no_longest_sequence(tiny_config: Callable[..., ModelConfig]) -> None:
    module = embedding(tiny_config(positions="none", max_seq_len=6))
    ids = torch.randint(V, (2, 30))
    assert module(ids).equal(module.tokens.weight[ids] * 4)  # sqrt(16) = 4


def test_dropout_falls_on_the_sum_of_token_and_position(tiny_config: Callable[..., ModelConfig]) -> None:
    module = embedding(tiny_config(dropout=0.5))
    ids = torch.randint(V, (3, 5))
    whole = module.eval()(ids)
    dropped = module.train()(ids)
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], 2 * whole[kept])
    assert 0 < kept.sum() < kept.numel()


def test_double_precision_stays(tiny_config: Callable[..., ModelConfig]) -> None:
    assert embedding(tiny_config()).double()(torch.ones(1, 2, dtype=torch.long)).dtype == torch.float64
