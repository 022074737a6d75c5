"""From the flags of `tfm train` to the configuration of a run: a base, and layers over it."""

from bisect import bisect
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..configs import RunConfig, load_config, merge, parse_config
from ..configs.loader import Tree, parse_assignment
from ..data.config import DataConfig
from ..data.corpus import Corpus, open_corpus
from ..data.formats import parse_hub_spec
from ..data.formats.text import TOY
from ..seq2seq.training.config import parse_duration
from ..seq2seq.training.schedule import warmup_fits
from ..system.errors import ModelError, UsageError
from ..system.reporter import say_nothing
from .file_guard import guard_training
from .runs.directory import RUNS, RunDirectory, refuse_two_tokenizers
from .training.plan import PLAN_STEP, SHORT, can_wait_for_length

if TYPE_CHECKING:
    from ..configs.recipe import Choice

BY_RECIPE = "pairs"
"""Preset for small corpora; `configs.recipe` then chooses some of its settings."""
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

Say = Callable[[str], None]


def training_settings(
    *,
    config: str | None,
    run: Path | None,
    init_from: Path | None,
    data: Tree,
    training: Tree,
    assignments: list[str],
    tokenizer: Path | None = None,
    say: Say = say_nothing,
) -> RunConfig:
    """The settings that a training starts with. Their layers are merged, lowest first, and parsed once.

    Args:
        config: A preset's name or a YAML file.
        data, training: Flags by the name of their key; empty or None where not given.
        assignments: `--set`, which has the last word.
        tokenizer: A vocabulary that is given, so that nothing needs to be said of its size.
        say: Hears which preset was chosen for the data, and which settings, and why.

    Raises:
        UsageError: The flags contradict each other, or a setting is wrong.
        DataError: The preset depends on data that cannot be read.
    """
    refuse_two_tokenizers(tokenizer, init_from)
    begun = run is not None and RunDirectory(run).has_begun
    data = {key: value for key, value in data.items() if value}
    own_data = not data.keys().isdisjoint({"src", "tgt", "data", "text"})
    if "replay" in data:
        if init_from is None and not begun:
            raise UsageError("--replay mixes in what an earlier run has learned from: it goes with --init-from")
        data |= _replayed(data["replay"])
    if init_from is not None and config is None and not own_data and not begun:
        raise UsageError("--init-from needs something to train on: give --src and --tgt, --data or --text")
    flags: Tree = {"data": data, "training": {key: value for key, value in training.items() if value is not None}}
    for assignment in assignments:
        flags = merge(flags, parse_assignment(assignment))
    source = None if init_from is None else _settings_of(init_from)

    tree, choices = _layers(config, run, flags, source, named=bool(data), own_data=own_data, say=say)
    settings = parse_config(merge(tree, flags))
    own = load_config(config, presets=False).get("training", {}) if config is not None else {}
    if "warmup_steps" not in {**own, **flags["training"]}:
        settings = _with_fitting_warmup(settings, run or default_run(config, settings.data), say)
    _say_choices(choices, settings, tokenizer, say)
    return settings


def _layers(
    config: str | None, run: Path | None, flags: Tree, source: Tree | None, *, named: bool, own_data: bool, say: Say
) -> tuple[Tree, "list[Choice]"]:
    """All that lies below the flags, merged; and what the recipe has chosen of it.

    Args:
        source: The settings of the run to start from.
        named: Whether flags name data at all.
        own_data: Whether they name what is trained on.
    """
    base, corpus = _base(config, run, flags["data"] if named else None, source, say)
    choices: list[Choice] = []
    if corpus is not None:
        from ..configs.recipe import recipe
        from ..data.size import measure

        choices = recipe(measure(corpus), flags["training"].get("max_steps"), turns_round=_may_turn_round(flags))
    tree = reduce(merge, ({one.section: {one.key: one.value}} for one in choices), base)
    if own_data:  # the user's data replace a preset's, and its validation set with them
        tree = merge(tree, {"data": _NO_DATA})
    if source is not None:  # its model and vocabulary; dropout is left out: the new training decides it
        sizes = {key: value for key, value in source.get("model", {}).items() if not key.endswith("dropout")}
        tree = merge(tree, {"model": sizes, "tokenizer": source.get("tokenizer", {})})
    return merge(tree, _one_length(tree.get("training", {}), flags["training"])), choices


def _may_turn_round(flags: Tree) -> bool:
    """Whether the flags leave a translator one vocabulary, and time to learn both directions."""
    from ..configs.recipe import SECONDS_FOR_BOTH_DIRECTIONS

    separate = flags.get("tokenizer", {}).get("separate", False)
    translates = flags.get("model", {}).get("architecture") != "encoder_only"
    max_time = flags["training"].get("max_time")
    try:
        is_short = bool(max_time) and parse_duration(str(max_time)) < SECONDS_FOR_BOTH_DIRECTIONS
    except ValueError:  # the settings are refused when they are parsed
        return False
    return translates and not separate and not is_short


