"""The Transformer written out for decoding against the plain one: every configuration, every movement of rows."""

from itertools import product
from typing import Any, get_args

import pytest
import torch
from helpers.full_pass import FullPass
from torch import Tensor

from tfm.engine import Beam, Greedy
from tfm.seq2seq.decoding.fast import FastTransformer
from tfm.seq2seq.decoding.fast import encoder as encoder_module
from tfm.seq2seq.decoding.fast import memory as memory_module
from tfm.seq2seq.decoding.fast.memory import FoldedMemory
from tfm.seq2seq.decoding.search import Search, Task
from tfm.seq2seq.model import ModelConfig, Transformer
from tfm.seq2seq.model.config import Activation, NormOrder, Positions

BOS, EOS = 2, 3
KINDS = product(get_args(NormOrder), get_args(Activation), get_args(Positions))
CHOICES: list[dict[str, Any]] = [
    *({"norm_order": kind[0], "activation": kind[1], "positions": kind[2]} for kind in KINDS),
    {"attention_bias": False},
    {"attention_output_bias": False, "feed_forward_output_bias": False, "norm_eps": 0.0},
    {"attention_bias": False, "attention_output_bias": True, "activation": "swiglu", "feed_forward_output_bias": False},
    {"output_bias": True},
    {"tie_embeddings": False, "scale_embeddings": False},
    {"d_k": 3, "d_v": 7},
    *({"positions": "rotary", "d_k": d_k, "d_v": d_v} for d_k, d_v in ((4, 7), (6, 2))),
    {"num_heads": 1, "num_decoder_layers": 1, "norm_eps": 1e-2},
]
SRC = torch.tensor([[5, 6, 7, 8, 3, 0, 0], [9, 4, 3, 0, 0, 0, 0], [4, 5, 6, 7, 8, 9, 3]])


def build(**choices: Any) -> Transformer:
    torch.manual_seed(1)
    sizes: dict[str, Any] = {"d_model": 12, "d_ff": 20, "num_heads": 2, "max_seq_len": 80}
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 3}
    config = ModelConfig(**{**sizes, **layers, **choices})
    model = Transformer(config, src_vocab_size=17, tgt_vocab_size=17, shared_vocab=True).eval()
    for name, parameter in model.named_parameters():  # biases and norms too, and not too small
        torch.nn.init.normal_(parameter, mean=1.0 if "norm.weight" in name else 0.0, std=0.4)
    return model


