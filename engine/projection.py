"""How good a translation probably is: its chrF, projected from signs that cost nothing, with an interval.

Signs and chrF of a set with references give a ridge regression. How far its projections are off, on sentences that it
was not fitted to, gives the interval (conformal prediction). It holds for sentences that are drawn as those of the set
were, whatever their distribution; of texts of another kind nobody knows. `tfm evaluate --calibrate` fits it, and keeps
it with the run.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..seq2seq.decoding.beam import Beam
from ..seq2seq.decoding.greedy import Greedy
from ..seq2seq.decoding.search import Search
from ..system.errors import DataError, ModelError
from ..system.files import read_sealed, replace_sealed, sha256_bytes
from ..system.untrusted import MAX_JSON_BYTES, check_fields, read_plain
from .translation import SIGNS, Translation

LEVEL = 0.9
"""The share of the sentences whose chrF is in their interval."""
FEWEST = 100
"""Sentences that a calibration needs: the interval rests on the farthest tenth of them."""
FOLDS = 10
_RIDGE = 1.0
"""Strength of the ridge, for signs with a variance of 1. It keeps weights small where two signs say nearly the same."""
_NARROWEST = 0.25
"""An interval has at least this share of the average width: beyond what was seen, the width may come to nothing."""
_LARGEST = 1e6
"""No number of a calibration is larger."""
Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, order=True)
class Projection:
    """The chrF that a translation probably has, 0 to 100, and bounds between which it is in nine cases of ten."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"projected chrF {self.value:.0f} ({self.low:.0f} to {self.high:.0f})"


@dataclass(frozen=True)
class Calibration:
    """How the chrF of a run's translations goes with their signs.

    Attributes:
        model: A hash of the checkpoint that translated; of another one it says nothing.
        beam_size, length_penalty, no_repeat_ngram_size: Of the search that found the translations.
        pairs: The number of those that it was fitted to.
        signs: Their names.
        centre, scale: Mean and standard deviation of each sign.
        weights: What chrF gains by a standard deviation more of each sign; `mean` is that of chrF.
        spread_weights, spread: The same of the distance from the projection.
        below, above: How many spreads the interval reaches below and above the projection.
    """

    model: str
    beam_size: int
    length_penalty: float
    no_repeat_ngram_size: int
    pairs: int
    signs: list[str]
    centre: list[float]
    scale: list[float]
    weights: list[float]
    mean: float
    spread_weights: list[float]
    spread: float
    below: float
    above: float

    def holds_for(self, search: Search) -> bool:
        """Whether it was fitted to what such a search finds."""
        mine = (self.beam_size, self.length_penalty, self.no_repeat_ngram_size)
        return isinstance(search, Greedy | Beam) and mine == _search_of(search)

    def project(self, signs: Sequence[float]) -> Projection:
        """The projection of a translation with these signs."""
        line = _Line(np.array(self.centre), np.array(self.scale), np.array(self.weights), self.mean)
        spreads = _Line(line.centre, line.scale, np.array(self.spread_weights), self.spread)
        row = np.array([signs])
        (value,), (spread,) = line(row), _widths(spreads, row)
        return _within(value, self.below * spread, self.above * spread)


def _within(value: float, below: float, above: float) -> Projection:
    """A value, and the interval that reaches `below` and `above` it; a chrF is from 0 to 100."""
    found = (value, value - below, value + above)
    return Projection(*(round(min(max(float(one), 0.0), 100.0), 1) for one in found))


@dataclass(frozen=True)
class _Line:
    """A ridge regression (Hoerl and Kennard, 1970): y = mean + sum of weight_i (x_i - centre_i) / scale_i."""

    centre: Array
    scale: Array
    weights: Array
    mean: float

    def __call__(self, rows: Array) -> Array:
        """y of each row of x."""
        return self.mean + (rows - self.centre) / self.scale @ self.weights


def _fitted(rows: Array, y: Array) -> _Line:
    """The line with the least sum of squares of y, N numbers, given the rows (N, K). A sign that never changes has no
    weight."""
    centre, scale = rows.mean(axis=0), rows.std(axis=0)
    scale[scale < 1e-9] = np.inf
    z = (rows - centre) / scale
    weights = np.linalg.solve(z.T @ z + _RIDGE * np.eye(z.shape[1]), z.T @ (y - y.mean()))
    return _Line(centre, np.where(np.isinf(scale), 1.0, scale), weights, float(y.mean()))


def _both(rows: Array, y: Array) -> tuple[_Line, _Line]:
    """A line for y, and one for the distance of y from it (Lei et al., 2018, arXiv:1604.04173, section 5.2)."""
    line = _fitted(rows, y)
    return line, _fitted(rows, np.abs(y - line(rows)))


def _widths(spreads: _Line, rows: Array) -> Array:
    return np.maximum(spreads(rows), max(_NARROWEST * spreads.mean, 1e-6))


def cross_fitted(rows: Array, y: Array) -> tuple[Array, Array, Array]:
    """For each row: its projection, its spread, and how many spreads y is off, by lines fitted to other rows.

    Every `FOLDS`-th row is left out in turn (cross-conformal prediction; Vovk, 2015, arXiv:1208.0806).
    """
    values, spreads = np.empty_like(y), np.empty_like(y)
    fold = np.arange(len(y)) % FOLDS
    for number in range(FOLDS):
        out = fold == number
        line, spread = _both(rows[~out], y[~out])
        values[out], spreads[out] = line(rows[out]), _widths(spread, rows[out])
    return values, spreads, (y - values) / spreads


