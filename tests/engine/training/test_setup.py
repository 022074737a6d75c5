"""What a run is computed with is settled once: measured, written, said, and kept when it goes on."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.tiny_run import Configure, Recorder, TrainTiny

from tfm.configs import render_config
from tfm.engine.describe import describe_run
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.training import setup as setups
from tfm.engine.training.precision import Rates
from tfm.engine.training.setup import Division, check_device, divide_update, read_setup
from tfm.engine.workers.ranks import Ranks, using_threads
from tfm.seq2seq.training.config import TrainingConfig
from tfm.system.errors import Interrupted, OutOfMemory, UsageError
from tfm.system.files import read_sealed, sealed

from .test_precision import stub
from .test_resume import StopAfter, fingerprint

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
FP32_FASTER, BF16_FASTER = (1e-3, 2e-3), (2e-3, 1e-3)
Stub = tuple[float, float]


def environment(run: Path) -> dict[str, Any]:
    """What the last checkpoint says it was computed with."""
    return json.loads((RunDirectory(run).checkpoints()[-1] / "state.json").read_text())["environment"]


def refuse_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Rates:
        raise AssertionError("measured again")

    monkeypatch.setattr(setups, "time_layers", fail)
    monkeypatch.setattr(setups, "time_muon", fail)


def other_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"cpu_name": "another"})


def cut(monkeypatch: pytest.MonkeyPatch, parts: int) -> None:
    """Cuts each batch into so many parts, however small."""
    monkeypatch.setattr(setups, "divide", lambda cores, **given: Division(given["ranks"] or 2, 1, parts))


def metrics(run: Path) -> list[float]:
    """The losses that a run logged."""
    return [json.loads(line)["loss"] for line in (run / "metrics.jsonl").read_text().splitlines()]


def tiny_model() -> torch.nn.Module:
    return torch.nn.Linear(200, 200)


@pytest.mark.parametrize(
    ("clock", "precision", "dtype"), [(FP32_FASTER, "fp32", "float32"), (BF16_FASTER, "bf16", "bfloat16")]
)
def test_the_faster_precision_is_taken_said_written_and_kept(
    train_tiny: TrainTiny,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    recorder: Recorder,
    clock: Stub,
    precision: str,
    dtype: str,
) -> None:
    stub(monkeypatch, *clock)
    run = tmp_path / "run"
    train_tiny(run, precision="auto", max_steps=4, reporter=recorder, schedule="constant")
    said = [line for line in recorder.said if "GFLOP/s" in line]
    assert len(said) == 1 and "in fp32 and" in said[0] and said[0].endswith(f"taking {precision}")
    kept = read_setup(RunDirectory(run))
    assert kept is not None and kept.precision == precision and kept.rates["layers"].faster == precision
    assert environment(run)["precision"] == dtype
    refuse_to_measure(monkeypatch)
    again = Recorder()
    train_tiny(run, precision="auto", max_steps=8, reporter=again, schedule="constant")
    assert environment(run)["precision"] == dtype
    assert not any("bit for bit" in line for line in again.warned) and not any("GFLOP/s" in line for line in again.said)
    assert describe_run(RunDirectory(run))["computed"]["precision"] == dtype
    assert "GFLOP/s in fp32" in describe_run(RunDirectory(run))["computed"]["layers"]


def test_stopped_and_resumed_is_uninterrupted_whatever_the_clock_says_then(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub(monkeypatch, *BF16_FASTER)
    train_tiny(tmp_path / "once", precision="auto")
    with pytest.raises(Interrupted):
        train_tiny(tmp_path / "twice", precision="auto", interrupts=StopAfter(10))
    stub(monkeypatch, *FP32_FASTER)
    train_tiny(tmp_path / "twice", precision="auto")
    assert fingerprint(tmp_path / "twice") == fingerprint(tmp_path / "once")


def test_a_start_that_was_killed_before_its_first_checkpoint_counts(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub(monkeypatch, *BF16_FASTER)
    run = tmp_path / "run"
    train_tiny(run, precision="auto", max_steps=4)
    shutil.rmtree(run / "checkpoints")
    refuse_to_measure(monkeypatch)
    train_tiny(run, precision="auto", max_steps=4)
    assert environment(run)["precision"] == "bfloat16"


def test_without_a_checkpoint_another_processor_is_measured(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub(monkeypatch, *BF16_FASTER)
    run = tmp_path / "run"
    train_tiny(run, precision="auto", max_steps=4)
    shutil.rmtree(run / "checkpoints")
    other_processor(monkeypatch)
    stub(monkeypatch, *FP32_FASTER)
    train_tiny(run, precision="auto", max_steps=4)
    assert environment(run)["precision"] == "float32"


def test_on_another_processor_a_run_keeps_its_precision_and_warns(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorder: Recorder
) -> None:
    stub(monkeypatch, *BF16_FASTER)
    train_tiny(tmp_path / "run", precision="auto", max_steps=4, schedule="constant")
    other_processor(monkeypatch)
    refuse_to_measure(monkeypatch)
    train_tiny(tmp_path / "run", precision="auto", max_steps=8, reporter=recorder, schedule="constant")
    assert environment(tmp_path / "run")["precision"] == "bfloat16"
    assert any("not bit for bit the same" in line and "another" in line for line in recorder.warned)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_precision_that_is_named_is_taken_unmeasured(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    refuse_to_measure(monkeypatch)
    train_tiny(tmp_path / "run", max_steps=4, precision=precision)
    assert environment(tmp_path / "run")["precision"] == {"fp32": "float32", "bf16": "bfloat16"}[precision]


def test_a_precision_that_is_named_later_overrules_the_one_kept(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorder: Recorder
) -> None:
    stub(monkeypatch, *BF16_FASTER)
    train_tiny(tmp_path / "run", precision="auto", max_steps=4, schedule="constant")
    train_tiny(tmp_path / "run", precision="fp32", max_steps=8, schedule="constant", reporter=recorder)
    assert environment(tmp_path / "run")["precision"] == "float32"
    assert any("not bit for bit" in line for line in recorder.warned)


def test_muon_has_a_precision_of_its_own(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorder: Recorder
) -> None:
    monkeypatch.setattr(setups, "time_layers", lambda *_: Rates(10, 20))
    monkeypatch.setattr(setups, "time_muon", lambda *_: Rates(20, 10))
    train_tiny(tmp_path / "mixed", precision="auto", optimizer="muon", max_steps=8, reporter=recorder)
    train_tiny(tmp_path / "two", precision="auto", optimizer="muon", max_steps=8, ranks=2)
    assert metrics(tmp_path / "two") == pytest.approx(metrics(tmp_path / "mixed"), rel=1e-3)
    found = environment(tmp_path / "mixed")
    assert (found["precision"], found["muon_precision"]) == ("bfloat16", "float32")
    assert any("in Muon's iterations at 20 GFLOP/s in fp32 and 10 in bf16: taking fp32" in s for s in recorder.said)
    monkeypatch.setattr(setups, "time_muon", lambda *_: Rates(10, 20))
    train_tiny(tmp_path / "bf16", precision="auto", optimizer="muon", max_steps=8)
    model = "model.safetensors"
    assert fingerprint(tmp_path / "mixed", 8)[model] != fingerprint(tmp_path / "bf16", 8)[model]


def test_parts_are_kept_where_there_are_other_cores(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorder: Recorder
) -> None:
    """Begun as two processes of two parts each; then there is one core."""
    settings: dict[str, Any] = {"precision": "fp32", "schedule": "constant", "max_tokens_per_batch": 1024}
    settings |= {"grad_accum_steps": 1}
    cut(monkeypatch, parts=3)
    train_tiny(tmp_path / "run", ranks=None, max_steps=8, **settings)
    assert read_setup(RunDirectory(tmp_path / "run")).division == Division(2, 1, 3)  # pyright: ignore[reportOptionalMemberAccess]
    monkeypatch.undo()
    with using_threads(1):
        train_tiny(tmp_path / "run", ranks=None, reporter=recorder, max_steps=12, **settings)
    assert {key: environment(tmp_path / "run")[key] for key in ("ranks", "parts")} == {"ranks": 1, "parts": 3}
    assert any("this run was on ranks 2" in line and "continues on ranks 1" in line for line in recorder.warned)


def test_little_memory_limits_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    config = TrainingConfig(grad_accum_steps=2)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(setups, "physical_memory", lambda: 64 << 30)
    kept = divide_update(config, tiny_model(), CPU)
    assert kept.ranks == 8
    monkeypatch.setattr(setups, "physical_memory", lambda: 4 << 30)
    assert divide_update(config, tiny_model(), CPU).ranks <= 2
    assert divide_update(config, tiny_model(), CPU, kept).ranks <= 2
    assert divide_update(TrainingConfig(grad_accum_steps=2, ranks=8), tiny_model(), CPU, kept) == kept


def test_the_products_are_timed_with_the_threads_and_tokens_of_one_process(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []

    def time_layers(matrices: object, tokens: int) -> Rates:
        seen.append((torch.get_num_threads(), tokens))
        return Rates(2, 1)

    monkeypatch.setattr(setups, "time_layers", time_layers)
    monkeypatch.setattr(setups, "divide", lambda *_, **__: Division(1, 3, 2))
    train_tiny(tmp_path / "run", precision="auto", max_steps=2, max_tokens_per_batch=1024)
    assert seen == [(3, 512)]


def test_more_cores_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    config, kept = TrainingConfig(grad_accum_steps=2), Division(2, 1, 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 16)
    assert divide_update(config, tiny_model(), CPU, kept) == kept
    assert divide_update(config, tiny_model(), CPU).ranks > 2


def test_resumed_parts_are_uninterrupted_ones(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the two processes has two of the three parts."""
    settings: dict[str, Any] = {"ranks": 2, "max_tokens_per_batch": 1024, "grad_accum_steps": 1, "max_steps": 12}
    cut(monkeypatch, parts=3)
    train_tiny(tmp_path / "once", **settings)
    assert environment(tmp_path / "once")["parts"] == 3
    with pytest.raises(Interrupted):
        train_tiny(tmp_path / "twice", interrupts=StopAfter(5), **settings)
    train_tiny(tmp_path / "twice", **settings)
    for name in ("model.safetensors", "optimizer.safetensors", "metrics"):
        assert fingerprint(tmp_path / "twice", 12)[name] == fingerprint(tmp_path / "once", 12)[name]


