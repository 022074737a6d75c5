"""The exported directory: what is in it, what it replaces, and that its README translates as the run does."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.pieces import EOS

from tfm.data.tokenizer import Tokenizer
from tfm.engine.export import directory as export_directory
from tfm.engine.export import readme as export_readme
from tfm.engine.export.directory import export_checkpoint
from tfm.engine.export.parity import as_ctranslate2
from tfm.engine.runs.checkpoint import read_description
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.translator import Translator
from tfm.seq2seq.decoding.config import DecodingConfig
from tfm.system.errors import EnvironmentFault, ModelError, UsageError


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def export(run: Path, output: Path, **options: Any) -> Path:
    export_checkpoint(RunDirectory(run), RunDirectory(run).find_model(), output, **options)
    return output


@pytest.fixture(scope="module")
def separate_run(trained_run: Callable[..., Path]) -> Path:
    """A run with two vocabularies."""
    decoding = DecodingConfig(beam_size=4, length_penalty=1.1)
    return trained_run(separate=True, decoding=decoding, norm_order="pre", num_encoder_layers=1, num_decoder_layers=1)


def test_what_an_export_holds(run_directory: Path, tmp_path: Path) -> None:
    output = export(run_directory, tmp_path / "made" / "export")
    assert files(output) == {
        *(
            "model.bin",
            "config.json",
            "shared_vocabulary.json",
            "README.md",
            "export.json",
            "model.json",
            "manifest.json",
        ),
        *("tokenizer/tokenizer.model", "tokenizer/tokenizer.vocab", "tokenizer/tokenizer.json"),
    }
    assert list(output.parent.iterdir()) == [output]
    tokenizer = Tokenizer.load(output / "tokenizer")
    names = json.loads((output / "shared_vocabulary.json").read_text())
    assert names == [tokenizer.tgt.piece(i) for i in range(len(tokenizer.tgt))]
    config = json.loads((output / "config.json").read_text())
    assert (config["add_source_bos"], config["add_source_eos"], config["decoder_start_token"]) == (False, True, "<s>")
    origin = json.loads((output / "export.json").read_text())
    assert origin["checkpoint"].endswith("step-000020"), "the best"
    assert read_description(output).tokenizer_sha256 == tokenizer.sha256


def test_two_vocabularies_are_two_files(separate_run: Path, tmp_path: Path) -> None:
    output = export(separate_run, tmp_path / "export", quantization="int8")
    assert {"source_vocabulary.json", "target_vocabulary.json", "tokenizer/src.model"} < files(output)


def readme_translate(output: Path, texts: list[str]) -> list[str]:
    """Runs the Python of an export's README, on other texts."""
    (code,) = re.findall(r"```python\n(.*?)```", (output / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    code = code.replace('print(translate(["One sentence."]))', "print(json.dumps(translate(json.load(sys.stdin))))")
    command = [sys.executable, "-c", "import json, sys\n" + code]
    done = subprocess.run(command, cwd=output, input=json.dumps(texts), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_readme_translates_as_the_run_does(
    separate_run: Path, tmp_path: Path, pairs: list[tuple[str, str]]
) -> None:
    output = export(separate_run, tmp_path / "export")
    texts = [src for src, _ in pairs] + ["a house finds  a cafe\u0301.", "my\tsister sees the house."]
    translator = Translator.load(separate_run, device="cpu")
    ours = [one.text for one in translator.translate(texts, search=as_ctranslate2(translator.search()))]
    assert len(set(ours)) >= 10
    assert readme_translate(output, texts) == ours


def test_an_earlier_export_is_replaced_and_nothing_else(run_directory: Path, tmp_path: Path) -> None:
    output = export(run_directory, tmp_path / "export")
    before = (output / "model.bin").stat().st_size
    (output / "notes.txt").write_text("mine")
    export(run_directory, output, quantization="int8")
    assert (output / "model.bin").stat().st_size < before
    assert not (output / "notes.txt").exists()
    (tmp_path / "empty").mkdir()
    export(run_directory, tmp_path / "empty")

    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("years of work")
    (tmp_path / "file").write_text("years of work")
    for name in ("full", "file"):
        with pytest.raises(UsageError, match="was not made by tfm export"):
            export(run_directory, tmp_path / name)
    with pytest.raises(UsageError, match="was not made by tfm export"):
        export(run_directory, run_directory)
    assert (tmp_path / "full" / "thesis.txt").read_text() == (tmp_path / "file").read_text() == "years of work"


def test_nothing_half_written_is_left(run_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> str:
        raise OSError(28, "No space left on device")

    output = export(run_directory, tmp_path / "export")
    before = (output / "export.json").read_bytes()
    monkeypatch.setattr(export_readme, "render_readme", fail)
    for target in (output, tmp_path / "other"):
        with pytest.raises(EnvironmentFault, match="No space left"):
            export(run_directory, target, quantization="int8")
    assert list(tmp_path.iterdir()) == [output]
    assert (output / "export.json").read_bytes() == before


def test_what_cannot_be_exported_is_refused(
    run_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_directory, "why_not_exportable", lambda *_, **__: ["it is odd", "it is old"])
    with pytest.raises(ModelError, match="cannot be exported to CTranslate2: it is odd; it is old"):
        export(run_directory, tmp_path / "export")
    assert not list(tmp_path.iterdir())


def test_another_tokenizer_is_refused(run_directory: Path, tmp_path: Path, separate_run: Path) -> None:
    with pytest.raises(ModelError, match="is not the tokenizer"):
        export_checkpoint(RunDirectory(separate_run), RunDirectory(run_directory).find_model(), tmp_path / "export")


def test_without_the_extra_one_line_says_what_to_install(
    run_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    monkeypatch.setitem(sys.modules, "ctranslate2.specs", None)
    with pytest.raises(EnvironmentFault, match=r"pip install ctranslate2"):
        export(run_directory, tmp_path / "export")


def test_forbidden_pieces_are_the_control_pieces_but_eos(tokenizer: Tokenizer) -> None:
    forbidden = tokenizer.tgt.forbidden_ids()
    assert EOS not in forbidden
    assert {tokenizer.tgt.piece(i) for i in forbidden} == {
        *("<pad>", "<unk>", "<s>"),
        *(f"<reserved_{i:02d}>" for i in range(16)),
    }
