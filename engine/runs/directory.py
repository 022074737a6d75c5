"""A run directory: where its files lie, and the answer to every question about them.

    runs/mine/
      config.yaml           the whole configuration, enough to run it again
      tokenizer/            the vocabularies that the model was trained with
      plan.json             the number of steps that a time limit came to
      finish.json           where the run was told to finish, if it was
      setup.json            precision, processes and threads, settled at the first start
      metrics.jsonl         losses and scores            timing.jsonl    clocks
      calibration.json      how good its translations probably are, if `tfm evaluate --calibrate` has found out
      learning_curve.png    both of metrics.jsonl as a picture
      tensorboard/          events for TensorBoard, if training.tensorboard asks for them
      cache/                tokenised corpora: may be deleted
      improve/              what `tfm improve` makes on its way: may be deleted
      checkpoints/          see `checkpoint`

Nothing here needs torch.
"""

import math
import shlex
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...system.errors import EnvironmentFault, ModelError, UsageError, check_type
from ...system.files import LOCK, DirectoryLock, LineLog, remove_debris, remove_tree, replace_file
from ...system.reporter import say_nothing
from ...system.untrusted import LARGEST_INTEGER, refuse_links
from .checkpoint import (
    EXPORT_MARK,
    Purpose,
    Saved,
    StoredModel,
    checkpoint_step,
    damage,
    has_vocabulary,
    read_description,
    read_model,
    read_saved,
    read_state,
)

if TYPE_CHECKING:
    from ...configs import RunConfig
    from ...configs.loader import Tree
    from ...data.formats.format import Languages
    from ...data.tokenizer import Tokenizer

RUNS = Path("runs")
"""Where runs lie, unless somebody says otherwise."""

FREE_KEYS = {
    "max_steps",
    "max_time",
    "device",
    "ranks",
    "precision",
    "log_every",
    "tensorboard",
    "checkpoint_every",
    "keep_checkpoints",
}
"""Settings of `training` that may change while a run goes on; tfm warns where the result will not be bit for bit."""
_FILE_KEYS = {"src", "tgt", "dev_src", "dev_tgt", "data", "dev", "text", "dev_text"}
"""Settings of `data` that name files. Files may be moved: their content is compared when they are read."""
IMPROVED = "improved"
"""What the environment of a checkpoint has that `tfm improve` put there: a hash of what it was improved with."""


def run_path(name: str | Path) -> Path:
    """Where the run of a name lies: `mine` stands for `runs/mine` if only that is there. TypeError for no name."""
    check_type(name, "run", str, Path)
    path, inside = Path(name), RUNS / name
    return inside if not path.exists() and inside.is_dir() else path


