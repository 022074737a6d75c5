"""Lines in: what is no text is refused, and what is wrong with text is told once."""

import json
import random

import pytest

from tfm.cli.lines import Decoder
from tfm.data.errors import DataError
from tfm.data.files import json_line


class Heard:
    """Remembers warnings."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        """One more."""
        self.warnings.append(text)


def warnings_of(*lines: bytes) -> list[str]:
    decoder, heard = Decoder(), Heard()
    for line in lines:
        decoder.decode([line])
    decoder.report(heard)  # pyright: ignore[reportArgumentType]
    return heard.warnings


def test_another_encoding_is_told_once_with_its_cure() -> None:
    (warning,) = warnings_of(*["für den Bär".encode("latin-1")] * 300, b"one", "\ufffd".encode())
    assert warning.startswith("300 lines were not valid UTF-8; what could not be read became U+FFFD")
    assert "iconv -f cp1252 -t utf-8" in warning
    assert warnings_of(b"\xff")[0].startswith("1 line was not valid UTF-8")


def test_control_characters_are_told_once() -> None:
    assert warnings_of(b"one\x00two", b"\x1b[1mthree\x1b[0m") == ["3 control characters in the input, read as spaces"]
    assert warnings_of(b"a\tb\x0cc", "d\x85e\u2028f".encode()) == []


@pytest.mark.parametrize("text_before", [0, 4_096])
@pytest.mark.parametrize("with_zeros", [True, False])
def test_a_binary_is_refused_even_behind_text(text_before: int, with_zeros: bool) -> None:
    noise = random.Random(text_before).randbytes(20_000)
    content = b"one two three\n" * (text_before // 14) + (noise if with_zeros else noise.replace(b"\0", b"\1"))
    with pytest.raises(DataError, match="the input does not look like text"):
        warnings_of(*content.split(b"\n"))


def test_json_has_nothing_that_a_terminal_obeys_and_says_the_same() -> None:
    record = {"source": "a\x00\x1b[31m\x7f\x85\x9b2J\u2028\u2029 „Tür“ 日本 \U0001f600"}
    line = json_line(record)
    assert json.loads(line) == record and len(line.splitlines()) == 1
    assert line.isprintable() and "„Tür“ 日本" in line
