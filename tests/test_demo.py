"""`make demo`: the default model learns the toy language well enough to translate what it has never seen."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.command import error_of, records, run_command

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


def make_demo(run: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    command = ["make", "--no-print-directory", "-C", str(ROOT), "demo", f"DEMO_RUN={run}"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "1,000 sentences" in done.stdout
    assert done.stderr.count("reference  ") >= 5
    return done


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_make_demo_reaches_95_percent_on_unseen_combinations(tmp_path: Path) -> None:
    done = make_demo(tmp_path / "toy")
    exact = re.search(r"^exact +([\d.]+)", done.stdout, re.MULTILINE)
    assert exact is not None, done.stdout
    assert float(exact[1]) >= 95.0
    assert "die alte Frau gibt dem Kind zwei rote Äpfel" in done.stdout


SMALL = [
    *("--max-steps", "60"),
    *("--set", "training.validate_every=30"),
    *("--set", "training.validation_sentences=5"),
    *("--set", "training.learning_rate=0.01"),
    *("--set", "training.warmup_steps=10"),
    *("--set", "model.d_model=64"),
    *("--set", "model.d_ff=128"),
    *("--set", "model.num_heads=2"),
    *("--set", "model.num_encoder_layers=1"),
    *("--set", "model.num_decoder_layers=1"),
]


def test_make_demo_takes_a_model_that_has_begun_to_learn_and_does_the_rest(tmp_path: Path) -> None:
    """A small one, after 60 updates.

    To guess all pieces alike is 7.3 nats; to know how often each of them comes, 5.2.
    """
    done = run_command("train", "--run", "toy", *SMALL, cwd=tmp_path)
    assert done.returncode == 0, error_of(done)
    logged = records(tmp_path / "toy" / "metrics.jsonl")
    first, last = (record["loss"] for record in logged if record["kind"] == "validation")
    assert last < first < 7 and last < 5
    assert "already finished at step 60" in make_demo(tmp_path / "toy").stderr
