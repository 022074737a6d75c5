"""All that is to be measured with a GPU is tried on the CPU, at tiny sizes; no part ends the others."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"
PARTS = ("machine", "correct", "seconds_to_40", "speed", "graphs", "peer", "compiled", "cores", "base_preset")


def environment() -> dict[str, str]:
    others = {key: value for key, value in os.environ.items() if key != "TFM_CORPORA"}
    return {**others, "OMP_NUM_THREADS": "1"}


def run_gpu(folder: Path, *flags: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, FOLDER / "gpu.py", "--output", folder / "report", "--work", folder / "work", *flags]
    return subprocess.run(
        list(map(str, command)), cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )


def run_code(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, cwd=FOLDER, env=environment(), capture_output=True, text=True, check=False)


def parts_of(folder: Path) -> dict[str, Any]:
    report = json.loads((folder / "gpu.json").read_text(encoding="utf-8"))
    assert report["machine"].startswith("* date ")
    return {part["name"]: part for part in report["parts"]}


def records_of(part: dict[str, Any]) -> dict[str, Any]:
    assert part["state"] == "done", part
    records = {record["what"]: record for record in part["records"]}
    assert not [record for record in records.values() if "error" in record], records
    return {what: record.get("figures", record) for what, record in records.items()}


def check_forty(parts: dict[str, Any]) -> None:
    forty = records_of(parts["seconds_to_40"])
    assert forty["training"]["updates"] == 20 and forty["training"]["device"] == "cpu"
    assert forty["greedy outputs on both devices"] == {"equal_percent": 100, "sentences": 40}
    assert {"test, greedy", "test, beam 5"} <= forty.keys()


def check_speed(parts: dict[str, Any]) -> None:
    speed = records_of(parts["speed"])
    assert speed["base, 1 x 25,000 tokens"]["percent_of_product"] > 0
    assert speed["stages of an update, multi30k, 1 x 4,096 tokens"].keys() >= {"passes_ms", "plain_optimizer_ms"}
    profile = next(one for one in parts["speed"]["records"] if one["what"].startswith("profile of an update, base"))
    assert len(profile["detail"]["operations"]) == 15


def check_graphs(parts: dict[str, Any]) -> None:
    assert "graph_is_faster_by" in records_of(parts["graphs"])["passes over a batch, multi30k, 1 x 4,096 tokens"]


def test_parts_run_tiny_on_the_cpu(tmp_path: Path) -> None:
    done = run_gpu(tmp_path, "--tiny", "--device", "cpu", "--parts", "machine,seconds_to_40,graphs")
    assert done.returncode == 0, done.stderr
    parts = parts_of(tmp_path / "report")
    assert list(parts) == ["machine", "seconds_to_40", "graphs"]
    assert records_of(parts["machine"])["product"]["tflops"] > 0
    check_forty(parts)
    check_graphs(parts)
    table = (tmp_path / "report" / "table.md").read_text(encoding="utf-8")
    assert "| graphs | passes over a batch, multi30k, 1 x 4,096 tokens | " in table
    assert table in done.stdout


@pytest.mark.slow
def test_all_parts_run_tiny_on_the_cpu(tmp_path: Path) -> None:
    done = run_gpu(tmp_path, "--tiny", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    parts = parts_of(tmp_path / "report")
    assert list(parts) == list(PARTS)
    assert records_of(parts["machine"])["product"]["tflops"] > 0
    check_forty(parts)
    check_speed(parts)
    check_graphs(parts)
    table = (tmp_path / "report" / "table.md").read_text(encoding="utf-8")
    assert "| speed | base, 1 x 25,000 tokens | tokens_per_second " in table
    correct = records_of(parts["correct"])
    for architecture in ("encoder_decoder", "decoder_only", "encoder_only"):
        assert correct[f"{architecture}, float32"]["below_aim"]
        assert 0 < correct[f"{architecture}, bfloat16"]["gradients"] < 0.1
    assert correct["a run stopped and resumed"]["bit_for_bit"] == "yes"
    assert correct["tests"]["exit_code"] == 0
    assert "compiled_ms" in records_of(parts["compiled"])["torch.compile traced, multi30k, 1 x 4,096 tokens"]
    assert {"training, 1 core", "decoding, 1 core"} <= records_of(parts["cores"]).keys()
    assert records_of(parts["base_preset"])["pairs-1m"]["updates"] == 20
    records_of(parts["peer"])


FOUR_PARTS = """
import sys, time
from pathlib import Path
from gpu import Part, run_all, table

