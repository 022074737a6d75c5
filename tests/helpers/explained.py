"""Runs with random weights to explain, and what their pages hold."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from helpers.descriptions import describe

from tfm.data.tokenizer import Tokenizer
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.runs.weights import model_tensors, write_checkpoint
from tfm.seq2seq.model import ModelConfig, Transformer
from tfm.seq2seq.model.decoder_only import DecoderOnly
from tfm.seq2seq.model.encoder_only import EncoderOnly

SMALL: dict[str, Any] = {"d_model": 16, "d_ff": 24, "num_heads": 2, "max_seq_len": 40}


def layers_of(architecture: str) -> dict[str, Any]:
    """So many layers as an architecture may have: two, or three of an encoder."""
    return {
        "num_encoder_layers": 0 if architecture == "decoder_only" else 3,
        "num_decoder_layers": 0 if architecture == "encoder_only" else 2,
    }


def build(config: ModelConfig, vocabulary: int) -> Any:
    """A model with random weights, none of which is 0 or 1."""
    match config.architecture:
        case "encoder_decoder":
            model = Transformer(config, src_vocab_size=vocabulary, tgt_vocab_size=vocabulary, shared_vocab=True)
        case "decoder_only":
            model = DecoderOnly(config, vocab_size=vocabulary)
        case _:
            model = EncoderOnly(config, vocab_size=vocabulary)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def write_run(
    folder: Path, tokenizer: Tokenizer, config: ModelConfig, *, text_only: bool = False, steps: tuple[int, ...] = (10,)
) -> Path:
    """A run directory with a model of random weights at each step."""
    tokenizer.save(folder / "tokenizer")
    size = len(tokenizer.tgt)
    description = describe(
        config,
        tokenizer,
        src_vocab_size=0 if text_only else size,
        decoding={"beam_size": 3, "max_length_factor": 1.0, "max_length_offset": 4},
    )
    for step in steps:
        torch.manual_seed(step)
        tensors = {"model": model_tensors(build(config, size))}
        state = {"score": float(step), "max_steps": max(steps), "progress": {"step": step, "epoch": 1, "tokens": 1}}
        target = RunDirectory(folder).checkpoint_path(step)
        write_checkpoint(target, tensors=tensors, description=description, state=state)
    return folder


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def read_page(html: str) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, np.dtype[np.float32]]]]:
    """What a page holds: its data, and its arrays by name."""
    contents = dict(re.findall(r'<script id="(data|numbers)" type="[^"]*">(.*?)</script>', html, re.DOTALL))
    data = json.loads(contents["data"], parse_constant=_refuse)  # a browser knows no Infinity there
    flat = np.frombuffer(base64.b64decode(contents["numbers"]), dtype="<f4")
    return data, {
        name: flat[at["offset"] : at["offset"] + int(np.prod(at["shape"]))].reshape(at["shape"])
        for name, at in data["arrays"].items()
    }
