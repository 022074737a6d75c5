"""The trainings of an improvement, and the test that says which of two models is better."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ...configs import RunConfig
from ...data.corpus import Pair
from ...seq2seq.training.config import parse_duration
from ...system.errors import UsageError
from ...system.files import read_sealed, remove_tree, replace_sealed
from ...system.interrupts import Interrupts
from ...system.reporter import Reporter, say_nothing
from ..choose import training_settings
from ..evaluation.scores import TESTED, compare
from ..runs.checkpoint import read_saved
from ..runs.directory import RunDirectory
from ..training.train import train
from ..translator import Translator
from .pairs import make

SIGNIFICANT = 0.05
"""A model takes the place of another one if chance explains its lead with less than this probability."""
SHARE_OF_MADE = 2
"""A training has at most this many times as many made pairs as genuine ones, which are repeated for that."""


@dataclass(frozen=True)
class Model:
    """A translator on disk."""

    run: Path
    checkpoint: str = "best"

    def load(self, device: str, reporter: Reporter) -> Translator:
        """Reads it."""
        return Translator.load(self.run, checkpoint=self.checkpoint, device=device, warn=reporter.warn)


@dataclass(frozen=True)
class Trainings:
    """How models are trained: as by `tfm train` without flags, of the size of the model that is improved.

    Attributes:
        settings: Those of the run that is improved.
        assignments: Any others, as in `--set`.
        languages: Of sources and targets, each empty if it is not known.
    """

    settings: RunConfig
    assignments: Sequence[str]
    languages: tuple[str, str]
    reporter: Reporter
    interrupts: Interrupts

    def train(
        self,
        run: Path,
        genuine: Path,
        made: Sequence[Path],
        dev: Path,
        *,
        count: float,
        max_time: str | None,
        swapped: bool,
    ) -> Model:
        """Trains a model, or goes on; nothing happens where it has come to its end.

        Another text may ask for a model again, with another limit. One that has ended serves if it had at least as much
        time; any other is trained anew.

        Args:
            genuine, made, dev: Files of pairs.
            count: Made pairs for each genuine one.
            swapped: From target to source.
        """
        if (begun := RunDirectory(run)).has_begun:
            planned = begun.configuration().training.max_time
            if planned == max_time or (_has_ended(begun) and _is_as_long(planned, max_time)):
                max_time = planned
            else:
                remove_tree(run)
        sides = ("target", "source") if swapped else ("source", "target")
        codes = self.languages[::-1] if swapped else self.languages
        data: dict[str, Any] = {"src_column": sides[0], "tgt_column": sides[1], "dev": [str(dev)]}
        data |= {key: code for key, code in zip(("src_language", "tgt_language"), codes, strict=True) if code}
        each = [str(path) for path in (genuine, *made)]
        times = max(round(count / SHARE_OF_MADE), 1)
        settings = self._settings(run, {**data, "data": each}, max_time, both_directions=not made)
        named = [f"{genuine}={times}" if times > 1 else str(genuine), *each[1:]]
        settings = replace(settings, data=replace(settings.data, data=named))
        result = train(settings, run=run, reporter=self.reporter, interrupts=self.interrupts)
        if result is None:
            raise UsageError("tfm improve starts its own processes: say it without torchrun")
        return Model(run)

    def _settings(self, run: Path, data: dict[str, Any], max_time: str | None, *, both_directions: bool) -> RunConfig:
        # If a made pair were turned round, the tag of its source would be in its target.
        one_direction = [] if both_directions else ["training.both_directions=false"]

        def settings(training: dict[str, Any], say: Any = say_nothing) -> RunConfig:
            return training_settings(
                config=None,
                run=run,
                init_from=None,
                data=data,
                training=training,
                assignments=[*self._assigned(), *one_direction, *self.assignments],
                say=say,
            )

        if max_time is None:
            return settings({}, self.reporter.say)
        longest = settings({}).training.max_steps  # which a time would take the place of
        return settings({"max_time": max_time, "max_steps": longest}, self.reporter.say)

    def _assigned(self) -> list[str]:
        """The size of the model, its vocabulary's kind and its way of decoding."""
        own = asdict(self.settings)
        kinds = {"type", "separate", "character_coverage", "placeholders", "max_sentences"}
        if self.settings.tokenizer.type in ("char", "word"):
            kinds.add("vocab_size")
        kept = {
            "model": own["model"].keys() - {"dropout", "attention_dropout"},
            "tokenizer": kinds,
            "decoding": own["decoding"].keys(),
            "training": {"seed", "device", "best_metric", "validation_sentences"},
        }
        return [f"{part}.{key}={json.dumps(own[part][key])}" for part, keys in kept.items() for key in sorted(keys)]


def _has_ended(run: RunDirectory) -> bool:
    """Whether a training has made its last update."""
    checkpoints = run.sound_checkpoints()[0]
    if not checkpoints:
        return False
    state = read_saved(checkpoints[-1]).state
    return state.progress.stopped_early or (state.max_steps is not None and state.progress.step >= state.max_steps)


def _is_as_long(planned: str | None, wanted: str | None) -> bool:
    """Whether a training had at least the time that is wanted; None is any time."""
    return planned is None or (wanted is not None and parse_duration(planned) >= parse_duration(wanted))


@dataclass(frozen=True)
class Trial:
    """How two models compare on the validation set: their scores in percent, and how likely chance explains it."""

    metric: str
    before: float
    after: float
    p_value: float

    @property
    def better(self) -> bool:
        """Whether the second one is."""
        return self.after > self.before and self.p_value < SIGNIFICANT

    def __str__(self) -> str:
        name = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER"}[self.metric]
        return f"{name} {self.before:.2f} before, {self.after:.2f} after (p = {self.p_value:.3f})"


def tested(
    folder: Path, old: Model, new: Model, dev: Sequence[Pair], metric: str, device: str, reporter: Reporter
) -> Trial:
    """Translates the validation set with two models, and compares them by paired bootstrap; remembers the result."""
    path = folder / "test.json"
    if not path.exists():
        sources, references = [src for src, _ in dev], [[tgt] for _, tgt in dev]
        outputs: list[list[str]] = []
        for name, model in (("old", old), ("new", new)):
            translator = model.load(device, reporter)
            work = f"{translator.checkpoint} {translator.tokenizer.sha256}"
            made = make(folder / f"dev-{name}.jsonl", sources, translator, None, translator.search(), reporter, work)
            outputs.append([one.output for one in made])
        found = compare(metric, outputs, references)
        replace_sealed(path, asdict(Trial(metric, found.values[0], found.values[1], found.p_values[0])))
    return Trial(**read_sealed(path))


def metric_of(settings: RunConfig) -> str:
    """The metric that compares models: the run's `best_metric` if there is a test of significance for it, else BLEU."""
    wanted = settings.training.best_metric
    return wanted if wanted in TESTED else "bleu"
