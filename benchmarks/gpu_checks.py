"""Two parts of gpu.py: what the machine is, and whether the device computes what the CPU does."""

import importlib.util
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from common import ROOT, TFM, output_of
from corpora import head
from gpu_models import MULTI30K, Bench, Case, build_bench, place, precision, seconds_of_call, synchronize
from gpu_records import Options, attempt, emit, run_part, skip
from gpu_runs import data_flags, set_flags, texts, tiny_settings

from tfm.engine.runs.directory import RunDirectory
from tfm.engine.training.build import build_loss
from tfm.seq2seq.model.masks import PAD_ID

ARCHITECTURES = {"encoder_decoder": "multi30k", "decoder_only": "multi30k-decoder", "encoder_only": "multi30k-encoder"}
"""Each with the preset whose sizes it has."""
AIM = 1e-4
"""Largest relative error in single precision."""
STEPS = 20
"""After so many updates a run is stopped; it has twice as many."""
RESUMED_SETTINGS = [
    # The rates of these two do not depend on the number of updates: a warm-up longer than the run would be cut.
    "training.schedule=constant",
    "training.warmup_steps=10",
    "training.validate_every=1000",
    "training.checkpoint_every=1000",
    "training.validation_sentences=4",
    "tokenizer.vocab_size=1000",
]
TEST_SECONDS = 52
MARK = "cuda.is_available"
"""A module of tests that holds this has tests for a GPU."""


