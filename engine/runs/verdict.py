"""Is it good, and what now? What the figures of a run mean, in words."""

from collections.abc import Sequence
from typing import Any

from ...seq2seq.training.config import TrainingConfig
from ...seq2seq.training.progress import Progress

BLEU_IN_WORDS = (
    (10, "hardly a sentence can be understood"),
    (20, "one can tell what a sentence is about, little more"),
    (30, "the gist is there, with many grave errors"),
    (40, "understandable, with errors"),
    (50, "good: easier to correct than to write anew"),
    (60, "very good"),
    (101, "nearly as in the references"),
)
"""What can be expected of sentences like those of the validation set, below each BLEU; a rule of thumb."""
OVERFITTED = 0.02
"""Share by which the validation loss has risen above its lowest where more training does harm."""
IMPROVING = 0.005
"""Share by which the validation loss has fallen over the last fifth of the updates where more of them would help."""
MANY_EPOCHS = 20


def verdict(
    records: Sequence[dict[str, Any]], training: TrainingConfig, progress: Progress, limit: int | None
) -> list[str]:
    """Lines for people, from those of metrics.jsonl: how good, whether more training would help, what to do next.

    `limit` is the number of updates in all; None where that is not known yet.
    """
    validations = [record for record in records if record.get("kind") == "validation"]
    if not validations:
        return ["not validated yet: nothing can be said"]
    best = max(validations, key=lambda record: (record["score"], -record["loss"]))
    lines = [_quality(best)]
    step = progress.step
    if not progress.stopped_early and (limit is None or step < limit):
        return [*lines, "training has not come to its end: the same command goes on"]
    lowest = min(validations, key=lambda record: record["loss"])
    last = validations[-1]
    if last["loss"] > (1 + OVERFITTED) * lowest["loss"]:
        lines.append(
            f"overfitting since step {lowest['step']:,}: the validation loss was {lowest['loss']:.3f} there and is"
            f" {last['loss']:.3f} now; what translates is the checkpoint of step {best['step']:,}, which scored best"
        )
        lines.append("next: more pairs help most; else a higher model.dropout, or a smaller model")
    elif len(validations) == 1 or _was_improving(validations, training, progress.falling_since):
        once = "validated only once: whether more updates would help cannot be told"
        lines.append(once if len(validations) == 1 else "validation was still improving when the updates ran out")
        lines.append(f"next: a new run with more of them, such as --max-steps {2 * step}")
    else:
        lines.append("validation had stopped improving: more updates on these data would help little")
        lines.append(f"next: {_what_else(best, progress.epoch)}")
    return lines


def _quality(best: dict[str, Any]) -> str:
    """The best score in words."""
    if "bleu" in best:
        words = next((words for below, words in BLEU_IN_WORDS if best["bleu"] < below), BLEU_IN_WORDS[-1][1])
        exact = f"; {best['exact']:.0f} % come out exactly as in the references" if best["exact"] >= 20 else ""
        return f"on sentences like those of the validation set: {words} (BLEU {best['bleu']:.1f}, greedy){exact}"
    if "ppl_per_byte" in best:
        return f"the next byte of a text is guessed as if among {best['ppl_per_byte']:.2f} equally likely ones"
    if "retrieval" in best:
        return f"{best['retrieval']:.0f} % of the validation sentences find their partner among all others"
    return f"best validation score: {best['score']:.3f}"


def _was_improving(validations: Sequence[dict[str, Any]], training: TrainingConfig, falling_since: int) -> bool:
    last, lowest = validations[-1], min(record["loss"] for record in validations)
    if training.patience:  # did its largest number of updates come first?
        return not falling_since and last["loss"] <= (1 + IMPROVING) * lowest
    earlier = [record for record in validations if record["step"] <= 0.8 * last["step"]]
    return bool(earlier) and last["loss"] < (1 - IMPROVING) * min(record["loss"] for record in earlier)


def _what_else(best: dict[str, Any], epoch: int) -> str:
    if best.get("bleu", 100) >= 40:
        return "look at translations (tfm evaluate --examples 10); for texts of another kind, train on: --init-from"
    many = f" (each was seen {epoch} times)" if epoch >= MANY_EPOCHS else ""
    return f"more pairs help most{many}; or a model of a similar corpus to start from: --init-from"
