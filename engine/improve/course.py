"""The course of an improvement: its stages in their order, from a run to its verdict.

Text of the target's language is translated back by a model of the opposite direction, and the next model learns from
genuine pairs and from such made ones, which are marked (tagged back-translation: Caswell et al., 2019). Text of the
source's language is translated by the best model so far. From the second round on, the opposite direction learns from
made pairs, too. A round whose model is not better than the best one so far is the last. Then a model of the same size
learns what the better ones say (Kim and Rush, 2016).
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...data.corpus import Pair
from ...seq2seq.decoding.config import CHUNK_TEXTS
from ...seq2seq.decoding.search import Search
from ...system.errors import EnvironmentFault, UsageError
from ...system.files import read_sealed, remove_debris, replace_sealed, sha256_bytes
from ...system.interrupts import Interrupts
from ...system.reporter import Reporter, in_words
from ..device import keep_freed_memory
from ..evaluation.reading import spaced
from ..evaluation.scores import sentence_chrf
from ..runs.checkpoint import StoredModel, checkpoint_step
from ..runs.directory import RunDirectory
from ..translator import Translator
from .budget import Budget, time_limit
from .models import Model, Trainings, Trial, metric_of, tested
from .pairs import Made, kept, make, read_made, search_for, translated
from .sources import TAGS, Base, fit_lines, open_lines, read_base, read_pairs, starting_model, write_pairs
from .takeover import take_over

ROUNDS = 3
"""There are at most this many."""
TIME_FOR_OPPOSITE, TIME_FOR_TEXT, TIME_FOR_MODEL, TIME_FOR_LAST = 0.2, 0.3, 0.6, 0.9
"""Shares of the time left that trainings get, and at most the translation of a text."""
AS_LONG = 0.5
"""A stage begins if there is this share of the time that the last one of its kind took."""
FORMAT = 2
"""Changes where the same text would be put to use otherwise."""


@dataclass(frozen=True)
class Verdict:
    """How an improvement ended.

    Attributes:
        before: The step of the run that was to be improved.
        step: The step that took its place; None where nothing was better beyond doubt.
        trial: How the two compare; None without the second.
        stages: What was tried, in order: what it is called, how it compares with the best one before it, and its pairs.
        ended: Why there was no further stage.
    """

    before: int
    step: int | None
    trial: dict[str, Any] | None
    stages: list[dict[str, Any]]
    ended: str

    def lines(self, run: Path, seconds: Mapping[str, float]) -> list[str]:
        """The same for people; with where the time went."""
        lines = [f"{one['name']}: {Trial(**one['trial'])}; {one['pairs']:,} made pairs" for one in self.stages]
        parts = ", ".join(f"{name} {in_words(spent)}" for name, spent in seconds.items())
        lines += [self.ended, f"it took {in_words(sum(seconds.values()))}: {parts}"]
        if self.trial is None:
            return [*lines, f"{run} stays as it was: nothing was better beyond doubt"]
        return [
            *lines,
            f"{run} is better: {Trial(**self.trial)}; what translates from now on is its step {self.step}; the old"
            f" model is there as --checkpoint {self.before}",
        ]


@dataclass
class _Course:
    """An improvement under way.

    Attributes:
        pairs, text: Folders: of what follows from the run's pairs, and of what follows from the text, too.
        target, source: Lines to be translated.
        best: The best model so far, at first the one that is improved.
        better: The models that were better than the one before them.
    """

    base: Base
    pairs: Path
    text: Path
    target: list[str]
    source: list[str]
    trainings: Trainings
    budget: Budget
    device: str
    reporter: Reporter
    start: Model
    best: Model
    opposite: Model | None = None
    better: list[Model] = field(default_factory=list)
    stages: list[dict[str, Any]] = field(default_factory=list)
    genuine_pairs: list[Pair] = field(default_factory=list)

    @property
    def genuine(self) -> Path:
        """The run's own pairs."""
        return self.pairs / "genuine.jsonl"

    @property
    def dev(self) -> Path:
        """Its validation set."""
        return self.pairs / "dev.jsonl"

    def whole(self) -> str:
        """All stages; returns why there was no further one."""
        write_pairs(self.genuine, self.base.train.pairs())
        write_pairs(self.dev, self.base.dev)
        self.genuine_pairs = [pair for pair in read_pairs(self.genuine) if pair[0] and pair[1]]
        self.reporter.say(f"the opposite direction, from target to source: {self.pairs / 'opposite'}")
        self.opposite = self._train(self.pairs / "opposite", [], "opposite", TIME_FOR_OPPOSITE, swapped=True)
        ended = f"{ROUNDS} rounds are enough"
        for number in range(1, ROUNDS + 1):
            folder = self.text / f"round-{number}"
            if reason := self._no_round(folder, number):
                ended = reason
                break
            if not self._round(folder, f"round {number}"):
                tried = any(one["name"] == f"round {number}" for one in self.stages)
                ended = f"round {number} brought nothing more" if tried else "no made pair was good enough"
                break
        return self._distilled() or ended

    # --- a round ---

    def _no_round(self, folder: Path, number: int) -> str:
        """Why there is no round of this number; empty if there is one. From the second one on, makes the opposite
        direction better before it."""
        took = self.budget.spent()
        a_round = (took["training models"] + took["translating"]) / max(number - 1, 1)
        if not self.budget.is_enough(folder.name, AS_LONG * a_round):
            return f"there was no time for round {number}"
        if number == 1:
            return ""
        assert self.opposite is not None
        before = self.text / f"round-{number - 1}" / "back.jsonl"
        made = self._make(before, self.target, self.opposite, self.best)  # is there already
        files = [self._keep(folder / "opposite-forward-kept.jsonl", made, "forward", opposite=True)]
        if self.source:
            back = self._make(folder / "opposite-back.jsonl", self.source, self.best, self.opposite)
            files.append(self._keep(folder / "opposite-back-kept.jsonl", back, "back", opposite=True))
        self.reporter.say(f"round {number}: the opposite direction once more")
        new = self._train(folder / "opposite", files, f"{folder.name} opposite", TIME_FOR_OPPOSITE, swapped=True)
        trial = self.test(folder / "opposite-test", self.opposite, new, swapped=True)
        self.reporter.say(f"the opposite direction: {trial}")
        if trial.after <= trial.before:
            return f"made pairs did not make the opposite direction better: {trial}"
        self.opposite = new
        return ""

    def _round(self, folder: Path, name: str) -> bool:
        """Makes pairs and trains on them; whether that gave a better model."""
        assert self.opposite is not None
        self.reporter.say(f"{name}: translating {len(self.target):,} lines back")
        files = [self._kept(folder, "back", self.target, self.opposite, self.best)]
        if self.source:
            self.reporter.say(f"{name}: translating {len(self.source):,} lines of the source's language")
            files.append(self._kept(folder, "forward", self.source, self.best, self.opposite))
        if not any(map(read_pairs, files)):
            return False
        return self._next(folder, name, files, TIME_FOR_MODEL)

    def _next(self, folder: Path, name: str, files: Sequence[Path], share: float) -> bool:
        """Trains a model, and compares it with the best one."""
        count = sum(len(read_pairs(path)) for path in files)
        self.reporter.say(f"{name}: the next model, from {len(self.genuine_pairs):,} genuine and {count:,} made pairs")
        model = self._train(folder / "model", files, folder.name, share)
        trial = self.test(folder, self.best, model)
        self.stages.append({"name": name, "trial": asdict(trial), "pairs": count})
        self.reporter.say(f"{name}: {trial}{'' if trial.better else ': the old one stays'}")
        if trial.better:
            self.best = model
            self.better.append(model)
        return trial.better

    # --- distillation ---

    def _distilled(self) -> str:
        """Trains a model on what the better ones say of the genuine sources; why not, where that is not tried."""
        if not self.better:
            return ""
        took = self.budget.spent()["training models"] / len(self.stages)
        if not self.budget.is_enough("distilled", AS_LONG * took):
            return "there was no time to distil"
        folder = self.text / "distilled"
        few = self.better[-2:]
        sources = list(dict.fromkeys(src for src, _ in self.genuine_pairs))
        references = dict(reversed(self.genuine_pairs))
        said: list[list[str]] = []
        for number, model in enumerate(few, start=1):
            self.reporter.say(f"distilling: translating {len(sources):,} sources with model {number} of {len(few)}")
            made = self._make(folder / f"said-{number}.jsonl", sources, model, None)
            said.append([one.output for one in made])
        path = folder / "said.jsonl"
        if not path.exists():
            scores = [sentence_chrf(one, [[references[src]] for src in sources]) for one in said]
            best = [max(range(len(few)), key=lambda model, row=row: scores[model][row]) for row in range(len(sources))]
            pairs = [(f"{TAGS['forward']} {src}", said[best[row]][row]) for row, src in enumerate(sources)]
            write_pairs(path, [pair for pair in pairs if pair[1]])
        last = self.text / f"round-{len(self.better)}"
        made_before = [last / f"{kind}-kept.jsonl" for kind in ("back", "forward")]
        self._next(folder, "distilled", [*(one for one in made_before if one.exists()), path], TIME_FOR_LAST)
        return ""

    # --- steps ---

    def _kept(self, folder: Path, kind: str, lines: list[str], model: Model, judge: Model) -> Path:
        made = self._make(folder / f"{kind}.jsonl", lines, model, judge)
        path = self._keep(folder / f"{kind}-kept.jsonl", made, kind)
        self.reporter.say(f"{len(read_pairs(path)):,} of {len(made):,} made pairs are good enough")
        return path

    def _keep(self, path: Path, made: Sequence[Made], kind: str, *, opposite: bool = False) -> Path:
        """Writes the pairs to learn from, always with the side first that is the source of the genuine pairs."""
        if not path.exists():
            genuine, dev = self.genuine_pairs, self.base.dev
            if opposite:
                genuine, dev = [(t, s) for s, t in genuine], [(t, s) for s, t in dev]
            pairs = kept(made, kind, genuine, dev)
            write_pairs(path, [(tgt, src) for src, tgt in pairs] if opposite else pairs)
        return path

    def _make(self, path: Path, lines: list[str], model: Model, judge: Model | None) -> list[Made]:
        self._follow()
        with self.budget.timing("translating"):
            if path.exists():
                return read_made(path)
            translator = model.load(self.device, self.reporter)
            judging = None if judge is None else judge.load(self.device, self.reporter)
            search = search_for(translator, len(self.genuine_pairs)) if judge else translator.search()
            if judging is not None:
                lines = self._that_fit(f"{path.parent.name} {path.stem}", lines, translator, judging, search)
            work = f"{translator.checkpoint} {translator.tokenizer.sha256} {len(lines)}"
            return make(path, lines, translator, judging, search, self.reporter, work)

    def _that_fit(
        self, name: str, lines: list[str], translator: Translator, judge: Translator, search: Search
    ) -> list[str]:
        """As many lines as there is time to translate, evenly spaced. First translates a few, to measure the time."""

        def count() -> int:
            left = self.budget.seconds_left
            if left is None or len(lines) <= CHUNK_TEXTS:
                return len(lines)
            before = time.monotonic()
            translated(spaced(lines, CHUNK_TEXTS), translator, judge, search, 0)
            fitting = int(TIME_FOR_TEXT * left / (time.monotonic() - before) * CHUNK_TEXTS)
            return min(max(fitting, CHUNK_TEXTS), len(lines))

        fitting = self.budget.once(f"{name}: lines", count)
        if fitting < len(lines):
            self.reporter.say(f"there is time for {fitting:,} of {len(lines):,} lines")
        return spaced(lines, fitting)

    def _train(self, run: Path, made: Sequence[Path], name: str, share: float, *, swapped: bool = False) -> Model:
        self._follow()
        count = sum(len(read_pairs(path)) for path in made) / max(len(self.genuine_pairs), 1)
        max_time = self.budget.share(name, share)
        with self.budget.timing("training the opposite direction" if swapped else "training models"):
            return self.trainings.train(
                run, self.genuine, made, self.dev, count=count, max_time=max_time, swapped=swapped
            )

    def test(self, folder: Path, old: Model, new: Model, *, swapped: bool = False) -> Trial:
        """How two models compare on the validation set."""
        dev = [(tgt, src) for src, tgt in self.base.dev] if swapped else self.base.dev
        with self.budget.timing("testing"):
            return tested(folder, old, new, dev, metric_of(self.base.settings), self.device, self.reporter)

    def _follow(self) -> None:
        """Stops where somebody has moved the run: what is written under its old name would be another one."""
        if self.base.run.follow():
            raise EnvironmentFault(f"the run was moved to {self.base.run}; go on there with the same command")


