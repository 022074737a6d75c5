"""Outputs that do not say the same again and again."""

from collections.abc import Sequence

import torch
from torch import Tensor

from .search import IMPOSSIBLE, Task


def forbid_repeats(log_probs: Tensor, ids: Tensor, size: int, task: Task, sentences: Sequence[int]) -> Tensor:
    """Makes impossible the tokens with which an output would have the same `size` tokens in a row twice.

    The end of an output always remains possible, and what a prefix gives. The other tokens keep their
    log-probabilities, though the probabilities then do not sum to 1: the log-probability of a hypothesis remains that
    under the model.

    Args:
        log_probs: (R, V), of the next tokens, equally many rows for each sentence; overwritten.
        ids: (R, T), the outputs so far, bos first.
        size: n of the n-grams, at least 1.
        task: Has the prefixes.
        sentences: The sentences of the rows, in order.
    """
    ids = ids[:, 1:]
    position = ids.size(1)
    if position < size:
        return log_probs
    ngrams = ids.unfold(1, size, 1)  # (R, T - size, size)
    begun = ids[:, None, position - size + 1 :]  # (R, 1, size - 1): what the next token would complete
    again = (ngrams[:, :, :-1] == begun).all(dim=2)  # (R, T - size)
    if position < task.longest_prefix:
        given = torch.tensor([position < len(task.prefixes[i]) for i in sentences], device=ids.device)
        again &= ~given.repeat_interleave(ids.size(0) // len(sentences))[:, None]
    rows, places = again.nonzero(as_tuple=True)
    if rows.numel():
        log_probs[rows, ngrams[rows, places, -1]] = IMPOSSIBLE
    return log_probs
