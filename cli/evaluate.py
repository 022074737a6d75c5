"""`tfm evaluate`: translates a test set and scores it."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from .guard import READS_FILE, WRITES_FILE
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
    Run,
    Src,
    SrcColumn,
    TgtColumn,
    named_columns,
    to_repair,
)


def evaluate(
    run: Run = None,
    src: Src = None,
    tgt: Annotated[
        list[Path] | None,
        typer.Option(
            "--tgt", metavar="FILE", help="References, line by line; in a .tsv, several per line, separated by tabs."
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
            metavar="N", min=0, help="Show the N worst sentences; of two --hyp those in which they differ most."
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

    tfm evaluate --run runs/mine --forced --src train.en --tgt train.de --report probabilities.jsonl
    """
    del debug
    from ..data.errors import UsageError
    from ..data.files import OutputFile
    from ..data.glossary import Glossary
    from ..seq2seq.evaluation.scores import check_metrics
    from .console import Console
    from .forced import score_given
    from .libraries import importing
    from .outputs import score_outputs
    from .runs import find_run
    from .test_sets import open_test_set, sides

    metrics = metric or ["bleu", "chrf"]
    check_metrics(metrics)
    console = Console()
    named = named_columns(src_column, tgt_column)
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
        of_a_run = {"--run": run, "--forced": forced or None}
        of_a_run |= {"--checkpoint": None if checkpoint == "best" else checkpoint}
        of_a_run |= {"--device": None if device == "auto" else device}
        _refuse("--hyp scores outputs that are there already", of_a_run | making)
        if not tgt and not data:
            raise UsageError("give the references: --tgt, or --data")
        corpus = open_test_set(src or tgt or [], tgt or [], data or [], None, named)
        score_outputs(
            hyp,
            sides(corpus, tgt or [], console),
            metrics,
            with_sources=bool(src or data),
            worst=worst,
            report=report,
            console=console,
            as_json=json_,
        )
        return
    if forced:
        _refuse("--forced translates nothing", {"--metric": metric} | making)
    terms = Glossary.load(glossary) if glossary else None
    directory = find_run(run, console)
    corpus = open_test_set(src or [], tgt or [], data or [], directory, named)
    test_set = sides(corpus, tgt or [], console)
    if forced:
        score_given(
            directory,
            test_set,
            checkpoint=checkpoint,
            device=device,
            worst=worst,
            report=report,
            console=console,
            as_json=json_,
        )
        return
    console.say(f"translating {len(test_set.sources):,} sentences with {directory}")
    with importing():
        from ..seq2seq.device import keep_freed_memory
        from ..seq2seq.evaluation.test_set import evaluate_set
        from .results import print_result, show_sentences

    keep_freed_memory()
    with nullcontext() if output is None else OutputFile(output) as stream:
        bar = console.progress("translating", len(test_set.sources), "sentence")
        result = evaluate_set(
            directory,
            test_set.sources,
            test_set.references,
            metrics=metrics,
            checkpoint=checkpoint,
            beam_size=beam_size,
            length_penalty=length_penalty,
            no_repeat_ngram_size=no_repeat_ngram_size,
            glossary=terms,
            repair=to_repair(repair),
            device=device,
            warn=console.warn,
            on_done=bar.update,
        )
        bar.close()
        if stream is not None:
            stream.writelines(line + "\n" for line in result.outputs)
    show_sentences(result, test_set, examples=examples, worst=worst, report=report, console=console)
    print_result(result, as_json=json_)


def _refuse(why: str, flags: dict[str, Any]) -> None:
    """Refuses flags that would have no effect.

    Raises:
        UsageError: One of them is given.
    """
    from ..data.errors import UsageError

    given = [flag for flag, value in flags.items() if value is not None]
    if given:
        raise UsageError(f"{why}; it cannot be combined with {given[0]}")
