"""The page: one HTML file with the engine, the packed model, and all that a reader sees."""

import html

from ....system.errors import ModelError
from ...browser.embedded import engine_parts, filled, model_text, page_file, why_no_page
from ...exportable import Weights
from ...runs.load import TrainedRun
from ...runs.weights import count_parameters


def page(loaded: TrainedRun, weights: Weights, *, title: str) -> str:
    """The HTML page of a run.

    Args:
        weights: How its matrices are stored.
        title: What it is called.

    Raises:
        ModelError: A page cannot hold the model; says why.
    """
    count = count_parameters(loaded.model)
    if reasons := why_no_page(count, weights):
        raise ModelError(f"{title} cannot be exported to HTML: {'; '.join(reasons)}")
    parts = engine_parts() | {
        "TITLE": html.escape(title),
        "PURPOSE": loaded.description.purpose,
        "STYLE": page_file(__name__, "page.css"),
        "SCRIPT": page_file(__name__, "page.js"),
        "MODEL": model_text(loaded, weights),
    }
    return filled(page_file(__name__, "page.html"), parts)
