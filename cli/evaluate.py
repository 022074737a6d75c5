"""`tfm evaluate`: translates a test set and scores it."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..engine.guard import READS_FILE, READS_RUN_OR_ONLY_ONE, WRITES_FILE
from .options import (
    BeamSize,
    Checkpoint,
    Data,
    Debug,
    Device,
    GlossaryFile,
    Json,
    LengthPenalty,
    NoRepeatNgramSize,
    Repair,
    Src,
    SrcColumn,
    TgtColumn,
    named_columns,
    to_repair,
)


def evaluate(
    run: Annotated[
        list[Path] | None,
        typer.Option(
            "--run",
            metavar="RUN",
            help="The run directory; may be left out if runs/ holds exactly one. A second one is compared with it.",
        ),
        READS_RUN_OR_ONLY_ONE,
    ] = None,
    src: Src = None,
    tgt: Annotated[
        list[Path] | None,
        typer.Option(
            "--tgt",
            metavar="FILE",
            help="References, line by line; in a .tsv, several per line, separated by tabs. A second --tgt of one --src"
            " has a second reference for each line.",
        ),
        READS_FILE,
    ] = None,
    data: Data = None,
    src_column: SrcColumn = None,
    tgt_column: TgtColumn = None,
    hyp: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Outputs to score instead of those of a run; a second file is compared with the first."
        ),
        READS_FILE,
    ] = None,
    checkpoint: Checkpoint = "best",
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    no_repeat_ngram_size: NoRepeatNgramSize = None,
    glossary: GlossaryFile = None,
    repair: Repair = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="bleu, chrf, ter, exact or wer; may be repeated. [default: bleu and chrf]"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File for the translations."), WRITES_FILE
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File for each sentence's scores, as JSON Lines, worst first."),
        WRITES_FILE,
    ] = None,
    forced: Annotated[
        bool,
        typer.Option("--forced", help="Translate nothing: say how probable the model finds the translations given."),
    ] = False,
    worst: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Show the N worst sentences; of two --hyp or --run those in which they differ most.",
        ),
    ] = 0,
    examples: Annotated[int, typer.Option(metavar="N", min=0, help="Show so many sentences, evenly spaced.")] = 0,
    device: Device = "auto",
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Score a run on a test set, or outputs that you have.

    tfm evaluate --run runs/mine --src test.en --tgt test.de --metric bleu --metric chrf

    tfm evaluate --hyp one.de --hyp other.de --src test.en --tgt test.de --worst 5

    tfm evaluate --run runs/mine --run runs/other --src test.en --tgt test.de

    tfm evaluate --run runs/mine --forced --src train.en --tgt train.de --report probabilities.jsonl
    """
    del debug
    from ..data.glossary import Glossary
    from ..engine.evaluation.reading import read_test_set
    from ..engine.evaluation.scores import check_metrics
    from ..engine.runs.find import find_run
    from ..system.console import Console
    from ..system.errors import UsageError
    from .forced import score_given
    from .outputs import check_tested, score_files
    from .startup import importing

    metrics = metric or ["bleu", "chrf"]
    check_metrics(metrics)
    console = Console()
    of_a_run = {
        "--run": run,
        "--forced": forced or None,
        "--checkpoint": None if checkpoint == "best" else checkpoint,
        "--device": None if device == "auto" else device,
    }
    making = {
        "--beam-size": beam_size,
        "--length-penalty": length_penalty,
        "--no-repeat-ngram-size": no_repeat_ngram_size,
        "--glossary": glossary,
        "--repair": repair,
        "--output": output,
        "--examples": examples or None,
    }
    if hyp:
        _refuse("--hyp scores outputs that are there already", of_a_run | making)
        if not tgt and not data:
            raise UsageError("give the references: --tgt, or --data")
    if forced:
        _refuse("--forced translates nothing", {"--metric": metric} | making)
    if run and len(run) > 1:
        alone = {"--forced": forced or None, "--output": output, "--examples": examples or None}
        _refuse("--run twice compares two runs", alone)
    for flag, compared in (("--hyp", hyp), ("--run", run)):
        if compared and len(compared) > 1:
            check_tested(metrics, flag)

    terms = Glossary.load(glossary) if glossary else None
    directories = [] if hyp else [find_run(one, console) for one in run or [None]]
    test_set = read_test_set(
        src or [],
        tgt or [],
        data or [],
        directories[0] if directories else None,
        named_columns(src_column, tgt_column),
        console,
        sources_count=not hyp or bool(src or data),
    )
    told = {"worst": worst, "report": report, "console": console, "as_json": json_}
    if forced:
        score_given(directories[0], test_set, checkpoint=checkpoint, device=device, **told)
        return
    check_metrics(metrics, test_set.references)
    if hyp:
        score_files(hyp, test_set, metrics, with_sources=bool(src or data), **told)
        return
    with importing():
        from ..engine.device import keep_freed_memory
        from ..engine.evaluation.test_set import evaluate_set
        from .results import compare_runs, score_run

    keep_freed_memory()
    evaluated = partial(
        evaluate_set,
        metrics=metrics,
        checkpoint=checkpoint,
        beam_size=beam_size,
        length_penalty=length_penalty,
        no_repeat_ngram_size=no_repeat_ngram_size,
        glossary=terms,
        repair=to_repair(repair),
        device=device,
        warn=console.warn,
    )
    if len(directories) > 1:
        compare_runs(directories, test_set, metrics, evaluated, **told)
    else:
        score_run(directories[0], test_set, evaluated, output=output, examples=examples, **told)


def _refuse(why: str, flags: dict[str, Any]) -> None:
    """Refuses flags that would have no effect.

    Raises:
        UsageError: One of them is given.
    """
    from ..system.errors import UsageError

    given = [flag for flag, value in flags.items() if value is not None]
    if given:
        raise UsageError(f"{why}; it cannot be combined with {given[0]}")
