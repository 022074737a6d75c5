"""No command writes a file that it reads: every pair of options of every command, as the commands declare them."""

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, get_args

import pytest
import typer
from helpers.command import TFM, TINY_FLAGS, Tfm, error_of, write_lines

from tfm import engine as api
from tfm.cli.app import COMMANDS, app, command_function
from tfm.cli.options import WRITES_ATTENTION
from tfm.data.config import DataConfig
from tfm.engine import file_guard as guard
from tfm.engine.file_guard import Reads, Writes, guarded
from tfm.engine.runs.directory import RunDirectory
from tfm.system.errors import UsageError

NAME_NO_FILE = {
    *("text", "beginning", "name", "checkpoint", "device", "precision", "src_column", "tgt_column"),
    *("src_language", "tgt_language", "encoding", "prefix", "metric", "format_", "quantization", "type_", "show"),
    *("max_time", "until", "finish_in", "set_", "host", "api_key"),
}
"""Parameters that are words. What `set_` names is checked with the settings."""
HELD = b"what is not to be lost\n"


def parameters() -> Iterator[tuple[str, str, str, tuple[Any, ...]]]:
    """Command, name of the parameter, its flag if it is none by its place, and its annotation: type, then the rest."""
    for command in COMMANDS:
        for name, parameter in signature(command_function(command)).parameters.items():
            kind, *rest = get_args(parameter.annotation)
            option = next(one for one in rest if isinstance(one, typer.models.ParameterInfo))
            names = [option.default, *(option.param_decls or ())]
            flags = [one for one in names if isinstance(one, str) and one.startswith("--")]
            flag = "" if isinstance(option, typer.models.ArgumentInfo) else "--" + name.replace("_", "-")
            yield command, name, flags[0] if flags else flag, (kind, *rest)


def test_every_option_that_is_no_number_says_what_it_names() -> None:
    silent = set[str]()
    for _, name, _, (kind, *rest) in parameters():
        words = {str, Path, Any} & {kind, *get_args(kind), *(x for one in get_args(kind) for x in get_args(one))}
        if words and not any(isinstance(one, Reads | Writes) for one in rest):
            silent.add(name)
            assert Path not in words
    assert silent == NAME_NO_FILE


def test_a_path_that_says_nothing_is_no_option() -> None:
    def new(found: Annotated[Path | None, typer.Option(help="A file.")] = None) -> None:
        del found

    with pytest.raises(TypeError, match="new: --found is a path"):
        guarded(new)


def test_all_files_of_the_settings_and_of_a_run_are_known(tiny_run: Path) -> None:
    assert {one.name for one in fields(DataConfig) if one.type == list[str]} == set(guard.DATA)
    run = RunDirectory(tiny_run)
    assert set(tiny_run.iterdir()) <= {*run.files, *run.folders}


def _in_folder(folder: Path, name: str) -> tuple[str, Path]:
    return str(folder), folder / name


def _in_run(folder: Path, name: str) -> tuple[str, Path]:
    (folder / "config.yaml").write_text("data: {}\n")
    return str(folder), folder / "cache" / name


def _in_runs(folder: Path, name: str) -> tuple[str, Path]:
    (folder / "run").mkdir()
    return str(folder), Path(_in_run(folder / "run", name)[1])


READERS: dict[Reads, list[Callable[[Path, str], tuple[str, Path]]]] = {
    guard.READS_FILE: [lambda folder, name: (str(folder / name), folder / name)],
    guard.READS_CONFIG: [lambda folder, name: (str(folder / name), folder / name)],
    guard.READS_FILE_OR_FOLDER: [lambda folder, name: (str(folder / name), folder / name)],
    guard.READS_SPEC: [
        lambda folder, name: (str(folder / name), folder / name),
        lambda folder, name: (f"{folder / name}=3", folder / name),
        lambda folder, name: (f"hf:{folder}", folder / "part" / name),
        _in_folder,
    ],
    guard.READS_RUNS: [_in_runs],
    guard.READS_TOKENIZER: [_in_folder],
    guard.READS_RUN: [_in_run],
    guard.READS_RUN_OR_ONLY_ONE: [_in_run],
    guard.READS_SPEC_OR_RUN: [_in_run, _in_folder],
}
"""For each mark: makes what a command reads in a folder; the value of the option, and a file that is read then."""


def _same(held: Path, place: Path) -> Path:
    del place
    return held


def _roundabout(held: Path, place: Path) -> Path:
    (place / "there").mkdir()
    (place / "link").symlink_to(held.parent)
    return place / "there" / ".." / "link" / held.name


def _symlink(held: Path, place: Path) -> Path:
    (place / held.name).symlink_to(os.path.relpath(held, place))
    return place / held.name


def _hard_link(held: Path, place: Path) -> Path:
    (place / held.name).hardlink_to(held)
    return place / held.name