class RunDirectory:
    """One run on disk, by its path or its name in `runs/`. Its directory need not exist yet."""

    def __init__(self, path: str | Path) -> None:
        self._go_to(run_path(path))
        self._damage: dict[Path, str] = {}
        """What is wrong with the checkpoints that have been read whole; empty for a sound one."""
        self._lock: DirectoryLock | None = None

    def _go_to(self, path: Path) -> None:
        self.path = path
        self.config = self.path / "config.yaml"
        self.tokenizer = self.path / "tokenizer"
        self.cache = self.path / "cache"
        self.improve = self.path / "improve"
        self.plan = self.path / "plan.json"
        self.finish = self.path / "finish.json"
        self.finish_request = self.path / "finish-request.json"
        self.setup = self.path / "setup.json"
        self.calibration = self.path / "calibration.json"
        self.learning_curve = self.path / "learning_curve.png"
        self.metrics = LineLog(self.path / "metrics.jsonl", is_metric)
        self.timing = LineLog(self.path / "timing.jsonl", is_timing)
        self.tensorboard = self.path / "tensorboard"
        self._checkpoints = self.path / "checkpoints"

    def __str__(self) -> str:
        return str(self.path)

    @property
    def quoted(self) -> str:
        """Its name as a shell takes it."""
        return shlex.quote(str(self.path))

    @property
    def files(self) -> list[Path]:
        """All that tfm reads and writes right in it, whether it is there yet or not."""
        logs = [self.metrics.path, self.timing.path]
        decided = [self.config, self.plan, self.finish, self.finish_request, self.setup, self.calibration]
        return [*decided, *logs, self.learning_curve, self.path / LOCK]

    @property
    def folders(self) -> list[Path]:
        """The same of its folders."""
        return [self.tokenizer, self.cache, self.tensorboard, self.improve, self._checkpoints]

    # --- one writer at a time ---

    def lock(self) -> DirectoryLock:
        """Holds the directory for this process.

        Raises:
            DirectoryInUse: Another process holds it.
            ModelError: Something in it is a link, through which other files would be written or removed.
        """
        refuse_links(self.path)
        self._lock = DirectoryLock(self.path)
        return self._lock

    def follow(self) -> bool:
        """Takes up the new name if the directory that this process holds has been moved, and says whether it has been.

        EnvironmentFault if nobody says where it is now: what is written under its name would be another run.
        """
        place = self.path if self._lock is None else self._lock.whereabouts()
        if place is None:
            raise EnvironmentFault(
                f"{self} was moved or removed while it was being trained; if it was moved, go on from its last"
                " checkpoint with the same command and --run NEW-NAME"
            )
        if place == self.path:
            return False
        self._go_to(place)
        return True

    def remove_debris(self) -> None:
        """Removes what a killed process left unfinished. Call it while holding the lock."""
        if self.has_begun:  # unfinished files of somebody else are not ours to remove
            for directory in (self.path, self._checkpoints, self.cache):
                remove_debris(directory)

    # --- its configuration ---

    @property
    def has_begun(self) -> bool:
        """Whether somebody started a run here."""
        return self.config.exists()

    @property
    def is_export(self) -> bool:
        """Whether it is what `tfm export` made of a run for CTranslate2: it translates, and that is all."""
        return (self.path / EXPORT_MARK).is_file()

    def require(self, purpose: Purpose) -> None:
        """Refuses a run that was trained for something else, see `Description.require`; no weights are read."""
        if not self.is_export and (checkpoints := self.checkpoints()):
            read_description(checkpoints[-1]).require(purpose, self)

    def refuse_export(self) -> None:
        """A ModelError that names the run if this is an export."""
        if self.is_export:
            from .exported import read_origin

            raise ModelError(
                f"{self} is an export, with which tfm translate, evaluate and serve translate; for this take the run it"
                f" was made of: {read_origin(self.path).run}"
            )

    @property
    def has_come_to_a_checkpoint(self) -> bool:
        """Whether there is something to lose. Until then a start with other settings may take the directory over."""
        return self.has_begun and bool(self.checkpoints())

    def settings(self) -> "Tree":
        """What it was last started with; UsageError if `config.yaml` cannot be read."""
        from ...configs import load_config  # which takes a moment to load, and translating needs none

        return load_config(str(self.config), alone=True)

    def configuration(self) -> "RunConfig":
        """The same, checked and complete."""
        from ...configs import parse_config

        return parse_config(self.settings())

    def write_configuration(self, config: "RunConfig") -> None:
        """Makes this its configuration."""
        from ...configs import render_config

        replace_file(self.config, render_config(config).encode())

    def data_files(self) -> dict[str, list[str]]:
        """The files of data that it was last started with, by their key; none if it never came to a checkpoint."""
        if not self.has_come_to_a_checkpoint:
            return {}
        data = asdict(self.configuration().data)
        return {key: names for key, names in data.items() if key in _FILE_KEYS and names}

    def data_flags(self) -> str:
        """The options that name these files, for people."""
        return ", ".join(f"--{key.replace('_', '-')}" for key in self.data_files())

    @property
    def languages(self) -> "Languages":
        """The languages of its pairs, as far as they are known: a checkpoint or an export says so."""
        for described in [self.path] if self.is_export else reversed(self.checkpoints()):
            with suppress(ModelError):  # a damaged one is said to be so by who uses it
                description = read_description(described)
                return description.src_language, description.tgt_language
        return "", ""

    def refuse_other(self, config: "RunConfig") -> None:
        """Refuses settings that would make it another run, by name. Without a checkpoint there is nothing to lose."""
        if not self.has_come_to_a_checkpoint:
            return
        differing = differences(self.configuration(), config, free={"training": FREE_KEYS, "data": _FILE_KEYS})
        if differing:
            raise UsageError(f"{self} holds another run, which differs in {'; '.join(differing)}; name a new --run")

    def begun_otherwise(self, config: "RunConfig") -> bool:
        """Whether an earlier start had other settings or other data, and never came to a checkpoint."""
        if not self.has_begun or self.has_come_to_a_checkpoint:
            return False
        try:
            return bool(differences(self.configuration(), config, free={"training": FREE_KEYS}))
        except UsageError:  # another tfm wrote it, or somebody edited it
            return True

    def forget_other_start(self, config: "RunConfig", given_tokenizer: Path | None) -> None:
        """Removes what an earlier start with other settings left, except a vocabulary that the user names."""
        if self.begun_otherwise(config):
            for decided in (self.plan, self.finish, self.setup):
                remove_tree(decided)
            if given_tokenizer is None or given_tokenizer.resolve() != self.tokenizer.resolve():
                remove_tree(self.tokenizer)

    @property
    def is_improved(self) -> bool:
        """Whether `tfm improve` has put a better model in it."""
        return any(improved_with(state) for state in _readable_states(self.checkpoints(), {}).values())

    # --- its vocabulary ---

    def starting_tokenizer(self, given: Path | None, init_from: Path | None) -> Path | None:
        """The tokenizer directory that a start takes, if it does not build one: the one given, or that of `init_from`.

        UsageError if both are given, or a run is to start from itself.
        """
        refuse_two_tokenizers(given, init_from)
        if init_from is None:
            return given
        source = RunDirectory(init_from)
        if source.path.resolve() == self.path.resolve():
            raise UsageError(f"--init-from {init_from} needs another --run to train into")
        best = best_checkpoint(source.sound_checkpoints()[0])
        return (best and vocabulary_of(best)) or source.tokenizer

    def load_tokenizer(
        self, expected_sha256: str, checkpoint: Path, *, warn: Callable[[str], None] = say_nothing
    ) -> "Tokenizer":
        """Its tokenizer, or where that is lost or damaged, the copy in a checkpoint, of which `warn` hears.

        An improved model has a vocabulary of its own, which is in its checkpoint alone. ModelError if there is no sound
        one, or it is not the one that the model was trained with.
        """
        tokenizer, source = load_or_copy(vocabulary_of(checkpoint) or self.tokenizer, checkpoint, warn)
        check_tokenizer(tokenizer, expected_sha256, source)
        return tokenizer

    # --- its checkpoints ---

    def checkpoint_path(self, step: int) -> Path:
        """Where the checkpoint of a step lies."""
        return self._checkpoints / f"step-{step:06d}"

    def checkpoints(self) -> list[Path]:
        """All checkpoints, oldest first, valid or not; not what a save that was cut short left."""
        folder = self._checkpoints
        found = [path for path in folder.iterdir() if checkpoint_step(path) >= 0] if folder.is_dir() else []
        return sorted(found, key=checkpoint_step)

    def examine(self, checkpoint: Path) -> str:
        """What is wrong with a whole checkpoint, see `checkpoint.damage`; reads all of it and remembers the answer."""
        self._damage[checkpoint] = damage(checkpoint)
        return self._damage[checkpoint]

    def verified(self, checkpoint: Path) -> None:
        """Remembers of a checkpoint just written that it read back as it was written."""
        self._damage[checkpoint] = ""

    def sound_checkpoints(self) -> tuple[list[Path], list[str]]:
        """The checkpoints that are sound as a whole, oldest first, and what is wrong with the others."""
        reasons = {path: self.examine(path) for path in self.checkpoints()}
        return [path for path, reason in reasons.items() if not reason], [one for one in reasons.values() if one]

    def newest_known_sound(self) -> Path | None:
        """The newest of the checkpoints that this process has found sound as a whole."""
        return next((path for path in self.checkpoints()[::-1] if self._damage.get(path) == ""), None)

    def newest_saved(self, warn: Callable[[str], None]) -> Saved | None:
        """What training goes on from; None if the run has not been saved yet. Warns of damaged checkpoints.

        An improved model is nothing to go on from: it was trained elsewhere, on other pairs. If all are damaged, a
        ModelError: starting anew would take the place of what may still be rescued.
        """
        sound, problems = self.sound_checkpoints()
        sound = [path for path in sound if not improved_with(read_state(path))]
        if problems and not sound:
            raise ModelError(
                f"no valid checkpoint in {self} ({'; '.join(problems)}); use a new --run, or remove the damaged"
            )
        for problem in problems:
            warn(f"{problem}; continuing from step {checkpoint_step(sound[-1]):,}")
        return read_saved(sound[-1]) if sound else None

    def find_model(self, which: str = "best", *, warn: Callable[[str], None] = say_nothing) -> StoredModel:
        """Reads the model that `--checkpoint` names, from a checkpoint that is sound to use.

        Args:
            which: `best` (highest validation score; the last one if none was validated), `last`, or a step.
            warn: Hears of damaged checkpoints that are passed over.

        Raises:
            ModelError: There is no such run, or it has no such sound checkpoint.
        """
        check_type(which, "checkpoint", str)
        if not self.path.is_dir():
            raise ModelError(f"there is no run {self}; train one with tfm train --run {self.quoted}")
        self.refuse_export()
        if which not in ("best", "last"):
            return read_model(self._checkpoint_of_step(which))
        problems: dict[Path, str] = {}
        for directory in self._by_preference(which, problems):
            try:
                stored = read_model(directory)
            except ModelError as error:
                problems[directory] = str(error)
                continue
            for passed_over in sorted(problems, key=checkpoint_step):
                warn(f"{problems[passed_over]}; using {directory.name}")
            return stored
        reasons = "; ".join(problems[path] for path in sorted(problems, key=checkpoint_step))
        raise ModelError(
            f"no valid checkpoint in {self}{f' ({reasons})' if reasons else '; train it first: tfm train'}"
        )

    def _checkpoint_of_step(self, step: str) -> Path:
        by_step = {str(checkpoint_step(path)): path for path in self.checkpoints()}
        directory = by_step.get(step.removeprefix("step-").lstrip("0") or "0")
        if directory is None:
            steps = ", ".join(by_step) or "none"
            raise ModelError(f"{self} has no checkpoint {step!r:.60}; it has best, last and the steps: {steps}")
        return directory

    def _by_preference(self, which: str, problems: dict[Path, str]) -> list[Path]:
        """The checkpoints in the order in which to try them for `best` or `last`.

        `problems` receives those whose score cannot be read, and what is wrong with them.
        """
        newest_first = self.checkpoints()[::-1]
        if which == "last":
            return newest_first
        states = _readable_states(newest_first, problems)
        return _best_first(states) + [path for path, state in states.items() if not _is_scored(state)]

    def prune(self, *, keep: int) -> list[str]:
        """Removes old checkpoints: all but the newest `keep` and the best of those that training wrote.

        Damaged ones do not count. They go, too, once a newer one is sound: training will not go back to them. The one
        that scored best stays, though, whatever is wrong with it: perhaps its weights can be rescued. Where nothing
        is sound, nothing is removed.

        A checkpoint that this process has read whole, or written, is not read again: a save takes as long after a
        hundred checkpoints as after one. Returns what was wrong with the damaged ones that it removed.
        """
        for path in self.checkpoints():
            if path not in self._damage:
                self.examine(path)
        # One that was found sound may have been damaged since.
        states = _readable_states([path for path in self.checkpoints() if not self._damage[path]], self._damage)
        states = {path: state for path, state in states.items() if not improved_with(state)}
        if not states:
            return []
        sound, best = list(states), next(iter(_best_first(states)), None)
        for directory in sound[:-keep]:
            if directory != best:
                remove_tree(directory)
        newest, once_best = checkpoint_step(sound[-1]), states[sound[-1]]["progress"].get("best_step")
        damaged = [path for path in self.checkpoints() if self._damage[path]]
        doomed = [path for path in damaged if checkpoint_step(path) < newest and checkpoint_step(path) != once_best]
        for directory in doomed:
            remove_tree(directory)
        return [self._damage.pop(directory) for directory in doomed]


