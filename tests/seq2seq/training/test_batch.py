"""Rows of ids as a batch, padded or packed."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from helpers.fixed_batches import PAIRS
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.batching import plan_epoch, training_rows
from tfm.seq2seq.model import ModelConfig, Transformer
from tfm.seq2seq.model.decoder_only import DecoderOnly
from tfm.seq2seq.training.batch import Batch, Packer, Row
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


def gradients(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
    """The loss and all gradients."""
    model.zero_grad()
    loss, _ = NextTokenLoss(0.1)(model, batch)
    loss.backward()
    found = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    return torch.cat([loss.detach()[None], *found])


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("kind", ["pairs", "pairs as one sequence", "texts"])
def test_packing_changes_neither_loss_nor_gradients(kind: str, positions: Any) -> None:
    """What fills a side up counts for nothing; a text alone keeps a source without positions."""
    rows = training_rows([([] if kind == "texts" else src, tgt) for src, tgt in PAIRS])
    sizes: dict[str, Any] = {
        "d_model": 32,
        "d_ff": 32,
        "num_heads": 2,
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
    }
    config = ModelConfig(**sizes, max_seq_len=12, dropout=0.0, positions=positions)
    torch.manual_seed(0)
    if kind == "pairs":
        model: Any = Transformer(config, src_vocab_size=12, tgt_vocab_size=12, shared_vocab=True)
    else:
        model = DecoderOnly(replace(config, architecture="decoder_only", num_encoder_layers=0), vocab_size=12)
    packed = Packer(60, joined=kind != "pairs").pack(rows)
    assert packed.src.shape == (1, 64 if kind == "pairs" else 0)
    assert packed.tgt_in.shape == packed.tgt_out.shape == (1, 64)
    batch = Batch.of(rows)
    assert packed.num_tokens == batch.num_tokens
    expected = gradients(model, batch)
    torch.testing.assert_close(gradients(model, packed), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradients(model, packed.unpacked()), expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="unpack it"):
        packed.rows(slice(1))


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(IDS, IDS), min_size=1, max_size=8), st.integers(8, 99))
def test_what_is_packed_is_unpacked_again(pairs: list[tuple[list[int], list[int]]], budget: int) -> None:
    rows: list[Row] = [([*src, EOS], [BOS, *tgt, EOS]) for src, tgt in pairs]
    packed, batch = Packer(budget).pack(rows), Batch.of(rows)
    for one, other in zip(packed.unpacked().tensors, batch.tensors, strict=True):
        assert one.equal(other)
    assert packed.packing is not None and packed.src.size(1) % 64 == packed.tgt_in.size(1) % 64 == 0
    for side, ids in zip(packed.packing, (packed.src, packed.tgt_in), strict=True):
        lengths = side.starts.diff()
        assert lengths.sum() == ids.size(1) and lengths.max() <= side.longest
        real = [place for length in lengths[: len(rows)].tolist() for place in range(length)]
        assert side.positions[0].tolist() == real + [0] * (ids.size(1) - len(real))
        assert len(lengths) == len(packed) and lengths.min() > 0


@settings(deadline=None, max_examples=50)
@given(st.integers(600, 4000), st.integers(1, 3), st.integers(0, 99))
def test_an_epoch_has_few_shapes_and_little_filling(budget: int, parts: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = [rng.integers(1, 60, 2000).astype(np.int32) for _ in range(2)]
    packer = Packer(budget, parts)
    packed: list[Batch] = []
    for numbers in plan_epoch(*lengths, seed=seed, epoch=0, max_tokens=budget):
        rows: list[Row] = [([5] * lengths[0][row], [6] * (lengths[1][row] + 1)) for row in numbers[::parts]]
        packed.append(packer.pack(rows))
        # A step is an eighth of a full batch, in multiples of 64; the number of pairs grows by a half at most.
        step = -(-budget // (8 * parts * 64)) * 64
        assert packed[-1].src.size(1) < sum(len(src) for src, _ in rows) + step + len(rows) // 2 + 2 * step // 64 + 1
    shapes = {batch.shape for batch in packed}
    assert len(shapes) <= 75


def test_texts_alone_have_steps_of_one_side() -> None:
    texts: list[Row] = [([], [5] * 41)] * 10
    pairs: list[Row] = [([5] * 20, [5] * 21)] * 10
    packer = Packer(4096, joined=True)
    assert [packer.pack(rows).tgt_in.size(1) for rows in (texts, pairs)] == [512, 1024]


def test_a_copy_of_a_batch_has_tensors_of_its_own() -> None:
    for batch in (Batch.of(training_rows(PAIRS)), Packer(60).pack(training_rows(PAIRS))):
        copy = batch.clone()
        assert copy.shape == batch.shape and copy.num_tokens == batch.num_tokens
        for one, other in zip(copy.tensors, batch.tensors, strict=True):
            assert one.equal(other) and one.data_ptr() != other.data_ptr()
