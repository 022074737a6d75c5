"""Scores of translations against references: of a set, of each sentence, and whether a difference is luck.

BLEU, chrF and TER are sacreBLEU's, with its signature.

Text is cleaned before it is compared. Where a script has no spaces between words, WER and TER count characters as a
reader sees them; TER in Chinese is by sacreBLEU's own rule, as is usual.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...data.cleaning import clean
from ...data.scripts import are_unspaced, graphemes, is_chinese
from ...system.errors import UsageError

CLEANED = "|cleaned:nfc"
"""What each signature ends with: both sides have passed `data.cleaning.clean`."""


@dataclass(frozen=True)
class Score:
    """One metric of one set."""

    name: str
    value: float
    """In percent; higher is better except for TER and WER."""
    signature: str
    """What makes it reproducible: sacreBLEU's signature, or a description of ours."""


def score(name: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
    """Scores a set by one of `METRICS`; each sentence has one or more references.

    Both sides are cleaned first, so that text has one score, composed or decomposed.
    """
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses, but {len(references)} references")
    if name not in METRICS:
        raise ValueError(_unknown(name))
    seen = SeenText(name, references)
    outputs, wanted = seen.texts(hypotheses), seen.all_references(references)
    if name in TESTED:
        metric = sacrebleu_metric(name, seen.tokenizer)
        value = metric.corpus_score(outputs, reference_streams(wanted)).score
        return Score(name, value, str(metric.get_signature()) + seen.note)
    function, signature = _OURS[name]
    return Score(name, function(outputs, wanted), signature + seen.note)


def _unknown(name: str) -> str:
    return f"metric must be one of {', '.join(METRICS)}, but is {name!r}"


class SeenText:
    """How a metric sees text: cleaned; where it counts words and the script has no spaces, character by character.

    The references decide about the script. `tokenizer` is what splits text into words; `note` is what the signature
    says of it.
    """

    def __init__(self, metric: str, references: Sequence[Sequence[str]]) -> None:
        self.tokenizer = bleu_tokenizer(ref for refs in references for ref in refs)
        self._by_grapheme = (metric, self.tokenizer) in {("wer", "zh"), ("wer", "char"), ("ter", "char")}
        self.note = f"|unit:grapheme{CLEANED}" if self._by_grapheme else CLEANED

    def texts(self, texts: Iterable[str]) -> list[str]:
        """Texts as the metric sees them."""
        cleaned = map(clean, texts)
        return [" ".join(graphemes(text.replace(" ", ""))) if self._by_grapheme else text for text in cleaned]

    def all_references(self, references: Iterable[Iterable[str]]) -> list[list[str]]:
        """The same of all references of each sentence."""
        return [self.texts(refs) for refs in references]


def check_metrics(names: Iterable[str]) -> None:
    """Refuses what is no metric: before hours of translating, and not after."""
    for name in names:
        if name not in METRICS:
            raise UsageError(_unknown(name))


def sacrebleu_metric(name: str, tokenizer: str) -> Any:
    """The metric of sacreBLEU for text whose words `bleu_tokenizer` splits so: `bleu`, `chrf` or `ter`."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    match name:
        case "bleu":
            return BLEU(tokenize=tokenizer, force=True)  # without a warning about full stops, which is no use here
        case "chrf":
            return CHRF()
        case _:
            chinese = tokenizer == "zh"
            return TER(normalized=chinese, asian_support=chinese)


def reference_streams(references: Sequence[Sequence[str]]) -> list[list[str]]:
    """One list for each reference number, as sacreBLEU wants them; a sentence with fewer repeats its last."""
    most = max((len(refs) for refs in references), default=1)
    return [[refs[min(i, len(refs) - 1)] for refs in references] for i in range(most)]


def bleu_tokenizer(references: Iterable[str]) -> str:
    """What splits text into the words that BLEU, TER and WER count: by the script of the references.

    sacreBLEU's default, `13a`, splits at spaces and punctuation, and takes a sentence without spaces for one word. So
    Chinese has `zh`, and other text most of whose letters belong to a script without spaces has `char`.
    """
    references = list(references)
    if not are_unspaced(references):
        return "13a"
    return "zh" if is_chinese(references) else "char"


def exact_share(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Share of the hypotheses that are equal to a reference, in percent."""
    hits = sum(hypothesis in refs for hypothesis, refs in zip(hypotheses, references, strict=True))
    return 100 * hits / max(len(hypotheses), 1)


def word_error_rate(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Word substitutions, insertions and deletions per reference word, in percent, against the closest reference."""
    edits = words = 0
    for hypothesis, refs in zip(hypotheses, references, strict=True):
        distances = [(edit_distance(hypothesis.split(), ref.split()), len(ref.split())) for ref in refs]
        distance, length = min(distances, key=lambda pair: (pair[0] / max(pair[1], 1), pair))
        edits += distance
        words += length
    return 100 * edits / max(words, 1)


def edit_distance(a: Sequence[str], b: Sequence[str]) -> int:
    """Levenshtein distance between two sequences."""
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        current = [i]
        for j, y in enumerate(b, start=1):
            current.append(min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (x != y)))
        previous = current
    return previous[-1]


TESTED = ("bleu", "chrf", "ter")
"""The metrics of sacreBLEU, for which there is a test of significance."""
_OURS = {
    "exact": (exact_share, "share of outputs equal to a reference"),
    "wer": (word_error_rate, "word edits / reference words, closest reference"),
}
"""The other metrics: how they are computed from cleaned text, and what they are."""
METRICS: tuple[str, ...] = (*TESTED, *_OURS)


# --- sentence by sentence ---

LENGTHS = (0, 10, 20, 40)
"""Where the groups of source lengths begin, in words; in characters four times as many where words have no spaces."""
MIN_GROUP = 10
"""A smaller group has no score to speak of."""


@dataclass(frozen=True)
class LengthGroup:
    """Sentences whose sources have from `least` to `most` words, or characters, as `unit` says."""

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
    seen = SeenText("chrf", references)
    metric = sacrebleu_metric("chrf", seen.tokenizer)
    pairs = zip(seen.texts(outputs), seen.all_references(references), strict=True)
    return [metric.sentence_score(output, refs).score for output, refs in pairs]


def scores_by_length(
    sources: Sequence[str], outputs: Sequence[str], references: Sequence[Sequence[str]]
) -> list[LengthGroup]:
    """Scores of the sentences in groups of similar source length; groups too small for a score are left out."""
    sources = list(map(clean, sources))
    spaces = sum(text.count(" ") for text in sources)
    words = spaces >= len(sources)
    lengths = [len(text.split()) if words else len(text) for text in sources]
    begins = [begin if words else 4 * begin for begin in LENGTHS]
    found: list[LengthGroup] = []
    for begin, end in zip(begins, [*begins[1:], None], strict=True):
        rows = [i for i, n in enumerate(lengths) if n > begin and (end is None or n <= end)]
        if len(rows) < MIN_GROUP:
            continue
        hypotheses, refs = [outputs[i] for i in rows], [references[i] for i in rows]
        bleu, chrf = (score(name, hypotheses, refs).value for name in ("bleu", "chrf"))
        found.append(LengthGroup(begin + 1, end, "words" if words else "characters", len(rows), bleu, chrf))
    return found


def correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Pearson's r; None where it is not defined: too few numbers, or all of them equal."""
    if len(first) < MIN_GROUP or not np.std(first) or not np.std(second):
        return None
    return float(np.corrcoef(first, second)[0, 1])


# --- significance ---


@dataclass(frozen=True)
class Comparison:
    """One metric of several sets of outputs for the same sources.

    Attributes:
        values: The score of each set of outputs, in percent; `margins` are half of their 95 % confidence intervals.
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
    """Paired bootstrap resampling (Koehn, 2004), by sacreBLEU: `samples` test sets are drawn with replacement.

    The metric is one of `TESTED`. Of two or more sets of outputs the others are compared with the first.
    """
    from sacrebleu.significance import PairedTest

    if name not in TESTED:
        raise ValueError(f"there is a test for {', '.join(TESTED)}, but not for {name!r}")
    if any(len(one) != len(references) for one in outputs):
        raise ValueError(f"{[len(one) for one in outputs]} outputs, but {len(references)} references")
    seen = SeenText(name, references)
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