WAYS = [_same, _roundabout, _symlink, _hard_link]
WRITERS: dict[str, tuple[str, Callable[[Path], Path | None]]] = {
    "WRITES_FILE": ("held.txt", lambda path: path),
    "its unfinished file": ("held.txt.partial", lambda path: path.with_suffix("")),
    "WRITES_ATTENTION": ("held.txt", lambda path: path),
    "its pictures": ("line-000001.svg", lambda path: path.parent.with_suffix(".jsonl")),
    "WRITES_FOLDER": ("held.txt", lambda path: path.parent),
    "WRITES_RUN": ("config.yaml", lambda path: path.parent),
    "a log of it": ("metrics.jsonl", lambda path: path.parent),
    "what is removed from it": ("held.partial", lambda path: path.parent),
    "--clean": ("clean.src", lambda path: path.parent),
}
"""What a file is called that an option would overwrite, and the value of the option then."""
WRITTEN = {
    guard.WRITES_FILE: ["WRITES_FILE", "its unfinished file"],
    guard.WRITES_AS_READ: ["WRITES_FILE", "its unfinished file"],
    WRITES_ATTENTION: ["WRITES_ATTENTION", "its unfinished file", "its pictures"],
    guard.WRITES_FOLDER: ["WRITES_FOLDER"],
    guard.WRITES_RUN: ["WRITES_RUN", "a log of it", "what is removed from it"],
}
REPLACED_BY_NAME = {"WRITES_FOLDER", "its pictures", "what is removed from it"}
"""A link to what is read elsewhere may go with these: nothing is lost."""


def pairs(command: str) -> Iterator[tuple[str, Reads, str, Writes]]:
    """All pairs of an option that reads and one that writes."""
    marks = [(flag, mark) for name, _, flag, (_, *rest) in parameters() if name == command for mark in rest]
    for flag, mark in marks:
        for other_flag, other in marks:
            if isinstance(mark, Reads) and mark is not guard.READS_DATA_OF_RUN and isinstance(other, Writes):
                yield flag, mark, other_flag, other


