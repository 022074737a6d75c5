"""Beam search with the GNMT length penalty."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from .config import LENGTH_PENALTY, DecodingConfig, check_n_best, check_search
from .greedy import Greedy
from .search import (
    IMPOSSIBLE,
    Hypothesis,
    SearchState,
    Step,
    Task,
    finished,
    largest,
    length_normaliser,
    log_softmax,
    restrict,
)


@dataclass(frozen=True)
class Beam:
    """Keeps the `size` likeliest unfinished hypotheses of every sentence. A `Search`.

    At each step the 2 * size likeliest one-token extensions are looked at. Those that end, if among the first `size`,
    are finished; the first `size` of the others go on. A sentence is done when `size` hypotheses have finished and one
    of them is likelier than all that go on. So a hypothesis that ended early does not beat a likelier one that is still
    open. A sentence is also done at its length limit, where a hypothesis can only end. With a size of 1 this is greedy
    search.

    >>> translations = translator.translate(["the cat sees the house."], search=Beam(5, n_best=3))
    >>> len(translations[0].alternatives)
    3

    Args:
        size: K.
        length_penalty: Alpha, see `length_normaliser`.
        n_best: Hypotheses wanted for each sentence, at most `size`.
        no_repeat_ngram_size: n of the n-grams that stand at most once in a hypothesis, see `forbid_repeats`; 0 for no
            such limit.
        stops_early: A sentence is done as soon as `size` hypotheses have finished, as CTranslate2 has it.
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
        check_search(self.length_penalty, self.no_repeat_ngram_size)

    @property
    def rows(self) -> int:
        """One for each hypothesis in the beam."""
        return self.size

    def __call__(self, step: Step, state: SearchState, task: Task) -> list[list[Hypothesis]]:
        """For each sentence its best hypotheses, best score first: `n_best`, or as many as exist; see `Search`."""
        results: list[list[Hypothesis]] = [[] for _ in task.max_lengths]
        rows, ended = _Rows.first(task), EndedHypotheses(self, task)
        while rows.sentences:
            log_probs = log_softmax(step(rows.ids[:, -1], rows.length, state))  # (A * K, V)
            log_probs = restrict(log_probs, rows.ids, task, rows.sentences, self.no_repeat_ngram_size)
            found = likeliest_extensions(rows.log_prob, log_probs, 2 * self.size, filler=task.bos_id)
            found, done = self._without_ended(found, rows, ended, task)
            going_on = None
            if done is not None:
                for i in done.nonzero().squeeze(1).tolist():
                    results[rows.sentences[i]] = ended.hypotheses(i)
                going_on = (~done).nonzero().squeeze(1)
                rows.select(going_on)
                ended.select(going_on)
                found = found.select(going_on)
            rows.extend(found)
            state.reorder(found.rows.flatten(), going_on)
        return results

    def _without_ended(
        self, found: "Extensions", rows: "_Rows", ended: "EndedHypotheses", task: Task
    ) -> tuple["Extensions", Tensor | None]:
        """Adds the extensions that end, if they are among the K likeliest of their sentence, to `ended`.

        Returns the K likeliest that do not end, and which sentences are done, (A,); None if no sentence is.
        """
        k, length, is_eos = self.size, rows.length + 1, found.tokens == task.eos_id
        if length < task.first_limit and not bool(is_eos.any()) and not bool((ended.count >= k).any()):
            return Extensions(*(tensor[:, :k] for tensor in found)), None  # nothing ended, so no sentence is done
        ended.add(found.log_prob[:, :k].masked_fill(~is_eos[:, :k], IMPOSSIBLE), rows.ids[:, 1:], found.rows[:, :k])
        columns = _first_open(is_eos, k)  # (A, K)
        found = Extensions(*(tensor.gather(1, columns) for tensor in found))
        done = ended.count >= k
        if not self.stops_early:
            done &= ended.likeliest >= found.log_prob[:, 0]
        done |= (rows.limits <= length) | (found.log_prob[:, 0] == IMPOSSIBLE)
        return found, done if bool(done.any()) else None


