"""Scores of translations against references. BLEU, chrF and TER are sacreBLEU's, with its signature."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ...data.errors import UsageError

MetricName = Literal["bleu", "chrf", "ter", "exact", "wer"]
METRICS: tuple[str, ...] = get_args(MetricName)


def check_metrics(names: Iterable[str]) -> None:
    """Refuses names that are none.

    Raises:
        UsageError: One is none.
    """
    for name in names:
        if name not in METRICS:
            raise UsageError(f"metric must be one of {', '.join(METRICS)}, but is {name!r}")


COMPARED_EXACTLY = ("exact", "wer")
"""Metrics of equal strings; their references must be cleaned as the model's output is."""

# Scripts that write words without spaces between them. The last one: Thai, Lao, Tibetan, Burmese, Khmer.
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_OTHERS = re.compile(r"[\u0e00-\u109f\u1780-\u17ff]")


@dataclass(frozen=True)
class Score:
    """One metric of one set, in percent.

    Attributes:
        name: The metric.
        value: Its value; higher is better except for TER and WER.
        signature: What makes it reproducible: sacreBLEU's signature, or a description of ours.
    """

    name: str
    value: float
    signature: str


def score(name: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
    """Scores a set.

    Args:
        name: One of `METRICS`.
        hypotheses: One output per sentence.
        references: For each sentence its references, one or more.

    Raises:
        ValueError: The lengths differ, or the metric is unknown.
    """
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses, but {len(references)} references")
    match name:
        case "bleu" | "chrf" | "ter":
            return _sacrebleu(name, hypotheses, references)
        case "exact":
            hits = sum(hyp in refs for hyp, refs in zip(hypotheses, references, strict=True))
            return Score("exact", 100 * hits / max(len(hypotheses), 1), "share of outputs equal to a reference")
        case "wer":
            return Score(
                "wer", word_error_rate(hypotheses, references), "word edits / reference words, closest reference"
            )
        case _:
            raise ValueError(f"metric must be one of {', '.join(METRICS)}, but is {name!r}")


def _sacrebleu(name: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
    metric = sacrebleu_metric(name, references)
    value = metric.corpus_score(list(hypotheses), reference_streams(references)).score
    return Score(name, value, str(metric.get_signature()))


def sacrebleu_metric(name: str, references: Sequence[Sequence[str]]) -> Any:
    """The metric of sacreBLEU, for text in the script of the references: `bleu`, `chrf` or `ter`."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    match name:
        case "bleu":
            return BLEU(tokenize=bleu_tokenizer(ref for refs in references for ref in refs))
        case "chrf":
            return CHRF()
        case _:
            asian = bleu_tokenizer(ref for refs in references for ref in refs) != "13a"
            return TER(normalized=asian, asian_support=asian)


def reference_streams(references: Sequence[Sequence[str]]) -> list[list[str]]:
    """One list for each reference number, as sacreBLEU wants them; a sentence with fewer repeats its last."""
    most = max((len(refs) for refs in references), default=1)
    return [[refs[min(i, len(refs) - 1)] for refs in references] for i in range(most)]


def bleu_tokenizer(references: Iterable[str]) -> str:
    """What splits text into the words that BLEU counts: by the script of the references.

    sacreBLEU's default, `13a`, splits at spaces and punctuation, and takes a sentence without spaces for one word.

    Returns:
        `zh` for Chinese, `char` for other text most of whose letters belong to a script without spaces, else `13a`.
    """
    han = kana = others = letters = 0
    for text in references:
        han += len(_HAN.findall(text))
        kana += len(_KANA.findall(text))
        others += len(_OTHERS.findall(text))
        letters += sum(map(str.isalpha, text))
    unspaced = han + kana + others
    if 2 * unspaced <= letters or not unspaced:
        return "13a"
    return "zh" if han > 0.95 * unspaced else "char"


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
