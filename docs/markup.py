"""Formulas as MathML, which browsers show without a script; docstrings as reStructuredText and as pages; options."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx

_SEVERAL = re.compile(r"^    (\w+(?:, \w+)+):(.*\n(?: {8}.*\n)*)", re.MULTILINE)


def inline_formula(writer: Any, node: nodes.math) -> None:
    """Writes a formula inside a line."""
    writer.body.append(latex2mathml.tex2mathml(node.astext()))
    raise nodes.SkipNode


def formula(writer: Any, node: nodes.math_block) -> None:
    """Writes a formula on a line of its own."""
    mathml = latex2mathml.tex2mathml(node.astext(), as_block=True)
    writer.body.append(f'<div class="math">{mathml}</div>\n')
    raise nodes.SkipNode


def prepare(app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Makes a docstring what napoleon and docutils understand."""
    del app, name, obj, options
    lines[:] = _one_by_one(_with_literal_blocks(lines))
    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]  # a comment, else napoleon takes the words before a colon for a type


def _with_literal_blocks(lines: list[str]) -> list[str]:
    """Marks what is indented (formulas, pictures, code) as literal, so that a line stays a line.

    Such a block follows an empty line. What belongs to a section such as `Args:` does not, and stays text.
    """
    marked: list[str] = []
    before = ""  # the last line that is not empty
    for line in lines:
        if line.startswith(" ") and before and not before.startswith(" ") and not marked[-1].strip():
            marked += ["::", ""]
        marked.append(line)
        before = line if line.strip() else before
    return marked


def _one_by_one(lines: list[str]) -> list[str]:
    """Gives each of several attributes that are described together (`a, b: What they are.`) the description."""

    def each(match: re.Match[str]) -> str:
        return "".join(f"    {name}:{match[2]}" for name in match[1].split(", "))

    return _SEVERAL.sub(each, "\n".join(lines)).split("\n")


def without_dashes(app: Sphinx, doctree: nodes.document) -> None:
    """Writes a colon where Sphinx writes two hyphens, between a parameter and what it is."""
    del app
    for text in list(doctree.findall(nodes.Text)):
        if text.astext() == " -- ":
            text.parent.replace(text, nodes.Text(": "))


def mark_options(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Marks options, such as --run, so that tfm.css can keep them from being broken after their dashes."""
    del app, page, template, doctree
    if "body" in context:
        context["body"] = context["body"].replace('<span class="pre">--', '<span class="pre option">--')


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers all of it."""
    app.connect("doctree-read", without_dashes)
    app.add_html_math_renderer("mathml", (inline_formula, None), (formula, None))
    app.connect("autodoc-process-docstring", prepare, priority=400)  # before napoleon reads the sections
    app.connect("html-page-context", mark_options)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
