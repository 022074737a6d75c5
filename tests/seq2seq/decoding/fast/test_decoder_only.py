"""The decoder-only Transformer written out for decoding against the plain one."""

from itertools import product
from typing import Any, get_args

import pytest
import torch
from helpers.full_pass import FullPass
from torch import nn

from tfm.engine import Beam, Greedy
from tfm.seq2seq.decoding.fast.decoder_only import FastDecoderOnly
from tfm.seq2seq.decoding.search import Search, Task
from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.config import Activation, NormOrder, Positions
from tfm.seq2seq.model.decoder_only import DecoderOnly

BOS, EOS = 2, 3
KINDS = product(get_args(NormOrder), get_args(Activation), get_args(Positions))
CHOICES: list[dict[str, Any]] = [
    *({"norm_order": kind[0], "activation": kind[1], "positions": kind[2]} for kind in KINDS),
    {"attention_bias": False},
    {"output_bias": True, "tie_embeddings": False, "scale_embeddings": False},
    {"d_k": 3, "d_v": 7},
    *({"positions": "rotary", "d_k": d_k, "d_v": d_v} for d_k, d_v in ((4, 7), (6, 2))),
]
SRC = torch.tensor([[5, 6, 7, 8, 3, 0, 0], [9, 4, 3, 0, 0, 0, 0], [4, 5, 6, 7, 8, 9, 3]])


def build(**choices: Any) -> DecoderOnly:
    torch.manual_seed(1)
    sizes: dict[str, Any] = {"d_model": 12, "d_ff": 20, "num_heads": 2, "max_seq_len": 60}
    layers = {"architecture": "decoder_only", "num_encoder_layers": 0, "num_decoder_layers": 3}
    model = DecoderOnly(ModelConfig(**{**sizes, **layers, **choices}), vocab_size=17).eval()
    for name, parameter in model.named_parameters():
        nn.init.normal_(parameter, mean=1.0 if "norm.weight" in name else 0.0, std=0.4)
    return model


@torch.no_grad()
@pytest.mark.parametrize("choices", CHOICES, ids=str)
def test_step_by_step_it_is_the_plain_model(choices: dict[str, Any]) -> None:
    """40 positions after prompts of unequal lengths, and after none."""
    model = build(**choices)
    targets = torch.randint(4, 17, (3, 40), generator=torch.Generator().manual_seed(0))
    targets[:, 0] = BOS
    fast = FastDecoderOnly(model)
    for src in (SRC, SRC[:, :0]):
        state = fast.encode(src)
        stepwise = torch.stack([fast(targets[:, i], i, state).clone() for i in range(40)], dim=1)
        torch.testing.assert_close(stepwise, model(src, targets), atol=5e-5, rtol=1e-4)


@torch.no_grad()
def test_rows_exchange_their_past_and_sentences_are_dropped() -> None:
    model = build(norm_order="pre")
    fast, state = FastDecoderOnly(model), None
    state = fast.encode(SRC)
    fast(torch.tensor([BOS, BOS, BOS]), 0, state)
    state.reorder(torch.tensor([0, 0, 1, 1, 2, 2]))  # two hypotheses of each
    fast(torch.tensor([5, 6, 7, 8, 9, 10]), 1, state)
    state.reorder(torch.tensor([1, 1, 5, 4]), torch.tensor([0, 2]))  # the second sentence has ended
    logits = fast(torch.tensor([11, 12, 13, 14]), 2, state)
    targets = torch.tensor([[BOS, 6, 11], [BOS, 6, 12], [BOS, 10, 13], [BOS, 9, 14]])
    expected = model(SRC[[0, 0, 2, 2]], targets)[:, -1]
    torch.testing.assert_close(logits, expected, atol=2e-5, rtol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("search", [Greedy(), Beam(4, n_best=4)], ids=str)
@pytest.mark.parametrize("prefixes", [(), ([7, 8], [], [9])], ids=["free", "begun"])
def test_a_search_finds_what_it_finds_with_the_plain_model(search: Search, prefixes: Any) -> None:
    model = build(norm_order="pre")
    fast, plain = FastDecoderOnly(model, [0, BOS]), FullPass(model, [0, BOS])
    task = Task([15, 9, 12], BOS, EOS, prefixes)
    found, expected = search(fast, fast.encode(SRC), task), search(plain, plain.encode(SRC), task)
    for ours, theirs in zip(found, expected, strict=True):
        assert [one.ids for one in ours] == [one.ids for one in theirs]
        assert [one.log_prob for one in ours] == pytest.approx([one.log_prob for one in theirs], abs=1e-3)


def test_a_source_longer_than_the_model_reads_is_refused() -> None:
    with pytest.raises(ValueError, match="sequence of 61 tokens, but max_seq_len is 60"):
        FastDecoderOnly(build()).encode(torch.full((1, 61), 5))


def test_what_it_does_not_know_it_refuses() -> None:
    model = build()
    object.__setattr__(model.config, "norm_order", "unheard-of")
    with pytest.raises(NotImplementedError, match="norm_order 'unheard-of'"):
        FastDecoderOnly(model)
