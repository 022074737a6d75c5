"""What an export keeps to be a run: read back as written, and refused where it is not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tfm.engine.export.directory import export_checkpoint
from tfm.engine.runs.checkpoint import read_description
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.runs.exported import read_export
from tfm.system.errors import ModelError

pytest.importorskip("ctranslate2")


@pytest.fixture
def exported(run_directory: Path, tmp_path: Path) -> Path:
    export_checkpoint(RunDirectory(run_directory), RunDirectory(run_directory).find_model(), tmp_path / "made")
    return tmp_path / "made"


def test_an_export_keeps_what_the_checkpoint_says(run_directory: Path, exported: Path) -> None:
    stored = read_export(exported)
    checkpoint = RunDirectory(run_directory).find_model().checkpoint
    assert stored.description == read_description(checkpoint)
    assert stored.origin.checkpoint == str(checkpoint) and stored.origin.run == str(run_directory)
    assert stored.tokenizer.sha256 == stored.description.tokenizer_sha256
    assert stored.files["model.bin"] == (exported / "model.bin").read_bytes()
    assert RunDirectory(exported).is_export and not RunDirectory(run_directory).is_export


@pytest.mark.parametrize("name", ["model.bin", "config.json", "shared_vocabulary.json", "model.json"])
def test_one_changed_byte_is_noticed(exported: Path, name: str) -> None:
    content = bytearray((exported / name).read_bytes())
    content[len(content) // 2] ^= 1
    (exported / name).write_bytes(content)
    with pytest.raises(ModelError, match=rf"{name} is damaged \(its sha256"):
        read_export(exported)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda path: (path / "model.bin").unlink(), "cannot read .*model.bin"),
        (lambda path: (path / "manifest.json").unlink(), "cannot read .*manifest.json"),
        (lambda path: (path / "export.json").write_text('{"format": 1}'), "made by another tfm.*export the run again"),
        (lambda path: (path / "export.json").write_text('{"format": 2}'), "something is missing"),
        (lambda path: (path / "export.json").write_text("{"), "it is not JSON"),
    ],
)
def test_what_is_missing_or_of_another_tfm_is_refused(
    exported: Path, change: Callable[[Path], object], words: str
) -> None:
    change(exported)
    with pytest.raises(ModelError, match=words):
        read_export(exported)
