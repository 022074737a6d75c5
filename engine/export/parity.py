"""Whether an export translates as its run does: both translate the same sentences, by the same search.

CTranslate2's beam search is ours but for five things. Four are made equal before anything is compared:

* it divides a log-probability by length^alpha, we by ((5 + length) / 6)^alpha, eos counted by both: it is asked for all
  hypotheses with their log-probabilities, and they are ranked by our formula;
* it stops once beam_size hypotheses have ended, and we go on while the likeliest of all has not: for the comparison we
  stop, too, so that the BLEU of a beam may differ a little from that of `tfm evaluate`;
* with a length penalty of 0 it may stop once the likeliest beam has ended, we when beam_size hypotheses have: a penalty
  that rounds to a division by 1 leaves it no choice;
* at the longest length it returns an output without its end, and we write the end in place of the last piece: greedy
  outputs of this kind are compared without that piece, and those of beams are left out of the comparison.

The fifth is left: where `no_repeat_ngram_size` forbids tokens, it raises the probabilities of the others until they
sum to 1 again, and we leave them as they are. Greedy search does not see that, a beam does.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from ...data.cleaning import clean
from ...data.corpus import Pair
from ...data.placeholders import Masked
from ...data.usual_form import in_usual_form
from ...seq2seq.decoding.beam import Beam
from ...seq2seq.decoding.greedy import Greedy
from ...seq2seq.decoding.search import length_normaliser
from ..evaluation.scores import score
from ..exported_searcher import NO_PENALTY
from ..translator import Translation, Translator

ENOUGH = 0.995
"""Share of equal sentences that an export in float32 must reach, greedily and with a beam; under a limit on
repetitions greedily only."""
_BATCH_SENTENCES = 64
_EOS = "</s>"


@dataclass(frozen=True)
class Found:
    """CTranslate2's translation of one sentence.

    Attributes:
        tokens: Pieces, without eos, or without the piece in whose place we write eos at the longest length.
        log_prob: Of them and eos; not a number where CTranslate2 divided it by its own length penalty.
        ended: It came to an end within the longest length.
    """

    tokens: tuple[str, ...]
    log_prob: float
    ended: bool


@dataclass(frozen=True)
class Way:
    """One way to search; with `own_penalty`, CTranslate2 ranks by its own length penalty instead of ours."""

    name: str
    beam_size: int
    alpha: float
    own_penalty: bool = False


@dataclass(frozen=True)
class ExportAgreement:
    """How far run and export agree under one search.

    Attributes:
        equal, compared: Sentences with the same pieces, of those compared.
        left_out: Sentences not compared: their translation did not end, or the run searched for it twice.
        difference: Largest difference between the log-probabilities of a sentence's two translations; None if unknown.
        bleu, export_bleu: Of run and export, against the references; on all sentences.
    """

    search: Way
    equal: int
    compared: int
    left_out: int
    difference: float | None
    bleu: float
    export_bleu: float

    @property
    def share(self) -> float:
        """The share of equal sentences; 1 where there is nothing to compare."""
        return self.equal / self.compared if self.compared else 1.0


def as_ctranslate2(search: Greedy | Beam) -> Greedy | Beam:
    """The same search with the end that CTranslate2 gives it."""
    return replace(search, stops_early=True) if isinstance(search, Beam) else search


def searches(beam_size: int, alpha: float) -> list[Way]:
    """Greedy and beam search without a length penalty; then the run's own search, ranked by our formula and theirs."""
    found = [Way("greedy", 1, alpha), Way("beam 5, no length penalty", 5, 0.0)]
    if beam_size > 1 and alpha > 0:
        found.append(Way(f"beam {beam_size}, length penalty {alpha:g}", beam_size, alpha))
        found.append(Way(f"beam {beam_size}, CTranslate2's penalty {alpha:g}", beam_size, alpha, own_penalty=True))
    return found


def translate_pieces(
    export: Any,
    sources: Sequence[Sequence[str]],
    limits: Sequence[int],
    search: Way,
    no_repeat_ngram_size: int = 0,
) -> list[Found]:
    """Searches with CTranslate2.

    Args:
        export: A `ctranslate2.Translator`.
        sources: Pieces of each sentence, without eos.
        limits: Most pieces of each translation, eos included.
        no_repeat_ngram_size: A row of this many pieces comes at most once in a translation; 0 is no limit.
    """
    order = sorted(range(len(sources)), key=lambda i: (limits[i], len(sources[i])))
    found: dict[int, Found] = {}
    for limit, group in groupby(order, key=lambda i: limits[i]):
        numbers = list(group)
        results = export.translate_batch(
            [list(sources[i]) for i in numbers],
            beam_size=search.beam_size,
            num_hypotheses=1 if search.own_penalty else search.beam_size,
            length_penalty=search.alpha if search.own_penalty else NO_PENALTY,
            max_input_length=0,
            min_decoding_length=0,
            no_repeat_ngram_size=no_repeat_ngram_size,
            max_decoding_length=limit,
            return_end_token=not search.own_penalty,
            return_scores=True,
            max_batch_size=_BATCH_SENTENCES,
        )
        for i, result in zip(numbers, results, strict=True):
            found[i] = _best(result, limit, search)
    return [found[i] for i in range(len(sources))]


