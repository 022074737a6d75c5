"""The page as a file: nothing of the network in it, nothing that breaks out of its place, and what it cannot hold."""

import re
from pathlib import Path

import pytest
from helpers.javascript import javascript, needs_node

from tfm.engine.browser.pack import pack
from tfm.engine.export import html as package
from tfm.engine.export.html.page import page
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
    assert not re.search("@(TITLE|PURPOSE|STYLE|MODEL|ENGINE|CLIENT|SCRIPT)@", made)
    assert made.count("<script") == made.count("</script>") == 3
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#|data:)""", made.replace('href="#source"', ""))
    assert not re.search(r"\b(?:fetch|XMLHttpRequest|importScripts|WebSocket|EventSource)\b\(", made)
    assert "default-src 'none'" in made and "connect-src" not in made
    assert 'data-purpose="translator"' in made


def test_the_script_cannot_end_early() -> None:
    assert not re.search(r"</script|<!--.*<script", (FOLDER / "page.js").read_text(encoding="utf-8"), re.IGNORECASE)


@needs_node
def test_javascript_reads_the_packed_model(loaded: TrainedRun) -> None:
    text = re.search(r'id="model"[^>]*>([^<]*)<', page(loaded, "float16", title="x"))
    assert text
    body = "return [...engine.bytesOfBase85(data)]"
    assert bytes(javascript(body, text[1])) == pack(loaded, "float16")


def test_a_model_that_is_too_large_is_refused(loaded: TrainedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfm.engine.browser.embedded.MOST_BYTES", 1_000)
    with pytest.raises(ModelError, match=r"^mine cannot be exported to HTML: its [\d,]+ weights in int8 are 0 MB"):
        page(loaded, "int8", title="mine")
