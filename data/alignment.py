"""Pairs that are shifted: from some line on, each source stands beside the target of another line.

Which words go together is learned from the corpus itself: a pair whose words are often found together elsewhere fits.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import regex

from . import Pair
from .scripts import UNSPACED

OFFSETS = (-3, -2, -1, 1, 2, 3)
"""How many lines further down a target is looked for; negative: further up."""
LEARNED_FROM = 60_000
"""The words of this many pairs are counted, from the beginning: memory and time stay bounded."""
RAREST = 10
"""This many of the rarest words of a text are compared. Rare words say most; words of one text alone say nothing."""
MORE_THAN_CHANCE = 1.3
"""Two texts fit together if they fit this many times better than texts of distant lines."""
MIN_LINES = 6
"""Fewer neighbours than this fit another place better by chance."""
SLIP_EVIDENCE = 15.0
"""Lines slip if the logarithms of their lengths come this much closer in another place, summed over the lines."""
EVIDENCE = 6.0
"""A run of lines is shifted if the gains of another place add up to this many times the usual fit of a pair."""
_WORD = regex.compile(rf"{UNSPACED}|(?:(?!{UNSPACED})\w)+")
"""A word, or one letter of a script without spaces between words."""
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Shift:
    """Neighbouring pairs whose targets stand in another line: from `first` to `last`, both included, counted from 0."""

    first: int
    last: int
    offset: int
    """How many lines further down each target stands; negative: further up."""


class Lexicon:
    """How often words of the two sides are found in the same pair."""

    def __init__(self, pairs: Iterable[tuple[list[str], list[str]]]) -> None:
        self._src, self._tgt = Counter[str](), Counter[str]()
        self._both = Counter[tuple[str, str]]()
        for src, tgt in pairs:
            self._src.update(src)
            self._tgt.update(tgt)
            self._both.update((s, t) for s in src for t in tgt)

    def fit(self, src: list[str], tgt: list[str], *, counted: bool) -> float:
        """How well two texts go together, from 0 to 1: of each source word its best partner.

        A pair that was `counted` is left out: a word that stands nowhere else would always fit.
        """
        total = 0.0
        for s in src:
            best, in_src = 0.0, self._src[s] - counted
            for t in tgt if in_src > 0 else ():
                together = self._both[s, t] - counted
                if together > 0:
                    best = max(best, together * together / (in_src * (self._tgt[t] - counted)))
            total += best
        return total / len(src) if src else 0.0


def rare_words(texts: Sequence[str]) -> list[list[str]]:
    """The rarest words of each text, in small letters, without those that stand in no other text."""
    found = [set(_WORD.findall(text.lower())) for text in texts]
    counts = Counter(word for one in found for word in one)
    return [sorted((w for w in one if counts[w] > 1), key=lambda w: (counts[w], w))[:RAREST] for one in found]


def find_shifts(pairs: Sequence[Pair]) -> list[Shift]:
    """Runs of pairs that fit another place better than their own, in order."""
    counted = pairs[:LEARNED_FROM]
    src, tgt = (rare_words([pair[side] for pair in counted]) for side in (0, 1))
    lexicon = Lexicon(zip(src, tgt, strict=True))
    home = np.array([lexicon.fit(s, t, counted=True) for s, t in zip(src, tgt, strict=True)], np.float64)
    half = len(src) // 2
    by_chance = float(np.mean([lexicon.fit(s, tgt[i - half], counted=False) for i, s in enumerate(src)] or [0.0]))
    moved = {offset: np.zeros_like(home) for offset in OFFSETS}
    for offset, away in moved.items():
        for i in range(max(0, -offset), min(len(src), len(src) - offset)):
            away[i] = lexicon.fit(src[i], tgt[i + offset], counted=False)
    usual = max((float(np.median(scores)) for scores in (home, *moved.values()) if len(scores)), default=0.0)
    if usual < MORE_THAN_CHANCE * by_chance:  # the two sides have nothing to do with each other
        return []
    least = np.maximum(home, MORE_THAN_CHANCE * by_chance)
    found = [
        Shift(first, last, offset)
        for offset, away in moved.items()
        for first, last in _runs(away - least, EVIDENCE * usual)
    ]
    return sorted(_strongest(found), key=lambda shift: shift.first)


def first_slip(src: npt.NDArray[np.int32], tgt: npt.NDArray[np.int32]) -> int | None:
    """The line, counted from 0, from which two files seem to be shifted; None if their lengths do not tell.

    Long sentences have long translations. So from a slip on, the lengths of the two sides fit better some lines apart.
    `src` and `tgt` are characters in each line of the two files, which have different numbers of lines.
    """
    logs = [np.log1p(side.astype(np.float64)) for side in (src, tgt)]
    common = min(map(len, logs))
    if not common:
        return None
    ratio = float(np.median(logs[1][:common] - logs[0][:common]))
    home = np.abs(logs[1][:common] - logs[0][:common] - ratio)
    by_chance = float(np.abs(np.roll(logs[1][:common], common // 2) - logs[0][:common] - ratio).mean())
    found: list[int] = []
    for offset in {*OFFSETS, len(tgt) - len(src)}:
        begin, end = max(0, -offset), min(len(src), len(tgt) - offset, common)
        if begin < end:
            away = np.abs(logs[1][begin + offset : end + offset] - logs[0][begin:end] - ratio)
            first, last, gain = _best_run(home[begin:end] - away)
            fits = MORE_THAN_CHANCE * float(away[first : last + 1].mean()) < by_chance
            if fits and gain >= SLIP_EVIDENCE:
                found.append(begin + first)
    return min(found, default=None)


def _runs(gains: Scores, least: float) -> list[tuple[int, int]]:
    """The runs with the largest sums, one after the other, while the sum is at least `least`."""
    gains = gains.copy()
    found: list[tuple[int, int]] = []
    while least > 0 and len(gains):
        first, last, total = _best_run(gains)
        if total < least:
            break
        gains[first : last + 1] = -1.0
        if last - first + 1 >= MIN_LINES:
            found.append((first, last))
    return found


def _best_run(gains: Scores) -> tuple[int, int, float]:
    """First and last place, and sum, of the run of numbers with the largest sum (Kadane)."""
    sums = np.concatenate([[0.0], np.cumsum(gains)])
    lowest = np.minimum.accumulate(sums[:-1])
    last = int(np.argmax(sums[1:] - lowest))
    first = int(np.argmin(sums[: last + 1]))
    return first, last, float(sums[last + 1] - sums[first])


def _strongest(shifts: list[Shift]) -> list[Shift]:
    """Where runs overlap, the longest of them."""
    kept: list[Shift] = []
    for shift in sorted(shifts, key=lambda one: one.first - one.last):
        if all(shift.last < other.first or shift.first > other.last for other in kept):
            kept.append(shift)
    return kept
