"""tfm's decoder-only model is the GPT of transformers where that can be it, and the script says where it cannot."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tfm.seq2seq.model.config import ModelConfig

ROOT = Path(__file__).parent.parent.parent
BENCH_PYTHON = ROOT / ".venv-bench" / "bin" / "python"
SMALL: dict[str, Any] = {
    "architecture": "decoder_only",
    "d_model": 16,
    "d_ff": 64,
    "num_heads": 4,
    "num_encoder_layers": 0,
    "num_decoder_layers": 3,
    "max_seq_len": 12,
    "scale_embeddings": False,
}


@pytest.fixture
def why_not(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], str | None]:
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    import gpt  # pyright: ignore[reportMissingImports]

    return gpt.why_not


@pytest.mark.slow
@pytest.mark.skipif(not BENCH_PYTHON.exists(), reason="needs the peers: make .venv-bench/installed")
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@pytest.mark.parametrize(
    ("norm_order", "activation", "d_ff"),
    [("pre", "gelu", 64), ("pre", "relu", 24), ("post", "relu", 64)],
    ids=["GPT-2", "GPT-2, relu", "the first GPT"],
)
def test_it_computes_what_a_gpt_with_its_weights_computes(
    positions: str, norm_order: str, activation: str, d_ff: int
) -> None:
    """Logits of rows of unequal lengths, and the gradient of the embeddings, which sums up all that is above."""
    model = {**SMALL, "positions": positions, "norm_order": norm_order, "activation": activation, "d_ff": d_ff}
    script = ROOT / "tests" / "helpers" / "compare_gpt.py"
    command = [str(BENCH_PYTHON), str(script), str(ROOT / "benchmarks"), json.dumps(model)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["largest"] > 1
    assert found["logits"] < 1e-5 * found["largest"]
    assert found["gradient"] < 1e-4


@pytest.mark.parametrize(
    "settings",
    [
        {"norm_order": "pre", "activation": "gelu", "d_ff": 24},
        {"norm_order": "pre", "positions": "learned", "attention_output_bias": True},
        {"norm_order": "post", "activation": "relu"},
    ],
)
def test_a_gpt_can_be_it(why_not: Callable[[dict[str, Any]], str | None], settings: dict[str, Any]) -> None:
    assert why_not(asdict(ModelConfig(**{**SMALL, **settings}))) is None


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"scale_embeddings": True}, "scale_embeddings is True"),
        ({"attention_bias": False}, "attention_bias is False"),
        ({"attention_output_bias": False}, "attention_output_bias is False"),
        ({"positions": "none"}, "it has no positions"),
        ({"positions": "rotary"}, "positions are rotary"),
        ({"activation": "swiglu"}, "activation is swiglu"),
        ({"norm_order": "post", "d_ff": 24}, "d_ff of a post-norm model is not 4 d_model"),
        ({"norm_order": "post", "activation": "gelu"}, "activation of a post-norm model is gelu"),
    ],
)
def test_no_gpt_can_be_it(
    why_not: Callable[[dict[str, Any]], str | None], settings: dict[str, Any], reason: str
) -> None:
    assert reason in str(why_not(asdict(ModelConfig(**{**SMALL, "norm_order": "pre", **settings}))))
