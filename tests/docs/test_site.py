"""The site that `make docs` builds: no warning, nothing from the network, no dead link, a complete reference."""

import json
import re
import subprocess
import sys
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import pytest
import typer.main
from helpers.chromium import CHROMIUM, needs_chromium
from lxml import html

from tfm.cli.app import app
from tfm.configs import RunConfig
from tfm.configs.presets import PRESETS

DOCS = Path(__file__).parent.parent.parent / "docs"
COMMANDS: Any = typer.main.get_command(app)
WANTED = ("index", "install", "first-model", "your-own-data", "architectures", "tour", "tutorial", "file-formats")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a warning fails."""
    folder = tmp_path_factory.mktemp("site")
    flags = ("--quiet", "--fail-on-warning", "--keep-going", "--doctree-dir", str(folder / "doctrees"))
    command = [sys.executable, "-m", "sphinx", *flags, str(DOCS), str(folder / "html")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "html"


@cache
def parsed(page: Path) -> Any:
    return html.fromstring(page.read_bytes())


def terms(page: Path, section: str) -> dict[str, str]:
    """The definition list of a section: each term, and what is said of it."""
    found = parsed(page).xpath(f"//section[@id={section!r}]//dt")
    return {term.text_content().strip().rstrip("#¶").strip(): term.getnext().text_content() for term in found}


def test_every_page_is_there_and_can_be_reached(site: Path) -> None:
    links = parsed(site / "index.html").xpath("//nav//a/@href | //div[@class='sidebar-tree']//a/@href")
    for page in DOCS.glob("*.md"):
        assert (site / f"{page.stem}.html").is_file()
        assert page.stem == "index" or f"{page.stem}.html" in links, page
    assert {page.stem for page in DOCS.glob("*.md")} >= set(WANTED)


def names(term: str, parameter: Any) -> bool:
    """Whether a term such as `-o, --output FILE` or `TEXT ..` is that of a parameter."""
    if parameter.param_type_name == "argument":
        return term.removesuffix(" ..") == parameter.metavar
    return set(parameter.opts) <= set(re.split(r",? ", term))


@pytest.mark.parametrize("command", COMMANDS.commands)
def test_every_option_of_a_command_is_described(site: Path, command: str) -> None:
    described = terms(site / "commands.html", f"tfm-{command}")
    parameters = COMMANDS.commands[command].params
    assert len(parameters) == len(described)
    for parameter in parameters:
        (about,) = [said for term, said in described.items() if names(term, parameter)]
        assert about.startswith(parameter.help.rstrip(".")), parameter.name


def test_every_setting_is_described(site: Path) -> None:
    for section in fields(RunConfig):
        config: Any = section.default_factory
        described = terms(site / "settings.html", section.name)
        assert list(described) == [f"{section.name}.{key.name}" for key in fields(config)]
        for name, default in vars(config()).items():
            about = described[f"{section.name}.{name}"]
            if isinstance(default, int | float | str) and not isinstance(default, bool):
                assert about.rstrip().endswith(f"default {'empty' if default == '' else default}."), about
            assert len(about.split("\n\n")[0]) > 10


def test_every_preset_is_shown(site: Path) -> None:
    for preset in PRESETS:
        (section,) = parsed(site / "presets.html").xpath(f"//section[@id={preset.name!r}]")
        assert preset.made_for in section.text_content()
        assert "max_steps:" in section.text_content()


def test_formulas_need_no_script(site: Path) -> None:
    page = parsed(site / "tutorial.html")
    assert len(page.xpath("//*[local-name()='math'][@display='block']")) >= 20
    assert "\\frac" not in page.text_content()


def test_nothing_is_loaded_from_the_network(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        loaded = parsed(page).xpath("//@src | //link[not(@rel='canonical')]/@href | //@srcset | //object/@data")
        assert not [address for address in loaded if re.match(r"\s*(\w+:)?//", address)], page
    for style in [*site.rglob("*.css"), *pages]:
        assert not re.search(r"@import|url\(\s*['\"]?(\w+:)?//", style.read_text(encoding="utf-8")), style
    for script in site.rglob("*.js"):
        code = script.read_text(encoding="utf-8")
        assert not re.search(r"(fetch|import|importScripts|open)\(\s*['\"`](\w+:)?//", code), script


def test_no_link_is_dead(site: Path) -> None:
    dead: list[str] = []
    for page in site.rglob("*.html"):
        for address in parsed(page).xpath("//@href | //@src"):
            name, _, anchor = address.partition("#")
            if re.match(r"\w+:", name):
                continue
            target = (page.parent / unquote(name.partition("?")[0])).resolve() if name else page
            found = target.is_file() and (not anchor or target.suffix != ".html" or has(target, unquote(anchor)))
            if not found:
                dead.append(f"{page.relative_to(site)}: {address}")
    assert dead == []


def has(page: Path, anchor: str) -> bool:
    return anchor in anchors(page)


@cache
def anchors(page: Path) -> set[str]:
    found = set(parsed(page).xpath("//@id"))
    if page.name.startswith("tour-"):  # a page of `tfm explain` makes its stations when it is opened
        stations = json.loads(parsed(page).xpath("//script[@id='data']/text()")[0])["stations"]
        found |= {one["id"].replace("{layer}.", "").replace(".", "-") for one in stations}
    return found


def test_the_tutorial_leads_to_the_source_text(site: Path) -> None:
    links = parsed(site / "tutorial.html").xpath("//article//a/@href")
    code = [link for link in links if link.startswith("_modules/")]
    assert len(code) >= 20
    assert all("#" in link for link in code)


def test_the_pages_of_the_tour_know_the_pages_with_source_text(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are there where `make tour` was run; here the empty page stands for them."""
    monkeypatch.syspath_prepend(str(DOCS))
    from pages import name_sources  # pyright: ignore[reportMissingImports]

    sources = tmp_path / "_modules"
    sources.symlink_to(site / "_modules")
    page = tmp_path / "tour-encoder-decoder.html"
    page.write_text((DOCS.parent / "engine" / "explain" / "page.html").read_text(encoding="utf-8"), encoding="utf-8")
    name_sources(SimpleNamespace(outdir=tmp_path), None)
    [listed] = parsed(page).xpath("//meta[@name='source-pages']/@content")
    assert "_modules/tfm/seq2seq/model/attention.html" in listed.split()
    assert all((site / one).is_file() for one in listed.split())


def test_options_are_marked_so_that_they_are_not_broken(site: Path) -> None:
    spans = parsed(site / "your-own-data.html").xpath("//code//span[starts-with(text(), '--')]")
    assert len(spans) > 10
    assert {span.get("class") for span in spans} == {"pre option"}


@needs_chromium
@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_is_wider_than_its_window(site: Path, width: int) -> None:
    """Nor is a table wider than its column, where the screen has room. Names of tests are longer than a column."""
    playwright = pytest.importorskip("playwright.sync_api")
    sizes = "[document.scrollingElement, ...document.querySelectorAll('.table-wrapper')]"
    wide: list[str] = []
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_context(viewport={"width": width, "height": 900}, offline=True).new_page()
        for page in sorted(site.glob("*.html")):
            tab.goto(page.as_uri())
            too_wide = tab.evaluate(f"{sizes}.map((one) => one.scrollWidth > one.clientWidth + 1)")
            if any(too_wide if width > 1000 and page.stem != "reliability" else too_wide[:1]):
                wide.append(page.name)
        browser.close()
    assert wide == []
