"""The tour: its pages are those that `tfm explain` writes today, and its links lead to questions."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TOUR = ROOT / "docs" / "tour"
PAGES = ["tour-encoder-decoder.html", "tour-decoder-only.html", "tour-encoder-only.html"]


def data_of(page: str) -> dict[str, Any]:
    html = (TOUR / page).read_text(encoding="utf-8")
    match = re.search(r'<script id="data" type="application/json">(.*?)</script>', html, re.DOTALL)
    assert match
    return json.loads(match[1].replace("<\\/", "</"))


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_are_made_by_the_present_code(page: str) -> None:
    """If this fails: make tour."""
    html = (TOUR / page).read_text(encoding="utf-8")
    for part in ("page.css", "page.js", "machine.js", "try.js", "live.js", "questions.js"):
        assert (ROOT / "engine" / "explain" / part).read_text(encoding="utf-8") in html, part
    assert (ROOT / "engine" / "browser" / "engine.js").read_text(encoding="utf-8") in html
    assert len(html) < 8_000_000


def test_each_station_of_the_tour_asks_its_question() -> None:
    asked = {
        one["station"].replace("{layer}.", "").replace(".", "-"): one["question"]
        for one in data_of("tour-encoder-decoder.html")["questions"]
    }
    text = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    stations = re.findall(r"\(tour/tour-encoder-decoder\.html#(\S+)\) \| (.+) \|", text)
    assert [anchor for anchor, _ in stations] == list(asked)
    for anchor, question in stations:
        assert question == asked[anchor] or question.startswith("Where does the model look when it writes"), anchor


def test_the_models_of_the_tour_have_learned_their_language() -> None:
    for page in PAGES[:2]:
        data = data_of(page)
        assert data["output"]["text"] == data["greedy"]["text"]
        assert len(data["snapshots"]) >= 10
        assert data["snapshots"][0]["text"] != data["output"]["text"]
