"""The engine and a model as text: all bytes, and nothing of HTML."""

import base64
import re
import struct

import pytest

from tfm.engine.browser.embedded import MOST_BYTES, engine_parts, in_base_85, why_no_page


def test_the_engine_cannot_end_its_script() -> None:
    for text in engine_parts().values():
        assert not re.search(r"</script|<!--.*<script", text, re.IGNORECASE)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 1_000])
def test_base_85_holds_all_bytes_and_nothing_of_html(size: int) -> None:
    content = bytes(i * 37 % 256 for i in range(size))
    text = in_base_85(content)
    assert not set("<&\"'\\ ") & set(text)
    read = base64.b85decode(text.translate(str.maketrans(".,", "<&")))
    assert struct.unpack(">I", read[:4]) == (size,)
    assert read[4 : 4 + size] == content


def test_what_a_page_cannot_hold_is_said_in_one_line() -> None:
    assert why_no_page(MOST_BYTES, "int8") == []
    [reason] = why_no_page(MOST_BYTES, "float32")
    assert "1,600 MB" in reason and "400" in reason
