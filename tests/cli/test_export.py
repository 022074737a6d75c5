"""`tfm export` end to end: what it writes and says, what it refuses, and what happens without the extra."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from helpers.command import Tfm, error_of, write_lines


def test_an_export_is_written_compared_and_usable(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    done = tfm("export", "--run", tiny_run, "--output", tmp_path / "made", cwd=tiny_run.parent)
    said = error_of(done)
    assert done.returncode == 0, said
    assert done.stdout.decode() == f"{tmp_path / 'made'}\n"
    assert " (float32, 0.1 MB); " in said
    (greedy,) = (line for line in said.splitlines() if line.startswith("greedy"))
    assert re.search(r" (\d+) of \1 ", greedy), greedy
    assert "100.0 %" in greedy
    assert "beam 5, length penalty 1.5" in said
    assert "warning" not in said

    code = (
        "import ctranslate2\n"
        "translator = ctranslate2.Translator('made')\n"
        "print(len(translator.translate_batch([['▁', 'one']])[0].hypotheses))"
    )
    used = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert used.stdout == "1\n"


def test_quantized_replacing_an_earlier_one(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    flags = ["export", "--run", tiny_run, "--output", tmp_path / "made", "--format", "ctranslate2"]
    assert tfm(*flags, "--check", 0).returncode == 0
    done = tfm(*flags, "--checkpoint", "15", "--quantization", "int8", "--check", 4, cwd=tiny_run.parent)
    said = error_of(done)
    assert done.returncode == 0, said
    assert "BLEU" in said
    assert " of 4 " in said
    origin = json.loads((tmp_path / "made" / "export.json").read_text())
    assert origin["quantization"] == "int8"
    assert origin["checkpoint"].endswith("step-000015")


def test_without_the_validation_set_the_export_is_made_all_the_same(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    done = tfm("export", "--run", tiny_run, "--output", "made")  # train.tsv lies elsewhere
    assert done.returncode == 0, error_of(done)
    assert "not compared with the run: its validation set is not there" in error_of(done)
    assert (tmp_path / "made" / "model.bin").exists()


def test_a_page_is_written_and_compared(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    flags = ["export", "--run", tiny_run, "--output", tmp_path / "made.html", "--format", "html", "--check", 8]
    done = tfm(*flags, cwd=tiny_run.parent)
    said = error_of(done)
    assert done.returncode == 0, said
    assert done.stdout.decode() == f"{tmp_path / 'made.html'}\n"
    assert re.search(r"^BLEU [\d.]+, with weights in int8 [\d.]+ \([+-][\d.]+\)", said, re.MULTILINE)
    assert f"open {tmp_path / 'made.html'} in a browser" in said
    assert (tmp_path / "made.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    if shutil.which("node") is None:
        assert "not compared with the run: that needs node" in said
        pytest.skip("node is not installed")
    assert "greedy: 8 of 8 outputs (100.0 %) are those of the run, with weights in float32; BLEU" in said
    assert "beam 5: 8 of 8 outputs" in said
    assert "warning" not in said


@pytest.mark.parametrize("name", ["text", "encoder_only", "decoder_only"])
def test_every_machine_can_be_a_page(tfm: Tfm, tmp_path: Path, name: str) -> None:
    kept = Path(__file__).parents[1] / "keepsakes" / name
    done = tfm("export", "--run", kept, "--output", "made.html", "--format", "html", "--quantization", "float16")
    assert done.returncode == 0, error_of(done)
    purpose = {"text": "language model", "encoder_only": "sentence encoder", "decoder_only": "translator"}[name]
    assert f'data-purpose="{purpose}"' in (tmp_path / "made.html").read_text(encoding="utf-8")


def test_without_node_a_page_is_made_all_the_same(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    flags = ["export", "--run", tiny_run, "--output", tmp_path / "made.html", "--format", "html", "--check", 2]
    done = tfm(*flags, cwd=tiny_run.parent, env={"PATH": str(tmp_path)})
    assert done.returncode == 0, error_of(done)
    assert "not compared with the run: that needs node, a JavaScript engine, which is not here" in error_of(done)
    assert (tmp_path / "made.html").exists()


def test_wrong_use(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "thesis.txt", ["years of work"])
    for arguments, code, words in [
        (["--output", "x", "--format", "onnx"], 2, "format must be ctranslate2, html or argos, but"),
        (["--output", "x", "--format", "html", "--quantization", "int16"], 2, "must be one of int8, float16, float32,"),
        (["--output", ".", "--format", "html"], 5, "it is a directory; name a file"),
        (["--output", "x", "--quantization", "int4"], 2, "quantization must be one of float32, "),
        (["--output", "x", "--checkpoint", "7"], 4, "no checkpoint '7'"),
        (["--output", "thesis.txt"], 2, "thesis.txt exists and was not made by tfm export"),
        (["--output", "."], 2, "was not made by tfm export"),
        (["--format", "html"], 2, "say where to: --output PATH"),
        (["--output", "x", "--format", "argos"], 2, "does not know them; add --src-language CODE"),
        (["--output", "x", "--tgt-language", "de"], 2, "take effect only with --format argos"),
    ]:
        done = tfm("export", "--run", tiny_run, *arguments)
        assert done.returncode == code, error_of(done)
        assert words in error_of(done)
        assert error_of(done).count("tfm: error: ") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_alone_it_lists_the_formats(tfm: Tfm) -> None:
    done = tfm("export")
    assert done.returncode == 0 and not done.stderr
    header, *rows = done.stdout.decode().splitlines()
    assert [row.split()[0] for row in rows] == ["ctranslate2", "html", "argos"]
    for column in ("what it makes", "what it needs", "what it cannot do"):
        assert all(row[header.index(column) - 1] == " " != row[header.index(column)] for row in rows), "aligned"
    assert max(map(len, (header, *rows))) <= 120


def test_a_package_for_argos_is_written_and_compared(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    flags = ["export", "--run", tiny_run, "--output", tmp_path / "made.argosmodel", "--format", "argos", "--check", 8]
    done = tfm(*flags, "--src-language", "en", "--tgt-language", "de", cwd=tiny_run.parent)
    assert done.returncode == 0, error_of(done)
    assert "(int8, " in error_of(done) and " of 8 " in error_of(done)
    assert zipfile.is_zipfile(tmp_path / "made.argosmodel")


def test_without_the_extra_one_line_says_what_to_install(installed: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked" / "ctranslate2.py").write_text("raise ModuleNotFoundError(\"No module named 'ctranslate2'\")")
    path = os.pathsep.join([str(tmp_path / "blocked"), os.environ.get("PYTHONPATH", "")])
    done = installed("export", "--run", tiny_run, "--output", "made", env={"PYTHONPATH": path})
    assert done.returncode == 5
    assert error_of(done).splitlines()[-1].endswith("pip install ctranslate2")
    assert not (tmp_path / "made").exists()
    assert installed("info", "--run", tiny_run, env={"PYTHONPATH": path}).returncode == 0


@pytest.fixture(scope="module")
def odd_run(
    forked: Tfm, tmp_path_factory: pytest.TempPathFactory, sentences: list[tuple[str, str]]
) -> tuple[Path, str]:
    """A run that cannot be exported, and what its training said."""
    folder = tmp_path_factory.mktemp("odd")
    write_lines(folder / "train.tsv", ["\t".join(pair) for pair in sentences])
    sizes = {"d_model": 4, "d_ff": 4, "num_heads": 32_768, "d_k": 1, "d_v": 1}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1, "max_seq_len": 32}
    flags = [flag for name, size in {**sizes, **layers}.items() for flag in ("--set", f"model.{name}={size}")]
    flags += ["--set", "tokenizer.vocab_size=300", "--set", "training.max_tokens_per_batch=32"]
    flags += ["--set", "training.validation_sentences=1", "--set", "decoding.beam_size=1"]
    flags += ["--set", "model.positions=sinusoidal"]  # rotary ones need an even d_k
    done = forked("train", "--data", "train.tsv", "--run", "odd", "--max-steps", 1, *flags, cwd=folder)
    assert done.returncode == 0, done.stderr.decode()
    return folder / "odd", done.stderr.decode()


def test_what_cannot_be_exported_is_said_before_training_and_after(tfm: Tfm, odd_run: tuple[Path, str]) -> None:
    run, said = odd_run
    reason = "num_heads is 32,768, and CTranslate2 takes at most 32,767"
    assert f"tfm export will not be able to write this model: {reason}" in said
    assert f"not possible: {reason}" in tfm("info", "--run", run).stdout.decode()
    done = tfm("export", "--run", run, "--output", "made")
    assert done.returncode == 4
    assert f"cannot be exported to CTranslate2: {reason}" in error_of(done)


def test_what_can_is_said_by_info_alone(tfm: Tfm, tiny_run: Path) -> None:
    assert json.loads(tfm("info", "--run", tiny_run, "--json").stdout)["export"] == "ctranslate2"


@pytest.fixture(scope="module")
def exported(forked: Tfm, tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny run for CTranslate2."""
    made = tmp_path_factory.mktemp("exports") / "tiny.ct2"
    done = forked("export", "--run", tiny_run, "--output", made, "--check", 0, cwd=made.parent)
    assert done.returncode == 0, error_of(done)
    return made


