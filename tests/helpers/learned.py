"""Runs whose models have learned a little, in memory: their outputs vary, end, and are not all right."""

import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from tfm.data.batching import training_rows
from tfm.data.facts import CorpusFacts
from tfm.data.tokenizer import Tokenizer
from tfm.engine.runs.checkpoint import ModelDescription
from tfm.engine.runs.load import TrainedRun
from tfm.engine.runs.weights import build_model
from tfm.seq2seq.decoding.config import DecodingConfig
from tfm.seq2seq.model.config import ModelConfig
from tfm.seq2seq.training.batch import Batch

MARKUP = ["%s", "%(n)d", "{name}", "<b>", "</b>", "https://example.org/a?b", ":func:`open`", "&amp;"]
NOUNS = {"cat": "Katze", "dog": "Hund", "child": "Kind", "house": "Haus", "sister": "Schwester"}
VERBS = {"sees": "sieht", "likes": "mag", "finds": "findet"}


def marked_pairs() -> list[tuple[str, str]]:
    """Sentences with placeholders, which the translations carry through."""
    rng, found = random.Random(1), list[tuple[str, str]]()
    for _ in range(240):
        a, b, verb = rng.choice(list(NOUNS)), rng.choice(list(NOUNS)), rng.choice(list(VERBS))
        marks = rng.sample(MARKUP, k=rng.randint(0, 3))
        src, tgt = [a, verb, b], [NOUNS[a], VERBS[verb], NOUNS[b]]
        for mark in marks:
            place = rng.randint(0, len(src))
            src.insert(place, mark)
            tgt.insert(min(place, len(tgt)), mark)
        found.append((" ".join(src) + ".", " ".join(tgt) + "."))
    return found


def made(
    tokenizer: Tokenizer,
    pairs: list[tuple[str, str]],
    *,
    steps: int,
    text_only: bool = False,
    facts: Any = None,
    **choices: Any,
) -> TrainedRun:
    """A run with a model that has learned for so many updates."""
    architecture = choices.get("architecture", "encoder_decoder")
    layers = {
        "num_encoder_layers": int(architecture != "decoder_only"),
        "num_decoder_layers": int(architecture != "encoder_only"),
    }
    description = ModelDescription(
        format=1,
        tfm_version="0.1.0",
        model=asdict(
            ModelConfig(**{"d_model": 32, "d_ff": 48, "num_heads": 2, "max_seq_len": 40, **layers, **choices})
        ),
        src_vocab_size=0 if text_only else len(tokenizer.src),
        tgt_vocab_size=len(tokenizer.tgt),
        shared_vocab=tokenizer.joint,
        tokenizer_sha256=tokenizer.sha256,
        weights="model",
        decoding=asdict(DecodingConfig(beam_size=4, length_penalty=1.0, max_length_factor=1.5, max_length_offset=6)),
        corpus=asdict(facts or CorpusFacts()),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model: Any = build_model(description)
        if steps:
            masked = [tokenizer.mask_pair(*pair) for pair in pairs]
            rows = [([] if text_only else tokenizer.src.encode(src), tokenizer.tgt.encode(tgt)) for src, tgt in masked]
            _learn(model, Batch.of(training_rows(rows)), steps)
    return TrainedRun(Path(), model.eval(), description, tokenizer)


def _learn(model: Any, batch: Batch, steps: int) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    for _ in range(steps):
        logits = model(batch.src, batch.tgt_in).flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(logits, batch.tgt_out.flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
