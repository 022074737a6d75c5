"""Masks: True where attending is allowed."""

import torch

from tfm.data import tokenizer
from tfm.seq2seq.model.attention import attention
from tfm.seq2seq.model.masks import PAD_ID, additive_mask, causal_mask, pad, padding_mask


def test_padding_mask_hides_padding_and_nothing_else() -> None:
    ids = torch.tensor([[5, 7, 9], [4, 0, 0]])
    mask = padding_mask(ids)
    assert mask.shape == (2, 1, 1, 3)  # (B, 1, 1, S)
    assert mask[:, 0, 0].tolist() == [[True, True, True], [True, False, False]]


def test_vocabularies_leave_the_id_of_padding_free() -> None:
    assert tokenizer.PAD_ID == PAD_ID


def test_causal_mask_lets_position_i_see_j_up_to_i() -> None:
    T = 5
    mask = causal_mask(T)
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[j <= i for j in range(T)] for i in range(T)]


def test_causal_mask_of_one_position_sees_itself() -> None:
    assert causal_mask(1).tolist() == [[True]]


def test_causal_mask_is_made_where_it_is_needed() -> None:
    assert causal_mask(3, torch.device("meta")).device.type == "meta"


def test_padding_and_causal_masks_combine_by_broadcasting() -> None:
    ids = torch.tensor([[5, 7, 0]])
    both = padding_mask(ids) & causal_mask(3)
    assert both.shape == (1, 1, 3, 3)
    assert both[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, False]]


def test_additive_mask_is_zero_or_minus_infinity() -> None:
    mask = torch.rand(3, 1, 4, 4) < 0.5
    added = additive_mask(mask)
    assert added.shape == mask.shape
    assert added.exp().equal(mask.float())  # e^0 = 1, e^-inf = 0


def test_additive_mask_has_the_dtype_asked_for() -> None:
    assert additive_mask(causal_mask(2)).dtype == torch.float32
    assert additive_mask(causal_mask(2), torch.float64).dtype == torch.float64


def test_adding_minus_infinity_equals_the_boolean_mask() -> None:
    T, d_k, d_v = 6, 4, 3
    q, k, v = torch.randn(2, T, d_k), torch.randn(2, T, d_k), torch.randn(2, T, d_v)
    mask = causal_mask(T)

    weights = (q @ k.transpose(-2, -1) / d_k**0.5 + additive_mask(mask)).softmax(dim=-1)

    output, boolean_weights = attention(q, k, v, mask)
    torch.testing.assert_close(boolean_weights, weights, atol=1e-6, rtol=0)
    torch.testing.assert_close(output, weights @ v, atol=1e-6, rtol=0)


def test_rows_are_filled_up_to_the_longest() -> None:
    assert pad([[5, 6, 3], [3], []]).tolist() == [[5, 6, 3], [3, 0, 0], [0, 0, 0]]
    assert pad([[], []]).shape == (2, 0) and pad([[5], []], 2).tolist() == [[5, 0], [0, 0]]
    assert pad([[]]).dtype == pad([[5]]).dtype == torch.int64
