"""`tfm train`: trains a translator, a language model or a sentence encoder, or continues a run."""

import os
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.reading import UndecodableText
from ..system.errors import DataError, Interrupted, MissingFile, UsageError
from ..system.interrupts import Interrupts
from ..system.reporter import Console
from . import options
from .startup import importing

if TYPE_CHECKING:
    from ..configs import RunConfig
    from ..engine.runs.directory import RunDirectory


def train(
    specs: options.Specs = None,
    config: options.Config = None,
    src: options.Src = None,
    tgt: options.Tgt = None,
    dev_src: options.DevSrc = None,
    dev_tgt: options.DevTgt = None,
    data: options.Data = None,
    dev: options.Dev = None,
    src_column: options.SrcColumn = None,
    tgt_column: options.TgtColumn = None,
    src_language: options.SrcLanguage = None,
    tgt_language: options.TgtLanguage = None,
    encoding: options.Encoding = None,
    text: options.Text = None,
    dev_text: options.DevText = None,
    tokenizer: options.Vocabulary = None,
    run: options.RunToTrain = None,
    init_from: options.InitFrom = None,
    replay: options.Replay = None,
    max_steps: options.MaxSteps = None,
    max_time: options.MaxTime = None,
    finish_in: options.FinishIn = None,
    seed: options.TrainingSeed = None,
    device: options.TrainingDevice = None,
    precision: options.Precision = None,
    dry_run: options.DryRun = False,
    set_: options.Set = None,
) -> None:
    """Train a translator, a language model or a sentence encoder.

    The same command continues a run that was stopped.

    Without any option a small built-in language is trained into runs/toy, in about two minutes. With your own files,
    the settings follow from the pairs and the text in them:

    tfm train --src train.en --tgt train.de

    A text gives a language model:

    tfm train --text stories.txt

    With this preset, pairs give sentence vectors:

    tfm train --config multi30k-encoder --src train.en --tgt train.de --run runs/vectors
    """
    started = time.monotonic()
    from ..engine.choose import directory_of_start, training_settings

    if dry_run and finish_in is not None:
        raise UsageError("--dry-run ends nothing; leave it or --finish-in out")
    if _is_follower() and not dry_run and finish_in is None:
        _follow()
        return
    console = Console()
    names = options.named_files(src=src, tgt=tgt, dev_src=dev_src, dev_tgt=dev_tgt, text=text, dev_text=dev_text)
    names |= options.named_sides(src_column, tgt_column, src_language, tgt_language, encoding)
    limits = {"max_steps": max_steps, "max_time": max_time, "seed": seed, "device": device, "precision": precision}
    with _bad_lines_explained():
        settings = training_settings(
            config=config,
            run=run,
            init_from=init_from,
            data={**names, "data": [*(data or []), *(specs or [])], "dev": dev, "replay": replay},
            training=limits,
            assignments=set_ or [],
            tokenizer=tokenizer,
            say=console.say,
        )
    directory = directory_of_start(settings, config=config, run=run, tokenizer=tokenizer, init_from=init_from)
    beginning: dict[str, Any] = {"tokenizer": tokenizer, "init_from": init_from, "reporter": console}
    with _files_explained(directory):
        if dry_run:
            _try(settings, directory, beginning, console)
        else:
            _train(settings, directory, {**beginning, "started": started, "finish_in": finish_in}, console)


def _is_follower() -> bool:
    """Whether torchrun has started this process to help another one."""
    return "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("RANK") != "0"


def _follow() -> None:
    """Trains along with the leader, which has the settings and the files: here they need not be."""
    with importing():
        from ..engine.training.train import follow_leader

    with Interrupts() as interrupts:
        follow_leader(interrupts)


def _try(settings: "RunConfig", directory: "RunDirectory", beginning: dict[str, Any], console: Console) -> None:
    """Makes a few updates, and prints what all of them would take."""
    with importing():
        from ..engine.training.dry_run import dry_run

    console.say("making a few updates, to see what they take")
    print("\n".join(dry_run(settings, directory, **beginning)))


def _train(settings: "RunConfig", directory: "RunDirectory", beginning: dict[str, Any], console: Console) -> None:
    """Trains, and says how it ended."""
    with importing():
        from ..engine.training.train import train

    with resumable() as interrupts:
        result = train(settings, run=directory.path, interrupts=interrupts, **beginning)
    if result is None:
        return
    for line in result.verdict:
        console.say(line)
    if result.already_finished:
        console.say(f"{directory} is already finished at step {result.step:,}; {result.how_to_go_on}")
    else:
        best = f", best at step {result.best_step:,}" if result.best_score is not None else ""
        early = ", as validation had stopped improving" if result.stopped_early else ""
        console.say(f"finished at step {result.step:,}{best}{early}. {result.use}")


@contextmanager
def resumable() -> Iterator[Interrupts]:
    """Takes signals; where one stops the command, says how to go on."""
    with Interrupts() as interrupts:
        try:
            yield interrupts
        except Interrupted as error:
            raise Interrupted(
                f"{error}. Run the same command to continue{command_line()}", error.signal_number
            ) from error


@contextmanager
def _bad_lines_explained() -> Iterator[None]:
    """Says of lines that are not in their encoding how to drop them."""
    try:
        yield
    except UndecodableText as error:
        raise DataError(f"{error}; or drop such pairs: --set data.bad_lines=skip") from error


@contextmanager
def _files_explained(run: "RunDirectory") -> Iterator[None]:
    """Says of a missing file that the run has been trained with how to name it anew."""
    try:
        with _bad_lines_explained():
            yield
    except MissingFile as error:
        # config.yaml is still that of the last start: it is replaced after the data are read
        if error.path not in {Path(name) for names in run.data_files().values() for name in names}:
            raise
        raise DataError(
            f"{error}. {run.config} names it: if the files of this run were moved, say where they are now with"
            f" {run.data_flags()}; names without a leading / count from the directory in which tfm is started"
        ) from error


def command_line() -> str:
    """What to type, as far as it is known: what torchrun was told is not. A run is told to finish only once."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return ""
    words, skip = list[str](), False
    for word in sys.argv[1:]:
        if not skip and not word.startswith("--finish-in="):
            words.append(word)
        skip = word == "--finish-in"
        if skip:
            words.pop()
    return f": {shlex.join(['tfm', *words])}"