def refuse_two_tokenizers(given: Path | None, init_from: Path | None) -> None:
    """Refuses a tokenizer beside a run to start from, which has its own."""
    if given is not None and init_from is not None:
        raise UsageError("a model keeps its vocabulary: --init-from brings its tokenizer, leave --tokenizer out")


def best_checkpoint(checkpoints: list[Path]) -> Path | None:
    """The one whose validation scored highest; None if none was validated. Of equals, see `_best_first`."""
    return next(iter(_best_first({path: read_state(path) for path in checkpoints})), None)


def _readable_states(checkpoints: Iterable[Path], problems: dict[Path, str]) -> dict[Path, dict[str, Any]]:
    """What `state.json` of each checkpoint says; `problems` receives what is wrong with those that cannot be read."""
    states: dict[Path, dict[str, Any]] = {}
    for path in checkpoints:
        try:
            states[path] = read_state(path)
        except ModelError as error:
            problems[path] = str(error)
    return states


def _best_first(states: Mapping[Path, dict[str, Any]]) -> list[Path]:
    """The checkpoints that were validated, highest score first; of equals the one with the lowest loss, the earliest.

    Before them come those of `tfm improve`, the newest first: a test of both found each better than what was the best
    before it. The states of earlier versions have no loss.
    """
    scored = {path: state for path, state in states.items() if _is_scored(state)}

    def rank(path: Path) -> tuple[float, float, float, int]:
        loss, step = scored[path].get("loss"), checkpoint_step(path)
        newest = -step if improved_with(scored[path]) else 0
        return newest, -scored[path]["score"], math.inf if loss is None else loss, step

    return sorted(scored, key=rank)


