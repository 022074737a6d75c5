"""What reaches a terminal: no character that could move its cursor or change its colours."""

import pytest

from tfm.system.reporter import Console, visible


def test_control_characters_are_spelt_out() -> None:
    assert visible("a\x1b[31mred\x07\r\x9b2J\u202eb") == r"a\x1b[31mred\x07\r\x9b2J\u202eb"
    assert visible("Ünïcödé 漢字 🙂\nsecond line") == "Ünïcödé 漢字 🙂\nsecond line"


def test_messages_are_made_visible(capsys: pytest.CaptureFixture[str]) -> None:
    Console().say("source \x1b]0;title\x07")
    Console().warn("\x1b[2J")
    assert capsys.readouterr().err == "source \\x1b]0;title\\x07\ntfm: warning: \\x1b[2J\n"
