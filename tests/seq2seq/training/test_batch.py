"""Rows of ids as a padded batch."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.seq2seq.training.batch import Batch

BOS, EOS, PAD = 2, 3, 0
IDS = st.lists(st.integers(4, 50), max_size=6)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(IDS, IDS), min_size=1, max_size=8))
def test_special_pieces_and_padding_stand_where_they_should(pairs: list[tuple[list[int], list[int]]]) -> None:
    batch = Batch.of([([*src, EOS], [BOS, *tgt, EOS]) for src, tgt in pairs])
    for row, (src, tgt) in enumerate(pairs):
        for ids, expected in (
            (batch.src, [*src, EOS]),
            (batch.tgt_in, [BOS, *tgt]),
            (batch.tgt_out, [*tgt, EOS]),
        ):
            assert ids[row].tolist() == expected + [PAD] * (ids.size(1) - len(expected))
    assert batch.src.size(1) == max(len(src) for src, _ in pairs) + 1
    assert batch.tgt_in.shape == batch.tgt_out.shape == (len(pairs), max(len(tgt) for _, tgt in pairs) + 1)
    assert batch.num_tokens == batch.tgt_out.count_nonzero() == batch.tgt_in.count_nonzero()
    assert batch.src.dtype == batch.tgt_in.dtype == batch.tgt_out.dtype == torch.int64
    assert batch.rows(slice(1, None, 2)).num_tokens == sum(len(tgt) + 1 for _, tgt in pairs[1::2])


def test_texts_alone_have_a_source_without_positions() -> None:
    batch = Batch.of([([], [BOS, 7, EOS]), ([], [BOS, EOS])])
    assert batch.src.shape == (2, 0) and batch.src.dtype == torch.int64
    assert (batch.tgt_in.tolist(), batch.tgt_out.tolist()) == ([[BOS, 7], [BOS, PAD]], [[7, EOS], [EOS, PAD]])
