"""`tfm improve`: makes a translator better with text that has no translations."""

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ..engine.file_guard import READS_FILE, WRITES_RUN
from ..system.reporter import Console
from . import options
from .startup import importing
from .train import resumable


def improve(
    run: Annotated[
        Path,
        typer.Option("--run", metavar="RUN", help="The run to make better.", show_default=False),
        WRITES_RUN,
    ],
    tgt_text: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="Text in the language of the targets, one sentence per line.", show_default=False
        ),
        READS_FILE,
    ],
    src_text: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Text in the language of the sources, one sentence per line."),
        READS_FILE,
    ] = None,
    max_time: options.MaxTime = None,
    until: options.Until = None,
    encoding: options.Encoding = None,
    device: options.Device = "auto",
    set_: options.Set = None,
    json_: options.Json = False,
) -> None:
    """Make a translator better with text that has no translations.

    tfm improve --run runs/mine --tgt-text news.de --max-time 8h

    The same command goes on where it was stopped. It trains a model of the opposite direction, translates the text
    back, trains the next model on your pairs and on these, and does so again while a test on the validation set says
    that it helps. The run gets the new model only if that is better beyond doubt; the old one is kept beside it.
    """
    started = time.monotonic()
    console = Console()
    encoding = options.checked_encoding(encoding)
    with importing():
        from ..engine.improve.course import improve as improved

    with resumable() as interrupts:
        verdict, seconds = improved(
            run,
            tgt_text=tgt_text,
            src_text=src_text,
            max_time=max_time,
            until=until,
            encoding=encoding,
            assignments=set_ or [],
            device=device,
            started=started,
            reporter=console,
            interrupts=interrupts,
        )
    if json_:
        spent = {name: round(one) for name, one in seconds.items()}
        print(json.dumps({"run": str(run), **asdict(verdict), "seconds": spent}, ensure_ascii=False))
    else:
        print("\n".join(verdict.lines(run, seconds)))
