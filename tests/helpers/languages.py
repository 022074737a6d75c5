"""Languages without a model, small enough to enumerate, and searches over them."""

import random
from collections.abc import Sequence

import torch
from torch import Tensor

from tfm.seq2seq.decoding.search import Hypothesis, Search, SearchState, Task

BOS, EOS = -1, 0


class FakeLanguage:
    """Random next-token logits that depend on nothing but the sentence and its prefix. Token 0 is eos.

    It is the step, `state` makes the state; `rows_seen` holds the number of rows of each step taken.
    """

    def __init__(self, seed: int, vocabulary: int) -> None:
        self.seed, self.vocabulary = seed, vocabulary
        self.rows_seen: list[int] = []

    def logits(self, sentence: int, prefix: list[int]) -> list[float]:
        rng = random.Random(f"{self.seed} {sentence} {prefix}")
        return [rng.gauss(0, 1.5) for _ in range(self.vocabulary)]

    def log_probs(self, sentence: int, prefix: list[int]) -> list[float]:
        return torch.tensor(self.logits(sentence, prefix), dtype=torch.float64).log_softmax(dim=0).tolist()

    def log_prob(self, sentence: int, ids: list[int]) -> float:
        """Of a whole output, its eos included."""
        whole = [*ids, EOS]
        return sum(self.log_probs(sentence, whole[:i])[token] for i, token in enumerate(whole))

    def state(self, *sentences: int) -> "FakeState":
        return FakeState([(sentence, []) for sentence in sentences])

    def __call__(self, last: Tensor, position: int, state: SearchState) -> Tensor:
        assert isinstance(state, FakeState)
        assert len(state.rows) == len(last)
        self.rows_seen.append(len(last))
        state.rows = [(s, [*past, token]) for (s, past), token in zip(state.rows, last.tolist(), strict=True)]
        assert all(len(past) == position + 1 and past[0] == BOS for _, past in state.rows)
        return torch.tensor([self.logits(s, past[1:]) for s, past in state.rows]).view(-1, self.vocabulary)


class FakeState:
    """Remembers for each row its sentence and what it has read."""

    def __init__(self, rows: list[tuple[int, list[int]]]) -> None:
        self.rows = rows
        self.sentences = [sentence for sentence, _ in rows]

    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        self.rows = [self.rows[row] for row in rows.tolist()]
        if sentences is not None:
            self.sentences = [self.sentences[i] for i in sentences.tolist()]
        each = len(self.rows) // max(len(self.sentences), 1)
        expected = [sentence for sentence in self.sentences for _ in range(each)]
        assert [sentence for sentence, _ in self.rows] == expected, "reorder mixed sentences"


class CertainPath(FakeLanguage):
    """A language in which every sentence continues with the tokens given, for certain."""

    def __init__(self, path: list[int], vocabulary: int) -> None:
        super().__init__(0, vocabulary)
        self.path = [*path, EOS]

    def logits(self, sentence: int, prefix: list[int]) -> list[float]:
        expected = self.path[len(prefix)] if len(prefix) < len(self.path) else EOS
        return [0.0 if token == expected else float("-inf") for token in range(self.vocabulary)]


def all_outputs(vocabulary: int, max_length: int, prefix: Sequence[int] = ()) -> list[list[int]]:
    """All that can be said in at most `max_length` tokens, eos included but not written, beginning with a prefix."""
    outputs: list[list[int]] = [list(prefix)]
    for output in outputs:
        if len(output) + 1 < max_length:
            outputs.extend([*output, token] for token in range(1, vocabulary))
    return outputs


def search_language(
    search: Search,
    language: FakeLanguage,
    limits: Sequence[int],
    prefixes: Sequence[Sequence[int]] = (),
    sentences: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Searches for sentences of a language, 0, 1, .. unless named; each has its number as its key."""
    numbers = range(len(limits)) if sentences is None else sentences
    task = Task(limits, BOS, EOS, prefixes, [str(number) for number in numbers])
    return search(language, language.state(*numbers), task)
