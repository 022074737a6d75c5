"""Curves in a terminal: dots of Braille, eight to a character, with the letter of each curve at its end."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from string import ascii_lowercase

from ..engine.runs.curves import Panel
from ..system.reporter import painted

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""The bit of each dot of a character, column by column from the left, from above."""
_COLOURS = ("red", "green", "blue", "yellow", "magenta", "cyan")


class _Canvas:
    """Dots on a grid of characters. A character has the colour of the curve that was drawn there last."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = 2 * width, 4 * height
        self._bits = [[0] * width for _ in range(height)]
        self._curves = [[0] * width for _ in range(height)]
        self._letters: dict[tuple[int, int], str] = {}

    def dot(self, x: int, y: int, curve: int) -> None:
        """A dot, counted from below on the left."""
        row, column = (self.height - 1 - y) // 4, x // 2
        self._bits[row][column] |= _DOTS[x % 2][(self.height - 1 - y) % 4]
        self._curves[row][column] = curve

    def letter(self, x: int, y: int, curve: int) -> None:
        """The letter of a curve in place of a character."""
        place = (self.height - 1 - y) // 4, x // 2
        self._letters[place], self._curves[place[0]][place[1]] = ascii_lowercase[curve % 26], curve

    def lines(self) -> Iterator[str]:
        """The rows from above."""
        for row, bits in enumerate(self._bits):
            cells = [self._letters.get((row, i)) or (chr(0x2800 + one) if one else " ") for i, one in enumerate(bits)]
            colours = (_COLOURS[curve % len(_COLOURS)] for curve in self._curves[row])
            yield "".join(cell if cell == " " else painted(cell, c) for cell, c in zip(cells, colours, strict=True))


def plotted(panel: Panel, *, width: int = 78, height: int = 10) -> Iterator[str]:
    """The lines of a plot: title, curves between their axes, and which letter is which curve."""
    curves = [curve for curve in panel.curves if curve.steps]
    if not curves:
        return
    ends = [value for curve in curves for value in (*curve.values, *curve.lowest, *curve.highest)]
    low, high = min(ends), max(ends)
    high = high if high > low else low + 1
    first, last = min(curve.steps[0] for curve in curves), max(curve.steps[-1] for curve in curves)
    labels = {0: _figure(high), height // 2: _figure((low + high) / 2), height - 1: _figure(low)}
    margin = max(map(len, labels.values()))
    canvas = _Canvas(width - margin - 2, height)
    for number, curve in enumerate(curves):

        def place(step: float, value: float) -> tuple[int, int]:
            along = (step - first) / max(last - first, 1)
            return round(along * (canvas.width - 1)), round((value - low) / (high - low) * (canvas.height - 1))

        _draw(canvas, number, [place(*point) for point in zip(curve.steps, curve.values, strict=True)])
        bounds = [
            [place(*one) for one in zip(curve.steps, side, strict=False)] for side in (curve.lowest, curve.highest)
        ]
        _fill(canvas, number, *bounds)
        if len(curves) > 1:
            canvas.letter(*place(curve.steps[-1], curve.values[-1]), number)
    yield painted(panel.title, "bold")
    for row, line in enumerate(canvas.lines()):
        yield f"{labels.get(row, ''):>{margin}} │{line}".rstrip()
    begin, end = f"{first:,}" if first < last else "", f"step {last:,}"
    yield f"{'':>{margin}} └{'─' * (width - margin - 2)}"
    yield f"{'':>{margin}}  {begin}{end:>{width - margin - 2 - len(begin)}}"
    for number, curve in enumerate(curves):
        name = f"{ascii_lowercase[number % 26]}  {curve.label}: {_figure(curve.values[-1])} at step {curve.steps[-1]:,}"
        yield " " * (margin + 2) + painted(name, _COLOURS[number % len(_COLOURS)])


def _fill(canvas: _Canvas, number: int, below: Sequence[tuple[int, int]], above: Sequence[tuple[int, int]]) -> None:
    """Every fourth dot between two lines, the points of which have the same columns."""
    for ((x, low), (then, low_then)), ((_, high), (_, high_then)) in zip(pairwise(below), pairwise(above), strict=True):
        for column in range(x, then + 1, 2):
            part = (column - x) / max(then - x, 1)
            bottom, top = round(low + (low_then - low) * part), round(high + (high_then - high) * part)
            for y in range(bottom, top + 1, 2):
                canvas.dot(column, y, number)


def _draw(canvas: _Canvas, number: int, points: Sequence[tuple[int, int]]) -> None:
    """Lines from each point to the next."""
    for (x, y), (then, there) in pairwise(points):
        parts = max(abs(then - x), abs(there - y), 1)
        for part in range(parts):
            canvas.dot(x + round((then - x) * part / parts), y + round((there - y) * part / parts), number)
    if points:
        canvas.dot(*points[-1], number)


def _figure(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 10 else f"{value:,.1f}"
