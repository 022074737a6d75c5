"""Checkpoints: what was written is what is read; anything else is refused; a failed write leaves what was there."""

import ast
import errno
import importlib
import json
import math
import os
import random
import re
import shutil
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from helpers.descriptions import describe
from helpers.tiny_run import Recorder
from torch import Tensor

from tfm.engine.runs import checkpoint
from tfm.engine.runs.checkpoint import ModelDescription, checkpoint_step, damage, read_description, read_state
from tfm.engine.runs.directory import RunDirectory, best_checkpoint
from tfm.engine.runs.weights import (
    load_model,
    load_moments,
    model_tensors,
    read_tensors,
    read_weights,
    restore_model,
    write_checkpoint,
)
from tfm.seq2seq.decoding.config import DecodingConfig
from tfm.seq2seq.model.config import ModelConfig, Positions
from tfm.seq2seq.model.encoder_decoder import Transformer
from tfm.seq2seq.training.config import TrainingConfig
from tfm.seq2seq.training.optimizer import Optimizer
from tfm.seq2seq.training.progress import Progress
from tfm.system import files
from tfm.system.errors import EnvironmentFault, ModelError
from tfm.system.reporter import say_nothing

CONFIG = ModelConfig(d_model=4, d_ff=4, num_heads=1, num_encoder_layers=1, num_decoder_layers=1, max_seq_len=8)
FILES = ["ema.safetensors", "manifest.json", "model.json", "model.safetensors", "optimizer.safetensors", "state.json"]


def tiny_model(seed: int = 0) -> Transformer:
    torch.manual_seed(seed)
    return Transformer(CONFIG, src_vocab_size=7, tgt_vocab_size=7, shared_vocab=True).eval()


def description(**changes: Any) -> ModelDescription:
    return describe(CONFIG, **changes)


def save(
    run: Path, step: int, *, score: float | None = None, loss: float | None = None, **tensors: dict[str, Tensor]
) -> Path:
    groups = tensors or {"model": model_tensors(tiny_model(step))}
    target = RunDirectory(run).checkpoint_path(step)
    state = {"score": score, "progress": {"step": step}} | ({} if loss is None else {"loss": loss})
    write_checkpoint(target, tensors=groups, description=description(), state=state)
    return target


def save_whole(run: Path, step: int = 1) -> Path:
    weights = model_tensors(tiny_model(step))
    moments = {f"{name}.m": torch.randn_like(tensor) for name, tensor in weights.items()}
    return save(run, step, score=1.0, model=weights, ema=weights, optimizer=moments)


def read_all(directory: Path) -> None:
    read_description(directory)
    read_state(directory)
    for name in ("model", "ema", "optimizer"):
        read_tensors(directory, name)


def rewrite(directory: Path, name: str, content: bytes) -> None:
    """Changes a file and its hash: what a newer tfm, or somebody else, may have written."""
    (directory / name).write_bytes(content)
    manifest = json.loads((directory / "manifest.json").read_bytes())
    manifest["files"][name] = {"sha256": files.sha256_bytes(content), "size": len(content)}
    (directory / "manifest.json").write_bytes(files.json_bytes(manifest))


def edit_json(directory: Path, name: str, **changes: Any) -> None:
    content = json.loads((directory / name).read_bytes())
    rewrite(directory, name, files.json_bytes({**content, **changes}))


# Round trip


def test_tensors_are_read_back_bit_for_bit(tmp_path: Path) -> None:
    tensors = {
        "float32": torch.randn(3, 5),
        "bfloat16": torch.randn(4, 2).bfloat16(),
        "transposed": torch.randn(4, 6).T,
        "scalar": torch.tensor(1 / 3, dtype=torch.float64),
        "integer": torch.tensor(2**40 + 1),
        "empty": torch.zeros(0, 3),
        "special": torch.tensor([float("inf"), float("-inf"), float("nan"), -0.0, 1e-45]),
    }
    found = read_tensors(save(tmp_path, 1, model={}, optimizer=tensors), "optimizer")
    assert set(found) == set(tensors)
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert found[name].shape == tensor.shape
        assert found[name].contiguous().view(-1).view(torch.uint8).equal(tensor.contiguous().view(-1).view(torch.uint8))


