"""Made pairs: lines with the translations that a model gives them, and which of them are good enough to learn from."""

import json
import math
import statistics
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ...data.audit import REMOVED, Kind, audit
from ...data.corpus import Pair
from ...data.facts import is_loop
from ...seq2seq.decoding.config import CHUNK_TEXTS
from ...seq2seq.decoding.sampling import Sample
from ...seq2seq.decoding.search import Search
from ...system.files import ResumedFile, json_line, make_directory
from ...system.reporter import Reporter
from ..evaluation.loss import force
from ..translator import Translator
from .sources import TAGS

SAMPLED_FROM = 100_000
"""A model of at least this many pairs is sampled from; of fewer, what it draws is worse than its best guess."""
WORST = 0.1
"""Share of the made pairs that two models find least probable, and that are left out."""
BEST_FORWARD = 0.5
"""Share of the pairs with a made target that are taken: a wrong target teaches what is wrong."""
ODD_LENGTH = 3.0
"""Standard deviations of the ratio of lengths from that of the run's own pairs."""
_CLEANED: tuple[Kind, ...] = tuple(kind for kind in REMOVED if kind != "shifted")


@dataclass(frozen=True)
class Made:
    """A line, its translation, and how probable two models find them, each from 0 to 1.

    Attributes:
        confidence: Of the model that translated.
        forced: Of a model of the opposite direction, which was given both; None where they are too long for it, where
            the translation repeats itself, and where no such model was asked.
    """

    text: str
    output: str
    confidence: float
    forced: float | None

    @property
    def score(self) -> float:
        """How probable both find it, in nats."""
        return math.log(max(self.confidence, 1e-30)) + math.log(max(self.forced or 0.0, 1e-30))


def search_for(translator: Translator, genuine: int) -> Search:
    """How text is translated back by a model of `genuine` pairs."""
    return Sample() if genuine >= SAMPLED_FROM else translator.search()


def make(
    path: Path,
    lines: Sequence[str],
    translator: Translator,
    judge: Translator | None,
    search: Search,
    reporter: Reporter,
    work: str,
) -> list[Made]:
    """Translates lines into a file, or goes on where that was interrupted; and reads it.

    Args:
        judge: A model of the opposite direction, which scores what comes out.
        work: Names the work: what another one left unfinished is not taken for this one's.
    """
    make_directory(path.parent)
    file = ResumedFile(path, work)
    with file as stream, closing(reporter.progress("translating", len(lines), "line", file.done)) as bar:
        for start in range(file.done, len(lines), CHUNK_TEXTS):
            texts = lines[start : start + CHUNK_TEXTS]
            for record in translated(texts, translator, judge, search, start):
                stream.write(json_line(vars(record)) + "\n")
            file.save()
            bar.update(start + len(texts))
    return read_made(path)


def read_made(path: Path) -> list[Made]:
    """What `make` wrote."""
    with open(path, encoding="utf-8") as stream:
        return [Made(**json.loads(line)) for line in stream]


def translated(
    texts: Sequence[str], translator: Translator, judge: Translator | None, search: Search, first: int
) -> list[Made]:
    """What a model makes of some lines, of which the first has this number, and what another one thinks of it.

    With a judge, outputs that lack placeholders or repeat themselves are not repaired: `kept` leaves them out. To
    repair a tenth of the lines of documentation took three times as long as to translate all of them.
    """
    found = translator.translate(texts, search=search, first_line=first, repair=None if judge is None else False)
    if judge is None:
        return [Made(text, one.text, one.confidence, None) for text, one in zip(texts, found, strict=True)]
    outputs, limit = [one.text for one in found], translator.facts.limit
    return [
        Made(text, one.text, one.confidence, None if is_loop(one.text, text, limit) else score and score.confidence)
        for text, one, score in zip(texts, found, force(judge, outputs, texts), strict=True)
    ]


def kept(made: Sequence[Made], kind: str, genuine: Sequence[Pair], dev: Sequence[Pair]) -> list[Pair]:
    """The made pairs to learn from, their sources with the tag of their kind.

    Args:
        kind: `back`: the sources were made; `forward`: the targets were.
        genuine: The run's own pairs, whose ratios of lengths are the measure.
    """
    pairs = [(one.output, one.text) if kind == "back" else (one.text, one.output) for one in made]
    ratios = [_ratio(pair) for pair in genuine]
    usual, spread = statistics.fmean(ratios), max(statistics.pstdev(ratios), 0.1)
    faulty = audit(pairs, dev).rows(_CLEANED)
    fit = [
        row
        for row, pair in enumerate(pairs)
        if row not in faulty and made[row].forced is not None and abs(_ratio(pair) - usual) <= ODD_LENGTH * spread
    ]
    share = 1 - WORST if kind == "back" else BEST_FORWARD
    best = sorted(fit, key=lambda row: made[row].score, reverse=True)[: math.ceil(share * len(fit))]
    return [(f"{TAGS[kind]} {pairs[row][0]}", pairs[row][1]) for row in sorted(best)]


def _ratio(pair: Pair) -> float:
    return math.log((len(pair[0]) + 1) / (len(pair[1]) + 1))
