"""The pages in docs/: their commands run, or can be given as shown. What goes into them is tested in `test_site.py`."""

import ast
import asyncio
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main
from helpers.command import Tfm
from helpers.documents import blocks, commands
from helpers.shown import fill, run_commands, run_python, train_tiny

from tfm.cli.app import app
from tfm.data.formats import SUFFIXES

DOCS = Path(__file__).parent.parent.parent / "docs"
TFM: Any = typer.main.get_command(app)
NEEDED = {
    "evaluating": ["mine", "other"],
    "language-models": [],
    "processors": [],
    "recipes": [],
    "translating": ["mine"],
    "vectors": ["toy"],
    "windows-macos": [],
    "your-own-data": [],
}
"""The pages whose commands are run, and the runs that each takes for granted."""
SHOWN = [
    pytest.param(command, id=f"{page.stem}: {command}")
    for page in sorted(DOCS.glob("*.md"))
    if page.stem not in NEEDED
    for command in commands(page.read_text(encoding="utf-8"), "tfm")
]


def text_of(page: str) -> str:
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def workplaces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A directory for each page, with the files that it names."""
    return {page: fill(tmp_path_factory.mktemp(page)) for page in NEEDED}


def test_commands_are_shown() -> None:
    assert len(SHOWN) >= 10


@pytest.mark.parametrize("shown", SHOWN)
def test_a_command_can_be_given_so(shown: str) -> None:
    name, *arguments = shlex.split(shown)[1:]
    if name == "--version":
        return
    TFM.commands[name].make_context(name, arguments)


@pytest.mark.parametrize("page", NEEDED)
def test_every_command_of_a_guide_runs(page: str, forked: Tfm, workplaces: dict[str, Path]) -> None:
    train_tiny(forked, workplaces[page], *NEEDED[page])
    run_commands(text_of(page), forked, workplaces[page])


def test_the_python_of_the_vectors_runs(workplaces: dict[str, Path]) -> None:
    similarity, pieces = run_python(text_of("vectors"), workplaces["vectors"]).splitlines()
    assert -1 <= float(similarity) <= 1.001
    listed, _, shape = pieces.rpartition(" (")
    assert shape == f"{len(ast.literal_eval(listed))}, 16)"


def test_the_service_of_the_recipes_answers(
    forked: Tfm, workplaces: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("starlette")
    train_tiny(forked, workplaces["recipes"], "mine")
    monkeypatch.chdir(workplaces["recipes"])
    (service, *_) = blocks(text_of("recipes"), "python")
    namespace: dict[str, Any] = {}
    exec(service, namespace)
    status, answer = asked(namespace["app"], {"texts": ["one two", "three"]})
    assert status == 200
    assert [one["text"] for one in answer] == [one["text"] for one in namespace["translations"](["one two", "three"])]
    assert asked(namespace["app"], {"texts": "one"})[0] == 400


def asked(app: Any, question: Any) -> tuple[int, Any]:
    """The status and the answer of a program in Python's server interface (ASGI)."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps(question).encode(), "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "query_string": b"", "root_path": ""}
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], json.loads(b"".join(one.get("body", b"") for one in sent))


def test_the_notebook_and_the_three_seeds_of_the_recipes_run(workplaces: dict[str, Path]) -> None:
    _, _, rest = text_of("recipes").partition("## A notebook")
    printed = run_python(rest, workplaces["recipes"])
    assert "of 3 seeds; nrefs:1" in printed


def test_every_format_of_pairs_is_named() -> None:
    assert all(f"`{suffix}`" in text_of("file-formats") for suffix in SUFFIXES)
