"""Recording a forward pass: it changes nothing and leaves nothing behind."""

from collections.abc import Callable

import pytest
import torch
from helpers.explained import SMALL, build, layers_of

from tfm.engine.explain.trace import trace
from tfm.seq2seq.model import ModelConfig, Transformer
from tfm.seq2seq.model.attention import attention_modules

SRC, TGT = torch.tensor([[20, 21, 22, 3]]), torch.tensor([[2, 30, 31]])


@torch.inference_mode()
def test_recording_changes_nothing_and_leaves_no_hook(model: Transformer) -> None:
    before = model(SRC, TGT)
    arrays = trace(model, lambda: model(SRC, TGT))
    assert arrays["output_layer"].equal(before[0])
    assert model(SRC, TGT).equal(before)
    assert not any(module._forward_hooks for module in model.modules())
    assert all(module.on_attention is None for module in attention_modules(model).values())


@torch.inference_mode()
def test_no_hook_is_left_after_an_error(make_model: Callable[[int], Transformer]) -> None:
    model = make_model(1)
    with pytest.raises(IndexError):
        trace(model, lambda: model(torch.tensor([[10_000]]), TGT))
    assert not any(module._forward_hooks for module in model.modules())


@torch.inference_mode()
def test_tied_embeddings_are_told_apart() -> None:
    """The two embeddings share a table, which has one name only."""
    model = build(ModelConfig(**SMALL, **layers_of("encoder_decoder")), 40)
    arrays = trace(model, lambda: model(SRC, TGT))
    table = model.src_embedding.tokens.weight
    assert arrays["src_embedding.tokens"].equal(table[SRC[0]])
    assert arrays["tgt_embedding.tokens"].equal(table[TGT[0]])