def _best(result: Any, limit: int, search: Way) -> Found:
    if search.own_penalty:
        tokens = result.hypotheses[0]
        return Found(tuple(tokens[: limit - 1]), math.nan, len(tokens) < limit)
    tokens, log_prob = max(
        zip(result.hypotheses, result.scores, strict=True),
        key=lambda pair: pair[1] / length_normaliser(len(pair[0]), search.alpha),
    )
    return Found(tuple(tokens[:-1]), log_prob, tokens[-1] == _EOS)


def compare(
    translator: Translator, export: Any, pairs: Sequence[Pair], *, on_done: Callable[[int], None] = lambda done: None
) -> list[ExportAgreement]:
    """Translates the same sentences with a run and its export.

    Args:
        export: From `load_ctranslate2`.
        pairs: Sentences and their references. Left out are those that do not fit the model whole, that have no letters,
            and that tfm reads in another form (`data.usual_form`).
        on_done: Hears how many translations have been compared so far, of `len(pairs)` for each of `searches`.
    """
    tokenizer, decoding, max_seq_len = translator.tokenizer, translator.decoding, translator.max_seq_len
    texts, references, masked, sources = list[str](), list[list[str]](), list[Masked](), list[list[str]]()
    for src, tgt in filter(lambda pair: translator.is_searched(pair[0]), pairs):
        mask = tokenizer.mask(src)  # CTranslate2 knows no placeholders, only their symbols
        pieces = tokenizer.src.encode_as_pieces(mask.text)
        as_it_stands = in_usual_form(mask.text, tokenizer.src, translator.facts).text == mask.text
        if as_it_stands and 0 < len(pieces) < max_seq_len:
            texts.append(src)
            references.append([tgt])
            masked.append(mask)
            sources.append(pieces)
    limits = [decoding.max_decode_len(len(pieces), max_seq_len) for pieces in sources]
    agreements: list[ExportAgreement] = []
    ours: dict[tuple[int, float], list[Translation]] = {}
    for number, search in enumerate(searches(decoding.beam_size, decoding.length_penalty)):
        key = search.beam_size, search.alpha
        if key not in ours:
            chosen = as_ctranslate2(translator.search(search.beam_size, search.alpha))
            ours[key] = translator.translate(texts, search=chosen)
        theirs = translate_pieces(export, sources, limits, search, decoding.no_repeat_ngram_size)
        bleu = score("bleu", [translation.text for translation in ours[key]], references).value
        export_bleu = score("bleu", _texts(translator, theirs, masked), references).value
        theirs = [
            replace(one, tokens=tuple(map(mask.unmask, one.tokens))) for one, mask in zip(theirs, masked, strict=True)
        ]
        agreements.append(_agreement(search, ours[key], theirs, bleu, export_bleu))
        on_done((number + 1) * len(pairs))
    return agreements


def _texts(translator: Translator, found: Sequence[Found], masked: Sequence[Masked]) -> list[str]:
    vocabulary = translator.tokenizer.tgt
    ids = {vocabulary.piece(i): i for i in range(len(vocabulary))}
    texts = [clean(vocabulary.decode(ids[token] for token in one.tokens)) for one in found]
    return [mask.unmask(text) for mask, text in zip(masked, texts, strict=True)]


def _agreement(
    search: Way, ours: Sequence[Translation], theirs: Sequence[Found], bleu: float, export_bleu: float
) -> ExportAgreement:
    once = [(a, b) for a, b in zip(ours, theirs, strict=True) if not a.repaired]  # an export has one search
    compared = [(a, b) for a, b in once if b.ended or search.beam_size == 1]
    differences = [abs(a.log_prob - b.log_prob) for a, b in compared if b.ended]
    return ExportAgreement(
        search=search,
        equal=sum(a.tokens == b.tokens for a, b in compared),
        compared=len(compared),
        left_out=len(theirs) - len(compared),
        difference=None if search.own_penalty else max(differences, default=0.0),
        bleu=bleu,
        export_bleu=export_bleu,
    )


def table(agreements: Sequence[ExportAgreement]) -> list[str]:
    """The agreements, as lines."""
    width = max(len(one.search.name) for one in agreements)
    lines = [f"{'':<{width}}        equal        share  difference   BLEU  export"]
    for one in agreements:
        difference = "" if one.difference is None else f"{one.difference:.1e}"
        lines.append(
            f"{one.search.name:<{width}}  {f'{one.equal:,} of {one.compared:,}':>14}  {100 * one.share:>7.1f} %"
            f"  {difference:>10}  {one.bleu:>5.2f}  {one.export_bleu:>5.2f} ({one.export_bleu - one.bleu:+.2f})"
        )
    if left_out := max(one.left_out for one in agreements):
        lines.append(
            f"left out: up to {left_out:,} sentences whose translation did not end in a beam, or for which tfm searches"
            " twice; BLEU has all of them"
        )
    return lines
