"""The encoder-only Transformer against torch's encoder with the same weights; its vectors; what padding does not do."""

import math
from itertools import product
from typing import Any, get_args

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.config import Activation, NormOrder, Positions
from tfm.seq2seq.model.embedding import sinusoidal_positions
from tfm.seq2seq.model.encoder_only import FIRST_TEMPERATURE, LOWEST_TEMPERATURE, EncoderOnly

V, D, HEADS, FF = 13, 16, 4, 24
KINDS = list(product(get_args(NormOrder), get_args(Activation), get_args(Positions)))
IDS = torch.tensor([[5, 6, 7, 8, 3, 0, 0], [9, 3, 0, 0, 0, 0, 0], [4, 5, 6, 7, 8, 9, 3]])
NAMES = {
    "linear2": "feed_forward.linear_2",
    "norm1": "self_attn_residual.norm",
    "norm2": "feed_forward_residual.norm",
    "self_attn.out_proj": "self_attn.out_proj",
}


def build(**choices: Any) -> EncoderOnly:
    torch.manual_seed(1)
    sizes: dict[str, Any] = {"d_model": D, "d_ff": FF, "num_heads": HEADS, "max_seq_len": 20, "dropout": 0.0}
    layers = {"architecture": "encoder_only", "num_encoder_layers": 3, "num_decoder_layers": 0}
    model = EncoderOnly(ModelConfig(**{**sizes, **layers, **choices}), vocab_size=V)
    for name, parameter in model.named_parameters():  # biases and norms too, and not too small
        nn.init.normal_(parameter, mean=1.0 if "norm.weight" in name else 0.0, std=0.4)
    return model


def gated(both: Tensor) -> Tensor:
    """SwiGLU of the gate and what it gates, side by side."""
    gate, hidden = both.chunk(2, dim=-1)
    return F.silu(gate) * hidden


