"""What a run directory holds, for `tfm info`."""

from pathlib import Path
from typing import Any

from ..data.errors import ModelError
from ..data.tokenizer import Tokenizer
from .checkpoint import best_checkpoint, damage, read_description, read_state
from .export.limits import why_not_exportable
from .model.config import ModelConfig
from .model.transformer import count_parameters
from .run_directory import checkpoint_step, list_checkpoints
from .training.setup import describe_setup


def describe_run(run: Path) -> dict[str, Any]:
    """Model, vocabulary, checkpoints and scores of a run.

    Raises:
        ModelError: The directory holds no checkpoint, or none that is sound.
    """
    checkpoints = {path: damage(path) for path in list_checkpoints(run)}
    sound = [path for path, reason in checkpoints.items() if not reason]
    if not sound:
        reasons = "; ".join(reason for reason in checkpoints.values() if reason)
        raise ModelError(f"no valid checkpoint in {run}{': ' + reasons if reasons else '; train it with tfm train'}")
    best, last = best_checkpoint(sound), sound[-1]
    description, state = read_description(last), read_state(last)
    tokenizer = Tokenizer.load(run / "tokenizer")
    config = ModelConfig(**description.model)
    sizes = {
        "src_vocab_size": description.src_vocab_size,
        "tgt_vocab_size": description.tgt_vocab_size,
        "shared_vocab": description.shared_vocab,
    }
    return {
        "run": str(run),
        "made by": f"tfm {description.tfm_version}",
        "parameters": count_parameters(config, **sizes),
        "model": description.model,
        "vocabulary": {"type": tokenizer.type, **sizes, "sha256": tokenizer.sha256[:12]},
        "weights": "moving average" if description.weights == "ema" else "as trained",
        "decoding": description.decoding,
        "export": _exportable(config, max(description.src_vocab_size, description.tgt_vocab_size)),
        "training": {
            "step": state["progress"]["step"],
            "of": state["max_steps"],
            "epoch": state["progress"]["epoch"],
            "target_tokens": state["progress"]["tokens"],
            "stopped_early": state["progress"]["stopped_early"],
        },
        "computed": describe_setup(run, state.get("environment", {})),
        "checkpoints": [
            {
                "step": checkpoint_step(path),
                "score": None if reason else read_state(path)["score"],
                "best": path == best,
                "last": path == last,
                "damage": reason,
            }
            for path, reason in checkpoints.items()
        ],
    }


def _exportable(config: ModelConfig, vocab_size: int) -> str:
    reasons = why_not_exportable(config, vocab_size=vocab_size)
    return f"not possible: {'; '.join(reasons)}" if reasons else "ctranslate2"
