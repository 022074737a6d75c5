"""What the searches share: tasks, the largest elements of long rows, log-probabilities, forced tokens."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.seq2seq.decoding.search import Task, force_eos, force_prefixes, largest, log_softmax


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


IMPOSSIBLE = float("-inf")


def test_only_eos_is_left_in_rows_at_their_limit() -> None:
    log_probs = torch.tensor([[-1.0, -2.0, -3.0], [-4.0, -5.0, -6.0]])
    forced = force_eos(log_probs, torch.tensor([False, True]), 2)
    assert forced.tolist() == [[-1, -2, -3], [IMPOSSIBLE, IMPOSSIBLE, -6]]
    assert force_eos(log_probs, torch.tensor([False, False]), 2) is log_probs


def test_only_the_prefix_is_left_in_rows_whose_sentence_has_more_of_it() -> None:
    """Two rows for each of the sentences 3, 0 and 2; token 0 is one that can be forced like any other."""
    log_probs = -torch.arange(1.0, 19.0).view(6, 3)
    forced = force_prefixes(log_probs, 1, [3, 0, 2], [[1, 0], [1, 1, 1], [], [0, 2, 1]])
    assert forced.tolist() == [
        *([IMPOSSIBLE, IMPOSSIBLE, -3], [IMPOSSIBLE, IMPOSSIBLE, -6]),
        *([-7, IMPOSSIBLE, IMPOSSIBLE], [-10, IMPOSSIBLE, IMPOSSIBLE]),
        *([-13, -14, -15], [-16, -17, -18]),
    ]


def test_a_task_knows_its_first_limit_and_its_longest_prefix() -> None:
    task = Task([5, 3, 9], 1, 2, prefixes=[[], [7, 7], [8]])
    assert (task.first_limit, task.longest_prefix) == (3, 2)
    empty = Task([], 1, 2)
    assert (empty.first_limit, empty.longest_prefix) == (0, 0)


@pytest.mark.parametrize(
    ("prefixes", "problem"),
    [
        ([[7, 7, 7], []], "a prefix of 3 tokens and eos are longer than the limit of 3"),
        ([[], [7] * 9], "a prefix of 9 tokens and eos are longer than the limit of 4"),
        ([[2], []], "must not contain eos"),
        ([[7]], "1 prefixes were given for 2 sentences"),
    ],
)
def test_prefixes_that_cannot_be_are_refused(prefixes: list[list[int]], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Task([3, 4], bos_id=1, eos_id=2, prefixes=prefixes)