def bound(distances: Array, share: float) -> float:
    """A bound that at least this share of new distances, from the same distribution, does not exceed.

    The ceil((n + 1) share)-th smallest of n (Lei et al., 2018, section 2.2).
    """
    rank = math.ceil((len(distances) + 1) * share)
    return float(np.sort(distances)[min(rank, len(distances)) - 1])


def _bounds(distances: Array) -> tuple[float, float]:
    """How many spreads an interval reaches below and above its projection: as much is beyond on either side."""
    share = (1 + LEVEL) / 2
    return bound(-distances, share), bound(distances, share)


def refuse_few(count: int) -> None:
    """Refuses to calibrate with fewer than `FEWEST` translations."""
    if count < FEWEST:
        raise DataError(f"--calibrate needs at least {FEWEST} translations with references, and here are {count}")


def fit_calibration(
    translations: Sequence[Translation], chrf: Sequence[float], search: Greedy | Beam, checkpoint: Path
) -> tuple[Calibration, list[Projection | None]]:
    """Fits the chrF of a checkpoint's translations to their signs. What was not searched for does not count.

    Returns:
        The calibration, and for each translation a projection by the others: as good as of new sentences.

    Raises:
        DataError: See `refuse_few`.
    """
    known = [row for row, one in enumerate(translations) if one.signs]
    refuse_few(len(known))
    rows, y = np.array([translations[row].signs for row in known]), np.array([chrf[row] for row in known])
    line, spreads = _both(rows, y)
    values, widths, distances = cross_fitted(rows, y)
    below, above = _bounds(distances)
    found = Calibration(
        identity_of(checkpoint),
        *_search_of(search),
        pairs=len(known),
        signs=list(SIGNS),
        centre=line.centre.tolist(),
        scale=line.scale.tolist(),
        weights=line.weights.tolist(),
        mean=line.mean,
        spread_weights=spreads.weights.tolist(),
        spread=spreads.mean,
        below=below,
        above=above,
    )
    projections: list[Projection | None] = [None] * len(translations)
    fold = np.arange(len(y)) % FOLDS
    for number in range(FOLDS):
        below, above = _bounds(distances[fold != number])
        for place in np.flatnonzero(fold == number):
            projections[known[place]] = _within(values[place], below * widths[place], above * widths[place])
    return found, projections


@dataclass(frozen=True)
class ProjectionFit:
    """How projections go with the chrF that came out.

    Attributes:
        correlation: Pearson's r; None where it is not defined.
        covered: The share of the sentences whose chrF is in their interval; it should be `LEVEL`.
        width: Of the intervals on average, in points of chrF.
    """

    sentences: int
    correlation: float | None
    covered: float
    width: float

    def __str__(self) -> str:
        goes = "" if self.correlation is None else f"its correlation with chrF is {self.correlation:.2f}; "
        return (
            f"projected chrF: {goes}{100 * self.covered:.1f} % are in their interval of {100 * LEVEL:.0f} %, which is"
            f" {self.width:.0f} points wide on average"
        )


def agreement(projections: Sequence[Projection | None], chrf: Sequence[float]) -> ProjectionFit | None:
    """Compares projections with chrF; None where there are none."""
    from .evaluation.scores import correlation  # who projects needs none of it

    known = [(one, value) for one, value in zip(projections, chrf, strict=True) if one is not None]
    if not known:
        return None
    return ProjectionFit(
        sentences=len(known),
        correlation=correlation([one.value for one, _ in known], [value for _, value in known]),
        covered=sum(one.low <= value <= one.high for one, value in known) / len(known),
        width=sum(one.high - one.low for one, _ in known) / len(known),
    )


def _search_of(search: Greedy | Beam) -> tuple[int, float, int]:
    return search.rows, search.length_penalty, search.no_repeat_ngram_size


def identity_of(checkpoint: Path) -> str:
    """A hash of all files of a checkpoint or an export: that of its manifest, which has theirs."""
    return sha256_bytes(read_plain(checkpoint / "manifest.json", MAX_JSON_BYTES))


def write_calibration(calibration: Calibration, path: Path) -> None:
    """Writes a calibration into a run, in the place of an earlier one."""
    replace_sealed(path, asdict(calibration))


def read_calibration(path: Path, checkpoint: Path) -> Calibration | None:
    """The calibration of a checkpoint; None if the file is of another checkpoint, or of an earlier tfm's signs.

    Raises:
        ModelError: It is damaged.
    """
    content = read_sealed(path)
    check_fields(content, Calibration, path)
    if content.get("model") != identity_of(checkpoint) or content.get("signs") != list(SIGNS):
        return None
    try:
        found = Calibration(**content)
    except TypeError as error:
        raise ModelError(f"{path} is damaged: {error}") from error
    if not _is_sound(found):
        raise ModelError(f"{path} is damaged: it has not a number for each sign")
    return found


def _is_sound(found: Calibration) -> bool:
    each = (found.centre, found.scale, found.weights, found.spread_weights)
    numbers = [*(number for one in each for number in one), found.mean, found.spread, found.below, found.above]
    whole = all(len(one) == len(found.signs) for one in each)
    return whole and all(abs(number) <= _LARGEST for number in numbers) and min(found.scale) > 0
