"""Curves in a terminal: where the dots are, and what fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.cli.plot import plotted
from tfm.engine.runs.curves import Curve, Panel


def columns(line: str) -> list[int]:
    return [place for place, cell in enumerate(line.partition("│")[2]) if cell != " "]


def test_a_line_that_rises_is_drawn_from_below_on_the_left() -> None:
    title, *rows, _, numbers, legend = plotted(Panel("Loss", [Curve("a run", [0, 100], [0.0, 10.0])]), height=5)
    assert title == "Loss" and len(rows) == 5
    lefts = [columns(row)[0] for row in rows]
    assert lefts == sorted(lefts, reverse=True) and lefts[-1] == 0
    assert [row.partition("│")[0].strip() for row in rows] == ["10.0", "", "5", "", "0"]
    assert numbers.split() == ["0", "step", "100"] and legend.strip() == "a  a run: 10.0 at step 100"


def test_curves_end_in_their_letters_and_a_band_fills_what_is_between() -> None:
    band = Curve("seeds", [0, 100], [5.0, 5.0], [1.0, 1.0], [9.0, 9.0])
    lines = list(plotted(Panel("Score", [Curve("one", [0, 50], [2.0, 3.0]), band]), height=9))
    drawn = [line.partition("│")[2] for line in lines[1:10]]
    assert sum("a" in line for line in drawn) == sum("b" in line for line in drawn) == 1
    assert all(len(columns(line)) > 30 for line in lines[1:10]), "the band reaches from the lowest to the highest"


@given(
    st.lists(st.tuples(st.integers(0, 10**7), st.floats(-1e6, 1e6)), min_size=1, max_size=30, unique_by=lambda p: p[0]),
    st.integers(40, 120),
    st.integers(3, 30),
)
def test_whatever_is_drawn_fits(points: list[tuple[int, float]], width: int, height: int) -> None:
    steps, values = zip(*sorted(points), strict=True)
    lines = list(plotted(Panel("T", [Curve("x", steps, values)]), width=width, height=height))
    assert len(lines) == height + 4
    assert max(map(len, lines[1:-1])) <= width


@pytest.mark.parametrize("curves", [[], [Curve("empty", [], [])]])
def test_nothing_is_drawn_of_nothing(curves: list[Curve]) -> None:
    assert list(plotted(Panel("Loss", curves))) == []