@torch.no_grad()
@pytest.mark.parametrize("choices", CHOICES, ids=str)
def test_step_by_step_it_is_the_plain_model(choices: dict[str, Any]) -> None:
    """40 positions: the room for past keys and values has to grow on the way."""
    model = build(**choices)
    targets = torch.randint(4, 17, (3, 40), generator=torch.Generator().manual_seed(0))
    targets[:, 0] = BOS
    fast = FastTransformer(model)
    state = fast.encode(SRC)
    stepwise = torch.stack([fast(targets[:, i], i, state).clone() for i in range(40)], dim=1)
    rounding = 5e-5 if model.config.positions == "rotary" else 2e-5
    torch.testing.assert_close(stepwise, model(SRC, targets), atol=rounding, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("choices", CHOICES, ids=str)
def test_a_source_that_is_alone_is_no_other_than_in_company(choices: dict[str, Any]) -> None:
    """Its cross-attention is computed with other matrices; with padding it is not."""
    model = build(**choices)
    fast = FastTransformer(model)
    targets = torch.randint(4, 17, (1, 40), generator=torch.Generator().manual_seed(0))
    targets[:, 0] = BOS
    longest = max(12 // max(model.config.num_heads - 1, 1), 1)
    fitting, too_long = (torch.arange(length)[None] % 13 + 4 for length in (longest, longest + 1))
    for src, folded in ((SRC[2:], True), (SRC[:1, :5], True), (SRC[:1], False), (fitting, True), (too_long, False)):
        state = fast.encode(src)
        assert isinstance(state.memory, FoldedMemory) == folded
        stepwise = torch.stack([fast(targets[:, i], i, state).clone() for i in range(40)], dim=1)
        torch.testing.assert_close(stepwise, model(src, targets), atol=2e-5, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("src", [SRC, SRC[2:]], ids=["together", "alone"])
def test_it_computes_in_the_models_precision(src: Tensor) -> None:
    model = build(norm_order="pre").double()
    fast = FastTransformer(model)
    bos = torch.full((len(src),), BOS)
    logits = fast(bos, 0, fast.encode(src))
    torch.testing.assert_close(logits, model(src, bos[:, None])[:, 0], atol=1e-12, rtol=1e-12)


def test_a_source_longer_than_the_model_reads_is_refused() -> None:
    with pytest.raises(ValueError, match="sequence of 81 tokens, but max_seq_len is 80"):
        FastTransformer(build()).encode(torch.full((1, 81), 5))


@torch.no_grad()
def test_rows_of_a_source_that_is_alone_exchange_their_past_and_are_dropped() -> None:
    model = build(norm_order="pre")
    fast = FastTransformer(model)
    src = SRC[2:]
    state = fast.encode(src)
    fast(torch.tensor([BOS]), 0, state)
    three = torch.tensor([0, 0, 0])
    state.reorder(three, three)  # as samples are drawn
    fast(torch.tensor([5, 6, 7]), 1, state)
    state.reorder(torch.tensor([2, 0, 2]))  # as hypotheses are chosen
    fast(torch.tensor([8, 9, 10]), 2, state)
    kept = torch.tensor([0, 2])
    state.reorder(kept, kept)
    logits = fast(torch.tensor([11, 12]), 3, state)
    targets = torch.tensor([[BOS, 7, 8, 11], [BOS, 7, 10, 12]])
    torch.testing.assert_close(logits, model(src.expand(2, -1), targets)[:, -1], atol=2e-5, rtol=1e-5)


@torch.no_grad()
def test_long_sources_and_many_of_them() -> None:
    """Sources are encoded in groups, each padded to its own longest."""
    model = build(norm_order="pre")
    lengths = sorted(torch.randint(1, 60, (150,), generator=torch.Generator().manual_seed(0)).tolist(), reverse=True)
    src = torch.zeros(150, max(lengths), dtype=torch.long)
    for row, length in zip(src, lengths, strict=True):
        row[:length] = torch.randint(4, 17, (length,))
        row[length - 1] = EOS
    fast = FastTransformer(model)
    bos = torch.full((150,), BOS)
    logits = fast(bos, 0, fast.encode(src))
    torch.testing.assert_close(logits, model(src, bos[:, None])[:, 0], atol=2e-5, rtol=1e-5)


@torch.no_grad()
def test_hypotheses_of_a_sentence_exchange_their_past_and_sentences_are_dropped() -> None:
    model = build()
    fast = FastTransformer(model)
    state = fast.encode(SRC)
    targets = torch.randint(4, 17, (3, 2), generator=torch.Generator().manual_seed(0))
    targets[:, 0] = BOS
    for i in range(2):
        fast(targets[:, i], i, state)
    # two hypotheses each for the sentences 2 and 0
    state.reorder(torch.tensor([2, 2, 0, 0]), torch.tensor([2, 0]))
    fast(torch.tensor([5, 6, 7, 8]), 2, state)
    # the second hypothesis of each sentence takes the place of both
    state.reorder(torch.tensor([1, 1, 3, 3]))
    logits = fast(torch.tensor([9, 10, 11, 12]), 3, state)
    rows = [(2, 6, 9), (2, 6, 10), (0, 8, 11), (0, 8, 12)]
    expected = torch.stack([model(SRC[[s]], torch.tensor([[*targets[s].tolist(), a, b]]))[0, -1] for s, a, b in rows])
    torch.testing.assert_close(logits, expected, atol=2e-5, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("src", [SRC, SRC[2:]], ids=["together", "alone"])
@pytest.mark.parametrize("search", [Greedy(0.6), Beam(4, 0.6, 4)], ids=["greedy", "beam"])
@pytest.mark.parametrize("prefixes", [[[], [], []], [[5, 6], [], [7] * 40]], ids=["free", "begun"])
def test_both_models_find_the_same(search: Search, src: Tensor, prefixes: list[list[int]]) -> None:
    model, forbidden = build(norm_order="pre", output_bias=True), [0, 1, 2]
    model.output_layer.bias[EOS] = -9.0  # no early end
    limits = [9, 45, 70]  # beyond the first room for past keys and values
    task = Task(limits[-len(src) :], BOS, EOS, prefixes[-len(src) :])
    plain, fast = FullPass(model, forbidden), FastTransformer(model, forbidden)
    expected, found = search(plain, plain.encode(src), task), search(fast, fast.encode(src), task)
    assert max(len(one.ids) for row in expected for one in row) > 64
    assert [[one.ids for one in row] for row in found] == [[one.ids for one in row] for row in expected]
    for one, other in zip(sum(found, []), sum(expected, []), strict=True):  # noqa: RUF017
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-4)


@torch.no_grad()
def test_forbidden_tokens_are_impossible_and_the_others_untouched() -> None:
    model, forbidden = build(), [0, 5, 16]
    bos = torch.tensor([BOS] * 3)
    free, fast = FastTransformer(model), FastTransformer(model, [*forbidden, 5])
    logits = fast(bos, 0, fast.encode(SRC))
    assert logits.isinf().nonzero()[:, 1].tolist() == forbidden * 3
    kept = [i for i in range(17) if i not in forbidden]
    assert torch.equal(logits[:, kept], free(bos, 0, free.encode(SRC))[:, kept])


@torch.no_grad()
def test_sources_are_encoded_and_projected_once_and_once_per_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many hypotheses they have."""
    sizes: dict[str, list[int]] = {"encode": [], "project": []}

    def spy(owner: type, name: str) -> None:
        original = getattr(owner, name)

        def spied(self: object, tensor: Tensor, *others: Tensor) -> object:
            sizes[name].append(len(tensor))
            return original(self, tensor, *others)

        monkeypatch.setattr(owner, name, spied)

    spy(encoder_module.Encoder, "encode")
    spy(memory_module.MemoryProjections, "project")
    fast = FastTransformer(build(), [0, 1, 2])
    found = Beam(4, n_best=4)(fast, fast.encode(SRC), Task([9, 7, 8], BOS, EOS))
    assert max(len(hypothesis.ids) for sentence in found for hypothesis in sentence) > 2
    assert sizes == {"encode": [3], "project": [3]}