record = "import json, sys; print(json.dumps({'what': 'first', 'figures': {'x': 1.5}}), flush=True); "
child = "import subprocess; subprocess.Popen([sys.executable, '-c', CHILD]); "
folder = sys.argv[1]
forever = "import time, pathlib; [pathlib.Path('" + folder + "/alive').touch() or time.sleep(0.05) for _ in range(600)]"
def python(name, code, seconds):
    return Part(name, lambda given: [sys.executable, "-c", code], seconds)

parts = [
    python("fails", record + "print('noise'); raise ValueError('the cause')", 20),
    python("hangs", record + child.replace("CHILD", repr(forever)) + forever, 3),
    Part("absent", lambda given: [folder + "/no-such-program"], 20),
    python("works", record, 20),
]
outcomes = run_all(parts, float(sys.argv[2]), Path(folder), time.monotonic())
print(table(outcomes))
"""


def test_a_part_that_fails_and_one_beyond_its_limit_do_not_end_the_others(tmp_path: Path) -> None:
    done = run_code(FOUR_PARTS, tmp_path, 1)
    assert done.returncode == 0, done.stderr
    parts = parts_of(tmp_path)
    states = {name: part["state"] for name, part in parts.items()}
    assert states == {"fails": "failed", "hangs": "over its limit", "absent": "failed", "works": "done"}
    assert "ValueError: the cause" in parts["fails"]["complaint"]
    for name in ("fails", "hangs", "works"):
        assert parts[name]["records"] == [{"what": "first", "figures": {"x": 1.5}}], "what was printed is kept"
    assert "| works | first | x 1.50 |" in done.stdout
    assert "ValueError: the cause" in done.stdout
    before = (tmp_path / "alive").stat().st_mtime
    time.sleep(0.5)
    assert (tmp_path / "alive").stat().st_mtime == before, "what the part had started has ended with it"


def test_no_part_begins_when_the_time_is_over(tmp_path: Path) -> None:
    done = run_code(FOUR_PARTS, tmp_path, 0.08)
    assert done.returncode == 0, done.stderr
    assert {part["state"] for part in parts_of(tmp_path).values()} == {"no time left"}


def test_what_fails_inside_a_part_is_a_record_and_a_module_that_is_missing_is_skipped() -> None:
    code = (
        "from gpu_records import attempt, emit\n"
        "with attempt('broken'):\n    raise RuntimeError('out of luck')\n"
        "with attempt('peer'):\n    import no_such_module\n"
        "emit('other', x=float('nan'), y=1 / 3)\n"
    )
    done = run_code(code)
    assert done.returncode == 0, done.stderr
    broken, peer, other = map(json.loads, done.stdout.splitlines())
    assert broken == {"what": "broken", "error": "RuntimeError\nout of luck"}
    assert peer == {"what": "peer", "skipped": "no_such_module is not installed"}
    assert other == {"what": "other", "figures": {"x": "nan", "y": 0.333333}}


def test_a_part_that_there_is_not_is_named(tmp_path: Path) -> None:
    done = run_gpu(tmp_path, "--parts", "speed,beauty")
    assert done.returncode == 1
    assert "there is no part beauty; there are machine, correct" in done.stderr


def test_operations_of_a_token_are_counted_as_written_out() -> None:
    code = (
        "import torch\n"
        "from gpu_models import BASE, build_bench, flops_per_token\n"
        "bench = build_bench(BASE, torch.device('cpu'), tiny=True)\n"
        "print(flops_per_token(bench), bench.settings.tokenizer.vocab_size)\n"
        "print(bench.pairs.src_lengths.tolist())\nprint(bench.pairs.tgt_lengths.tolist())\n"
    )
    done = run_code(code)
    assert done.returncode == 0, done.stderr
    said, *lines = done.stdout.splitlines()
    found, size = map(float, said.split())
    D, F = 16, 32
    total = 0.0
    for source, target in zip(*map(json.loads, lines), strict=True):
        s, t = source + 1, target + 1
        products = s * (4 * D * D + 2 * D * F) + s * 2 * D * D + t * (6 * D * D + 2 * D * F) + t * D * size
        total += 6 * products + 12 * D * (s * s + t * t + t * s)
    assert found == pytest.approx(total / sum(target + 1 for target in json.loads(lines[1])))


def test_time_that_kernels_cover_counts_once_where_they_overlap() -> None:
    done = run_code("from gpu_speed import covered; print(covered([(4, 6), (0, 2), (1, 3), (5, 5.5)]))")
    assert done.stdout.strip() == "5.0", done.stderr
