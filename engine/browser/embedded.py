"""What a page holds, as text in one HTML file that needs no other one."""

import base64
import re
import struct
from importlib import resources

from ..exportable import Weights
from ..runs.load import TrainedRun
from .pack import pack

MOST_BYTES = 400_000_000
"""Of a packed model: a browser holds a text of some 500 million characters, and a model is one."""

_BYTES_OF_WEIGHT = {"int8": 1, "float16": 2, "float32": 4}
_SAFE = bytes.maketrans(b"<&", b".,")
"""Instead of the two characters of base 85 that HTML gives a meaning to."""


def why_no_page(num_weights: int, weights: Weights) -> list[str]:
    """The reasons why a model cannot be in a page: its size alone. Every choice of `ModelConfig` is in engine.js."""
    size = num_weights * _BYTES_OF_WEIGHT[weights]
    if size <= MOST_BYTES:
        return []
    return [
        f"its {num_weights:,} weights in {weights} are {size / 1e6:,.0f} MB, and a browser opens a page of at most"
        f" {MOST_BYTES / 1e6:,.0f}"
    ]


def engine_parts() -> dict[str, str]:
    """The marks of the engine and of a page's side of it."""
    return {"ENGINE": page_file(__name__, "engine.js"), "CLIENT": page_file(__name__, "client.js")}


def model_text(loaded: TrainedRun, weights: Weights) -> str:
    """A run as text that `engine.js` reads."""
    return in_base_85(pack(loaded, weights))


def in_base_85(content: bytes) -> str:
    """Bytes, their number first, as text that may stand in HTML as it is: 5 characters for 4, base 64 takes 5.3."""
    counted = struct.pack(">I", len(content)) + content
    return base64.b85encode(counted, pad=True).translate(_SAFE).decode()


def filled(template: str, parts: dict[str, str]) -> str:
    """A template with each mark, such as @TITLE@, replaced by the part of this name."""
    return re.sub("@([A-Z]+)@", lambda mark: parts[mark[1]], template)


def page_file(module: str, name: str) -> str:
    """A file beside a module, as text."""
    return resources.files(module.rpartition(".")[0]).joinpath(name).read_text(encoding="utf-8")
