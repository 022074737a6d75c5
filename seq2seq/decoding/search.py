"""What every search shares. A search knows no model: it calls a step, which reads and extends a state.

R is the number of rows being extended: sentences still unfinished, times the beam size in beam search.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

if TYPE_CHECKING:
    from .phrases import Phrase

IMPOSSIBLE = float("-inf")
"""The log-probability of what must not come."""


class SearchState(Protocol):
    """Everything a step needs to know of the rows so far; at first each sentence has one row."""

    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Row i takes over what row `rows[i]` has generated.

        Args:
            rows: Equally many for each sentence, those of one sentence side by side.
            sentences: Sentence j becomes sentence `sentences[j]`; the same sentences in the same order if not given.
        """
        ...


class Step(Protocol):
    """Extends every row by the token given and says what may come next."""

    def __call__(self, last: Tensor, position: int, state: SearchState) -> Tensor:
        """Takes the newest tokens (R,), standing at `position`; returns logits (R, V), without gradients.

        They are contiguous and hold until the next step, and the caller may overwrite them.
        """
        ...


@dataclass(frozen=True)
class Hypothesis:
    """One finished output."""

    ids: list[int]
    """Without bos and eos."""
    log_prob: float
    """Sum of the log-probabilities of the tokens, eos included, under the model without its control pieces."""
    score: float
    """The log-probability normalised for length; what beam search ranks by."""


@dataclass(frozen=True)
class Task:
    """What is searched for: for each sentence of a batch the limits of its output."""

    max_lengths: Sequence[int]
    """Most tokens of each output, eos included; at its limit an output can only end."""
    bos_id: int
    eos_id: int
    prefixes: Sequence[Sequence[int]] = ()
    """For each sentence the tokens that its output begins with, without bos; no tokens where all is free. None may have
    eos in it, or leave no room for it. May be left out where no output has a given beginning."""
    keys: Sequence[str] = ()
    """What identifies each sentence, such as its line; only sampling needs it."""
    device: torch.device | None = None
    phrases: "Sequence[Sequence[Phrase]]" = ()
    """For each sentence what its output must contain; only a search under constraint looks at them."""
    expected: Sequence[int] = ()
    """About how many tokens each output will have. Where it is known, a search under constraint stops earlier: see
    `constrained.LONGER`."""

    def __post_init__(self) -> None:
        if not self.prefixes:
            return
        if len(self.prefixes) != len(self.max_lengths):
            raise ValueError(f"{len(self.prefixes)} prefixes were given for {len(self.max_lengths)} sentences")
        for prefix, limit in zip(self.prefixes, self.max_lengths, strict=True):
            if len(prefix) >= limit:
                raise ValueError(f"a prefix of {len(prefix)} tokens and eos are longer than the limit of {limit}")
            if self.eos_id in prefix:
                raise ValueError("a prefix must not contain eos")

    @cached_property
    def first_limit(self) -> int:
        """The shortest limit. Before this position no output is forced to end."""
        return min(self.max_lengths, default=0)

    @cached_property
    def longest_prefix(self) -> int:
        """Length of the longest prefix: from this position on, the search is free in every sentence."""
        return max(map(len, self.prefixes), default=0)


class Search(Protocol):
    """A way to search, with its parameters."""

    @property
    def rows(self) -> int:
        """Most rows of a sentence at one step."""
        ...

    @property
    def length_penalty(self) -> float:
        """Alpha of the scores, see `length_normaliser`."""
        ...

    def __call__(self, step: Step, state: SearchState, task: Task) -> list[list[Hypothesis]]:
        """Searches for the outputs of a batch: for each sentence its hypotheses, best first.

        Step and state are the model, as a search sees it; the state has one row for each sentence.
        """
        ...


def length_normaliser(length: int, alpha: float) -> float:
    """((5 + length) / 6)^alpha, the length penalty of Wu et al. (2016, arXiv:1609.08144, eq. 14); eos counts."""
    return ((5 + length) / 6) ** alpha


def finished(ids: list[int], log_prob: float, alpha: float) -> Hypothesis:
    """A hypothesis from its ids without eos; the length that is normalised by includes it."""
    return Hypothesis(ids, log_prob, log_prob / length_normaliser(len(ids) + 1, alpha))


_GROUP = 64
"""Neighbours that are looked at together in a long row to find its largest elements."""
_LONG_ROW = 2000
"""Elements from which a row counts as long."""


