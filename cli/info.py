"""`tfm info`: what a run is and how far it has come."""

import json
import sys
from collections.abc import Iterator
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from ..engine.runs.curves import figure_in_words
from ..system.reporter import Console, painted, visible
from . import options
from .startup import importing
from .table import print_table

if TYPE_CHECKING:
    from ..engine.runs.directory import RunDirectory


def info(run: options.Run = None, json_: options.Json = False) -> None:
    """Describe a run: what it is, how good it is, and what would help."""
    from ..engine.runs.directory import RunDirectory
    from ..engine.runs.find import find_run

    with importing():
        from ..engine.describe import describe_run

    directory = RunDirectory(find_run(run, Console()))
    description = describe_run(directory)
    if json_:
        print(json.dumps(description, ensure_ascii=False))
        return
    print_table(list(_rows(description)))
    if sys.stdout.isatty() and description["checkpoints"] and directory.has_begun:
        _plot(directory)
    if description["verdict"]:
        print(painted("verdict", "bold"))
    for line in description["verdict"]:  # whole: a command that is broken in two lines cannot be copied
        print(f"  {visible(line)}")


def _rows(description: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Everything but the verdict, each with its name."""
    for key, value in description.items():
        if key == "checkpoints":
            yield key, "\n".join(map(_checkpoint_line, value))
        elif isinstance(value, dict):
            known = ((name, item) for name, item in value.items() if item is not None)
            yield key, ", ".join(f"{name} {_figure(item)}" for name, item in known)
        elif key != "verdict" and value is not None:
            yield key, _figure(value)


def _figure(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _checkpoint_line(checkpoint: dict[str, Any]) -> str:
    if checkpoint["damage"]:
        return f"step {checkpoint['step']:,}: {checkpoint['damage']}"
    marks = [mark for mark in ("best", "last") if checkpoint[mark]]
    score, metric = checkpoint["score"], checkpoint["metric"]
    if score is None:
        words = "not validated"
    else:
        words = f"score {score:.3f}" if metric is None else figure_in_words(metric, abs(score))
    return f"step {checkpoint['step']:,}: {words}{' (' + ', '.join(marks) + ')' if marks else ''}"


def _plot(run: "RunDirectory") -> None:
    """The learning curve: losses and scores."""
    from ..engine.runs.curves import panels
    from .plot import plotted

    width = min(get_terminal_size().columns - 1, 100)
    for panel in panels(run.metrics.records(), run.configuration().training):
        print()
        for line in plotted(panel, width=width, height=7):
            print(line)
    print()
