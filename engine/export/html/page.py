"""The page: one HTML file with the engine, the packed model, and all that a reader sees."""

import base64
import html
import re
import struct
from importlib import resources

from ....system.errors import ModelError
from ...exportable import Weights
from ...runs.load import TrainedRun
from .pack import pack

MOST_BYTES = 400_000_000
"""Of a packed model: a browser holds a text of some 500 million characters, and a model is one."""

_BYTES_OF_WEIGHT = {"int8": 1, "float16": 2, "float32": 4}
_SAFE = bytes.maketrans(b"<&", b".,")
"""Instead of the two characters of base 85 that HTML gives a meaning to."""


def why_no_page(num_weights: int, weights: Weights) -> list[str]:
    """The reasons why a model cannot be a page: its size alone. Every choice of `ModelConfig` is in engine.js."""
    size = num_weights * _BYTES_OF_WEIGHT[weights]
    if size <= MOST_BYTES:
        return []
    return [
        f"its {num_weights:,} weights in {weights} are {size / 1e6:,.0f} MB, and a browser opens a page of at most"
        f" {MOST_BYTES / 1e6:,.0f}"
    ]


def page(loaded: TrainedRun, weights: Weights, *, title: str) -> str:
    """The HTML page of a run.

    Args:
        weights: How its matrices are stored.
        title: What it is called.

    Raises:
        ModelError: A page cannot hold the model; says why.
    """
    count = sum(parameter.numel() for parameter in loaded.model.parameters())
    if reasons := why_no_page(count, weights):
        raise ModelError(f"{title} cannot be exported to HTML: {'; '.join(reasons)}")
    parts = {
        "TITLE": html.escape(title),
        "PURPOSE": loaded.description.purpose,
        "STYLE": _file("page.css"),
        "ENGINE": _file("engine.js"),
        "SCRIPT": _file("page.js"),
        "MODEL": in_base_85(pack(loaded, weights)),
    }
    return re.sub("@([A-Z]+)@", lambda mark: parts[mark[1]], _file("page.html"))


def in_base_85(content: bytes) -> str:
    """Bytes, their number first, as text that may stand in HTML as it is: 5 characters for 4, base 64 takes 5.3."""
    counted = struct.pack(">I", len(content)) + content
    return base64.b85encode(counted, pad=True).translate(_SAFE).decode()


def _file(name: str) -> str:
    return resources.files(__name__.rpartition(".")[0]).joinpath(name).read_text(encoding="utf-8")
