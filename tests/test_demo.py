"""`make demo`: the default model learns the toy language well enough to translate what it has never seen."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.timeout(900)
@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_demo_reaches_95_percent_on_unseen_combinations(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    command = ["make", "--no-print-directory", "-C", str(ROOT), "demo", f"DEMO_RUN={tmp_path / 'toy'}"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    exact = re.search(r"^exact +([\d.]+)", done.stdout, re.MULTILINE)
    assert exact is not None, done.stdout
    assert float(exact[1]) >= 95.0
    assert "1,000 sentences" in done.stdout
    assert "die alte Frau gibt dem Kind zwei rote Äpfel" in done.stdout
    assert done.stderr.count("reference  ") >= 5
