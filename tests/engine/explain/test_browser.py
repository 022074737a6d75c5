"""The page in Chromium: it computes other sentences as tfm does, at every width, in light and dark."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from helpers.chromium import needs_chromium, opened_pages
from helpers.explained import SMALL, layers_of, read_page, write_run

from tfm.data.tokenizer import Tokenizer
from tfm.engine.browser.embedded import model_text
from tfm.engine.explain.explanation import explain
from tfm.engine.explain.page import page
from tfm.engine.explain.text import Focus
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.runs.load import TrainedRun, load_run
from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.config import Architecture

pytestmark = needs_chromium
FIRST, SECOND = "my sister finds two apples", "the cat sees a dog."
TOLERANCE = 1e-4
KINDS: list[dict[str, Any]] = [
    *({"architecture": one} for one in get_args(Architecture)),
    {"architecture": "decoder_only", "text_only": True},
    {"norm_order": "pre", "positions": "rotary"},
]
IN_PAGE = """() => {
  const names = ["text", "axes", "written", "steps", "output", "beam", "heads_off", "questions"];
  const plain = ({ shape, values }) => ({ shape, values: [...values].map((x) => (x === -Infinity ? -1e300 : x)) });
  return {
    ...Object.fromEntries(names.map((name) => [name, data[name]])),
    arrays: Object.fromEntries(Object.entries(arrays).map(([name, one]) => [name, plain(one)])),
  };
}"""
NAMELESS = """() => [...document.querySelectorAll("input, select, button, summary")]
  .filter((one) => !(one.labels?.length || one.ariaLabel || one.textContent.trim()))
  .map((one) => one.outerHTML)"""
LEADS = """() => [...document.querySelectorAll(".machine a")]
  .map((one) => Boolean(document.querySelector(one.getAttribute("href"))))"""
INSIDE = """() => {
  const link = document.querySelector("nav [aria-current]").getBoundingClientRect();
  const list = document.querySelector("#stations").getBoundingClientRect();
  return link.top >= list.top - 1 && link.bottom <= Math.min(list.bottom + 1, innerHeight);
}"""


class Made:
    """A run with random weights, and its pages; each is made once."""

    def __init__(self, folder: Path, tokenizer: Tokenizer, steps: tuple[int, ...] = (10,), **settings: Any) -> None:
        text_only = settings.pop("text_only", False)
        sizes = SMALL | layers_of(settings.get("architecture", "encoder_decoder")) | settings
        self.path = write_run(folder / "run", tokenizer, ModelConfig(**sizes), text_only=text_only, steps=steps)
        self._pages: dict[str, str] = {}

    def loaded(self, checkpoint: str = "best") -> TrainedRun:
        return load_run(self.path, None, checkpoint=checkpoint, device="cpu")

    def page(self, text: str = FIRST, weights_of: str = "best", **options: Any) -> str:
        asked = repr((text, weights_of, options))
        if asked not in self._pages:
            found = explain(RunDirectory(self.path), self.loaded(), text, **options)
            self._pages[asked] = page(found, Focus(), model_text(self.loaded(weights_of), "float32"))
        return self._pages[asked]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Callable[..., Made]:
    """Makes a run when it is first asked for; read only."""
    runs: dict[str, Made] = {}

    def make(**settings: Any) -> Made:
        asked = repr(settings)
        if asked not in runs:
            runs[asked] = Made(tmp_path_factory.mktemp("made"), tokenizer, **settings)
        return runs[asked]

    return make


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a page, see `opened_pages`."""
    with opened_pages(browser, tmp_path, "#try:visible", reduced_motion="reduce") as open_:
        yield open_


def near(tab: Any, station: str) -> None:
    """Goes to a station: what is far away is drawn when it comes near."""
    tab.locator(f"#{station}").scroll_into_view_if_needed()


