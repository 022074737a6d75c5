"""How well confidence, and the chrF that is projected from it and other signs, go with the chrF of sentences.

    python benchmarks/confidence.py RUN --src valid.src --tgt valid.tgt --test-src test.src --test-tgt test.tgt

Calibrates with a validation set, as `tfm evaluate --calibrate` does, and prints a row for it, in which each sentence is
projected by the others, and a row for the test set, of which nothing is known before. The run stays as it is.
"""

import argparse
from pathlib import Path

from common import markdown_table, note, read_lines, report_errors

from tfm.data.cleaning import clean
from tfm.engine import Translator
from tfm.engine.evaluation.reading import spaced
from tfm.engine.evaluation.scores import correlation, sentence_chrf
from tfm.engine.projection import Projection, agreement, fit_calibration

HEADER = ("run, set", "sentences", "chrF", "r of confidence", "r of projection", "in the interval", "its width")


def read(src: Path, tgt: Path, count: int) -> tuple[list[str], list[str]]:
    """At most `count` pairs with a text on both sides, evenly spaced."""
    pairs = [pair for pair in zip(read_lines(src), read_lines(tgt), strict=True) if all(map(clean, pair))]
    sources, references = zip(*spaced(pairs, count), strict=True)
    return list(sources), list(references)


def row(name: str, confidences: list[float], projections: list[Projection | None], chrf: list[float]) -> list[str]:
    """A row of the table."""
    found = agreement(projections, chrf)
    assert found is not None and found.correlation is not None
    numbers = f"{sum(chrf) / len(chrf):.1f}", f"{correlation(confidences, chrf):.2f}", f"{found.correlation:.2f}"
    return [name, f"{len(chrf):,}", *numbers, f"{100 * found.covered:.1f} %", f"{found.width:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    for name in ("src", "tgt", "test-src", "test-tgt"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=1_000)
    asked = parser.parse_args()
    translator = Translator.load(asked.run)
    translator.calibration = None  # that of another set, perhaps
    assert translator.checkpoint is not None
    rows: list[list[str]] = []
    for name, src, tgt in (("validation", asked.src, asked.tgt), ("test", asked.test_src, asked.test_tgt)):
        sources, references = read(src, tgt, asked.sentences)
        found = translator.translate(sources)
        chrf = sentence_chrf([one.text for one in found], [[one] for one in references])
        if name == "validation":
            search = translator.search()
            translator.calibration, projections = fit_calibration(found, chrf, search, translator.checkpoint)
        else:
            projections = [one.projected for one in found]
        rows.append(row(f"{asked.run.name}, {name}", [one.confidence for one in found], projections, chrf))
    note(markdown_table(HEADER, rows))


if __name__ == "__main__":
    report_errors(main)
