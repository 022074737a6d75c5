"""Dropout: the right rate, the right expectation, independent, and reproducible from torch's seed.

Statistics are taken over N elements at a fixed seed, with a tolerance of five standard deviations.
"""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tfm.seq2seq.model.dropout import Dropout

N = 2**18
RATES = [0.1, 0.25, 0.5, 0.9]
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def in_256ths(rate: float) -> float:
    """The rate a CPU can draw: one byte for each element."""
    return round(rate * 256) / 256


def five_sigma(variance: float, count: int) -> float:
    return 5 * math.sqrt(variance / count)


def ones_after_dropout(rate: float, *shape: int) -> Tensor:
    return Dropout(rate)(torch.ones(shape))


def test_off_in_eval() -> None:
    x = torch.randn(100)
    assert Dropout(0.5).eval()(x).equal(x)


def test_rate_0_is_the_identity() -> None:
    x = torch.randn(100)
    assert Dropout(0.0)(x).equal(x)


def test_rate_0_draws_no_random_numbers() -> None:
    before = torch.get_rng_state()
    Dropout(0.0)(torch.ones(100))
    assert torch.get_rng_state().equal(before)


@pytest.mark.parametrize("rate", RATES)
def test_each_element_is_zero_or_scaled(rate: float) -> None:
    x = torch.randn(1000)
    y = Dropout(rate)(x)
    kept = y != 0
    assert 0 < kept.sum() < 1000
    torch.testing.assert_close(y[kept], x[kept] / (1 - in_256ths(rate)))


@pytest.mark.parametrize("rate", RATES)
def test_the_share_of_zeros_is_the_rate(rate: float) -> None:
    p = in_256ths(rate)
    dropped = (ones_after_dropout(rate, N) == 0).double().mean().item()
    assert abs(dropped - p) < five_sigma(p * (1 - p), N)
    assert abs(dropped - rate) < 1 / 512 + five_sigma(p * (1 - p), N)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_each_of_eight_neighbours_has_the_same_rate(rate: float) -> None:
    p = in_256ths(rate)
    dropped = (ones_after_dropout(rate, N // 8, 8) == 0).double().mean(dim=0)
    assert (dropped - p).abs().max() < five_sigma(p * (1 - p), N // 8)


@pytest.mark.parametrize("rate", RATES)
def test_the_expectation_is_preserved(rate: float) -> None:
    p = in_256ths(rate)
    mean = ones_after_dropout(rate, N).double().mean().item()
    assert abs(mean - 1) < five_sigma(p / (1 - p), N)


@pytest.mark.parametrize("distance", [*range(1, 9), 16, 64, N // 2])
def test_elements_are_uncorrelated_near_and_far(distance: int) -> None:
    zeros = (ones_after_dropout(0.25, N) == 0).double()
    zeros = (zeros - zeros.mean()) / zeros.std()
    correlation = (zeros[distance:] * zeros[:-distance]).mean().item()
    assert abs(correlation) < five_sigma(1, N - distance)


def test_two_calls_are_uncorrelated() -> None:
    dropout, x = Dropout(0.5), torch.ones(N)
    first, second = dropout(x) - 1, dropout(x) - 1
    assert abs((first * second).mean().item()) < five_sigma(1, N)


def test_the_seed_decides() -> None:
    def draw(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return ones_after_dropout(0.5, 256)

    assert draw(1).equal(draw(1))
    assert not draw(1).equal(draw(2))


def test_the_gradient_is_the_mask() -> None:
    x = torch.randn(50, requires_grad=True)
    y: Tensor = Dropout(0.5)(x)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.unique().tolist() == [0, 2]
    assert y.equal(x * x.grad)


@given(shape=st.lists(st.integers(0, 9), min_size=0, max_size=4), seed=st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_any_shape_is_kept_odd_empty_or_scalar(shape: list[int], seed: int) -> None:
    torch.manual_seed(seed)
    y = ones_after_dropout(0.5, *shape)
    assert y.shape == tuple(shape)
    assert ((y == 0) | (y == 2)).all()


@pytest.mark.parametrize("length", [1, 7, 9, 63])
def test_the_last_elements_of_an_odd_size_drop_too(length: int) -> None:
    last = torch.stack([ones_after_dropout(0.5, length)[-1] for _ in range(1000)])
    assert abs((last == 0).double().mean().item() - 0.5) < five_sigma(0.25, 1000)


def test_a_transposed_tensor_keeps_its_elements() -> None:
    x = torch.arange(1.0, 22.0).view(3, 7).t()
    y = Dropout(0.5)(x)
    assert ((y == 0) | (y == 2 * x)).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_the_dtype_stays(dtype: torch.dtype) -> None:
    y = Dropout(0.5)(torch.ones(100, dtype=dtype))
    assert y.dtype == dtype
    assert y.unique().tolist() == [0, 2]


@pytest.mark.parametrize(("rate", "drawn"), [(1e-6, 1 / 256), (0.9999, 255 / 256)])
def test_extreme_rates_neither_keep_all_nor_drop_all(rate: float, drawn: float) -> None:
    y = ones_after_dropout(rate, N)
    dropped = (y == 0).double().mean().item()
    assert abs(dropped - drawn) < five_sigma(drawn * (1 - drawn), N)
    assert y.max().item() == pytest.approx(1 / (1 - drawn))


@needs_cuda
def test_on_a_gpu_the_rate_and_the_expectation_hold() -> None:
    y = Dropout(0.25)(torch.ones(N, device="cuda"))
    assert abs((y == 0).double().mean().item() - 0.25) < five_sigma(0.25 * 0.75, N)
    assert abs(y.double().mean().item() - 1) < five_sigma(0.25 / 0.75, N)