def test_description_and_state_are_read_back(tmp_path: Path) -> None:
    state = {"score": 1 / 3, "progress": {"step": 7}, "name": "é \u2028", "nested": {"list": [1, None, True]}}
    directory = tmp_path / "checkpoints" / "step-000007"
    write_checkpoint(directory, tensors={"model": {}}, description=description(), state=state)
    assert directory == RunDirectory(tmp_path).checkpoint_path(7)
    assert read_description(directory) == description()
    assert read_state(directory) == state
    assert description().decoding_config() == DecodingConfig()


def test_a_model_is_loaded_with_its_weights_and_in_evaluation_mode(tmp_path: Path) -> None:
    model = tiny_model(3)
    loaded, found = load_model(save(tmp_path, 1, model=model_tensors(model)))
    assert found == description()
    assert not loaded.training
    for (name, ours), (other, theirs) in zip(loaded.named_parameters(), model.named_parameters(), strict=True):
        assert name == other
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("positions", get_args(Positions))
def test_a_loaded_model_computes_what_the_saved_one_did(tmp_path: Path, positions: Positions) -> None:
    """What a model draws when it is built, and does not save, would differ: loading draws no random weights."""
    torch.manual_seed(1)
    config = replace(CONFIG, positions=positions)
    model = Transformer(config, src_vocab_size=7, tgt_vocab_size=7, shared_vocab=True).eval()
    directory = RunDirectory(tmp_path).checkpoint_path(1)
    told = description(model=asdict(config))
    write_checkpoint(directory, tensors={"model": model_tensors(model)}, description=told, state={})
    ids = torch.tensor([[4, 5, 6, 3]])
    torch.testing.assert_close(load_model(directory)[0](ids, ids), model(ids, ids), atol=0, rtol=0)


def test_the_weights_that_the_description_names_are_loaded(tmp_path: Path) -> None:
    model, ema = tiny_model(1), tiny_model(2)
    directory = RunDirectory(tmp_path).checkpoint_path(1)
    write_checkpoint(
        directory,
        tensors={"model": model_tensors(model), "ema": model_tensors(ema)},
        description=description(weights="ema"),
        state={},
    )
    assert torch.equal(load_model(directory)[0].output_layer.weight, ema.output_layer.weight)


def test_tied_weights_are_stored_once_and_stay_tied(tmp_path: Path) -> None:
    directory = save(tmp_path, 1)
    stored = read_tensors(directory, "model")
    assert sum(tensor.shape == (7, 4) for tensor in stored.values()) == 1
    loaded, _ = load_model(directory)
    assert isinstance(loaded, Transformer)
    assert loaded.output_layer.weight is loaded.tgt_embedding.tokens.weight is loaded.src_embedding.tokens.weight


def test_a_checkpoint_is_made_of_exactly_its_files(tmp_path: Path) -> None:
    directory = save_whole(tmp_path)
    assert sorted(path.name for path in directory.iterdir()) == FILES
    assert damage(directory) == ""
    manifest = json.loads((directory / "manifest.json").read_bytes())
    for name, entry in manifest["files"].items():
        content = (directory / name).read_bytes()
        assert entry == {"sha256": files.sha256_bytes(content), "size": len(content)}


