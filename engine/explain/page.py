"""The page: one HTML file that needs nothing else, neither network nor other files."""

import base64
import html
import json
import re
from dataclasses import asdict, replace
from importlib import resources
from typing import Any

import numpy as np

from .explanation import TEMPERATURES, Explanation
from .questions import questions
from .text import Focus


def page(found: Explanation, place: Focus) -> str:
    """The HTML page of a forward pass.

    Its element `data` is JSON; `numbers` is all arrays as float32, little-endian, one after the other, in base64.
    `data.arrays` says where each array begins and what shape it has. The numbers at `place` are looked at first.
    """
    files = resources.files(__name__.rpartition(".")[0])
    template, style, script = (
        files.joinpath(name).read_text(encoding="utf-8") for name in ("page.html", "page.css", "page.js")
    )
    index, numbers = _packed(found)
    data = page_data(found) | {"arrays": index, "begin": asdict(place)}
    parts = {
        "TITLE": html.escape(found.text),
        "STYLE": style,
        "SCRIPT": script,
        # No `<` in it: nothing in a text can then end the script, or begin another one.
        "DATA": json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        "NUMBERS": base64.b64encode(numbers).decode(),
    }
    return re.sub("@([A-Z]+)@", lambda mark: parts[mark[1]], template)


def _packed(found: Explanation) -> tuple[dict[str, dict[str, Any]], bytes]:
    """Where each array begins, counted in numbers, and its shape; and all numbers.

    Equal arrays are stored once: the output of a layer is the input of the next one.
    """
    index: dict[str, dict[str, Any]] = {}
    offsets: dict[bytes, int] = {}
    offset = 0
    for name, array in found.arrays.items():
        if name == "output_layer":  # |V| numbers for each step; the page has the largest
            continue
        content = array.numpy().astype("<f4", copy=False).tobytes()
        if content not in offsets:
            offsets[content] = offset
            offset += array.numel()
        index[name] = {"offset": offsets[content], "shape": list(array.shape)}
    return index, b"".join(offsets)


def unpacked(index: dict[str, dict[str, Any]], numbers: bytes) -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
    """The arrays of a page."""
    flat = np.frombuffer(numbers, dtype="<f4")
    return {
        name: flat[at["offset"] : at["offset"] + int(np.prod(at["shape"]))].reshape(at["shape"])
        for name, at in index.items()
    }


def page_data(found: Explanation) -> dict[str, Any]:
    """Everything but the arrays."""
    config = found.sizes.config
    plain = asdict(replace(found, arrays={}))
    return {
        **{name: plain[name] for name in ("text", "run", "checkpoint")},
        "architecture": config.architecture,
        "config": asdict(config),
        "layers": {"encoder": config.num_encoder_layers, "decoder": config.num_decoder_layers},
        "heads": config.num_heads,
        **{name: plain[name] for name in ("axes", "written", "output", "search")},
        "temperatures": list(TEMPERATURES),
        **{name: plain[name] for name in ("steps", "greedy", "samples", "beam", "heads_off", "snapshots")},
        "stations": [
            asdict(one) | {"sources": one.cited(), "formula": mathml(one.formula) if one.formula else ""}
            for one in found.stations
        ],
        "questions": [asdict(one) for one in questions(found)],
        "vocabulary": found.sizes.vocabulary,
        "prefix": found.prefix,
    }


def mathml(formula: str) -> str:
    """LaTeX as MathML, which browsers draw themselves."""
    from latex2mathml.converter import convert

    return convert(formula, display="block")
