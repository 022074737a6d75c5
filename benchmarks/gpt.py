"""Generative transformers of transformers with the sizes of tfm's decoder-only model, and with its weights.

GPT-2 is its pre-norm form, the first GPT its post-norm form. Both have biases everywhere but in the output layer, which
is tied to the embeddings; both look positions up in a table, which may hold sinusoids.
"""

from typing import Any

import torch
from torch import Tensor

REPRESENTABLE = {
    "attention_bias": True,
    "feed_forward_output_bias": True,
    "output_bias": False,
    "tie_embeddings": True,
    "scale_embeddings": False,
    "d_k": None,
    "d_v": None,
}
"""What a tfm ModelConfig must say for a GPT to compute the same function."""


def why_not(model: dict[str, Any]) -> str | None:
    """Why a tfm model cannot be a GPT, or None if it can."""
    differing = [f"{key} is {model[key]}" for key, value in REPRESENTABLE.items() if model[key] != value]
    if model["attention_output_bias"] is False:
        differing.append("attention_output_bias is False")
    if model["positions"] == "none":
        differing.append("it has no positions")
    if model["positions"] == "rotary":
        differing.append("positions are rotary")
    if model["activation"] == "swiglu":
        differing.append("activation is swiglu")
    # The first GPT knows no other width of the feed-forward network, and by `gelu` means an approximation.
    if model["norm_order"] == "post" and model["d_ff"] != 4 * model["d_model"]:
        differing.append("d_ff of a post-norm model is not 4 d_model")
    if model["norm_order"] == "post" and model["activation"] == "gelu":
        differing.append("activation of a post-norm model is gelu")
    return f"no GPT can represent it: {', '.join(differing)}" if differing else None


def build_gpt(model: dict[str, Any], vocab_size: int, num_positions: int, activation: str | None = None) -> Any:
    """A fresh GPT-2 for a pre-norm model, a fresh GPT for a post-norm one.

    Args:
        model: The fields of a tfm ModelConfig.
        vocab_size: Of the vocabulary, with tfm's ids: bos 2, eos 3.
        num_positions: How long a text may be.
        activation: As transformers names it; that of the tfm model if not given.
    """
    from transformers import (  # pyright: ignore[reportMissingImports]
        GPT2Config,
        GPT2LMHeadModel,
        OpenAIGPTConfig,
        OpenAIGPTLMHeadModel,
    )

    sizes = {
        "vocab_size": vocab_size,
        "n_positions": num_positions,
        "n_embd": model["d_model"],
        "n_layer": model["num_decoder_layers"],
        "n_head": model["num_heads"],
        "resid_pdrop": model["dropout"],
        "embd_pdrop": model["dropout"],
        "attn_pdrop": model["attention_dropout"],
        "layer_norm_epsilon": model["norm_eps"],
        "bos_token_id": 2,
        "eos_token_id": 3,
    }
    named = activation or model["activation"]
    if model["norm_order"] == "post":
        return OpenAIGPTLMHeadModel(OpenAIGPTConfig(**sizes, afn=named))
    return GPT2LMHeadModel(GPT2Config(**sizes, n_inner=model["d_ff"], activation_function=named))


def gpt_from_tfm(model: Any) -> Any:
    """A GPT, in evaluation mode, that computes what a tfm DecoderOnly computes on texts.

    Raises:
        ValueError: None can; see `why_not`.
    """
    from dataclasses import asdict

    config = asdict(model.config)
    if problem := why_not(config):
        raise ValueError(problem)
    gpt = build_gpt(config, model.output_layer.out_features, model.embedding.num_positions).eval()
    pre_norm = config["norm_order"] == "pre"
    tokens, positions = ("wte", "wpe") if pre_norm else ("tokens_embed", "positions_embed")
    ours = model.state_dict()
    theirs = {
        f"{tokens}.weight": ours["embedding.tokens.weight"],
        f"{positions}.weight": model.embedding.positions(model.embedding.num_positions),
    }
    for i in range(config["num_decoder_layers"]):
        theirs |= _layer(ours, f"decoder.layers.{i}.", f"h.{i}.")
    if pre_norm:
        theirs |= {f"ln_f.{kind}": ours[f"decoder.norm.{kind}"] for kind in ("weight", "bias")}
    gpt.transformer.load_state_dict(theirs)
    gpt.tie_weights()
    return gpt


def _layer(ours: dict[str, Tensor], our_prefix: str, their_prefix: str) -> dict[str, Tensor]:
    """The weights of one layer under GPT's names; its matrices are transposed, those of q, k and v stand side by side.

    A matrix (D, E) of ours is (E, D) there; q, k and v together are (D, 3 D).
    """

    def projections(kind: str) -> Tensor:
        return torch.cat([ours[f"{our_prefix}self_attn.{name}_proj.{kind}"] for name in "qkv"])

    theirs = {"attn.c_attn.weight": projections("weight").T, "attn.c_attn.bias": projections("bias")}
    names = {
        "attn.c_proj": "self_attn.out_proj",
        "mlp.c_fc": "feed_forward.linear_1",
        "mlp.c_proj": "feed_forward.linear_2",
    }
    for their_name, our_name in names.items():
        theirs[f"{their_name}.weight"] = ours[f"{our_prefix}{our_name}.weight"].T
        theirs[f"{their_name}.bias"] = ours[f"{our_prefix}{our_name}.bias"]
    for their_name, our_name in {"ln_1": "self_attn_residual", "ln_2": "feed_forward_residual"}.items():
        for kind in ("weight", "bias"):
            theirs[f"{their_name}.{kind}"] = ours[f"{our_prefix}{our_name}.norm.{kind}"]
    return {their_prefix + name: weight for name, weight in theirs.items()}