# Damage


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound checkpoint; read only."""
    return save_whole(tmp_path_factory.mktemp("sound"))


def copy_of(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "run" / "checkpoints" / sound.name))


UNUSED = ["ema.safetensors", "optimizer.safetensors"]
"""What using the model of `save_whole` does not take."""


def entries_of_use(directory: Path) -> Any:
    """What a manifest says of the files that using the model takes; None where it cannot be read."""
    try:
        listed = json.loads((directory / "manifest.json").read_bytes())["files"]
        return {name: entry for name, entry in listed.items() if name not in UNUSED}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def assert_refused(directory: Path, name: str = "manifest.json", sound: Path | None = None) -> None:
    """Nothing goes on from a checkpoint with a damaged file, and nothing uses it, if it takes that file.

    Of a damaged manifest of `sound`, it takes the entries of such files.
    """
    assert damage(directory)
    with pytest.raises(ModelError):
        read_all(directory)
    run = RunDirectory(directory.parent.parent)
    with pytest.raises(ModelError, match="no valid checkpoint"):
        run.newest_saved(say_nothing)
    if name in UNUSED or (sound is not None and entries_of_use(directory) == entries_of_use(sound)):
        assert run.find_model().checkpoint == directory
        return
    with pytest.raises(ModelError, match="no valid checkpoint"):
        run.find_model()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_one_changed_byte_anywhere_is_noticed(sound: Path, tmp_path: Path, name: str, flip: int) -> None:
    directory = copy_of(sound, tmp_path)
    content = (directory / name).read_bytes()
    for place in {*range(0, len(content), max(1, len(content) // 8)), len(content) - 1}:
        changed = bytes([content[place] ^ flip])
        (directory / name).write_bytes(content[:place] + changed + content[place + 1 :])
        assert_refused(directory, name, sound if name == "manifest.json" else None)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_truncated_file_is_noticed(sound: Path, tmp_path: Path, name: str, share: float) -> None:
    directory = copy_of(sound, tmp_path)
    content = (directory / name).read_bytes()
    (directory / name).write_bytes(content[: int(len(content) * share)])
    assert_refused(directory, name)


def test_two_thousand_flipped_bytes_and_five_hundred_truncations_are_noticed(sound: Path, tmp_path: Path) -> None:
    directory, draw = copy_of(sound, tmp_path), random.Random(1)
    contents = {name: (directory / name).read_bytes() for name in FILES}
    undetected: list[str] = []
    for number in range(2_500):
        name = draw.choice(FILES)
        content = contents[name]
        place = draw.randrange(len(content))
        flipped = bytes([content[place] ^ draw.randrange(1, 256)])
        changed = content[:place] + flipped + content[place + 1 :] if number < 2_000 else content[:place]
        (directory / name).write_bytes(changed)
        if not damage(directory):
            undetected.append(f"{name}: {number}, {place}")
        (directory / name).write_bytes(content)
    assert undetected == [] and damage(directory) == ""


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_noticed_and_named(sound: Path, tmp_path: Path, name: str) -> None:
    directory = copy_of(sound, tmp_path)
    (directory / name).unlink()
    assert_refused(directory, name)
    assert str(directory / name) in damage(directory)


@pytest.mark.parametrize("name", FILES)
def test_a_symbolic_link_is_refused_even_to_the_same_content(sound: Path, tmp_path: Path, name: str) -> None:
    directory = copy_of(sound, tmp_path)
    (directory / name).unlink()
    (directory / name).symlink_to(sound / name)
    assert_refused(directory, name)
    assert "symbolic link" in damage(directory)


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"format": 1}',
        b'{"format": 1, "files": 5}',
        b'{"format": 1, "files": ["model.json"]}',
        b'{"format": 1, "files": {"model.json": "abc"}}',
        b'{"format": 1, "files": {"model.json": {}}}',
        b'{"format": 1, "files": {"model.json": null}}',
        b"[" * 100_000,
        b" " * 2_000_000,
    ],
    ids=lambda manifest: repr(manifest[:45]),
)
def test_any_other_manifest_is_refused(sound: Path, tmp_path: Path, manifest: bytes) -> None:
    directory = copy_of(sound, tmp_path)
    (directory / "manifest.json").write_bytes(manifest)
    assert_refused(directory)


def test_a_manifest_of_a_newer_format_asks_for_an_upgrade(sound: Path, tmp_path: Path) -> None:
    directory = copy_of(sound, tmp_path)
    (directory / "manifest.json").write_bytes(b'{"format": 2, "files": "elsewhere"}')
    with pytest.raises(ModelError, match="upgrade"):
        read_description(directory)


@pytest.mark.parametrize("changes", [{"format": 2}, {"format": None}, {"mixture_of_experts": 8}])
def test_a_description_of_a_newer_tfm_asks_for_an_upgrade(tmp_path: Path, changes: dict[str, Any]) -> None:
    directory = save(tmp_path, 1)
    edit_json(directory, "model.json", tfm_version="9.0", **changes)
    with pytest.raises(ModelError, match=r"made by tfm 9\.0.*upgrade"):
        load_model(directory)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": {"d_model": 0}},
        {"model": {"d_model": 0, "attention_dropout": -1.0}},
        {"model": {"d_model": "wide"}},
        {"model": {"width": 4}},
        {"model": None},
        {"decoding": {"beam_size": 0}},
        {"decoding": {"beams": 4}},
        {"tgt_vocab_size": 8},  # and 7 for the source, shared
    ],
)
def test_a_description_of_no_model_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    directory = save(tmp_path, 1)
    edit_json(directory, "model.json", **changes)
    with pytest.raises(ModelError, match=r"model\.json (is damaged|has an unknown key)") as caught:
        load_model(directory)
    assert "\n" not in str(caught.value)


def test_a_description_without_a_field_is_refused(tmp_path: Path) -> None:
    directory = save(tmp_path, 1)
    content = json.loads((directory / "model.json").read_bytes())
    del content["shared_vocab"]
    rewrite(directory, "model.json", files.json_bytes(content))
    with pytest.raises(ModelError, match="shared_vocab"):
        load_model(directory)


def test_a_file_that_hashes_right_but_holds_no_tensors_is_refused(tmp_path: Path) -> None:
    directory = save(tmp_path, 1)
    rewrite(directory, "model.safetensors", b"not a safetensors file")
    with pytest.raises(ModelError, match="is damaged"):
        load_model(directory)


def test_weights_of_another_shape_or_name_are_refused(tmp_path: Path) -> None:
    weights = model_tensors(tiny_model())
    name = next(iter(weights))
    others: list[tuple[dict[str, Tensor], str]] = [
        ({**weights, name: torch.zeros(8, 4)}, r"has shape \(8, 4\), model.json describes \(7, 4\)"),
        ({**weights, name: torch.zeros(4, 7)}, "has shape"),
        ({**weights, "extra": torch.zeros(1)}, "does not hold the weights"),
        ({key: weights[key] for key in weights if key != name}, "does not hold the weights"),
        ({}, "does not hold the weights"),
    ]
    for step, (tensors, reason) in enumerate(others):
        with pytest.raises(ModelError, match=reason):
            load_model(save(tmp_path, step, model=tensors))


def test_using_a_model_reads_its_weights_once_and_no_others(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def read_plain(path: Path, max_bytes: int) -> bytes:
        read.append(path.name)
        return path.read_bytes()

    monkeypatch.setattr(checkpoint, "read_plain", read_plain)
    stored = RunDirectory(copy_of(sound, tmp_path).parent.parent).find_model()
    restore_model(stored)
    assert read.count("model.safetensors") == 1
    assert set(read) == {"manifest.json", "model.json", "state.json", "model.safetensors"}


def test_weights_that_the_manifest_does_not_list_are_refused(tmp_path: Path) -> None:
    directory = save(tmp_path, 1)
    edit_json(directory, "model.json", weights="ema")
    with pytest.raises(ModelError, match="does not list ema"):
        load_model(directory)


def test_weights_with_other_numbers_are_refused(tmp_path: Path) -> None:
    weights = model_tensors(tiny_model())
    name = next(iter(weights))
    for step, (changed, reason) in enumerate(
        (
            (weights[name].long(), "numbers of type int64, but weights are float32"),
            (weights[name] > 0, "numbers of type bool"),
            (weights[name].double(), "numbers of type float64"),
            (weights[name] * float("nan"), "holds numbers that are not finite"),
            (weights[name] / 0, "holds numbers that are not finite"),
        )
    ):
        with pytest.raises(ModelError, match=reason):
            load_model(save(tmp_path, step, model={**weights, name: changed}))


def test_other_weights_than_those_to_use_have_the_same_rules(tmp_path: Path) -> None:
    """A run that goes on reads all of its tensors."""
    weights = model_tensors(tiny_model())
    name = next(iter(weights))
    for step, changed in enumerate((weights[name].long(), weights[name].T, weights[name] * float("inf"))):
        found = save(
            tmp_path, step, model=weights, ema={**weights, name: changed}, optimizer={f"exp_avg/{name}": changed}
        )
        with pytest.raises(ModelError, match=f"{re.escape(name)} (has|holds) (shape|numbers)"):
            read_weights(tiny_model(), found, "ema")
        model = tiny_model()
        with pytest.raises(ModelError, match=r"optimizer\.safetensors is damaged: .* needs"):
            load_moments(Optimizer(model, TrainingConfig()), model, found)


def test_no_more_of_a_file_is_read_than_the_manifest_lists(tmp_path: Path) -> None:
    found = save(tmp_path, 1)
    with open(found / "model.safetensors", "ab") as file:
        file.truncate(10_000_000_000)
    tracemalloc.start()
    with pytest.raises(ModelError, match="larger than such a file can be"):
        checkpoint.read_file(found, "model.safetensors")
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


WHOLE = {
    "progress": {"step": 5},
    "max_steps": 9,
    "data": "0",
    "environment": {"threads": 1},
    "score": 1.0,
    "loss": None,
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"environment": []}, "environment cannot be"),
        ({"environment": {"a": []}}, "environment.a cannot be"),
        ({"environment": {"a": "\x1b[2J"}}, "environment.a cannot be"),
        ({"environment": {"a": "x" * 2_000_000}}, "larger than|environment.a cannot be"),
        ({"score": "1"}, "score cannot be"),
        ({"score": 10**400}, "score cannot be"),
        ({"max_steps": 1.5}, "max_steps cannot be"),
        ({"data": 5}, "data cannot be"),
    ],
)
def test_a_state_of_other_types_is_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    weights = model_tensors(tiny_model())
    target = RunDirectory(tmp_path).checkpoint_path(5)
    write = partial(write_checkpoint, target, tensors={"model": weights}, description=description())
    write(state=WHOLE)
    assert read_state(target) == WHOLE
    with pytest.raises((ModelError, EnvironmentFault), match=words):
        write(state=WHOLE | changes)
        read_state(target)


def test_a_state_that_lacks_something_is_no_place_to_go_on_from(tmp_path: Path, recorder: Recorder) -> None:
    save(tmp_path, 5)
    with pytest.raises(ModelError, match=r"state\.json is damaged: it has no 'max_steps'"):
        RunDirectory(tmp_path).newest_saved(recorder.warn)


@pytest.mark.parametrize(
    "changes",
    [
        {"num_encoder_layers": 1000},
        {"num_decoder_layers": 999},
        {"d_model": 100_000},
        {"d_ff": 1_000_000},
        {"max_seq_len": 100_000, "positions": "learned"},
    ],
    ids=str,
)
def test_a_model_larger_than_its_file_is_refused_before_memory_is_taken(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    directory = save(tmp_path, 1)
    model = {**asdict(CONFIG), **changes}
    edit_json(directory, "model.json", model=model)
    tracemalloc.start()
    began = time.monotonic()
    with pytest.raises(ModelError, match=r"has shape|does not hold the weights"):
        load_model(directory)
    assert time.monotonic() - began < 3
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("name", FILES)
def test_a_pipe_in_the_place_of_a_file_does_not_hold_anybody_up(sound: Path, tmp_path: Path, name: str) -> None:
    directory = copy_of(sound, tmp_path)
    (directory / name).unlink()
    os.mkfifo(directory / name)
    assert_refused(directory, name)


def test_a_manifest_that_lists_other_files_is_refused(sound: Path, tmp_path: Path) -> None:
    directory = copy_of(sound, tmp_path)
    manifest = json.loads((directory / "manifest.json").read_bytes())
    for stranger in ("../../../etc/passwd", "/dev/zero", "notes.txt"):
        files_ = {**manifest["files"], stranger: {"size": 0, "sha256": ""}}
        (directory / "manifest.json").write_bytes(json.dumps({**manifest, "files": files_}).encode())
        assert_refused(directory)
        assert "which no checkpoint has" in damage(directory)


@pytest.mark.parametrize(
    "state",
    [
        b"[]",
        b"{}",
        b'{"progress": []}',
        b'{"progress": {"step": "1"}}',
        b'{"progress": {"step": -1}}',
        b'{"progress": {"step": 1e400}}',
        b'{"progress": {"step": ' + b"9" * 31 + b"}}",
        b'{"progress": {"step": 1, "epoch": true}}',
        b'{"progress": {"step": 1, "stranger": 1}}',
        b'{"progress": {"step": 1}, "score": "high"}',
        b'{"progress": {"step": 1}, "max_steps": []}',
        b'{"a":' * 50_000,
    ],
    ids=lambda state: repr(state[:45]),
)
def test_any_other_state_is_refused(tmp_path: Path, state: bytes) -> None:
    directory = save(tmp_path, 1)
    rewrite(directory, "state.json", state)
    with pytest.raises(ModelError, match=r"state\.json"):
        read_state(directory)


@pytest.mark.parametrize("version", ["\x1b[31mred", 7, "x" * 2000])
def test_what_is_shown_of_a_description_is_short_plain_text(tmp_path: Path, version: object) -> None:
    directory = save(tmp_path, 1)
    edit_json(directory, "model.json", tfm_version=version)
    with pytest.raises(ModelError, match="tfm_version cannot be"):
        read_description(directory)


def test_a_score_that_is_no_number_is_never_the_best(tmp_path: Path) -> None:
    for step, score in ((1, math.nan), (2, -5.0), (3, math.inf), (4, -math.inf)):
        save(tmp_path, step, score=score)
    assert RunDirectory(tmp_path).find_model("best").checkpoint.name == "step-000002"


def test_a_run_with_links_is_not_written_to(tmp_path: Path) -> None:
    save(tmp_path / "run", 1)
    (tmp_path / "outside").mkdir()
    (tmp_path / "run" / "cache").symlink_to(tmp_path / "outside")
    with pytest.raises(ModelError, match="cache is a symbolic link"):
        RunDirectory(tmp_path / "run").lock()
    assert not (tmp_path / "run" / ".lock").exists()


# Selection


def test_best_is_the_highest_score_and_the_earliest_of_equals(tmp_path: Path) -> None:
    for step, score in {1: -2.0, 2: -1.0, 3: None, 4: -1.0, 5: -3.0, 6: None}.items():
        save(tmp_path, step, score=score)
    assert checkpoint_step(RunDirectory(tmp_path).find_model().checkpoint) == 2
    assert checkpoint_step(RunDirectory(tmp_path).find_model("last").checkpoint) == 6
    assert checkpoint_step(RunDirectory(tmp_path).find_model("3").checkpoint) == 3


def test_no_more_checkpoints_are_read_whole_than_need_be(tmp_path: Path) -> None:
    for step, score in {1: 1.0, 2: 3.0, 3: 2.0}.items():
        save(tmp_path, step, score=score)
    for step in (1, 3):
        (RunDirectory(tmp_path).checkpoint_path(step) / "model.safetensors").write_bytes(b"")
    warnings: list[str] = []
    assert checkpoint_step(RunDirectory(tmp_path).find_model("best", warn=warnings.append).checkpoint) == 2
    assert not warnings
    assert checkpoint_step(RunDirectory(tmp_path).find_model("last", warn=warnings.append).checkpoint) == 2
    assert len(warnings) == 1
    assert "step-000003" in warnings[0]


def test_loading_draws_no_random_weights_before(tmp_path: Path) -> None:
    directory = save(tmp_path, 1)
    before = torch.get_rng_state()
    model, _ = load_model(directory)
    assert torch.get_rng_state().equal(before)
    for name, tensor in model_tensors(tiny_model(1)).items():
        assert model.get_parameter(name).equal(tensor)


def test_of_equal_scores_the_lower_loss_is_best(tmp_path: Path) -> None:
    for step, loss in {1: 3.0, 2: 2.0, 3: 2.5, 4: 2.0}.items():
        save(tmp_path, step, score=50.0, loss=loss)
    best = best_checkpoint(RunDirectory(tmp_path).checkpoints())
    assert best is not None and checkpoint_step(best) == 2


def test_progress_remembers_the_lower_loss_of_equal_scores() -> None:
    progress = Progress()
    found: list[tuple[int, int]] = []
    for score, loss in [(0.0, 5.0), (0.0, 4.0), (0.0, 4.5), (1.0, 9.0), (1.0, 9.0), (0.0, 1.0)]:
        progress.count_update(1.0, 1)
        progress.count_validation(score, loss, 0)
        found.append((progress.best_step, progress.bad_validations))
    assert found == [(1, 0), (2, 1), (2, 2), (4, 0), (4, 1), (4, 2)]


def test_a_manifest_must_list_what_a_model_needs(tmp_path: Path) -> None:
    directory = save(tmp_path, 1)
    (directory / "manifest.json").write_bytes(files.json_bytes({"format": 1, "files": {}}))
    assert "does not list" in damage(directory)


def test_a_damaged_checkpoint_that_is_passed_over_is_said(tmp_path: Path) -> None:
    save(tmp_path, 1)
    (save(tmp_path, 2) / "state.json").write_text("rot")
    warnings: list[str] = []
    assert checkpoint_step(RunDirectory(tmp_path).find_model("last", warn=warnings.append).checkpoint) == 1
    assert "state.json is damaged" in warnings[0]


def test_without_scores_the_last_one_is_the_best(tmp_path: Path) -> None:
    save(tmp_path, 1)
    save(tmp_path, 2)
    assert best_checkpoint(RunDirectory(tmp_path).checkpoints()) is None
    assert checkpoint_step(RunDirectory(tmp_path).find_model("best").checkpoint) == 2


def test_checkpoints_are_ordered_by_number_and_nothing_else_is_one(tmp_path: Path) -> None:
    for step in (1_000_000, 999_999, 5):
        save(tmp_path, step)
    for name in ("step-000006.partial", "step-6", "notes", "step-000007.removed.partial"):
        (tmp_path / "checkpoints" / name).mkdir()
    assert [checkpoint_step(path) for path in RunDirectory(tmp_path).checkpoints()] == [5, 999_999, 1_000_000]


def test_damaged_checkpoints_are_passed_over_and_reported(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        save(tmp_path, step, score=step)
    (RunDirectory(tmp_path).checkpoint_path(3) / "model.safetensors").write_bytes(b"")
    (RunDirectory(tmp_path).checkpoint_path(2) / "manifest.json").unlink()
    found, problems = RunDirectory(tmp_path).sound_checkpoints()
    assert [checkpoint_step(path) for path in found] == [1]
    assert [name in problem for name, problem in zip(("manifest.json", "model.safe"), problems, strict=True)] == [
        True
    ] * 2
    assert checkpoint_step(RunDirectory(tmp_path).find_model("best").checkpoint) == 1
    assert checkpoint_step(RunDirectory(tmp_path).find_model("last").checkpoint) == 1
    with pytest.raises(ModelError, match=r"model\.safetensors is damaged"):
        RunDirectory(tmp_path).find_model("3")


def test_a_run_with_damaged_checkpoints_alone_names_every_problem(tmp_path: Path) -> None:
    for step in (1, 2):
        save(tmp_path, step)
        (RunDirectory(tmp_path).checkpoint_path(step) / "state.json").unlink()
    with pytest.raises(ModelError, match=r"no valid checkpoint.*step-000001.*step-000002"):
        RunDirectory(tmp_path).find_model()


def test_a_step_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="best, last and the steps: none"):
        RunDirectory(tmp_path).find_model("3")
    save(tmp_path, 1)
    save(tmp_path, 20)
    with pytest.raises(ModelError, match="no checkpoint '3'; it has best, last and the steps: 1, 20"):
        RunDirectory(tmp_path).find_model("3")


@pytest.mark.parametrize(("keep", "left"), [(1, [2, 5]), (2, [2, 4, 5]), (4, [2, 3, 4, 5]), (9, [1, 2, 3, 4, 5])])
def test_pruning_keeps_the_newest_and_the_best(tmp_path: Path, keep: int, left: list[int]) -> None:
    for step, score in enumerate([1.0, 9.0, 2.0, None, 3.0], start=1):
        save(tmp_path, step, score=score)
    RunDirectory(tmp_path).prune(keep=keep)
    assert [checkpoint_step(path) for path in RunDirectory(tmp_path).checkpoints()] == left
    assert [path.name for path in (tmp_path / "checkpoints").iterdir() if path.suffix == files.PARTIAL] == []


def test_a_checkpoint_that_is_damaged_under_way_does_not_end_a_training(tmp_path: Path) -> None:
    """It was sound when this process wrote it."""
    run = RunDirectory(tmp_path)
    for step in (1, 2, 3):
        run.verified(save(tmp_path, step, score=step))
    (run.checkpoint_path(1) / "state.json").write_bytes(b"rot")
    assert ["state.json is damaged" in one for one in run.prune(keep=1)] == [True]
    assert [checkpoint_step(path) for path in run.checkpoints()] == [3]


def test_pruning_removes_damaged_checkpoints_once_a_newer_one_is_sound(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4):
        (save(tmp_path, step) / "model.safetensors").write_bytes(b"rot")
    assert RunDirectory(tmp_path).prune(keep=1) == []
    assert len(RunDirectory(tmp_path).checkpoints()) == 4  # nothing is sound: each may be wanted
    save(tmp_path, 3)
    removed = RunDirectory(tmp_path).prune(keep=1)
    assert [f"step-{step:06d}" in reason for step, reason in zip((1, 2), removed, strict=True)] == [True] * 2
    assert [checkpoint_step(path) for path in RunDirectory(tmp_path).checkpoints()] == [3, 4]


def test_pruning_leaves_a_damaged_checkpoint_that_scored_best(tmp_path: Path) -> None:
    (save(tmp_path, 1, score=9.0) / "model.json").write_bytes(b"rot")
    target = RunDirectory(tmp_path).checkpoint_path(2)
    state = {"score": 1.0, "progress": {"step": 2, "best_step": 1}}
    write_checkpoint(target, tensors={"model": {}}, description=description(), state=state)
    assert RunDirectory(tmp_path).prune(keep=1) == []
    assert [checkpoint_step(path) for path in RunDirectory(tmp_path).checkpoints()] == [1, 2]


# Failing disks


class FullDisk:
    """Lets n calls of a function through, then is out of space."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if self.left == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.left -= 1
            return function(*args, **kwargs)

        return wrapped