def machine(options: Options) -> None:
    """What the card is, and how fast it multiplies, copies and starts a kernel."""
    device = place(options)
    with attempt("device"):
        named = torch.cuda.get_device_name() if device.type == "cuda" else device.type
        emit("device", name=named, torch=torch.__version__, cuda=torch.version.cuda, python=sys.version.split()[0])
    with attempt("nvidia-smi"):
        if shutil.which("nvidia-smi") is None:
            skip("nvidia-smi", "it is not there")
        else:
            query = "name,driver_version,memory.total,power.limit,clocks.max.sm,mig.mode.current"
            said = output_of(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"])
            emit("nvidia-smi", said=said.strip())
    with attempt("product"):
        product(256 if options.tiny else 8192, device)
    with attempt("copy"):
        copy((1 << 20) if options.tiny else (1 << 30), device)
    with attempt("launch"):
        x = torch.zeros(1, device=device)
        seconds = min(seconds_of_call(lambda: x.add_(1), device, 1000) for _ in range(5))
        emit("launch", microseconds=1e6 * seconds)
    siblings = Path("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    if siblings.exists():
        emit("processor", threads_beside_the_first=siblings.read_text().strip())


def product(size: int, device: torch.device) -> None:
    """A product of two square matrices in bf16."""
    x, y = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    seconds_of_call(lambda: x @ y, device, 3)
    seconds = min(seconds_of_call(lambda: x @ y, device, 10) for _ in range(5))
    emit("product", size=size, tflops=2 * size**3 / seconds / 1e12)


def copy(size: int, device: torch.device) -> None:
    """A copy of so many bytes on the device: each is read and written."""
    x = torch.zeros(size, dtype=torch.uint8, device=device)
    y = torch.empty_like(x)
    y.copy_(x)
    seconds = min(seconds_of_call(lambda: y.copy_(x), device, 5) for _ in range(5))
    emit("copy", gigabytes=size / 1e9, gigabytes_per_second=2 * size / seconds / 1e9)


def correct(options: Options) -> None:
    """The three checks at once: none of them is timed. Each takes few threads, so that they do not wait for others."""
    os.environ["OMP_NUM_THREADS"] = "2"  # of the commands that are started
    torch.set_num_threads(min(4, torch.get_num_threads()))
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(check, options) for check in (resumed, tests)]
        agreement(options)
        for one in waiting:
            one.result()


def agreement(options: Options) -> None:
    """Outputs, loss and gradients of each architecture on the device, beside the CPU in single precision."""
    torch.set_float32_matmul_precision("highest")  # no TF32
    device, cpu = place(options), torch.device("cpu")
    for architecture, preset in ARCHITECTURES.items():
        with attempt(architecture):
            case: Case = replace(MULTI30K, preset=preset, pairs=2000)
            expected = computed(build_bench(case, cpu, tiny=options.tiny, dtype=torch.float32), cpu, torch.float32)
            for dtype in dict.fromkeys((torch.float32, torch.bfloat16, precision(device))):
                name = f"{architecture}, {str(dtype).removeprefix('torch.')}"
                with attempt(name):
                    bench = build_bench(case, device, tiny=options.tiny, dtype=dtype)
                    figures = errors(computed(bench, device, dtype), expected)
                    good = (
                        {"below_aim": all(error < AIM for error in figures.values())} if dtype == torch.float32 else {}
                    )
                    emit(name, **figures, **good)


def computed(bench: Bench, device: torch.device, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Outputs at real positions, mean loss and all gradients, in double precision on the CPU; without dropout."""
    model: Any = bench.trainer.model.eval()
    batch = max(map(bench.batch, range(8)), key=lambda batch: batch.num_tokens)
    loss, count = build_loss(bench.description, bench.settings.training, dtype)(model, batch)
    bench.trainer.gradients.clear()
    loss.backward()
    with torch.no_grad():
        if bench.settings.model.architecture == "encoder_only":
            outputs = model.embed(batch.src, dtype)
        else:
            hidden = model.hidden_states(batch.src, batch.tgt_in, dtype, batch.packing)
            outputs = model.output_layer(hidden)[batch.tgt_out != PAD_ID]
    synchronize(device)
    found = {"outputs": outputs, "loss": loss.detach() / count, "gradients": bench.trainer.gradients.flat[:-3]}
    return {name: tensor.double().cpu().clone() for name, tensor in found.items()}


def errors(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> dict[str, float]:
    """Relative ones: of outputs and loss the largest, of gradients that of the whole vector, in length."""

    def largest(name: str) -> float:
        return ((found[name] - expected[name]).abs().max() / expected[name].abs().max()).item()

    gradients = (found["gradients"] - expected["gradients"]).norm() / expected["gradients"].norm()
    return {"outputs": largest("outputs"), "loss": largest("loss"), "gradients": gradients.item()}


def resumed(options: Options) -> None:
    """A run stopped and resumed, one that was not, and that one again: are their files the same?"""
    with attempt("resumed"):
        files = texts(options)
        folder = options.work / "resumed"
        shutil.rmtree(folder, ignore_errors=True)
        train, dev = head(files.train, folder / "train", 2000), head(files.dev, folder / "dev", 50)
        settings = [*(tiny_settings() if options.tiny else []), *RESUMED_SETTINGS]
        command = [*TFM, "train", "--config", "multi30k", "--device", options.device, *data_flags(train, dev)]
        command += set_flags(settings)

        def run(name: str, *steps: int) -> Path:
            for number in steps:
                output_of([*command, "--run", str(folder / name), "--max-steps", str(number)])
            return RunDirectory(folder / name).find_model("last").checkpoint

        runs = [("whole", 2 * STEPS), ("stopped", STEPS, 2 * STEPS), ("again", 2 * STEPS)]
        with ThreadPoolExecutor() as pool:
            whole, stopped, again = pool.map(lambda one: run(*one), runs)
        for name, one in (("stopped and resumed", stopped), ("made again", again)):
            same = {path.stem: path.read_bytes() == (one / path.name).read_bytes() for path in tensors(whole)}
            emit(f"a run {name}", bit_for_bit="yes" if all(same.values()) else "no", **same)


def tensors(checkpoint: Path) -> list[Path]:
    """The files of weights, averages and moments."""
    return sorted(checkpoint.glob("*.safetensors"))


def tests(options: Options) -> None:
    """The modules of tests that have some for a GPU."""
    with attempt("tests"):
        missing = [name for name in ("pytest", "hypothesis") if importlib.util.find_spec(name) is None]
        found = sorted(path for path in (ROOT / "tests").rglob("test_*.py") if MARK in path.read_text(encoding="utf-8"))
        found = [path for path in found if "benchmarks" not in path.parts[len(ROOT.parts) :]]
        if missing or not found:
            skip("tests", f"{', '.join(missing)} not installed" if missing else "there are none")
            return
        settings = options.work / "pytest.ini"
        settings.write_text(f"[pytest]\npythonpath = {ROOT / 'tests'}\nmarkers =\n    slow: takes long\n")
        command = [sys.executable, "-m", "pytest", "-c", str(settings), "--rootdir", str(ROOT), "-m", "not slow"]
        command += ["-p", "no:cacheprovider", "--import-mode=importlib", "-q", "-rsfE", "--tb=line"]
        if options.tiny:
            command.append("--collect-only")
        limit = options.seconds if options.tiny else min(TEST_SECONDS, options.seconds)
        done = subprocess.run(
            [*command, *map(str, found)], capture_output=True, text=True, check=False, timeout=limit, cwd=ROOT
        )
        lines = (done.stdout.strip() or done.stderr.strip() or "nothing").splitlines()
        emit("tests", exit_code=done.returncode, said=lines[-1], detail=lines[-25:])


if __name__ == "__main__":
    run_part({"machine": machine, "correct": correct})
