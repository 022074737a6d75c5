"""A text on its way to its translation: the job, its parts, and the translation that comes of them."""

import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..data.cleaning import clean
from ..data.facts import CorpusFacts, differences_in_numbers, is_loop
from ..data.placeholders import (
    NO_DIFFERENCES,
    Differences,
    Masked,
    differences,
    has_words,
    without_placeholders,
)
from ..data.tokenizer import PLACEHOLDER_IDS, Tokenizer
from ..seq2seq.decoding.search import Hypothesis

if TYPE_CHECKING:
    from ..seq2seq.decoding.phrases import Phrase
    from .projection import Calibration, Projection

SIGNS = (
    "confidence",
    "log_pieces",
    "log_length_ratio",
    "source_log_rank",
    "source_letters_per_piece",
    "output_letters_per_piece",
    "faults",
)
"""What tells how good a translation is, besides the model's own confidence: how long it is, also beside its source; how
rare its words are (a vocabulary has frequent pieces first, and spells rare words in short ones); what is lost."""
MARGIN = 0.2
"""A second output may be less likely than the first by this many nats per token. Measured on 700 validation sentences
of 2,000 pairs of documentation, beam 5: 0.1 to 0.2 gain 0.2 to 0.5 BLEU over no repair, 0.3 and more cost up to 1."""


