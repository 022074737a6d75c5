"""The group of commands, and texts as arguments: a dash at the beginning, several lines, a file's name."""

import json
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from helpers.command import Tfm, error_of, write_lines
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command

from tfm.cli.app import COMMANDS, TextCommand, command_function
from tfm.cli.app import app as root_app
from tfm.cli.lines import lines_of, refuse_file_names
from tfm.system.errors import UsageError


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_lists_each_command_by_the_first_line_of_its_own(command: str) -> None:
    first = cleandoc(command_function(command).__doc__ or "").split("\n\n")[0]
    assert COMMANDS[command] == " ".join(first.split())


def test_only_the_module_of_the_command_called_is_imported(installed: Tfm) -> None:
    for arguments, expected in ((["--help"], set()), (["trian"], set()), (["info", "--help"], {"tfm.cli.info"})):
        said = installed(*arguments, env={"PYTHONVERBOSE": "1"}).stderr.decode()
        assert {f"tfm.cli.{name}" for name in COMMANDS if f"import 'tfm.cli.{name}'" in said} == expected
    assert "import 'tfm.cli.app'" in said


def parsed(*arguments: str) -> tuple[list[str], str, bool, str]:
    """The texts and options that a command gets."""
    app, got = typer.Typer(), list[Any]()

    @app.command(cls=TextCommand)
    def command(  # pyright: ignore[reportUnusedFunction]
        text: Annotated[list[str] | None, typer.Argument()] = None,
        prefix: str = "",
        json_: Annotated[bool, typer.Option("--json")] = False,
        run: Annotated[str, typer.Option("--run", "-r")] = "",
    ) -> None:
        got.extend([text or [], prefix, json_, run])

    get_command(app)(list(arguments), standalone_mode=False)
    return got[0], got[1], got[2], got[3]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["- the cat"], (["- the cat"], "", False, "")),
        (["--json", "- the cat", "b", "--run", "r"], (["- the cat", "b"], "", True, "r")),
        (["a", "-5 degrees", "-- so it is", "—no"], (["a", "-5 degrees", "-- so it is", "—no"], "", False, "")),
        (["--prefix", "- the", "a"], (["a"], "- the", False, "")),
        (["--prefix=- the", "-rmy run", "- b\nc"], (["- b\nc"], "- the", False, "my run")),
        (["--prefix", "--", "a"], (["a"], "--", False, "")),
        (["--prefix", "", "- a"], (["- a"], "", False, "")),
        (["--json", "--", "--run", "-x"], (["--run", "-x"], "", True, "")),
        (["-", "a"], (["-", "a"], "", False, "")),
        ([], ([], "", False, "")),
    ],
)
def test_what_is_a_text_and_what_an_option(arguments: list[str], expected: tuple[Any, ...]) -> None:
    assert parsed(*arguments) == expected


@given(st.lists(st.text().map(lambda text: f"- {text}") | st.text().filter(lambda text: not text.startswith("-"))))
def test_texts_come_as_they_are_and_in_order(texts: list[str]) -> None:
    assert parsed(*texts, "--prefix", "- p")[:2] == (texts, "- p")


@pytest.mark.parametrize("arguments", [["a", "--nonsense"], ["--nonsense", "- a"], ["a", "--run"], ["- a", "-x"]])
def test_a_misspelt_option_is_no_text(arguments: list[str]) -> None:
    with pytest.raises(Exception, match=r"[Nn]o such option|requires an argument"):
        parsed(*arguments)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a", ["a"]),
        ("", [""]),
        ("a\nb\r\nc", ["a", "b", "c"]),
        ("a\n\nb\n", ["a", "", "b"]),
        ("a\u2028b", ["a\u2028b"]),
    ],
)
def test_lines_of_an_argument(text: str, lines: list[str]) -> None:
    assert lines_of(text) == lines


def test_names_of_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("note.txt", "note", "3.5"):
        Path(name).write_text("a")
    for names in (["note.txt"], ["./note"], ["3.5"], ["note.txt", "3.5"]):
        with pytest.raises(UsageError, match=rf"^{names[0]} is a file: give --input {names[0]}$"):
            refuse_file_names(names, "give --input {name}")
    for texts in (["note"], ["other.txt"], ["note.txt", "a"], ["note.txt "], [], ["x." * 5000], ["a\0.b"], ["."], [""]):
        refuse_file_names(texts, "give --input {name}")


def test_each_line_of_an_argument_is_translated_by_itself(tfm: Tfm, tiny_run: Path) -> None:
    lines = ["one two three", "", "- four five", "six seven"]
    expected = tfm("translate", "--run", tiny_run, stdin="\n".join(lines).encode())
    done = tfm("translate", "--run", tiny_run, "\n".join(lines[:3]), *lines[3:])
    assert done.returncode == 0, error_of(done)
    assert done.stdout == expected.stdout and len(done.stdout.splitlines()) == 4
    found = tfm("translate", "--run", tiny_run, "--json", "\n".join(lines) + "\n").stdout.splitlines()
    assert [json.loads(one)["source"] for one in found] == lines


