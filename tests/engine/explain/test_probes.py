"""Heads switched off, and layers asked too early."""

import pytest
import torch
from torch import Tensor

from tfm.engine.explain.probes import early_logits, head_off, without_each_head
from tfm.engine.explain.trace import trace
from tfm.seq2seq.model import Transformer
from tfm.seq2seq.model.attention import MultiHeadAttention, attention_modules, recording

SRC, TGT = torch.tensor([[20, 21, 22, 3]]), torch.tensor([[2, 30, 31]])


@torch.inference_mode()
def test_a_head_that_is_off_gives_zeros_and_comes_back(model: Transformer) -> None:
    module = model.get_submodule("encoder.layers.0.self_attn")
    assert isinstance(module, MultiHeadAttention)
    x = torch.randn(1, 5, 16)
    before = module(x, x)
    with recording(module, lambda call: call.heads) as calls:
        module(x, x)
    [heads] = calls[""]
    heads[:, 1] = 0
    expected = module.out_proj(heads.transpose(1, 2).flatten(start_dim=2))
    with head_off(module, 1):
        without = module(x, x)
    torch.testing.assert_close(without, expected)
    assert not torch.allclose(without, before)
    assert module(x, x).equal(before)


@torch.inference_mode()
def test_a_head_comes_back_after_an_error(model: Transformer) -> None:
    before = model(SRC, TGT)
    with pytest.raises(KeyError), head_off(attention_modules(model)["decoder.layers.1.cross_attn"], 0):
        assert not model(SRC, TGT).equal(before)
        raise KeyError("inside")
    assert model(SRC, TGT).equal(before)


@torch.inference_mode()
def test_each_head_is_switched_off_alone(model: Transformer) -> None:
    outputs: list[Tensor] = []

    def log_probs() -> Tensor:
        outputs.append(model(SRC, TGT))
        return torch.zeros(3)

    found = without_each_head(model, log_probs, lambda: "a text")
    assert [(one.module, one.head) for one in found] == [(m, h) for m in attention_modules(model) for h in range(2)]
    whole = model(SRC, TGT)
    assert len(outputs) == 12 and not any(torch.allclose(one, whole) for one in outputs)
    assert all(not torch.allclose(a, b) for i, a in enumerate(outputs) for b in outputs[:i])


@torch.inference_mode()
def test_the_last_layer_asked_is_the_model(model: Transformer) -> None:
    arrays = trace(model, lambda: model(SRC, TGT))
    last = arrays["decoder.layers.1.feed_forward_residual"]
    torch.testing.assert_close(early_logits(last, model.decoder.norm, model.output_layer), model(SRC, TGT)[0])
