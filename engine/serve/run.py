"""Runs the server, until a signal ends it: what is under way then is finished."""

import html
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from ...system.errors import EnvironmentFault, Interrupted, ModelError
from .app import Limits, Server
from .directions import Direction

PATIENCE = 30
"""Seconds that requests have to end after a signal."""
MOST_CONNECTIONS = BACKLOG = 1_000


def page_of(run: Path, checkpoint: str) -> str:
    """A run as `tfm export --format html --quantization int8` writes it; a sentence in its place if it is too large."""
    from ..export.html.page import page
    from ..runs.load import load_run

    try:
        return page(load_run(run, "translator", checkpoint=checkpoint, device="cpu"), "int8", title=run.resolve().name)
    except ModelError as error:
        return f"<!DOCTYPE html><p>{html.escape(str(error))}"


def serve(
    directions: Sequence[Direction],
    *,
    host: str,
    port: int,
    limits: Limits,
    page: Callable[[], str],
    say: Callable[[str], None],
) -> None:
    """Answers requests until SIGTERM or Ctrl-C.

    Args:
        port: 0 takes one that is free.
        page: Makes the HTML of `/`.

    Raises:
        EnvironmentFault: The port cannot be had.
    """
    with tempfile.TemporaryDirectory(prefix="tfm-serve-") as folder:
        server = Server(list(directions), limits, Path(folder), page)
        config = uvicorn.Config(
            server.app(),
            host=host,
            port=port,
            log_level="warning",
            timeout_graceful_shutdown=PATIENCE,
            limit_concurrency=MOST_CONNECTIONS,
            server_header=False,
        )
        try:
            listening = config.bind_socket()
        except (OSError, SystemExit) as error:
            raise EnvironmentFault(
                f"cannot listen on {host}:{port}: another program does, or it is not allowed"
            ) from error
        listening.listen(BACKLOG)  # who is told the address now may come before the server has begun
        address = listening.getsockname()
        say(f"listening on http://{_in_url(host)}:{address[1]}/ (Ctrl-C ends it)")
        try:
            uvicorn.Server(config).run(sockets=[listening])
        except (Interrupted, KeyboardInterrupt):
            pass  # uvicorn has finished what was under way, and raises the signal once more
        finally:
            listening.close()
            for direction in directions:
                direction.gatherer.close()
        say("stopped")


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
