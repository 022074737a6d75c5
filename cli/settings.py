"""From the flags of `tfm train` to the configuration of a run."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..configs import RunConfig, load_config, merge, parse_config
from ..configs.loader import parse_assignment
from ..data.config import DataConfig
from ..data.corpus import TOY
from ..data.errors import ModelError, UsageError

DEFAULT_PRESET = "small"
_UNBOUNDED = 10_000_000
_FREE_KEYS = {"max_steps", "max_time", "device", "ranks", "log_every", "checkpoint_every", "keep_checkpoints"}
"""Settings of `training` that may change while a run goes on: its length and its cadence."""

Section = dict[str, Any]


def training_settings(
    *,
    config: str | None,
    run: Path | None,
    init_from: Path | None,
    data: Section,
    training: Section,
    assignments: list[str],
) -> RunConfig:
    """Lays the flags over a preset, a file, or the run's own configuration.

    Args:
        config: A preset's name or a file.
        run: The run directory, if named.
        init_from: The run to start from.
        data, training: Flags by the name of their key; None where not given.
        assignments: `--set`, which has the last word.

    Raises:
        UsageError: Anything wrong with them.
    """
    data = {key: value for key, value in data.items() if value}
    training = {key: value for key, value in training.items() if value is not None}
    own_data = not data.keys().isdisjoint({"src", "tgt", "data"})
    if init_from is not None and config is None and not own_data and not _has_config(run):
        raise UsageError("--init-from needs something to train on: give --src and --tgt, or --data")
    tree = _base(config, run, bool(data))
    if own_data:  # the user's data replace a preset's, and its validation set with them
        tree = merge(tree, {"data": {"src": [], "tgt": [], "data": [], "dev_src": [], "dev_tgt": [], "dev": []}})
    if init_from is not None:
        tree = _with_sizes_of(tree, init_from)
    if "max_time" in training:  # a time replaces a preset's number of steps, and a number a preset's time
        tree = merge(tree, {"training": {"max_steps": _UNBOUNDED}})
    elif "max_steps" in training:
        tree = merge(tree, {"training": {"max_time": None}})
    tree = merge(tree, {"data": data, "training": training})
    for assignment in assignments:
        tree = merge(tree, parse_assignment(assignment))
    return parse_config(tree)


def _has_config(run: Path | None) -> bool:
    return run is not None and (run / "config.yaml").exists()


def _base(config: str | None, run: Path | None, data_given: bool) -> Section:
    """The preset or file named; else what the run was made with; else a default preset."""
    if config is not None:
        return load_config(config)
    if run is not None and _has_config(run) and not data_given:
        return load_config(str(run / "config.yaml"))
    return load_config(DEFAULT_PRESET if data_given else TOY)


def _with_sizes_of(tree: Section, init_from: Path) -> Section:
    """Takes over the model and the vocabulary to start from; dropout alone is a matter of the new training."""
    path = init_from / "config.yaml"
    if not path.exists():
        raise ModelError(f"{init_from} is not a run: it has no config.yaml")
    source = load_config(str(path))
    sizes = {key: value for key, value in source.get("model", {}).items() if not key.endswith("dropout")}
    return merge(tree, {"model": sizes, "tokenizer": source.get("tokenizer", {})})


def default_run_name(config: str | None, data: DataConfig) -> str:
    """The directory in `runs/` if none is named: after the configuration, or after the first file of data."""
    if config is not None:
        return Path(config).stem
    if data.data == [TOY]:
        return TOY
    first = data.data[0].removeprefix("hf:") if data.data else data.src[0]
    name = Path(first.partition("@")[0].partition(":")[0]).name
    return name.split(".")[0] or "run"


def refuse_other_configuration(directory: Path, settings: RunConfig) -> None:
    """Refuses to mix two configurations in one run. A run without a checkpoint has nothing to lose, and is replaced.

    Raises:
        UsageError: The directory holds a run whose settings differ, named one by one.
    """
    path = directory / "config.yaml"
    if not path.exists() or not any((directory / "checkpoints").glob("step-*")):
        return
    before, now = asdict(parse_config(load_config(str(path)))), asdict(settings)
    differing = [
        f"{section}.{key} (was {before[section][key]!r}, now {value!r})"
        for section, keys in now.items()
        for key, value in keys.items()
        if before[section][key] != value and not (section == "training" and key in _FREE_KEYS)
    ]
    if differing:
        raise UsageError(f"{directory} holds another run, which differs in {'; '.join(differing)}; name a new --run")
