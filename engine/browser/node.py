"""Runs `engine.js` in node, where it does what it does in a page."""

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from ...system.errors import EnvironmentFault
from ...system.files import write_file
from ...system.processes import Child

Work = Literal["translate", "continue", "scores", "vectors"]
MIN_VERSION = 20
"""The first node that has all that the engine needs of a browser."""


def find_node() -> str | None:
    """The program, if it is at hand."""
    return shutil.which("node")


@contextlib.contextmanager
def running(packed: bytes, node: str) -> Iterator["Engine"]:
    """An engine with a model, which ends with the block.

    Raises:
        EnvironmentFault: Node could not be started, or cannot run it.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        write_file(folder / "model", packed)
        script = stack.enter_context(
            resources.as_file(resources.files(__name__.rpartition(".")[0]).joinpath("engine.js"))
        )
        child = stack.enter_context(Child(str(script), purpose="to compare in", interpreter=[node]))
        engine = Engine(child)
        engine.open(folder / "model")
        yield engine


class Engine:
    """The engine in a process of its own."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self.about: dict[str, Any] = {}
        """What the model says of itself."""

    def open(self, path: Path) -> None:
        """Reads a packed model."""
        self.about = self.ask({"kind": "open", "model": str(path)})["about"]

    def each(self, work: Work, texts: Sequence[str], **settings: Any) -> Iterator[Any]:
        """Does something for each text; the results in order, as they come."""
        for answer in self._answers({"kind": work, "texts": list(texts), "settings": settings}):
            if answer["kind"] == "one":
                yield answer["result"]

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """The last answer to any other message."""
        *_, last = self._answers(message)
        return last

    def _answers(self, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
        with contextlib.suppress(BrokenPipeError):  # it has ended; why is seen below
            self._child.stdin.write(json.dumps({"id": 0, **message}).encode() + b"\n")
            self._child.stdin.flush()
        for line in self._child.stdout:
            answer = json.loads(line)
            if answer["kind"] == "failed":
                raise EnvironmentFault(f"the engine in node failed: {answer['error']}")
            yield answer
            if answer["kind"] == "done":
                return
        self._child.kill()
        ending = self._child.wait()
        raise EnvironmentFault(f"node {ending}; the engine needs node {MIN_VERSION} or later")
