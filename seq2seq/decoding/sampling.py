"""Choosing tokens at random, from all of the distribution or from its likely part."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .config import LENGTH_PENALTY, check_search
from .greedy import extend_rows
from .search import Hypothesis, SearchState, Step, Task


@dataclass(frozen=True)
class Sample:
    """Draws each token at random, as likely as the model says. A `Search`.

    >>> once, again = (translator.translate(["a dog."], search=Sample(0.8, seed=7))[0] for _ in range(2))
    >>> once == again
    True

    Args:
        temperature: Logits are divided by it: below 1 sharper, above 1 flatter.
        top_k: Only the k likeliest tokens; 0 for all.
        top_p: Only the smallest set of likeliest tokens whose probabilities sum to at least p (Holtzman et al. 2020).
        seed: Together with a sentence's key, the number of the sample and the position, all that a draw depends on.
        samples: How many are drawn for each sentence; the same sample may be drawn twice.
        length_penalty: Alpha for the reported score; nothing is compared.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    samples: int = 1
    length_penalty: float = LENGTH_PENALTY

    def __post_init__(self) -> None:
        if not 0 < self.temperature <= 100:
            raise ValueError(f"temperature must be above 0 and at most 100, but is {self.temperature}")
        if self.top_k < 0:
            raise ValueError(f"top_k must be at least 0, but is {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, but is {self.top_p}")
        if self.samples < 1:
            raise ValueError(f"samples must be at least 1, but is {self.samples}")
        check_search(self.length_penalty)

    @property
    def rows(self) -> int:
        """One for each sample."""
        return self.samples

    def __call__(self, step: Step, state: SearchState, task: Task) -> list[list[Hypothesis]]:
        """For each sentence its samples in the order drawn; see `Search`. The task has to name a key for each."""
        sentences, each = len(task.max_lengths), self.samples
        if len(task.keys) != sentences:
            raise ValueError(f"sampling needs a key for each of {sentences} sentences, but got {len(task.keys)}")
        repeated = torch.arange(sentences, device=task.device).repeat_interleave(each)
        state.reorder(repeated, repeated)
        every = replace(
            task,
            max_lengths=[limit for limit in task.max_lengths for _ in range(each)],
            prefixes=[prefix for prefix in task.prefixes for _ in range(each)],
            keys=[f"{key}.{number}" for key in task.keys for number in range(each)],
        )

        def draw(log_probs: Tensor, rows: list[int], position: int) -> Tensor:
            return sample_tokens(log_probs, self, [every.keys[row] for row in rows], position)

        drawn = extend_rows(step, state, every, draw, self.length_penalty)
        return [drawn[i : i + each] for i in range(0, len(drawn), each)]


def restricted_distribution(log_probs: Tensor, sampling: Sample) -> tuple[Tensor, Tensor]:
    """The distribution that is sampled from, by log-probabilities (R, V).

    Probabilities (R, V) in falling order, 0 outside the likely part and summing to 1, and the token ids so ordered.
    """
    temperature = max(sampling.temperature, 1e-30)  # below it the quotients overflow; it is the likeliest token by then
    probs, tokens = (log_probs / temperature).softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    if 0 < sampling.top_k < probs.size(1):
        probs[:, sampling.top_k :] = 0
        probs = probs / probs.sum(dim=-1, keepdim=True)
    if sampling.top_p < 1:
        before = probs.cumsum(dim=-1) - probs  # probability of everything likelier
        probs = probs.masked_fill(before >= sampling.top_p, 0)
        probs = probs / probs.sum(dim=-1, keepdim=True)
    return probs, tokens


def sample_tokens(log_probs: Tensor, sampling: Sample, keys: Sequence[object], position: int) -> Tensor:
    """Draws one token per row, by inverting the cumulative distribution at a number set by (seed, key, position) alone.

    So a sentence's sample does not depend on what else is in its batch, nor on where a resumed stream began. From
    log-probabilities (R, V) and the keys of the rows to token ids (R,).
    """
    probs, tokens = restricted_distribution(log_probs, sampling)
    draws = [random.Random(f"{sampling.seed} {key} {position}").random() for key in keys]
    u = torch.tensor(draws, dtype=torch.float64)
    cumulative = probs.cpu().double().cumsum(dim=-1)  # on the CPU, because MPS has no float64
    place = (cumulative <= u[:, None] * cumulative[:, -1:]).sum(dim=-1).to(probs.device)
    last_possible = (probs > 0).sum(dim=-1) - 1
    return tokens.gather(1, torch.minimum(place, last_possible)[:, None]).squeeze(1)
