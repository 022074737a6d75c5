"""Beam search with the GNMT length penalty."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from .config import LENGTH_PENALTY, check_n_best, check_no_repeat_ngram_size
from .repeats import forbid_repeats
from .search import (
    IMPOSSIBLE,
    Hypothesis,
    SearchState,
    Step,
    Task,
    check_length_penalty,
    finished,
    force_eos,
    force_prefixes,
    largest,
    length_normaliser,
    log_softmax,
)


@dataclass(frozen=True)
class Beam:
    """Keeps the `size` likeliest unfinished hypotheses of every sentence. A `Search`.

    At each step the 2 * size likeliest one-token extensions are looked at. Those that end, if among the first `size`,
    are finished; the first `size` of the others go on. A sentence is done when `size` hypotheses have finished and one
    of them is likelier than all that go on: what ends too early does not hide what is nearly certain. It is also done
    when its length limit is reached, where a hypothesis can only end. With a size of 1 this is greedy search.

    Args:
        size: K.
        length_penalty: Alpha, see `length_normaliser`.
        n_best: Hypotheses wanted for each sentence, at most `size`.
        no_repeat_ngram_size: So many tokens in a row stand at most once in a hypothesis, see `forbid_repeats`; 0 for no
            such limit.
        stops_early: A sentence is done as soon as `size` hypotheses have finished, as CTranslate2 has it.

    Raises:
        ValueError: A value is out of range.
    """

    size: int
    length_penalty: float = LENGTH_PENALTY
    n_best: int = 1
    no_repeat_ngram_size: int = 0
    stops_early: bool = False

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"the beam size must be at least 1, but is {self.size}")
        check_n_best(self.n_best, self.size)
        check_length_penalty(self.length_penalty)
        check_no_repeat_ngram_size(self.no_repeat_ngram_size)

    @property
    def rows(self) -> int:
        """One for each hypothesis in the beam."""
        return self.size

    def __call__(self, step: Step, state: SearchState, task: Task) -> list[list[Hypothesis]]:
        """For each sentence its best hypotheses, best score first: `n_best`, or as many as exist; see `Search`."""
        k, eos_id, device = self.size, task.eos_id, task.device
        results: list[list[Hypothesis]] = [[] for _ in task.max_lengths]
        active = torch.arange(len(task.max_lengths), device=device)  # (A,) the sentences still searched for
        limits = torch.tensor(task.max_lengths, dtype=torch.long, device=device)
        ended = EndedHypotheses(self, task)
        log_prob = torch.zeros(active.size(0), 1, device=device)  # a sentence begins with one hypothesis, then has K
        last = torch.full((active.size(0),), task.bos_id, device=device)
        ids = last.unsqueeze(1)  # (A * K, T)
        first_limit, longest_prefix, position = task.first_limit, task.longest_prefix, 0
        while active.size(0):
            log_probs = log_softmax(step(last, position, state))  # (A * K, V)
            if position < longest_prefix:
                log_probs = force_prefixes(log_probs, position, active.tolist(), task.prefixes)
            if self.no_repeat_ngram_size:
                log_probs = forbid_repeats(log_probs, ids, self.no_repeat_ngram_size, task, active.tolist())
            position += 1
            some_at_limit = position >= first_limit
            if some_at_limit:
                log_probs = force_eos(log_probs, (limits <= position).repeat_interleave(log_prob.size(1)), eos_id)
            best, rows, tokens = likeliest_extensions(log_prob, log_probs, 2 * k, filler=task.bos_id)  # (A, 2K) each
            is_eos = tokens == eos_id
            going_on = None
            if some_at_limit or bool(is_eos.any()) or bool((ended.count >= k).any()):
                ended.add(best[:, :k].masked_fill(~is_eos[:, :k], IMPOSSIBLE), ids[:, 1:], rows[:, :k])
                kept = _first_open(is_eos, k)  # (A, K)
                log_prob, rows, tokens = best.gather(1, kept), rows.gather(1, kept), tokens.gather(1, kept)
                enough = ended.count >= k
                if not self.stops_early:
                    enough &= ended.likeliest >= log_prob[:, 0]
                done = enough | (limits <= position) | (log_prob[:, 0] == IMPOSSIBLE)
                if bool(done.any()):
                    for i in done.nonzero().squeeze(1).tolist():
                        results[int(active[i])] = ended.hypotheses(i)
                    going_on = (~done).nonzero().squeeze(1)
                    active, limits, log_prob = active[going_on], limits[going_on], log_prob[going_on]
                    rows, tokens = rows[going_on], tokens[going_on]
                    ended.select(going_on)
            else:  # nothing ended, so no sentence is done
                log_prob, rows, tokens = best[:, :k], rows[:, :k], tokens[:, :k]
            rows, last = rows.flatten(), tokens.flatten()
            ids = torch.cat([ids.index_select(0, rows), last.unsqueeze(1)], dim=1)
            state.reorder(rows, going_on)
        return results


def likeliest_extensions(log_prob: Tensor, log_probs: Tensor, count: int, filler: int) -> tuple[Tensor, Tensor, Tensor]:
    """The likeliest one-token extensions of each sentence's hypotheses.

    Args:
        log_prob: (A, K), of the hypotheses.
        log_probs: (A * K, V), of their next tokens; overwritten.
        count: How many extensions of each sentence.
        filler: Token of impossible extensions, which fill up where a small vocabulary has fewer.

    Returns:
        Log-probabilities, likeliest first, the rows they extend and their tokens; each (A, count).
    """
    sentences, k = log_prob.shape
    width = log_probs.size(1)
    totals = log_probs.add_(log_prob.reshape(-1, 1)).view(sentences, -1)  # (A, K * V)
    best, flat = largest(totals, min(count, totals.size(1)))
    beams = torch.floor_divide(flat, width)
    tokens = flat - beams * width
    rows = beams + torch.arange(0, sentences * k, k, device=beams.device)[:, None] if sentences > 1 else beams
    missing = count - best.size(1)
    if missing:
        best = F.pad(best, (0, missing), value=IMPOSSIBLE)
        rows = torch.cat([rows, rows[:, :1].expand(-1, missing)], dim=1)
        tokens = F.pad(tokens, (0, missing), value=filler)
    return best, rows, tokens


def _first_open(is_eos: Tensor, k: int) -> Tensor:
    """Columns of the first K candidates that do not end, in order of probability; (A, K).

    They exist: each of at most K hypotheses has one way to end, so at most K of the 2K candidates do.
    """
    order = torch.arange(is_eos.size(1), device=is_eos.device)
    return (order + is_eos * is_eos.size(1)).argsort(dim=-1)[:, :k]


class EndedHypotheses:
    """The best hypotheses of each sentence that have ended so far.

    Attributes:
        count: (A,) how many have ended.
        likeliest: (A,) the log-probability of the likeliest of them.
    """

    def __init__(self, beam: Beam, task: Task) -> None:
        self._n_best, self._alpha, self._eos_id = beam.n_best, beam.length_penalty, task.eos_id
        sentences, n_best, device = len(task.max_lengths), beam.n_best, task.device
        self.count = torch.zeros(sentences, dtype=torch.long, device=device)
        self.likeliest = torch.full((sentences,), IMPOSSIBLE, device=device)
        self._score = torch.full((sentences, n_best), IMPOSSIBLE, device=device)
        self._log_prob = self._score
        self._ids = torch.zeros((sentences, n_best, 0), dtype=torch.long, device=device)  # filled up with eos

    def add(self, log_prob: Tensor, ids: Tensor, rows: Tensor) -> None:
        """Adds hypotheses of one length.

        Args:
            log_prob: (A, K), -inf where nothing ends.
            ids: (R, T), of all the rows, without bos and eos.
            rows: (A, K), the row of each hypothesis.
        """
        ends = log_prob > IMPOSSIBLE
        if not bool(ends.any()):
            return
        self.count += ends.sum(dim=1)
        self.likeliest = torch.maximum(self.likeliest, log_prob.amax(dim=1))
        length = ids.size(1)
        new = log_prob / length_normaliser(length + 1, self._alpha)
        self._score, chosen = torch.cat([self._score, new], dim=1).topk(self._n_best, dim=1)
        self._log_prob = torch.cat([self._log_prob, log_prob], dim=1).gather(1, chosen)
        known = F.pad(self._ids, (0, length - self._ids.size(2)), value=self._eos_id)
        every = torch.cat([known, ids[rows]], dim=1)  # (A, n_best + K, T)
        self._ids = every.gather(1, chosen[:, :, None].expand(-1, -1, length))

    def select(self, sentences: Tensor) -> None:
        """Sentence i becomes what sentence `sentences[i]` was."""
        self.count, self.likeliest = self.count[sentences], self.likeliest[sentences]
        self._score = self._score[sentences]
        self._log_prob, self._ids = self._log_prob[sentences], self._ids[sentences]

    def hypotheses(self, sentence: int) -> list[Hypothesis]:
        """The best of one sentence, best score first."""
        found: list[Hypothesis] = []
        for ids, log_prob in zip(self._ids[sentence].tolist(), self._log_prob[sentence].tolist(), strict=True):
            if log_prob > IMPOSSIBLE:
                length = ids.index(self._eos_id) if self._eos_id in ids else len(ids)
                found.append(finished(ids[:length], log_prob, self._alpha))
        return sorted(found, key=lambda hypothesis: -hypothesis.score)
