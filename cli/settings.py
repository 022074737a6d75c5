"""From the flags of `tfm train` to the configuration of a run."""

from bisect import bisect
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..configs import RunConfig, load_config, merge, parse_config
from ..configs.loader import parse_assignment
from ..data.config import DataConfig
from ..data.corpus import open_corpus
from ..data.errors import ModelError, UsageError
from ..data.formats.hub import parse_hub_spec
from ..data.formats.toy import TOY
from ..seq2seq.run_directory import list_checkpoints
from .runs import RUNS

PRESETS_BY_SIZE = [(0, "pairs-5k"), (10_000, "pairs-20k"), (50_000, "pairs-100k"), (300_000, "pairs-1m")]
"""Presets for own data, each after the number of pairs that it begins at and named for the middle of its range."""

_UNBOUNDED = 10_000_000
_LENGTH = {"max_steps", "max_time"}
_MACHINE = {"device", "ranks", "precision"}
_CADENCE = {"log_every", "checkpoint_every", "keep_checkpoints"}
_FREE_KEYS = _LENGTH | _MACHINE | _CADENCE
"""Settings of `training` that may change while a run goes on; tfm warns if those of the machine do."""
_FILE_KEYS = {"src", "tgt", "dev_src", "dev_tgt", "data", "dev"}
"""Settings of `data` that name files, which may have been moved: what they hold is compared when they are read."""

Section = dict[str, Any]


def training_settings(
    *,
    config: str | None,
    run: Path | None,
    init_from: Path | None,
    data: Section,
    training: Section,
    assignments: list[str],
    say: Callable[[str], None] = lambda text: None,
) -> RunConfig:
    """Lays the flags over a preset, a file, or the run's own configuration.

    Args:
        config: A preset's name or a file.
        run: The run directory, if named.
        init_from: The run to start from.
        data, training: Flags by the name of their key; None where not given.
        assignments: `--set`, which has the last word.
        say: Hears which preset was chosen for the data, and why.

    Raises:
        UsageError: Anything wrong with them.
        DataError: Data of which the preset depends cannot be read.
    """
    data = {key: value for key, value in data.items() if value}
    training = {key: value for key, value in training.items() if value is not None}
    own_data = not data.keys().isdisjoint({"src", "tgt", "data"})
    if init_from is not None and config is None and not own_data and not _has_config(run):
        raise UsageError("--init-from needs something to train on: give --src and --tgt, or --data")
    flags: Section = {"data": data, "training": training}
    for assignment in assignments:
        flags = merge(flags, parse_assignment(assignment))
    tree = _base(config, run, flags["data"] if data else None, say)
    if own_data:  # the user's data replace a preset's, and its validation set with them
        tree = merge(tree, {"data": {"src": [], "tgt": [], "data": [], "dev_src": [], "dev_tgt": [], "dev": []}})
    if init_from is not None:
        tree = _with_sizes_of(tree, init_from)
    return parse_config(merge(_with_one_length(tree, flags["training"]), flags))


def _with_one_length(tree: Section, training: Section) -> Section:
    """Lets a time that is asked for replace a number of steps that is not, and the other way round."""
    own = tree.get("training", {})
    if training.get("max_time") or (own.get("max_time") and "max_steps" not in own):
        return merge(tree, {"training": {"max_steps": _UNBOUNDED}})
    if "max_steps" in training:
        return merge(tree, {"training": {"max_time": None}})
    return tree


def _has_config(run: Path | None) -> bool:
    return run is not None and (run / "config.yaml").exists()


def _base(config: str | None, run: Path | None, data: Section | None, say: Callable[[str], None]) -> Section:
    """The preset or file named; else what the run was made with; else the preset for the data, or the toy language.

    A run that has come to a checkpoint keeps its settings, however its data have grown since; what has not may choose
    anew.
    """
    if config is not None:
        return load_config(config)
    if data is None:
        return load_config(str(run / "config.yaml") if run is not None and _has_config(run) else TOY)
    named = parse_config({"data": data}).data
    directory = default_run(None, named) if run is None and (named.src or named.data) else run
    if directory is not None and (own := _settings_under_way(directory)) is not None:
        return own
    return load_config(_preset_for(open_corpus(named).count(), say))


def _settings_under_way(run: Path) -> Section | None:
    """What a run was last started with; None if it never came to a checkpoint, and so has nothing to lose."""
    return load_config(str(run / "config.yaml")) if _has_config(run) and list_checkpoints(run) else None


def _preset_for(pairs: int, say: Callable[[str], None]) -> str:
    place = bisect([least for least, _ in PRESETS_BY_SIZE], pairs)
    least, name = PRESETS_BY_SIZE[place - 1]
    until = f"to {PRESETS_BY_SIZE[place][0]:,}" if place < len(PRESETS_BY_SIZE) else "and more"
    say(f"{pairs:,} pairs: preset {name} (made for {least:,} {until}); choose another with --config")
    return name


def _with_sizes_of(tree: Section, init_from: Path) -> Section:
    """Takes over the model and the vocabulary to start from; dropout alone is a matter of the new training."""
    path = init_from / "config.yaml"
    if not path.exists():
        raise ModelError(f"{init_from} is not a run: it has no config.yaml")
    source = load_config(str(path))
    sizes = {key: value for key, value in source.get("model", {}).items() if not key.endswith("dropout")}
    return merge(tree, {"model": sizes, "tokenizer": source.get("tokenizer", {})})


def default_run(config: str | None, data: DataConfig) -> Path:
    """The directory if none is named: in `runs/`, after the configuration, or after the first file of data."""
    if config is not None:
        return RUNS / Path(config).stem
    if not (data.data or data.src):
        raise UsageError("there is nothing to train on: give --src and --tgt, or --data")
    first = data.data[0] if data.data else data.src[0]
    if first.startswith("hf:"):
        name, subset, *_ = parse_hub_spec(first)
        first = subset or name
    return RUNS / (Path(first).name.split(".")[0] or "run")


def files_of(run: Path) -> dict[str, list[str]]:
    """The files of data that a run was last started with, by their key; none if it never came to a checkpoint."""
    own = _settings_under_way(run)
    data = {} if own is None else asdict(parse_config(own).data)
    return {key: names for key, names in data.items() if key in _FILE_KEYS and names}


def refuse_other_configuration(directory: Path, settings: RunConfig) -> None:
    """Refuses to mix two configurations in one run. A run without a checkpoint has nothing to lose, and is replaced.

    Raises:
        UsageError: The directory holds a run whose settings differ, named one by one.
    """
    own = _settings_under_way(directory)
    if own is None:
        return
    before, now = asdict(parse_config(own)), asdict(settings)
    free = {"training": _FREE_KEYS, "data": _FILE_KEYS}
    differing = [
        f"{section}.{key} (was {before[section][key]!r}, now {value!r})"
        for section, keys in now.items()
        for key, value in keys.items()
        if before[section][key] != value and key not in free.get(section, set())
    ]
    if differing:
        raise UsageError(f"{directory} holds another run, which differs in {'; '.join(differing)}; name a new --run")
