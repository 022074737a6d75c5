"""Scores of a trained run on a test set."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...data.formats.format import same_language
from ...data.glossary import Glossary
from ...seq2seq.decoding.beam import Beam
from ...seq2seq.decoding.config import CHUNK_TEXTS
from ...seq2seq.decoding.greedy import Greedy
from ...system.errors import UsageError
from ...system.reporter import say_nothing
from ..projection import Projection, ProjectionFit, agreement, fit_calibration, refuse_few, write_calibration
from ..runs.directory import RunDirectory
from ..translator import Translation, Translator
from .faithfulness import Faithfulness, Kept, faithfulness
from .loss import BothWays, ForcedScore, force, force_both_ways, set_loss
from .scores import LengthGroup, Score, correlation, score, scores_by_length, sentence_chrf


@dataclass(frozen=True)
class TestResult:
    """What `tfm evaluate` prints.

    Attributes:
        confidences, chrf: Of each sentence: `Translation.confidence`, and chrF.
        projections: Of each sentence the chrF that was to be expected, if the run is calibrated for this search;
            where it is being calibrated, by the other sentences.
        both_ways: Forced scores in both directions, where a model of the opposite one is given.
        groups: Scores by the length of the source.
        loss, ppl: Of each sentence's first reference, without label smoothing.
        loss_sentences: How many of them these cover: those that fit the model whole.
        forced: What the model thinks of each of these references; None for the others.
        terms: Translations that a glossary asks for.
        looped: Outputs that repeated themselves.
        repaired: Outputs that a second search found, for a loop or a lost placeholder.
        constrained: Outputs that a second search found, for a term of the glossary.
        numbers: Outputs with other numbers than the source.
    """

    checkpoint: Path
    beam_size: int
    length_penalty: float
    no_repeat_ngram_size: int
    loss: float
    ppl: float
    loss_sentences: int
    forced: list[ForcedScore | None]
    scores: list[Score]
    outputs: list[str]
    faithfulness: Faithfulness
    terms: Kept
    looped: int
    repaired: int
    constrained: int
    numbers: int
    confidences: list[float]
    chrf: list[float]
    groups: list[LengthGroup]
    projections: list[Projection | None]
    both_ways: BothWays | None

    @property
    def correlation(self) -> float | None:
        """Of confidence and chrF, from -1 to 1; None where there are too few sentences."""
        return correlation(self.confidences, self.chrf)

    @property
    def agreement(self) -> ProjectionFit | None:
        """How the projections go with chrF; None where there are none."""
        return agreement(self.projections, self.chrf)


def evaluate_set(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    metrics: Sequence[str],
    search: Greedy | Beam | None = None,
    glossary: Glossary | None = None,
    repair: bool | None = None,
    calibration: Path | None = None,
    back: Translator | None = None,
    lines: Sequence[int] | None = None,
    on_done: Callable[[int], None] = lambda done: None,
) -> TestResult:
    """Translates a test set, of which each source has one or more references, and scores it.

    Args:
        translator: Loaded from a run.
        metrics: Of `scores.METRICS`.
        search, glossary, repair: See `Translator.translate`.
        calibration: Where to keep how the chrF of its translations goes with what is seen of them without references:
            from then on its translations are `projected`, see `projection`.
        back: Translates from the target language to that of the sources, see `load_opposite`.
        lines: The numbers of the sources in their file, counted from 1, where some were left out.
        on_done: Hears the number of sentences translated so far.
    """
    assert translator.checkpoint is not None
    search = search or translator.search()
    if calibration is not None:
        refuse_few(sum(map(translator.is_searched, sources)))
    found: list[Translation] = []
    numbers = range(len(sources)) if lines is None else [line - 1 for line in lines]
    for start in range(0, len(sources), CHUNK_TEXTS):
        part = slice(start, start + CHUNK_TEXTS)
        found += translator.translate(
            sources[part], search=search, first_line=numbers[part], glossary=glossary, repair=repair
        )
        on_done(len(found))
    outputs = [translation.text for translation in found]
    chrf, projections = sentence_chrf(outputs, references), [one.projected for one in found]
    if calibration is not None:
        fitted, projections = fit_calibration(found, chrf, search, translator.checkpoint)
        write_calibration(fitted, calibration)
    wanted = sum(len(glossary.wanted(text)) for text in sources) if glossary else 0
    first = [refs[0] for refs in references]
    forced = force(translator, sources, first)
    loss = set_loss(forced)
    return TestResult(
        checkpoint=translator.checkpoint,
        beam_size=search.rows,
        length_penalty=search.length_penalty,
        no_repeat_ngram_size=search.no_repeat_ngram_size,
        loss=loss.loss,
        ppl=loss.ppl,
        loss_sentences=sum(one is not None for one in forced),
        forced=forced,
        scores=[score(name, outputs, references) for name in metrics],
        outputs=outputs,
        faithfulness=faithfulness(
            sources,
            outputs,
            references,
            kinds=translator.tokenizer.placeholders.expected,
            limit=translator.facts.limit,
            unknown=sum(bool(one.unknown) for one in found),
        ),
        looped=sum(one.looped for one in found),
        repaired=sum(one.repaired for one in found),
        constrained=sum(one.constrained for one in found),
        numbers=sum(bool(one.numbers) for one in found),
        confidences=[one.confidence for one in found],
        chrf=chrf,
        projections=projections,
        both_ways=None if back is None else force_both_ways(translator, back, sources, outputs, first),
        groups=scores_by_length(sources, outputs, references),
        terms=Kept(max(wanted - sum(len(one.missed) for one in found), 0), wanted),
    )


def load_opposite(
    run: Path, opposite: Path, device: str = "auto", warn: Callable[[str], None] = say_nothing
) -> Translator:
    """The model of a run in the opposite direction; UsageError if it has other languages, as far as they are known."""
    mine, theirs = RunDirectory(run).languages, RunDirectory(opposite).languages
    pairs = [pair for pair in zip(mine, theirs[::-1], strict=True) if all(pair)]
    if not all(same_language(one, other) or same_language(other, one) for one, other in pairs):
        raise UsageError(
            f"{opposite} translates {' to '.join(theirs)}, which is not the opposite direction of {' to '.join(mine)}"
        )
    return Translator.load(opposite, device=device, warn=warn)