def largest(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest elements of each row of x (R, V), in falling order, and where they stand; each (R, k).

    torch's `topk` and `argmax` look at the elements of a long row one by one. NumPy's `argmax` takes many at a time;
    for more elements than one, a row is divided into groups, whose maxima torch finds many at a time: the k largest
    elements are in k groups with the largest maxima.
    """
    width = x.size(1)
    if x.device.type != "cpu" or width < max(_LONG_ROW, 2 * k * _GROUP):
        return x.topk(k, dim=1)
    if k == 1:
        place = torch.from_numpy(x.numpy().argmax(axis=1, keepdims=True))
        return x.gather(1, place), place
    count = width // _GROUP
    grouped = x[:, : count * _GROUP].unflatten(1, (count, _GROUP))  # (R, groups, 64)
    groups = grouped.amax(dim=2).topk(k, dim=1).indices  # (R, k)
    candidates = grouped.gather(1, groups.unsqueeze(2).expand(-1, -1, _GROUP)).flatten(1)  # (R, k * 64)
    rest = x[:, count * _GROUP :]  # (R, fewer than 64)
    if rest.size(1):  # it is one more group, which follows the chosen ones
        candidates, groups = torch.cat([candidates, rest], dim=1), F.pad(groups, (0, 1), value=count)
    values, chosen = candidates.topk(k, dim=1)
    return values, groups.gather(1, torch.floor_divide(chosen, _GROUP)) * _GROUP + chosen.remainder(_GROUP)


def log_softmax(logits: Tensor) -> Tensor:
    """Log-probabilities (R, V) of logits (R, V); on a CPU in their place, as new memory costs as much time."""
    logits = logits.float()
    return torch.log_softmax(logits, dim=-1, out=logits if logits.device.type == "cpu" else None)


def force_eos(log_probs: Tensor, at_limit: Tensor, eos_id: int) -> Tensor:
    """Leaves eos as the only choice in rows (R,) that have reached their longest length; log-probabilities (R, V)."""
    if not bool(at_limit.any()):
        return log_probs
    return _leave_only(log_probs, at_limit, eos_id)


def force_prefixes(
    log_probs: Tensor, position: int, sentences: Sequence[int], prefixes: Sequence[Sequence[int]]
) -> Tensor:
    """Leaves the next token of a prefix as the only choice in the rows of sentences whose prefix is not yet complete.

    That token keeps its log-probability, so that of a hypothesis remains what the model says of its whole output.

    The log-probabilities (R, V) have equally many rows for each of `sentences`, in order. The position is that of the
    token to be chosen, 0 after bos.
    """
    given = [prefixes[i][position] if position < len(prefixes[i]) else None for i in sentences]
    each = log_probs.size(0) // len(sentences)
    forced = torch.tensor([token is not None for token in given for _ in range(each)], device=log_probs.device)
    tokens = torch.tensor([token or 0 for token in given for _ in range(each)], device=log_probs.device)
    return _leave_only(log_probs, forced, tokens[:, None])


def forbid_repeats(log_probs: Tensor, ids: Tensor, size: int, task: Task, sentences: Sequence[int]) -> Tensor:
    """Makes impossible the tokens with which an output would have the same `size` tokens in a row twice.

    The end of an output always remains possible, and what a prefix gives. The other tokens keep their
    log-probabilities, though the probabilities then do not sum to 1: the log-probability of a hypothesis remains that
    under the model.

    Args:
        log_probs: (R, V), of the next tokens, equally many rows for each sentence; overwritten.
        ids: (R, T), the outputs so far, bos first.
        size: n of the n-grams, at least 1.
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


def restrict(log_probs: Tensor, ids: Tensor, task: Task, sentences: Sequence[int], no_repeat_ngram_size: int) -> Tensor:
    """Makes the tokens impossible that a given prefix, a limit on repetitions or that on the length forbids.

    Args:
        log_probs: (R, V), of the next tokens, equally many rows for each sentence; may be overwritten.
        ids: (R, T), the outputs so far, bos first.
        sentences: The sentences of the rows, in order.
        no_repeat_ngram_size: See `forbid_repeats`; 0 for no such limit.
    """
    position = ids.size(1) - 1
    if position < task.longest_prefix:
        log_probs = force_prefixes(log_probs, position, sentences, task.prefixes)
    if no_repeat_ngram_size:
        log_probs = forbid_repeats(log_probs, ids, no_repeat_ngram_size, task, sentences)
    if position + 1 >= task.first_limit:
        at_limit = torch.tensor([position + 1 >= task.max_lengths[i] for i in sentences], device=log_probs.device)
        at_limit = at_limit.repeat_interleave(log_probs.size(0) // len(sentences))
        log_probs = force_eos(log_probs, at_limit, task.eos_id)
    return log_probs


def _leave_only(log_probs: Tensor, rows: Tensor, token: int | Tensor) -> Tensor:
    """Makes all tokens but one impossible in some rows (R,); the one is the same for all, or (R, 1)."""
    forbidden = rows[:, None] & (torch.arange(log_probs.size(1), device=log_probs.device) != token)
    return log_probs.masked_fill(forbidden, IMPOSSIBLE)
