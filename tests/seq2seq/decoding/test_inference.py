"""The Transformer written out for decoding against the plain one: every configuration, every movement of rows."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tfm.seq2seq.decoding.beam import beam_search
from tfm.seq2seq.decoding.cache import DecoderCache, decoding_step
from tfm.seq2seq.decoding.greedy import extend_greedily
from tfm.seq2seq.decoding.inference import InferenceModel
from tfm.seq2seq.model import ModelConfig, Transformer

BOS, EOS = 2, 3
CHOICES: list[dict[str, Any]] = [
    {},
    {"norm_order": "pre"},
    {"activation": "gelu", "norm_order": "pre"},
    {"activation": "swiglu"},
    {"positions": "learned"},
    {"positions": "none"},
    {"attention_bias": False},
    {"attention_output_bias": False, "feed_forward_output_bias": False, "norm_eps": 0.0},
    {"attention_bias": False, "attention_output_bias": True, "activation": "swiglu", "feed_forward_output_bias": False},
    {"output_bias": True},
    {"tie_embeddings": False, "scale_embeddings": False},
    {"d_k": 3, "d_v": 7},
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
    inference = InferenceModel(model)
    state = inference.encode(SRC)
    stepwise = torch.stack([inference(targets[:, i], i, state).clone() for i in range(40)], dim=1)
    torch.testing.assert_close(stepwise, model(SRC, targets), atol=2e-5, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("choices", CHOICES, ids=str)
def test_a_source_that_is_alone_is_no_other_than_in_company(choices: dict[str, Any]) -> None:
    """Its cross-attention is computed with other matrices; with padding it is not."""
    model = build(**choices)
    inference = InferenceModel(model)
    targets = torch.randint(4, 17, (1, 40), generator=torch.Generator().manual_seed(0))
    targets[:, 0] = BOS
    longest = max(12 // max(model.config.num_heads - 1, 1), 1)
    fitting, too_long = (torch.arange(length)[None] % 13 + 4 for length in (longest, longest + 1))
    for src, folded in ((SRC[2:], True), (SRC[:1, :5], True), (SRC[:1], False), (fitting, True), (too_long, False)):
        state = inference.encode(src)
        assert state.is_folded == folded
        stepwise = torch.stack([inference(targets[:, i], i, state).clone() for i in range(40)], dim=1)
        torch.testing.assert_close(stepwise, model(src, targets), atol=2e-5, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("src", [SRC, SRC[2:]], ids=["together", "alone"])
def test_it_computes_in_the_models_precision(src: Tensor) -> None:
    model = build(norm_order="pre").double()
    inference = InferenceModel(model)
    bos = torch.full((len(src),), BOS)
    logits = inference(bos, 0, inference.encode(src))
    torch.testing.assert_close(logits, model(src, bos[:, None])[:, 0], atol=1e-12, rtol=1e-12)


def test_a_source_longer_than_the_model_reads_is_refused() -> None:
    with pytest.raises(ValueError, match="sequence of 81 tokens, but max_seq_len is 80"):
        InferenceModel(build()).encode(torch.full((1, 81), 5))


@torch.no_grad()
def test_rows_of_a_source_that_is_alone_exchange_their_past_and_are_dropped() -> None:
    model = build(norm_order="pre")
    inference = InferenceModel(model)
    src = SRC[2:]
    state = inference.encode(src)
    inference(torch.tensor([BOS]), 0, state)
    three = torch.tensor([0, 0, 0])
    state.reorder(three, three)  # as samples are drawn
    inference(torch.tensor([5, 6, 7]), 1, state)
    state.reorder(torch.tensor([2, 0, 2]))  # as hypotheses are chosen
    inference(torch.tensor([8, 9, 10]), 2, state)
    kept = torch.tensor([0, 2])
    state.reorder(kept, kept)
    logits = inference(torch.tensor([11, 12]), 3, state)
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
    inference = InferenceModel(model)
    bos = torch.full((150,), BOS)
    logits = inference(bos, 0, inference.encode(src))
    torch.testing.assert_close(logits, model(src, bos[:, None])[:, 0], atol=2e-5, rtol=1e-5)


@torch.no_grad()
def test_hypotheses_of_a_sentence_exchange_their_past_and_sentences_are_dropped() -> None:
    model = build()
    inference = InferenceModel(model)
    state = inference.encode(SRC)
    targets = torch.randint(4, 17, (3, 2), generator=torch.Generator().manual_seed(0))
    targets[:, 0] = BOS
    for i in range(2):
        inference(targets[:, i], i, state)
    # two hypotheses each for the sentences 2 and 0
    state.reorder(torch.tensor([2, 2, 0, 0]), torch.tensor([2, 0]))
    inference(torch.tensor([5, 6, 7, 8]), 2, state)
    # the second hypothesis of each sentence takes the place of both
    state.reorder(torch.tensor([1, 1, 3, 3]))
    logits = inference(torch.tensor([9, 10, 11, 12]), 3, state)
    rows = [(2, 6, 9), (2, 6, 10), (0, 8, 11), (0, 8, 12)]
    expected = torch.stack([model(SRC[[s]], torch.tensor([[*targets[s].tolist(), a, b]]))[0, -1] for s, a, b in rows])
    torch.testing.assert_close(logits, expected, atol=2e-5, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("src", [SRC, SRC[2:]], ids=["together", "alone"])
@pytest.mark.parametrize("beam_size", [1, 4])
def test_both_models_find_the_same(beam_size: int, src: Tensor) -> None:
    model, forbidden = build(norm_order="pre", output_bias=True), [0, 1, 2]
    model.output_layer.bias[EOS] = -9.0  # no early end
    found = []
    inference = InferenceModel(model, forbidden)
    for step, state in (
        (decoding_step(model, forbidden), DecoderCache(model, src)),
        (inference, inference.encode(src)),
    ):
        ends: dict[str, Any] = {
            "max_lengths": [9, 45, 70][-len(src) :],  # beyond the first room for past keys and values
            "bos_id": BOS,
            "eos_id": EOS,
            "length_penalty": 0.6,
        }
        if beam_size == 1:
            found.append([[one] for one in extend_greedily(step, state, **ends)])
        else:
            found.append(beam_search(step, state, beam_size=beam_size, n_best=beam_size, **ends))
    plain, fast = found
    assert max(len(one.ids) for row in plain for one in row) > 64
    assert [[one.ids for one in row] for row in fast] == [[one.ids for one in row] for row in plain]
    for one, other in zip(sum(fast, []), sum(plain, []), strict=True):  # noqa: RUF017
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-4)


@torch.no_grad()
def test_forbidden_tokens_are_impossible() -> None:
    inference = InferenceModel(build(), [0, 5, 16])
    logits: Tensor = inference(torch.tensor([BOS] * 3), 0, inference.encode(SRC))
    assert logits.isinf().nonzero()[:, 1].tolist() == [0, 5, 16] * 3
