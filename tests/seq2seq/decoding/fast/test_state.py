"""What is kept of past positions: planes that overlap, room that grows, rows that move."""

import pytest
import torch
from torch import Tensor

from tfm.seq2seq.decoding.fast.state import FastState, Past

LAYERS, ROWS, HEADS, WIDTH = 3, 4, 2, 5


def write(past: Past, keys_values: Tensor, queries: Tensor) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Takes a step: each layer writes (R, H * d) of all three at once and reads them at once.

    Args:
        past: Gets one more position.
        keys_values: (L, 2, R, H, d).
        queries: (L, R, H, d).

    Returns:
        What each layer reads: queries, all keys, all values.
    """
    position = past.next_position()
    read: tuple[list[Tensor], list[Tensor], list[Tensor]] = [], [], []
    for i in range(LAYERS):
        position.newest[i].copy_(torch.cat([keys_values[i], queries[i][None]]).flatten(2))
        for where, what in zip(read, (position.queries[i], position.keys[i], position.values[i]), strict=True):
            where.append(what.clone())
    return read


def random_step(rows: int = ROWS) -> tuple[Tensor, Tensor]:
    return torch.randn(LAYERS, 2, rows, HEADS, WIDTH), torch.randn(LAYERS, rows, HEADS, WIDTH)


@pytest.mark.parametrize("positions", [1, 2, 32, 33, 70])
def test_every_layer_reads_its_own_queries_and_all_its_keys_and_values(positions: int) -> None:
    """Queries are written over by what comes next, and nothing else is; the room grows after 32 positions."""
    past = Past(ROWS, LAYERS, HEADS, WIDTH, like=torch.empty(0))
    written: list[Tensor] = []
    for _ in range(positions):
        keys_values, queries = random_step()
        written.append(keys_values)
        read_queries, read_keys, read_values = write(past, keys_values, queries)
        everything = torch.stack(written)  # (T, L, 2, R, H, d)
        for i in range(LAYERS):
            assert read_queries[i].equal(queries[i])
            assert read_keys[i].equal(everything[:, i, 0])
            assert read_values[i].equal(everything[:, i, 1])


def test_rows_are_chosen_repeated_and_dropped_with_all_their_past() -> None:
    past = Past(ROWS, LAYERS, HEADS, WIDTH, like=torch.empty(0))
    written = torch.empty(0, LAYERS, 2, ROWS, HEADS, WIDTH)
    for rows in ([3, 0, 0, 1], [2, 2], [1, 0, 1, 1, 0, 0], [5], [0, 0, 0]):
        for _ in range(15):  # grows on the way, too
            keys_values, queries = random_step(written.size(3))
            written = torch.cat([written, keys_values[None]])
            _, keys, values = write(past, keys_values, queries)
            assert all(keys[i].equal(written[:, i, 0]) for i in range(LAYERS))
            assert all(values[i].equal(written[:, i, 1]) for i in range(LAYERS))
        past.reorder(torch.tensor(rows))
        written = written[:, :, :, rows]


class Sentences:
    """A memory that knows no more than its sentences."""

    def __init__(self) -> None:
        self.sentences = torch.arange(4)

    def attend(self, layer: int, attn: object, y: Tensor) -> Tensor:
        del layer, attn
        return y

    def select(self, sentences: Tensor) -> None:
        self.sentences = self.sentences[sentences]


def test_the_memory_is_touched_only_when_sentences_are_named() -> None:
    memory = Sentences()
    state = FastState(memory, Past(4, LAYERS, HEADS, WIDTH, like=torch.empty(0)))
    before = memory.sentences
    state.reorder(torch.tensor([1, 1, 3, 0]))
    assert memory.sentences is before
    state.reorder(torch.tensor([2, 0]), torch.tensor([3, 1]))
    assert memory.sentences.tolist() == [3, 1]
