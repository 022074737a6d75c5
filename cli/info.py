"""`tfm info`: what a run is and how far it has come."""

import json
from collections.abc import Iterator
from typing import Any

from ..system.reporter import Console, visible
from . import options
from .startup import importing


def info(run: options.Run = None, json_: options.Json = False, debug: options.Debug = False) -> None:
    """Describe a run: model, vocabulary, checkpoints and their scores; how good it is, and what would help."""
    del debug
    from ..engine.runs.directory import RunDirectory
    from ..engine.runs.find import find_run

    with importing():
        from ..engine.describe import describe_run

    description = describe_run(RunDirectory(find_run(run, Console())))
    if json_:
        print(json.dumps(description, ensure_ascii=False))
        return
    for line in _lines(description):
        print(visible(line))


def _lines(description: dict[str, Any]) -> Iterator[str]:
    for key, value in description.items():
        if key == "checkpoints":
            yield "checkpoints"
            for checkpoint in value:
                yield "  " + _checkpoint_line(checkpoint)
        elif key == "verdict":
            yield "verdict"
            yield from (f"  {line}" for line in value)
        elif isinstance(value, dict):
            known = {name: item for name, item in value.items() if item is not None}
            yield f"{key:<12} " + ", ".join(f"{name} {item}" for name, item in known.items())
        elif value is not None:
            yield f"{key:<12} {value:,}" if isinstance(value, int) else f"{key:<12} {value}"


def _checkpoint_line(checkpoint: dict[str, Any]) -> str:
    if checkpoint["damage"]:
        return f"step {checkpoint['step']:,}: {checkpoint['damage']}"
    marks = [mark for mark in ("best", "last") if checkpoint[mark]]
    score = "not validated" if checkpoint["score"] is None else f"score {checkpoint['score']:.3f}"
    return f"step {checkpoint['step']:,}: {score}{' (' + ', '.join(marks) + ')' if marks else ''}"
