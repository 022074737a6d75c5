"""The promise: stop it anywhere, run it again, and the model is, bit for bit, the one you would have had."""

import errno
import itertools
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.tiny_run import Recorder

from tfm.data.config import TokenizerConfig
from tfm.data.tokenizer import Tokenizer
from tfm.data.vocabulary_training import build_tokenizer
from tfm.engine.runs import checkpoint as checkpoint_module
from tfm.engine.runs import directory as directory_module
from tfm.engine.runs.checkpoint import checkpoint_step, damage, read_description
from tfm.engine.runs.directory import RunDirectory, best_checkpoint
from tfm.engine.runs.load import load_run
from tfm.engine.runs.log import RunLog
from tfm.engine.workers.ranks import using_threads
from tfm.system.errors import DataError, EnvironmentFault, Interrupted, ModelError, TrainingDiverged, UsageError
from tfm.system.files import DirectoryLock, fault, json_bytes, sha256_file, write_file
from tfm.system.interrupts import Interrupts

STEPS = 24
FILES = ("model.safetensors", "ema.safetensors", "optimizer.safetensors", "state.json")


def fingerprint(run: Path, step: int = STEPS) -> dict[str, str]:
    """Hashes of everything that a run leaves, besides its clocks."""
    hashes = {name: sha256_file(RunDirectory(run).checkpoint_path(step) / name) for name in FILES}
    return hashes | {"metrics": sha256_file(run / "metrics.jsonl")}


class StopAfter(Interrupts):
    """Asks to stop after so many looks: one before each step, and some within each validation."""

    def __init__(self, looks: int) -> None:
        self.looks = looks
        super().__init__()

    @property
    def received(self) -> int | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self.looks -= 1
        return 15 if self.looks < 0 else None

    @received.setter
    def received(self, value: int | None) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        pass


