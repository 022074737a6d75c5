"""Lines in: what is no text is refused, and what is wrong with text is told once."""

import io
import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tfm.cli.lines import CHUNK_LINES, LineDecoder, arriving_lines, file_lines
from tfm.system.errors import DataError
from tfm.system.files import json_line


class Heard:
    """Remembers warnings."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        """One more."""
        self.warnings.append(text)


def warnings_of(*lines: bytes) -> list[str]:
    decoder, heard = LineDecoder(""), Heard()
    for line in lines:
        decoder.decode([line])
    decoder.report(heard)  # pyright: ignore[reportArgumentType]
    return heard.warnings


def test_another_encoding_is_told_once_with_its_cure() -> None:
    (warning,) = warnings_of(*["für den Bär".encode("latin-1")] * 300, b"one", "\ufffd".encode())
    assert warning.startswith("300 lines were not valid UTF-8; what could not be read became U+FFFD")
    assert "cp1252 ('für den Bär')" in warning and "--encoding" in warning
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


def test_long_lines_come_in_short_chunks(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes((b"x" * 900_000 + b"\n") * 30 + b"one\n" * 3_000)
    chunks = list(file_lines(tmp_path / "a.txt", ""))
    assert sum(map(len, chunks)) == 3_030
    assert max(sum(len(line or b"") for line in chunk) for chunk in chunks) < 4_000_000
    assert max(map(len, chunks)) == CHUNK_LINES


def test_no_more_than_a_few_megabytes_of_a_stream_wait() -> None:
    class Endless(io.RawIOBase):
        """Lines of half a megabyte."""

        taken = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            self.taken += len(buffer)
            buffer[:] = b"x" * (len(buffer) - 1) + b"\n"
            return len(buffer)

    stream = Endless()
    next(arriving_lines(io.BufferedReader(stream, 500_000), ""))
    time.sleep(0.3)  # nobody takes more
    assert stream.taken < 20_000_000


def test_json_has_nothing_that_a_terminal_obeys_and_says_the_same() -> None:
    record = {"source": "a\x00\x1b[31m\x7f\x85\x9b2J\u2028\u2029 „Tür“ 日本 \U0001f600"}
    line = json_line(record)
    assert json.loads(line) == record and len(line.splitlines()) == 1
    assert line.isprintable() and "„Tür“ 日本" in line