@pytest.mark.parametrize("command", ["translate", "generate", "embed", "explain"])
def test_commands_refuse_names_of_files(tfm: Tfm, tiny_run: Path, tmp_path: Path, command: str) -> None:
    write_lines(tmp_path / "note.txt", ["one two"])
    output = ["--output", "page.html"] if command == "explain" else []
    done = tfm(command, "--run", tiny_run, "note.txt", *output)
    fix = "give one of its sentences" if command == "explain" else "for its lines give --input note.txt"
    assert done.returncode == 2 and error_of(done).endswith(f"tfm: error: note.txt is a file: {fix}\n")
    assert done.stdout == b"" and not (tmp_path / "page.html").exists()


def test_one_sentence_is_explained(tfm: Tfm, tiny_run: Path) -> None:
    done = tfm("explain", "--run", tiny_run, "--format", "text", "one\ntwo")
    assert (done.returncode, error_of(done)) == (2, "tfm: error: the text has 2 lines; give one sentence\n")
    assert tfm("explain", "--run", tiny_run, "--format", "text", "- one\n").stdout.startswith(b"- one\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_of_one_value_is_refused_when_it_is_given_twice(name: str) -> None:
    group: Any = get_command(root_app)
    command = group.commands[name]
    flags, repeatable = [], []
    for option in command.params:
        if option.param_type_name == "option" and not option.is_flag:
            (repeatable if option.multiple else flags).append(option.opts)
    assert not [opts for opts in repeatable if set(opts) & {"--output", "--checkpoint", "--report", "--config"}]
    for opts in flags:
        with pytest.raises(typer.BadParameter, match=rf"tfm {name} takes one --[\w-]+, but it is given 2 times"):
            command.make_context(name, [opts[0], "1", f"{opts[-1]}", "2"])


def test_flags_and_options_that_may_be_repeated_are_given_as_often_as_one_likes(tfm: Tfm, tiny_run: Path) -> None:
    done = tfm("evaluate", "--run", tiny_run, "--json", "--json", "--metric", "bleu", "--metric", "nothing")
    assert "nothing" in error_of(done) and "times" not in error_of(done)
    done = tfm("translate", "--run", tiny_run, "-i", "a.txt", "--input=b.txt")
    assert (done.returncode, done.stdout) == (2, b"")
    assert "tfm translate takes one --input, but it is given 2 times" in error_of(done)


def test_an_empty_name_of_a_file_is_refused(tfm: Tfm, tiny_run: Path) -> None:
    for flags in (["--input", ""], ["--run="], ["-o", ""]):
        done = tfm("translate", "--run", tiny_run, *flags) if flags != ["--run="] else tfm("translate", "--run=")
        assert (done.returncode, done.stdout) == (2, b"")
        assert "is given an empty name" in error_of(done)
    done = tfm("train", "--src", "", "--tgt", "a.de")
    assert done.returncode == 2 and "--src is given an empty name" in error_of(done)


def test_a_dash_is_standard_input_or_output(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "in.txt", ["one", "two"])
    translate = ("translate", "--run", tiny_run, "--beam-size", 1)
    expected = tfm(*translate, stdin=b"one\ntwo\n").stdout
    assert expected.count(b"\n") == 2
    assert tfm(*translate, "-i", "-", stdin=b"one\ntwo\n").stdout == expected
    assert tfm(*translate, "-i", "in.txt", "--output", "-").stdout == expected
    assert not (tmp_path / "-").exists()


def test_what_is_in_a_run_is_no_run_and_the_run_is_named(tfm: Tfm, tiny_run: Path) -> None:
    checkpoint = next((tiny_run / "checkpoints").glob("step-*"))
    step = int(checkpoint.name.removeprefix("step-"))
    for part, which in (
        (checkpoint, f" --checkpoint {step}"),
        (tiny_run / "checkpoints", ""),
        (tiny_run / "config.yaml", ""),
    ):
        done = tfm("translate", "--run", part, "one")
        assert done.returncode == 4
        assert f"is a part of the run {tiny_run}: give --run {tiny_run}{which}\n" in error_of(done)
    assert tfm("translate", "--run", tiny_run, "--checkpoint", checkpoint.name, "one").returncode == 0
    done = tfm("translate", "--run", tiny_run / "checkpoints" / "best", "one")
    assert f"give --run {tiny_run} --checkpoint best\n" in error_of(done)
    done = tfm("evaluate", "--run", tiny_run, "test.en")
    assert done.returncode == 2 and "takes a run as an option" not in error_of(done)
    done = tfm("info", tiny_run)
    assert done.returncode == 2 and f"tfm info takes a run as an option: --run {tiny_run}" in error_of(done)


def test_a_corpus_that_is_not_there_is_said_to_be_missing(tfm: Tfm, tmp_path: Path) -> None:
    write_lines(tmp_path / "pairs.tsv", ["a\tb"])
    done = tfm("train", "--data", "pairs.tvs")
    assert done.returncode == 2
    assert "format of pairs.tvs, and there is no such file (did you mean pairs.tsv?): name a file" in error_of(done)
    said = error_of(tfm("train", "--data", "opus100"))
    assert "cannot tell the format of opus100, and there is no such file: name a file that ends in" in said
