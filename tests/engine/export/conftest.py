"""Random models whose translations vary and end, and their exports."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.pieces import EOS, FORBIDDEN, piece_names

from tfm.engine.export.specification import specify
from tfm.seq2seq.model.config import ModelConfig
from tfm.seq2seq.model.encoder_decoder import Transformer


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
