"""From the flags of `tfm train` to the configuration of a run."""

from bisect import bisect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..configs import RunConfig, load_config, merge, parse_config, preset_names
from ..configs.fine_tuning import fine_tuning
from ..configs.loader import parse_assignment
from ..configs.recipe import recipe
from ..data.config import DataConfig
from ..data.corpus import open_corpus
from ..data.formats.arrow import parse_hub_spec
from ..data.formats.text import TOY
from ..data.size import CorpusSize, measure
from ..seq2seq.training.schedule import warmup_fits
from ..system.errors import ModelError, UsageError
from .runs.directory import RunDirectory
from .runs.find import RUNS
from .training.plan import PLAN_STEP, SHORT, can_wait_for_length

BY_RECIPE = "pairs"
"""Preset for small corpora; some of its settings are then chosen by `configs.recipe`."""
PRESETS_BY_SIZE = [(0, BY_RECIPE), (50_000, "pairs-100k"), (300_000, "pairs-1m")]
"""Presets for own data, each after the number of pairs that it begins at."""

TEXT_PRESET = "text-100k"
"""Preset for a language model on own text."""
ENCODER_PRESET = "multi30k-encoder"
"""Preset for going on with a sentence encoder on own pairs."""

_DATA_KEYS = ("src", "tgt", "data", "text", "dev_src", "dev_tgt", "dev", "dev_text")
_NO_DATA: dict[str, Any] = {key: [] for key in (*_DATA_KEYS, "replay", "replay_src", "replay_tgt")} | {
    "replay_src_column": None,
    "replay_tgt_column": None,
}

Section = dict[str, Any]