class Reference(nn.Module):
    """torch's own encoder with the weights of a model, between an embedding and an output layer written out."""

    def __init__(self, model: EncoderOnly) -> None:
        super().__init__()
        self.config, self.table = model.config, model.embedding.tokens.weight
        self.learned = dict(model.named_parameters()).get("embedding.positions.weight")
        pre_norm, activation = self.config.norm_order == "pre", self.config.activation
        inner = gated if activation == "swiglu" else activation
        layer = nn.TransformerEncoderLayer(D, HEADS, FF, 0.0, inner, batch_first=True, norm_first=pre_norm)
        if activation == "swiglu":
            layer.linear1 = nn.Linear(D, 2 * FF)
        norm = nn.LayerNorm(D) if pre_norm else None
        self.encoder = nn.TransformerEncoder(layer, 3, norm, enable_nested_tensor=False)
        self.copied: list[tuple[Tensor, list[Tensor]]] = []
        for mine, theirs in zip(model.encoder.layers, self.encoder.layers, strict=True):
            self._pair({**dict(mine.named_parameters())}, {**dict(theirs.named_parameters())})
        if norm is not None and self.encoder.norm is not None:
            ours = dict(model.encoder.norm.named_parameters())
            for name, their in self.encoder.norm.named_parameters():
                self.copied.append((their, [ours[name]]))
        with torch.no_grad():
            for their, parts in self.copied:
                their.copy_(torch.cat(parts))
        assert {id(their) for their, _ in self.copied} == {id(one) for one in self.encoder.parameters()}

    def _pair(self, ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
        first = ["gate", "linear_1"] if self.config.activation == "swiglu" else ["linear_1"]
        for kind in ("weight", "bias"):
            self.copied += [(theirs[f"{name}.{kind}"], [ours[f"{other}.{kind}"]]) for name, other in NAMES.items()]
            self.copied.append((theirs[f"linear1.{kind}"], [ours[f"feed_forward.{name}.{kind}"] for name in first]))
            projections = [ours[f"self_attn.{part}_proj.{kind}"] for part in "qkv"]
            self.copied.append((theirs[f"self_attn.in_proj_{kind}"], projections))

    def hidden_states(self, ids: Tensor) -> Tensor:
        x = self.table[ids] * math.sqrt(D)
        match self.config.positions:
            case "sinusoidal":
                x = x + sinusoidal_positions(ids.size(1), D)
            case "learned":
                assert self.learned is not None
                x = x + self.learned[: ids.size(1)]
            case "none":
                pass
        return self.encoder(x, src_key_padding_mask=ids == 0)

    def embed(self, ids: Tensor) -> Tensor:
        rows = [states[row != 0].mean(dim=0) for states, row in zip(self.hidden_states(ids), ids, strict=True)]
        return torch.stack([row / row.square().sum().sqrt() for row in rows])

    def logits(self, ids: Tensor) -> Tensor:
        return self.hidden_states(ids) @ self.table.T


@pytest.mark.parametrize(("norm_order", "activation", "positions"), [kind for kind in KINDS if kind[2] != "rotary"])
def test_vectors_logits_and_gradients_are_those_of_torchs_encoder(
    norm_order: str, activation: str, positions: str
) -> None:
    model = build(norm_order=norm_order, activation=activation, positions=positions).double()
    reference = Reference(model).double()
    real = IDS != 0
    torch.testing.assert_close(model(IDS)[real], reference.logits(IDS)[real], atol=1e-6, rtol=1e-6)
    vectors, expected = model.embed(IDS), reference.embed(IDS)
    torch.testing.assert_close(vectors, expected, atol=1e-6, rtol=1e-6)
    direction = torch.randn_like(vectors)
    model.zero_grad()
    (vectors * direction).sum().backward()
    ours = [torch.cat([part.grad for part in parts if part.grad is not None]) for _, parts in reference.copied]
    (expected * direction).sum().backward()
    for (their, _), gradient in zip(reference.copied, ours, strict=True):
        torch.testing.assert_close(their.grad, gradient, atol=1e-6, rtol=1e-6)


@torch.no_grad()
@pytest.mark.parametrize(("norm_order", "activation", "positions"), KINDS)
def test_padding_changes_nothing(norm_order: str, activation: str, positions: str) -> None:
    model = build(norm_order=norm_order, activation=activation, positions=positions).eval()
    together = model.embed(IDS)
    for vector, ids in zip(together, IDS, strict=True):
        torch.testing.assert_close(model.embed(ids[ids != 0][None])[0], vector, atol=1e-5, rtol=0)
        torch.testing.assert_close(model.embed(F.pad(ids, (0, 6))[None])[0], vector, atol=1e-5, rtol=0)


@torch.no_grad()
def test_every_token_sees_both_sides() -> None:
    model = build().eval()
    before = model(IDS[2:])[0]
    for place in range(IDS.size(1)):
        changed = IDS[2:].clone()
        changed[0, place] = 10
        assert not (model(changed)[0] - before).abs().amax(dim=-1).lt(1e-6).any()


@torch.no_grad()
def test_vectors_have_length_one_in_float32_whatever_the_activations_are() -> None:
    model = build().eval()
    for dtype in (None, torch.bfloat16):
        vectors = model.embed(IDS, dtype)
        assert vectors.dtype == torch.float32
        torch.testing.assert_close(vectors.norm(dim=1), torch.ones(3))
    torch.testing.assert_close(model.embed(IDS, torch.bfloat16), model.embed(IDS), atol=0.05, rtol=0)


def test_the_temperature_begins_where_it_is_said_to_and_has_a_floor() -> None:
    config = ModelConfig(
        architecture="encoder_only", d_model=D, num_heads=HEADS, num_encoder_layers=1, num_decoder_layers=0
    )
    model = EncoderOnly(config, vocab_size=V)
    assert model.temperature.item() == pytest.approx(FIRST_TEMPERATURE)
    with torch.no_grad():
        model.log_temperature.fill_(-50.0)
    assert model.temperature.item() == pytest.approx(LOWEST_TEMPERATURE, rel=1e-4)
    model.temperature.backward()
    assert model.log_temperature.grad is not None and model.log_temperature.grad > 0  # so it can rise again


def test_the_output_layer_is_the_embedding_unless_untied() -> None:
    model, untied = build(), build(tie_embeddings=False, output_bias=True)
    assert model.output_layer.weight is model.embedding.tokens.weight
    assert untied.output_layer.weight is not untied.embedding.tokens.weight
    assert untied.output_layer.bias is not None


@pytest.mark.parametrize("layers", [1, 6])
def test_it_has_no_decoder(layers: int) -> None:
    with pytest.raises(ValueError, match="num_decoder_layers must be 0, for encoder_only has none"):
        ModelConfig(architecture="encoder_only", num_decoder_layers=layers)
