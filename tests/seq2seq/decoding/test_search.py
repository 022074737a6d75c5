"""What the searches share: the largest elements of long rows."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.seq2seq.decoding.search import largest


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