@pytest.mark.parametrize("names", [["fsync"], ["replace"], ["fsync", "replace"]])
def test_a_write_that_fails_at_any_point_leaves_the_old_checkpoints(tmp_path: Path, names: list[str]) -> None:
    save(tmp_path, 1)
    failures = 0
    while True:
        disk = FullDisk(failures)
        with pytest.MonkeyPatch.context() as patch:
            for name in names:
                patch.setattr(os, name, disk.wrap(getattr(os, name)))
            try:
                save_whole(tmp_path, 2)
                break
            except EnvironmentFault as fault:
                reason = str(fault)
        failures += 1
        assert "No space left on device" in reason
        assert "MB free" in reason
        found, problems = RunDirectory(tmp_path).sound_checkpoints()
        assert RunDirectory(tmp_path).checkpoint_path(1) in found
        assert problems == []
        shutil.rmtree(RunDirectory(tmp_path).checkpoint_path(2), ignore_errors=True)
    assert failures == {"fsync": 2 * len(FILES) + 2, "replace": 1}[names[0]] + (len(names) - 1)
    assert [checkpoint_step(path) for path in RunDirectory(tmp_path).checkpoints()] == [1, 2]
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["step-000001", "step-000002"]


def test_a_disk_that_does_not_keep_what_was_written_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "write_file", lambda path, content: files.write_file(path, content[:-1]))
    with pytest.raises(EnvironmentFault, match="does not read back as written"):
        save(tmp_path, 1)


