"""Random models whose translations vary and end, and their exports."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.descriptions import describe
from helpers.pieces import EOS, FORBIDDEN, piece_names

from tfm.data.batching import training_rows
from tfm.data.config import TokenizerConfig
from tfm.data.vocabulary_training import build_tokenizer
from tfm.engine.export.specification import specify
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.runs.weights import build_model, model_tensors, write_checkpoint
from tfm.seq2seq.decoding.config import DecodingConfig
from tfm.seq2seq.model.config import ModelConfig
from tfm.seq2seq.model.encoder_decoder import Transformer
from tfm.seq2seq.training.batch import Batch


@pytest.fixture(scope="session")
def random_model() -> Callable[..., Transformer]:
    """Makes a small model with large random weights, biases and norms included, that likes to end its sentences."""

    def make(
        *, seed: int = 0, src_vocab_size: int = 60, tgt_vocab_size: int = 60, shared: bool = True, **choices: Any
    ) -> Transformer:
        sizes = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_encoder_layers": 2, "num_decoder_layers": 2}
        config = ModelConfig(**{**sizes, "max_seq_len": 40, **choices})
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(seed)
            model = Transformer(
                config, src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size, shared_vocab=shared
            )
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.25)
            last: Any = model.decoder.layers[-1]
            norm: Any = model.decoder.norm if config.norm_order == "pre" else last.feed_forward_residual.norm
            for parameter in norm.parameters():  # nothing is certain, or all translations would run in circles
                parameter.mul_(0.4)
            row = model.output_layer.weight[EOS]
            norm.bias.add_(row * 2.5 / row.square().sum())  # raises the logit of eos by about 2.5
        return model.eval()

    return make


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


def _learn(model: Transformer, src: torch.Tensor, tgt_in: torch.Tensor, tgt_out: torch.Tensor) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    for _ in range(80):
        loss = torch.nn.functional.cross_entropy(model(src, tgt_in).flatten(0, 1), tgt_out.flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@pytest.fixture
def export_model(tmp_path: Path) -> Callable[..., Any]:
    """Exports a model and loads what came out."""
    ctranslate2 = pytest.importorskip("ctranslate2")

    def export(
        model: Transformer,
        src: Sequence[str] = piece_names(60),
        tgt: Sequence[str] = piece_names(60),
        *,
        quantization: str = "float32",
        forbidden: Sequence[int] = FORBIDDEN,
    ) -> Any:
        spec: Any = specify(model, list(forbidden))
        spec.register_source_vocabulary(list(src))
        spec.register_target_vocabulary(list(tgt))
        spec.config.add_source_eos = True
        spec.validate()
        spec.optimize(quantization=quantization)
        spec.save(str(tmp_path))
        return ctranslate2.Translator(str(tmp_path), device="cpu", intra_threads=1)

    return export
