"""The page as a file: nothing of the network in it, nothing that breaks out of its place, and what it cannot hold."""

import base64
import re
import struct
from pathlib import Path

import pytest
from helpers.javascript import javascript, needs_node

from tfm.engine.export import html as package
from tfm.engine.export.html.pack import pack
from tfm.engine.export.html.page import MOST_BYTES, in_base_85, page, why_no_page
from tfm.engine.runs.load import TrainedRun, load_run
from tfm.system.errors import ModelError

FOLDER = Path(package.__file__).parent


@pytest.fixture(scope="module")
def loaded(run_directory: Path) -> TrainedRun:
    """A run."""
    return load_run(run_directory, None, device="cpu")


def test_it_is_one_file(loaded: TrainedRun) -> None:
    made = page(loaded, "int8", title='<script>"mine" & yours')
    assert "<title>&lt;script&gt;&quot;mine&quot; &amp; yours</title>" in made
    assert not re.search("@(TITLE|PURPOSE|STYLE|MODEL|ENGINE|SCRIPT)@", made)
    assert made.count("<script") == made.count("</script>") == 3
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#|data:)""", made.replace('href="#source"', ""))
    assert not re.search(r"\b(?:fetch|XMLHttpRequest|importScripts|WebSocket|EventSource)\b\(", made)
    assert "default-src 'none'" in made and "connect-src" not in made
    assert 'data-purpose="translator"' in made


def test_the_scripts_cannot_end_early() -> None:
    for name in ("engine.js", "page.js"):
        assert not re.search(r"</script|<!--.*<script", (FOLDER / name).read_text(encoding="utf-8"), re.IGNORECASE)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 1_000])
def test_base_85_holds_all_bytes_and_nothing_of_html(size: int) -> None:
    content = bytes(i * 37 % 256 for i in range(size))
    text = in_base_85(content)
    assert not set("<&\"'\\ ") & set(text)
    read = base64.b85decode(text.translate(str.maketrans(".,", "<&")))
    assert struct.unpack(">I", read[:4]) == (size,)
    assert read[4 : 4 + size] == content


@needs_node
def test_javascript_reads_the_packed_model(loaded: TrainedRun) -> None:
    text = re.search(r'id="model"[^>]*>([^<]*)<', page(loaded, "float16", title="x"))
    assert text
    body = "return [...engine.bytesOfBase85(data)]"
    assert bytes(javascript(body, text[1])) == pack(loaded, "float16")


def test_what_a_page_cannot_hold_is_said_in_one_line(loaded: TrainedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    assert why_no_page(MOST_BYTES, "int8") == []
    [reason] = why_no_page(MOST_BYTES, "float32")
    assert "1,600 MB" in reason and "400" in reason
    monkeypatch.setattr("tfm.engine.export.html.page.MOST_BYTES", 1_000)
    with pytest.raises(ModelError, match=r"^mine cannot be exported to HTML: its [\d,]+ weights in int8 are 0 MB"):
        page(loaded, "int8", title="mine")
