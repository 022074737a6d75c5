"""Projected chrF: the fit beside numpy's least squares, intervals that cover what they say, and the file of a run."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.engine import Beam, Greedy, Sample, Translation
from tfm.engine.projection import (
    FEWEST,
    FOLDS,
    LEVEL,
    Array,
    Calibration,
    Projection,
    _fitted,  # pyright: ignore[reportPrivateUsage]
    agreement,
    bound,
    cross_fitted,
    fit_calibration,
    read_calibration,
    write_calibration,
)
from tfm.engine.translation import SIGNS
from tfm.system.errors import DataError, ModelError
from tfm.system.files import sealed


def drawn(count: int, seed: int, noise: float = 8.0) -> tuple[Array, Array]:
    """Signs, and a chrF that depends on them; its noise grows with the second of them."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, len(SIGNS)))
    spread = noise * (0.3 + 1 / (1 + np.exp(-2 * rows[:, 1])))
    return rows, np.clip(50 + 12 * rows[:, 0] - 5 * rows[:, 3] + spread * rng.standard_t(4, size=count), 0, 100)


def translations(rows: Array) -> list[Translation]:
    return [Translation("a", signs=tuple(row)) for row in rows]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    (tmp_path / "step-000001").mkdir()
    (tmp_path / "step-000001" / "manifest.json").write_text("{}")
    return tmp_path / "step-000001"


def calibrated(checkpoint: Path, count: int = 400, seed: int = 1) -> Calibration:
    rows, y = drawn(count, seed)
    return fit_calibration(translations(rows), list(y), Beam(5, 1.5), checkpoint)[0]


# --- the fit ---


def test_the_fit_is_that_of_least_squares_with_a_row_for_each_weight() -> None:
    rows, y = drawn(150, 2)
    rows[:, 2] = 3.0  # a sign that never changes
    line = _fitted(rows, y)
    others = [column for column in range(len(SIGNS)) if column != 2]
    z = (rows[:, others] - rows[:, others].mean(axis=0)) / rows[:, others].std(axis=0)
    padded = np.vstack([z, np.eye(len(others))])
    weights, *_ = np.linalg.lstsq(padded, np.concatenate([y - y.mean(), np.zeros(len(others))]), rcond=None)
    assert line.weights[others] == pytest.approx(weights) and line.weights[2] == 0
    rows[:, 2] = 99.0
    assert line(rows) == pytest.approx(y.mean() + z @ weights)


def test_a_row_is_projected_by_the_rows_of_other_folds() -> None:
    rows, y = drawn(120, 3)
    values, spreads, distances = cross_fitted(rows, y)
    for fold in range(FOLDS):
        out = np.arange(len(y)) % FOLDS == fold
        line = _fitted(rows[~out], y[~out])
        assert values[out] == pytest.approx(line(rows[out]))
    assert distances == pytest.approx((y - values) / spreads) and (spreads > 0).all()


# --- intervals ---

NUMBERS = st.lists(st.floats(-100, 100), min_size=20, max_size=60)


@given(NUMBERS, st.sampled_from([0.5, 0.8, 0.9, 0.95]))
def test_a_bound_holds_for_at_least_its_share_of_what_it_has_not_seen(numbers: list[float], share: float) -> None:
    """Of n + 1 numbers, each beside the n others: what exchangeable numbers do on average, any numbers do in turn."""
    within = sum(one <= bound(np.delete(numbers, place), share) for place, one in enumerate(numbers))
    assert within >= share * len(numbers) - 1e-9


@given(NUMBERS)
def test_a_bound_is_the_smallest_that_is_enough(numbers: list[float]) -> None:
    found = bound(np.array(numbers), 0.8)
    enough = [one for one in numbers if sum(other <= one for other in numbers) >= 0.8 * (len(numbers) + 1)]
    assert found == min(enough)


def test_intervals_cover_new_sentences_at_their_level_also_where_the_noise_is_small_and_where_it_is_large(
    checkpoint: Path,
) -> None:
    shares, small, large = list[float](), list[float](), list[float]()
    for seed in range(12):
        found = calibrated(checkpoint, 500, seed)
        rows, y = drawn(1_000, 1_000 + seed)
        projections = [found.project(row) for row in rows]
        inside = np.array([one.low <= value <= one.high for one, value in zip(projections, y, strict=True)])
        shares.append(inside.mean())
        small.append(inside[rows[:, 1] < 0].mean())
        large.append(inside[rows[:, 1] >= 0].mean())
    assert np.mean(shares) == pytest.approx(LEVEL, abs=0.02)
    assert np.mean(small) == pytest.approx(LEVEL, abs=0.04) and np.mean(large) == pytest.approx(LEVEL, abs=0.04)


