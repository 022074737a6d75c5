"""The learning curve as a picture."""

import io
from typing import Any

from ..training.config import TrainingConfig


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
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    losses, scores = figure.subplots(1, 2)
    name = "training (label-smoothed)" if config.label_smoothing else "training"
    losses.plot([r["step"] for r in train], [r["loss"] for r in train], label=name, color="#7f9fbf")
    losses.plot(
        [r["step"] for r in dev], [r["loss"] for r in dev], label="validation", color="#b0452f", marker="o", ms=3
    )
    losses.set(title="Loss, nats per target token", xlabel="step")
    losses.set_ylim(bottom=0)
    losses.legend()
    for name, color in (("bleu", "#b0452f"), ("chrf", "#3f7f5f"), ("exact", "#555577")):
        points = [(r["step"], r[name]) for r in dev if name in r]
        scores.plot(*zip(*points, strict=True) if points else ([], []), label=name, color=color, marker="o", ms=3)
    scores.set(title=f"Validation scores, greedy (best by {config.best_metric})", xlabel="step")
    scores.set_ylim(0, 100)
    scores.legend()
    for axes in (losses, scores):
        axes.grid(alpha=0.3)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=100, metadata={"Software": None})
    return picture.getvalue()