@dataclass(frozen=True)
class Translation:
    """The translation of one text.

    Attributes:
        text: The best output, detokenized; empty for an empty input, the input itself where it has no letters.
        score: Its length-normalised log-probability, summed over the parts of a text that had to be split.
        log_prob: Its raw log-probability.
        ids: The ids of its pieces; None where nothing was searched for or the text had to be split.
        alternatives: All the hypotheses that the search gives, this one included: best first, samples in the order
            drawn.
        lost, added, glued: Placeholders such as `%s` that the source has and the output has not; that the output has
            and the source has not; that touch a letter in the output alone.
        numbers: Those that the source has and the output has not, and the other way round. A hint: one may be a word.
        missed: Translations of a glossary's terms that it should have, and has not.
        unknown: What the vocabulary does not know of the source, its placeholders left out: characters, or words of a
            word vocabulary.
        unknown_share: The share of the source's characters that this is, from 0 to 1; white space does not count.
        slips: Words with a slip of typing as they are written, each with the word that was read; see `data.slips`.
        looped: The first search said the same again and again. Where `repaired`, this is what a second one found.
        repaired: This is what a second search found, for a loop or a lost placeholder.
        constrained: The free output lacked a term, so this is what a search found that has to write it.
        source_ids: The ids of what the model read, without eos; None where `ids` is.
        signs: The numbers that `SIGNS` names; none where nothing was searched for.
        projected: How good it probably is, where the run has been calibrated for this search, see `projection`.
    """

    text: str
    score: float = 0.0
    log_prob: float = 0.0
    tokens: tuple[str, ...] = ()
    ids: tuple[int, ...] | None = None
    alternatives: tuple["Translation", ...] = ()
    lost: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    glued: tuple[str, ...] = ()
    numbers: Differences = NO_DIFFERENCES
    missed: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    unknown_share: float = 0.0
    slips: tuple[tuple[str, str], ...] = ()
    looped: bool = False
    repaired: bool = False
    constrained: bool = False
    source_ids: tuple[int, ...] | None = field(default=None, repr=False, compare=False)
    signs: tuple[float, ...] = field(default=(), repr=False, compare=False)
    projected: "Projection | None" = field(default=None, compare=False)

    def __str__(self) -> str:
        return self.text

    @property
    def confidence(self) -> float:
        """How sure the model is, from 0 to 1: the geometric mean of the probabilities of the pieces and of the end,
        times the share of the source that its vocabulary knows.

        It says nothing of words that the model has seldom seen: `tfm evaluate` tells how it goes with the quality.
        """
        return (1 - self.unknown_share) * math.exp(self.log_prob / (len(self.tokens) + 1))

    def to_dict(self) -> dict[str, Any]:
        """What `tfm translate --json` says of it, ready for JSON. What is empty or False is left out.

        >>> translation = Translator.load("runs/mine").translate(["the cat sees the house."])[0]
        >>> record = translation.to_dict()
        >>> record["translation"], round(record["confidence"], 1)
        ('die Katze sieht das Haus.', 1.0)
        """
        record = self._figures()
        if self.projected is not None:
            record["projected_chrf"] = asdict(self.projected)
        if len(self.alternatives) > 1:
            record["alternatives"] = [one._figures() for one in self.alternatives]
        texts = ("lost", "added", "glued", "missed", "unknown", "unknown_share", "slips")
        names = (*texts, "looped", "repaired", "constrained")
        given = {name: value for name in names if (value := getattr(self, name))}
        record |= {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
        if self.numbers:
            record["numbers"] = {"lost": list(self.numbers.lost), "added": list(self.numbers.added)}
        return record

    def _figures(self) -> dict[str, Any]:
        numbers = {"score": self.score, "log_prob": self.log_prob, "confidence": self.confidence}
        return {"translation": self.text, **numbers, "tokens": list(self.tokens)}


@dataclass
class Job:
    """A text on its way to its translation.

    Attributes:
        masked: The cleaned text, with symbols for its placeholders.
        parts: What is searched for; none in a blank text, nor in one without letters where the corpus keeps it.
        looped, repaired: See `Translation`.
        calibration: What projects its quality, if there is one for this search.
        restore, unread, slips: What gives an output the form of the text, what the model does not read, and what it
            reads as other words; see `data.usual_form`.
    """

    text: str
    masked: Masked
    tokenizer: Tokenizer
    facts: CorpusFacts
    parts: list["Part"] = field(default_factory=list)
    looped: bool = False
    repaired: bool = False
    calibration: "Calibration | None" = None
    restore: Callable[[str], str] = str
    unread: tuple[str, str] = ("", "")
    slips: tuple[tuple[str, str], ...] = ()

    def translation(self) -> Translation:
        """The translation, when all parts have been searched for."""
        read = " ".join([*self.unread, *(part.text for part in self.parts)])
        unknown, share = self.tokenizer.unknown(without_placeholders(read, self.tokenizer.placeholders.expected))
        if not self.parts:
            text = _printable(self.text) if self.masked.text else ""
            return Translation(text, alternatives=(Translation(text),), unknown=unknown, unknown_share=share)
        count = max(len(part.found) for part in self.parts)
        alternatives = tuple(
            self._detokenized([part.found[min(rank, len(part.found) - 1)] for part in self.parts])
            for rank in range(count)
        )
        best, source = alternatives[0], self.masked.unmask(self.masked.text)
        different = differences(source, best.text, self.tokenizer.placeholders.expected)
        numbers = self.numbers(source, best.text)
        signs = self._signs(best, source, (1 - share) * best.confidence, bool(self.looped or different or numbers))
        return replace(
            best,
            alternatives=alternatives,
            lost=different.lost,
            added=different.added,
            glued=different.glued,
            numbers=numbers,
            missed=self.missed,
            source_ids=tuple(self.parts[0].ids) if len(self.parts) == 1 else None,
            unknown=unknown,
            unknown_share=share,
            slips=self.slips,
            looped=self.looped,
            repaired=self.repaired,
            constrained=any(part.constrained for part in self.parts),
            signs=signs,
            projected=self.calibration and self.calibration.project(signs),
        )

    @property
    def missed(self) -> tuple[str, ...]:
        """The terms that the output lacks, before it is put in capitals."""
        terms = [term for part in self.parts for term in part.terms]
        return _missed(terms, self.masked.unmask(_joined([part.output for part in self.parts]))) if terms else ()

    def _signs(self, found: Translation, source: str, confidence: float, is_faulty: bool) -> tuple[float, ...]:
        """See `SIGNS`."""
        read = [token for part in self.parts for token in part.ids]
        pieces = 1 + sum(len(part.best.ids) for part in self.parts)
        return (
            confidence,
            math.log(pieces),
            math.log((len(found.text) + 1) / (len(source) + 1)),
            sum(map(math.log, read)) / max(len(read), 1),
            len(source) / (len(read) + 1),
            len(found.text) / pieces,
            float(is_faulty),
        )

    def numbers(self, source: str, output: str) -> Differences:
        """The numbers in which two texts differ, unless the corpus changes numbers."""
        if not self.facts.keeps_numbers:
            return NO_DIFFERENCES
        kinds = self.tokenizer.placeholders.expected
        return Differences(*map(tuple, differences_in_numbers(source, output, kinds)))

    def _detokenized(self, hypotheses: list[Hypothesis]) -> Translation:
        """One hypothesis for each part, joined."""
        vocabulary, unmask = self.tokenizer.tgt, self.masked.unmask
        texts = [clean(vocabulary.decode(one.ids)) for one in hypotheses]
        return Translation(
            text=unmask(self.restore(_joined(texts))),
            score=sum(one.score for one in hypotheses),
            log_prob=sum(one.log_prob for one in hypotheses),
            tokens=tuple(unmask(vocabulary.piece(token)) for one in hypotheses for token in one.ids),
            ids=tuple(hypotheses[0].ids) if len(hypotheses) == 1 else None,
        )


@dataclass
class Part:
    """A piece of a text that the model can read: what is searched for at a time.

    Attributes:
        key: The number of its line and its own: what a sample depends on.
        text: The source as the model reads it: in its usual form, with symbols for its placeholders.
        prefix: The pieces that the output begins with.
        max_length: Most pieces of the output, eos included.
        terms: The translations of a glossary's terms in it.
        phrases: What a search under constraint has to write; None where a search is under no constraint. Symbols of
            placeholders come nowhere but in a phrase.
        found: Hypotheses, best first.
        constrained: Whether the search had to write the terms.
    """

    job: Job
    key: str
    text: str
    ids: list[int]
    prefix: list[int]
    max_length: int
    terms: list[str] = field(default_factory=list)
    phrases: "tuple[Phrase, ...] | None" = None
    found: list[Hypothesis] = field(default_factory=list)
    constrained: bool = False

    @property
    def best(self) -> Hypothesis:
        """The best hypothesis."""
        return self.found[0]

    @property
    def expected_length(self) -> int:
        """About how many pieces another output will have: as many as the one found before, or as the source."""
        return max(len(self.ids), len(self.best.ids) if self.found else 0)

    @property
    def output(self) -> str:
        """The text of the best hypothesis."""
        return clean(self.job.tokenizer.tgt.decode(self.best.ids))

    @property
    def missed(self) -> tuple[str, ...]:
        """The terms that the output lacks."""
        return _missed(self.terms, self.output) if self.terms else ()

    @property
    def ends(self) -> bool:
        """Whether the output ended by itself, before `max_length` ended it."""
        return len(self.best.ids) + 1 < self.max_length

    @property
    def wrong_placeholders(self) -> int:
        """How many symbols of the source the output lacks, and how many it has besides."""
        wanted, there = _symbols(self.ids), _symbols(self.best.ids)
        return (wanted - there).total() + (there - wanted).total()

    @property
    def is_loop(self) -> bool:
        """Whether the output repeats itself."""
        return is_loop(self.output, self.text, self.job.facts.limit)

    def is_better_than(self, first: "Part") -> bool:
        """Whether this output may take the place of the first one of the same part.

        It says something and ends. It has what the first has of placeholders, terms and numbers, and invents no more
        placeholders. It is not much less likely.
        """
        lost = (_symbols(first.ids) & _symbols(first.best.ids)) - _symbols(self.best.ids)
        numbers, before = (self.job.numbers(first.text, one.output).lost for one in (self, first))
        keeps = not lost and len(self.missed) <= len(first.missed) and len(numbers) <= len(before)
        keeps &= self.wrong_placeholders <= first.wrong_placeholders
        speaks = self.ends and bool(self.output)
        return speaks and keeps and self._log_prob_per_token >= first._log_prob_per_token - MARGIN

    @property
    def _log_prob_per_token(self) -> float:
        return self.best.log_prob / (len(self.best.ids) + 1)


def takes_search(cleaned: str, tokenizer: Tokenizer, facts: CorpusFacts) -> bool:
    """Whether a model is asked for a text, cleaned: not where it is blank, nor where it has no letters and the corpus
    keeps such texts."""
    return bool(cleaned) and (has_words(cleaned, tokenizer.placeholders.expected) or not facts.keeps_letterless)


def _missed(terms: list[str], output: str) -> tuple[str, ...]:
    from ..data.words import missed  # few translations have terms

    return missed(terms, output)


def _joined(texts: list[str]) -> str:
    if len(texts) == 1:
        return texts[0]
    from ..data.sentences import join_texts  # most texts are short

    return join_texts(texts)


def _symbols(ids: Sequence[int]) -> Counter[int]:
    """How often each symbol of a placeholder is among ids."""
    return Counter(token for token in ids if token in PLACEHOLDER_IDS)


def _printable(text: str) -> str:
    """A text without letters as it is, unless it has control characters or half characters."""
    return clean(text) if any(unicodedata.category(one) in ("Cc", "Cs") for one in text) else text
