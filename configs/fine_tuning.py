"""Settings for training on: what a model has learned is changed a little, by few updates at low rates.

What was measured is in `benchmarks/ablations.md`.
"""

from typing import Any

from .recipe import max_updates

RATE = 0.1
"""The learning rates are this share of those with which the model was trained."""
SHORTER = 2
"""Updates are this many times fewer than to learn as many pairs from nothing."""
MIN_UPDATES = 300

_TRAINING: dict[str, Any] = {
    "max_time": None,
    "max_tokens_per_batch": 1024,
    "grad_accum_steps": 2,
    "ranks": None,
    "schedule": "trapezoid",
    "warmup_steps": 20,
    "decay_fraction": 0.5,
    "patience": 3,
    "early_stopping": 0,
    "ema_decay": 0.98,
    "subword_dropout": 0.0,
    "precision": "auto",
    "device": "auto",
    "validate_every": 50,
    "checkpoint_every": 50,
}


def fine_tuning(source: dict[str, Any], pairs: int) -> dict[str, Any]:
    """The settings with which a run goes on from another one on new pairs.

    Args:
        source: The whole settings of that run: its model, its vocabulary and its way of decoding stay.
    """
    training = source.get("training", {})
    rates = {name: training[name] * RATE for name in ("learning_rate", "muon_learning_rate") if name in training}
    steps = max(max_updates(pairs) // SHORTER, MIN_UPDATES)
    kept = {section: source[section] for section in ("model", "tokenizer", "decoding") if section in source}
    return {**kept, "training": {**training, **_TRAINING, **rates, "max_steps": steps}}
