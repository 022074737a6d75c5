"""The tour: its stations become links where its pages are built."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOUR = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")


def test_stations_become_links_where_the_pages_are_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from pages import with_tour  # pyright: ignore[reportMissingImports]

    assert with_tour(TOUR, tmp_path) == TOUR
    stations = [{"id": "{layer}.self_attn.weights", "title": "Softmax"}, {"id": "other", "title": "Not in the tour"}]
    page = f'<script id="data" type="application/json">{json.dumps({"stations": stations})}</script>'
    (tmp_path / "tour-encoder-decoder.html").write_text(page, encoding="utf-8")
    linked = with_tour(TOUR, tmp_path)
    assert '| <a href="tour-encoder-decoder.html">encoder-decoder</a> |' in linked
    assert '| <a href="tour-encoder-decoder.html#self_attn-weights">Softmax</a> |' in linked
    assert linked.count("<a href") == 2
