"""The learning curve as a picture."""

import io
from typing import Any

from ...seq2seq.training.config import TrainingConfig

_COLOURS = {"bleu": "#b0452f", "chrf": "#3f7f5f", "exact": "#555577", "retrieval": "#b0452f", "accuracy": "#3f7f5f"}
_TRANSLATION = ["bleu", "chrf", "exact"]
_MARGINS = {"left": 0.06, "right": 0.98, "bottom": 0.11, "top": 0.93, "wspace": 0.15}
"""Parts of the picture. To have them found draws everything twice."""


def learning_curve(records: list[dict[str, Any]], config: TrainingConfig) -> bytes:
    """Draws loss and scores over the steps.

    Args:
        records: The lines of metrics.jsonl.
        config: For the names in the picture.

    Returns:
        A PNG.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    train = [record for record in records if record.get("kind") == "train"]
    dev = [record for record in records if record.get("kind") == "validation"]
    shown = [name for name in _COLOURS if any(name in r for r in dev)] or _TRANSLATION
    figure = Figure(figsize=(9, 4.5))
    FigureCanvasAgg(figure)
    losses, scores = figure.subplots(1, 2, gridspec_kw=_MARGINS)
    smoothed = config.label_smoothing and shown[0] != "retrieval"
    name = "training (label-smoothed)" if smoothed else "training"
    losses.plot([r["step"] for r in train], [r["loss"] for r in train], label=name, color="#7f9fbf")
    losses.plot(
        [r["step"] for r in dev], [r["loss"] for r in dev], label="validation", color="#b0452f", marker="o", ms=3
    )
    example = {"retrieval": "pair", "accuracy": "hidden token"}.get(shown[0], "target token")
    losses.set(title=f"Loss, nats per {example}", xlabel="step")
    losses.set_ylim(bottom=0)
    losses.legend()
    for name in shown:
        points = [(r["step"], r[name]) for r in dev if name in r]
        xs, ys = zip(*points, strict=True) if points else ([], [])
        scores.plot(xs, ys, label=name, color=_COLOURS[name], marker="o", ms=3)
    how = "scores, greedy" if shown == _TRANSLATION else shown[0]
    scores.set(title=f"Validation {how} (best by {config.best_metric})", xlabel="step")
    scores.set_ylim(0, 100)
    scores.legend()
    for axes in (losses, scores):
        axes.grid(alpha=0.3)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=100, metadata={"Software": None})
    return picture.getvalue()
