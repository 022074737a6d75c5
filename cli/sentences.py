"""Sentence by sentence: those to look at first, and a file with all of them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..system.console import Console
from ..system.files import OutputFile, json_line


def show(console: Console, headline: str, texts: Sequence[tuple[str, str]]) -> None:
    """One sentence for a person: a headline, then each text after its name, and an empty line."""
    width = max(len("reference"), *(len(name) for name, _ in texts))
    lines = [f"{name:<{width}}  {text}" for name, text in texts]
    console.say("\n".join([headline, *lines] if headline else lines) + "\n")


def write_report(path: Path | None, records: Iterable[dict[str, Any]]) -> None:
    """Writes one JSON object a line, if there is a file to write to."""
    if path is None:
        return
    with OutputFile(path) as stream:
        stream.writelines(json_line(record) + "\n" for record in records)
