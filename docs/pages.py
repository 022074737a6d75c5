"""What is done to a page before Sphinx reads it. Some lines begin with a comment and give way to something longer:

    <!-- include --> [CHANGELOG](../CHANGELOG.md)                           this file
    <!-- include from "## One" to "## Two" --> [README](../README.md)       what it has between two lines
    <!-- generated: commands --> ..                                         what is made of the code, see `reference`

And links lead somewhere. In the repository a page links to files, such as `../seq2seq/model/softmax.py#softmax`. On the
site such a file of Python is a page with its source text; other pages of the repository are pages of the site. Of any
other file the site shows the path.
"""

import ast
import json
import posixpath
import re
from functools import cache
from pathlib import Path

from reference import GENERATED
from sphinx.application import Sphinx
from sphinx.util import logging

ROOT = Path(__file__).parent.parent
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/quality.md": "quality.md",
    "benchmarks/speed.md": "speed.md",
    "benchmarks/journal.md": "journal.md",
}
"""Files outside docs/, and their pages on the site. `index.md` has a part of its file; `write_stubs` makes the rest."""
PACKAGES = ("cli", "configs", "data", "engine", "seq2seq", "system")
_INCLUDE = re.compile(r'^<!-- include(?: from "(.+)" to "(.+)")? --> \[[^\]]*\]\((\S+)\)$', re.MULTILINE)
_GENERATED = re.compile(r"^<!-- generated: (\w+) -->.*$", re.MULTILINE)
_FENCE = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(`[^`\n]*`)|(?<!\!)\[((?:`[^`\n]*`|[^\[\]`])*)\]\(([^()\s]+)\)|(!\[[^\]]*\])\(([^()\s]+)\)")
_SOURCES = '<meta name="source-pages" content="">'

logger = logging.getLogger(__name__)


def write_stubs() -> None:
    """Writes a page for each file outside docs/, for Sphinx alone: git does not know them."""
    for path, page in PAGES.items():
        stub, text = ROOT / "docs" / page, f"<!-- include --> [{path}](../{path})\n"
        if page != "index.md" and not (stub.is_file() and stub.read_text(encoding="utf-8") == text):
            stub.write_text(text, encoding="utf-8")


def complete(app: Sphinx, docname: str, content: list[str]) -> None:
    """Puts in what is to be included or generated, and rewrites the links."""
    del app
    page, begun = "", 0
    for match in _INCLUDE.finditer(content[0]):
        page += _linked(content[0][begun : match.start()], "docs", docname) + _included(match, docname)
        begun = match.end()
    page += _linked(content[0][begun:], "docs", docname)
    content[0] = _GENERATED.sub(lambda match: GENERATED[match[1]](), page)
    if docname == "tour":
        content[0] = with_tour(content[0], ROOT / "docs" / "tour")


def with_tour(page: str, folder: Path) -> str:
    """The page with links to the stations of the built tour; the page itself if none was built."""
    for path in sorted(folder.glob("tour-*.html")):
        found = re.search(r'<script id="data"[^>]*>(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)
        assert found is not None, path
        links = {path.stem.removeprefix("tour-"): path.name}
        if path.stem == "tour-encoder-decoder":
            for one in json.loads(found[1].replace("<\\/", "</"))["stations"]:
                links[one["title"]] = f"{path.name}#{one['id'].replace('{layer}.', '').replace('.', '-')}"
        for name, address in links.items():
            page = page.replace(f"\n| {name} |", f'\n| <a href="{address}">{name}</a> |')
    return page


def _included(match: re.Match[str], docname: str) -> str:
    begin, end, name = match.groups()
    path = posixpath.normpath(posixpath.join("docs", name))
    text = (ROOT / path).read_text(encoding="utf-8")
    if begin and end:
        _, found, after = f"\n{text}".partition(f"\n{begin}\n")
        text, ended, _ = after.partition(f"\n{end}\n")
        if not found or not ended:
            logger.warning("%s has no lines %r and %r", path, begin, end, location=docname)
    return _linked(text, posixpath.dirname(path), docname)


def _linked(text: str, folder: str, docname: str) -> str:
    """Markdown whose links are seen from `folder`, with links as they are seen from docs/; code stays as it is."""
    parts = _FENCE.split(text)
    parts[::2] = [_LINK.sub(lambda match: _link(match, folder, docname), part) for part in parts[::2]]
    return "".join(parts)


def _link(match: re.Match[str], folder: str, docname: str) -> str:
    code, text, target, image, source = match.groups()
    if code:
        return code
    if re.match(r"#|\w+:", target or source):
        return match[0]
    if image:
        return f"{image}({_from_docs(folder, source)})"
    name, _, anchor = target.partition("#")
    path = posixpath.normpath(posixpath.join(folder, name))
    if path in PAGES or (path.startswith("docs/") and path.endswith(".md")):
        return f"[{text}]({PAGES.get(path) or path.removeprefix('docs/')}{'#' if anchor else ''}{anchor})"
    if not (ROOT / path).exists() or (anchor and anchor not in definitions(path)):
        logger.warning("a link to %s, which is not there", target, location=docname)
    if path.endswith(".py") and path.split("/")[0] in PACKAGES:
        page = f"_modules/tfm/{path.removesuffix('.py').removesuffix('/__init__')}.html"
        return f'<a class="reference internal" href="{page}{"#" if anchor else ""}{anchor}">{text}</a>'
    return text if text == f"`{path}`" else f"{text} (`{path}`)"


def _from_docs(folder: str, name: str) -> str:
    return posixpath.relpath(posixpath.join(folder, name), "docs")


@cache
def definitions(path: str) -> set[str]:
    """The functions and classes of a file of Python, and the methods of these."""
    if not path.endswith(".py") or not (ROOT / path).is_file():
        return set()
    found: set[str] = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
            found |= {f"{node.name}.{inner.name}" for inner in ast.walk(node) if isinstance(inner, ast.FunctionDef)}
    return found


def name_sources(app: Sphinx, failed: Exception | None) -> None:
    """Tells the pages of `tfm explain` on the site which pages with source text there are."""
    folder = Path(app.outdir)
    sources = " ".join(sorted(page.relative_to(folder).as_posix() for page in folder.glob("_modules/tfm/**/*.html")))
    for page in folder.glob("tour-*.html"):
        content = page.read_text(encoding="utf-8")
        page.write_text(content.replace(_SOURCES, f'{_SOURCES[:-2]}{sources}">'), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers it."""
    app.connect("source-read", complete)
    app.connect("build-finished", name_sources)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
