"""Search that extends one hypothesis per sentence: the likeliest token each time, or any rule that picks one."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .search import Hypothesis, SearchState, Step, finished, force_eos

Choose = Callable[[Tensor, list[int], int], Tensor]
"""Picks each row's token (R,) from log-probabilities (R, V), the rows' sentence numbers and the position."""


def most_likely(log_probs: Tensor, sentences: list[int], position: int) -> Tensor:
    """The greedy choice."""
    del sentences, position
    return log_probs.argmax(dim=-1)


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
    """Extends every sentence token by token until it ends; finished rows are dropped from the computation.

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
    last = torch.full((len(sentences),), bos_id, device=device)
    position = 0
    while sentences:
        log_probs = step(last, position, state).float().log_softmax(dim=-1)  # (R, V)
        at_limit = torch.tensor([position + 1 >= max_lengths[i] for i in sentences], device=device)
        log_probs = force_eos(log_probs, at_limit, eos_id)
        last = choose(log_probs, sentences, position)
        gained = log_probs.gather(1, last[:, None]).squeeze(1).tolist()
        open_rows: list[int] = []
        for row, (sentence, token) in enumerate(zip(sentences, last.tolist(), strict=True)):
            log_prob[sentence] += gained[row]
            if token != eos_id:
                ids[sentence].append(token)
                open_rows.append(row)
        if len(open_rows) < len(sentences):
            rows = torch.tensor(open_rows, dtype=torch.long, device=device)
            sentences = [sentences[row] for row in open_rows]
            last = last[rows]
            state.select(rows)
        position += 1
    return [finished(i, p, length_penalty) for i, p in zip(ids, log_prob, strict=True)]
