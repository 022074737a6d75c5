"""The command as one meets it: help, version, typing mistakes, start-up time."""

import gc
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.command import TFM, TINY_FLAGS, Tfm, error_of
from helpers.terminal import typed

from tfm.cli.app import COMMANDS
from tfm.cli.main import main
from tfm.cli.startup import importing


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", [["--version"], ["train", "--help"]])
def test_help_that_cannot_be_written_is_said_to_be_lost(command: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([TFM, *command], stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr.decode()) == (
        5,
        "tfm: error: cannot write standard output: No space left on device\n",
    )


def test_help_names_every_command(installed: Tfm) -> None:
    done = installed("--help")
    assert done.returncode == 0
    for command in COMMANDS:
        assert f"  {command} " in done.stdout.decode()
    assert "..." not in done.stdout.decode().partition("Commands:")[2], "each is said whole"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_that_fits_a_terminal(installed: Tfm, command: str) -> None:
    done = installed(command, "--help", env={"COLUMNS": "100"})
    assert done.returncode == 0
    assert "--debug" in done.stdout.decode()
    assert max(map(len, done.stdout.decode().splitlines())) <= 100


def test_debug_shows_where_an_error_comes_from_before_its_line(installed: Tfm) -> None:
    plain, debug = installed("info", "--run", "nope"), installed("info", "--debug", "--run", "nope")
    assert plain.returncode == debug.returncode == 4
    assert debug.stderr.startswith(b"Traceback") and debug.stderr.endswith(plain.stderr)
    assert b"Traceback" not in plain.stderr


def test_version(installed: Tfm) -> None:
    assert installed("--version").stdout.decode().startswith("tfm 0.")


def test_libraries_are_set_up_before_they_load_and_the_users_own_settings_stand(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["tfm", "--version"])
    left: list[bool] = []
    monkeypatch.setattr("tfm.cli.main.leave_garbage", lambda: left.append(True))
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY")
    with pytest.raises(SystemExit):
        main()
    assert os.environ["GOMP_SPINCOUNT"] == "7"
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "128"
    assert left == [True]
    assert capsys.readouterr().out.startswith("tfm 0.")


def test_no_arguments_is_help_and_a_usage_error(installed: Tfm) -> None:
    done = installed()
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.startswith(b"Usage: tfm")
    assert b"\nCommands:\n" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["trian"], "train"),
        (["translate", "--bem-size", "3"], "--beam-size"),
        (["train", "--max-step", "3"], "--max-steps"),
        (["translate", "--beam-size", "many"], "--beam-size"),
        (["train", "--max-steps", "0"], "--max-steps"),
    ],
)
def test_a_typing_mistake_gets_one_line_with_the_right_word(installed: Tfm, arguments: list[str], hint: str) -> None:
    done = installed(*arguments)
    assert done.returncode == 2
    assert hint in error_of(done)
    assert len(error_of(done).splitlines()) == 1


