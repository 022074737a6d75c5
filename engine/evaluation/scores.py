"""Scores of translations against references. BLEU, chrF and TER are sacreBLEU's, with its signature.

Text is cleaned before it is compared. Where a script has no spaces between words, WER counts characters, and so does
TER in Chinese, as is usual; elsewhere TER is refused.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import regex

from ...data.cleaning import clean
from ...system.errors import UsageError

MetricName = Literal["bleu", "chrf", "ter", "exact", "wer"]
METRICS: tuple[str, ...] = get_args(MetricName)


CLEANED = "|cleaned:nfc"
"""What each signature ends with: both sides have passed `data.cleaning.clean`."""

# Scripts that write words without spaces between them. Besides Chinese and Japanese those in which Unicode wants a
# dictionary to break lines (Thai, Lao, Khmer, Burmese and their kin), and Tibetan, Yi, Balinese, Javanese.
_HAN = regex.compile(r"\p{Han}")
_KANA = regex.compile(r"(?V1)[[\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Bopomofo}]&&\p{L}--\p{Han}]")
_OTHERS = regex.compile(r"[\p{Line_Break=Complex_Context}\p{Tibetan}\p{Yi}\p{Balinese}\p{Javanese}]")
_LETTERS = regex.compile(r"\p{Alphabetic}")


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
    """Scores a set. Both sides are cleaned first, so that text has one score, composed or decomposed.

    Args:
        name: One of `METRICS`.
        hypotheses: One output per sentence.
        references: For each sentence its references, one or more.

    Raises:
        ValueError: The lengths differ, or the metric is unknown.
    """
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses, but {len(references)} references")
    seen = View(name, references)
    outputs, wanted = seen.texts(hypotheses), seen.all_references(references)
    match name:
        case "bleu" | "chrf" | "ter":
            metric = sacrebleu_metric(name, seen.tokenizer)
            value = metric.corpus_score(outputs, reference_streams(wanted)).score
            signature = str(metric.get_signature())
        case "exact":
            hits = sum(output in refs for output, refs in zip(outputs, wanted, strict=True))
            value = 100 * hits / max(len(outputs), 1)
            signature = "share of outputs equal to a reference"
        case "wer":
            value = word_error_rate(outputs, wanted)
            signature = "word edits / reference words, closest reference"
        case _:
            raise ValueError(f"metric must be one of {', '.join(METRICS)}, but is {name!r}")
    return Score(name, value, signature + seen.note)


class View:
    """How a metric sees text: cleaned; where it counts words and the script has no spaces, character by character.

    Args:
        metric: Its name.
        references: Decide about the script.

    Attributes:
        tokenizer: What splits text into words: `bleu_tokenizer`.
        note: What the signature says of it.

    Raises:
        UsageError: The metric is TER, and nothing says what its words are.
    """

    def __init__(self, metric: str, references: Sequence[Sequence[str]]) -> None:
        self.tokenizer = bleu_tokenizer(ref for refs in references for ref in refs)
        if metric == "ter" and self.tokenizer == "char":
            raise UsageError(
                "ter counts words, which the references do not separate by spaces; take chrf, or wer, which counts"
                " their characters"
            )
        self._by_character = metric == "wer" and self.tokenizer != "13a"
        self.note = f"|unit:character{CLEANED}" if self._by_character else CLEANED

    def texts(self, texts: Iterable[str]) -> list[str]:
        """Texts as the metric sees them."""
        cleaned = map(clean, texts)
        return [" ".join(text.replace(" ", "")) for text in cleaned] if self._by_character else list(cleaned)

    def all_references(self, references: Iterable[Iterable[str]]) -> list[list[str]]:
        """The same of all references of each sentence."""
        return [self.texts(refs) for refs in references]


def check_metrics(names: Iterable[str], references: Sequence[Sequence[str]] = ()) -> None:
    """Looks whether there are such metrics, for such references: before hours of translating, and not after.

    Raises:
        UsageError: A name is none, or its metric is not for the script of the references.
    """
    for name in names:
        if name not in METRICS:
            raise UsageError(f"metric must be one of {', '.join(METRICS)}, but is {name!r}")
        View(name, references)


def sacrebleu_metric(name: str, tokenizer: str) -> Any:
    """The metric of sacreBLEU for text whose words `bleu_tokenizer` splits so: `bleu`, `chrf` or `ter`."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    match name:
        case "bleu":
            return BLEU(tokenize=tokenizer)
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

    sacreBLEU's default, `13a`, splits at spaces and punctuation, and takes a sentence without spaces for one word.

    Returns:
        `zh` for Chinese, `char` for other text most of whose letters belong to a script without spaces, else `13a`.
    """
    han = kana = others = letters = 0
    for text in references:
        if not text.isascii():
            han += len(_HAN.findall(text))
            kana += len(_KANA.findall(text))
            others += len(_OTHERS.findall(text))
        letters += len(_LETTERS.findall(text))
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