def _content(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


WITH_OUTPUTS = sorted({name for name, *_, (_, *rest) in parameters() if any(isinstance(one, Writes) for one in rest)})
TEXT = {"explain": ["a text"], "improve": ["--tgt-text", "another"]}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("command", WITH_OUTPUTS)
def test_no_input_is_an_output(tmp_path: Path, command: str, way: Callable[[Path, Path], Path]) -> None:
    tried = 0
    for reading, mark, writing, other in pairs(command):
        for arrange in READERS[mark]:
            for kind in WRITTEN.get(other, ["--clean"]):
                if way in (_symlink, _hard_link) and kind in REPLACED_BY_NAME:
                    continue
                tried += 1
                name, value_for = WRITERS[kind]
                folder, place = tmp_path / f"in{tried}", tmp_path / f"out{tried}"
                folder.mkdir()
                place.mkdir()
                value, held = arrange(folder, name)
                held.parent.mkdir(exist_ok=True)
                held.write_bytes(HELD)
                output = value_for(way(held, place))
                before = _content(tmp_path)
                text = TEXT.get(command, []) if reading not in TEXT.get(command, []) else []  # one is taken
                line = [command, *text, *filter(None, [reading]), value, writing, str(output)]
                with pytest.raises(UsageError, match=f"^{writing} .* would overwrite .*; name another {writing}$"):
                    app(line, standalone_mode=False)
                assert _content(tmp_path) == before
    assert tried or (way in (_symlink, _hard_link) and command in ("tokenize", "export"))


def test_what_a_configuration_extends_is_read(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_bytes(HELD)
    (tmp_path / "mine.yaml").write_text("extends: run/config.yaml\n")
    with pytest.raises(UsageError, match=r"^--run .* would overwrite .*config.yaml, which --config reads"):
        app(["train", "--config", str(tmp_path / "mine.yaml"), "--run", str(tmp_path / "run")], standalone_mode=False)
    assert (tmp_path / "run" / "config.yaml").read_bytes() == HELD


def test_no_two_outputs_are_one_file(tfm: Tfm, tmp_path: Path, tiny_run: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    write_lines(tmp_path / "there" / "old", ["old"])
    (tmp_path / "hard").hardlink_to(tmp_path / "there" / "old")
    write_lines(tmp_path / "t.tsv", ["one\teins"])
    before = _content(tmp_path)
    evaluating = ["evaluate", "--run", tiny_run, "--data", "t.tsv"]
    for one, other in [("there/new", "link/new"), ("there/old", "hard"), ("new", "there/../new"), ("a", "a.partial")]:
        for command in (
            [*evaluating, "--output", one, "--report", other],
            ["translate", "--run", tiny_run, "one", "--output", one, "--attention", other],
        ):
            done = tfm(*command)
            assert done.returncode == 2 and "would overwrite each other; name another --" in error_of(done), command
    done = tfm("data", "--data", "t.tsv", "--report", "link/clean.tgt", "--clean", "there")
    assert done.returncode == 2 and "would overwrite each other" in error_of(done)
    for folder in (["-o", "o", "--attention", "o.jsonl"], ["-o", "o/line-000001.svg", "--attention", "o.jsonl.gz"]):
        done = tfm("translate", "--run", tiny_run, "one", *folder)
        assert done.returncode == 2 and "would overwrite each other" in error_of(done)
    assert _content(tmp_path) == before


def test_files_beside_those_of_a_run_may_be_written(tfm: Tfm, tmp_path: Path, sentences: list[tuple[str, str]]) -> None:
    write_lines(tmp_path / "train.tsv", ["\t".join(pair) for pair in sentences])
    done = tfm("train", "--data", "train.tsv", "--max-steps", 2, "--run", "runs/mine", *TINY_FLAGS)
    assert done.returncode == 0, error_of(done)
    done = tfm("evaluate", "--data", "train.tsv", "--output", "runs/mine/out.txt", "--report", "runs/mine/each.jsonl")
    assert done.returncode == 0, error_of(done)
    refused = tfm("evaluate", "--data", "train.tsv", "--output", "runs/mine/metrics.jsonl")
    assert refused.returncode == 2 and "runs/mine/metrics.jsonl, which --run reads" in error_of(refused)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "export.json").write_text("{}")  # an earlier export, and what the run was trained on
    (tmp_path / "train.tsv").rename(tmp_path / "old" / "train.tsv")
    moved = tfm("train", "--data", "old/train.tsv", "--max-steps", 3, "--run", "runs/mine", *TINY_FLAGS)
    assert moved.returncode == 0, error_of(moved)
    refused = tfm("export", "--output", "old")
    assert refused.returncode == 2 and "--output old would overwrite old/train.tsv" in error_of(refused)


def test_standard_streams_count(tmp_path: Path, tiny_run: Path) -> None:
    held = write_lines(tmp_path / "in.txt", ["one two", "three"])

    def shell(line: str) -> subprocess.CompletedProcess[bytes]:
        line = line.replace("tfm", f"{TFM} translate --run {tiny_run}")
        return subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, check=False)

    for line, reader in [
        ("tfm -o in.txt < in.txt", "standard input"),
        ("tfm -i /dev/stdin -o in.txt < in.txt", "--input"),
        ("tfm -i in.txt >> in.txt", "--input"),
        ("tfm -i in.txt -o /dev/stdout >> in.txt", "--input"),
    ]:
        done = shell(line)
        assert done.returncode == 2 and f"which {reader} reads" in error_of(done), line
        assert held.read_bytes() == b"one two\nthree\n"
    done = shell("tfm one -o out.txt --attention maps.jsonl > out.txt")
    assert done.returncode == 2 and "would overwrite each other" in error_of(done)
    usual = shell("tfm -i in.txt").stdout
    assert usual.count(b"\n") == 2
    assert shell("tfm -i in.txt -o /dev/stdout").stdout == usual
    assert shell("tfm -i in.txt -o /dev/stdout | cat").stdout == usual
    assert shell("echo old > new.txt; tfm -i in.txt -o /dev/stdout >> new.txt; cat new.txt").stdout == b"old\n" + usual
    assert shell("tfm -i in.txt -o >(cat > piped.txt); sleep 0.5; cat piped.txt").stdout == usual
    done = shell("tfm -i in.txt -o /dev/null")
    assert done.returncode == 0 and Path("/dev/null").is_char_device() and Path("/dev/stdout").is_symlink()


def test_what_settings_name_is_read(tfm: Tfm, corpus: Path) -> None:
    (corpus / "runs" / "mine" / "cache").mkdir(parents=True)
    held = (corpus / "train.en").rename(corpus / "runs" / "mine" / "cache" / "train.en")
    before = _content(corpus)
    (corpus / "mine.yaml").write_text("data: {src: [runs/mine/cache/train.en], tgt: [train.de]}\n")
    settings = ["--set", f'data.src=["{held}"]', "--set", 'data.tgt=["train.de"]']
    for flags in (["--config", "mine.yaml"], ["--config", "toy", "--run", "runs/mine", *settings]):
        done = tfm("train", *flags, *TINY_FLAGS)
        assert done.returncode == 2, error_of(done)
        assert "--run runs/mine would overwrite" in error_of(done) and "which data.src reads" in error_of(done)
    (corpus / "mine.yaml").unlink()
    with pytest.raises(UsageError, match=r"which data\.src reads; name another --run"):
        api.train(src=held, tgt=corpus / "train.de", run=corpus / "runs" / "mine")
    assert _content(corpus) == before


def test_words_are_no_files(tfm: Tfm, tmp_path: Path) -> None:
    """A run may be called as a preset or the toy language is."""
    for _ in range(2):
        for data in (["--data", "toy"], ["--text", "toy"]):
            done = tfm("train", "--config", "toy", *data, "--run", "toy", "--dry-run", "--finish-in", "3")
            assert "--dry-run ends nothing" in error_of(done)
        for settings in (DataConfig(data=["toy"]), DataConfig(text=["toy"])):
            guard.guard_training(tmp_path / "toy", settings, config="toy", tokenizer=None, init_from=None)
        (tmp_path / "toy").mkdir(exist_ok=True)
