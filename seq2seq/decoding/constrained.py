"""Beam search for outputs that contain given phrases: the terms of a glossary, the placeholders of a source."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from .beam import Beam
from .phrases import Phrase, PhraseProgress
from .search import IMPOSSIBLE, Hypothesis, SearchState, Step, Task, finished, forbid_repeats, log_softmax

MAX_ROWS = 32
"""Most hypotheses of a sentence, however many phrases it needs."""
ROWS_OF_A_BANK = 3
"""Hypotheses for each number of tokens of phrases, while there are at most `MAX_ROWS`. With one, a phrase is placed
where it hardly fits. Chosen, as `MOST_PENALTY`, on 90 validation sentences of documentation that lacked a term."""
MOST_PENALTY = 0.5
"""The largest length penalty. A phrase that the model would not write makes an output improbable at any length. A
larger penalty would prefer long outputs whose ends are invented."""
LONGER, MORE_TOKENS = 1.25, 10
"""A search stops waiting for something better than its best output when hypotheses have `LONGER` times the tokens of
that output, or of the expected one if that is longer, and `MORE_TOKENS` more. In 70 searches for placeholders of
documentation nothing better came later, and they took a third of their time for it."""


class _Open(NamedTuple):
    """An unfinished hypothesis."""

    ids: list[int]
    log_prob: float
    progress: PhraseProgress
    parent: int
    """Which hypothesis of its sentence it extends."""


class _Candidate(NamedTuple):
    """A hypothesis with one more token."""

    log_prob: float
    row: int
    token: int
    progress: PhraseProgress


@dataclass(frozen=True)
class ConstrainedBeam:
    """Beam search that ends no hypothesis before it has all phrases of its sentence, `Task.phrases`. A `Search`.

    The hypotheses of a sentence are divided among banks: a bank has those with equally many tokens of phrases (dynamic
    beam allocation, Post and Vilar 2018, arXiv:1804.06609). So those that have not placed a phrase yet compete with
    one another only, and each is extended by what it lacks as well as by what is likely.

    Args:
        beam: The search without phrases; its length penalty counts up to `MOST_PENALTY`. More hypotheses are kept of a
            sentence whose phrases have more tokens, and a phrase may come again whatever must not repeat.
        only_in_phrases: Tokens that come nowhere but in a phrase.
        most_rows: Most hypotheses that are kept of a sentence, unless the beam has more.
    """

    beam: Beam
    only_in_phrases: tuple[int, ...] = ()
    most_rows: int = MAX_ROWS

    @property
    def rows(self) -> int:
        """The most hypotheses that a sentence may need."""
        return max(self.beam.size, self.most_rows)

    def rows_for(self, phrases: Sequence[Phrase]) -> int:
        """Hypotheses that are kept of a sentence that needs these phrases."""
        banks = sum(phrase.longest for phrase in phrases) + 1
        return max(self.beam.size, min(ROWS_OF_A_BANK * banks, self.most_rows))

    @property
    def length_penalty(self) -> float:
        """The length penalty of the beam, but at most `MOST_PENALTY`."""
        return min(self.beam.length_penalty, MOST_PENALTY)

    def __call__(self, step: Step, state: SearchState, task: Task) -> list[list[Hypothesis]]:
        """For each sentence its best hypotheses; one that cannot have all its phrases within its limit comes without.

        See `Search`.
        """
        sentences = [_Sentence(self, task, number) for number in range(len(task.max_lengths))]
        active, k = sentences, max((sentence.size for sentence in sentences), default=1)
        ids = torch.full((len(active), 1), task.bos_id, device=task.device)  # (A * width, T)
        position, width, no_repeat = 0, 1, self.beam.no_repeat_ngram_size
        while active:
            free = log_probs = log_softmax(step(ids[:, -1], position, state))  # (A * width, V)
            if no_repeat:
                numbers = [sentence.number for sentence in active]
                free = forbid_repeats(log_probs.clone(), ids, no_repeat, task, numbers)
            for place, sentence in enumerate(active):
                rows = slice(place * width, place * width + len(sentence.beam))
                sentence.extend(log_probs[rows], free[rows], position)
            alive = [place for place, sentence in enumerate(active) if sentence.beam]
            # The rows of a sentence with fewer hypotheses are filled up with its first one.
            beams = [(place * width, active[place].filled_beam(k)) for place in alive]
            parents = torch.tensor([start + one.parent for start, beam in beams for one in beam], device=task.device)
            tokens = torch.tensor([one.ids[-1] for _, beam in beams for one in beam], device=task.device)
            if alive:
                ids = torch.cat([ids.index_select(0, parents), tokens.unsqueeze(1)], dim=1)
                state.reorder(parents, torch.tensor(alive, device=task.device))
            active, position, width = [active[place] for place in alive], position + 1, k
        return [sentence.hypotheses() for sentence in sentences]


class _Sentence:
    """The search for the output of one sentence; `size` hypotheses are kept, whatever the others of its batch need."""

    def __init__(self, search: ConstrainedBeam, task: Task, number: int) -> None:
        self.number, self._task, self._search = number, task, search
        phrases = tuple(task.phrases[number]) if task.phrases else ()
        self.size = search.rows_for(phrases)
        self.beam = [_Open([], 0.0, PhraseProgress(phrases, frozenset(search.only_in_phrases)), 0)]
        """The hypotheses that go on; none when the search is over."""
        self._ended: list[Hypothesis] = []
        self._incomplete: list[_Open] = []

    def extend(self, log_probs: Tensor, free: Tensor, position: int) -> None:
        """Extends the hypotheses by a token at this position, 0 after bos, and puts those that end aside.

        The log-probabilities are (len(beam), V). `free` are the same without what must come in a phrase only; it may be
        the same tensor, and is overwritten.
        """
        prefix = self._task.prefixes[self.number] if self._task.prefixes else ()
        if position < len(prefix):
            candidates = self._forced(log_probs, prefix[position])
        else:
            candidates = list(self._candidates(log_probs, free, position))
        kept = allocate(candidates, self.size)
        alpha, eos_id = self._search.length_penalty, self._task.eos_id
        self._ended += [finished(self.beam[one.row].ids, one.log_prob, alpha) for one in kept if one.token == eos_id]
        going_on = [one for one in kept if one.token != eos_id]
        if not going_on and not self._ended:
            self._incomplete = self.beam
        if self._is_done(going_on, position):
            going_on = []
        self.beam = [_Open([*self.beam[c.row].ids, c.token], c.log_prob, c.progress, c.row) for c in going_on]

    def filled_beam(self, count: int) -> list[_Open]:
        return self.beam + self.beam[:1] * (count - len(self.beam))

    def _is_done(self, going_on: list[_Candidate], position: int) -> bool:
        """Whether enough hypotheses have ended, and one is likelier than all that go on, or has been the best for long.

        Those that place a phrase too early end first, so that their number alone says little.
        """
        if not going_on:
            return True
        if len(self._ended) < self._search.beam.size:
            return False
        best = max(self._ended, key=lambda hypothesis: hypothesis.score)
        expected = self._task.expected[self.number] if self._task.expected else 0
        if expected and position >= LONGER * max(len(best.ids), expected) + MORE_TOKENS:
            return True
        likeliest = max(one.log_prob for one in self._ended)
        return len(self._ended) >= self.size and likeliest >= going_on[0].log_prob

    def _last(self, one: _Open) -> int:
        return one.ids[-1] if one.ids else self._task.bos_id

    def _forced(self, log_probs: Tensor, token: int) -> list[_Candidate]:
        """The extensions by a token of the prefix."""
        gains = log_probs[:, token].tolist()
        return [
            _Candidate(
                one.log_prob + gains[row], row, token, one.progress.after(self._last(one), token) or one.progress
            )
            for row, one in enumerate(self.beam)
        ]

    def _candidates(self, log_probs: Tensor, free: Tensor, position: int) -> Iterator[_Candidate]:
        """The extensions that are likely or bring a phrase further; arguments as of `extend`."""
        beam, eos_id = self.beam, self._task.eos_id
        room = self._task.max_lengths[self.number] - position - 1  # tokens that may come before eos
        wanted = [sorted(one.progress.wanted(self._last(one))) if room else [] for one in beam]
        gains = [log_probs[row, tokens].tolist() for row, tokens in enumerate(wanted)]
        ends = log_probs[:, eos_id].tolist()
        free[:, [*self._search.only_in_phrases, eos_id]] = IMPOSSIBLE
        for row, one in enumerate(beam):
            if one.progress.only is not None:
                free[row] += _barrier(one.progress.only, free.size(1)).to(free.device)
        values, places = free.topk(min(self._search.beam.size + 1, free.size(1)), dim=1)
        for row, (one, likely, tokens) in enumerate(zip(beam, values.tolist(), places.tolist(), strict=True)):
            last = self._last(one)
            extensions = dict(zip([*tokens, *wanted[row]], [*likely, *gains[row]], strict=True))
            for token, gain in extensions.items():
                progress = one.progress.after(last, token) if gain > IMPOSSIBLE else None
                if progress and (
                    progress.most_missing < room or token in wanted[row] or progress.missing(token) < room
                ):
                    yield _Candidate(one.log_prob + gain, row, token, progress)
            if not one.progress.missing(last) and ends[row] > IMPOSSIBLE:
                yield _Candidate(one.log_prob + ends[row], row, eos_id, one.progress)

    def hypotheses(self) -> list[Hypothesis]:
        """The best of those that have ended; where there was no room for all phrases, of those with most of them."""
        alpha, n_best = self._search.length_penalty, self._search.beam.n_best
        if not self._ended:
            longest = sorted(self._incomplete, key=lambda one: (-one.progress.tokens, -one.log_prob))
            return [finished(one.ids, one.log_prob, alpha) for one in longest[:n_best]]
        return sorted(self._ended, key=lambda hypothesis: -hypothesis.score)[:n_best]


def allocate(candidates: Sequence[_Candidate], k: int) -> list[_Candidate]:
    """Chooses k candidates: the best of each bank, then the second best of each, and so on; best first.

    Where there is not room for one of each bank, those with most tokens of phrases come first.
    """
    banks: dict[int, list[_Candidate]] = {}
    for one in sorted(candidates, key=lambda one: -one.log_prob):
        banks.setdefault(one.progress.tokens, []).append(one)
    order = [banks[tokens] for tokens in sorted(banks, reverse=True)]
    longest = max(map(len, order), default=0)
    chosen = [bank[rank] for rank in range(longest) for bank in order if rank < len(bank)][:k]
    return sorted(chosen, key=lambda one: -one.log_prob)


@lru_cache(maxsize=64)
def _barrier(only: frozenset[int], size: int) -> Tensor:
    """What added to log-probabilities (size,) leaves some tokens alone possible."""
    barrier = torch.full((size,), IMPOSSIBLE)
    barrier[list(only)] = 0.0
    return barrier
