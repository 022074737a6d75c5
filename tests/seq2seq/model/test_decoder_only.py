"""The decoder-only Transformer against torch's layers and against its equations written out; what it may see."""

import math
from itertools import product
from typing import Any, get_args

import pytest
import torch
from helpers.numpy_transformer import rotated
from torch import Tensor, nn
from torch.nn import functional as F

from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.config import Activation, NormOrder, Positions
from tfm.seq2seq.model.decoder_only import DecoderOnly
from tfm.seq2seq.model.embedding import sinusoidal_positions

V, D, HEADS = 13, 16, 4
KINDS = list(product(get_args(NormOrder), get_args(Activation), get_args(Positions)))
SRC = torch.tensor([[5, 6, 7, 8, 3, 0, 0], [9, 4, 3, 0, 0, 0, 0], [4, 5, 6, 7, 8, 9, 3]])
TGT = torch.tensor([[2, 7, 8, 9, 0], [2, 5, 0, 0, 0], [2, 4, 4, 10, 11]])
NO_SRC = torch.empty(3, 0, dtype=torch.long)


def build(**choices: Any) -> DecoderOnly:
    torch.manual_seed(1)
    sizes: dict[str, Any] = {"d_model": D, "d_ff": 24, "num_heads": HEADS, "max_seq_len": 20, "dropout": 0.0}
    layers = {"architecture": "decoder_only", "num_encoder_layers": 0, "num_decoder_layers": 3}
    model = DecoderOnly(ModelConfig(**{**sizes, **layers, **choices}), vocab_size=V).eval()
    for name, parameter in model.named_parameters():  # biases and norms too, and not too small
        nn.init.normal_(parameter, mean=1.0 if "norm.weight" in name else 0.0, std=0.4)
    return model


class WrittenOut:
    """The equations of the model with its weights, for one sequence without padding, in torch's functions alone."""

    def __init__(self, model: DecoderOnly) -> None:
        self.config, self.weights = model.config, dict(model.named_parameters())

    def linear(self, x: Tensor, name: str) -> Tensor:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, (D,), self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], self.config.norm_eps)

    def embed(self, ids: Tensor) -> Tensor:
        x = self.weights["embedding.tokens.weight"][ids] * math.sqrt(D)
        match self.config.positions:
            case "sinusoidal":
                return x + sinusoidal_positions(len(ids), D)
            case "learned":
                return x + self.weights["embedding.positions.weight"][: len(ids)]
            case "rotary" | "none":
                return x

    def attend(self, x: Tensor, name: str) -> Tensor:
        q, k, v = (self.linear(x, f"{name}.{part}_proj").view(len(x), HEADS, -1).transpose(0, 1) for part in "qkv")
        if self.config.positions == "rotary":
            q, k = (torch.from_numpy(rotated(one.numpy())) for one in (q, k))
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # (H, T, d)
        return self.linear(heads.transpose(0, 1).flatten(1), f"{name}.out_proj")

    def feed_forward(self, x: Tensor, name: str) -> Tensor:
        hidden = self.linear(x, f"{name}.linear_1")
        match self.config.activation:
            case "relu":
                hidden = hidden.clamp(min=0)
            case "gelu":
                hidden = hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2
            case "swiglu":
                gate = self.linear(x, f"{name}.gate")
                hidden = gate * gate.sigmoid() * hidden
        return self.linear(hidden, f"{name}.linear_2")

    def logits(self, ids: Tensor) -> Tensor:
        """(T,) to (T, V)."""
        x, pre_norm = self.embed(ids), self.config.norm_order == "pre"
        for i in range(self.config.num_decoder_layers):
            for sublayer, name in ((self.attend, "self_attn"), (self.feed_forward, "feed_forward")):
                around = f"decoder.layers.{i}.{name}"
                norm = f"{around}_residual.norm"
                x = x + sublayer(self.norm(x, norm), around) if pre_norm else self.norm(x + sublayer(x, around), norm)
        x = self.norm(x, "decoder.norm") if pre_norm else x
        return x @ self.weights["embedding.tokens.weight"].T


