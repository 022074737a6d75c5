"""Residual connection and LayerNorm, and the order of the sub-layers ([Anonymous n.d.] and [Zhou n.d.])."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.attention import MultiHeadAttention
from tfm.seq2seq.model.encoder_decoder import Transformer
from tfm.seq2seq.model.layers import DecoderLayer, EncoderLayer, Residual, build_attention
from tfm.seq2seq.model.masks import causal_mask

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


@pytest.mark.parametrize("output", [None, True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_the_output_projection_has_the_bias_of_the_others_unless_it_is_told(
    tiny_config: Callable[..., ModelConfig], bias: bool, output: bool | None
) -> None:
    built = build_attention(tiny_config(attention_bias=bias, attention_output_bias=output))
    for projection in (built.q_proj, built.k_proj, built.v_proj):
        assert (projection.bias is not None) == bias
    assert (built.out_proj.bias is not None) == (bias if output is None else output)


ZHOU = {
    "attention_bias": False,
    "attention_output_bias": False,
    "feed_forward_output_bias": False,
    "norm_eps": 0.0,
}


def zhou_layer_norm(v: Tensor, norm: nn.LayerNorm) -> Tensor:
    """gamma * (v - mu) / sigma + beta of one vector."""
    mu = v.sum() / D
    sigma = (((v - mu) ** 2).sum() / D).sqrt()
    return norm.weight * (v - mu) / sigma + norm.bias


def zhou_attention(attn: MultiHeadAttention, queries: Tensor, memory: Tensor, seen: Callable[[int], int]) -> Tensor:
    """sum_h W_O^(h) sum_j alpha_ij^(h) V^(h)(z_j), vector by vector; query i sees the first seen(i) of the memory."""
    k = D // attn.num_heads
    found: list[Tensor] = []
    for i, x in enumerate(queries):
        u = torch.zeros(D)
        for h in range(attn.num_heads):
            rows = slice(h * k, (h + 1) * k)
            Q, K, V = (projection.weight[rows] for projection in (attn.q_proj, attn.k_proj, attn.v_proj))
            alpha = torch.stack([torch.exp((Q @ x) @ (K @ z) / math.sqrt(k)) for z in memory[: seen(i)]])
            values = torch.stack([V @ z for z in memory[: seen(i)]])
            u = u + attn.out_proj.weight[:, rows] @ ((alpha / alpha.sum()) @ values)
        found.append(u)
    return torch.stack(found)


def zhou_norms(x: Tensor, norm: nn.LayerNorm) -> Tensor:
    return torch.stack([zhou_layer_norm(v, norm) for v in x])


def zhou_feed_forward(layer: EncoderLayer | DecoderLayer, x: Tensor) -> Tensor:
    """W_2 ReLU(W_1 u + b_1)."""
    first, second = layer.feed_forward.linear_1, layer.feed_forward.linear_2
    assert second.bias is None
    return torch.stack([second.weight @ torch.relu(first.weight @ u + first.bias) for u in x])


def test_layers_are_those_of_a_text_without_these_biases_and_epsilon(
    tiny_config: Callable[..., ModelConfig], randomise: Callable[[nn.Module], None]
) -> None:
    """The encoder's and the decoder's block as [Zhou n.d.] writes them, one vector after the other."""
    encoder, decoder = EncoderLayer(tiny_config(**ZHOU)), DecoderLayer(tiny_config(**ZHOU))
    randomise(encoder)
    randomise(decoder)
    x, y = torch.randn(S, D), torch.randn(T, D)

    u = zhou_norms(zhou_attention(encoder.self_attn, x, x, lambda _: S) + x, encoder.self_attn_residual.norm)
    z = zhou_norms(zhou_feed_forward(encoder, u) + u, encoder.feed_forward_residual.norm)
    torch.testing.assert_close(encoder(x[None], None)[0], z, atol=1e-5, rtol=0)

    v = zhou_norms(zhou_attention(decoder.self_attn, y, y, lambda j: j + 1) + y, decoder.self_attn_residual.norm)
    w = zhou_norms(zhou_attention(decoder.cross_attn, v, z, lambda _: S) + v, decoder.cross_attn_residual.norm)
    o = zhou_norms(zhou_feed_forward(decoder, w) + w, decoder.feed_forward_residual.norm)
    torch.testing.assert_close(decoder(y[None], z[None], causal_mask(T), None)[0], o, atol=1e-5, rtol=0)


def test_without_epsilon_scale_does_not_matter_and_a_constant_row_is_not_a_number(
    tiny_config: Callable[..., ModelConfig],
) -> None:
    norm = Residual(tiny_config(norm_eps=0.0)).norm
    x = torch.randn(B, S, D)
    torch.testing.assert_close(norm(1e-6 * x), norm(x), atol=1e-4, rtol=0)
    x[0, 0] = 3
    normal = norm(x)
    assert normal[0, 0].isnan().all()
    assert normal.isnan().sum() == D


def self_attention(layer: EncoderLayer | DecoderLayer, mask: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda x: layer.self_attn(x, x, mask)


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

    v = wrap(norm_order, layer.self_attn_residual, y, self_attention(layer, tgt_mask))
    w = wrap(norm_order, layer.cross_attn_residual, v, lambda v: layer.cross_attn(v, z, src_mask))
    o = wrap(norm_order, layer.feed_forward_residual, w, layer.feed_forward)

    torch.testing.assert_close(layer(y, z, tgt_mask, src_mask), o, atol=1e-5, rtol=0)


def test_each_sublayer_has_its_own_weights(tiny_config: Callable[..., ModelConfig]) -> None:
    layer = DecoderLayer(tiny_config())
    parts = [layer.self_attn, layer.cross_attn, layer.self_attn_residual, layer.cross_attn_residual]
    parts += [layer.feed_forward, layer.feed_forward_residual]
    assert len(list(layer.parameters())) == sum(len(list(part.parameters())) for part in parts)