def training_settings(
    *,
    config: str | None,
    run: Path | None,
    init_from: Path | None,
    data: Section,
    training: Section,
    assignments: list[str],
    vocabulary_given: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> RunConfig:
    """Lays the flags over a preset, a file, or the run's own configuration.

    Args:
        config: A preset's name or a file.
        run: The run directory, if named.
        init_from: The run to start from.
        data, training: Flags by the name of their key; None where not given.
        assignments: `--set`, which has the last word.
        vocabulary_given: There is a vocabulary already, so that nothing needs to be said of its size.
        say: Hears which preset was chosen for the data, and which settings, and why.

    Raises:
        UsageError: Anything wrong with them.
        DataError: Data of which the preset depends cannot be read.
    """
    data = {key: value for key, value in data.items() if value}
    if "replay" in data:
        if init_from is None and not (run and RunDirectory(run).has_begun):
            raise UsageError("--replay mixes in what an earlier run has learned from: it goes with --init-from")
        data |= replayed(data["replay"])
    training = {key: value for key, value in training.items() if value is not None}
    own_data = not data.keys().isdisjoint({"src", "tgt", "data", "text"})
    if init_from is not None and config is None and not own_data and not (run and RunDirectory(run).has_begun):
        raise UsageError("--init-from needs something to train on: give --src and --tgt, --data or --text")
    flags: Section = {"data": data, "training": training}
    for assignment in assignments:
        flags = merge(flags, parse_assignment(assignment))
    source = None if init_from is None else _settings_of(init_from)
    tree, size = _base(config, run, flags["data"] if data else None, source, say)
    choices = [] if size is None else recipe(size, flags["training"].get("max_steps"))
    for choice in choices:
        tree = merge(tree, {choice.section: {choice.key: choice.value}})
    if own_data:  # the user's data replace a preset's, and its validation set with them
        tree = merge(tree, {"data": _NO_DATA})
    if source is not None:
        tree = _with_sizes_of(tree, source)
    tree = merge(_with_one_length(tree, flags["training"]), flags)
    settings = parse_config(tree)
    if "warmup_steps" not in {**_own_training(config), **flags["training"]}:
        settings = _with_fitting_warmup(settings, run or default_run(config, settings.data), say)
    for choice in choices:
        overruled = getattr(getattr(settings, choice.section), choice.key) != choice.value
        if not overruled and not (vocabulary_given and choice.section == "tokenizer"):
            say(f"  {choice.reason}")
    return settings


def replayed(specs: list[str]) -> Section:
    """What `--replay` names; for a run, the data that it was trained on, and what their columns are called there.

    Raises:
        UsageError: A run has no pairs to mix in, or its columns have other names than those of other data.
    """
    found: Section = {"replay": [], "replay_src": [], "replay_tgt": []}
    default = DataConfig()
    columns: set[tuple[str, str] | None] = set()  # None: as in the new data
    for spec in specs:
        run = RunDirectory(Path(spec))
        if not run.has_begun:
            found["replay"].append(spec)
            columns.add(None)
            continue
        data = parse_config(run.settings()).data
        if not data.src and not data.data:
            raise UsageError(f"--replay {spec}: that run was not trained on pairs")
        found["replay"] += data.data
        if data.data:
            names = data.src_column, data.tgt_column
            columns.add(None if names == (default.src_column, default.tgt_column) else names)
        found["replay_src"] += data.src
        found["replay_tgt"] += data.tgt
    if len(columns) > 1:
        raise UsageError("--replay: what is to be mixed in has columns of different names; give one of them at a time")
    if columns and (named := columns.pop()):
        found["replay_src_column"], found["replay_tgt_column"] = named
    return found


def _with_one_length(tree: Section, training: Section) -> Section:
    """Lets a time or a patience that is asked for replace a number of steps that is not; a number replaces a time."""
    own = tree.get("training", {})
    if training.get("max_steps") and not training.get("max_time"):
        return merge(tree, {"training": {"max_time": None}})
    asked = training.get("max_time") or (training.get("patience") and not own.get("patience"))
    if asked or ((own.get("max_time") or own.get("patience")) and "max_steps" not in own):
        return merge(tree, {"training": {"max_steps": None}})
    return tree


def _own_training(config: str | None) -> Section:
    """What a file of the user's own says of training; nothing if it is a preset."""
    return {} if config is None or config in preset_names() else load_config(config).get("training", {})


def _with_fitting_warmup(settings: RunConfig, run: Path, say: Callable[[str], None]) -> RunConfig:
    """Lets a warm-up that the user has not chosen give way to the length that the user has. A run keeps its own."""
    training, directory = settings.training, RunDirectory(run)
    warmup, reason = training.warmup_steps, ""
    if directory.has_come_to_a_checkpoint:
        warmup = directory.configuration().training.warmup_steps
    elif training.max_steps and not warmup_fits(training, training.max_steps):
        warmup, reason = training.max_steps // SHORT, f"there are {training.max_steps:,} in all"
    elif training.max_time and not can_wait_for_length(training):
        warmup, reason = PLAN_STEP, f"so many are timed to see what fits {training.max_time}"
    if reason:
        say(f"  warm-up of {warmup:,} updates, not {training.warmup_steps:,}: {reason}")
    return replace(settings, training=replace(training, warmup_steps=warmup))


def _base(
    config: str | None, run: Path | None, data: Section | None, source: Section | None, say: Callable[[str], None]
) -> tuple[Section, CorpusSize | None]:
    """The preset or file named; else what the run was made with; else the preset for the data, or the toy language.

    A run that has come to a checkpoint keeps its settings, however its data have grown since; what has not may choose
    anew. `source` is what the run to start from was made with, if there is one. Where further settings are to follow
    from the corpus, its size comes with them.
    """
    if config is not None:
        return load_config(config), None
    if data is None:
        return (RunDirectory(run).settings() if run and RunDirectory(run).has_begun else load_config(TOY)), None
    named = parse_config({"data": data}).data
    directory = default_run(None, named) if run is None and (named.src or named.data or named.text) else run
    if directory is not None and RunDirectory(directory).has_come_to_a_checkpoint:
        return RunDirectory(directory).settings(), None
    if source is not None and source.get("model", {}).get("architecture") != "encoder_only":
        corpus = open_corpus(named)
        count = corpus.count()
        say(
            f"{count:,} {corpus.unit}s to train on with: model, vocabulary and decoding of the run to start from, low"
            " learning rates, until validation stops improving; choose otherwise with --config"
        )
        return fine_tuning(source, count), None
    if named.text:
        say(f"text alone: a language model, preset {TEXT_PRESET}; choose another with --config")
        return load_config(TEXT_PRESET), None
    if source is not None:
        say(f"the model to start from is a sentence encoder: preset {ENCODER_PRESET}; choose another with --config")
        return load_config(ENCODER_PRESET), None
    corpus = open_corpus(named)  # one reading, for the hash and the count; to measure a small corpus takes another
    name = _preset_for(corpus.count(), say)
    return load_config(name), measure(corpus) if name == BY_RECIPE else None


def _preset_for(pairs: int, say: Callable[[str], None]) -> str:
    place = bisect([least for least, _ in PRESETS_BY_SIZE], pairs)
    least, name = PRESETS_BY_SIZE[place - 1]
    until = f"to {PRESETS_BY_SIZE[place][0]:,}" if place < len(PRESETS_BY_SIZE) else "and more"
    say(f"{pairs:,} pairs: preset {name} (made for {least:,} {until}); choose another with --config")
    return name


def _settings_of(init_from: Path) -> Section:
    run = RunDirectory(init_from)
    if not run.has_begun:
        raise ModelError(f"{init_from} is not a run: it has no config.yaml")
    return run.settings()


def _with_sizes_of(tree: Section, source: Section) -> Section:
    """Takes over the model and the vocabulary to start from; dropout alone is a matter of the new training."""
    sizes = {key: value for key, value in source.get("model", {}).items() if not key.endswith("dropout")}
    return merge(tree, {"model": sizes, "tokenizer": source.get("tokenizer", {})})


def default_run(config: str | None, data: DataConfig) -> Path:
    """The directory if none is named: in `runs/`, after the configuration, or after the first file of data."""
    if config is not None:
        return RUNS / Path(config).stem
    named = [*data.data, *data.src, *data.text]
    if not named:
        raise UsageError("there is nothing to train on: give --src and --tgt, --data or --text")
    first = named[0]
    if first.startswith("hf:"):
        name, subset, *_ = parse_hub_spec(first)
        first = subset or name
    return RUNS / (Path(first).name.split(".")[0] or "run")