def test_what_is_said_of_the_set_itself_is_what_new_sentences_will_show(checkpoint: Path) -> None:
    rows, y = drawn(1_000, 5)
    calibration, held_out = fit_calibration(translations(rows), list(y), Beam(5), checkpoint)
    own, (new, then) = agreement(held_out, list(y)), drawn(4_000, 6)
    other = agreement([calibration.project(row) for row in new], list(then))
    assert own is not None and other is not None and own.sentences == 1_000
    assert own.covered == pytest.approx(other.covered, abs=0.02) and own.covered == pytest.approx(LEVEL, abs=0.02)
    assert own.correlation == pytest.approx(other.correlation, abs=0.04)
    assert own.width == pytest.approx(other.width, rel=0.05)


def test_a_projection_is_a_chrf_and_lies_in_its_interval(checkpoint: Path) -> None:
    found = calibrated(checkpoint)
    for row in drawn(200, 7)[0] * 5:
        one = found.project(row)
        assert 0 <= one.low <= one.value <= one.high <= 100
    assert str(Projection(40.6, 20.2, 61.0)) == "projected chrF 41 (20 to 61)"


def test_what_was_not_searched_for_has_no_projection_and_does_not_count(checkpoint: Path) -> None:
    rows, y = drawn(FEWEST, 8)
    texts = [Translation("123"), *translations(rows)]
    calibration, projections = fit_calibration(texts, [100.0, *y], Beam(5), checkpoint)
    assert projections[0] is None and all(projections[1:]) and calibration.pairs == FEWEST
    with pytest.raises(DataError, match=f"at least {FEWEST} .* here are {FEWEST - 1}"):
        fit_calibration(texts[:-1], [100.0, *y[1:]], Beam(5), checkpoint)
    assert agreement([None], [1.0]) is None


def test_it_holds_for_the_search_that_it_was_fitted_to(checkpoint: Path) -> None:
    found = calibrated(checkpoint)
    assert found.holds_for(Beam(5, 1.5)) and found.holds_for(Beam(5, 1.5, n_best=3))
    others = [Beam(4, 1.5), Beam(5, 1.0), Beam(5, 1.5, no_repeat_ngram_size=3), Greedy(1.5), Sample()]
    assert not any(map(found.holds_for, others))
    assert replace(found, beam_size=1).holds_for(Greedy(1.5))


# --- the file ---


def test_a_calibration_is_read_as_it_was_kept(checkpoint: Path, tmp_path: Path) -> None:
    found, path = calibrated(checkpoint), tmp_path / "calibration.json"
    write_calibration(found, path)
    assert read_calibration(path, checkpoint) == found
    (checkpoint / "manifest.json").write_text("{ }")
    assert read_calibration(path, checkpoint) is None, "that of another model"


@pytest.mark.parametrize(
    "change",
    [
        {"weights": [1.0]},
        {"scale": [0.0] * len(SIGNS)},
        {"centre": ["1"] * len(SIGNS)},
        {"spread_weights": [float("nan")] * len(SIGNS)},
        {"mean": 1e300},
        {"below": "far"},
        {"more": 1},
    ],
)
def test_damage_is_refused(checkpoint: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps(sealed(asdict(calibrated(checkpoint)) | change)))
    with pytest.raises(ModelError, match=r"calibration\.json"):
        read_calibration(path, checkpoint)


def test_a_file_that_lacks_something_is_refused_and_one_of_other_signs_is_none(
    checkpoint: Path, tmp_path: Path
) -> None:
    path, whole = tmp_path / "calibration.json", asdict(calibrated(checkpoint))
    path.write_text(json.dumps(sealed({key: value for key, value in whole.items() if key != "mean"})))
    with pytest.raises(ModelError, match=r"damaged: .*mean"):
        read_calibration(path, checkpoint)
    path.write_text(json.dumps(sealed(whole | {"signs": ["moon"]})))
    assert read_calibration(path, checkpoint) is None
    path.write_text(json.dumps(sealed(whole) | {"mean": 1.0}))
    with pytest.raises(ModelError, match="not what tfm wrote"):
        read_calibration(path, checkpoint)
