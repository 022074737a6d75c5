"""`tfm evaluate`: translates a test set and scores it."""

import json
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

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
    Run,
    Src,
    SrcColumn,
    TgtColumn,
    named_columns,
)


def evaluate(
    run: Run = None,
    src: Src = None,
    tgt: Annotated[
        list[Path] | None,
        typer.Option(
            "--tgt", metavar="FILE", help="References, line by line; in a .tsv, several per line, separated by tabs."
        ),
    ] = None,
    data: Data = None,
    src_column: SrcColumn = None,
    tgt_column: TgtColumn = None,
    hyp: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Outputs to score instead of those of a run; a second file is compared with the first."
        ),
    ] = None,
    checkpoint: Checkpoint = "best",
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    no_repeat_ngram_size: NoRepeatNgramSize = None,
    glossary: GlossaryFile = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="bleu, chrf, ter, exact or wer; may be repeated. [default: bleu and chrf]"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File for the translations.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File for each sentence's scores, as JSON Lines, worst first."),
    ] = None,
    forced: Annotated[
        bool,
        typer.Option("--forced", help="Translate nothing: how probable does the run hold the translations given?"),
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
    from .sentences import show, write_report
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
        "--output": output,
        "--examples": examples or None,
    }
    if hyp:
        _refuse("--hyp scores outputs that are there already", {"--run": run, "--forced": forced or None} | making)
        if not tgt and not data:
            raise UsageError("give the references: --tgt, or --data")
        corpus = open_test_set(src or tgt or [], tgt or [], data or [], None, named)
        sources, references, kept = sides(corpus, tgt or [], console)
        score_outputs(
            hyp,
            sources if src or data else None,
            references,
            metrics,
            kept=kept,
            worst=worst,
            report=report,
            console=console,
            as_json=json_,
        )
        return
    if forced:
        _refuse("--forced translates nothing", {"--metric": metric} | making)
        directory = find_run(run, console)
        corpus = open_test_set(src or [], tgt or [], data or [], directory, named)
        sources, references, _ = sides(corpus, tgt or [], console)
        score_given(
            directory,
            sources,
            [refs[0] for refs in references],
            checkpoint=checkpoint,
            device=device,
            worst=worst,
            report=report,
            console=console,
            as_json=json_,
        )
        return
    terms = Glossary.load(glossary) if glossary else None
    directory = find_run(run, console)
    corpus = open_test_set(src or [], tgt or [], data or [], directory, named)
    sources, references, _ = sides(corpus, tgt or [], console)
    with nullcontext() if output is None else OutputFile(output) as stream:
        with importing():
            from ..seq2seq.device import keep_freed_memory
            from ..seq2seq.evaluation.test_set import evaluate_set

        keep_freed_memory()
        bar = console.progress("translating", len(sources), "sentence")
        result = evaluate_set(
            directory,
            sources,
            references,
            metrics=metrics,
            checkpoint=checkpoint,
            beam_size=beam_size,
            length_penalty=length_penalty,
            no_repeat_ngram_size=no_repeat_ngram_size,
            glossary=terms,
            device=device,
            warn=console.warn,
            on_done=bar.update,
        )
        bar.close()
        if stream is not None:
            stream.writelines(line + "\n" for line in result.outputs)
    for i in range(0, len(sources), max(len(sources) // examples, 1)) if examples else ():
        show(console, "", _texts(i, sources, references, result))
    order = sorted(range(len(sources)), key=lambda row: result.chrf[row])
    for row in order[:worst]:
        headline = f"line {row + 1:,}, chrF {result.chrf[row]:.1f}, confidence {result.confidences[row]:.2f}"
        show(console, headline, _texts(row, sources, references, result))
    write_report(report, (_sentence(row, sources, references, result) for row in order))
    if json_:
        print(json.dumps(_as_dict(result), ensure_ascii=False))
    else:
        _print_result(result)


def _refuse(why: str, flags: dict[str, Any]) -> None:
    """Refuses flags that would have no effect.

    Raises:
        UsageError: One of them is given.
    """
    from ..data.errors import UsageError

    given = [flag for flag, value in flags.items() if value is not None]
    if given:
        raise UsageError(f"{why}; it cannot be combined with {given[0]}")


def _texts(row: int, sources: list[str], references: list[list[str]], result: Any) -> list[tuple[str, str]]:
    return [("source", sources[row]), ("output", result.outputs[row]), ("reference", references[row][0])]


def _print_result(result: Any) -> None:
    """For a person."""
    sentences = len(result.outputs)
    once = f", {result.no_repeat_ngram_size} pieces in a row at most once" if result.no_repeat_ngram_size else ""
    print(
        f"{result.checkpoint}, {sentences:,} sentences, beam {result.beam_size},"
        f" length penalty {result.length_penalty}{once}"
    )
    if result.loss_sentences:
        some = (
            "" if result.loss_sentences == sentences else f", of the {result.loss_sentences:,} that fit the model whole"
        )
        print(f"loss   {result.loss:.4f}  (perplexity {result.ppl:.3f}{some})")
    for one in result.scores:
        print(f"{one.name:<6} {one.value:.2f}  ({one.signature})")
    for group in result.groups if len(result.groups) > 1 else ():
        print(f"  {group}")
    if result.correlation is not None:
        print(f"confidence: its correlation with the chrF of the sentences is {result.correlation:.2f}")
    for name, kept in (("placeholders", result.placeholders), ("terms of the glossary", result.terms)):
        if kept.total:
            print(f"{name}: {kept.count:,} of {kept.total:,} kept ({kept.share:.2f} %)")
    if result.looped:
        print(f"loops: {result.looped:,} of {sentences:,} outputs repeated themselves, and were searched once more")


def _sentence(row: int, sources: list[str], references: list[list[str]], result: Any) -> dict[str, Any]:
    """All about one sentence."""
    forced = result.forced[row]
    return {
        "line": row + 1,
        "source": sources[row],
        "output": result.outputs[row],
        "references": references[row],
        "chrf": result.chrf[row],
        "confidence": result.confidences[row],
        "reference_log_prob": forced and forced.log_prob,
    }


def _as_dict(result: Any) -> dict[str, Any]:
    return {
        "checkpoint": str(result.checkpoint),
        "sentences": len(result.outputs),
        "beam_size": result.beam_size,
        "length_penalty": result.length_penalty,
        "no_repeat_ngram_size": result.no_repeat_ngram_size,
        "loss": result.loss if result.loss_sentences else None,
        "ppl": result.ppl if result.loss_sentences else None,
        "loss_sentences": result.loss_sentences,
        "scores": {one.name: one.value for one in result.scores},
        "signatures": {one.name: one.signature for one in result.scores},
        "by_length": [asdict(group) for group in result.groups],
        "confidence_correlation": result.correlation,
        "placeholders": {"kept": result.placeholders.count, "of": result.placeholders.total},
        "terms": {"kept": result.terms.count, "of": result.terms.total},
        "looped": result.looped,
    }