def test_a_run_of_before_goes_on_as_its_checkpoint_says(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorder: Recorder
) -> None:
    """Without a setup, and with a checkpoint that names neither parts nor a precision of Muon's own."""
    stub(monkeypatch, *BF16_FASTER)
    run = tmp_path / "run"
    train_tiny(run, precision="auto", max_steps=4, schedule="constant")
    RunDirectory(run).setup.unlink()
    forget(RunDirectory(run).checkpoint_path(4), "parts", "muon_precision", "cpu")
    refuse_to_measure(monkeypatch)
    train_tiny(run, precision="auto", max_steps=8, reporter=recorder, schedule="constant")
    assert environment(run)["precision"] == environment(run)["muon_precision"] == "bfloat16"
    assert environment(run)["parts"] == 1
    assert not any("bit for bit" in line for line in recorder.warned)


def test_a_run_of_tfm_0_1_goes_on_with_a_warning(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorder: Recorder
) -> None:
    """It said neither its version nor the number of its processes."""
    stub(monkeypatch, *BF16_FASTER)
    run = tmp_path / "run"
    train_tiny(run, precision="auto", max_steps=4, schedule="constant")
    RunDirectory(run).setup.unlink()
    forget(RunDirectory(run).checkpoint_path(4), "parts", "muon_precision", "cpu", "tfm", "ranks")
    refuse_to_measure(monkeypatch)
    train_tiny(run, precision="auto", max_steps=8, reporter=recorder, schedule="constant")
    assert environment(run)["precision"] == "bfloat16"
    assert any("bit for bit" in line for line in recorder.warned)
    assert read_setup(RunDirectory(run)) is not None


