"""Residual connection and LayerNorm, and the order of the sub-layers (seed documents 002 and 004)."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.layers import DecoderLayer, EncoderLayer, Residual, build_attention
from tfm.seq2seq.model.masks import causal_mask
from tfm.seq2seq.model.transformer import Transformer

B, S, T, D = 2, 6, 4, 16


def layer_norm(x: Tensor, norm: nn.LayerNorm, eps: float) -> Tensor:
    """gamma * (x - mu) / sqrt(sigma^2 + eps) + beta, written out."""
    mu = x.sum(dim=-1, keepdim=True) / D
    variance = ((x - mu) ** 2).sum(dim=-1, keepdim=True) / D
    return norm.weight * (x - mu) / torch.sqrt(variance + eps) + norm.bias


@pytest.mark.parametrize("eps", [1e-5, 0.3])
def test_post_norm_normalises_the_sum(
    tiny_config: Callable[..., ModelConfig], randomise: Callable[[nn.Module], None], eps: float
) -> None:
    residual = Residual(tiny_config(norm_order="post", norm_eps=eps))
    randomise(residual)
    x = torch.randn(B, S, D)
    expected = layer_norm(x + torch.sin(x), residual.norm, eps)
    torch.testing.assert_close(residual(x, torch.sin), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("eps", [1e-5, 0.3])
def test_pre_norm_normalises_what_the_sublayer_reads(
    tiny_config: Callable[..., ModelConfig], randomise: Callable[[nn.Module], None], eps: float
) -> None:
    residual = Residual(tiny_config(norm_order="pre", norm_eps=eps))
    randomise(residual)
    x = torch.randn(B, S, D)
    expected = x + torch.sin(layer_norm(x, residual.norm, eps))
    torch.testing.assert_close(residual(x, torch.sin), expected, atol=1e-5, rtol=0)


def test_a_norm_order_that_is_not_known_is_refused(tiny_config: Callable[..., ModelConfig]) -> None:
    config = tiny_config()
    object.__setattr__(config, "norm_order", "sandwich")  # as if added after all else
    with pytest.raises(NotImplementedError, match=r"^norm_order 'sandwich' is not implemented here$"):
        Residual(config)(torch.randn(B, S, D), torch.sin)
    with pytest.raises(NotImplementedError, match="'sandwich'"):
        Transformer(config, src_vocab_size=7, tgt_vocab_size=7, shared_vocab=True)


def test_dropout_falls_on_the_sublayers_output_not_on_the_residual(tiny_config: Callable[..., ModelConfig]) -> None:
    residual = Residual(tiny_config(norm_order="pre", dropout=0.5))
    x, f = torch.randn(B, S, D), torch.ones(B, S, D)
    added = residual(x, lambda _: f) - x  # 0 where dropped, else f / (1 - 0.5)
    assert ((added.abs() < 1e-5) | ((added - 2).abs() < 1e-5)).all()
    assert 0 < (added > 1).sum() < added.numel()
    torch.testing.assert_close(residual.eval()(x, lambda _: f), x + f)


def test_post_norm_drops_before_it_normalises(tiny_config: Callable[..., ModelConfig]) -> None:
    residual, eps = Residual(tiny_config(norm_order="post", dropout=0.5, norm_eps=0.1)), 0.1
    x, f = torch.randn(1, 1, D), torch.randn(1, 1, D)
    torch.manual_seed(3)
    output = residual(x, lambda _: f)
    torch.manual_seed(3)
    dropped = residual.dropout(f)
    assert not dropped.equal(f)
    torch.testing.assert_close(output, layer_norm(x + dropped, residual.norm, eps), atol=1e-6, rtol=0)


def test_build_attention_takes_every_size_from_the_configuration(tiny_config: Callable[..., ModelConfig]) -> None:
    built = build_attention(tiny_config(num_heads=3, d_k=5, d_v=7, attention_bias=False, attention_dropout=0.25))
    assert built.num_heads == 3
    assert built.q_proj.weight.shape == built.k_proj.weight.shape == (15, D)
    assert built.v_proj.weight.shape == (21, D)
    assert built.out_proj.weight.shape == (D, 21)
    assert not any(name.endswith("bias") for name, _ in built.named_parameters())
    assert built.dropout.rate == 0.25


def self_attention(layer: EncoderLayer | DecoderLayer, mask: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda x: layer.self_attn(x, layer.self_attn.keys_values(x), mask)


def wrap(norm_order: str, residual: Residual, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    if norm_order == "post":
        return layer_norm(x + sublayer(x), residual.norm, 1e-5)
    return x + sublayer(layer_norm(x, residual.norm, 1e-5))


@pytest.mark.parametrize("norm_order", ["post", "pre"])
def test_an_encoder_layer_is_self_attention_then_feed_forward(
    tiny_config: Callable[..., ModelConfig], randomise: Callable[[nn.Module], None], norm_order: str
) -> None:
    layer = EncoderLayer(tiny_config(norm_order=norm_order))
    randomise(layer)
    x, src_mask = torch.randn(B, S, D), torch.arange(S) < 4

    u = wrap(norm_order, layer.self_attn_residual, x, self_attention(layer, src_mask))
    z = wrap(norm_order, layer.feed_forward_residual, u, layer.feed_forward)

    torch.testing.assert_close(layer(x, src_mask), z, atol=1e-5, rtol=0)


@pytest.mark.parametrize("norm_order", ["post", "pre"])
def test_a_decoder_layer_is_self_attention_cross_attention_feed_forward(
    tiny_config: Callable[..., ModelConfig], randomise: Callable[[nn.Module], None], norm_order: str
) -> None:
    layer = DecoderLayer(tiny_config(norm_order=norm_order))
    randomise(layer)
    y, z = torch.randn(B, T, D), torch.randn(B, S, D)
    tgt_mask, src_mask = causal_mask(T), torch.arange(S) < 4
    memory = layer.cross_attn.keys_values(z)

    v = wrap(norm_order, layer.self_attn_residual, y, self_attention(layer, tgt_mask))
    w = wrap(norm_order, layer.cross_attn_residual, v, lambda v: layer.cross_attn(v, memory, src_mask))
    o = wrap(norm_order, layer.feed_forward_residual, w, layer.feed_forward)

    torch.testing.assert_close(layer(y, memory, tgt_mask, src_mask), o, atol=1e-5, rtol=0)


def test_each_sublayer_has_its_own_weights(tiny_config: Callable[..., ModelConfig]) -> None:
    layer = DecoderLayer(tiny_config())
    parts = [layer.self_attn, layer.cross_attn, layer.self_attn_residual, layer.cross_attn_residual]
    parts += [layer.feed_forward, layer.feed_forward_residual]
    assert len(list(layer.parameters())) == sum(len(list(part.parameters())) for part in parts)
