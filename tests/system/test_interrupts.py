"""Signals: at once, or held back."""

import contextlib
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

from tfm.system.errors import Interrupted, InterruptedAtOnce
from tfm.system.interrupts import Interrupts


@pytest.mark.usefixtures("closed_terminals_count")
def test_a_second_signal_ends_a_training_at_once_but_a_terminal_that_closes_may_send_two() -> None:
    before = signal.getsignal(signal.SIGHUP)
    with Interrupts() as interrupts, interrupts.held():
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)
        assert interrupts.received == signal.SIGHUP
        with pytest.raises(InterruptedAtOnce):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGHUP) is before


def test_what_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGHUP)
        assert interrupts.received is None
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_whose_exception_is_dropped_comes_again(capsys: pytest.CaptureFixture[str]) -> None:
    class Dropping:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)

    for drop in (Dropping, drops_everything):
        began = time.monotonic()
        with pytest.raises(Interrupted) as caught, Interrupts():
            drop()
            time.sleep(20)
        assert time.monotonic() < began + 10
        assert caught.value.signal_number == signal.SIGTERM
    assert capsys.readouterr().err == ""


def drops_everything() -> None:
    with contextlib.suppress(BaseException):
        signal.raise_signal(signal.SIGTERM)


def test_one_that_is_not_dropped_does_not() -> None:
    with contextlib.suppress(Interrupted), Interrupts():
        try:
            signal.raise_signal(signal.SIGTERM)
        except Interrupted as error:
            time.sleep(0.1)
            raise Interrupted("tidied up") from error
    before = signal.signal(signal.SIGTERM, lambda *_: pytest.fail("came again"))
    try:
        time.sleep(0.1)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_during_an_import_nothing_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "import signal, time\nsignal.raise_signal(signal.SIGTERM)\ntime.sleep(0.1)\n"
    (tmp_path / "imported_while_a_signal_comes.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Interrupted), Interrupts():
        import_module("imported_while_a_signal_comes")
        time.sleep(20)
    assert "imported_while_a_signal_comes" in sys.modules  # Python removes what could not be imported


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_during_large_imports_the_process_ends_at_once(number: signal.Signals) -> None:
    program = (
        "import signal\n"
        "from tfm.system.interrupts import Interrupts, ending_at_once\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup has it ignored\n"
        "with ending_at_once():\n"
        "    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
        "with Interrupts(), ending_at_once():\n"
        "    try:\n"
        f"        signal.raise_signal({int(number)})\n"
        "    except BaseException as error:\n"
        "        print(repr(error))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, b"", b"tfm: interrupted\n")
