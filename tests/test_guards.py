"""Each guard of the promise has a test that turns red when the guard is taken away."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.guards import GUARDS, Guard

import tfm.cli

ROOT = Path(__file__).parent.parent
INSTALLED = Path(tfm.cli.__file__).parent.parent


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_each_guard_is_where_the_list_has_it(guard: Guard) -> None:
    assert (ROOT / guard.file).read_text(encoding="utf-8").count(guard.text) == 1, guard.file
    file, _, name = guard.test.partition("::")
    assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), guard.test


def test_the_documentation_lists_them_all() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    listed = [line for line in page.splitlines() if line.startswith("| ") and "::" in line]
    assert listed == [f"| {guard.name} | `{guard.file}` | `{guard.test}` |" for guard in GUARDS]


@pytest.mark.slow
@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_without_the_guard_its_test_fails(guard: Guard, tmp_path: Path) -> None:
    shutil.copytree(INSTALLED, tmp_path / "tfm")
    place = tmp_path / "tfm" / guard.file
    place.write_text(place.read_text(encoding="utf-8").replace(guard.text, guard.without), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--timeout", "60", guard.test]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 1 and " failed" in found.stdout, found.stdout[-2000:]
