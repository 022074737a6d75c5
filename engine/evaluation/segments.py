"""Sentence by sentence: the chrF of each, scores by the length of the source, and what a confidence is worth."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...data.cleaning import clean
from .scores import View, sacrebleu_metric, score

LENGTHS = (0, 10, 20, 40)
"""Where the groups of source lengths begin, in words; in characters four times as many where words have no spaces."""
MIN_GROUP = 10
"""A smaller group has no score to speak of."""


@dataclass(frozen=True)
class Group:
    """Sentences with sources of similar length.

    Attributes:
        least, most: Words of their sources (or characters); None if there is no most.
        unit: What is counted.
        sentences: How many.
        bleu, chrf: Of them.
    """

    least: int
    most: int | None
    unit: str
    sentences: int
    bleu: float
    chrf: float

    def __str__(self) -> str:
        span = f"{self.least} and more" if self.most is None else f"{self.least} to {self.most}"
        return f"{span} {self.unit}: {self.sentences:,} sentences, BLEU {self.bleu:.2f}, chrF {self.chrf:.2f}"


def sentence_chrf(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> list[float]:
    """chrF of each sentence, 0 to 100."""
    seen = View("chrf", references)
    metric = sacrebleu_metric("chrf", seen.tokenizer)
    pairs = zip(seen.texts(outputs), seen.all_references(references), strict=True)
    return [metric.sentence_score(output, refs).score for output, refs in pairs]


def by_length(sources: Sequence[str], outputs: Sequence[str], references: Sequence[Sequence[str]]) -> list[Group]:
    """Scores of the sentences in groups of similar source length; groups too small for a score are left out."""
    sources = list(map(clean, sources))
    spaces = sum(text.count(" ") for text in sources)
    words = spaces >= len(sources)
    lengths = [len(text.split()) if words else len(text) for text in sources]
    begins = [begin if words else 4 * begin for begin in LENGTHS]
    found: list[Group] = []
    for begin, end in zip(begins, [*begins[1:], None], strict=True):
        rows = [i for i, n in enumerate(lengths) if n > begin and (end is None or n <= end)]
        if len(rows) < MIN_GROUP:
            continue
        hypotheses, refs = [outputs[i] for i in rows], [references[i] for i in rows]
        bleu, chrf = (score(name, hypotheses, refs).value for name in ("bleu", "chrf"))
        found.append(Group(begin + 1, end, "words" if words else "characters", len(rows), bleu, chrf))
    return found


def correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Pearson's r; None where it is not defined: too few numbers, or all of them equal."""
    if len(first) < MIN_GROUP or not np.std(first) or not np.std(second):
        return None
    return float(np.corrcoef(first, second)[0, 1])