def imported_modules(*arguments: str, before: str = "") -> set[str]:
    code = (
        f"{before}\n"
        f"import sys; sys.argv = ['tfm', *{list(arguments)!r}]\n"
        "from tfm.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    return set(done.stderr.decode().splitlines())


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["translate", "--help"], ["embed", "--help"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    heavy = {"torch", "datasets", "sacrebleu", "numpy", "pyarrow", "sentencepiece", "matplotlib"}
    assert not heavy & imported_modules(*arguments)


def test_translating_loads_only_what_it_needs(tiny_run: Path) -> None:
    """What reads corpora, trains, draws, compiles or scores costs a part of every start."""
    loaded = imported_modules("translate", "--run", str(tiny_run), "one two")
    assert "torch" in loaded
    superfluous = {"datasets", "pyarrow", "pandas", "sacrebleu", "matplotlib", "yaml"}
    superfluous |= {
        "torch._dynamo",
        "torch._inductor",
        "tfm.data.corpus",
        "tfm.engine.training.train",
        "tfm.seq2seq.training.update",
    }
    assert loaded & superfluous == set()


def ours(loaded: set[str]) -> int:
    return sum(name == "tfm" or name.startswith("tfm.") for name in loaded)


def test_a_line_meets_few_modules(tiny_run: Path) -> None:
    """Whoever follows a line to its translation reads no more than these, the packages and the command included."""
    assert ours(imported_modules("translate", "--run", str(tiny_run), "one two")) <= 75


def test_a_pair_meets_few_modules(tmp_path: Path) -> None:
    flags = ["--max-steps", "1", "--run", str(tmp_path / "run"), *map(str, TINY_FLAGS), "--set", "training.ranks=1"]
    few = "from tfm.data.formats.text import TOY_SIZES; TOY_SIZES.update(train=2_000, dev=50)"
    loaded = imported_modules("train", *flags, before=few)
    assert ours(loaded) <= 110
    assert "pyarrow" in loaded and "pandas" not in loaded


def test_after_imports_garbage_is_collected_again() -> None:
    gc.unfreeze()
    with pytest.raises(ImportError), importing():
        assert not gc.isenabled()
        raise ImportError
    assert gc.isenabled()
    assert gc.get_freeze_count()
    gc.unfreeze()


@pytest.mark.parametrize("command", [["translate", "one two"], ["evaluate", "--data", "toy"]])
def test_what_translates_keeps_freed_memory(
    command: list[str], tiny_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Asked(Exception):
        """In place of what comes after."""

    def ask() -> None:
        raise Asked

    monkeypatch.setattr("tfm.engine.device.keep_freed_memory", ask)
    monkeypatch.setattr("tfm.cli.main.leave_garbage", lambda: None)
    monkeypatch.setattr(sys, "argv", ["tfm", *command, "--run", str(tiny_run)])
    with pytest.raises(SystemExit):
        main()
    assert "Asked" in capsys.readouterr().err


def test_help_takes_no_longer_than_one_and_a_half_imports_of_typer() -> None:
    def seconds(command: list[str]) -> float:
        start = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        return time.perf_counter() - start

    ratios: list[float] = []
    for _ in range(15):  # in turn, so that a busy moment hits both
        base = seconds([sys.executable, "-c", "import typer"])
        ratios.append(seconds([str(TFM), "--help"]) / base)
    assert statistics.median(ratios) <= 1.5


def test_the_module_runs_too(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "tfm.cli", "--version"], capture_output=True, cwd=tmp_path, check=True)
    assert done.stdout.startswith(b"tfm ")


@pytest.mark.usefixtures("closed_terminals_count")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("library", ["lets it through", "says that it cannot be imported"])
def test_a_signal_is_said_whatever_the_command(
    number: signal.Signals,
    library: str,
    tiny_run: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        try:
            signal.raise_signal(number)
        except BaseException:
            signal.raise_signal(number)  # a terminal that closes sends two
            if library == "lets it through":
                raise
            raise ImportError("cannot import name") from None

    monkeypatch.setattr("tfm.engine.runs.find.find_run", interrupt)
    monkeypatch.setattr("tfm.cli.main.leave_garbage", lambda: None)
    monkeypatch.setattr(sys, "argv", ["tfm", "evaluate", "--run", str(tiny_run)])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 128 + number
    assert capsys.readouterr().err == "tfm: interrupted\n"


@pytest.mark.parametrize(
    ("option", "setting"),
    [
        ("--learning-rate", "training.learning_rate"),
        ("--lerning-rate", "training.learning_rate"),
        ("--dropuot", "model.dropout"),
        ("--vocab-size", "tokenizer.vocab_size"),
        ("--lr", "training.learning_rate"),
        ("--hidden-size", "model.d_model"),
        ("--patience", "training.patience"),
    ],
)
def test_a_setting_given_as_an_option_is_recognised(installed: Tfm, option: str, setting: str) -> None:
    done = installed("train", option, "1")
    assert done.returncode == 2
    assert (
        error_of(done)
        == f"tfm: error: tfm train has no option {option}; instead: --set {setting}=VALUE. See tfm train --help.\n"
    )
    assert "--set" not in error_of(installed("train", "--completely-unlike-anything", "1"))
    assert "--set" not in error_of(installed("translate", option, "1"))


def test_colours_are_for_terminals(tiny_run: Path, tmp_path: Path) -> None:
    coloured = typed(["info", "--run", "nowhere"], tmp_path, b"", {"TERM": "xterm"})
    assert coloured.startswith("\33[31mtfm: error:\33[0m there is no run nowhere")
    assert typed(["info", "--run", "nowhere"], tmp_path, b"", {"TERM": "dumb"}).startswith("tfm: error: there is no")
    plain = typed(["info", "--run", tiny_run], tmp_path, b"", {"TERM": "xterm", "NO_COLOR": "1"})
    assert "\33[3" not in plain and "⠤" in plain, "the curve is drawn, without colour"


def test_where_memory_is_not_enough_the_process_ends_without_what_libraries_do_then(tmp_path: Path) -> None:
    program = """
import atexit, sys
from tfm.cli import main
def fail(**_):
    raise MemoryError
main.app = fail
atexit.register(lambda: print("Exception ignored in a library", file=sys.stderr))
main.main()
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 5 and done.stderr.startswith("tfm: error: not enough memory: ")
    assert done.stderr.count("\n") == 1
