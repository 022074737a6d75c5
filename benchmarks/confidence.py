"""How well confidence, and the chrF that is projected from it and other signs, go with the chrF of sentences.

    python benchmarks/confidence.py RUN --src valid.src --tgt valid.tgt --test-src test.src --test-tgt test.tgt

Calibrates with a validation set, as `tfm evaluate --calibrate` does, and prints a row for it, in which each sentence is
projected by the others, and a row for the test set, of which nothing is known before. The run stays as it is.
"""

import argparse
from pathlib import Path

from tfm.data.cleaning import clean
from tfm.engine import Translator
from tfm.engine.evaluation.scores import correlation, sentence_chrf
from tfm.engine.projection import Projection, agreement, fit


def read(src: Path, tgt: Path, count: int) -> tuple[list[str], list[str]]:
    """At most `count` pairs with a text on both sides, evenly spaced."""
    sides = (path.read_text(encoding="utf-8").split("\n") for path in (src, tgt))
    pairs = [pair for pair in zip(*sides, strict=True) if all(map(clean, pair))]
    count = min(count, len(pairs))
    sources, references = zip(*(pairs[i * len(pairs) // count] for i in range(count)), strict=True)
    return list(sources), list(references)


def row(name: str, confidences: list[float], projections: list[Projection | None], chrf: list[float]) -> str:
    """A row of the table."""
    found = agreement(projections, chrf)
    assert found is not None and found.correlation is not None
    return (
        f"| {name} | {len(chrf):,} | {sum(chrf) / len(chrf):.1f} | {correlation(confidences, chrf):.2f}"
        f" | {found.correlation:.2f} | {100 * found.covered:.1f} % | {found.width:.0f} |"
    )


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
    print("| run, set | sentences | chrF | r of confidence | r of projection | in the interval | its width |")
    print("|---|---|---|---|---|---|---|")
    for name, src, tgt in (("validation", asked.src, asked.tgt), ("test", asked.test_src, asked.test_tgt)):
        sources, references = read(src, tgt, asked.sentences)
        found = translator.translate(sources)
        chrf = sentence_chrf([one.text for one in found], [[one] for one in references])
        if name == "validation":
            search = translator.search()
            translator.calibration, projections = fit(found, chrf, search, translator.checkpoint)
        else:
            projections = [one.projected for one in found]
        print(row(f"{asked.run.name}, {name}", [one.confidence for one in found], projections, chrf), flush=True)


if __name__ == "__main__":
    main()
