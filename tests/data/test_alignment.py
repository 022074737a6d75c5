"""A validation set with its sides swapped is noticed, and no other one."""

import random

import pytest

from tfm.data import Pair
from tfm.data.facts import LOOKED_AT, sample_rows, swap_remark
from tfm.data.toy import toy_pairs

TRAIN, DEV = list(toy_pairs("train", size=2_000)), list(toy_pairs("dev", size=200))


def swapped(pairs: list[Pair]) -> list[Pair]:
    return [(tgt, src) for src, tgt in pairs]


@pytest.mark.parametrize("size", [20, 200])
def test_swapped_sides_are_noticed(size: int) -> None:
    remark = swap_remark(TRAIN, swapped(DEV)[:size]) or ""
    assert "seem to be swapped" in remark and "the other way round" in remark
    assert swap_remark(TRAIN, DEV[:size]) is None
    assert swap_remark(swapped(TRAIN), DEV[:size]) is not None


def test_one_side_alone_is_not_swapped() -> None:
    english, german = ([pair[side] for pair in DEV] for side in (0, 1))
    assert swap_remark(TRAIN, list(zip(german, german, strict=True))) is None
    assert swap_remark(TRAIN, list(zip(english, english, strict=True))) is None


def test_nothing_is_said_where_both_sides_are_written_alike() -> None:
    english = [src for src, _ in TRAIN + DEV]
    copies = list(zip(english, english, strict=True))
    backwards = [(src, " ".join(src.split()[::-1])) for src in english]
    shorter = [(src, " ".join(src.split()[:3])) for src in english]
    for task in (copies, backwards, shorter):
        for dev in (task[2_000:], swapped(task[2_000:])):
            assert swap_remark(task[:2_000], dev) is None


def test_nothing_is_said_of_very_few_pairs() -> None:
    assert swap_remark(TRAIN, swapped(DEV)[:9]) is None
    assert swap_remark(TRAIN[:1], swapped(DEV)) is None
    assert swap_remark(TRAIN, []) is None
    assert swap_remark([], []) is None


def test_a_corpus_of_both_directions_has_no_wrong_one() -> None:
    both = TRAIN[:1_000] + swapped(TRAIN[1_000:])
    assert swap_remark(both, DEV) is None and swap_remark(both, swapped(DEV)) is None


def test_text_unlike_all_of_the_training_data_is_not_swapped() -> None:
    draw = random.Random(1)
    noise = ["".join(draw.choices("абвгдежзийклмн ", k=40)) for _ in range(400)]
    assert swap_remark(TRAIN, list(zip(noise[:200], noise[200:], strict=True))) is None


@pytest.mark.parametrize("count", [0, 1, LOOKED_AT, LOOKED_AT + 1, 10 * LOOKED_AT - 1])
def test_a_sample_comes_from_all_over_a_corpus(count: int) -> None:
    rows = sample_rows(count)
    assert len(rows) <= LOOKED_AT and len(rows) >= min(count, LOOKED_AT // 2)
    assert not count or (rows[0] == 0 and rows[-1] >= count - rows.step)