def _say_choices(choices: "list[Choice]", settings: RunConfig, tokenizer: Path | None, say: Say) -> None:
    """Says why, of each choice of the recipe that nothing has overruled."""
    for choice in choices:
        overruled = getattr(getattr(settings, choice.section), choice.key) != choice.value
        if not overruled and not (tokenizer is not None and choice.section == "tokenizer"):
            say(f"  {choice.reason}")


def _base(
    config: str | None, run: Path | None, data: Tree | None, source: Tree | None, say: Say
) -> tuple[Tree, Corpus | None]:
    """The lowest layer: the first rule that applies gives it. The corpus comes with it where the recipe is to follow.

    `data` are the flags that name data; `source` the settings of the run to start from.
    """
    if config is not None:
        return load_config(config), None
    if data is None and run is not None and RunDirectory(run).has_begun:
        return RunDirectory(run).settings(), None
    if data is None:
        return load_config(TOY), None

    named = parse_config({"data": data}).data
    home = default_run(None, named) if run is None and (named.src or named.data or named.text) else run
    if home is not None and RunDirectory(home).has_come_to_a_checkpoint:  # however its data have grown since
        return RunDirectory(home).settings(), None
    if source is not None and source.get("model", {}).get("architecture") != "encoder_only":
        corpus = open_corpus(named)
        count = corpus.count()
        say(
            f"{count:,} {corpus.unit}s to train on with: model, vocabulary and decoding of the run to start from, low"
            " learning rates, until validation stops improving; choose otherwise with --config"
        )
        from ..configs.recipe import fine_tuning

        return fine_tuning(source, count), None
    if named.text:
        say(f"text alone: a language model, preset {TEXT_PRESET}; choose another with --config")
        return load_config(TEXT_PRESET), None
    if source is not None:
        say(f"the model to start from is a sentence encoder: preset {ENCODER_PRESET}; choose another with --config")
        return load_config(ENCODER_PRESET), None

    corpus = open_corpus(named)
    pairs = corpus.count()
    place = bisect([least for least, _ in PRESETS_BY_SIZE], pairs)
    least, name = PRESETS_BY_SIZE[place - 1]
    until = f"to {PRESETS_BY_SIZE[place][0]:,}" if place < len(PRESETS_BY_SIZE) else "and more"
    say(f"{pairs:,} pairs: preset {name} (made for {least:,} {until}); choose another with --config")
    return load_config(name), corpus if name == BY_RECIPE else None


def _settings_of(init_from: Path) -> Tree:
    run = RunDirectory(init_from)
    if not run.has_begun:
        raise ModelError(f"{init_from} is not a run: it has no config.yaml")
    return run.settings()


def _one_length(training: Tree, flags: Tree) -> Tree:
    """Removes the length of the layers below where the flags give another one.

    A time or a patience takes the place of a number of steps, and a number of steps that of a time.
    """
    if flags.get("max_steps") and not flags.get("max_time"):
        return {"training": {"max_time": None}}
    asked = flags.get("max_time") or (flags.get("patience") and not training.get("patience"))
    if asked or ((training.get("max_time") or training.get("patience")) and "max_steps" not in training):
        return {"training": {"max_steps": None}}
    return {}


def _with_fitting_warmup(settings: RunConfig, run: Path, say: Say) -> RunConfig:
    """Shortens a warm-up that the user has not chosen to fit the length that the user has. A run keeps its own."""
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


def _replayed(specs: list[str]) -> Tree:
    """The settings that `--replay` gives. A run stands for the data that it was trained on, with their columns."""
    found: Tree = {"replay": [], "replay_src": [], "replay_tgt": []}
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


def directory_of_start(
    settings: RunConfig, *, config: str | None, run: Path | None, tokenizer: Path | None, init_from: Path | None
) -> RunDirectory:
    """The run directory of a start. Refuses, before anything heavy is loaded, what cannot be trained in it.

    Raises:
        UsageError: The run holds other settings, would overwrite what it reads, or start from itself.
    """
    directory = RunDirectory(run or default_run(config, settings.data))
    directory.starting_tokenizer(tokenizer, init_from)
    guard_training(directory.path, settings.data, config=config, tokenizer=tokenizer, init_from=init_from)
    directory.refuse_other(settings)
    return directory


def default_run(config: str | None, data: DataConfig) -> Path:
    """The run directory if none is named: in `runs/`, named after the configuration or the first file of data."""
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
