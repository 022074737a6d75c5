"""What `tfm info` says of a run."""

import json
import shutil
from pathlib import Path

import pytest

from tfm.data.tokenizer import Tokenizer
from tfm.engine.describe import describe_run
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.runs.weights import count_parameters, load_model
from tfm.system.errors import ModelError


def test_a_run_is_described_as_it_is(run_directory: Path, tokenizer: Tokenizer) -> None:
    model, description = load_model(RunDirectory(run_directory).checkpoint_path(30))
    found = describe_run(RunDirectory(run_directory))
    assert found["run"] == str(run_directory)
    assert found["parameters"] == count_parameters(model)
    assert found["model"] == description.model
    assert found["vocabulary"] == {
        "type": "unigram",
        "src_vocab_size": len(tokenizer.src),
        "tgt_vocab_size": len(tokenizer.tgt),
        "shared_vocab": True,
        "sha256": tokenizer.sha256[:12],
    }
    assert found["weights"] == "as trained"
    assert found["decoding"] == description.decoding
    assert found["training"] == {"step": 30, "of": 30, "epoch": 1, "target_tokens": 3000, "stopped_early": False}
    assert found["checkpoints"] == [
        {"step": 10, "score": 1.5, "metric": None, "best": False, "last": False, "damage": ""},
        {"step": 20, "score": 3.5, "metric": None, "best": True, "last": False, "damage": ""},
        {"step": 30, "score": 2.5, "metric": None, "best": False, "last": True, "damage": ""},
    ]
    json.dumps(found)


def test_a_damaged_checkpoint_is_named_and_the_others_described(run_directory: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(run_directory, run)
    (RunDirectory(run).checkpoint_path(30) / "state.json").write_bytes(b"{}")
    found = describe_run(RunDirectory(run))
    assert [(one["step"], one["best"], one["last"]) for one in found["checkpoints"]] == [
        (10, False, False),
        (20, True, True),
        (30, False, False),
    ]
    assert "state.json is damaged" in found["checkpoints"][2]["damage"]
    assert found["training"]["step"] == 20


def test_a_run_without_a_sound_checkpoint_is_refused_with_the_reason(run_directory: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no valid checkpoint"):
        describe_run(RunDirectory(tmp_path))
    run = tmp_path / "run"
    shutil.copytree(run_directory, run)
    for step in (10, 20, 30):
        (RunDirectory(run).checkpoint_path(step) / "manifest.json").unlink()
    with pytest.raises(ModelError, match=r"step-000010.manifest\.json.*step-000030.manifest\.json"):
        describe_run(RunDirectory(run))
