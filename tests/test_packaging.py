"""What the wheel holds, and that the folders and the package list agree."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("cli", "configs", "data", "engine", "seq2seq", "system")


def test_the_package_list_is_the_folders_on_disk() -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    on_disk = {"tfm"} | {
        "tfm." + ".".join(init.parent.relative_to(ROOT).parts)
        for folder in FOLDERS
        for init in (ROOT / folder).rglob("__init__.py")
    }
    assert set(setuptools["packages"]) == on_disk
    assert setuptools["package-dir"] == {"tfm": "package"} | {f"tfm.{folder}": folder for folder in FOLDERS}


def test_make_installs_the_development_group() -> None:
    group = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["dev"]
    recipe = (ROOT / "Makefile").read_text().partition("$(VENV)/development:")[2].partition("@touch")[0]
    assert recipe.partition("-c constraints.txt")[2].replace("\\\n", " ").split() == group


def test_every_module_lies_in_a_package() -> None:
    for folder in FOLDERS:
        for module in (ROOT / folder).rglob("*.py"):
            assert (module.parent / "__init__.py").exists(), module


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    ignored = [f"--exclude={name}" for name in (".venv*", ".git", "./runs", "build", "./benchmarks")]
    source.mkdir()
    archive = subprocess.run(["tar", "-C", str(ROOT), *ignored, "-c", "."], capture_output=True, check=True).stdout
    subprocess.run(["tar", "-C", str(source), "-x"], input=archive, check=True)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_installs_one_import_package_and_one_command(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    roots = {name.split("/")[0] for name in names}
    assert roots == {"tfm", next(root for root in roots if root.endswith(".dist-info"))}
    entry_points = zipfile.ZipFile(wheel).read(next(n for n in names if n.endswith("entry_points.txt"))).decode()
    assert entry_points.split() == ["[console_scripts]", "tfm", "=", "tfm.cli.__main__:main"]


def test_the_wheel_holds_every_module_and_preset(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("tfm/")}
    wanted = {
        f"tfm/{path.relative_to(ROOT).as_posix()}"
        for folder in FOLDERS
        for pattern in ("*.py", "*.yaml", "page.*", "*.js", "py.typed")
        for path in (ROOT / folder).rglob(pattern)
    }
    assert names == wanted | {"tfm/__init__.py", "tfm/py.typed"}