def improve(
    run: Path,
    *,
    tgt_text: Path,
    src_text: Path | None = None,
    max_time: str | None = None,
    until: str | None = None,
    encoding: str = "",
    assignments: Sequence[str] = (),
    device: str = "auto",
    started: float | None = None,
    reporter: Reporter,
    interrupts: Interrupts,
) -> tuple[Verdict, Mapping[str, float]]:
    """Makes a translator better with text that has no translations; goes on where that was interrupted.

    Args:
        tgt_text, src_text: Lines in the language of its targets, and of its sources.
        max_time: In all, such as `8h`, over all starts; `until`: a time of day, such as `07:00`.
        encoding: Of the text.
        assignments: Settings of the trainings, as in `--set`.
        started: Monotonic time of this start.
        interrupts: Entered.

    Returns:
        How it ended, and the seconds that each kind of work took.

    Raises:
        TfmError: As its subclasses say: there is nothing to improve, or nothing to improve it with.
        Interrupted: Stopped on request; what was done is kept.
    """
    limit = time_limit(max_time, until)
    directory, started = RunDirectory(run), time.monotonic() if started is None else started
    keep_freed_memory()
    best = directory.find_model("best", warn=reporter.warn)  # before anything is written there
    best.description.require("translator", directory)
    del best
    texts = [None if path is None else open_lines(path, encoding) for path in (tgt_text, src_text)]
    identities = [str(FORMAT), *(str(one and one.identity) for one in texts), *assignments]
    text = sha256_bytes(" ".join(identities).encode())[:16]
    with directory.lock():
        base = read_base(directory, reporter)
        stored = starting_model(directory, text)
        pairs, folder = _folders(base, assignments, text, stored)
        start = Model(directory.path, str(checkpoint_step(stored.checkpoint)))
        del stored
        budget = Budget(folder, limit, started, over_all_starts=until is None)
        remove_debris(pairs)
        path = folder / "verdict.json"
        if not path.exists():
            _refuse_without_time(budget, directory)
            sides = [[pair[side] for pair in base.dev] for side in (0, 1)]
            target, source = (
                fit_lines(one, (pair[side] for pair in base.train.pairs()), sides[side], reporter.say) if one else []
                for side, one in ((1, texts[0]), (0, texts[1]))
            )
            trainings = Trainings(base.settings, assignments, directory.languages, reporter, interrupts)
            course = _Course(
                base, pairs, folder, target, source, trainings, budget, device, reporter, start=start, best=start
            )
            verdict = _verdict(course, course.whole(), text)
            replace_sealed(path, asdict(verdict))
        return Verdict(**read_sealed(path)), budget.spent()


