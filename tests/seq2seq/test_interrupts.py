"""Signals: at once, or held back."""

import signal

import pytest

from tfm.data.errors import InterruptedAtOnce
from tfm.seq2seq.interrupts import Interrupts


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
