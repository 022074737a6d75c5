"""What training reads, subword dropout included."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tfm.configs import render_config
from tfm.data.config import TokenizerConfig
from tfm.data.corpus import Corpus
from tfm.data.store import Limits, build_store
from tfm.data.tokenizer import build_tokenizer
from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.training.config import TrainingConfig
from tfm.seq2seq.training.interrupts import Interrupts
from tfm.seq2seq.training.prepare import StoreBatches, subword_dropout
from tfm.seq2seq.training.run import train

from .conftest import Configure, Recorder


def test_subword_dropout_makes_no_sentence_longer_than_the_model_reads(
    pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    sides = [src for src, _ in pairs], [tgt for _, tgt in pairs]
    tokenizer = build_tokenizer(*sides, TokenizerConfig(vocab_size=320, type="bpe"))
    longest = max(len(tokenizer.src.encode(text)) for pair in pairs for text in pair)
    model, training = ModelConfig(max_seq_len=longest + 1), TrainingConfig(subword_dropout=0.9)
    store = build_store(tmp_path, Corpus("pairs", "1", lambda: iter(pairs)), tokenizer, Limits(longest, 9.0))
    dropout = subword_dropout(tokenizer, training, model)
    batches = list(StoreBatches(store, training, torch.device("cpu"), dropout).all())
    widths = [tensor.size(1) for batch in batches for tensor in (batch.src, batch.tgt_in, batch.tgt_out)]
    assert max(widths) == longest + 1
    assert sum(batch.num_tokens for batch in batches) > 1.2 * (store.report.tgt_tokens + len(store))


@pytest.mark.parametrize(("kind", "warned"), [("char", True), ("bpe", False)])
def test_subword_dropout_without_effect_is_said(configure: Configure, tmp_path: Path, kind: str, warned: bool) -> None:
    settings = configure(max_steps=1)
    settings = replace(settings, tokenizer=replace(settings.tokenizer, type=kind))
    reporter, text = Recorder(), render_config(settings)
    train(settings, run=tmp_path / "run", config_text=text, reporter=reporter, interrupts=Interrupts())
    assert any("subword_dropout has no effect" in warning for warning in reporter.warned) == warned
