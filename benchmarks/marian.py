"""MarianMTModel of transformers with the sizes of a tfm model, and a tfm model's weights in it."""

from typing import Any

import torch

# Marian's layers are post-norm, its attention and feed-forward have biases, its positions are a fixed table.
REPRESENTABLE = {
    "norm_order": "post",
    "attention_bias": True,
    "output_bias": False,
    "tie_embeddings": True,
    "positions": "sinusoidal",
    "norm_eps": 1e-5,
    "feed_forward_output_bias": True,
    "d_k": None,
    "d_v": None,
}
"""What a tfm ModelConfig must say for MarianMTModel to compute the same function."""


def why_not(model: dict[str, Any], shared_vocab: bool) -> str | None:
    """Why a tfm model cannot be a MarianMTModel, or None if it can."""
    # A model.json of an earlier version lacks the keys that came later; what it lacks is Marian's.
    differing = [f"{key} is {model[key]}" for key, value in REPRESENTABLE.items() if model.get(key, value) != value]
    if model.get("attention_output_bias") is False:
        differing.append("attention_output_bias is False")
    if not shared_vocab:
        differing.append("the vocabularies are separate")
    if model["activation"] == "swiglu":
        differing.append("activation is swiglu")
    return f"MarianMTModel cannot represent it: {', '.join(differing)}" if differing else None


def build_marian(model: dict[str, Any], vocab_size: int, attention: str | None = None) -> Any:
    """A fresh MarianMTModel.

    Args:
        model: The fields of a tfm ModelConfig.
        vocab_size: Of the joint vocabulary, with tfm's ids: pad 0, bos 2, eos 3.
        attention: `eager`, `sdpa` or transformers' own choice.
    """
    from transformers import MarianConfig, MarianMTModel  # pyright: ignore[reportMissingImports]

    config = MarianConfig(
        vocab_size=vocab_size,
        d_model=model["d_model"],
        encoder_layers=model["num_encoder_layers"],
        decoder_layers=model["num_decoder_layers"],
        encoder_ffn_dim=model["d_ff"],
        decoder_ffn_dim=model["d_ff"],
        encoder_attention_heads=model["num_heads"],
        decoder_attention_heads=model["num_heads"],
        max_position_embeddings=model["max_seq_len"],
        activation_function=model["activation"],
        dropout=model["dropout"],
        attention_dropout=model["attention_dropout"],
        activation_dropout=model["feed_forward_dropout"],
        scale_embedding=model["scale_embeddings"],
        init_std=model["d_model"] ** -0.5,
        pad_token_id=0,
        bos_token_id=2,
        decoder_start_token_id=2,
        eos_token_id=3,
        forced_eos_token_id=None,
    )
    if attention is not None:
        config._attn_implementation = attention
    return MarianMTModel(config)


def marian_from_tfm(transformer: Any, attention: str | None = None) -> Any:
    """A MarianMTModel that computes what a tfm Transformer computes.

    Raises:
        ValueError: It cannot; see `why_not`.
    """
    from dataclasses import asdict

    config = asdict(transformer.config)
    shared = transformer.src_embedding.tokens is transformer.tgt_embedding.tokens
    if problem := why_not(config, shared):
        raise ValueError(problem)
    marian = build_marian(config, transformer.output_layer.out_features, attention).eval()
    ours = transformer.state_dict()
    theirs = {"shared.weight": ours["src_embedding.tokens.weight"]}
    for stack in ("encoder", "decoder"):
        table = transformer.src_embedding.positions.table
        theirs[f"{stack}.embed_tokens.weight"] = theirs["shared.weight"]
        theirs[f"{stack}.embed_positions.weight"] = table
        for i in range(config[f"num_{stack}_layers"]):
            theirs |= _layer(ours, f"{stack}.layers.{i}.")
    marian.model.load_state_dict(theirs)
    marian.tie_weights()
    return marian


def _layer(ours: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    """The weights of one layer under Marian's names."""
    names = {
        "self_attn.": "self_attn.",
        "cross_attn.": "encoder_attn.",
        "feed_forward.linear_1.": "fc1.",
        "feed_forward.linear_2.": "fc2.",
        "self_attn_residual.norm.": "self_attn_layer_norm.",
        "cross_attn_residual.norm.": "encoder_attn_layer_norm.",
        "feed_forward_residual.norm.": "final_layer_norm.",
    }
    return {
        prefix + their_name + name.removeprefix(prefix + our_name): weight
        for name, weight in ours.items()
        for our_name, their_name in names.items()
        if name.startswith(prefix + our_name)
    }
