"""Whether one set of outputs is better than another, or only luckier with these sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .scores import View, reference_streams, sacrebleu_metric

TESTED = ("bleu", "chrf", "ter")
"""Metrics for which there is a test."""


@dataclass(frozen=True)
class Comparison:
    """One metric of several sets of outputs for the same sources.

    Attributes:
        name: The metric.
        values: Of each set of outputs, in percent.
        margins: Half the width of the 95 % confidence interval of each value.
        p_values: Of each set but the first: how likely so large a difference from the first one is, if neither is
            better.
        signature: sacreBLEU's, with the number of samples and the seed; and how the text was seen.
    """

    name: str
    values: list[float]
    margins: list[float]
    p_values: list[float]
    signature: str


def compare(
    name: str, outputs: Sequence[Sequence[str]], references: Sequence[Sequence[str]], samples: int = 1000
) -> Comparison:
    """Paired bootstrap resampling (Koehn, 2004), by sacreBLEU: the test sets are drawn with replacement.

    Args:
        name: One of `TESTED`.
        outputs: Two sets or more; the others are compared with the first.
        references: For each sentence its references, one or more.
        samples: How many test sets are drawn.

    Raises:
        ValueError: The lengths differ, or there is no test for the metric.
    """
    from sacrebleu.significance import PairedTest

    if name not in TESTED:
        raise ValueError(f"there is a test for {', '.join(TESTED)}, but not for {name!r}")
    if any(len(one) != len(references) for one in outputs):
        raise ValueError(f"{[len(one) for one in outputs]} outputs, but {len(references)} references")
    seen = View(name, references)
    systems: Any = [(str(number), seen.texts(one)) for number, one in enumerate(outputs)]
    metrics = {name: sacrebleu_metric(name, seen.tokenizer)}
    streams = reference_streams(seen.all_references(references))
    test: Any = PairedTest(systems, metrics, streams, test_type="bs", n_samples=samples)
    signatures, found = test()
    (title,) = signatures
    results = found[title]
    return Comparison(
        name,
        values=[float(one.score) for one in results],
        margins=[float(one.ci) for one in results],
        # sacreBLEU counts what differs by more: where nothing differs, it would find the smallest p of all.
        p_values=[1.0 if one.score == results[0].score else float(one.p_value) for one in results[1:]],
        signature=str(signatures[title]) + seen.note,
    )
