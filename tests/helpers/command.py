"""The installed command, run as a user runs it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

TFM = Path(sys.executable).with_name("tfm")
"""The console script of this environment."""

TINY_FLAGS = [
    *("--set", "model.d_model=16"),
    *("--set", "model.d_ff=32"),
    *("--set", "model.num_heads=2"),
    *("--set", "model.num_encoder_layers=1"),
    *("--set", "model.num_decoder_layers=1"),
    *("--set", "model.max_seq_len=32"),
    *("--set", "tokenizer.vocab_size=320"),
    *("--set", "training.max_tokens_per_batch=256"),
    *("--set", "training.warmup_steps=100"),  # so that a run of few updates may become longer: all are warm-up
    *("--set", "training.validate_every=10"),
    *("--set", "training.checkpoint_every=5"),
    *("--set", "training.log_every=5"),
    *("--set", "training.validation_sentences=3"),
    *("--set", "training.early_stopping=0"),
]
"""Makes any preset small enough for a test."""

Completed = subprocess.CompletedProcess[bytes]
Tfm = Callable[..., Completed]


def run_command(
    *arguments: object,
    cwd: Path,
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
    timeout: float = 240,
    preexec_fn: Callable[[], None] | None = None,
) -> Completed:
    """Runs `tfm` with arguments and bytes on stdin."""
    command = [str(TFM), *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **(env or {})}
    return subprocess.run(
        command,
        cwd=cwd,
        input=stdin,
        env=environment,
        capture_output=True,
        timeout=timeout,
        check=False,
        preexec_fn=preexec_fn,
    )


def write_lines(path: Path, lines: Sequence[str]) -> Path:
    """A text file of these lines."""
    path.write_bytes("".join(line + "\n" for line in lines).encode())
    return path


def records(path: Path) -> list[dict[str, Any]]:
    """The lines of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def error_of(done: Completed) -> str:
    """What the command said on stderr; no traceback may be in it."""
    text = done.stderr.decode()
    assert "Traceback" not in text, text
    return text