@pytest.fixture(scope="module")
def uninterrupted(train_tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("uninterrupted") / "run"
    train_tiny(run)
    return run


def test_two_runs_of_one_command_are_the_same(uninterrupted: Path, train_tiny: Any, tmp_path: Path) -> None:
    train_tiny(tmp_path / "run")
    assert fingerprint(tmp_path / "run") == fingerprint(uninterrupted)


def test_another_seed_is_another_model(uninterrupted: Path, train_tiny: Any, tmp_path: Path) -> None:
    train_tiny(tmp_path / "run", seed=2)
    assert fingerprint(tmp_path / "run")["model.safetensors"] != fingerprint(uninterrupted)["model.safetensors"]


def test_the_tiny_run_has_several_steps_per_epoch_and_several_epochs(uninterrupted: Path) -> None:
    progress = json.loads((RunDirectory(uninterrupted).checkpoint_path(STEPS) / "state.json").read_text())["progress"]
    assert progress["epoch"] >= 2
    assert STEPS / (progress["epoch"] + 1) >= 3


def test_stopped_and_resumed_again_and_again(
    uninterrupted: Path, train_tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stops in the middle of epochs, twice and more within one epoch, and within validations."""
    monkeypatch.setattr("tfm.engine.training.validation.CHUNK_TEXTS", 1)  # a look before each sentence
    run, stopped_at = tmp_path / "run", list[int]()
    for looks in itertools.cycle((3, 3, 3, 9)):  # a validation, begun anew when stopped, has more than 3 looks
        try:
            train_tiny(run, interrupts=StopAfter(looks))
            break
        except Interrupted as error:
            assert error.exit_code == 128 + 15
            stopped_at.append(checkpoint_step(RunDirectory(run).checkpoints()[-1]))
        assert len(stopped_at) < STEPS
    assert len(stopped_at) >= 5
    assert len(set(stopped_at)) < len(stopped_at)  # some within a validation
    assert fingerprint(run) == fingerprint(uninterrupted)


@pytest.mark.parametrize("step", [4, 8, 12, 20])
def test_killed_after_a_checkpoint_and_resumed(uninterrupted: Path, train_tiny: Any, tmp_path: Path, step: int) -> None:
    """As after SIGKILL: later checkpoints never came to be, the logs are longer than the checkpoint."""
    run = tmp_path / "run"
    shutil.copytree(uninterrupted, run)
    for checkpoint in RunDirectory(run).checkpoints():
        if int(checkpoint.name.removeprefix("step-")) > step:
            shutil.rmtree(checkpoint)
    (run / "checkpoints" / "step-000021.partial").mkdir()
    (run / "metrics.jsonl").write_text((run / "metrics.jsonl").read_text() + '{"step": 25, "kind": "tr')
    train_tiny(run)
    assert fingerprint(run) == fingerprint(uninterrupted)
    assert not list(run.rglob("*.partial"))


def test_cadence_of_saving_and_logging_never_changes_weights(
    uninterrupted: Path, train_tiny: Any, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    train_tiny(run, checkpoint_every=7, log_every=5, keep_checkpoints=1, validate_every=23)
    for name in FILES[:3]:
        assert fingerprint(run)[name] == fingerprint(uninterrupted)[name]


def test_a_damaged_newest_checkpoint_is_said_and_passed_over(
    uninterrupted: Path, train_tiny: Any, tmp_path: Path, recorder: Any
) -> None:
    run = tmp_path / "run"
    shutil.copytree(uninterrupted, run)
    (RunDirectory(run).checkpoint_path(STEPS) / "optimizer.safetensors").write_bytes(b"rot")
    train_tiny(run, reporter=recorder)
    assert any("optimizer.safetensors is damaged" in text for text in recorder.warned)
    assert fingerprint(run) == fingerprint(uninterrupted)


def test_if_all_checkpoints_are_damaged_it_never_starts_anew(
    uninterrupted: Path, train_tiny: Any, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(uninterrupted, run)
    for checkpoint in RunDirectory(run).checkpoints():
        (checkpoint / "model.safetensors").write_bytes(b"rot")
    with pytest.raises(ModelError, match="no valid checkpoint"):
        train_tiny(run)


def test_a_finished_run_says_so_and_changes_nothing(uninterrupted: Path, train_tiny: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(uninterrupted, run)
    before = fingerprint(run)
    assert train_tiny(run).already_finished
    assert fingerprint(run) == before


def test_a_run_that_was_killed_before_it_pruned_is_pruned_by_the_next_start(
    uninterrupted: Path, train_tiny: Any, tmp_path: Path, recorder: Any
) -> None:
    run = tmp_path / "run"
    shutil.copytree(uninterrupted, run)
    best = best_checkpoint(RunDirectory(run).checkpoints())
    assert best is not None
    damaged, *_ = [path for path in RunDirectory(run).checkpoints() if path != best]
    (damaged / "model.safetensors").write_bytes(b"rot")
    assert train_tiny(run, keep_checkpoints=1, reporter=recorder).already_finished
    kept = {checkpoint_step(best), STEPS}
    assert {checkpoint_step(path) for path in RunDirectory(run).checkpoints()} == kept
    assert [text for text in recorder.warned if text.startswith("removed a checkpoint") and damaged.name in text]


def test_a_run_that_was_killed_before_its_last_picture_is_drawn_by_the_next_start(
    uninterrupted: Path, train_tiny: Any, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(uninterrupted, run)
    picture = run / "learning_curve.png"
    last = picture.read_bytes()
    picture.write_bytes(b"of an earlier step")
    os.utime(picture, (0, 0))
    assert train_tiny(run).already_finished
    assert picture.read_bytes() == last


def test_a_full_disk_says_what_is_needed_and_what_is_safe(
    train_tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_from = "step-000004"

    def fill(path: Path, content: bytes) -> None:
        if path.parent.name.startswith(full_from):
            raise fault("write", path, OSError(errno.ENOSPC, "No space left on device"))
        write_file(path, content)

    monkeypatch.setattr(checkpoint_module, "write_file", fill)
    nothing = r"cannot save step-000004: no space left on the disk of .*checkpoints \(needs [\d.]+ MB, [\d.]+ MB free\)"
    with pytest.raises(EnvironmentFault, match=f"{nothing}. None was saved before$"):
        train_tiny(tmp_path / "run")
    full_from = "step-000008"
    with pytest.raises(EnvironmentFault, match=r"step-000004 is safe, and the same command goes on from there$"):
        train_tiny(tmp_path / "run")


def test_more_steps_continue_where_the_schedule_allows(uninterrupted: Path, train_tiny: Any, tmp_path: Path) -> None:
    run, whole = tmp_path / "run", tmp_path / "whole"
    shutil.copytree(uninterrupted, run)
    train_tiny(run, max_steps=32)
    train_tiny(whole, max_steps=32)
    for name in FILES[:3]:
        assert fingerprint(run, 32)[name] == fingerprint(whole, 32)[name]


def test_more_steps_are_refused_where_the_schedule_was_shaped_by_the_total(train_tiny: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train_tiny(run, schedule="cosine", max_steps=8)
    with pytest.raises(UsageError, match="planned for 8 steps and its cosine schedule"):
        train_tiny(run, schedule="cosine", max_steps=16)


def test_changed_data_are_refused(train_tiny: Any, configure: Any, corpus: Any, tmp_path: Path) -> None:
    train_tiny(tmp_path / "run", max_steps=8)
    source = Path(corpus["src"][0])
    text = source.read_text(encoding="utf-8")
    try:
        source.write_text(text.replace("one", "two", 1), encoding="utf-8")
        with pytest.raises(DataError, match="changed since step 8"):
            train_tiny(tmp_path / "run", max_steps=12)
    finally:
        source.write_text(text, encoding="utf-8")


def test_another_thread_count_is_warned_of(train_tiny: Any, tmp_path: Path, recorder: Any) -> None:
    """Begun on two cores, continued on one."""
    run = tmp_path / "run"
    with using_threads(2):
        train_tiny(run, max_steps=8, schedule="constant")
    with using_threads(1):
        train_tiny(run, reporter=recorder, max_steps=10, schedule="constant")
    assert any("not bit for bit" in text and "threads 1" in text for text in recorder.warned)


@pytest.mark.parametrize("ranks", [1, None])
def test_more_threads_than_before_are_left_alone(
    uninterrupted: Path, train_tiny: Any, tmp_path: Path, recorder: Any, ranks: int | None
) -> None:
    """Continued on a machine of more cores, a run computes with as many threads as it began with."""
    shutil.copytree(RunDirectory(uninterrupted).checkpoint_path(8), RunDirectory(tmp_path / "run").checkpoint_path(8))
    for name in ("config.yaml", "setup.json", "metrics.jsonl", "timing.jsonl", "tokenizer", "cache"):
        part = uninterrupted / name
        (shutil.copytree if part.is_dir() else shutil.copy)(part, tmp_path / "run" / name)
    with using_threads(torch.get_num_threads() + 1):
        train_tiny(tmp_path / "run", reporter=recorder, ranks=ranks)
    assert not any("not bit for bit" in text for text in recorder.warned)
    assert fingerprint(tmp_path / "run") == fingerprint(uninterrupted)


def test_two_processes_never_train_in_one_directory(train_tiny: Any, tmp_path: Path) -> None:
    with DirectoryLock(tmp_path / "run"), pytest.raises(EnvironmentFault, match="in use by another"):
        train_tiny(tmp_path / "run")


def _foreign_tokenizer() -> Tokenizer:
    return build_tokenizer(zip(["abc abd"] * 9, ["xyz"] * 9, strict=True), TokenizerConfig(vocab_size=300))


def test_a_foreign_tokenizer_is_refused(uninterrupted: Path, train_tiny: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(uninterrupted, run)
    shutil.rmtree(run / "tokenizer")
    _foreign_tokenizer().save(run / "tokenizer")
    with pytest.raises(ModelError, match="not the tokenizer"):
        train_tiny(run, max_steps=30)


def test_a_validation_killed_before_its_checkpoint_is_logged_once(
    uninterrupted: Path, train_tiny: Any, tmp_path: Path
) -> None:
    """Stopped within the validation of step 8, resumed, logged, and killed before it was saved."""
    run = tmp_path / "run"
    with pytest.raises(Interrupted):
        train_tiny(run, interrupts=StopAfter(9))
    assert checkpoint_step(RunDirectory(run).checkpoints()[-1]) == 8
    validation = next(line for line in (uninterrupted / "metrics.jsonl").read_text().splitlines() if '"valid' in line)
    with (run / "metrics.jsonl").open("a") as log:
        log.write(validation + '\n{"note": "written by somebody"}\n')
    train_tiny(run)
    assert fingerprint(run) == fingerprint(uninterrupted)


def test_fine_tuning_starts_from_the_best_weights_and_is_validated_first(
    uninterrupted: Path, train_tiny: Any, tmp_path: Path, recorder: Any
) -> None:
    run = tmp_path / "tuned"
    start = {"init_from": uninterrupted}
    train_tiny(run, **start, reporter=recorder, max_steps=8, learning_rate=1e-4)
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert (records[0]["step"], records[0]["kind"]) == (0, "validation")
    source = [json.loads(line) for line in (uninterrupted / "metrics.jsonl").read_text().splitlines()]
    best = max((r for r in source if r["kind"] == "validation"), key=lambda r: (r["score"], -r["loss"]))
    assert records[0]["loss"] == pytest.approx(best["loss"], rel=1e-6)
    assert any("starting from the weights" in text for text in recorder.said)
    assert not any("its own weights count" in text for text in recorder.said)
    train_tiny(run, **start, reporter=recorder, max_steps=8, learning_rate=1e-4)
    assert any("its own weights count" in text for text in recorder.said)


def test_weights_are_not_taken_to_another_vocabulary(uninterrupted: Path, train_tiny: Any, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(uninterrupted, source)
    shutil.rmtree(source / "tokenizer")
    _foreign_tokenizer().save(source / "tokenizer")
    with pytest.raises(ModelError, match="not the tokenizer"):
        train_tiny(tmp_path / "tuned", init_from=source, max_steps=1)


def test_what_the_command_refuses_is_refused_to_a_caller_from_python(
    uninterrupted: Path, train_tiny: Any, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(uninterrupted, run)
    before = fingerprint(run)
    with pytest.raises(UsageError, match=r"differs in training.learning_rate \(was 0.01, now 0.02\)"):
        train_tiny(run, learning_rate=0.02, max_steps=30)
    with pytest.raises(UsageError, match="needs another --run to train into"):
        train_tiny(run, init_from=run)
    with pytest.raises(UsageError, match="a model keeps its vocabulary"):
        train_tiny(tmp_path / "tuned", init_from=run, tokenizer=run / "tokenizer")
    assert fingerprint(run) == before


def test_a_save_hashes_what_it_wrote_and_not_all_that_is_kept(
    train_tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 6 checkpoints kept, each save reads one."""
    examined: list[str] = []
    monkeypatch.setattr(checkpoint_module, "damage", lambda path: examined.append(path.name) or damage(path))
    monkeypatch.setattr(directory_module, "damage", lambda path: examined.append(path.name) or damage(path))
    train_tiny(tmp_path / "run")
    saved = [path.name for path in RunDirectory(tmp_path / "run").checkpoints()]
    assert len(saved) == 6
    assert examined == saved


def test_fine_tuning_says_of_a_damaged_best_checkpoint(
    uninterrupted: Path, train_tiny: Any, tmp_path: Path, recorder: Any
) -> None:
    source = tmp_path / "source"
    shutil.copytree(uninterrupted, source)
    best = best_checkpoint(RunDirectory(source).checkpoints())
    assert best is not None
    (best / f"{read_description(best).weights}.safetensors").write_bytes(b"")
    train_tiny(tmp_path / "tuned", init_from=source, reporter=recorder, max_steps=1)
    assert any(best.name in warning for warning in recorder.warned)


def test_a_curve_that_cannot_be_drawn_does_not_hide_why_a_run_ended(
    train_tiny: Any, tmp_path: Path, recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: RunLog) -> None:
        raise EnvironmentFault("cannot write learning_curve.png")

    monkeypatch.setattr(RunLog, "draw_curve", fail)
    settings = {"learning_rate": 1e30, "max_grad_norm": 0.0, "precision": "fp32", "ema_decay": 0.0}
    with pytest.raises(TrainingDiverged):
        train_tiny(tmp_path / "run", reporter=recorder, **settings)
    assert recorder.warned[-1] == "cannot write learning_curve.png"


PATIENT: dict[str, Any] = {
    "max_steps": None,
    "patience": 1,
    "schedule": "trapezoid",
    "decay_fraction": 0.5,
    "validate_every": 4,
    "learning_rate": 0.5,  # so high that validation soon stops improving
}


def test_a_run_that_finds_its_length_finds_the_same_one_wherever_it_is_stopped(train_tiny: Any, tmp_path: Path) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    result = train_tiny(whole, **PATIENT)
    assert 8 <= result.step < 200
    for looks in itertools.cycle((3, 40)):
        try:
            train_tiny(stopped, interrupts=StopAfter(looks), **PATIENT)
            break
        except Interrupted:
            continue
    assert fingerprint(stopped, result.step) == fingerprint(whole, result.step)
    steps = [checkpoint_step(path) for path in RunDirectory(whole).checkpoints()]
    state = json.loads((RunDirectory(whole).checkpoint_path(result.step) / "state.json").read_text())
    falls = state["progress"]["falling_since"]
    assert steps[0] < falls < steps[-2]
    for step in (steps[0], falls, steps[-2]):
        again = tmp_path / f"from-{step}"
        shutil.copytree(whole, again)
        for checkpoint in RunDirectory(again).checkpoints():
            if checkpoint_step(checkpoint) > step:
                shutil.rmtree(checkpoint)
        train_tiny(again, **PATIENT)
        assert fingerprint(again, result.step) == fingerprint(whole, result.step)


def test_a_lost_log_is_told_and_begins_anew(uninterrupted: Path, train_tiny: Any, tmp_path: Path) -> None:
    run, reporter = tmp_path / "run", Recorder()
    train_tiny(run, max_steps=16)
    (run / "metrics.jsonl").unlink()
    train_tiny(run, reporter=reporter)
    assert any("metrics.jsonl is not there any more: it begins anew after step 16" in text for text in reporter.warned)
    assert fingerprint(run)["model.safetensors"] == fingerprint(uninterrupted)["model.safetensors"]


@pytest.mark.parametrize(
    "line",
    [
        '{"step": "3", "kind": "train", "loss": 1.0}',
        '{"step": 3, "kind": "train"}',
        '{"step": 3, "kind": "validation", "loss": [1], "score": 2.0}',
        '{"step": 3, "kind": "validation", "loss": 1.0, "score": 2.0, "bleu": 99.0}',
        '{"step": 1' + "0" * 30 + ', "kind": "train", "loss": 1.0}',
        '{"step": 3, "kind": "other", "loss": 1.0}',
        '{"step": true, "kind": "train", "loss": 1.0}',
    ],
)
def test_a_line_that_tfm_does_not_write_is_not_read(line: str, tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text(line + "\n")
    assert RunDirectory(tmp_path).metrics.records() == []


def test_the_line_of_an_update_that_was_left_out_is_read(tmp_path: Path) -> None:
    line = '{"step": 5, "kind": "train", "epoch": 0, "loss": 1.0, "lr": 0.1, "grad_norm": null, "tokens": 7}'
    (tmp_path / "metrics.jsonl").write_text(line + "\n")
    assert len(RunDirectory(tmp_path).metrics.records()) == 1


def test_lines_that_tfm_writes_are_read(uninterrupted: Path) -> None:
    for name, log in (("metrics", RunDirectory(uninterrupted).metrics), ("timing", RunDirectory(uninterrupted).timing)):
        assert len(log.records()) == len((uninterrupted / f"{name}.jsonl").read_text().splitlines()) > 3


@pytest.mark.parametrize("damage", ["lost", "flipped", "half lost"])
def test_a_vocabulary_that_is_lost_comes_back_from_the_checkpoint(
    uninterrupted: Path, train_tiny: Any, tmp_path: Path, recorder: Recorder, damage: str
) -> None:
    run = tmp_path / "run"
    train_tiny(run, max_steps=16)
    vocabulary = run / "tokenizer" / "tokenizer.model"
    sound = vocabulary.read_bytes()
    if damage == "lost":
        shutil.rmtree(run / "tokenizer")
    elif damage == "half lost":
        (run / "tokenizer" / "tokenizer.json").unlink()
    else:
        vocabulary.write_bytes(sound[:100] + b"?" + sound[101:])
    warned: list[str] = []
    load_run(run, None, warn=warned.append)
    train_tiny(run, reporter=recorder)
    for warnings in (warned, recorder.warned):
        assert len([text for text in warnings if text.endswith("taking the copy in step-000016")]) == 1
    assert vocabulary.read_bytes() == sound
    assert fingerprint(run) == fingerprint(uninterrupted)


def test_a_lost_vocabulary_of_an_earlier_tfm_is_an_error(train_tiny: Any, tmp_path: Path) -> None:
    """Its checkpoints have no copy."""
    run = tmp_path / "run"
    train_tiny(run, max_steps=4)
    (checkpoint,) = RunDirectory(run).checkpoints()
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    for name in ("tokenizer.json", "tokenizer.model"):
        (checkpoint / name).unlink()
        del manifest["files"][name]
    (checkpoint / "manifest.json").write_bytes(json_bytes(manifest))
    shutil.rmtree(run / "tokenizer")
    with pytest.raises(ModelError, match="is not a tokenizer directory"):
        load_run(run, None)
