"""Greedy search: the likeliest token each time."""

from dataclasses import dataclass

from torch import Tensor

from .config import LENGTH_PENALTY, check_no_repeat_ngram_size
from .rows import extend_rows
from .search import Hypothesis, SearchState, Step, Task, check_length_penalty, largest


@dataclass(frozen=True)
class Greedy:
    """Extends one hypothesis of each sentence by its likeliest next token until it ends. A `Search`.

    Args:
        length_penalty: Alpha for the reported score; the search itself compares nothing.
        no_repeat_ngram_size: So many tokens in a row stand at most once in an output, see `forbid_repeats`; 0 for no
            such limit.

    Raises:
        ValueError: A value is out of range.
    """

    length_penalty: float = LENGTH_PENALTY
    no_repeat_ngram_size: int = 0

    def __post_init__(self) -> None:
        check_length_penalty(self.length_penalty)
        check_no_repeat_ngram_size(self.no_repeat_ngram_size)

    @property
    def rows(self) -> int:
        """One for each sentence."""
        return 1

    def __call__(self, step: Step, state: SearchState, task: Task) -> list[list[Hypothesis]]:
        """One hypothesis for each sentence; see `Search`."""
        found = extend_rows(step, state, task, likeliest_tokens, self.length_penalty, self.no_repeat_ngram_size)
        return [[best] for best in found]


def likeliest_tokens(log_probs: Tensor, sentences: list[int], position: int) -> Tensor:
    """The likeliest token of each row, (R,)."""
    del sentences, position
    return largest(log_probs, 1)[1].squeeze(1)
