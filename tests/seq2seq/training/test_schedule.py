"""Learning rates against the formulas, written inline."""

import math
from typing import get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tfm.seq2seq.training.config import Schedule, TrainingConfig
from tfm.seq2seq.training.schedule import learning_rate, length_matters_after, same_up_to

N, W, P = 1000, 100, 2e-3


def rates(schedule: str, steps: range, **settings: float) -> list[float]:
    config = TrainingConfig(learning_rate=P, warmup_steps=W, schedule=schedule, **settings)  # pyright: ignore[reportArgumentType]
    return [learning_rate(t, config, N) for t in steps]


@pytest.mark.parametrize("schedule", get_args(Schedule))
def test_warm_up_is_linear_from_almost_zero_to_the_peak(schedule: str) -> None:
    assert rates(schedule, range(1, W + 1)) == pytest.approx([P * t / W for t in range(1, W + 1)])


def test_inverse_sqrt_is_the_schedule_of_the_paper() -> None:
    d_model, warmup = 512, 4000
    config = TrainingConfig(learning_rate=(d_model * warmup) ** -0.5, warmup_steps=warmup, schedule="inverse_sqrt")
    for t in (1, 10, 3999, 4000, 4001, 20_000, 100_000):
        paper = d_model**-0.5 * min(t**-0.5, t * warmup**-1.5)
        assert learning_rate(t, config, 100_000) == pytest.approx(paper)


def test_cosine_falls_from_the_peak_to_zero() -> None:
    expected = [P * 0.5 * (1 + math.cos(math.pi * (t - W) / (N - W))) for t in range(W + 1, N + 1)]
    assert rates("cosine", range(W + 1, N + 1)) == pytest.approx(expected)
    assert rates("cosine", range(N, N + 1))[0] == pytest.approx(0, abs=1e-12)


def test_trapezoid_is_flat_and_then_falls_linearly_to_one_step_above_zero() -> None:
    assert rates("trapezoid", range(W, 601), decay_fraction=0.4) == pytest.approx([P] * (601 - W))
    falling = [P * (N + 1 - t) / 400 for t in range(602, N + 1)]
    assert rates("trapezoid", range(602, N + 1), decay_fraction=0.4) == pytest.approx(falling)
    assert rates("trapezoid", range(N, N + 1), decay_fraction=0.4)[0] == pytest.approx(P / 400)


def test_constant_stays() -> None:
    assert set(rates("constant", range(W, N + 1))) == {P}


@pytest.mark.parametrize("schedule", get_args(Schedule))
@given(step=st.integers(1, 5000), warmup=st.integers(0, 200), total=st.integers(1, 3000))
def test_a_rate_is_never_negative_and_never_above_the_peak(schedule: str, step: int, warmup: int, total: int) -> None:
    config = TrainingConfig(learning_rate=P, warmup_steps=warmup, schedule=schedule)  # pyright: ignore[reportArgumentType]
    assert 0 <= learning_rate(step, config, total) <= P * (1 + 1e-12)


def test_only_a_schedule_not_yet_shaped_by_the_total_can_be_extended() -> None:
    def extendable(schedule: str, step: int) -> bool:
        config = TrainingConfig(learning_rate=P, warmup_steps=W, schedule=schedule, decay_fraction=0.5)  # pyright: ignore[reportArgumentType]
        return same_up_to(step, config, N, 2 * N)

    assert extendable("inverse_sqrt", N)
    assert extendable("constant", N)
    assert extendable("cosine", W)
    assert not extendable("cosine", W + 2)
    assert extendable("trapezoid", 500)
    assert not extendable("trapezoid", 600)


@pytest.mark.parametrize("schedule", get_args(Schedule))
@given(
    step=st.integers(1, 400),
    warmup=st.integers(0, 100),
    totals=st.tuples(st.integers(1, 400), st.integers(1, 400)),
    fraction=st.floats(0.01, 1),
)
def test_two_lengths_agree_up_to_a_step_if_each_rate_does(
    schedule: str, step: int, warmup: int, totals: tuple[int, int], fraction: float
) -> None:
    config = TrainingConfig(schedule=schedule, warmup_steps=warmup, decay_fraction=fraction)  # pyright: ignore[reportArgumentType]
    step = min(step, *totals)
    assume(schedule != "cosine" or min(totals) > warmup + 1)
    one, other = totals
    agree = all(learning_rate(t, config, one) == learning_rate(t, config, other) for t in range(1, step + 1))
    assert same_up_to(step, config, one, other) == agree


def test_every_schedule_says_when_its_length_begins_to_matter() -> None:
    for schedule in get_args(Schedule):
        assert length_matters_after(TrainingConfig(schedule=schedule), 100) >= 0


def test_a_schedule_that_is_not_known_is_refused() -> None:
    config = TrainingConfig(schedule="staircase", warmup_steps=1)  # pyright: ignore[reportArgumentType]
    for call in (lambda: learning_rate(2, config, 100), lambda: length_matters_after(config, 100)):
        with pytest.raises(NotImplementedError, match=r"^schedule 'staircase' is not implemented here$"):
            call()
