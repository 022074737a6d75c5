"""The directions that a server translates in, such as English to German, each with a run."""

import math
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...data.config import DataConfig
from ...system.errors import UsageError
from ..runs.directory import RunDirectory
from ..translation import Translation
from ..translator import Translator
from .gatherer import Gatherer

_ONE_AT_A_TIME = threading.Lock()
"""A translation takes all cores: two at once would take turns at each operation."""


@dataclass(frozen=True)
class Direction:
    """One direction.

    Attributes:
        source, target: Codes of languages, such as `pt-BR`.
        gatherer: Translates texts; what they ask of the search is the number of alternatives.
    """

    source: str
    target: str
    run: Path
    gatherer: Gatherer


def open_directions(
    specs: Sequence[str], *, checkpoint: str, device: str, beam_size: int | None, warn: Callable[[str], None]
) -> list[Direction]:
    """Loads a run for each SPEC: `en-de=RUN`, or RUN if the run knows its languages.

    Raises:
        UsageError: A language is not known, or two runs have one direction.
        ModelError: A run cannot be used.
    """
    named = [_named(spec) for spec in specs]
    pairs = [(source, target) for source, target, _ in named]
    for pair in pairs:
        if pairs.count(pair) > 1:
            raise UsageError(f"two runs translate from {pair[0]} to {pair[1]}; give one of them")
    return [
        _open(source, target, Translator.load(run, checkpoint=checkpoint, device=device, warn=warn), run, beam_size)
        for source, target, run in named
    ]


def _open(source: str, target: str, translator: Translator, run: Path, beam_size: int | None) -> Direction:
    def translate(texts: list[str], alternatives: Hashable) -> list[Translation]:
        assert isinstance(alternatives, int)
        beam = beam_size and max(beam_size, alternatives + 1)
        search = translator.search(beam, n_best=alternatives + 1)
        with _ONE_AT_A_TIME:
            return translator.translate(texts, search=search)

    return Direction(source, target, run, Gatherer(translate))


def _named(spec: str) -> tuple[str, str, Path]:
    """Source language, target language and run of a SPEC."""
    codes, equals, rest = spec.partition("=")
    if not equals or Path(spec).exists():
        directory = RunDirectory(spec)
        run, (source, target) = directory.path, directory.languages
        if not source or not target:
            raise UsageError(
                f"{run} does not say between which languages it translates; name them: --run en-de={spec} (and train"
                " with --src-language and --tgt-language, then it knows)"
            )
        return source, target, run
    source, _, target = codes.partition("-")
    try:
        config = DataConfig(src_language=source, tgt_language=target)
    except ValueError as error:
        raise UsageError(f"--run {spec}: {error}; regions with _: pt_BR-en=RUN") from error
    if codes.count("-") != 1 or not source or not target:
        raise UsageError(f"--run {spec}: two languages are needed, such as en-de={rest}; regions with _: pt_BR-en=RUN")
    return config.src_language.replace("_", "-"), config.tgt_language.replace("_", "-"), Path(rest)


def likeliest_source(directions: Iterable[Direction], translations: Sequence[Translation]) -> list[tuple[str, float]]:
    """The languages that a text may be in, the likeliest first, with percentages.

    A model is surer of a text in its own language: what is compared is the mean log-probability of its pieces.

    Args:
        directions: All that there are.
        translations: The text's, by each of them.
    """
    best: dict[str, float] = {}
    for direction, one in zip(directions, translations, strict=True):
        pieces = len(one.tokens) + 1
        sure = one.log_prob / pieces + math.log(max(1 - one.unknown_share, 1e-6))
        best[direction.source] = max(best.get(direction.source, -math.inf), sure)
    total = sum(math.exp(value) for value in best.values())
    shares = [(language, 100 * math.exp(value) / total) for language, value in best.items()]
    return sorted(shares, key=lambda share: -share[1])