def test_a_step_written_again_is_replaced_whole(tmp_path: Path) -> None:
    save_whole(tmp_path)
    directory = save(tmp_path, 1, score=2.0)
    assert sorted(path.name for path in directory.iterdir()) == [
        "manifest.json",
        "model.json",
        "model.safetensors",
        "state.json",
    ]
    assert read_state(directory) == {"score": 2.0, "progress": {"step": 1}}


# No code in data

FORBIDDEN_MODULES = {"pickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "yaml"}
FORBIDDEN_CALLS = {"eval", "exec", "torch.load", "torch.save", "np.load", "np.save", "numpy.load", "numpy.save"}
PICKLING_ENDS = ("_object", "_object_list")
"""How torch.distributed calls its functions that pickle: broadcast_object_list, all_gather_object, .."""
SAFE_YAML = ({}, {"pure": "True"}, {"typ": "'safe'", "pure": "True"})
"""Arguments of ruamel's YAML: round-trip and safe loading make plain values alone."""


def dangers(source: str) -> list[str]:
    """Imports and calls by which reading a file could run code."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found += [name.name for name in names if name.name.split(".")[0] in FORBIDDEN_MODULES]
            case ast.ImportFrom(module=str(module), names=names, level=0):
                found += [module] if module.split(".")[0] in FORBIDDEN_MODULES else []
                found += [called for name in names if (called := f"{module}.{name.name}") in FORBIDDEN_CALLS]
            case ast.Call(func=function) if ast.unparse(function) in FORBIDDEN_CALLS:
                found.append(ast.unparse(function))
            case ast.Call(func=ast.Attribute(attr=name)) if name.endswith(PICKLING_ENDS):
                found.append(name)
            case ast.Call(func=ast.Name("YAML"), args=args, keywords=keywords):
                options = {str(keyword.arg): ast.unparse(keyword.value) for keyword in keywords}
                found += ["unsafe YAML"] if args or options not in SAFE_YAML else []
            case _:
                pass
    return found


@pytest.mark.parametrize("package", ["tfm.cli", "tfm.configs", "tfm.data", "tfm.seq2seq"])
def test_no_file_that_is_read_can_run_code(package: str) -> None:
    folder = Path(importlib.import_module(package).__file__ or "").parent
    sources = sorted(folder.rglob("*.py"))
    assert sources
    assert {path.name: found for path in sources if (found := dangers(path.read_text("utf-8")))} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import os, dill as d",
        "from pickle import loads",
        "from torch import load",
        "torch.load(path)",
        "distributed.broadcast_object_list(messages, src=0)",
        "import yaml",
        "from yaml import load",
        "YAML(typ='unsafe')",
        "YAML('unsafe')",
        "def f():\n    return eval('1')",
        "exec(code)",
    ],
)
def test_such_code_would_be_noticed(source: str) -> None:
    assert dangers(source)
    assert dangers("model.eval(); re.compile('exec'); safetensors.torch.load(content)") == []
