"""The page: one HTML file that needs nothing else, neither network nor other files."""

import base64
import html
import json
from dataclasses import asdict, replace
from typing import Any

from ...system.errors import ModelError
from ..browser.embedded import engine_parts, filled, model_text, page_file, why_no_page
from ..runs.load import TrainedRun
from ..runs.weights import count_parameters
from .explanation import TEMPERATURES, Explanation
from .questions import questions
from .text import Focus
from .walk import live_stations, stations

MOST_BYTES = 8_000_000
"""A page is live without being told to if it is no larger."""


_LIVE = """<script id="model" type="application/octet-stream">{model}</script>
<script id="engine" type="text/plain">
{engine}</script>
"""


def page(found: Explanation, place: Focus, model: str = "") -> str:
    """The HTML page of a forward pass.

    Its element `data` is JSON; `numbers` is all arrays as float32, little-endian, one after the other, in base64.
    `data.arrays` says where each array begins and what shape it has. The numbers at `place` are looked at first.

    Args:
        model: The packed run, as text; with it the page is live: it computes all of this for other sentences, too.
    """
    index, numbers = _packed(found)
    data = page_data(found, live=bool(model)) | {"arrays": index, "begin": asdict(place)}
    scripts = [page_file(__name__, name) for name in ("page.js", "machine.js")]
    if model:
        scripts += [engine_parts()["CLIENT"], page_file(__name__, "try.js")]
    parts = {
        "TITLE": html.escape(found.text),
        "STYLE": page_file(__name__, "page.css"),
        "SCRIPT": "".join(scripts),
        "LIVE": _LIVE.format(model=model, engine=engine_text()) if model else "",
        # No `<` in it: nothing in a text can then end the script, or begin another one.
        "DATA": json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        "NUMBERS": base64.b64encode(numbers).decode(),
    }
    return filled(page_file(__name__, "page.html"), parts)


def live_page(found: Explanation, place: Focus, loaded: TrainedRun, live: bool | None) -> str:
    """The page, with its model in it where `live` is true; where it is None, if the page is then small enough.

    Raises:
        ModelError: A page cannot hold the model; says why.
    """
    count = count_parameters(loaded.model)
    if live and (reasons := why_no_page(count, "float32")):
        raise ModelError(f"{found.run} cannot be in a live page: {'; '.join(reasons)}; leave --live out")
    if live or (live is None and 4 * count < MOST_BYTES):
        made = page(found, place, model_text(loaded, "float32"))
        if live or len(made) <= MOST_BYTES:
            return made
    return page(found, place)


def engine_text() -> str:
    """The program of a live page's worker."""
    return engine_parts()["ENGINE"] + "".join(page_file(__name__, name) for name in ("live.js", "questions.js"))


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


def page_data(found: Explanation, *, live: bool) -> dict[str, Any]:
    """Everything but the arrays. In the shapes of stations, the page puts lengths in the places of `{AXIS}`."""
    config = found.sizes.config
    plain = asdict(replace(found, arrays={}))
    marked = replace(found.sizes, lengths={axis: f"{{{axis}}}" for axis in found.axes})
    walk = [*stations(marked), *(live_stations(marked) if live else ())]
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
            asdict(one) | {"sources": one.cited(), "formula": one.formula and mathml(one.formula)} for one in walk
        ],
        "questions": [asdict(one) for one in questions(found)],
        "vocabulary": found.sizes.vocabulary,
        "prefix": found.prefix,
        "live": live,
        "begins": found.sizes.continues,
    }


def mathml(formula: str) -> str:
    """LaTeX as MathML, which browsers draw themselves."""
    from latex2mathml.converter import convert

    return convert(formula, display="block")
