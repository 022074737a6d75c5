"""Watched searches find the same outputs as others, and record which hypotheses they kept and cut."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tfm.data.tokenizer import BOS_ID, EOS_ID, Tokenizer
from tfm.engine.explain.searches import Extension, watch
from tfm.seq2seq.decoding.beam import Beam
from tfm.seq2seq.decoding.fast import FastTransformer
from tfm.seq2seq.decoding.greedy import Greedy
from tfm.seq2seq.decoding.sampling import Sample
from tfm.seq2seq.decoding.search import Search, Task
from tfm.seq2seq.model import Transformer

TASK = Task([12], BOS_ID, EOS_ID, keys=["0.0"])


@pytest.fixture(scope="module")
def src(tokenizer: Tokenizer) -> Tensor:
    return torch.tensor([[*tokenizer.src.encode("my sister finds two apples"), EOS_ID]])


@pytest.fixture(scope="module")
def predict(model: Transformer, tokenizer: Tokenizer, src: Tensor) -> Callable[[Tensor], Tensor]:
    def next_logits(ids: Tensor) -> Tensor:
        logits = model(src.expand(ids.size(0), -1), ids)[:, -1]
        return logits.index_fill(1, torch.tensor(tokenizer.tgt.forbidden_ids()), float("-inf"))

    return torch.inference_mode()(next_logits)


@pytest.mark.parametrize("search", [Greedy(), Beam(1), Beam(4, n_best=4), Sample(samples=3, seed=4)], ids=str)
@torch.inference_mode()
def test_a_watched_search_finds_what_it_finds_unwatched(
    search: Search, model: Transformer, tokenizer: Tokenizer, src: Tensor, predict: Callable[[Tensor], Tensor]
) -> None:
    fast = FastTransformer(model, tokenizer.tgt.forbidden_ids())
    expected = search(fast, fast.encode(src), TASK)[0]
    found, _ = watch(search, predict, TASK)
    assert [one.ids for one in found] == [one.ids for one in expected]
    torch.testing.assert_close([one.log_prob for one in found], [one.log_prob for one in expected], atol=1e-4, rtol=0)


def path(extensions: list[Extension], number: int) -> list[int]:
    """The tokens of a hypothesis."""
    one = extensions[number]
    return [*(path(extensions, one.parent) if one.parent is not None else []), one.token]


@pytest.mark.parametrize("size", [1, 3])
@torch.inference_mode()
def test_what_a_beam_kept_and_cut(size: int, predict: Callable[[Tensor], Tensor]) -> None:
    hypotheses, extensions = watch(Beam(size, n_best=size), predict, TASK)
    last = max(one.position for one in extensions)
    for number, one in enumerate(extensions):
        tokens = path(extensions, number)
        assert len(tokens) == one.position + 1
        if one.parent is not None:
            assert extensions[one.parent].fate == "kept"
            assert one.total == pytest.approx(extensions[one.parent].total + one.log_prob, abs=1e-4)
        before = torch.tensor([[BOS_ID, *tokens[:-1]]])
        log_prob = predict(before)[0].log_softmax(dim=0)[one.token].item()
        assert one.log_prob == pytest.approx(log_prob, abs=1e-4)
    for position in range(last):
        here = [one for one in extensions if one.position == position]
        assert sum(one.fate == "kept" for one in here) == size
        assert len(here) == len({(one.parent, one.token) for one in here}) == 2 * size
        worst_kept = min(one.total for one in here if one.fate == "kept")
        assert all(one.total <= worst_kept for one in here if one.fate == "cut" and one.token != EOS_ID)
    ended = {tuple(path(extensions, n)[:-1]) for n, one in enumerate(extensions) if one.fate == "ended"}
    assert {tuple(one.ids) for one in hypotheses if len(one.ids) < 11} <= ended
    assert all(math.isfinite(one.total) for one in extensions)


def replayed(predict: Callable[[Tensor], Tensor], task: Task, size: int, once: int) -> dict[tuple[int, ...], str]:
    """The fate of each beginning that a beam looks at; written without tensors.

    Args:
        predict: The model.
        task: Of one sentence.
        size: K.
        once: A row of this many tokens comes at most once in an output; 0 is no limit.
    """
    fates: dict[tuple[int, ...], str] = {}
    beam, ended = [((), 0.0)], 0
    given = list(task.prefixes[0]) if task.prefixes else []
    for position in range(task.max_lengths[0]):
        candidates: list[tuple[float, tuple[int, ...]]] = []
        for tokens, total in beam:
            log_probs = predict(torch.tensor([[BOS_ID, *tokens]]))[0].log_softmax(dim=0).tolist()
            for token, log_prob in enumerate(log_probs):
                ngram = (*tokens, token)[-once:]
                seen = once and any(tokens[i : i + once] == ngram for i in range(position - once + 1))
                if position < len(given):
                    possible = token == given[position]
                elif position + 1 == task.max_lengths[0]:
                    possible = token == EOS_ID
                else:
                    possible = not seen
                if possible and log_prob > -math.inf:
                    candidates.append((total + log_prob, (*tokens, token)))
        looked_at = sorted(candidates, reverse=True)[: 2 * size]
        ends = [tokens for _, tokens in looked_at[:size] if tokens[-1] == EOS_ID]
        ended += len(ends)
        goes_on = ended < size and position + 1 < task.max_lengths[0]
        beam = [(tokens, total) for total, tokens in looked_at if tokens[-1] != EOS_ID][:size] if goes_on else []
        fates |= {tokens: "cut" for _, tokens in looked_at}
        fates |= {tokens: "kept" for tokens, _ in beam} | dict.fromkeys(ends, "ended")
        if not beam:
            break
    return fates


@pytest.mark.parametrize("limit", [5, 12], ids="limit {}".format)
@pytest.mark.parametrize("given", [0, 1, 3], ids="{} given".format)
@pytest.mark.parametrize(
    "search", [Greedy(), Greedy(no_repeat_ngram_size=1), Beam(1), Beam(3), Beam(4, 0.6, 1, 2)], ids=str
)
@torch.inference_mode()
def test_what_is_written_down_is_what_the_search_did(
    search: Greedy | Beam, given: int, limit: int, predict: Callable[[Tensor], Tensor]
) -> None:
    unlikely = predict(torch.tensor([[BOS_ID]]))[0].topk(50).indices.tolist()[-3:]
    task = Task([limit], BOS_ID, EOS_ID, prefixes=[unlikely[:given]] if given else ())
    _, extensions = watch(search, predict, task)
    found = {tuple(path(extensions, number)): one.fate for number, one in enumerate(extensions)}
    assert len(found) == len(extensions)
    assert found == replayed(predict, task, search.rows, search.no_repeat_ngram_size)
    for number, one in enumerate(extensions):
        log_probs = [each.log_prob for each in (extensions[n] for n in ancestors(extensions, number))]
        assert one.total == pytest.approx(sum(log_probs), abs=1e-4)


def ancestors(extensions: list[Extension], number: int) -> list[int]:
    """A hypothesis and those that it extends."""
    parent = extensions[number].parent
    return [number, *(ancestors(extensions, parent) if parent is not None else [])]


@torch.inference_mode()
def test_a_prefix_is_kept_even_where_it_is_unlikely(predict: Callable[[Tensor], Tensor]) -> None:
    unlikely = predict(torch.tensor([[BOS_ID]]))[0].topk(50).indices[-1].item()
    task = Task([12], BOS_ID, EOS_ID, prefixes=[[int(unlikely)]])
    hypotheses, extensions = watch(Beam(2), predict, task)
    assert hypotheses[0].ids[0] == unlikely
    first = [one for one in extensions if one.position == 0]
    assert [(one.token, one.fate) for one in first] == [(unlikely, "kept")]  # all else is impossible
    assert all(math.isfinite(one.total) for one in extensions)
