"""Searches, watched: they run unchanged, over a step that computes everything anew with the plain model."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ...seq2seq.decoding.beam import Beam, likeliest_extensions
from ...seq2seq.decoding.greedy import Greedy
from ...seq2seq.decoding.search import IMPOSSIBLE, Hypothesis, Search, SearchState, Task, log_softmax, restrict

_IMPOSSIBLE_ROW = -1
"""Stands for an extension that does not exist."""
Predict = Callable[[Tensor], Tensor]
"""From rows of tokens (R, T), bos included, to the logits (R, V) of the next ones."""


@dataclass(frozen=True)
class Extension:
    """A hypothesis that a search looked at: another one, and one more token, whose position counts from 0."""

    parent: int | None
    """Number of the other one, in the order of the list; None at the first position."""
    token: int
    log_prob: float
    """Of this token, given those before; `total` is that of the whole hypothesis."""
    total: float
    position: int
    fate: str
    """`kept` if the search went on from here, `ended` if it was finished here, `cut` if it was left."""


class PlainState:
    """All tokens of every row; a `SearchState`."""

    def __init__(self, device: torch.device | None) -> None:
        self.ids = torch.empty(1, 0, dtype=torch.long, device=device)  # (R, T)
        self.moved: list[int] | None = None
        """The former number of each row, if rows were moved since the last step."""

    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Row i becomes what row `rows[i]` was."""
        del sentences
        self.ids = self.ids[rows]
        before = self.moved
        self.moved = [before[row] if before is not None else row for row in rows.tolist()]


class WatchedStep:
    """A `Step` of a search for one sentence. It computes the whole sequence anew, and records each extension."""

    def __init__(self, predict: Predict, search: Search, task: Task) -> None:
        self._predict, self._size, self._task = predict, search.rows, task
        self._no_repeat_ngram_size = search.no_repeat_ngram_size if isinstance(search, Greedy | Beam) else 0
        self._rows: list[int | None] = []  # the extension of each row of the last step
        self._log_probs = torch.empty(0, 0)  # of the last step, as the search sees them, (R, V)
        self.extensions: list[Extension] = []

    def __call__(self, last: Tensor, position: int, state: SearchState) -> Tensor:
        """Takes the newest tokens (R,), standing at `position`; returns logits (R, V)."""
        assert isinstance(state, PlainState)
        if position:
            rows = state.moved or range(last.size(0))
            self._note_kept(list(zip(rows, last.tolist(), strict=True)), position - 1)
        else:
            self._rows = [None] * last.size(0)
        state.moved = None
        state.ids = torch.cat([state.ids, last[:, None]], dim=1)
        logits = self._predict(state.ids)
        log_probs = log_softmax(logits.clone())
        self._log_probs = restrict(log_probs, state.ids, self._task, [0], self._no_repeat_ngram_size)
        return logits

    def _note_kept(self, rows: list[tuple[int, int]], position: int) -> None:
        """Writes down the extensions of the last step, now that it is known from which ones the search goes on.

        A beam has `size` rows even where fewer beginnings are possible, as in a given prefix: only possible ones are
        written down.
        """
        possible = [row != _IMPOSSIBLE_ROW for row in self._rows]
        kept = [each for each in rows if possible[each[0]] and self._log_probs[each].item() > IMPOSSIBLE]
        numbers = self._note(position, kept)
        self._rows = [numbers.get(each, _IMPOSSIBLE_ROW) for each in rows]

    def _note(self, position: int, kept: list[tuple[int, int]]) -> dict[tuple[int, int], int]:
        """Writes down the likeliest extensions of the last step and, wherever they stand, those that were kept."""
        rows, log_probs = self._rows, self._log_probs
        totals = torch.tensor([self._total(row) for row in rows])
        eos_id = self._task.eos_id
        likeliest = likeliest_extensions(totals[None], log_probs.clone().cpu(), 2 * self._size, filler=eos_id)
        best, parents, tokens = (each[0].tolist() for each in likeliest)
        seen = {
            (p, t): rank
            for rank, (total, p, t) in enumerate(zip(best, parents, tokens, strict=True))
            if total > IMPOSSIBLE
        }
        numbers: dict[tuple[int, int], int] = {}
        for row, token in dict.fromkeys([*seen, *kept]):
            ends = token == eos_id and seen.get((row, token), self._size) < self._size
            fate = "kept" if (row, token) in kept else "ended" if ends else "cut"
            log_prob = log_probs[row, token].item()
            numbers[row, token] = len(self.extensions)
            self.extensions.append(Extension(rows[row], token, log_prob, totals[row].item() + log_prob, position, fate))
        return numbers

    def _total(self, row: int | None) -> float:
        if row is None:
            return 0.0
        return IMPOSSIBLE if row == _IMPOSSIBLE_ROW else self.extensions[row].total

    def finish(self) -> list[Extension]:
        """Everything written down, once the search has returned."""
        position = self.extensions[-1].position + 1 if self.extensions else 0
        self._note(position, [])
        return self.extensions


def watch(search: Search, predict: Predict, task: Task) -> tuple[list[Hypothesis], list[Extension]]:
    """Searches for the output of one sentence.

    Returns the hypotheses, and in each step the likeliest extensions, as many as a beam of the same size looks at.
    """
    step = WatchedStep(predict, search, task)
    hypotheses = search(step, PlainState(task.device), replace(task, keys=task.keys or ["0.0"]))[0]
    return hypotheses, step.finish()
