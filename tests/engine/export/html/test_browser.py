"""The page in Chromium: it translates without a network, by keyboard, at every width, in light and dark."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.chromium import needs_chromium, opened_pages
from helpers.javascript import needs_node
from helpers.learned import made, marked_pairs

from tfm.data.tokenizer import Tokenizer
from tfm.engine.export.html.page import page
from tfm.engine.export.html.quality import machine_of
from tfm.engine.runs.load import TrainedRun

pytestmark = [needs_node, needs_chromium]


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a run's page, see `opened_pages`."""
    with opened_pages(browser, tmp_path, "#status:text-is('Ready.')") as open_:
        yield lambda loaded, *more, **named: open_(page(loaded, "float32", title="mine & yours"), *more, **named)


def translator_of(run: TrainedRun) -> Any:
    """The run in Python."""
    return machine_of(run)


def done(tab: Any) -> str:
    """Waits for the work, and says what was written."""
    tab.wait_for_selector("#status:has-text('Done')", timeout=60_000)
    return "\n".join(tab.locator(".line > p").all_inner_texts())


@pytest.fixture(scope="module")
def translator_run(marked_tokenizer: Tokenizer) -> TrainedRun:
    """A run that has learned to translate a little."""
    return made(marked_tokenizer, marked_pairs(), steps=60)


def test_it_translates_as_the_run_does(opened: Any, translator_run: TrainedRun) -> None:
    tab, texts = opened(translator_run), [src for src, _ in marked_pairs()[:6]] + ["", "cat sees %s."]
    assert tab.title() == "mine & yours"
    tab.fill("#source", "\n".join(texts))
    for size in (1, 4):
        tab.check(f"input[name=beam][value='{size}']")
        tab.locator("#source").press("Control+Enter")
        tab.wait_for_selector("#facts:has-text('8 lines in')")
        expected = [one.text for one in translator_of(translator_run).translate(texts, beam_size=size)]
        assert done(tab).split("\n") == expected
    with tab.expect_download() as saving:
        tab.click("#save")
    assert Path(saving.value.path()).read_text(encoding="utf-8").split("\n")[:-1] == expected


def test_pieces_and_attention_are_shown(opened: Any, translator_run: TrainedRun) -> None:
    tab = opened(translator_run)
    tab.fill("#source", "cat sees dog.")  # it is translated as it is typed
    done(tab)
    button = tab.locator(".open").first
    button.focus()
    button.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    shares = tab.locator(".pieces small").all_inner_texts()
    [ours] = translator_of(translator_run).translate(["cat sees dog."])
    assert len(shares) == len(ours.tokens) + 1
    assert all(re.fullmatch(r"(> |< )?\d+ %", share) for share in shares)
    tab.click("text=Show attention")
    tab.wait_for_selector("table")
    assert tab.locator("tbody tr").count() == len(ours.tokens) + 1


def test_many_lines_have_progress_and_a_stop(opened: Any, translator_run: TrainedRun) -> None:
    tab = opened(translator_run)
    tab.evaluate("() => { document.querySelector('#source').value = 'cat sees %s dog <b> child.\\n'.repeat(3000); }")
    tab.click("#go")
    tab.wait_for_selector(".line")
    assert float(tab.locator("#progress").get_attribute("max")) == 3_000
    tab.click("#stop")
    tab.wait_for_selector("#facts:has-text('Stopped after')", timeout=30_000)
    assert 0 < tab.locator(".line").count() < 3_000
    tab.fill("#source", "cat")
    tab.click("#go")
    tab.wait_for_selector("#facts:has-text('1 line in')")


@pytest.mark.parametrize(
    ("width", "scheme"), [(390, "light"), (390, "dark"), (820, "light"), (1280, "dark"), (1600, "light")]
)
def test_it_fits_every_width_and_every_control_has_a_name(
    opened: Any, translator_run: TrainedRun, width: int, scheme: str
) -> None:
    tab = opened(translator_run, width, scheme)
    tab.fill("#source", "cat sees dog. " * 12 + "\n" + "x" * 300)
    tab.click("#go")
    done(tab)
    tab.locator(".open").first.click()
    assert tab.evaluate("() => document.documentElement.scrollWidth") <= width
    assert tab.evaluate("() => document.documentElement.dataset.theme") == scheme
    nameless = tab.evaluate("""() => [...document.querySelectorAll("input, textarea, button")]
        .filter((one) => !(one.labels?.length || one.ariaLabel || one.textContent.trim()))
        .map((one) => one.outerHTML)""")
    assert nameless == []


def test_text_from_right_to_left(opened: Any, translator_run: TrainedRun) -> None:
    tab = opened(translator_run)
    tab.fill("#source", "שלום עולם")
    assert tab.evaluate("() => getComputedStyle(document.querySelector('#source')).direction") == "rtl"
    tab.click("#go")
    done(tab)
    assert tab.locator(".line > p").first.get_attribute("dir") == "auto"


def test_a_language_model_continues(opened: Any, tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> None:
    tab = opened(made(tokenizer, pairs, steps=40, text_only=True, architecture="decoder_only"))
    tab.fill("#source", "die Katze\nein Hund")
    tab.click("#go")
    first, second = done(tab).split("\n")
    assert first.startswith("die Katze") and second.startswith("ein Hund")
    tab.fill("#seed", "5")
    tab.click("#go")
    with suppress(Exception):
        tab.wait_for_selector("#status:has-text('writing')", timeout=200)
    assert done(tab) != f"{first}\n{second}"


def test_a_sentence_encoder_finds_the_nearest(opened: Any, tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> None:
    loaded = made(tokenizer, pairs, steps=0, architecture="encoder_only")
    tab, lines, query = opened(loaded), [src for src, _ in pairs[:9]], "the cat sees two apples."
    tab.fill("#source", "\n".join(lines))
    tab.fill("#query", query)
    tab.click("#go")
    tab.wait_for_selector(".found")
    embedder: Any = machine_of(loaded)
    similar = embedder.embed(lines) @ embedder.embed([query])[0]
    found = tab.locator(".found li").all_inner_texts()
    assert [one.split("\n")[-1] for one in found] == [lines[i] for i in np.argsort(-similar, kind="stable")]