def wait(tab: Any) -> None:
    """Until all is computed."""
    tab.wait_for_selector("#computed:has-text('All numbers below')", timeout=60_000)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_another_sentence_has_the_numbers_of_tfm_explain(made: Any, opened: Any, kind: dict[str, Any]) -> None:
    run = made(**kind)
    tab = opened(run.page())
    assert "agree with those of tfm" in tab.inner_text("#agreement")
    tab.fill("#another", SECOND)  # it is computed as it is typed
    wait(tab)
    found = tab.evaluate(IN_PAGE)
    data, arrays = read_page(run.page(SECOND))
    assert [found[name] for name in ("text", "axes", "written")] == [data[name] for name in ("text", "axes", "written")]
    assert found["arrays"].keys() - {"output_layer"} == arrays.keys()
    for name, expected in arrays.items():
        values = np.array(found["arrays"][name]["values"]).reshape(found["arrays"][name]["shape"])
        values = np.where(values < -1e200, -np.inf, values)
        np.testing.assert_allclose(values, expected, atol=TOLERANCE, rtol=TOLERANCE, err_msg=name)
    for ours, theirs in zip(found["steps"], data["steps"], strict=True):
        np.testing.assert_allclose(sorted(ours["logits"]), sorted(theirs["logits"]), atol=TOLERANCE)
    assert [one["answer"] for one in found["questions"]] == [one["answer"] for one in data["questions"]]
    assert tab.inner_text("h1") == SECOND
    n = len(data["axes"].get("src") or data["axes"]["seq"])
    assert f"n × d_model = {n} × 16" in tab.inner_text(".shapes >> nth=0")
    if data["output"]:
        assert tab.locator("#choice td.long").nth(1).inner_text() != ""
        assert float(found["output"]["log_prob"]) == pytest.approx(data["output"]["log_prob"], abs=TOLERANCE)
        assert [one["text"] for one in found["heads_off"]] == [one["text"] for one in data["heads_off"]]
    tab.click("#back")
    tab.wait_for_selector(f"h1:text-is('{FIRST}')")


def test_weights_that_are_not_those_of_tfm_are_said_in_red(made: Any, opened: Any) -> None:
    run = made(steps=(10, 20))
    tab = opened(run.page(weights_of="10"))
    line = tab.locator("#agreement")
    assert "does not agree with tfm" in line.inner_text() and "Do not trust" in line.inner_text()
    red, green, blue = tab.evaluate(
        "() => getComputedStyle(document.querySelector('#agreement')).color.match(/\\d+/g).map(Number)"
    )
    assert red > 2 * max(green, blue)


def test_experiments(made: Any, opened: Any) -> None:
    """Heads off and a state from elsewhere, by keyboard; the end of them brings back what was."""
    tab = opened(made(norm_order="pre").page())
    before = tab.evaluate("() => [...mine.base.arrays.output_layer.values]")
    first = tab.locator("#switches .chip").last
    first.focus()
    first.press("Enter")
    wait(tab)
    assert "without head 2 of cross-attention, decoder layer 2" in tab.inner_text("#experiment")
    assert tab.evaluate("() => document.activeElement.getAttribute('aria-pressed')") == "true"
    heads = "() => [...array('decoder.layers.1.cross_attn.heads').values]"
    values = np.array(tab.evaluate(heads)).reshape(2, -1)
    assert np.all(values[1] == 0) and np.any(values[0] != 0)
    tab.fill("#patch input", SECOND)
    tab.wait_for_selector("#patch select >> nth=0 >> option >> nth=3", state="attached")
    tab.select_option("#patch select >> nth=0", "2")
    tab.press("#patch input", "Enter")
    tab.wait_for_selector("#experiment:has-text('after layer 1')")
    wait(tab)
    near(tab, "left-out")
    assert "Not while" in tab.inner_text("#left-out")
    tab.click("text=End the experiment")
    tab.wait_for_selector("#experiment", state="hidden")
    wait(tab)
    assert tab.evaluate("() => [...arrays.output_layer.values]") == pytest.approx(before, abs=1e-6)


def test_why_this_word(made: Any, opened: Any) -> None:
    tab = opened(made().page())
    near(tab, "left-out")
    tab.wait_for_selector("#left-out .bars .bar >> nth=0", state="attached")
    pieces, changes = tab.evaluate("() => [data.left_out.pieces, data.left_out.changes]")
    assert len(pieces) == len(changes) and {len(row) for row in changes} == {tab.evaluate("() => data.written.length")}
    shown = [one.replace("\u2212", "-") for one in tab.locator("#left-out .bars .number").all_inner_texts()]
    assert [float(one) for one in shown] == [pytest.approx(row[0], abs=0.006) for row in changes]


def test_temperature_and_top_p(made: Any, opened: Any) -> None:
    tab = opened(made().page())
    near(tab, "probabilities")
    tab.locator("#top-p").fill("0.1")
    tab.wait_for_selector("#probabilities:has-text('remain to be drawn from')")
    count, shares = tab.evaluate("() => [mine.kept.result.count, mine.kept.result.shares.map((one) => one[1])]")
    assert 0 < count < 300 and sum(shares) == pytest.approx(1)
    tab.locator("#temperature").fill("0")
    tab.wait_for_function("() => mine.kept.key.includes(' 0.1 ')")
    assert tab.evaluate("() => mine.kept.result.count") <= count


