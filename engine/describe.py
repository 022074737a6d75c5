"""What a run directory holds, for `tfm info`."""

from pathlib import Path
from typing import Any

from ..seq2seq.model.config import unknown
from ..seq2seq.training.progress import Progress
from ..system.errors import ModelError
from .exportable import why_not_exportable
from .projection import read_calibration
from .runs.checkpoint import Purpose, checkpoint_step, read_description, read_state
from .runs.curves import metric_of, validations
from .runs.directory import RunDirectory, best_checkpoint, improved_with
from .runs.verdict import verdict
from .runs.weights import count_parameters, described_model
from .training.setup import describe_setup


def describe_run(run: RunDirectory) -> dict[str, Any]:
    """Model, vocabulary, checkpoints and scores of a run; ModelError if no checkpoint in it is sound."""
    run.refuse_export()
    checkpoints = {path: run.examine(path) for path in run.checkpoints()}
    sound = [path for path, reason in checkpoints.items() if not reason]
    if not sound:
        reasons = "; ".join(reason for reason in checkpoints.values() if reason)
        raise ModelError(f"no valid checkpoint in {run}{': ' + reasons if reasons else '; train it with tfm train'}")
    best, last = best_checkpoint(sound), sound[-1]
    description, state = read_description(last), read_state(last)
    trained = next((one for one in map(read_state, reversed(sound)) if not improved_with(one)), state)
    progress = Progress(**trained["progress"])
    tokenizer = run.load_tokenizer(description.tokenizer_sha256, last)
    config = description.model_config()
    obstacles = why_not_exportable(config, vocab_size=max(description.src_vocab_size, description.tgt_vocab_size))
    found: list[str] = []
    if run.has_begun:
        found = verdict(run, run.configuration(), description.purpose, progress, trained.get("max_steps"))
    if improved_with(state):
        found.append(f"tfm improve has made it better since: step {checkpoint_step(last)}, which translates")
    kinds, translates = ", ".join(sorted(tokenizer.carried)) or "none", description.purpose == "translator"
    sizes = {
        "src_vocab_size": description.src_vocab_size,
        "tgt_vocab_size": description.tgt_vocab_size,
        "shared_vocab": description.shared_vocab,
    }
    return {
        "run": str(run),
        "made by": f"tfm {description.tfm_version}",
        "architecture": f"{description.purpose} ({config.architecture})",
        "parameters": count_parameters(described_model(description)),
        "model": description.model,
        "vocabulary": {"type": tokenizer.type, **sizes, "sha256": tokenizer.sha256[:12]},
        "weights": "moving average" if description.weights == "ema" else "as trained",
        "decoding": description.decoding,
        "repair": f"of loops {description.corpus_facts().remark}; of lost placeholders {kinds}" if translates else None,
        "calibration": _calibration(run, best or last) if translates else None,
        "export": f"not possible: {'; '.join(obstacles)}" if obstacles else "ctranslate2",
        "training": {
            "step": progress.step,
            "of": trained.get("max_steps"),
            "epoch": progress.epoch,
            _counted(description.purpose): progress.tokens,
            "stopped_early": progress.stopped_early,
        },
        "computed": describe_setup(run, state.get("environment", {})),
        "checkpoints": _checkpoint_lines(run, checkpoints, best, last),
        "verdict": found,
        "picture": str(run.learning_curve) if run.learning_curve.exists() else None,
    }


def _calibration(run: RunDirectory, translates: Path) -> str:
    """What is known of how good single translations by a checkpoint are, or the command that finds it out."""
    if run.calibration.exists():
        try:
            found = read_calibration(run.calibration, translates)
        except ModelError as error:
            return str(error)
        if found is not None:
            return f"by {found.pairs:,} pairs, for beam size {found.beam_size}: --json and --review project a chrF"
    return f"none; tfm evaluate --run {run.quoted} --calibrate lets --json and --review say how good a translation is"


def _checkpoint_lines(
    run: RunDirectory, checkpoints: dict[Path, str], best: Path | None, last: Path
) -> list[dict[str, Any]]:
    """Each checkpoint, with its score and what it is; `checkpoints` says what is wrong with each."""
    metrics = {record["step"]: metric_of(record) for record in validations(run.metrics.records())}
    return [
        {
            "step": checkpoint_step(path),
            "score": None if reason else read_state(path).get("score"),
            "metric": metrics.get(checkpoint_step(path)),
            "best": path == best,
            "last": path == last,
            "damage": reason,
        }
        for path, reason in checkpoints.items()
    ]


def _counted(purpose: Purpose) -> str:
    """What the loss is a mean over; of a sentence encoder pairs or hidden tokens."""
    match purpose:
        case "translator" | "language model":
            return "target_tokens"
        case "sentence encoder":
            return "examples"
        case other:
            raise unknown("purpose", other)