class Extensions(NamedTuple):
    """One-token extensions of hypotheses, n for each of A sentences, likeliest first; each tensor is (A, n)."""

    log_prob: Tensor
    """Log-probability of the hypothesis with its new token."""
    rows: Tensor
    """The row of the hypothesis that is extended."""
    tokens: Tensor

    def select(self, sentences: Tensor) -> "Extensions":
        """Those of some sentences."""
        return Extensions(*(tensor[sentences] for tensor in self))


@dataclass
class _Rows:
    """The hypotheses that go on: K of each sentence, side by side. A sentence begins with one."""

    sentences: list[int]
    """Numbers of the A sentences still searched for."""
    limits: Tensor
    """(A,) of their lengths."""
    log_prob: Tensor  # (A, K)
    ids: Tensor  # (A * K, T), bos first

    @classmethod
    def first(cls, task: Task) -> "_Rows":
        """One for each sentence of a task."""
        count, device = len(task.max_lengths), task.device
        limits = torch.tensor(task.max_lengths, dtype=torch.long, device=device)
        bos = torch.full((count, 1), task.bos_id, device=device)
        return cls(list(range(count)), limits, torch.zeros(count, 1, device=device), bos)

    @property
    def length(self) -> int:
        """Tokens so far, without bos: the position of the next one."""
        return self.ids.size(1) - 1

    def select(self, sentences: Tensor) -> None:
        """Goes on with some sentences only; `ids` follow when they are extended."""
        self.sentences, self.limits = [self.sentences[i] for i in sentences.tolist()], self.limits[sentences]

    def extend(self, chosen: Extensions) -> None:
        """Makes K extensions of each sentence the hypotheses that go on."""
        self.log_prob = chosen.log_prob
        self.ids = torch.cat([self.ids.index_select(0, chosen.rows.flatten()), chosen.tokens.reshape(-1, 1)], dim=1)


def likeliest_extensions(log_prob: Tensor, log_probs: Tensor, count: int, filler: int) -> Extensions:
    """The `count` likeliest one-token extensions of each sentence's hypotheses.

    `log_prob` (A, K) is of the hypotheses, `log_probs` (A * K, V) of their next tokens, and overwritten. Impossible
    extensions by the token `filler` fill up where a small vocabulary has fewer.
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
    return Extensions(best, rows, tokens)


def _first_open(is_eos: Tensor, k: int) -> Tensor:
    """Columns of the first K candidates that do not end, in order of probability; (A, K).

    They exist: each of at most K hypotheses has one way to end, so at most K of the 2K candidates do.
    """
    order = torch.arange(is_eos.size(1), device=is_eos.device)
    return (order + is_eos * is_eos.size(1)).argsort(dim=-1)[:, :k]


class EndedHypotheses:
    """The best hypotheses of each sentence that have ended so far.

    `count` (A,) is how many have ended, `likeliest` (A,) the log-probability of the likeliest of them.
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
        """Adds hypotheses of one length: log_prob (A, K), -inf where nothing ends, and the row of each, rows (A, K).

        The ids (R, T) are those of all the rows, without bos and eos.
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


def build_search(
    defaults: DecodingConfig,
    beam_size: int | None = None,
    length_penalty: float | None = None,
    n_best: int = 1,
    no_repeat_ngram_size: int | None = None,
) -> Greedy | Beam:
    """A run's own search for `n_best` hypotheses of each sentence, with what is asked for instead of its defaults.

    A beam size of 1 is greedy search. If none is given it is the run's, or `n_best` if that is more. ValueError if a
    value is out of range, or `n_best` exceeds the beam size given.
    """
    alpha = defaults.length_penalty if length_penalty is None else length_penalty
    size = max(defaults.beam_size, n_best) if beam_size is None else beam_size
    once = defaults.no_repeat_ngram_size if no_repeat_ngram_size is None else no_repeat_ngram_size
    return Greedy(alpha, once) if size == n_best == 1 else Beam(size, alpha, n_best, once)