def test_on_another_kind_of_device_a_run_is_settled_anew(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorder: Recorder
) -> None:
    """Begun on a GPU, in bf16; here it would be emulated."""
    stub(monkeypatch, *BF16_FASTER)
    run = tmp_path / "run"
    train_tiny(run, precision="auto", max_steps=4, schedule="constant")
    path = RunDirectory(run).setup
    path.write_text(json.dumps(sealed(read_sealed(path) | {"device": "cuda"})))
    stub(monkeypatch, *FP32_FASTER)
    train_tiny(run, precision="auto", max_steps=8, reporter=recorder, schedule="constant")
    assert environment(run)["precision"] == "float32"
    assert any("bit for bit" in line for line in recorder.warned)


def forget(checkpoint: Path, *keys: str) -> None:
    """Takes keys from what a checkpoint says of its environment, and makes its manifest fit."""
    from tfm.system.files import json_bytes, sha256_file

    path, manifest = checkpoint / "state.json", checkpoint / "manifest.json"
    state = json.loads(path.read_text())
    state["environment"] = {k: v for k, v in state["environment"].items() if k not in keys}
    path.write_text(json.dumps(state))
    listed = json.loads(manifest.read_text())
    listed["files"]["state.json"] = {"sha256": sha256_file(path), "size": path.stat().st_size}
    manifest.write_bytes(json_bytes(listed))


SOUND: dict[str, Any] = {
    "precision": "bf16",
    "muon_precision": "fp32",
    "division": {"ranks": 2, "threads": 1, "parts": 3},
    "device": "cpu",
    "processor": "a processor",
    "rates": {"layers": {"fp32": 1.5, "bf16": 2.5}},
}


def test_a_setup_is_read_as_it_was_written(tmp_path: Path) -> None:
    RunDirectory(tmp_path).setup.write_text(json.dumps(sealed(SOUND)))
    setup = read_setup(RunDirectory(tmp_path))
    assert setup is not None and setup.as_json() == SOUND
    assert (setup.division, setup.rates["layers"]) == (Division(2, 1, 3), Rates(1.5, 2.5))