def test_an_export_is_a_run_to_translate_and_evaluate_with(
    tfm: Tfm, tiny_run: Path, exported: Path, sentences: list[tuple[str, str]], tmp_path: Path
) -> None:
    lines = [*(src for src, _ in sentences[:30]), "", "12 %", "one %s two"]
    write_lines(tmp_path / "lines.txt", lines)
    write_lines(tmp_path / "table.csv", ["source,target", *(f'"{line}",' for line in lines)])
    write_lines(tmp_path / "pairs.tsv", ["\t".join(pair) for pair in sentences[:30]])
    outputs: list[list[bytes]] = []
    for number, run in enumerate((tiny_run, exported)):
        flags = ("--run", run, "--beam-size", 1)
        names = [f"{number}.txt", f"{number}.csv"]
        for name, source in zip(names, ("lines.txt", "table.csv"), strict=True):
            done = tfm("translate", *flags, "--input", source, "--output", name)
            assert done.returncode == 0, error_of(done)
        told = json.loads(tfm("evaluate", *flags, "--data", "pairs.tsv", "--json").stdout)
        piped = tfm("translate", *flags, "--prefix", "eins", stdin=(tmp_path / "lines.txt").read_bytes()).stdout
        files = [(tmp_path / name).read_bytes() for name in names]
        outputs.append([*files, piped, json.dumps(told["scores"]).encode()])
    assert outputs[0] == outputs[1]
    assert outputs[1][0].count(b"\n") == len(lines)


def test_what_an_export_cannot_do_names_the_run(tfm: Tfm, tiny_run: Path, exported: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "pairs.tsv", ["one\teins"])
    for *command, code in [
        ("translate", "one two", "--attention", "a.jsonl", 2),
        ("explain", "one two", "--format", "text", 4),
        ("info", 4),
        ("check", "--data", "pairs.tsv", 4),
        ("generate", "one", 4),
        ("export", "--output", "again.ct2", 4),
    ]:
        done = tfm(command[0], "--run", exported, *command[1:])
        assert done.returncode == code, error_of(done)
        assert error_of(done).splitlines()[-1].endswith(f"take the run it was made of: {tiny_run}")
    done = tfm("translate", "--run", exported, "--input", "pairs.tsv", "--output", exported / "model.bin")
    assert done.returncode == 2 and "would overwrite" in error_of(done)
    done = tfm("translate", "--run", exported, "--checkpoint", "20", "one")
    assert done.returncode == 2 and "an export of one checkpoint" in error_of(done)
