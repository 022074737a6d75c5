"""A run that translates, made in a second; a vocabulary with symbols for placeholders; a browser."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.chromium import CHROMIUM
from helpers.descriptions import describe
from helpers.learned import marked_pairs

from tfm.data.batching import training_rows
from tfm.data.config import TokenizerConfig
from tfm.data.tokenizer import Tokenizer
from tfm.data.vocabulary_training import build_tokenizer
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.runs.weights import build_model, model_tensors, write_checkpoint
from tfm.seq2seq.decoding.config import DecodingConfig
from tfm.seq2seq.model.config import ModelConfig
from tfm.seq2seq.model.encoder_decoder import Transformer
from tfm.seq2seq.training.batch import Batch


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]) -> Callable[..., Path]:
    """Makes a run whose model has nearly learned `pairs`: its translations vary, are not all right, and end."""

    def make(*, separate: bool, decoding: DecodingConfig, **choices: Any) -> Path:
        sources, targets = zip(*pairs, strict=True)
        tokenizer = build_tokenizer(
            zip(sources, targets, strict=True), TokenizerConfig(vocab_size=340, separate=separate)
        )
        config = ModelConfig(d_model=32, d_ff=64, num_heads=2, max_seq_len=40, **choices)
        description = describe(config, tokenizer, decoding=asdict(decoding))
        batch = Batch.of(training_rows((tokenizer.src.encode(src), tokenizer.tgt.encode(tgt)) for src, tgt in pairs))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            model = build_model(description)
            assert isinstance(model, Transformer)
            _learn(model, batch.src, batch.tgt_in, batch.tgt_out)
        run = tmp_path_factory.mktemp("runs") / "trained"
        tokenizer.save(run / "tokenizer")
        tensors = {"model": model_tensors(model)}
        write_checkpoint(
            RunDirectory(run).checkpoint_path(1),
            tensors=tensors,
            description=description,
            state={"score": 1.0, "progress": {"step": 1}},
        )
        return run

    return make


@pytest.fixture(scope="session")
def marked_tokenizer() -> Tokenizer:
    """A vocabulary with symbols for placeholders."""
    tokenizer = build_tokenizer(marked_pairs(), TokenizerConfig(vocab_size=320))
    assert tokenizer.has_placeholders
    return tokenizer


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, without a window."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def _learn(model: Transformer, src: torch.Tensor, tgt_in: torch.Tensor, tgt_out: torch.Tensor) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    for _ in range(80):
        loss = torch.nn.functional.cross_entropy(model(src, tgt_in).flatten(0, 1), tgt_out.flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