@torch.no_grad()
@pytest.mark.parametrize(("norm_order", "activation", "positions"), KINDS)
def test_it_is_the_equations(norm_order: str, activation: str, positions: str) -> None:
    """Sources and targets of unequal lengths in one batch, each against its own sequence without padding."""
    model = build(norm_order=norm_order, activation=activation, positions=positions)
    logits, alone = model(SRC, TGT), model(NO_SRC, TGT)
    for row, (src, tgt) in enumerate(zip(SRC, TGT, strict=True)):
        src, tgt = src[src != 0], tgt[tgt != 0]
        expected = WrittenOut(model).logits(torch.cat([src, tgt]))[len(src) :]
        torch.testing.assert_close(logits[row, : len(tgt)], expected, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(alone[row, : len(tgt)], WrittenOut(model).logits(tgt), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_order", get_args(NormOrder))
def test_its_stack_and_gradients_are_torchs(norm_order: str, activation: str) -> None:
    """torch's encoder layers under a causal mask, with the same weights."""
    model = build(norm_order=norm_order, activation=activation)
    layer = nn.TransformerEncoderLayer(
        D, HEADS, 24, 0.0, activation, batch_first=True, norm_first=norm_order == "pre", layer_norm_eps=1e-5
    )
    norm = nn.LayerNorm(D) if norm_order == "pre" else None
    theirs = nn.TransformerEncoder(layer, 3, norm, enable_nested_tensor=False)
    copied: list[tuple[nn.Parameter, list[Any]]] = []
    for mine, their in zip(model.decoder.layers, theirs.layers, strict=True):
        ours, reference = dict(mine.named_parameters()), dict(their.named_parameters())
        names = {
            "linear1": "feed_forward.linear_1",
            "linear2": "feed_forward.linear_2",
            "norm1": "self_attn_residual.norm",
        }
        names |= {"norm2": "feed_forward_residual.norm", "self_attn.out_proj": "self_attn.out_proj"}
        for kind in ("weight", "bias"):
            copied += [(reference[f"{name}.{kind}"], [ours[f"{other}.{kind}"]]) for name, other in names.items()]
            parts = [ours[f"self_attn.{part}_proj.{kind}"] for part in "qkv"]
            copied.append((reference[f"self_attn.in_proj_{kind}"], parts))
    if norm is not None:
        copied += [(norm.weight, [model.decoder.norm.weight]), (norm.bias, [model.decoder.norm.bias])]
    with torch.no_grad():
        for their, parts in copied:
            their.copy_(torch.cat(list(parts)))
    ids = TGT[2:]
    mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1))
    expected = model.output_layer(theirs(model.embedding(ids), mask))
    logits = model(NO_SRC[:1], ids)
    torch.testing.assert_close(logits, expected, atol=1e-4, rtol=1e-4)
    direction = torch.randn_like(logits)
    model.zero_grad()
    (logits * direction).sum().backward()
    (model.output_layer(theirs(model.embedding(ids), mask)) * direction).sum().backward()
    for their, parts in copied:
        together = torch.cat([part.grad for part in parts if part.grad is not None])
        torch.testing.assert_close(their.grad, together, atol=1e-3, rtol=1e-3)


@torch.no_grad()
def test_a_target_token_changes_no_earlier_logits_and_all_later_ones() -> None:
    model = build()
    changed = TGT[2:].clone()
    changed[0, 2] = 7
    before, after = model(SRC[2:], TGT[2:])[0], model(SRC[2:], changed)[0]
    assert before[:2].equal(after[:2])
    assert all(not before[i].allclose(after[i]) for i in range(2, 5))


@torch.no_grad()
def test_every_source_token_is_seen_by_every_target_position() -> None:
    model = build()
    before = model(SRC[2:], TGT[2:])[0]
    for place in range(SRC.size(1)):
        changed = SRC[2:].clone()
        changed[0, place] = 12
        assert not any(a.allclose(b) for a, b in zip(before, model(changed, TGT[2:])[0], strict=True))


@pytest.mark.parametrize("positions", get_args(Positions))
def test_padding_has_no_gradient_and_changes_nothing(positions: str) -> None:
    model = build(positions=positions)
    longer = F.pad(SRC, (0, 4))
    torch.testing.assert_close(model(longer, TGT), model(SRC, TGT), atol=1e-5, rtol=1e-5)
    model(SRC, TGT)[2].sum().backward()  # neither its source nor its target has padding
    tokens = model.embedding.tokens.weight
    assert tokens.grad is not None
    model.zero_grad()
    model.hidden_states(SRC[:1], TGT[:1])[0, :4].sum().backward()
    assert tokens.grad is None or tokens.grad[0].abs().max() == 0


def test_source_and_target_may_each_be_as_long_as_the_model_reads() -> None:
    model = build(positions="learned")
    full = torch.full((1, 20), 5)
    assert model(full, full).shape == (1, 20, V)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"num_encoder_layers": 1}, "num_encoder_layers must be 0, for decoder_only has none, but is 1"),
        ({"num_decoder_layers": 0}, "num_decoder_layers must be at least 1, but is 0"),
    ],
)
def test_layers_that_it_does_not_have_are_refused(changes: dict[str, int], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        build(**changes)
