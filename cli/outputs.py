"""`tfm evaluate --hyp`: scores of outputs that are there already, and whether one file of them beats another."""

import json
from collections.abc import Sequence
from pathlib import Path

from ..data.errors import DataError, UsageError
from ..data.reading import read_lines
from ..seq2seq.evaluation.scores import score
from ..seq2seq.evaluation.significance import TESTED, compare


def score_outputs(paths: Sequence[Path], references: list[list[str]], metrics: Sequence[str], *, as_json: bool) -> None:
    """Prints the scores of files of outputs, line by line those of the references.

    Raises:
        DataError: A file has another number of lines.
        UsageError: Several files are to be compared by a metric for which there is no test.
    """
    outputs = [_lines(path, len(references)) for path in paths]
    if len(outputs) == 1:
        found = [score(name, outputs[0], references) for name in metrics]
        scores = {one.name: {"values": [one.value], "signature": one.signature} for one in found}
        lines = [f"{one.name:<6} {one.value:.2f}  ({one.signature})" for one in found]
    else:
        untested = [name for name in metrics if name not in TESTED]
        if untested:
            raise UsageError(f"--hyp twice compares by {', '.join(TESTED)}; there is no test for {untested[0]}")
        compared = [compare(name, outputs, references) for name in metrics]
        scores = {
            one.name: {
                "values": one.values,
                "margins": one.margins,
                "p_values": one.p_values,
                "signature": one.signature,
            }
            for one in compared
        }
        lines = []
        for one in compared:
            lines.append(f"{one.name}  ({one.signature})")
            for path, value, margin, p in zip(paths, one.values, one.margins, [None, *one.p_values], strict=True):
                lines.append(f"  {value:6.2f} ± {margin:.2f}  {path}{_verdict(paths[0], p)}")
    if as_json:
        print(json.dumps({"hyp": list(map(str, paths)), "sentences": len(references), "scores": scores}))
        return
    print(f"{len(references):,} sentences")
    print("\n".join(lines))


def _verdict(first: Path, p: float | None) -> str:
    if p is None:
        return ""
    return f"  differs from {first} (p = {p:.3f})" if p < 0.05 else f"  no clear difference from {first} (p = {p:.3f})"


def _lines(path: Path, expected: int) -> list[str]:
    lines = [line or "" for line in read_lines(path)]
    if len(lines) != expected:
        raise DataError(f"{path} has {len(lines):,} lines, but there are {expected:,} references")
    return lines
