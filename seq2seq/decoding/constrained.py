"""Beam search for outputs that contain given phrases: the terms of a glossary, the placeholders of a source."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from .beam import Beam
from .phrases import Phrase, Progress
from .repeats import forbid_repeats
from .search import IMPOSSIBLE, Hypothesis, SearchState, Step, Task, finished, log_softmax

MAX_ROWS = 32
"""Most hypotheses of a sentence, however many phrases it needs."""


class _Open(NamedTuple):
    """An unfinished hypothesis."""

    ids: list[int]
    log_prob: float
    progress: Progress


class _Candidate(NamedTuple):
    """A hypothesis with one more token."""

    log_prob: float
    row: int
    token: int
    progress: Progress


@dataclass(frozen=True)
class ConstrainedBeam:
    """Beam search that ends no hypothesis before it has all phrases of its sentence, `Task.phrases`. A `Search`.

    The hypotheses of a sentence are divided among banks: a bank has those with equally many tokens of phrases (dynamic
    beam allocation, Post and Vilar 2018, arXiv:1804.06609). So those that have not placed a phrase yet compete with
    one another only, and each is extended by what it lacks as well as by what is likely.

    Args:
        beam: The search without phrases. More hypotheses are kept of a sentence whose phrases have more tokens, and a
            phrase may come again whatever must not repeat.
        only_in_phrases: Tokens that come nowhere but in a phrase.
    """

    beam: Beam
    only_in_phrases: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        """Those of a sentence whose phrases are longest."""
        return max(self.beam.size, MAX_ROWS)

    @property
    def length_penalty(self) -> float:
        """That of the beam."""
        return self.beam.length_penalty

    def __call__(self, step: Step, state: SearchState, task: Task) -> list[list[Hypothesis]]:
        """For each sentence its best hypotheses; one that cannot have all its phrases within its limit comes without.

        See `Search`.
        """
        sentences = list(range(len(task.max_lengths)))
        phrases = [tuple(task.phrases[i]) if task.phrases else () for i in sentences]
        sizes = [self._size_for(wanted) for wanted in phrases]
        k = max(sizes, default=1)
        ended: list[list[Hypothesis]] = [[] for _ in sentences]
        incomplete: list[list[_Open]] = [[] for _ in sentences]
        beams = [[_Open([], 0.0, Progress(wanted, frozenset(self.only_in_phrases)))] for wanted in phrases]
        last = torch.full((len(sentences),), task.bos_id, device=task.device)
        ids, position, width = last.unsqueeze(1), 0, 1
        while sentences:
            log_probs = log_softmax(step(last, position, state))  # (A * width, V)
            free = log_probs
            if self.beam.no_repeat_ngram_size:
                free = forbid_repeats(log_probs.clone(), ids, self.beam.no_repeat_ngram_size, task, sentences)
            chosen: list[list[_Candidate]] = []
            for place, i in enumerate(sentences):
                rows = slice(place * width, place * width + len(beams[i]))
                candidates = self._candidates(beams[i], log_probs[rows], free[rows], i, position, task)
                kept = allocate(candidates, sizes[i])
                for one in kept:
                    if one.token == task.eos_id:
                        parent = beams[i][one.row]
                        ended[i].append(finished(parent.ids, one.log_prob, self.length_penalty))
                going_on = [one for one in kept if one.token != task.eos_id]
                if not going_on and not ended[i]:
                    incomplete[i] = beams[i]
                chosen.append([] if self._is_done(ended[i], sizes[i], going_on) else going_on)
            for i, kept in zip(sentences, chosen, strict=True):
                beams[i] = [_Open([*beams[i][c.row].ids, c.token], c.log_prob, c.progress) for c in kept]
            alive = [place for place, kept in enumerate(chosen) if kept]
            # The rows of a sentence with fewer hypotheses are filled up with its first one.
            parents = [place * width + row for place in alive for row in _filled([c.row for c in chosen[place]], k)]
            tokens = [token for place in alive for token in _filled([c.token for c in chosen[place]], k)]
            if not alive:
                break
            rows_kept = torch.tensor(parents, dtype=torch.long, device=task.device)
            last = torch.tensor(tokens, dtype=torch.long, device=task.device)
            ids = torch.cat([ids.index_select(0, rows_kept), last.unsqueeze(1)], dim=1)
            state.reorder(rows_kept, torch.tensor(alive, dtype=torch.long, device=task.device))
            sentences = [sentences[place] for place in alive]
            position, width = position + 1, k
        return [self._best(ended[i], incomplete[i]) for i in range(len(task.max_lengths))]

    def _is_done(self, ended: list[Hypothesis], size: int, going_on: list[_Candidate]) -> bool:
        """Whether enough hypotheses have ended, and one of them is likelier than all that go on.

        Those that place a phrase too early end first, so that their number alone says little.
        """
        if len(ended) < size or not going_on:
            return not going_on
        return max(one.log_prob for one in ended) >= going_on[0].log_prob

    def _size_for(self, phrases: tuple[Phrase, ...]) -> int:
        """Hypotheses kept for a sentence, whatever the others of its batch need."""
        return max(self.beam.size, min(sum(phrase.longest for phrase in phrases) + 2, MAX_ROWS))

    def _candidates(
        self, beam: list[_Open], log_probs: Tensor, free: Tensor, sentence: int, position: int, task: Task
    ) -> list[_Candidate]:
        """The extensions of a sentence's hypotheses that are likely or bring a phrase further.

        Args:
            beam: The hypotheses.
            log_probs: (len(beam), V).
            free: The same, without what must come in a phrase only; may be the same tensor, and is overwritten.
            sentence: Which one.
            position: Of the token to be chosen, 0 after bos.
            task: Has the limits and what outputs begin with.
        """
        prefix = task.prefixes[sentence] if task.prefixes else ()
        lasts = [one.ids[-1] if one.ids else task.bos_id for one in beam]
        if position < len(prefix):
            only = prefix[position]
            gains = log_probs[:, only].tolist()
            return [
                _Candidate(one.log_prob + gains[row], row, only, one.progress.after(last, only) or one.progress)
                for row, (one, last) in enumerate(zip(beam, lasts, strict=True))
            ]
        room = task.max_lengths[sentence] - position - 1  # tokens that may come before eos
        wanted = [sorted(one.progress.wanted(last)) if room else [] for one, last in zip(beam, lasts, strict=True)]
        gains = [log_probs[row, tokens].tolist() for row, tokens in enumerate(wanted)]
        ends = log_probs[:, task.eos_id].tolist()
        free[:, [*self.only_in_phrases, task.eos_id]] = IMPOSSIBLE
        for row, one in enumerate(beam):
            if one.progress.only is not None:
                free[row] += _barrier(one.progress.only, free.size(1)).to(free.device)
        values, places = free.topk(min(self.beam.size + 1, free.size(1)), dim=1)
        found: list[_Candidate] = []
        for row, (one, likely, tokens) in enumerate(zip(beam, values.tolist(), places.tolist(), strict=True)):
            extensions = dict(zip([*tokens, *wanted[row]], [*likely, *gains[row]], strict=True))
            for token, gain in extensions.items():
                progress = one.progress.after(lasts[row], token) if gain > IMPOSSIBLE else None
                if progress and (
                    progress.most_missing < room or token in wanted[row] or progress.missing(token) < room
                ):
                    found.append(_Candidate(one.log_prob + gain, row, token, progress))
            if not one.progress.missing(lasts[row]) and ends[row] > IMPOSSIBLE:
                found.append(_Candidate(one.log_prob + ends[row], row, task.eos_id, one.progress))
        return found

    def _best(self, ended: list[Hypothesis], incomplete: list[_Open]) -> list[Hypothesis]:
        if not ended:  # no room for the phrases
            longest = sorted(incomplete, key=lambda one: (-one.progress.tokens, -one.log_prob))
            return [finished(one.ids, one.log_prob, self.length_penalty) for one in longest[: self.beam.n_best]]
        return sorted(ended, key=lambda hypothesis: -hypothesis.score)[: self.beam.n_best]


def allocate(candidates: Sequence[_Candidate], k: int) -> list[_Candidate]:
    """Chooses k candidates: the best of each bank, then the second best of each, and so on; best first.

    Where there is not room for one of each bank, those with most tokens of phrases come first.
    """
    banks: dict[int, list[_Candidate]] = {}
    for one in sorted(candidates, key=lambda one: -one.log_prob):
        banks.setdefault(one.progress.tokens, []).append(one)
    order = [banks[tokens] for tokens in sorted(banks, reverse=True)]
    chosen = list(_by_turns(order))[:k]
    return sorted(chosen, key=lambda one: -one.log_prob)


@lru_cache(maxsize=64)
def _barrier(only: frozenset[int], size: int) -> Tensor:
    """What added to log-probabilities (size,) leaves some tokens alone possible."""
    barrier = torch.full((size,), IMPOSSIBLE)
    barrier[list(only)] = 0.0
    return barrier


def _by_turns(banks: list[list[_Candidate]]) -> Iterator[_Candidate]:
    for rank in range(max(map(len, banks), default=0)):
        yield from (bank[rank] for bank in banks if rank < len(bank))


def _filled(values: list[int], count: int) -> list[int]:
    return values + values[:1] * (count - len(values))