def _folders(base: Base, assignments: Sequence[str], text: str, stored: StoredModel) -> tuple[Path, Path]:
    """Two folders: for what depends on the run's pairs alone, and, in it, for what depends on text and model, too."""
    pairs = base.run.improve / f"pairs-{sha256_bytes(f'{base.identity} {assignments}'.encode())[:8]}"
    model = sha256_bytes(stored.weights)
    return pairs, pairs / f"text-{sha256_bytes(f'{text} {model}'.encode())[:8]}"


def _refuse_without_time(budget: Budget, run: RunDirectory) -> None:
    if budget.seconds_left is not None and budget.seconds_left <= 0:
        spent = in_words(sum(budget.spent().values()))
        raise UsageError(f"no time is left to improve {run}: {spent} were spent; say a longer --max-time, or --until")


def _verdict(course: _Course, ended: str, text: str) -> Verdict:
    """Compares the best model with the one that was there at first, and puts it in its place.

    Where one stage alone was better, its trial was that comparison.
    """
    step = trial = None
    if course.better:
        better = [one["trial"] for one in course.stages if Trial(**one["trial"]).better]
        trial = better[0] if len(better) == 1 else asdict(course.test(course.text / "whole", course.start, course.best))
        best = RunDirectory(course.best.run).find_model(course.best.checkpoint).checkpoint
        step = checkpoint_step(take_over(course.base.run, best, text))
    return Verdict(int(course.start.checkpoint), step, trial, course.stages, ended)
