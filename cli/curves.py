"""`tfm curves`: losses and scores of runs, drawn together."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated

import typer

from ..engine.file_guard import READS_RUN, WRITES_FILE
from ..system.errors import UsageError
from ..system.reporter import Console
from . import options


def curves(
    run: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN",
            help="Runs, or their names in runs/; without any, all that are there.",
            autocompletion=options.offered("run_names"),
        ),
        READS_RUN,
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="bleu, chrf, exact, retrieval, accuracy, ppl or loss. [default: what decides the best]",
            autocompletion=options.offered("figures"),
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.png", help="Write a picture instead."), WRITES_FILE
    ] = None,
    json_: options.Json = False,
) -> None:
    """Draw the losses and scores of runs together.

    tfm curves runs/mine runs/other

    tfm curves seed1 seed2 seed3 --output curves.png

    Runs that differ in nothing but their seed are one curve: their mean, in a band from the lowest to the highest.
    """
    from ..engine.runs.curves import FIGURES, compared, picture
    from ..engine.runs.directory import RunDirectory
    from ..engine.runs.find import find_run, list_runs
    from ..system.files import replace_file
    from .plot import plotted

    console = Console()
    if metric is not None and metric not in FIGURES:
        raise UsageError(f"there is no metric {metric!r}; there are: {', '.join(FIGURES)}")
    if output is not None and output.suffix.lower() != ".png":
        raise UsageError(f"--output {output}: the picture is a PNG; name it so, such as {output.with_suffix('.png')}")
    paths = [find_run(one, console) for one in run] if run else list_runs() or [find_run(None, console)]
    drawn = compared([RunDirectory(path) for path in dict.fromkeys(paths)], metric)
    if output is not None:
        replace_file(output, picture(drawn))
        console.say(f"{output}: {', '.join(panel.title for panel in drawn)}")
    if json_:
        print(json.dumps([asdict(panel) for panel in drawn], ensure_ascii=False))
    elif output is None:
        width = get_terminal_size().columns - 1 if sys.stdout.isatty() else 79
        for number, panel in enumerate(drawn):
            print("\n" * (number > 0) + "\n".join(plotted(panel, width=min(width, 120), height=12)))
