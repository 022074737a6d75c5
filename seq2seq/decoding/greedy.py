"""Search that extends one hypothesis per sentence: the likeliest token each time, or any rule that picks one."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .search import Hypothesis, SearchState, Step, finished, largest, log_softmax

Choose = Callable[[Tensor, list[int], int], Tensor]
"""Picks each row's token (R,) from log-probabilities (R, V), the rows' sentence numbers and the position."""


_IDLE_ROWS = 1 / 8
"""Rows that may go on after their end: to drop them moves all others in memory, which costs more than a few of them."""


def most_likely(log_probs: Tensor, sentences: list[int], position: int) -> Tensor:
    """The greedy choice."""
    del sentences, position
    return largest(log_probs, 1)[1].squeeze(1)


def extend_greedily(
    step: Step,
    state: SearchState,
    *,
    max_lengths: Sequence[int],
    bos_id: int,
    eos_id: int,
    length_penalty: float = 0.0,
    choose: Choose = most_likely,
    device: torch.device | None = None,
) -> list[Hypothesis]:
    """Extends every sentence token by token until it ends; finished rows are dropped when there are enough of them.

    Args:
        step, state: The model, as seen by a search; the state has one row per sentence.
        max_lengths: Most tokens of each output, eos included; at its limit a sentence can only end.
        bos_id, eos_id: What starts and ends a sentence.
        length_penalty: Alpha for the reported score; the search itself compares nothing.
        choose: The rule; the likeliest token unless given.
        device: Where the step computes.

    Returns:
        One hypothesis per sentence, in order.
    """
    ids: list[list[int]] = [[] for _ in max_lengths]
    log_prob = [0.0] * len(max_lengths)
    sentences = list(range(len(max_lengths)))  # the sentence of each row
    open_rows = sentences  # the rows whose sentences have not ended
    first_limit = min(max_lengths, default=0)
    last = torch.full((len(sentences),), bos_id, device=device)
    position = 0
    while open_rows:
        log_probs = log_softmax(step(last, position, state))  # (R, V)
        last = choose(log_probs, sentences, position)
        if position + 1 >= first_limit:
            at_limit = torch.tensor([position + 1 >= max_lengths[i] for i in sentences], device=device)
            last = last.masked_fill(at_limit, eos_id)
        tokens, gained = last.tolist(), log_probs.gather(1, last[:, None]).squeeze(1).tolist()
        still_open: list[int] = []
        for row in open_rows:
            log_prob[sentences[row]] += gained[row]
            if tokens[row] != eos_id:
                ids[sentences[row]].append(tokens[row])
                still_open.append(row)
        open_rows = still_open
        if len(sentences) - len(open_rows) >= _IDLE_ROWS * len(sentences):
            rows = torch.tensor(open_rows, dtype=torch.long, device=device)
            sentences, open_rows = [sentences[row] for row in open_rows], list(range(len(open_rows)))
            last = last[rows]
            state.reorder(rows, rows)
        position += 1
    return [finished(i, p, length_penalty) for i, p in zip(ids, log_prob, strict=True)]
