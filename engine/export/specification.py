"""Our Transformer in CTranslate2's own terms: a `TransformerSpec` with every weight in its place.

A `linear` of CTranslate2 is x W^T + b with W of shape (outputs, inputs), as torch has it; queries, keys and values are
projected by the rows of one matrix.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Never, TypeVar, cast

import numpy as np
import numpy.typing as npt
import torch
from ctranslate2.specs import attention_spec, common_spec, transformer_spec
from torch import Tensor, nn

from ...seq2seq.model.attention import MultiHeadAttention
from ...seq2seq.model.config import Activation, ModelConfig, Positions, unknown
from ...seq2seq.model.embedding import Embedding, LearnedPositions, sinusoidal_positions
from ...seq2seq.model.encoder_decoder import Transformer
from ...seq2seq.model.feed_forward import FeedForward
from ...seq2seq.model.layers import DecoderLayer, Residual
from ..exportable import MIN_POSITIONS

FORBIDDEN_LOGIT = -1e4
"""Bias of forbidden pieces: their probability is exactly 0, in half precision too."""

Array = npt.NDArray[np.float32]
K = TypeVar("K")
T = TypeVar("T")

ACTIVATIONS: dict[Activation, tuple[Any, bool]] = {
    "relu": (common_spec.Activation.RELU, False),
    "gelu": (common_spec.Activation.GELU, False),
    "swiglu": (common_spec.Activation.SWISH, True),
}
"""CTranslate2's name of an activation, and whether it is multiplied by a second projection."""
POSITIONS: dict[Positions, tuple[Callable[[Embedding, int], Tensor | None], str]] = {
    "learned": (lambda embedding, _: cast(LearnedPositions, embedding.positions).weight, "raises an error"),
    "sinusoidal": (
        lambda embedding, length: sinusoidal_positions(length, embedding.tokens.embedding_dim),
        "translates them badly",
    ),
    "rotary": (lambda *_: None, "translates them badly"),  # `_attention` has them
    "none": (lambda embedding, length: torch.zeros(length, embedding.tokens.embedding_dim), "translates them badly"),
}
"""The table of position vectors, with this many rows if they can be computed; and how CTranslate2 takes longer sources.

CTranslate2's own table is never used: its sinusoids are arranged otherwise.
"""


def known(table: Mapping[K, T], setting: str, value: K) -> T:
    """The entry of a value of the configuration.

    Raises:
        NotImplementedError: The value is not known here.
    """
    if value not in table:
        raise unknown(setting, cast(Never, value))
    return table[value]


def specify(model: Transformer, forbidden_ids: list[int]) -> transformer_spec.TransformerSpec:
    """The specification of a model, its weights copied; vocabularies and special tokens are still to be set.

    Args:
        model: `why_not_exportable` gives no reason against it.
        forbidden_ids: Target pieces that are never to be generated.

    Raises:
        NotImplementedError: The configuration has a value that is not known here.
    """
    config = model.config
    pre_norm = known({"post": False, "pre": True}, "norm_order", config.norm_order)
    activation, gated = known(ACTIVATIONS, "activation", config.activation)
    shape: Any = {"num_heads": config.num_heads, "pre_norm": pre_norm, "activation": activation, "ffn_glu": gated}
    encoder = transformer_spec.TransformerEncoderSpec(config.num_encoder_layers, **shape)
    decoder = transformer_spec.TransformerDecoderSpec(config.num_decoder_layers, **shape)
    spec = transformer_spec.TransformerSpec(encoder, decoder)
    settings: Any = spec.config
    settings.layer_norm_epsilon = config.norm_eps
    _set_embedding(encoder, encoder.embeddings[0], model.src_embedding, config)
    _set_embedding(decoder, decoder.embeddings, model.tgt_embedding, config)
    layers: Any = [
        *zip(encoder.layer, model.encoder.layers, strict=True),
        *zip(decoder.layer, model.decoder.layers, strict=True),
    ]
    for layer, ours in layers:
        layer.self_attention = _attention(ours.self_attn, ours.self_attn_residual, self_attention=True)
        if isinstance(ours, DecoderLayer):
            layer.attention = _attention(ours.cross_attn, ours.cross_attn_residual, self_attention=False)
        _set_feed_forward(layer.ffn, ours.feed_forward, ours.feed_forward_residual)
    if pre_norm:
        _set_norm(encoder.layer_norm, model.encoder.norm)
        _set_norm(decoder.layer_norm, model.decoder.norm)
    _set_output_layer(decoder.projection, model.output_layer, forbidden_ids)
    return spec


