"""Rows of ids as a padded batch."""

import numpy as np
import pytest
import torch
from helpers.fixed_batches import PAIRS, build_model
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.batching import plan_epoch, training_rows
from tfm.seq2seq.training.batch import Batch, FewShapes
from tfm.seq2seq.training.loss import NextTokenLoss

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


@pytest.mark.parametrize("text_only", [False, True])
def test_filling_up_adds_nothing_to_loss_and_gradients(text_only: bool) -> None:
    """Not even where a row is nothing but filling; a text alone keeps a source without positions."""
    rows = training_rows([([] if text_only else src, tgt) for src, tgt in PAIRS])
    batches = [Batch.of(rows), Batch.of(rows, shapes=FewShapes(60))]
    assert batches[1].shape == (12, 0 if text_only else 8, 8) and batches[1].recurs
    assert batches[0].num_tokens == batches[1].num_tokens
    if text_only:
        return
    gradients: list[torch.Tensor] = []
    for one in batches:
        model = build_model()
        loss, _ = NextTokenLoss(0.1)(model, one)
        loss.backward()
        found = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
        gradients.append(torch.cat([loss.detach()[None], *found]))
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-5, atol=1e-5)


@settings(deadline=None, max_examples=50)
@given(st.integers(100, 4000), st.integers(1, 3), st.integers(0, 99))
def test_an_epoch_has_few_shapes_each_a_little_larger_than_its_batches(budget: int, parts: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = [rng.integers(1, 60, 2000).astype(np.int32) for _ in range(2)]
    shapes, few = set[tuple[int, ...]](), FewShapes(budget, parts)
    plain = set[tuple[int, ...]]()
    for numbers in plan_epoch(*lengths, seed=seed, epoch=0, max_tokens=budget):
        rows = -(-len(numbers) // parts)
        widths = [int(side[numbers].max()) + 1 for side in lengths]
        more, src, tgt, same = few.fill_up(rows, widths[0], widths[1], widths[1])
        assert more >= 0 and tgt == same
        for old, new in zip(widths, (src, tgt), strict=True):
            assert old <= new < old + max(4, old / 8 + 1)
        plain.add((rows, *widths))
        shapes.add((rows + more, src, tgt))
    heights = {shape[0] for shape in shapes}
    assert len(heights) <= len({max(shape[1:]) for shape in shapes})  # one number of rows for each width
    assert len(shapes) <= len(plain)
