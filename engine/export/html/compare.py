"""Whether a page does what its run does: both do the same work, and what they find is compared.

Once with the weights as they are, in float32, where all that may differ is rounding; once as the page has them, where
the quality is what counts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ....data.corpus import Pair
from ....seq2seq.decoding.greedy import Greedy
from ...browser.node import Engine, Work
from ...embedder import Embedder
from ...generator import Generator
from ...translator import Translator
from .quality import Machine, bleu, figure_of, found, quality

ENOUGH = 0.995
"""Share of outputs that must be equal with weights in float32."""
BEAM_SIZE = 5
"""Of the comparison, where the run itself searches greedily."""
EQUAL = 1e-4
"""Vectors are equal if no number of them differs by as much."""

OnDone = Callable[[int], None]


@dataclass(frozen=True)
class PageAgreement:
    """How far a run and its page agree in one kind of work.

    Attributes:
        equal, compared: Texts with the same output, with weights in float32; those compared.
        figure: What the two qualities are called: of the run, and of the page with the weights that it has.
    """

    name: str
    equal: int
    compared: int
    figure: str
    quality: float
    page_quality: float

    @property
    def share(self) -> float:
        """The share of equal outputs; 1 where there is nothing to compare."""
        return self.equal / self.compared if self.compared else 1.0


class Comparison:
    """The work that a run and its page are compared by.

    Args:
        exact: The engine with weights in float32.
        page: The engine with the weights of the page.
        pairs: Of the validation set; a language model continues the beginnings of the targets.
        on_done: Hears how many texts the engines have been given so far, of `size`.
    """

    def __init__(
        self, machine: Machine, exact: Engine, page: Engine, pairs: Sequence[Pair], on_done: OnDone = lambda done: None
    ) -> None:
        self._machine, self._engines, self._pairs, self._on_done = machine, (exact, page), pairs, on_done
        self._sources, self._targets = [src for src, _ in pairs], [tgt for _, tgt in pairs]
        self._done = 0

    @staticmethod
    def size(pairs: Sequence[Pair]) -> int:
        """How many texts the engines are given, whatever the machine."""
        return 4 * len(pairs)

    def agreements(self) -> list[PageAgreement]:
        """Does the work."""
        machine = self._machine
        if isinstance(machine, Translator):
            size = machine.decoding.beam_size
            return [self._translations(machine, 1), self._translations(machine, size if size > 1 else BEAM_SIZE)]
        return [self._continuations(machine)] if isinstance(machine, Generator) else [self._vectors(machine)]

    def _done_by(self, engine: Engine, work: Work, texts: Sequence[str], **settings: Any) -> Iterator[Any]:
        for result in engine.each(work, texts, **settings):
            self._done += 1
            self._on_done(self._done)
            yield result

    def _translations(self, translator: Translator, size: int) -> PageAgreement:
        ours = [one.text for one in translator.translate(self._sources, beam_size=size)]
        theirs, stored = (
            [one["text"] for one in self._done_by(engine, "translate", self._sources, beam_size=size)]
            for engine in self._engines
        )
        equal = sum(map(str.__eq__, ours, theirs))
        figures = bleu(ours, self._targets), bleu(stored, self._targets)
        return PageAgreement("greedy" if size == 1 else f"beam {size}", equal, len(ours), "BLEU", *figures)

    def _continuations(self, generator: Generator) -> PageAgreement:
        """Greedy continuations of the first halves of texts, and what the page thinks of whole texts."""
        exact, page = self._engines
        beginnings = [" ".join(text.split()[: len(text.split()) // 2]) for text in self._targets]
        ours = generator.generate(beginnings, search=Greedy())
        theirs = list(self._done_by(exact, "continue", beginnings, beam_size=1))
        equal = sum(one.text == other["text"] for one, other in zip(ours, theirs, strict=True))
        scores = [one for one in self._done_by(page, "scores", self._targets) if one["pieces"]]
        loss = -sum(one["logProb"] for one in scores) / max(sum(one["pieces"] for one in scores), 1)
        return PageAgreement(
            "greedy", equal, len(ours), figure_of(generator).name, quality(generator, self._pairs), loss
        )

    def _vectors(self, embedder: Embedder) -> PageAgreement:
        sides = self._sources, self._targets
        ours = [embedder.embed(side) for side in sides]
        theirs, stored = (
            [np.array(list(self._done_by(engine, "vectors", side)), dtype=np.float32) for side in sides]
            for engine in self._engines
        )
        equal = int((np.abs(ours[0] - theirs[0]).max(axis=1) < EQUAL).sum())
        figures = [found(torch.from_numpy(src), torch.from_numpy(tgt), self._pairs) for src, tgt in (ours, stored)]
        return PageAgreement("vectors", equal, len(self._pairs), figure_of(embedder).name, *figures)


def table(agreements: Sequence[PageAgreement], weights: str) -> list[str]:
    """The agreements, as lines."""
    return [
        f"{one.name}: {one.equal:,} of {one.compared:,} outputs ({100 * one.share:.1f} %) are those of the run, with"
        f" weights in float32; {one.figure} {one.quality:.2f} of the run, {one.page_quality:.2f} of the page in"
        f" {weights} ({one.page_quality - one.quality:+.2f})"
        for one in agreements
    ]