def _set_embedding(stack: Any, tokens: Any, embedding: Embedding, config: ModelConfig) -> None:
    tokens.weight = _array(embedding.tokens.weight)
    stack.scale_embeddings = embedding.scale != 1
    positions, _ = known(POSITIONS, "positions", config.positions)
    table = positions(embedding, max(embedding.num_positions, MIN_POSITIONS))
    if table is not None:
        stack.position_encodings.encodings = _array(table)


def _attention(attention: MultiHeadAttention, residual: Residual, *, self_attention: bool) -> Any:
    """One attention sub-layer. Self-attention projects queries, keys and values at once, cross-attention queries apart.

    CTranslate2 knows one width of heads; where d_k and d_v differ, zeros fill up the narrower. They change neither a
    dot product nor an output.
    """
    heads, d_model = attention.num_heads, attention.out_proj.out_features
    d_k, d_v = attention.q_proj.out_features // heads, attention.v_proj.out_features // heads
    width = max(d_k, d_v)
    usual = width * heads == d_model
    spec: Any = attention_spec.MultiHeadAttentionSpec(
        self_attention,
        head_dim=None if usual else width,
        rotary_dim=None if attention.rotary is None else d_k,
        rotary_interleave=True,  # pairs are neighbouring columns
    )
    if d_k < width:
        spec.queries_scale = 1 / math.sqrt(d_k)
    q, k, v = (_widened(layer, heads, width) for layer in (attention.q_proj, attention.k_proj, attention.v_proj))
    for linear, rows in zip(spec.linear, [[q, k, v]] if self_attention else [[q], [k, v]], strict=False):
        linear.weight = np.concatenate([weight for weight, _ in rows])
        linear.bias = np.concatenate([bias for _, bias in rows])
    out = _array(attention.out_proj.weight).reshape(d_model, heads, d_v)
    spec.linear[-1].weight = np.pad(out, ((0, 0), (0, 0), (0, width - d_v))).reshape(d_model, -1)
    if attention.out_proj.bias is not None:
        spec.linear[-1].bias = _array(attention.out_proj.bias)
    _set_norm(spec.layer_norm, residual.norm)
    return spec


def _widened(layer: nn.Linear, heads: int, width: int) -> tuple[Array, Array]:
    """Weight (heads * width, D) and bias of a projection to heads, each filled up with zeros to that width."""
    weight = _array(layer.weight).reshape(heads, -1, layer.in_features)
    bias = _array(layer.bias) if layer.bias is not None else np.zeros(layer.out_features, dtype=np.float32)
    missing = (0, width - weight.shape[1])
    widened = np.pad(weight, ((0, 0), missing, (0, 0))).reshape(-1, layer.in_features)
    return widened, np.pad(bias.reshape(heads, -1), ((0, 0), missing)).reshape(-1)


def _set_feed_forward(spec: Any, feed_forward: FeedForward, residual: Residual) -> None:
    if feed_forward.gate is None:
        _set_linear(spec.linear_0, feed_forward.linear_1)
    else:  # CTranslate2 applies the activation to linear_0
        _set_linear(spec.linear_0, feed_forward.gate)
        _set_linear(spec.linear_0_noact, feed_forward.linear_1)
    _set_linear(spec.linear_1, feed_forward.linear_2)
    _set_norm(spec.layer_norm, residual.norm)


def _set_output_layer(spec: Any, layer: nn.Linear, forbidden_ids: list[int]) -> None:
    _set_linear(spec, layer)
    bias = np.zeros(layer.out_features, dtype=np.float32) if layer.bias is None else _array(layer.bias)
    bias[forbidden_ids] = FORBIDDEN_LOGIT
    spec.bias = bias


def _set_linear(spec: Any, layer: nn.Linear) -> None:
    spec.weight = _array(layer.weight)
    if layer.bias is not None:
        spec.bias = _array(layer.bias)


def _set_norm(spec: Any, norm: nn.Module) -> None:
    assert isinstance(norm, nn.LayerNorm)
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _array(tensor: Tensor) -> Array:
    """A copy: quantization scales its input in place."""
    return tensor.detach().to("cpu", torch.float32, copy=True).numpy()
