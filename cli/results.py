"""What `tfm evaluate` tells of a run: its scores, the sentences to look at, a file with all of them."""

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..engine.evaluation.loss import in_figures
from ..engine.evaluation.reading import TestSet
from ..engine.evaluation.test_set import TestResult
from ..system.console import Console
from ..system.files import OutputFile
from .outputs import compare_outputs
from .sentences import show, write_report

Evaluate = Callable[..., TestResult]


def score_run(
    run: Path,
    test_set: TestSet,
    evaluated: Evaluate,
    *,
    output: Path | None,
    examples: int,
    worst: int,
    report: Path | None,
    console: Console,
    as_json: bool,
) -> None:
    """Translates a test set, and tells the scores.

    Args:
        run: The run directory.
        test_set: Sources and references.
        evaluated: `evaluate_set` that lacks the run and who is told how far it is.
        output: File for the translations: a line for each entry, blank where it was left out.
        examples, worst, report: As of `show_sentences`.
        console: Shows sentences, and the progress.
        as_json: Print JSON.
    """
    with nullcontext() if output is None else OutputFile(output) as stream:
        result = _with_progress(run, test_set, evaluated, console)
        if stream is not None:
            lines = iter(result.outputs)
            stream.writelines((next(lines) if kept else "") + "\n" for kept in test_set.kept)
    show_sentences(result, test_set, examples=examples, worst=worst, report=report, console=console)
    print_result(result, as_json=as_json)


def compare_runs(
    runs: Sequence[Path],
    test_set: TestSet,
    metrics: Sequence[str],
    evaluated: Evaluate,
    *,
    worst: int,
    report: Path | None,
    console: Console,
    as_json: bool,
) -> None:
    """Translates a test set with each of several runs, and compares the outputs as `tfm evaluate --hyp` does files.

    Args:
        runs: The run directories.
        metrics: Some of those for which there is a test.
        test_set, evaluated, console, as_json: As of `score_run`.
        worst: So many sentences are shown in which the outputs differ most.
        report: File for all of them.
    """
    outputs = [_with_progress(run, test_set, evaluated, console).outputs for run in runs]
    shown = {"with_sources": True, "worst": worst, "report": report}
    compare_outputs("run", runs, outputs, test_set, metrics, **shown, console=console, as_json=as_json)


def _with_progress(run: Path, test_set: TestSet, evaluated: Evaluate, console: Console) -> TestResult:
    console.say(f"translating {len(test_set.sources):,} sentences with {run}")
    bar = console.progress("translating", len(test_set.sources), "sentence")
    result = evaluated(run, test_set.sources, test_set.references, on_done=bar.update)
    bar.close()
    return result


def show_sentences(
    result: TestResult,
    test_set: TestSet,
    *,
    examples: int,
    worst: int,
    report: Path | None,
    console: Console,
) -> None:
    """Shows some sentences, and writes all of them to a file.

    Args:
        result: The outputs, and their scores.
        test_set: What was translated.
        examples: So many are shown evenly spaced ..
        worst: .. and so many with the lowest chrF.
        report: The file; None for none.
        console: Shows them.
    """
    for row in range(0, len(test_set.sources), max(len(test_set.sources) // examples, 1)) if examples else ():
        show(console, "", _texts(row, test_set, result))
    order = sorted(range(len(test_set.sources)), key=lambda row: result.chrf[row])
    for row in order[:worst]:
        headline = (
            f"line {test_set.lines[row]:,}, chrF {result.chrf[row]:.1f}, confidence {result.confidences[row]:.2f}"
        )
        show(console, headline, _texts(row, test_set, result))
    write_report(report, (_sentence(row, test_set, result) for row in order))


def print_result(result: TestResult, *, as_json: bool) -> None:
    """Prints the scores, for a person or as JSON."""
    if as_json:
        print(json.dumps(_as_dict(result), ensure_ascii=False))
    else:
        _print(result)


def _texts(row: int, test_set: TestSet, result: TestResult) -> list[tuple[str, str]]:
    return [
        ("source", test_set.sources[row]),
        ("output", result.outputs[row]),
        ("reference", test_set.references[row][0]),
    ]


def _print(result: TestResult) -> None:
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
        print(f"loss   {result.loss:.4f}  (perplexity {in_figures(result.ppl, 3)}{some})")
    for one in result.scores:
        print(f"{one.name:<6} {one.value:.2f}  ({one.signature})")
    for group in result.groups if len(result.groups) > 1 else ():
        print(f"  {group}")
    if result.correlation is not None:
        print(f"confidence: its correlation with the chrF of the sentences is {result.correlation:.2f}")
    for name, kept in (("placeholders", result.placeholders), ("terms of the glossary", result.terms)):
        if kept.total:
            print(f"{name}: {kept.count:,} of {kept.total:,} kept ({kept.share:.2f} %)")
    counts = {
        "repeated themselves": result.looped,
        "searched for once more and replaced": result.repaired,
        "written anew for a term of the glossary": result.constrained,
        "with other numbers than the source": result.numbers,
        "of text that the vocabulary does not know": result.unknown,
    }
    for what, count in counts.items():
        if count:
            print(f"{count:,} of {sentences:,} outputs {what}")


def _sentence(row: int, test_set: TestSet, result: TestResult) -> dict[str, Any]:
    """All about one sentence."""
    forced = result.forced[row]
    return {
        "line": test_set.lines[row],
        "source": test_set.sources[row],
        "output": result.outputs[row],
        "references": test_set.references[row],
        "chrf": result.chrf[row],
        "confidence": result.confidences[row],
        "reference_log_prob": forced and forced.log_prob,
    }


def _as_dict(result: TestResult) -> dict[str, Any]:
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
        "repaired": result.repaired,
        "constrained": result.constrained,
        "numbers": result.numbers,
        "unknown": result.unknown,
    }
