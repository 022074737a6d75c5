"""docs/tutorial.md: its Python runs and prints what it shows; its links lead to functions that there are."""

import contextlib
import importlib
import io
import re
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
STATIONS = re.split(r"^## ", TUTORIAL, flags=re.MULTILINE)[1:]
SNIPPET = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(\.\./([\w/]+)\.py#([\w.]+)\)")
KEY = re.compile(r"\[[A-Z][A-Za-z-]+ (?:\d{4}[a-z]?|n\.d\.)\]")


def run_all(text: str) -> list[str]:
    """Runs the snippets of a page in one namespace, and compares what they print with what the page shows.

    Returns:
        The snippets.
    """
    namespace: dict[str, Any] = {}
    done: list[str] = []
    for match in SNIPPET.finditer(text):
        code, shown = match[1], match[2] or ""
        above = text.count("\n", 0, match.start(1))  # so that an error names the line of the page
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * above + code, "docs/tutorial.md", "exec"), namespace)
        assert printed.getvalue() == shown, f"docs/tutorial.md:{above + 1}"
        done.append(code)
    return done


def test_every_snippet_runs_in_order_and_checks_something() -> None:
    snippets = run_all(TUTORIAL)
    assert len(snippets) == len(STATIONS) + 1 >= 20
    assert all("assert " in snippet for snippet in snippets[1:])


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("scores = Q @ K.transpose(-2, -1) / math.sqrt(4)", "scores = Q @ K.transpose(-2, -1)"),
        ("10_000 ** (2", "1_000 ** (2"),
        ("** 0.6)\n", "** 0.7)\n"),
        ("        [0., 0., -inf, -inf, -inf],", "        [0., 0., 0., -inf, -inf],"),
    ],
)
def test_a_wrong_formula_is_found(right: str, wrong: str) -> None:
    assert TUTORIAL.count(right) == 1
    with pytest.raises(AssertionError):
        run_all(TUTORIAL.replace(right, wrong))


@pytest.mark.parametrize("station", STATIONS, ids=lambda station: station.partition("\n")[0])
def test_a_station_has_a_formula_shapes_texts_and_one_link_to_code(station: str) -> None:
    assert "$$" in station
    assert "\n* Shapes: " in station
    texts = station.partition("\n* Texts: ")[2].partition("\n* In tfm: ")[0]
    assert KEY.search(texts) or "all five" in texts or "the paper" in texts
    assert len(LINK.findall(station)) == 1
    assert len(re.findall(r"\.py[#)]", station)) == 1


@pytest.mark.parametrize(("path", "name"), LINK.findall(TUTORIAL))
def test_what_is_linked_is_in_that_file(path: str, name: str) -> None:
    assert (ROOT / f"{path}.py").is_file()
    module = importlib.import_module("tfm." + path.replace("/", "."))
    target = reduce(getattr, name.split("."), module)
    assert target.__module__ == module.__name__


def test_the_texts_are_those_of_the_sources() -> None:
    sources = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
    assert set(KEY.findall(TUTORIAL)) == set(KEY.findall(sources))


def test_all_formulas_of_the_sources_are_met() -> None:
    """Each module that docs/sources.md names beside a formula is linked or named."""
    sources = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
    for module in set(re.findall(r"`((?:model|decoding)/\w+\.py)`", sources)):
        assert module in TUTORIAL, module
