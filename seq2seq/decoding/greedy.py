"""Greedy search: the likeliest token each time. What it shares with sampling: one row for each hypothesis."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .config import LENGTH_PENALTY, check_search
from .search import (
    Hypothesis,
    SearchState,
    Step,
    Task,
    finished,
    forbid_repeats,
    force_prefixes,
    largest,
    log_softmax,
)

Choose = Callable[[Tensor, list[int], int], Tensor]
"""Picks each row's token (R,) from log-probabilities (R, V), the rows' sentence numbers and the position."""
_IDLE_ROWS = 1 / 8
"""Share of rows that may go on after their end: to drop them moves all others in memory, which costs more."""


@dataclass(frozen=True)
class Greedy:
    """Extends one hypothesis of each sentence by its likeliest next token until it ends. A `Search`.

    >>> translator.translate(["the cat sees the house."], search=Greedy())[0].text
    'die Katze sieht das Haus.'

    Args:
        length_penalty: Alpha for the reported score; the search itself compares nothing.
        no_repeat_ngram_size: n of the n-grams that stand at most once in an output, see `forbid_repeats`; 0: no limit.
    """

    length_penalty: float = LENGTH_PENALTY
    no_repeat_ngram_size: int = 0

    def __post_init__(self) -> None:
        check_search(self.length_penalty, self.no_repeat_ngram_size)

    @property
    def rows(self) -> int:
        """One for each sentence."""
        return 1

    def __call__(self, step: Step, state: SearchState, task: Task) -> list[list[Hypothesis]]:
        """One hypothesis for each sentence; see `Search`."""

        def likeliest(log_probs: Tensor, *_: object) -> Tensor:
            return largest(log_probs, 1)[1].squeeze(1)

        found = extend_rows(step, state, task, likeliest, self.length_penalty, self.no_repeat_ngram_size)
        return [[best] for best in found]


@dataclass
class _Output:
    """What has been generated for a sentence."""

    sentence: int
    ids: list[int] = field(default_factory=list)
    log_prob: float = 0.0
    has_ended: bool = False


def extend_rows(
    step: Step, state: SearchState, task: Task, choose: Choose, length_penalty: float, no_repeat_ngram_size: int = 0
) -> list[Hypothesis]:
    """Extends every sentence by tokens that `choose` picks until it ends; drops finished rows when there are enough.

    Arguments as of `Search` and `Greedy`. Returns one hypothesis for each sentence, in order.
    """
    outputs = [_Output(sentence) for sentence in range(len(task.max_lengths))]
    rows = outputs  # the output of each row of the state
    ids = torch.full((len(rows), 1), task.bos_id, device=task.device)  # (R, T)
    position = 0
    while not all(row.has_ended for row in rows):
        sentences = [row.sentence for row in rows]
        log_probs = log_softmax(step(ids[:, -1], position, state))  # (R, V)
        if position < task.longest_prefix:
            log_probs = force_prefixes(log_probs, position, sentences, task.prefixes)
        if no_repeat_ngram_size:
            log_probs = forbid_repeats(log_probs, ids, no_repeat_ngram_size, task, sentences)
        last = choose(log_probs, sentences, position)
        position += 1
        if position >= task.first_limit:
            at_limit = torch.tensor([position >= task.max_lengths[i] for i in sentences], device=task.device)
            last = last.masked_fill(at_limit, task.eos_id)
        gained = log_probs.gather(1, last[:, None]).squeeze(1)
        for row, token, gain in zip(rows, last.tolist(), gained.tolist(), strict=True):
            if not row.has_ended:
                row.log_prob += gain
                row.has_ended = token == task.eos_id
                row.ids += [] if row.has_ended else [token]
        ids = torch.cat([ids, last[:, None]], dim=1)
        going_on = [number for number, row in enumerate(rows) if not row.has_ended]
        if len(rows) - len(going_on) >= _IDLE_ROWS * len(rows):
            kept = torch.tensor(going_on, dtype=torch.long, device=task.device)
            rows, ids = [rows[number] for number in going_on], ids[kept]
            state.reorder(kept, kept)
    return [finished(output.ids, output.log_prob, length_penalty) for output in outputs]
