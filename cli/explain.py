"""`tfm explain`: one forward pass of a model as a page to walk through."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Checkpoint, Debug, Device, Run

if TYPE_CHECKING:
    from ..seq2seq.explain.explanation import Explanation
    from ..seq2seq.explain.text import Place

LARGEST_PAGE = 5_000_000
"""Bytes above which a page is called large."""


def explain(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A sentence; for a language model a beginning.")],
    run: Run = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File for the page, such as page.html.")
    ] = None,
    format_: Annotated[str, typer.Option("--format", metavar="NAME", help="html or text.")] = "html",
    layer: Annotated[int, typer.Option(metavar="N", min=1, help="Layer to look at first.")] = 1,
    head: Annotated[int, typer.Option(metavar="N", min=1, help="Head to look at first.")] = 1,
    piece: Annotated[int, typer.Option(metavar="N", min=1, help="Piece of the source to look at first.")] = 1,
    step: Annotated[int, typer.Option(metavar="N", min=1, help="Step of the output to look at first.")] = 1,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="Show the sentence with each kept checkpoint, too.")
    ] = False,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
    debug: Debug = False,
) -> None:
    """Write a page that walks through one forward pass of your model, number by number.

    tfm explain --run runs/toy "the old woman gives the child two red apples" --output page.html

    tfm explain --run runs/toy "the old woman sleeps" --format text --layer 2 --head 3

    The page is one file and needs no network. Open it in a browser.
    """
    del debug
    from ..data.errors import UsageError
    from ..data.files import OutputFile
    from .console import Console
    from .libraries import importing
    from .runs import find_run

    if format_ not in ("html", "text"):
        raise UsageError(f"there is no format {format_!r}; --format takes html or text")
    if format_ == "html" and output is None:
        raise UsageError("a page needs a file: add --output page.html, or --format text for the terminal")
    console = Console()
    directory = find_run(run, console)
    with importing():
        from ..seq2seq.explain.explanation import explain
        from ..seq2seq.explain.text import Place
        from ..seq2seq.runs.directory import RunDirectory
        from ..seq2seq.runs.trained import load_run

    loaded = load_run(directory, None, checkpoint=checkpoint, device=device, warn=console.warn)
    found = explain(
        RunDirectory(directory), loaded, text, with_checkpoints=checkpoints, on_done=lambda what: console.say(what)
    )
    place = Place(layer - 1, head - 1, piece - 1, step - 1)
    _check(found, place)
    content = _rendered(found, place, format_)
    if output is None:
        sys.stdout.write(content)
        return
    with OutputFile(output) as stream:
        stream.write(content)
    size = len(content.encode())
    large = "; it is large, a shorter sentence makes a smaller one" if size > LARGEST_PAGE else ""
    console.say(f"{output}: {size / 1e6:.1f} MB{large}")


def _rendered(found: "Explanation", place: "Place", format_: str) -> str:
    if format_ == "text":
        from ..seq2seq.explain.text import text

        return text(found, place)
    from ..seq2seq.explain.page import page

    return page(found, place)


def _check(found: "Explanation", place: "Place") -> None:
    """Refuses to look at what is not there.

    Raises:
        UsageError: There are not so many layers, heads, pieces or steps.
    """
    from ..data.errors import UsageError

    config = found.sizes.config
    pieces = found.axes.get("seq") or found.axes["src"]
    limits = {
        "layer": (place.layer, max(config.num_encoder_layers, config.num_decoder_layers), "layers"),
        "head": (place.head, config.num_heads, "heads"),
        "piece": (place.token, len(pieces), "pieces"),
        "step": (place.step, len(found.written) or 1, "steps"),
    }
    for name, (value, count, what) in limits.items():
        if value >= count:
            raise UsageError(f"--{name} {value + 1}: there are {count} {what}")
