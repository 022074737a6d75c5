"""Batching: every row once, within the budget, in an order that seed and epoch alone decide."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.batching import BatchSource, plan_epoch, training_rows
from tfm.data.corpus import Corpus, Pair
from tfm.data.store import Limits, TokenStore, build_store
from tfm.data.subword_dropout import SubwordDropout
from tfm.data.tokenizer import BOS_ID, EOS_ID, Tokenizer

Lengths = npt.NDArray[np.int32]
LENGTHS = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=200)


def columns(pairs: list[tuple[int, int]]) -> tuple[Lengths, Lengths]:
    return np.array([s for s, _ in pairs], np.int32), np.array([t for _, t in pairs], np.int32)


def plan(pairs: list[tuple[int, int]], max_tokens: int, seed: int = 1, epoch: int = 0) -> list[list[int]]:
    batches = plan_epoch(*columns(pairs), max_tokens=max_tokens, seed=seed, epoch=epoch)
    return [batch.tolist() for batch in batches]


def sentence_lengths(count: int) -> list[tuple[int, int]]:
    rng = np.random.default_rng(0)
    src = rng.gamma(4, 5, count).astype(int) + 1
    tgt = np.maximum(1, src + rng.integers(-3, 4, count))
    return list(zip(src.tolist(), tgt.tolist(), strict=True))


@settings(deadline=None, max_examples=100)
@given(LENGTHS, st.integers(1, 300), st.integers(0, 2**63 - 1), st.integers(0, 100))
def test_every_row_is_in_one_batch_within_the_budget(
    pairs: list[tuple[int, int]], max_tokens: int, seed: int, epoch: int
) -> None:
    batches = plan(pairs, max_tokens, seed, epoch)
    assert sorted(row for batch in batches for row in batch) == list(range(len(pairs)))
    for batch in batches:
        widest = max(max(pairs[row]) + 1 for row in batch)
        assert len(batch) == 1 or widest * len(batch) <= max_tokens


@settings(deadline=None, max_examples=50)
@given(LENGTHS, st.integers(0, 2**63 - 1), st.integers(0, 100))
def test_order_is_a_function_of_seed_and_epoch(pairs: list[tuple[int, int]], seed: int, epoch: int) -> None:
    assert plan(pairs, 100, seed, epoch) == plan(pairs, 100, seed, epoch)


@settings(deadline=None, max_examples=100)
@given(LENGTHS, st.integers(1, 300), st.integers(0, 2**63 - 1), st.integers(0, 100))
def test_plan_is_a_shuffle_sorted_by_target_and_source_and_cut_row_by_row(
    pairs: list[tuple[int, int]], max_tokens: int, seed: int, epoch: int
) -> None:
    rng = np.random.Generator(np.random.Philox(key=[seed, epoch]))
    order = sorted(rng.permutation(len(pairs)).tolist(), key=lambda row: (pairs[row][1], pairs[row][0]))
    batches: list[list[int]] = [[]]
    for row in order:
        longer = [*batches[-1], row]
        if len(longer) > 1 and max(max(pairs[r]) + 1 for r in longer) * len(longer) > max_tokens:
            longer = [row]
            batches.append([])
        batches[-1] = longer
    assert plan(pairs, max_tokens, seed, epoch) == [batches[i] for i in rng.permutation(len(batches))]


def test_lengths_beyond_all_sense_still_give_every_row_once() -> None:
    lengths = np.array([2**31 - 1, 5, 2**31 - 1, 7], np.int32)
    rows = np.concatenate(plan_epoch(lengths, lengths, max_tokens=10, seed=1, epoch=0))
    assert sorted(rows.tolist()) == [0, 1, 2, 3]


def test_a_plan_takes_little_more_memory_than_its_row_numbers() -> None:
    rng = np.random.default_rng(0)
    src, tgt = (rng.integers(1, 60, 1_000_000, dtype=np.int32) for _ in range(2))
    tracemalloc.start()
    try:
        batches = plan_epoch(src, tgt, max_tokens=4096, seed=1, epoch=0)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(map(len, batches)) == 1_000_000
    assert held < 6 * 1_000_000
    assert peak < 24 * 1_000_000


def test_epochs_and_seeds_differ() -> None:
    pairs = sentence_lengths(500)
    orders = [plan(pairs, 400, seed, epoch) for seed in (1, 2) for epoch in (0, 1, 2)]
    assert len({str(order) for order in orders}) == len(orders)
    contents = {frozenset(map(frozenset, order)) for order in orders}
    assert len(contents) == len(orders), "batches are composed anew, not only reordered"


def test_batches_do_not_come_sorted_by_length() -> None:
    pairs = sentence_lengths(5000)
    means = [np.mean([pairs[row][1] for row in batch]) for batch in plan(pairs, 1000)]
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.3


def test_most_cells_are_useful() -> None:
    pairs = sentence_lengths(5000)
    for side in (0, 1):
        useful = cells = 0
        for batch in plan(pairs, 4096):
            lengths = [pairs[row][side] + 1 for row in batch]
            useful, cells = useful + sum(lengths), cells + max(lengths) * len(lengths)
        assert useful / cells > 0.85


def test_no_rows_no_batches() -> None:
    assert plan([], 100) == []


IDS = st.lists(st.integers(4, 1000), max_size=12)


@given(st.lists(st.tuples(IDS, IDS), max_size=8))
def test_special_pieces_stand_where_they_should(pairs: list[tuple[list[int], list[int]]]) -> None:
    if any(src for src, _ in pairs):
        assert training_rows(pairs) == [([*src, EOS_ID], [BOS_ID, *tgt, EOS_ID]) for src, tgt in pairs]
    assert training_rows([([], tgt) for _, tgt in pairs]) == [([], [BOS_ID, *tgt, EOS_ID]) for _, tgt in pairs]


@pytest.fixture
def store(
    tmp_path: Path, corpus_of: Callable[[list[Pair]], Corpus], toy_sentences: list[Pair], tokenizer: Tokenizer
) -> TokenStore:
    return build_store(tmp_path / "store", corpus_of(toy_sentences), tokenizer, Limits(100, 9.0))


def test_source_serves_the_pairs_of_the_store(
    store: TokenStore, toy_sentences: list[Pair], tokenizer: Tokenizer
) -> None:
    source = BatchSource(store, max_tokens=300, seed=3)
    for index, rows in enumerate(source.plan(2)[:5]):
        pairs = [toy_sentences[row] for row in rows]
        expected = training_rows((tokenizer.src.encode(src), tokenizer.tgt.encode(tgt)) for src, tgt in pairs)
        assert source.rows(2, index) == expected


def test_subword_dropout_changes_pieces_with_epoch_and_batch_and_is_the_same_after_resuming(
    store: TokenStore, tokenizer: Tokenizer
) -> None:
    dropout = (SubwordDropout(tokenizer.src, 0.3, 50), SubwordDropout(tokenizer.tgt, 0.3, 50))

    def open_source() -> BatchSource:
        return BatchSource(store, max_tokens=300, seed=3, subword_dropout=dropout)

    source = open_source()
    loaded = {(epoch, index): source.rows(epoch, index) for epoch in (0, 1) for index in range(5)}
    for (epoch, index), batch in loaded.items():
        assert open_source().rows(epoch, index) == batch
        pairs = [store[row] for row in source.plan(epoch)[index].tolist()]
        for ids, (src, tgt) in zip(batch, pairs, strict=True):
            assert tokenizer.src.decode(ids[0]) == tokenizer.src.decode(src.tolist())
            assert tokenizer.tgt.decode(ids[1]) == tokenizer.tgt.decode(tgt.tolist())
    plain = BatchSource(store, max_tokens=300, seed=3)  # the same rows, in their own pieces
    whole = {key: plain.rows(*key) for key in loaded}
    counts = [sum(len(tgt) for rows in found.values() for _, tgt in rows) for found in (loaded, whole)]
    assert counts[0] > counts[1]
    seen = {
        (row, tuple(src))
        for epoch in range(4)
        for index, rows in enumerate(source.plan(epoch))
        for row, (src, _) in zip(rows.tolist(), source.rows(epoch, index), strict=True)
    }
    assert len(seen) > 2 * len(store)


def test_in_both_directions_each_pair_is_turned_round_in_every_second_epoch(store: TokenStore) -> None:
    one, both = (BatchSource(store, max_tokens=300, seed=3, both_directions=both) for both in (False, True))
    turned: list[set[int]] = [set(), set(), set()]
    for epoch, found in enumerate(turned):
        for index, numbers in enumerate(one.plan(epoch)):
            rows = zip(numbers.tolist(), one.rows(epoch, index), both.rows(epoch, index), strict=True)
            for number, (src, tgt), row in rows:
                backwards = ([*tgt[1:-1], BOS_ID], [BOS_ID, *src])  # bos says in which direction
                assert row in ((src, tgt), backwards)
                found |= {number} if row == backwards else set()
    assert len(turned[0]) == len(store) // 2
    assert turned[0] == turned[2] == set(range(len(store))) - turned[1]


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("both_directions", [False, True])
@pytest.mark.parametrize("parts", [1, 2, 3, 50])
def test_parts_are_the_batch(
    store: TokenStore, tokenizer: Tokenizer, rate: float, both_directions: bool, parts: int
) -> None:
    """In their own pieces or others, turned round or not, each row is in one part, and parts have about as many."""
    dropout = (SubwordDropout(tokenizer.src, rate, 50), SubwordDropout(tokenizer.tgt, rate, 50)) if rate else None
    source = BatchSource(store, max_tokens=300, seed=3, subword_dropout=dropout, both_directions=both_directions)
    for index in range(5):
        whole = source.rows(1, index)
        found = [part for number in range(parts) if (part := source.rows(1, index, number, parts))]
        assert sorted(row for part in found for row in part) == sorted(whole)
        sizes = [len(part) for part in found]
        assert len(sizes) == min(parts, len(whole)) and max(sizes) - min(sizes) <= 1


def test_every_batch_has_a_stream_of_random_numbers_of_its_own(store: TokenStore) -> None:
    drawn: list[float] = []

    def dropout(rows: list[Any], rng: np.random.Generator) -> list[Any]:
        drawn.append(rng.random())
        return rows

    both: Any = (dropout, dropout)
    for seed in (3, 4):
        source = BatchSource(store, max_tokens=300, seed=seed, subword_dropout=both)
        for epoch in (0, 1):
            for index in range(3):
                source.rows(epoch, index)
            drawn.append(np.random.Generator(np.random.Philox(key=[seed, epoch])).random())  # the plan's
    assert len(set(drawn)) == len(drawn) == 2 * 2 * (3 * 2 + 1)


def test_source_gives_an_epoch_the_same_plan_whatever_was_asked_before(store: TokenStore) -> None:
    resumed = BatchSource(store, max_tokens=300, seed=3).plan(5)
    source = BatchSource(store, max_tokens=300, seed=3)
    for epoch in (0, 5, 1, 5):
        found = source.plan(epoch)
    assert [batch.tolist() for batch in found] == [batch.tolist() for batch in resumed]


@settings(max_examples=30, deadline=None)
@given(count=st.integers(1, 3000), group=st.integers(2, 5), seed=st.integers(0, 99))
def test_groups_hold_the_same_batches_with_about_as_many_tokens_each(count: int, group: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    src, tgt = (rng.integers(1, 40, count).astype(np.int32) for _ in range(2))
    plain, grouped = (plan_epoch(src, tgt, max_tokens=64, seed=seed, epoch=1, group=size) for size in (1, group))

    def tokens(rows: npt.NDArray[np.uint32]) -> int:
        return int(tgt[rows].sum()) + len(rows)

    def waiting(batches: list[npt.NDArray[np.uint32]]) -> int:
        """Tokens by which the largest batch of a group exceeds the others."""
        whole = [batches[i : i + group] for i in range(0, len(batches) - group + 1, group)]
        return sum(max(map(tokens, members)) * group - sum(map(tokens, members)) for members in whole)

    assert sorted(map(bytes, grouped)) == sorted(map(bytes, plain))
    if len(plain) >= 4 * group:  # of fewer, what is left for the last group decides
        assert waiting(grouped) <= waiting(plain)
