"""One row for each hypothesis, extended token by token until it ends: what greedy search and sampling share."""

from collections.abc import Callable

import torch
from torch import Tensor

from .repeats import forbid_repeats
from .search import Hypothesis, SearchState, Step, Task, finished, force_prefixes, log_softmax

Choose = Callable[[Tensor, list[int], int], Tensor]
"""Picks each row's token (R,) from log-probabilities (R, V), the rows' sentence numbers and the position."""


_IDLE_ROWS = 1 / 8
"""Rows that may go on after their end: to drop them moves all others in memory, which costs more than a few of them."""


def extend_rows(
    step: Step,
    state: SearchState,
    task: Task,
    choose: Choose,
    length_penalty: float,
    no_repeat_ngram_size: int = 0,
) -> list[Hypothesis]:
    """Extends every sentence token by token until it ends; finished rows are dropped when there are enough of them.

    Args:
        step, state: The model, as a search sees it; the state has one row for each sentence.
        task: What is searched for.
        choose: The rule that picks the tokens.
        length_penalty: Alpha for the reported score; nothing is compared here.
        no_repeat_ngram_size: So many tokens in a row stand at most once in an output; 0 for no such limit.

    Returns:
        One hypothesis for each sentence, in order.
    """
    max_lengths, eos_id, device = task.max_lengths, task.eos_id, task.device
    ids: list[list[int]] = [[] for _ in max_lengths]
    log_prob = [0.0] * len(max_lengths)
    sentences = list(range(len(max_lengths)))  # the sentence of each row
    open_rows = sentences  # the rows whose sentences have not ended
    first_limit, longest_prefix = task.first_limit, task.longest_prefix
    last = torch.full((len(sentences),), task.bos_id, device=device)
    so_far = last.unsqueeze(1)  # (R, T) as tokens of one tensor; kept only where repetitions are looked for
    position = 0
    while open_rows:
        log_probs = log_softmax(step(last, position, state))  # (R, V)
        if position < longest_prefix:
            log_probs = force_prefixes(log_probs, position, sentences, task.prefixes)
        if no_repeat_ngram_size:
            log_probs = forbid_repeats(log_probs, so_far, no_repeat_ngram_size, task, sentences)
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
            last, so_far = last[rows], so_far[rows]
            state.reorder(rows, rows)
        if no_repeat_ngram_size:
            so_far = torch.cat([so_far, last.unsqueeze(1)], dim=1)
        position += 1
    return [finished(i, p, length_penalty) for i, p in zip(ids, log_prob, strict=True)]
