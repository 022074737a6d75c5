"""`tfm train`: trains a translator, or continues a run."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import Data, Debug, Src, Tgt

DEFAULT_PRESET = "small"
_FREE_KEYS = {"max_steps", "max_time", "device", "log_every", "checkpoint_every", "keep_checkpoints"}
"""Settings of `training` that may change while a run goes on: its length and its cadence."""


def train(
    config: Annotated[str | None, typer.Option(metavar="NAME", help="A preset's name, or a YAML file.")] = None,
    src: Src = None,
    tgt: Tgt = None,
    dev_src: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Source side of the validation set.")
    ] = None,
    dev_tgt: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Target side of the validation set.")
    ] = None,
    data: Data = None,
    dev: Annotated[
        list[str] | None, typer.Option(metavar="SPEC", help="The validation set, in the notation of --data.")
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A directory made by tfm tokenize; without it, a vocabulary is built."),
    ] = None,
    run: Annotated[Path | None, typer.Option(metavar="RUN", help="The run directory. [default: runs/NAME]")] = None,
    init_from: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Start from the best weights of this run (fine-tuning).")
    ] = None,
    max_steps: Annotated[int | None, typer.Option(metavar="N", min=1, help="Updates in all.")] = None,
    max_time: Annotated[str | None, typer.Option(metavar="TIME", help="Time in all, such as 20m or 8h.")] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", min=0, help="Seed of weights, batch order, dropout.")] = None,
    device: Annotated[str | None, typer.Option(metavar="NAME", help="auto, cpu, cuda or mps.")] = None,
    precision: Annotated[str | None, typer.Option(metavar="NAME", help="auto, fp32 or bf16.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be trained, and stop.")] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="K=V", help="Any other setting: section.key=value; may be repeated."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Train a translator. Run the same command again to continue a run that was stopped.

    Without any option a small built-in language is trained into runs/toy, in about two minutes. With your own files:

    tfm train --src train.en --tgt train.de
    """
    del debug
    started = time.monotonic()
    from ..configs import merge, parse_config, render_config
    from ..configs.loader import parse_assignment
    from ..data.errors import Interrupted, UsageError
    from ..seq2seq.training.interrupts import Interrupts
    from .console import Console

    if tokenizer is not None and init_from is not None:
        raise UsageError("a model keeps its vocabulary: --init-from brings its tokenizer, leave --tokenizer out")
    flags: dict[str, dict[str, Any]] = {
        "data": {
            "src": _strings(src),
            "tgt": _strings(tgt),
            "dev_src": _strings(dev_src),
            "dev_tgt": _strings(dev_tgt),
            "data": data,
            "dev": dev,
        },
        "training": {
            "max_steps": max_steps,
            "max_time": max_time,
            "seed": seed,
            "device": device,
            "precision": precision,
        },
    }
    given = {section: {k: v for k, v in keys.items() if v is not None} for section, keys in flags.items()}
    own_data = any(given["data"].get(key) for key in ("src", "tgt", "data"))
    tree = _base_settings(config, own_data, run, given, set_)
    if own_data:  # the user's data replace a preset's, and its validation set with them
        tree = merge(tree, {"data": {"src": [], "tgt": [], "data": [], "dev_src": [], "dev_tgt": [], "dev": []}})
    tree = merge(tree, given)
    if max_time is not None and max_steps is None:
        tree = merge(tree, {"training": {"max_steps": 10_000_000}})
    if max_steps is not None and max_time is None:
        tree = merge(tree, {"training": {"max_time": None}})
    if init_from is not None:
        tree = _with_model_of(tree, init_from)
    for assignment in set_ or []:
        tree = merge(tree, parse_assignment(assignment))
    settings = parse_config(tree)

    console = Console()
    if dry_run:
        from ..seq2seq.training.dry_run import dry_run as describe

        own = tokenizer if init_from is None else init_from / "tokenizer"
        print("\n".join(describe(settings, tokenizer=own, reporter=console)))
        return
    directory = run or Path("runs") / _default_name(config, settings.data)
    _refuse_other_configuration(directory, settings)
    with Interrupts() as interrupts:
        from ..seq2seq.training.run import train as train_run

        try:
            result = train_run(
                settings,
                run=directory,
                config_text=render_config(settings),
                reporter=console,
                interrupts=interrupts,
                tokenizer=tokenizer,
                init_from=init_from,
                started=started,
            )
        except Interrupted as error:
            raise Interrupted(
                f"{error}. Run the same command to continue: {_command_line()}", error.exit_code - 128
            ) from error
    if result.already_finished:
        console.say(f"{directory} is already finished at step {result.step:,}; a higher --max-steps would continue it")
    else:
        best = f", best at step {result.best_step:,}" if result.best_score is not None else ""
        console.say(f"finished at step {result.step:,}{best}. Translate with: tfm translate --run {directory}")


def _strings(paths: list[Path] | None) -> list[str] | None:
    return None if paths is None else [str(path) for path in paths]


def _base_settings(
    config: str | None, own_data: bool, run: Path | None, given: dict[str, dict[str, Any]], set_: list[str] | None
) -> dict[str, Any]:
    """The settings under the flags: the preset or file named; else the run's own; else a default preset."""
    from ..configs import load_config

    if config is not None:
        return load_config(config)
    if run is not None and (run / "config.yaml").exists() and not given["data"] and not set_:
        return load_config(str(run / "config.yaml"))
    return load_config(DEFAULT_PRESET if own_data else "toy")


def _with_model_of(tree: dict[str, Any], init_from: Path) -> dict[str, Any]:
    """Takes over the sizes of the model to start from; only its dropout may be set anew."""
    from ..configs import load_config, merge
    from ..data.errors import ModelError

    path = init_from / "config.yaml"
    if not path.exists():
        raise ModelError(f"{init_from} is not a run: it has no config.yaml")
    source = load_config(str(path))
    return merge(tree, {"model": source.get("model", {}), "tokenizer": source.get("tokenizer", {})})


def _default_name(config: str | None, data: Any) -> str:
    if config is not None:
        return Path(config).stem
    if data.data == ["toy"]:
        return "toy"
    first = data.data[0].removeprefix("hf:") if data.data else data.src[0]
    name = Path(first.partition("@")[0].partition(":")[0]).name
    return name.split(".")[0] or "run"


def _refuse_other_configuration(directory: Path, settings: Any) -> None:
    """Refuses to mix two configurations in one run directory.

    Raises:
        UsageError: The directory holds a run whose settings differ, named one by one.
    """
    from dataclasses import asdict

    from ..configs import load_config, parse_config
    from ..data.errors import UsageError

    path = directory / "config.yaml"
    if not path.exists():
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


def _command_line() -> str:
    import shlex
    import sys

    return shlex.join(["tfm", *sys.argv[1:]])
