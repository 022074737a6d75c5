"""Losses and scores over the steps: of one run, or of several together; as curves, and as a picture of them."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...seq2seq.training.config import TrainingConfig
from ...system.errors import DataError
from ...system.reporter import counted
from .directory import FREE_KEYS, RunDirectory, differences

Records = Sequence[dict[str, Any]]
"""The lines of metrics.jsonl."""

FIGURES = {
    "bleu": "BLEU {:.1f}",
    "chrf": "chrF {:.1f}",
    "exact": "{:.1f} % exact",
    "retrieval": "{:.1f} % find their partner",
    "accuracy": "{:.1f} % of hidden pieces guessed",
    "ppl_per_byte": "perplexity {:.2f} per byte",
    "ppl": "perplexity {:.2f}",
    "loss": "loss {:.3f}",
}
"""The figures of a validation that can be drawn, each as a person reads it."""
_SHARES = {"bleu": "BLEU", "chrf": "chrF", "exact": "exact, %", "retrieval": "retrieval, %", "accuracy": "accuracy, %"}
"""Those from 0 to 100, as titles."""
_COLOURS = ("#b0452f", "#3f7f5f", "#555577", "#c08a2d", "#7f9fbf", "#8a5a8a")
_MARGINS = {"left": 0.06, "right": 0.98, "bottom": 0.11, "top": 0.93, "wspace": 0.15}
"""Parts of the picture. To have them found draws everything twice."""


_NOT_COMPARED = FREE_KEYS - {"max_steps", "max_time"} | {"seed"}
"""Settings of `training` in which runs that are one curve may differ."""


@dataclass(frozen=True)
class Curve:
    """Values over the steps; of several runs their mean, between their lowest and their highest."""

    label: str
    steps: Sequence[int]
    values: Sequence[float]
    lowest: Sequence[float] = ()
    highest: Sequence[float] = ()
    marked: bool = True
    """Whether the points are few enough to be marked."""


@dataclass(frozen=True)
class Panel:
    """Curves with one axis. It begins at 0, and ends at `top` if there is one."""

    title: str
    curves: Sequence[Curve]
    top: float | None = None


def validations(records: Records) -> list[dict[str, Any]]:
    """The lines about validations."""
    return [record for record in records if record.get("kind") == "validation"]


def best_of(found: Records) -> dict[str, Any] | None:
    """Of validations the one that scored highest; of equals the one with the lowest loss. None if there are none."""
    return max(found, key=lambda record: (record["score"], -record["loss"]), default=None)


def metric_of(record: dict[str, Any]) -> str:
    """The figure that a validation was scored by."""
    return next((name for name in FIGURES if record.get(name) == record["score"]), "loss")


def score_in_words(record: dict[str, Any]) -> str:
    """The score of a validation, named: such as `BLEU 10.2`."""
    name = metric_of(record)
    return figure_in_words(name, record[name])


def figure_in_words(name: str, value: float) -> str:
    """A figure with its name."""
    return FIGURES[name].format(value)


def panels(records: Records, config: TrainingConfig) -> list[Panel]:
    """The losses of one run, and its scores."""
    train, dev = [record for record in records if record.get("kind") == "train"], validations(records)
    shown = [name for name in _SHARES if any(name in record for record in dev)]
    smoothed = config.label_smoothing and shown[:1] != ["retrieval"]
    example = {"retrieval": "pair", "accuracy": "hidden token"}.get("".join(shown[:1]), "target token")
    name = "training (label-smoothed)" if smoothed else "training"
    losses = [Curve("validation", *_points(dev, "loss")), Curve(name, *_points(train, "loss"), marked=False)]
    scores = [Curve(_SHARES[name], *_points(dev, name)) for name in shown]
    how = "scores, greedy" if len(shown) > 1 else "".join(shown) or "scores"
    title = f"Validation {how} (best by {config.best_metric})"
    return [Panel(f"Loss, nats per {example}", losses), Panel(title, scores, top=100)]


def compared(runs: Sequence[RunDirectory], metric: str | None = None) -> list[Panel]:
    """The validation losses of several runs, and their scores. Runs that differ in their seed alone are one curve.

    Args:
        metric: One of `FIGURES`; what the first run is scored by if not given.

    Raises:
        DataError: No run has been validated, or none has figures of this name.
        UsageError: The configuration of one cannot be read.
    """
    groups: list[list[RunDirectory]] = []
    for run in runs:
        alike = [group for group in groups if _differ_in_seed(group[0], run)]
        (alike[0] if alike else groups.append([]) or groups[-1]).append(run)
    found = [(group, [validations(run.metrics.records()) for run in group]) for group in groups]
    first = next((dev for _, each in found for dev in each if dev), None)
    if first is None:
        raise DataError(f"no validation yet in {', '.join(map(str, runs))}: there is nothing to draw")
    metric = metric or metric_of(first[-1])
    drawn = ["loss"] if metric == "loss" else ["loss", metric]
    found_panels: list[Panel] = []
    for name in drawn:
        curves = [_together(_label(group), each, name) for group, each in found]
        curves = [curve for curve in curves if curve.steps]
        if not curves:
            raise DataError(f"no validation in {', '.join(map(str, runs))} has the figure {name}")
        found_panels.append(Panel(f"Validation {_SHARES.get(name, name)}", curves, 100 if name in _SHARES else None))
    return found_panels


def _differ_in_seed(one: RunDirectory, other: RunDirectory) -> bool:
    """Whether two runs have the same settings but for the seed, and what the machine gives."""
    if not (one.has_begun and other.has_begun):
        return False
    configurations = one.configuration(), other.configuration()
    seeds = {configuration.training.seed for configuration in configurations}
    return len(seeds) == 2 and not differences(*configurations, free={"training": _NOT_COMPARED})


def _label(group: Sequence[RunDirectory]) -> str:
    more = f" and {counted(len(group) - 1, 'more seed')}" if len(group) > 1 else ""
    return f"{group[0]}{more}"


def _together(label: str, runs: Sequence[Records], name: str) -> Curve:
    """One figure of runs that are alike, at the steps that all of them have."""
    each = [dict(zip(*_points(dev, name), strict=True)) for dev in runs]
    steps = sorted(set(each[0]).intersection(*each[1:]))
    values = [[one[step] for one in each] for step in steps]
    means = [sum(row) / len(row) for row in values]
    if len(runs) == 1:
        return Curve(label, steps, means)
    return Curve(label, steps, means, [min(row) for row in values], [max(row) for row in values])


def _points(records: Records, name: str) -> tuple[list[int], list[float]]:
    having = [record for record in records if name in record]
    return [record["step"] for record in having], [record[name] for record in having]


def picture(drawn: Sequence[Panel]) -> bytes:
    """A PNG with the panels side by side."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5 * len(drawn), 4.5))
    FigureCanvasAgg(figure)
    for axes, panel in zip(figure.subplots(1, len(drawn), gridspec_kw=_MARGINS, squeeze=False)[0], drawn, strict=True):
        for number, curve in enumerate(panel.curves):
            colour = "#7f9fbf" if not curve.marked else _COLOURS[number % len(_COLOURS)]
            marker = "o" if curve.marked else ""
            axes.plot(curve.steps, curve.values, label=curve.label, color=colour, marker=marker, ms=3)
            if curve.lowest:
                axes.fill_between(curve.steps, curve.lowest, curve.highest, color=colour, alpha=0.2, lw=0)
        axes.set(title=panel.title, xlabel="step")
        axes.set_ylim(0, panel.top)
        axes.grid(alpha=0.3)
        if panel.curves:
            axes.legend()
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=100, metadata={"Software": None})
    return content.getvalue()
