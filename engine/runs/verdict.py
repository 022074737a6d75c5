"""Is it good, and what now? What the figures of a run mean, in words."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...seq2seq.training.config import TrainingConfig
from ...seq2seq.training.progress import Progress
from .checkpoint import COMMANDS, Purpose
from .curves import best_of, validations
from .directory import RunDirectory

if TYPE_CHECKING:
    from ...configs import RunConfig

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
MOST_DROPOUT = 0.5


@dataclass(frozen=True)
class _Commands:
    """What can be typed next; `fine_tuned` says that the run began with the weights of another one."""

    run: RunDirectory
    settings: "RunConfig"
    use: str
    fine_tuned: bool

    def try_it(self) -> str:
        """Looks at outputs: of the validation set, if it has files of its own."""
        data, run = self.settings.data, f"--run {self.run.quoted}"
        if self.use != COMMANDS["translator"]:
            return f"{self.use} {run}" + (' "One sentence."' if self.use == COMMANDS["sentence encoder"] else "")
        if data.dev_src and data.dev_tgt:
            files = [f"--src {shlex.quote(name)}" for name in data.dev_src]
            files += [f"--tgt {shlex.quote(name)}" for name in data.dev_tgt]
        else:
            files = [f"--data {shlex.quote(name)}" for name in data.dev]
        return f"tfm evaluate {run} {' '.join(files)} --worst 5" if files else f"{self.use} {run}"

    def anew(self, name: str, change: str) -> str:
        """Trains another run with the same settings but for one."""
        begun = f" --init-from {self.run.quoted}" if self.fine_tuned else ""
        path = self.run.path
        beside = path if path.name not in ("", "..") else Path("..", path.resolve().name)
        other = shlex.quote(f"{beside}-{name}")
        return f"tfm train --config {shlex.quote(str(self.run.config))}{begun} {change} --run {other}"


def verdict(
    run: RunDirectory, settings: "RunConfig", purpose: Purpose, progress: Progress, limit: int | None
) -> list[str]:
    """Lines for people, from those of metrics.jsonl: how good, whether more training would help, what to do next.

    The last one is `next: ` and a command. `limit` is the number of updates in all; None where that is not known yet.
    """
    found, training = validations(run.metrics.records()), settings.training
    if (best := best_of(found)) is None:
        return ["not validated yet: nothing can be said", f"next: tfm train --run {run.quoted}"]
    lines = [_quality(best)]
    step = progress.step
    if not progress.stopped_early and (limit is None or step < limit):
        lines.append("training has not come to its end; unless it is under way, this goes on:")
        return [*lines, f"next: tfm train --run {run.quoted}"]
    commands = _Commands(run, settings, COMMANDS[purpose], fine_tuned=found[0]["step"] == 0)
    lowest, last, dropout = min(found, key=lambda record: record["loss"]), found[-1], settings.model.dropout
    if last["loss"] > (1 + OVERFITTED) * lowest["loss"]:
        lines.append(
            f"overfitting since step {lowest['step']:,}: the validation loss was {lowest['loss']:.3f} there and is"
            f" {last['loss']:.3f} now; what translates is the checkpoint of step {best['step']:,}, which scored best"
        )
        more = min(round(dropout + 0.1, 2), MOST_DROPOUT)
        if more > dropout and not commands.fine_tuned:
            lines.append("more pairs help most; else more dropout, which hides a part of the model at each update")
            return [*lines, f"next: {commands.anew(f'dropout-{more}', f'--set model.dropout={more}')}"]
        return [*lines, "more pairs help most; else a smaller model", f"next: {commands.try_it()}"]
    if len(found) == 1 or _was_improving(found, training, progress.falling_since):
        once = "validated only once: whether more updates would help cannot be told; this tries it"
        more = "validation was still improving when the updates ran out: more of them help"
        lines.append(once if len(found) == 1 else more)
        return [*lines, f"next: {commands.anew('longer', f'--max-steps {2 * step}')}"]
    lines.append("validation had stopped improving: more updates on these data would help little")
    return [*lines, _what_else(best, progress.epoch), f"next: {commands.try_it()}"]


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


def _was_improving(found: Sequence[dict[str, Any]], training: TrainingConfig, falling_since: int) -> bool:
    last, lowest = found[-1], min(record["loss"] for record in found)
    if training.patience:  # did its largest number of updates come first?
        return not falling_since and last["loss"] <= (1 + IMPROVING) * lowest
    earlier = [record for record in found if record["step"] <= 0.8 * last["step"]]
    return bool(earlier) and last["loss"] < (1 - IMPROVING) * min(record["loss"] for record in earlier)


def _what_else(best: dict[str, Any], epoch: int) -> str:
    if best.get("bleu", 100) >= 40:
        return "look at its worst sentences; for texts of another kind, train on with pairs of that kind: --init-from"
    many = f" (each was seen {epoch} times)" if epoch >= MANY_EPOCHS else ""
    return f"more pairs help most{many}; or a model of a similar corpus to start from: --init-from"
