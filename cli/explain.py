"""`tfm explain`: one forward pass of a model as a page to walk through."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..engine.file_guard import WRITES_FILE
from ..system.errors import UsageError
from ..system.files import OutputFile
from ..system.reporter import Console
from . import options
from .startup import importing

LARGEST_PAGE = 5_000_000
"""Bytes above which a page is called large."""


def explain(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A sentence; for a language model a beginning.")],
    run: options.Run = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="File for the page, such as page.html."),
        WRITES_FILE,
    ] = None,
    format_: Annotated[str, typer.Option("--format", metavar="NAME", help="html or text.")] = "html",
    layer: Annotated[int, typer.Option(metavar="N", min=1, help="Layer to look at first.")] = 1,
    head: Annotated[int, typer.Option(metavar="N", min=1, help="Head to look at first.")] = 1,
    piece: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Piece to look at first. [default: the first; in one sequence that of the step]"
        ),
    ] = None,
    step: Annotated[int, typer.Option(metavar="N", min=1, help="Step of the output to look at first.")] = 1,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="Show the sentence with each kept checkpoint, too.")
    ] = False,
    live: Annotated[
        bool | None,
        typer.Option(
            "--live/--no-live",
            help="Let the page compute sentences that its reader types. [default: if the page stays below 8 MB]",
        ),
    ] = None,
    checkpoint: options.Checkpoint = "best",
    device: options.Device = "auto",
) -> None:
    """Write a page that walks through one forward pass of your model.

    tfm explain --run runs/toy "the old woman gives the child two red apples" --output page.html

    tfm explain --run runs/toy "the old woman sleeps" --format text --layer 2 --head 3

    The page is one file and needs no network. Open it in a browser, type another sentence, and all numbers are its own.
    """
    from ..engine.runs.find import find_run
    from .lines import lines_of, refuse_file_names, refuse_other_output

    if format_ not in ("html", "text"):
        raise UsageError(f"there is no format {format_!r}; --format takes html or text")
    if live and format_ == "text":
        raise UsageError("only a page is live; leave --live or --format text out")
    if format_ == "html" and output is None:
        raise UsageError("a page needs a file: add --output page.html, or --format text for the terminal")
    refuse_other_output(output, *((".html", ".htm", ".xhtml") if format_ == "html" else ()))
    refuse_file_names([text], "give one of its sentences")
    if (count := len(lines_of(text))) > 1:
        raise UsageError(f"the text has {count} lines; give one sentence")
    console = Console()
    directory = find_run(run, console)
    with importing():
        from ..engine.explain.explanation import explain
        from ..engine.explain.page import live_page
        from ..engine.explain.text import Focus
        from ..engine.explain.text import text as printed
        from ..engine.runs.directory import RunDirectory
        from ..engine.runs.load import load_run

    loaded = load_run(directory, None, checkpoint=checkpoint, device=device, warn=console.warn)
    config = loaded.model.config
    _refuse_more("layer", layer, max(config.num_encoder_layers, config.num_decoder_layers))
    _refuse_more("head", head, config.num_heads)
    place = Focus(layer - 1, head - 1, None if piece is None else piece - 1, step - 1)

    def walk() -> str:
        run = RunDirectory(directory)
        found = explain(run, loaded, text, with_checkpoints=checkpoints, on_done=console.say)
        _refuse_more("piece", piece or 1, len(found.axes[found.sizes.walk.axis]))
        _refuse_more("step", step, len(found.written) or 1)
        return live_page(found, place, loaded, live) if format_ == "html" else printed(found, place)

    if output is None:
        sys.stdout.write(walk())
        return
    with OutputFile(output) as stream:
        content = walk()
        stream.write(content)
    size, is_live = len(content.encode()), format_ == "html" and 'id="model"' in content
    large = "; it is large, a shorter sentence makes a smaller one" if size > LARGEST_PAGE and not is_live else ""
    console.say(f"{output}: {size / 1e6:.1f} MB{large}")
    if format_ == "html" and not is_live and live is None:
        console.say("it does not compute other sentences: with the weights it would be large; --live puts them in")


def _refuse_more(name: str, number: int, count: int) -> None:
    """Refuses a number that is larger than the count, with a UsageError."""
    if number > count:
        there = f"there is 1 {name}" if count == 1 else f"there are {count} {name}s"
        raise UsageError(f"--{name} {number}: {there}")
