"""`tfm train`: trains a translator, a language model or a sentence encoder, or continues a run."""

import os
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.reading import UndecodableText
from ..engine.file_guard import (
    READS_FILE,
    READS_RUN,
    READS_SPEC,
    READS_SPEC_OR_RUN,
    READS_TOKENIZER,
    WRITES_RUN,
    guard_training,
)
from ..system.errors import DataError, Interrupted, MissingFile, UsageError
from ..system.interrupts import Interrupts
from ..system.reporter import Console
from .options import Data, Debug, Encoding, Specs, Src, SrcColumn, SrcLanguage, Tgt, TgtColumn, TgtLanguage, named_sides
from .startup import importing

if TYPE_CHECKING:
    from ..engine.runs.directory import RunDirectory


def train(
    specs: Specs = None,
    config: Annotated[
        str | None, typer.Option(metavar="NAME", help="A preset's name, or a YAML file."), READS_FILE
    ] = None,
    src: Src = None,
    tgt: Tgt = None,
    dev_src: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Source side of the validation set."), READS_FILE
    ] = None,
    dev_tgt: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Target side of the validation set."), READS_FILE
    ] = None,
    data: Data = None,
    dev: Annotated[
        list[str] | None,
        typer.Option(metavar="SPEC", help="The validation set, in the notation of --data."),
        READS_SPEC,
    ] = None,
    src_column: SrcColumn = None,
    tgt_column: TgtColumn = None,
    src_language: SrcLanguage = None,
    tgt_language: TgtLanguage = None,
    encoding: Encoding = None,
    text: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Text for a language model, one text per line; may be repeated."),
        READS_FILE,
    ] = None,
    dev_text: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Validation text of a language model."), READS_FILE
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A directory made by tfm tokenize; without it, a vocabulary is built."),
        READS_TOKENIZER,
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="The run directory. [default: runs/ and the name of the preset or the data]"),
        WRITES_RUN,
    ] = None,
    init_from: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Start from the best weights of this run (fine-tuning)."),
        READS_RUN,
    ] = None,
    replay: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPEC|RUN",
            help="With --init-from: mix in old data, as in --data or those of a run, so that less is forgotten.",
        ),
        READS_SPEC_OR_RUN,
    ] = None,
    max_steps: Annotated[int | None, typer.Option(metavar="N", min=1, help="Updates in all, at most.")] = None,
    max_time: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time in all, at most, such as 20m or 8h.")
    ] = None,
    finish_in: Annotated[
        str | None,
        typer.Option(
            metavar="TIME|N",
            help="End a run in this time, such as 10m, or after N updates, while it is being trained in another window,"
            " too; its learning rate falls to zero until then.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", min=0, help="Seed of weights, batch order, dropout.")] = None,
    device: Annotated[str | None, typer.Option(metavar="NAME", help="auto, cpu, cuda or mps.")] = None,
    precision: Annotated[str | None, typer.Option(metavar="NAME", help="auto, fp32 or bf16.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Make a few updates, say what all of them would take, and stop.")
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="K=V", help="Any other setting: section.key=value; may be repeated."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Train a translator, a language model or a sentence encoder; the same command continues a run that was stopped.

    Without any option a small built-in language is trained into runs/toy, in about two minutes. With your own files,
    the settings follow from the pairs and the text in them:

    tfm train --src train.en --tgt train.de

    A text gives a language model:

    tfm train --text stories.txt

    With this preset, pairs give sentence vectors:

    tfm train --config multi30k-encoder --src train.en --tgt train.de --run runs/vectors
    """
    del debug
    started = time.monotonic()
    from ..engine.choose import default_run, training_settings
    from ..engine.runs.directory import RunDirectory

    if dry_run and finish_in is not None:
        raise UsageError("--dry-run ends nothing; leave it or --finish-in out")
    files = {"src": src, "tgt": tgt, "dev_src": dev_src, "dev_tgt": dev_tgt, "text": text, "dev_text": dev_text}
    names: dict[str, Any] = {key: [str(path) for path in paths] for key, paths in files.items() if paths}
    names |= named_sides(src_column, tgt_column, src_language, tgt_language, encoding)
    console = Console()
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
    directory = RunDirectory(run or default_run(config, settings.data))
    directory.starting_tokenizer(tokenizer, init_from)  # refuses what contradicts itself
    guard_training(directory.path, settings.data, config=config, tokenizer=tokenizer, init_from=init_from)
    directory.refuse_other(settings)  # now, before anything heavy is loaded
    if dry_run:
        with importing():
            from ..engine.training.dry_run import dry_run as rehearse

        console.say("making a few updates, to see what they take")
        with _files_explained(directory):
            said = rehearse(settings, directory, tokenizer=tokenizer, init_from=init_from, reporter=console)
        print("\n".join(said))
        return
    with importing():
        from ..engine.training.train import train as train_run

    with Interrupts() as interrupts, _files_explained(directory):
        try:
            result = train_run(
                settings,
                run=directory.path,
                reporter=console,
                interrupts=interrupts,
                tokenizer=tokenizer,
                init_from=init_from,
                started=started,
                finish_in=finish_in,
            )
        except Interrupted as error:
            raise Interrupted(
                f"{error}. Run the same command to continue{_command_line()}", error.signal_number
            ) from error
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
        files = run.data_files()  # config.yaml is still that of the last start: it is replaced after the data are read
        if error.path not in {Path(name) for names in files.values() for name in names}:
            raise
        flags = ", ".join(f"--{key.replace('_', '-')}" for key in files)
        raise DataError(
            f"{error}. {run.config} names it: if the files of this run were moved, say where they are now with"
            f" {flags}; names without a leading / count from the directory in which tfm is started"
        ) from error


def _command_line() -> str:
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