def improved_with(state: Mapping[str, Any]) -> str:
    """What a checkpoint was improved with, by its state; empty for one that training wrote."""
    return str(state.get("environment", {}).get(IMPROVED, ""))


def vocabulary_of(checkpoint: Path) -> Path | None:
    """Where the vocabulary of an improved model lies; None for any other, which has that of its run."""
    return checkpoint if improved_with(read_state(checkpoint)) else None


def _is_scored(state: dict[str, Any]) -> bool:
    """Whether a validation gave the checkpoint a score that can be compared with others."""
    score = state.get("score")
    return score is not None and math.isfinite(score)


def load_or_copy(directory: Path, checkpoint: Path, warn: Callable[[str], None]) -> "tuple[Tokenizer, Path]":
    """A tokenizer and where it was found: where it is lost or damaged, in a checkpoint, of which `warn` hears.

    ModelError if the checkpoint has no copy of it, or that is damaged, too.
    """
    from ...data.tokenizer import Tokenizer

    try:
        return Tokenizer.load(directory), directory
    except ModelError as error:
        if not has_vocabulary(checkpoint):
            raise
        warn(f"{error}; taking the copy in {checkpoint.name}")
        return Tokenizer.load(checkpoint), checkpoint


def check_tokenizer(tokenizer: "Tokenizer", expected_sha256: str, directory: Path) -> None:
    """Refuses a tokenizer that is not the one the model was trained with."""
    if tokenizer.sha256 != expected_sha256:
        raise ModelError(
            f"{directory} is not the tokenizer that this model was trained with (sha256 {tokenizer.sha256[:12]}..,"
            f" the model expects {expected_sha256[:12]}..); restore the run's own"
        )