@pytest.mark.parametrize(("text", "words"), [("cat " * 60, "this model reads at most 39"), ("\u200b", "blank")])
def test_what_cannot_be_computed_is_said_and_changes_nothing(made: Any, opened: Any, text: str, words: str) -> None:
    tab = opened(made().page())
    tab.fill("#another", text)
    tab.wait_for_selector(f"#computed.problem:has-text('{words}')")
    assert tab.inner_text("h1") == FIRST
    tab.fill("#another", SECOND)
    wait(tab)
    assert tab.locator("#computed.problem").count() == 0


def test_the_last_of_many_sentences_stays(made: Any, opened: Any) -> None:
    tab = opened(made().page())
    for text in ("cat", "dog", "cat dog", SECOND):
        tab.fill("#another", text)
        tab.press("#another", "Enter")
    wait(tab)
    tab.wait_for_selector(f"h1:text-is('{SECOND}')")
    _, arrays = read_page(made().page(SECOND))
    first = next(iter(arrays))
    assert tab.evaluate(f"() => [...array('{first}').values]") == pytest.approx(arrays[first].ravel(), abs=1e-4)


def test_a_language_model_and_an_encoder_show_what_they_have(made: Any, opened: Any) -> None:
    tab = opened(made(architecture="encoder_only").page())
    assert tab.locator("#top-p, #temperature, #probabilities, #heads-off").count() == 0
    near(tab, "left-out")
    tab.wait_for_selector("#left-out:has-text('cosine')")
    tab.locator("#switches .chip").first.click()
    tab.wait_for_selector("#experiment:has-text('The cosine of the vectors')")


def every_width() -> Iterator[Any]:
    """All architectures at all widths; quickly, each width of one, and the narrowest of the others."""
    for number, kind in enumerate(KINDS[:3]):
        for width, scheme in ((390, "light"), (390, "dark"), (820, "light"), (1280, "dark")):
            quick = number == 0 or (width, scheme) == (390, "dark")
            yield pytest.param(kind, width, scheme, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize(("kind", "width", "scheme"), list(every_width()), ids=str)
def test_it_fits_every_width(made: Any, opened: Any, kind: dict[str, Any], width: int, scheme: str) -> None:
    tab = opened(made(**kind).page(), width, scheme)
    assert tab.evaluate("() => document.documentElement.scrollWidth") <= width
    assert tab.evaluate("() => document.documentElement.dataset.theme") == scheme
    assert tab.evaluate(NAMELESS) == []
    tall = "(one) => one.scrollHeight > one.clientHeight"
    assert tab.evaluate(f"() => [...document.querySelectorAll('.formula')].filter({tall}).length") == 0
    if width >= 1280:
        wide = "(one) => one.scrollWidth > one.clientWidth"
        assert tab.evaluate(f"() => [...document.querySelectorAll('.formula')].filter({wide}).length") == 0


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_picture_of_the_machine_leads_to_stations(made: Any, opened: Any, kind: dict[str, Any]) -> None:
    tab = opened(made(**kind).page())
    there = tab.evaluate(LEADS)
    assert len(there) == tab.locator(".machine .part").count() >= 8 and all(there)


@pytest.mark.parametrize("width", [390, 1280])
def test_no_title_hides_and_the_list_follows(made: Any, opened: Any, width: int) -> None:
    tab = opened(made().page(), width)
    bars = "() => document.querySelector('.controls').getBoundingClientRect()"
    if width == 390:
        assert tab.evaluate(bars)["height"] < 60  # of 800
    for name in ("encoder-layers-self_attn-weights", "decoder-layers-cross_attn-weights", "choice", "probabilities"):
        tab.evaluate(f"() => (location.hash = '{name}')")
        tab.wait_for_function(f"() => document.querySelector('nav [aria-current]')?.hash === '#{name}'")
        top = tab.evaluate(f"() => document.querySelector('#{name} h3').getBoundingClientRect().top")
        assert top >= tab.evaluate(bars)["bottom"] - 1
        if width == 1280:
            assert tab.evaluate(INSIDE)
        else:
            assert tab.inner_text("#current") in tab.inner_text(f"#{name} h3")


def test_pieces_are_marked_as_pieces(made: Any, opened: Any) -> None:
    tab = opened(made().page())
    text = tab.evaluate("() => document.querySelector('#src_embedding-tokens .label').innerHTML")
    assert 'the row of E</b> for <code class="is-piece">\u2581' in text
