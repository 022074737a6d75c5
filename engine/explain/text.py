"""The walk in a terminal: the same stations and numbers, for one layer, head, piece and step."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from ...seq2seq.model.config import unknown
from .explanation import TEMPERATURES, Explanation
from .questions import questions
from .stations import Axis, Station, View

AXES = {"src": "source", "tgt": "what the decoder reads", "seq": "the one sequence"}
FIRST, COLUMNS, LISTED = 6, 12, 5
"""At most these are printed: numbers of a vector, columns of a matrix, candidates and heads."""


@dataclass(frozen=True)
class Focus:
    """The numbers that are looked at, counted from 0; of a stack with fewer layers, those of the last one."""

    layer: int = 0
    head: int = 0
    token: int | None = None
    """By default the first one; in one sequence of source and target, that of the step."""
    step: int = 0


def text(found: Explanation, place: Focus) -> str:
    """The walk as plain text."""
    return "\n".join(_Writer(found, place).lines()) + "\n"


def number(x: float) -> str:
    """A number in a fixed width."""
    return f"{x:8.3f}" if abs(x) < 1000 else f"{x:8.1f}"


class _Writer:
    def __init__(self, found: Explanation, place: Focus) -> None:
        self._found, self._place = found, place
        first = len(found.axes["seq"]) - len(found.axes["tgt"]) + place.step if "seq" in found.axes else 0
        self._token = first if place.token is None else place.token
        self._asked = {one.station: one for one in questions(found)}

    def lines(self) -> Iterator[str]:
        found, place = self._found, self._place
        yield found.text
        if found.output is not None:
            yield f"-> {found.output.text}"
        where = f"layer {place.layer + 1}, head {place.head + 1}, piece {self._token + 1}"
        yield f"{found.run}, {found.checkpoint}; {where}" + (f", step {place.step + 1}" if found.written else "")
        part = ""
        for station in found.stations:
            if station.part != part:
                part = station.part
                yield f"\n{part}\n{'=' * len(part)}"
            yield from self._station(station)

    def _station(self, station: Station) -> Iterator[str]:
        yield f"\n{station.title}\n{'-' * len(station.title)}"
        yield station.says
        if station.plain:
            yield f"    {station.plain}"
        for symbol, meaning in station.shapes:
            yield f"    {symbol}" + (f"   {meaning}" if meaning else "")
        for view in station.views:
            yield from self._view(view)
        if one := self._asked.get(station.id):
            yield f"  Question: {one.question}\n  Answer: {one.answer}"
        if station.sources:
            yield f"  source: {'; '.join(station.cited())}"
        if station.code[0]:
            yield f"  code: {station.code[0]}: {station.code[1]}"

    def _view(self, view: View) -> Iterator[str]:
        match view.kind:
            case "vector" | "statistics" | "matrix" | "weighted" | "layers":
                yield from self._numbers(view)
            case "candidates":
                if view.label == "probabilities":  # the logits stand beside them
                    yield from self._probabilities()
            case "early":
                yield from self._early()
            case "choice":
                yield from self._choice()
            case "heads_off":
                yield from self._heads_off()
            case "pieces":
                yield from self._pieces()
            case "checkpoints":
                yield from self._checkpoints()
            case "heat" | "lines" | "grid":
                return  # pictures, whose numbers other views print
            case "left_out" | "switches" | "patch":
                return  # of a live page alone
            case _:
                raise unknown("kind", view.kind)

    def _numbers(self, view: View) -> Iterator[str]:
        at = self._position(view.rows)
        if view.kind == "vector":
            array = self._array(view)
            yield f"  {view.label}: {self._vector(array[at if len(array) > 1 else 0])}"
        elif view.kind == "statistics":
            mean, variance = (self._array(view, part)[at] for part in (".mean", ".variance"))
            yield f"  mean {mean:.5f}, variance {variance:.5f}, eps {self._found.sizes.config.norm_eps}"
        elif view.kind == "matrix":
            yield from self._matrix(view)
        elif view.kind == "weighted":
            pairs = zip(self._array(view)[at].tolist(), self._found.axes[view.columns], strict=True)
            shares = sorted(pairs, key=lambda one: -one[0])
            yield f"  {view.label}: " + "  ".join(f"{piece.text} {share:.3f}" for share, piece in shares[:COLUMNS])
        else:
            for layer, array in enumerate(self._found.of_layers(view.array)):
                yield f"  after layer {layer + 1}: {self._vector(array[at])}"

    def _pieces(self) -> Iterator[str]:
        for axis, pieces in self._found.axes.items():
            if axis == "tgt" and "seq" in self._found.axes:
                continue  # a part of it
            yield f"  {AXES[axis]}: " + "  ".join(f"{piece.text} {piece.id}" for piece in pieces)

    def _early(self) -> Iterator[str]:
        for layer, best in enumerate(self._found.steps[self._place.step].early):
            yield f"  layer {layer + 1}: " + "  ".join(f"{piece} {p:.3f}" for piece, p in best)

    def _checkpoints(self) -> Iterator[str]:
        for one in self._found.snapshots:
            shown = " ".join(f"{p:.2f}" for p in one.probabilities)
            yield f"  step {one.step}: {one.text}   (probabilities of the output: {shown})"

    def _array(self, view: View, part: str = "") -> Tensor:
        """The array of a view, of the chosen layer and head."""
        layer = min(self._place.layer, max(self._found.sizes.layers(view.array) - 1, 0))
        array = self._found.arrays[view.array.format(layer=layer) + part]
        return array[self._place.head] if view.by_head else array

    def _position(self, axis: Axis) -> int:
        return self._place.step if axis == "tgt" else self._token

    def _vector(self, values: Tensor) -> str:
        shown = " ".join(number(x) for x in values[:FIRST].tolist())
        more = " .." if len(values) > FIRST else ""
        return f"{shown}{more}   ({len(values)} numbers, length {values.norm():.3f})"

    def _matrix(self, view: View) -> Iterator[str]:
        array, rows, columns = self._array(view), self._found.axes[view.rows], self._found.axes[view.columns]
        more = ".." if len(columns) > COLUMNS else ""
        yield f"  {view.label}"
        yield " " * 14 + "".join(f"{piece.text[:8]:>9}" for piece in columns[:COLUMNS]) + more
        if view.rows == "tgt" and view.columns == "src":
            rows = self._found.written  # a step of cross-attention is named by the piece that it writes
        for i, piece in enumerate(rows):
            mark = ">" if i == self._position(view.rows) else " "
            cells = "".join(f"{x:9.2f}" for x in array[i, :COLUMNS].tolist())
            total = f"   sum {array[i].sum():.2f}" if view.array.endswith(".weights") else ""
            yield f"  {mark}{piece.text[:11]:<11}{cells}{more}{total}"

    def _probabilities(self) -> Iterator[str]:
        step = self._found.steps[self._place.step]
        likely = zip(step.candidates[:LISTED], step.logits, strict=False)
        normaliser = step.log_normalisers[TEMPERATURES.index(1.0)]
        written = self._found.written[self._place.step].text
        wrote = "was given" if self._place.step < self._found.prefix else "wrote"
        yield f"  step {self._place.step + 1} {wrote} {written}, with a probability of {step.probability:.4f}"
        for piece, logit in likely:
            yield f"    {piece.text:<14} logit {number(logit)}   probability {math.exp(logit - normaliser):.4f}"

    def _choice(self) -> Iterator[str]:
        found = self._found
        assert found.output is not None and found.greedy is not None
        others = [("greedy", found.greedy), *((f"sample {i + 1}", one) for i, one in enumerate(found.samples))]
        yield f"  {found.search}: {found.output.text}   (log P {found.output.log_prob:.2f})"
        for name, one in others:
            taken = " ".join(map(str, one.ranks))
            yield f"  {name}: {one.text}   (log P {one.log_prob:.2f}; ranks of the pieces that it took: {taken})"
        yield f"  beam search with {found.beam['size']} hypotheses, step by step (+ kept, . ended, - cut):"
        signs = {"kept": "+", "ended": ".", "cut": "-"}
        for position in range(max(one["position"] for one in found.beam["extensions"]) + 1):
            here = [one for one in found.beam["extensions"] if one["position"] == position]
            shown = "  ".join(f"{signs[one['fate']]}{one['piece']} {one['total']:.2f}" for one in here)
            yield f"    {position + 1:>2}: {shown}"

    def _heads_off(self) -> Iterator[str]:
        assert self._found.output is not None
        for one in sorted(self._found.heads_off, key=lambda one: one.log_prob)[:LISTED]:
            change = one.log_prob - self._found.output.log_prob
            stack, _, layer, kind = one.module.split(".")
            name = f"{stack} layer {int(layer) + 1}, {kind.removesuffix('_attn')}-attention, head {one.head + 1}"
            yield f"  without {name}: log P {change:+.2f}; greedy search writes: {one.text or 'nothing'}"
