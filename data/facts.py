"""What is usual in a corpus: whether right text repeats itself, what becomes of numbers and letterless lines."""

from collections.abc import Collection
from dataclasses import dataclass

from .loops import HIGHEST_LIMIT, USUAL_LIMIT, says_in_a_row, words_again
from .numbers import differences_in_numbers, numbers
from .placeholders import CARRIED_SHARE, MIN_PAIRS, TEXT_SHARE, Pair, has_words

SAMPLE = 5_000
"""Most training pairs that are looked at."""
NO_LIMIT = 1_000_000
"""No text says three words so often."""
MAX_LOOPS = 0.001
"""Where a greater share of the training targets repeats itself, repetition is no fault."""


@dataclass(frozen=True)
class CorpusFacts:
    """What a sample of training pairs is like. A checkpoint keeps it.

    Attributes:
        loops: How many of their targets say the same several times in a row, see `loops.says_in_a_row`.
        limit: Of `loops.is_loop`: so that hardly any of the targets is a loop.
        letterless: How many of their sources have no letters.
        unchanged: How many of these have the same text as target.
        numbered: How many of their sources have numbers.
        same_numbers: How many of these have targets with the same numbers.
    """

    pairs: int = 0
    loops: int = 0
    limit: int = USUAL_LIMIT
    letterless: int = 0
    unchanged: int = 0
    numbered: int = 0
    same_numbers: int = 0

    @property
    def loops_are_faults(self) -> bool:
        """Whether a translation that repeats itself is wrong."""
        return self.loops <= MAX_LOOPS * self.pairs

    @property
    def keeps_letterless(self) -> bool:
        """Whether a line without letters is its own translation: unless the corpus shows that it is not."""
        return self.letterless < MIN_PAIRS or self.unchanged >= CARRIED_SHARE * self.letterless

    @property
    def keeps_numbers(self) -> bool:
        """Whether other numbers in a translation are a fault: unless the corpus spells or changes them."""
        return self.numbered < MIN_PAIRS or self.same_numbers >= TEXT_SHARE * self.numbered

    @property
    def remark(self) -> str:
        """Why a translation that repeats itself is searched for once more, or is not."""
        share = f"{100 * self.loops / self.pairs:.2f} %" if self.pairs else "no one knows how many"
        return f"{'on' if self.loops_are_faults else 'off'} ({share} of the training targets repeat themselves)"


def look_at(pairs: Collection[Pair], placeholder_kinds: Collection[str]) -> CorpusFacts:
    """Counts what pairs are like.

    Args:
        placeholder_kinds: Placeholders whose letters do not count as letters.
    """
    letterless = [(src, tgt) for src, tgt in pairs if src and not has_words(src, placeholder_kinds)]
    numbered = [pair for pair in pairs if numbers(pair[0])]
    return CorpusFacts(
        pairs=len(pairs),
        loops=sum(says_in_a_row(tgt, src) for src, tgt in pairs),
        limit=_limit([words_again(tgt, src) for src, tgt in pairs]),
        letterless=len(letterless),
        unchanged=sum(src == tgt for src, tgt in letterless),
        numbered=len(numbered),
        same_numbers=sum(not any(differences_in_numbers(*pair)) for pair in numbered),
    )


def _limit(times: list[int]) -> int:
    """The lowest limit that at most a share of `MAX_LOOPS` reaches; where that is none, one that no text reaches."""
    for limit in range(USUAL_LIMIT, HIGHEST_LIMIT + 1):
        if sum(one >= limit for one in times) <= MAX_LOOPS * len(times):
            return limit
    return NO_LIMIT
