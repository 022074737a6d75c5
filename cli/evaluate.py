"""`tfm evaluate`: translates a test set and scores it; or scores outputs that are there, or given translations."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..engine.file_guard import READS_FILE, READS_RUN, READS_RUN_OR_ONLY_ONE, WRITES_FILE
from ..system.errors import UsageError
from ..system.reporter import Console
from . import options
from .startup import importing

if TYPE_CHECKING:
    from ..engine.evaluation.test_set import TestResult

Runs = Annotated[
    list[Path] | None,
    typer.Option(
        "--run",
        metavar="RUN",
        help="The run directory, or its name in runs/; may be left out if there is just one. A second is compared.",
        autocompletion=options.offered("run_names"),
    ),
    READS_RUN_OR_ONLY_ONE,
]
References = Annotated[
    list[Path] | None,
    typer.Option(
        "--tgt",
        metavar="FILE",
        help="References, line by line; in a .tsv, several per line, separated by tabs. A second --tgt of one --src"
        " has a second reference for each line.",
    ),
    READS_FILE,
]
Outputs = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE", help="Outputs to score instead of those of a run; a second file is compared with the first."
    ),
    READS_FILE,
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="bleu, chrf, ter, exact or wer; may be repeated. [default: bleu and chrf]",
        autocompletion=options.offered("metrics"),
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File for each sentence's scores, as JSON Lines, worst first."),
    WRITES_FILE,
]
Forced = Annotated[
    bool, typer.Option("--forced", help="Translate nothing: say how probable the model finds the translations given.")
]
Calibrate = Annotated[
    bool,
    typer.Option(
        "--calibrate",
        help="Keep with the run how good these translations are, so that tfm translate says in --json and --review how"
        " good others probably are. Without a test set, the run's own validation set is taken.",
    ),
]
Opposite = Annotated[
    Path | None,
    typer.Option(
        metavar="RUN",
        help="A run of the opposite direction: says how much of the sources is in the outputs, by forced scores both"
        " ways.",
        autocompletion=options.offered("run_names"),
    ),
    READS_RUN,
]
Worst = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, help="Show the N worst sentences; of two --hyp or --run those in which they differ most."
    ),
]
Examples = Annotated[int, typer.Option(metavar="N", min=0, help="Show this many sentences, evenly spaced.")]


def evaluate(
    run: Runs = None,
    src: options.Src = None,
    tgt: References = None,
    data: options.Data = None,
    src_column: options.SrcColumn = None,
    tgt_column: options.TgtColumn = None,
    src_language: options.SrcLanguage = None,
    tgt_language: options.TgtLanguage = None,
    encoding: options.Encoding = None,
    hyp: Outputs = None,
    checkpoint: options.Checkpoint = "best",
    beam_size: options.BeamSize = None,
    length_penalty: options.LengthPenalty = None,
    no_repeat_ngram_size: options.NoRepeatNgramSize = None,
    glossary: options.GlossaryFile = None,
    repair: options.Repair = None,
    metric: Metrics = None,
    output: options.Translations = None,
    report: Report = None,
    forced: Forced = False,
    calibrate: Calibrate = False,
    opposite: Opposite = None,
    worst: Worst = 0,
    examples: Examples = 0,
    device: options.Device = "auto",
    json_: options.Json = False,
) -> None:
    """Score a run on a test set, or outputs that you have.

    tfm evaluate --run runs/mine --src test.en --tgt test.de --metric bleu --metric chrf

    tfm evaluate --hyp one.de --hyp other.de --src test.en --tgt test.de --worst 5

    tfm evaluate --run runs/mine --run runs/other --src test.en --tgt test.de

    tfm evaluate --run runs/mine --forced --src train.en --tgt train.de --report probabilities.jsonl

    tfm evaluate --run runs/mine --calibrate
    """
    from ..engine.evaluation.reading import read_test_set
    from ..engine.evaluation.scores import check_metrics
    from ..engine.runs.directory import RunDirectory
    from ..engine.runs.find import find_run
    from . import results
    from .lines import refuse_other_output

    refuse_other_output(output)
    metrics = metric or ["bleu", "chrf"]
    check_metrics(metrics)
    search = {"beam_size": beam_size, "length_penalty": length_penalty, "no_repeat_ngram_size": no_repeat_ngram_size}
    _check_flags(
        {"--hyp": hyp, "--tgt": tgt, "--data": data, "--run": run, "--forced": forced or None, "--metric": metric}
        | {"--calibrate": calibrate or None, "--opposite": opposite}
        | {"--checkpoint": checkpoint != "best" or None, "--device": device != "auto" or None}
        | dict(zip(_SEARCH, search.values(), strict=True))
        | {"--glossary": glossary, "--repair": repair, "--output": output, "--examples": examples or None},
        metrics,
    )
    console = Console()
    sides = options.named_sides(src_column, tgt_column, src_language, tgt_language, encoding)
    terms = options.load_glossary(glossary, encoding or "")
    runs = [] if hyp else [find_run(one, console) for one in run or [None]]
    with_sources = not hyp or bool(src or data)
    test_set = read_test_set(
        src or [],
        tgt or [],
        data or [],
        runs[0] if runs else None,
        sides,
        console,
        sources_count=with_sources,
        or_dev=calibrate,
    )
    asked = results.Asked(test_set, metrics, with_sources, worst, report, json_, console)
    if forced:
        results.score_given(asked, runs[0], checkpoint=checkpoint, device=device)
        return
    if hyp:
        results.score_files(asked, hyp, encoding or "")
        return
    with importing():
        from ..engine.device import keep_freed_memory
        from ..engine.evaluation.test_set import evaluate_set, load_opposite
        from ..engine.translator import Translator

    keep_freed_memory()
    how = {"metrics": metrics, "glossary": terms, "repair": options.to_repair(repair)}

    def evaluated(run: Path, *test_set: Any, **further: Any) -> "TestResult":
        translator = Translator.load(run, checkpoint=checkpoint, device=device, warn=console.warn)
        return evaluate_set(translator, *test_set, search=translator.search(**search), **how, **further)

    if len(runs) > 1:
        results.compare_runs(asked, runs, evaluated)
    else:
        back = None if opposite is None else load_opposite(runs[0], opposite, device, console.warn)
        calibration = RunDirectory(runs[0]).calibration if calibrate else None
        of_run = partial(evaluated, calibration=calibration, back=back)
        results.score_run(asked, runs[0], of_run, output=output, examples=examples)
        if calibrate:
            console.say(f"{runs[0]} is calibrated: tfm translate --json and --review project the chrF of a translation")


_SEARCH = ("--beam-size", "--length-penalty", "--no-repeat-ngram-size")
_MAKING = (*_SEARCH, "--glossary", "--repair", "--output", "--examples")
"""Flags that say how outputs are made."""


def _check_flags(given: dict[str, Any], metrics: list[str]) -> None:
    """Refuses flags that would have no effect, and a comparison by a metric for which there is no test.

    The value of a flag that is not given is None.
    """
    from ..engine.evaluation.scores import TESTED

    def refuse(why: str, *flags: str) -> None:
        for flag in flags:
            if given[flag] is not None:
                raise UsageError(f"{why}; it cannot be combined with {flag}")

    if given["--hyp"]:
        of_a_run = ("--run", "--forced", "--calibrate", "--opposite", "--checkpoint", "--device")
        refuse("--hyp scores outputs that are there already", *of_a_run, *_MAKING)
        if not given["--tgt"] and not given["--data"]:
            raise UsageError("give the references: --tgt, or --data")
    if given["--forced"]:
        refuse("--forced translates nothing", "--metric", "--calibrate", "--opposite", *_MAKING)
    if given["--run"] and len(given["--run"]) > 1:
        refuse("--run twice compares two runs", "--forced", "--calibrate", "--opposite", "--output", "--examples")
    untested = [name for name in metrics if name not in TESTED]
    for flag in ("--hyp", "--run"):
        if untested and given[flag] and len(given[flag]) > 1:
            raise UsageError(f"{flag} twice compares by {', '.join(TESTED)}; there is no test for {untested[0]}")
