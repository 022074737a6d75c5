"""What the searches share: the largest elements of long rows, log-probabilities."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.seq2seq.decoding.search import largest, log_softmax


@settings(max_examples=60, deadline=None)
@given(rows=st.integers(1, 40), width=st.integers(1, 9000), k=st.integers(1, 12), seed=st.integers(0, 99))
def test_largest_is_topk(rows: int, width: int, k: int, seed: int) -> None:
    x = torch.randn(rows, width, generator=torch.Generator().manual_seed(seed))
    x[:, ::3] = float("-inf")
    k = min(k, width)
    values, places = largest(x, k)
    assert values.equal(x.topk(k, dim=1).values)
    assert x.gather(1, places).equal(values)
    assert all(len(set(row)) == k for row in places.tolist())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_log_softmax_is_torchs_own_in_place_or_not(dtype: torch.dtype) -> None:
    logits = torch.randn(7, 3000, generator=torch.Generator().manual_seed(0)).to(dtype)
    logits[:, 5] = float("-inf")
    expected = logits.float().log_softmax(dim=-1)
    assert log_softmax(logits).equal(expected)
