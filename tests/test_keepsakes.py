"""Runs that an earlier tfm has written, kept in tests/keepsakes: they must load, compute the same, and go on.

They are not to be made anew. A tfm that cannot read them raises the first digit of its version.
"""

import json
import shutil
from pathlib import Path

import pytest
import torch
from helpers.command import Tfm, error_of

from tfm.data.batching import training_rows
from tfm.engine.evaluation.loss import evaluate_loss
from tfm.engine.runs.load import load_run
from tfm.seq2seq.model.encoder_only import EncoderOnly
from tfm.seq2seq.training.batch import Batch

KEPT = Path(__file__).parent / "keepsakes"
FIGURES = {"encoder_decoder": 6.223275, "decoder_only": 6.591842, "text": 6.347216}
"""The loss of `one two` and its reversed translation, in nats for each piece, when the runs were made."""
VECTOR = [-0.423210263, 0.18598935, 0.207120374, -0.385846019, -0.202737063, 0.706755519, -0.200887889, 0.116461553]
"""Of `one two`, then."""


@pytest.mark.parametrize("name", FIGURES)
def test_an_old_model_computes_what_it_did(name: str) -> None:
    loaded = load_run(KEPT / name, None)
    src, tgt = loaded.tokenizer.src.encode("one two"), loaded.tokenizer.tgt.encode("zwei eins")
    batch = Batch.of(training_rows([([] if name == "text" else src, tgt)]))
    loss = evaluate_loss(loaded.model, [batch]).loss
    assert loss == pytest.approx(FIGURES[name], rel=1e-4)


@torch.inference_mode()
def test_an_old_sentence_encoder_computes_what_it_did() -> None:
    loaded = load_run(KEPT / "encoder_only", None)
    assert isinstance(loaded.model, EncoderOnly)
    ids = torch.tensor([[*loaded.tokenizer.src.encode("one two"), 3]])
    assert loaded.model.embed(ids)[0].tolist() == pytest.approx(VECTOR, abs=1e-4)


@pytest.mark.parametrize("name", [*FIGURES, "encoder_only"])
def test_an_old_run_goes_on(forked: Tfm, tmp_path: Path, name: str) -> None:
    for entry in (name, "pairs.tsv", "text.txt"):
        copy = shutil.copytree if (KEPT / entry).is_dir() else shutil.copy
        copy(KEPT / entry, tmp_path / entry)
    done = forked("train", "--config", f"{name}/config.yaml", "--run", name, "--max-steps", 24, cwd=tmp_path)
    assert done.returncode == 0, error_of(done)
    assert "finished at step 24" in error_of(done)
    told = json.loads(forked("info", "--run", name, "--json", cwd=tmp_path).stdout)
    assert [one["step"] for one in told["checkpoints"]][-1] == 24