def differences(before: "RunConfig", now: "RunConfig", free: Mapping[str, set[str]]) -> list[str]:
    """The settings in which two configurations differ, besides those that are free to."""
    then = asdict(before)
    return [
        f"{section}.{key} (was {then[section][key]!r}, now {value!r})"
        for section, keys in asdict(now).items()
        for key, value in keys.items()
        if then[section][key] != value and key not in free.get(section, set())
    ]


_FIGURES = {"train": ("loss",), "validation": ("loss", "score")}
"""What a line of metrics.jsonl says at least, by its kind."""


def is_metric(record: dict[str, Any]) -> bool:
    """Whether an object is one that tfm writes to metrics.jsonl: figures of a step."""
    figures = {name: value for name, value in record.items() if not isinstance(value, str)}
    if figures.get("grad_norm", 0.0) is None:  # of an update that was left out
        del figures["grad_norm"]
    wanted = {*_FIGURES.get(str(record.get("kind")), ("kind",)), *(["exact"] if "bleu" in record else [])}
    return is_timing(figures) and figures.keys() >= wanted


def is_timing(record: dict[str, Any]) -> bool:
    """Whether an object is one that tfm writes to timing.jsonl: numbers, one of which is a step."""
    numbers = all(type(value) is float or _is_count(value) for value in record.values())
    return numbers and _is_count(record.get("step"))


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_INTEGER
