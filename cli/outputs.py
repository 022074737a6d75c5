"""Scores of outputs that are there already, `tfm evaluate --hyp`, and whether one file or run beats another."""

import json
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import Any

from ..data.formats import refuse_known_format
from ..data.reading import read_lines
from ..engine.evaluation.reading import TestSet
from ..engine.evaluation.scores import TESTED, compare, score, sentence_chrf
from ..system.console import Console
from ..system.errors import DataError, UsageError
from .sentences import show, write_report


def score_files(
    paths: Sequence[Path],
    test_set: TestSet,
    metrics: Sequence[str],
    *,
    with_sources: bool,
    worst: int,
    report: Path | None,
    console: Console,
    as_json: bool,
) -> None:
    """Prints the scores of files of outputs, line by line those of the references.

    Args:
        paths: The files; each may also have a line for each entry that was left out.
        test_set: The references.
        metrics: Names of metrics.
        with_sources: Show the sources, too.
        worst: So many sentences are shown: those with the lowest chrF, or where the outputs differ most in it.
        report: File for all of them.
        console: Shows sentences.
        as_json: Print JSON.

    Raises:
        DataError: A file has another number of lines.
    """
    outputs = [_lines(path, test_set.kept) for path in paths]
    if len(paths) > 1:
        shown = {"with_sources": with_sources, "worst": worst, "report": report}
        compare_outputs("hyp", paths, outputs, test_set, metrics, **shown, console=console, as_json=as_json)
        return
    found = [score(name, outputs[0], test_set.references) for name in metrics]
    scores = {one.name: {"values": [one.value], "signature": one.signature} for one in found}
    lines = [f"{one.name:<6} {one.value:.2f}  ({one.signature})" for one in found]
    _each(paths, outputs, test_set, with_sources, worst, report, console)
    _print("hyp", paths, test_set, scores, lines, as_json)


def check_tested(metrics: Sequence[str], flag: str) -> None:
    """Refuses to compare several outputs by a metric for which there is no test.

    Raises:
        UsageError: There is one.
    """
    untested = [name for name in metrics if name not in TESTED]
    if untested:
        raise UsageError(f"{flag} twice compares by {', '.join(TESTED)}; there is no test for {untested[0]}")


def compare_outputs(
    kind: str,
    names: Sequence[Path],
    outputs: list[list[str]],
    test_set: TestSet,
    metrics: Sequence[str],
    *,
    with_sources: bool,
    worst: int,
    report: Path | None,
    console: Console,
    as_json: bool,
) -> None:
    """Prints the scores of several outputs, and whether the others differ from the first.

    Args:
        kind: What the names are called in JSON.
        names: Of the outputs: files, or runs.
        outputs: Of each one text for each entry.
        test_set, with_sources, worst, report, console, as_json: As of `score_files`.
        metrics: Some of `TESTED`.
    """
    compared = [compare(name, outputs, test_set.references) for name in metrics]
    scores = {
        one.name: {"values": one.values, "margins": one.margins, "p_values": one.p_values, "signature": one.signature}
        for one in compared
    }
    lines: list[str] = []
    for one in compared:
        lines.append(f"{one.name}  ({one.signature})")
        for name, value, margin, p in zip(names, one.values, one.margins, [None, *one.p_values], strict=True):
            lines.append(f"  {value:6.2f} ± {margin:.2f}  {name}{_verdict(names[0], p)}")
    _each(names, outputs, test_set, with_sources, worst, report, console)
    _print(kind, names, test_set, scores, lines, as_json)


def _print(
    kind: str, names: Sequence[Path], test_set: TestSet, scores: dict[str, Any], lines: list[str], as_json: bool
) -> None:
    sentences = len(test_set.references)
    if as_json:
        print(json.dumps({kind: list(map(str, names)), "sentences": sentences, "scores": scores}))
        return
    print(_counted(sentences, "sentence"))
    print("\n".join(lines))


def _each(
    paths: Sequence[Path],
    outputs: list[list[str]],
    test_set: TestSet,
    with_sources: bool,
    worst: int,
    report: Path | None,
    console: Console,
) -> None:
    """Sentence by sentence, the worst first, or those in which the outputs differ most."""
    if not worst and report is None:
        return
    sources, references, lines = test_set.sources, test_set.references, test_set.lines
    chrf = list(zip(*(sentence_chrf(one, references) for one in outputs), strict=True))
    alone = len(outputs) == 1
    order = sorted(range(len(references)), key=lambda row: chrf[row][0] if alone else min(chrf[row]) - max(chrf[row]))
    for row in order[:worst]:
        texts = [("source", sources[row])] if with_sources else []
        texts += [(str(path), one[row]) for path, one in zip(paths, outputs, strict=True)]
        headline = f"line {lines[row]:,}, chrF {' and '.join(f'{value:.1f}' for value in chrf[row])}"
        show(console, headline, [*texts, ("reference", references[row][0])])
    write_report(
        report,
        (
            {
                "line": lines[row],
                **({"source": sources[row]} if with_sources else {}),
                "outputs": [one[row] for one in outputs],
                "references": references[row],
                "chrf": list(chrf[row]),
            }
            for row in order
        ),
    )


def _verdict(first: Path, p: float | None) -> str:
    if p is None:
        return ""
    return f"  differs from {first} (p = {p:.3f})" if p < 0.05 else f"  no clear difference from {first} (p = {p:.3f})"


def _lines(path: Path, kept: Sequence[bool]) -> list[str]:
    refuse_known_format(path, "--hyp takes outputs line by line")
    lines = [line or "" for line in read_lines(path)]
    if len(lines) == len(kept):
        return list(compress(lines, kept))
    if len(lines) != sum(kept):
        raise DataError(f"{path} has {_counted(len(lines), 'line')}, but there are {_counted(sum(kept), 'reference')}")
    return lines


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
