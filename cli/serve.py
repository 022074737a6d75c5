"""`tfm serve`: runs behind an HTTP server, for other programs."""

import os
from functools import partial
from typing import Annotated

import typer

from ..engine.file_guard import READS_NAMED_RUN
from ..system.errors import UsageError
from ..system.reporter import Console
from . import options
from .startup import importing

LOOPBACK = "127.0.0.1", "localhost", "::1"


def serve(
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            metavar="[SRC-TGT=]RUN",
            help="A run, with its languages (en-de=runs/mine) unless it knows them; may be repeated.",
        ),
        READS_NAMED_RUN,
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; 0.0.0.0 lets other machines in.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="0 takes a free one.")] = 5000,
    api_key: Annotated[
        str | None,
        typer.Option(metavar="KEY", envvar="TFM_API_KEY", help="What each request has to name as its api_key."),
    ] = None,
    max_characters: Annotated[int, typer.Option(metavar="N", min=1, help="Most characters of one request.")] = 20_000,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="Longest time of one request; a file has ten times that.")
    ] = 60.0,
    checkpoint: options.Checkpoint = "best",
    beam_size: options.BeamSize = None,
    device: options.Device = "auto",
) -> None:
    """Let other programs translate with a run, over HTTP.

    The server speaks LibreTranslate's API.

    tfm serve --run en-de=runs/mine

    curl -d q="the old woman sleeps" -d source=en -d target=de http://127.0.0.1:5000/translate
    """
    from ..engine.runs.find import find_run

    console = Console()
    try:
        import multipart  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import starlette  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import uvicorn  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise UsageError(f"tfm serve needs {error.name}: pip install 'tfm[serve]'") from error
    specs = run or [os.fspath(find_run(None, console))]
    with importing():
        from ..engine.device import keep_freed_memory
        from ..engine.serve.app import Limits
        from ..engine.serve.directions import open_directions
        from ..engine.serve.run import page_of
        from ..engine.serve.run import serve as answer

    keep_freed_memory()
    directions = open_directions(specs, checkpoint=checkpoint, device=device, beam_size=beam_size, warn=console.warn)
    for one in directions:
        console.say(f"{one.source} to {one.target}: {one.run}")
    if host not in LOOPBACK and not api_key:
        console.warn(f"whoever can reach {host} can translate here; --api-key asks for a key")
    limits = Limits(max_characters, timeout, api_key or "")
    page = partial(page_of, directions[0].run, checkpoint)
    answer(directions, host=host, port=port, limits=limits, page=page, say=console.say)