@pytest.mark.parametrize(
    "content",
    [
        *("", "null", "[]", "{}"),
        json.dumps(SOUND | {"precision": "fp8"}),
        json.dumps(SOUND | {"muon_precision": ["fp32"]}),
        json.dumps(SOUND | {"division": {"ranks": 0, "threads": 1, "parts": 1}}),
        json.dumps(SOUND | {"division": {"ranks": "2", "threads": 1, "parts": 1}}),
        json.dumps(SOUND | {"rates": {"layers": 7}}),
        json.dumps(SOUND | {"more": 1}),
        json.dumps(sealed(SOUND) | {"precision": "fp32"}),
    ],
)
def test_a_setup_that_is_no_setup_is_passed_over(tmp_path: Path, content: str) -> None:
    RunDirectory(tmp_path).setup.write_text(content)
    assert read_setup(RunDirectory(tmp_path)) is None


def test_a_model_that_the_machine_cannot_hold_is_refused_before_anything_is_measured(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_to_measure(monkeypatch)
    monkeypatch.setattr(setups, "physical_memory", lambda: 50_000)
    with pytest.raises(OutOfMemory, match=r"needs 0\.\d GB of memory at least, and this machine has 0\.0"):
        train_tiny(tmp_path / "run", precision="auto", max_steps=4)
    monkeypatch.setattr(setups, "physical_memory", lambda: None)  # some systems do not tell
    train_tiny(tmp_path / "run", precision="fp32", max_steps=4)


def test_another_configuration_is_measured_anew(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier start of other settings never came to a checkpoint."""
    stub(monkeypatch, *BF16_FASTER)
    train_tiny(tmp_path / "run", precision="auto", max_steps=4)
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    stub(monkeypatch, *FP32_FASTER)
    train_tiny(tmp_path / "run", precision="auto", seed=2, max_steps=4)
    assert environment(tmp_path / "run")["precision"] == "float32"


def test_a_gpu_is_not_divided() -> None:
    config = TrainingConfig(grad_accum_steps=4)
    assert divide_update(config, tiny_model(), CUDA).ranks == divide_update(config, tiny_model(), CUDA).parts == 1
    with pytest.raises(UsageError, match="torchrun"):
        check_device(TrainingConfig(ranks=2), CUDA)


@pytest.mark.parametrize(("batches", "parts"), [(1, 4), (3, 2), (4, 1), (6, 1)])
def test_every_gpu_of_torchrun_has_something_to_do(monkeypatch: pytest.MonkeyPatch, batches: int, parts: int) -> None:
    monkeypatch.setattr(setups, "started_by_torchrun", lambda: Ranks(0, 4))
    config = TrainingConfig(grad_accum_steps=batches)
    found = divide_update(config, tiny_model(), CUDA)
    assert (found.ranks, found.parts) == (4, parts)


def test_bf16_is_emulated_on_a_cpu_but_refused_on_a_gpu_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    computes: Callable[[bool], None] = lambda yes: monkeypatch.setattr(setups, "computes_bf16", lambda _: yes)  # noqa: E731
    computes(False)
    check_device(TrainingConfig(precision="bf16"), CPU)
    with pytest.raises(UsageError, match="use --precision fp32"):
        check_device(TrainingConfig(precision="bf16"), CUDA)
    computes(True)
    check_device(TrainingConfig(precision="bf16"), CUDA)


def test_parts_of_a_batch_are_shared(train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One batch in three parts, for three processes and for one: dropout is drawn for each part."""
    settings: dict[str, Any] = {"max_steps": 12, "grad_accum_steps": 1, "max_tokens_per_batch": 1024}
    cut(monkeypatch, parts=3)
    for name, ranks in (("together", 3), ("alone", 1)):
        train_tiny(tmp_path / name, ranks=ranks, precision="fp32", **settings)
    assert metrics(tmp_path / "together") == pytest.approx(metrics(tmp_path / "alone"), rel=1e-4)


@pytest.mark.skipif(shutil.which("taskset") is None, reason="needs taskset")
def test_two_processes_on_one_core(configure: Configure, train_tiny: TrainTiny, tmp_path: Path) -> None:
    """Slower than need be, but right."""
    config = tmp_path / "config.yaml"
    config.write_text(render_config(configure(ranks=2, precision="fp32", max_steps=8)))
    command = [sys.executable, "-m", "tfm.cli", "train", "--config", config, "--run", tmp_path / "pinned"]
    done = subprocess.run(["taskset", "-c", "0", *command], capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "2 processes of 1 thread" in done.stderr
    train_tiny(tmp_path / "free", ranks=2, precision="fp32", max_steps=8)
    assert fingerprint(tmp_path / "pinned", 8) == fingerprint(tmp_path / "free", 8)
