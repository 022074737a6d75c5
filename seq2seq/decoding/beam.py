"""Beam search with the GNMT length penalty."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .search import Hypothesis, SearchState, Step, finished, force_eos


@dataclass
class _Sentence:
    number: int
    max_length: int
    done: list[Hypothesis] = field(default_factory=list)


def beam_search(
    step: Step,
    state: SearchState,
    *,
    beam_size: int,
    length_penalty: float,
    max_lengths: Sequence[int],
    bos_id: int,
    eos_id: int,
    n_best: int = 1,
    device: torch.device | None = None,
) -> list[list[Hypothesis]]:
    """Keeps the `beam_size` likeliest unfinished hypotheses of every sentence.

    At each step the 2 * beam_size likeliest one-token extensions are looked at. Those that end, if among the first
    beam_size, are finished; the first beam_size of the others go on. A sentence is done when beam_size hypotheses have
    finished or its length limit is reached, where a hypothesis can only end. With beam_size 1 this is greedy search.

    Args:
        step, state: The model, as seen by a search; the state has one row per sentence and gets beam_size of them.
        beam_size: K.
        length_penalty: Alpha, see `length_normaliser`.
        max_lengths: Most tokens of each output, eos included.
        bos_id, eos_id: What starts and ends a sentence.
        n_best: Hypotheses wanted for each sentence.
        device: Where the step computes.

    Returns:
        For each sentence its best hypotheses, best score first; `n_best` of them, or as many as exist.
    """
    k = beam_size
    sentences = [_Sentence(number, limit) for number, limit in enumerate(max_lengths)]
    results: list[list[Hypothesis]] = [[] for _ in sentences]
    active = sentences
    state.select(torch.arange(len(active), device=device).repeat_interleave(k))
    # A sentence's beams start equal, so only the first counts at the first step.
    log_prob = torch.full((len(active), k), float("-inf"), device=device)
    log_prob[:, 0] = 0
    ids = torch.full((len(active) * k, 1), bos_id, device=device)
    position = 0
    while active:
        log_probs = step(ids[:, -1], position, state).float().log_softmax(dim=-1)  # (A * K, V)
        limits = torch.tensor([s.max_length for s in active], device=device)
        log_probs = force_eos(log_probs, (limits <= position + 1).repeat_interleave(k), eos_id)
        totals = (log_prob.view(-1, 1) + log_probs).view(len(active), -1)  # (A, K * V)
        best, flat = totals.topk(min(2 * k, totals.size(1)), dim=-1)  # (A, 2K), best first
        beams, tokens = flat // log_probs.size(1), flat % log_probs.size(1)
        is_eos = tokens == eos_id
        _collect_finished(active, ids, best[:, :k], beams[:, :k], is_eos[:, :k], length_penalty)

        kept = _first_open(is_eos, k)  # (A, K)
        log_prob, tokens, beams = best.gather(1, kept), tokens.gather(1, kept), beams.gather(1, kept)
        rows = (beams + torch.arange(len(active), device=device)[:, None] * k).view(-1)  # (A * K,)
        ids = torch.cat([ids[rows], tokens.view(-1, 1)], dim=1)
        state.reorder(rows)

        open_sentences = [
            i
            for i, sentence in enumerate(active)
            if len(sentence.done) < k and position + 1 < sentence.max_length and bool(log_prob[i, 0] > float("-inf"))
        ]
        if len(open_sentences) < len(active):
            for i in set(range(len(active))) - set(open_sentences):
                ranked = sorted(active[i].done, key=lambda hypothesis: -hypothesis.score)
                results[active[i].number] = ranked[:n_best]
            chosen = torch.tensor(open_sentences, dtype=torch.long, device=device)
            rows = (chosen[:, None] * k + torch.arange(k, device=device)).view(-1)
            active, log_prob, ids = [active[i] for i in open_sentences], log_prob[chosen], ids[rows]
            state.select(rows)
        position += 1
    return results


def _first_open(is_eos: Tensor, k: int) -> Tensor:
    """Columns of the first K candidates that do not end, in order of probability; (A, K).

    They exist: each of the K beams has one way to end, so at most K of the 2K candidates do.
    """
    order = torch.arange(is_eos.size(1), device=is_eos.device)
    return torch.where(is_eos, order + is_eos.size(1), order).argsort(dim=-1)[:, :k]


def _collect_finished(
    active: list[_Sentence], ids: Tensor, best: Tensor, beams: Tensor, is_eos: Tensor, alpha: float
) -> None:
    """Adds the hypotheses that end at this step to their sentences."""
    ends = is_eos & (best > float("-inf"))
    k = ids.size(0) // len(active)
    for i, column in ends.nonzero().tolist():
        row = i * k + int(beams[i, column])
        active[i].done.append(finished(ids[row, 1:].tolist(), float(best[i, column]), alpha))
