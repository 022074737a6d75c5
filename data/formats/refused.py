"""Files whose lines are no sentences: known by their names, and where a name says nothing by how their text begins."""

import re
from contextlib import suppress
from pathlib import Path

from ...system.errors import DataError, UsageError
from ..reading import first_text, open_bytes
from . import SUFFIXES, suffix_of

_TAKE_OUT = "take its texts out as XLIFF or PO{with_what}, and give that file"
_OWN_TOOL = _TAKE_OUT.format(with_what=" with the tool that made it")
_OKAPI = _TAKE_OUT.format(with_what=" with Okapi (tikal -x)")
_PO4A = _TAKE_OUT.format(with_what=" with po4a")
_XCODE = _TAKE_OUT.format(with_what=" with Xcode (Product > Export Localizations)")


def _toolkit(command: str) -> str:
    return _TAKE_OUT.format(with_what=f" with the Translate Toolkit ({command})")


_HOW = {
    **dict.fromkeys((".strings", ".stringsdict", ".xcstrings"), _XCODE),
    ".properties": _toolkit("prop2po"),
    **dict.fromkeys((".yml", ".yaml"), _toolkit("yaml2po")),
    ".toml": _toolkit("toml2po"),
    **dict.fromkeys((".ini", ".cfg", ".conf", ".desktop"), _toolkit("ini2po")),
    **dict.fromkeys((".json", ".jsonc", ".json5"), _toolkit("json2po")),
    ".lang": _toolkit("mozlang2po"),
    ".dtd": _toolkit("moz2po"),
    ".php": _toolkit("php2po"),
    **dict.fromkeys((".rc", ".rc2"), _toolkit("rc2po")),
    **dict.fromkeys((".resx", ".resw"), _toolkit("resx2po")),
    **dict.fromkeys((".html", ".htm", ".xhtml", ".shtml"), _toolkit("html2po")),
    **dict.fromkeys((".md", ".markdown", ".mdx", ".rmd", ".qmd"), _toolkit("md2po")),
    **dict.fromkeys((".odt", ".odp"), _toolkit("odf2xliff")),
    **dict.fromkeys((".docx", ".pptx", ".epub", ".idml"), _OKAPI),
    ".rst": _TAKE_OUT.format(with_what=" with Sphinx (sphinx-build -b gettext)"),
    **dict.fromkeys((".tex", ".adoc", ".asciidoc", ".pod", ".org"), _PO4A),
    **dict.fromkeys((".ftl", ".arb", ".ipynb", ".xml", ".svg", ".wxl", ".wiki", ".textile", ".pdf", ".doc"), _OWN_TOOL),
    **dict.fromkeys((".eml", ".mbox", ".js", ".jsx", ".ts", ".tsx", ".vue", ".py", ".java", ".css"), _OWN_TOOL),
    **dict.fromkeys((".jsp", ".erb", ".ejs", ".hbs", ".mustache", ".twig", ".liquid", ".jinja", ".jinja2"), _OWN_TOOL),
    **dict.fromkeys((".svelte", ".haml", ".neon", ".isl", ".nsh", ".lua", ".go", ".rb", ".c"), _OWN_TOOL),
    **dict.fromkeys((".zip", ".7z", ".z", ".lzma", ".rar", ".tar", ".tgz"), "unpack it first"),
    **dict.fromkeys(
        (".ass", ".ssa", ".sub", ".sbv", ".ttml", ".dfxp", ".itt", ".lrc", ".smi"), "save the subtitles as .srt"
    ),
    ".ndjson": "give it the suffix .jsonl",
    ".tab": "give it the suffix .tsv",
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "save the sheet as .csv"),
    **dict.fromkeys((".srt", ".vtt", ".pot"), "tfm translate --input translates it in place"),
    **dict.fromkeys((".sgm", ".sgml"), "tfm evaluate reads this test set: --src .. --tgt .."),
}
"""How the texts come out of a file, by its suffix."""
_CODES = {
    ".arb": r"\s*\{",
    **dict.fromkeys((".ts", ".tsx"), r"\s*(<|//|/\*|[\"']use \w+[\"']|import\b|export\b|const\b|module\.)"),
    **dict.fromkeys((".ass", ".lrc"), r"\s*\["),
    **dict.fromkeys((".itt", ".smi", ".svg", ".dtd", ".vue", ".wxl", ".jsp"), r"\s*<"),
    **dict.fromkeys((".cfg", ".isl"), r"(\s*[#;][^\n]*\n)*\s*(\[[^\]\n]*\]\s*\n|[\w.-]+\s*=)"),
    ".css": r"[^{]*\{",
    **dict.fromkeys((".hbs", ".ejs", ".erb"), r"[\s\S]*(\{\{|<%)"),
    ".lua": r"\s*(--|local\b|return\b|require\b|function\b|[\w.]+\s*=|L\[)",
    ".nsh": r"\s*(;|#|/\*|!\w|\$\{|LangString\b)",
    **dict.fromkeys((".rmd", ".qmd"), r"\s*(---\s*\n|#+ |```)"),
    ".org": r"\s*(\*+ |#\+)",
    ".tab": r"[^\n]*\t",
    ".eml": r"[\w-]+:[^\n]*\n[\w-]+:",
}
"""Suffixes that are also codes of languages. A file with one is refused only if it begins so."""
NOT_LINES = frozenset(SUFFIXES) | frozenset(_HOW)
"""Suffixes of files whose lines are no sentences."""
_SIGNS = {
    r"\s*<!doctype\s+html|\s*<html[\s>]": ("HTML", _HOW[".html"]),
    r"\s*<\?php": ("PHP", _HOW[".php"]),
    r"[\[{][ \t]*\r?\n[ \t]+[\"{\[]": ("JSON", _HOW[".json"]),
    r"(?:[#!][^\n]*\n|[^\S\n]*\n)*(?:[\w-]+(?:\.[\w-]+)+[ \t]*=[^\n]*\n){2}": ("properties", _HOW[".properties"]),
    r"\s*\\documentclass\b": ("LaTeX", _PO4A),
    r"\{\\rtf\d": ("RTF", _OKAPI),
    r"WEBVTT(?: [^\n]*|\t[^\n]*)?\r?\n(?:[\w-]+[:=][^\n]*\n)*\r?\n": ("WebVTT", "give it the suffix .vtt"),
    r"(?:[^\S\n]*\n)*\d+[^\S\n]*\n\d\d:\d\d:\d\d[,.]\d{3} +--> +\d\d:": ("SRT", "give it the suffix .srt"),
    r"(?:#[^\n]*\n|[^\S\n]*\n)*(?:msgid|msgctxt) \"": ("gettext's PO", "give it the suffix .po"),
    r"\s*\[Script Info\]": ("subtitles of ASS", _HOW[".ass"]),
    r"\s*<(?:srcset|refset|tstset)\b": ("a test set of WMT", "give it the suffix .sgm"),
    r"\s*<(?:tmx|xliff)\b": ("XML", "give it the suffix .tmx or .xlf"),
}
"""How a text begins that has no sentences in its lines, with what it is. No sentence looks like one of these."""


def refuse_known_format(path: Path, instead: str = "", *, but: tuple[str, ...] = ()) -> None:
    """Refuses a file whose lines would be taken for sentences and are none.

    Args:
        instead: What to do with it, if it is a file of pairs.
        but: Suffixes of files whose texts the caller can read.
    """
    suffix = suffix_of(path)
    if suffix in but:
        return
    head = ""
    if path.is_file():  # a pipe has its bytes once
        with suppress(DataError), open_bytes(path, text=False) as content:  # what is wrong is said by what reads it
            head = first_text(content)
    if suffix in NOT_LINES and re.match(_CODES.get(suffix, ""), head):
        holds_pairs = instead and suffix in SUFFIXES and suffix != ".json"  # which most often holds none
        advice = instead if holds_pairs else f"its lines are not sentences; {_HOW.get(suffix, _OWN_TOOL)}"
        raise DataError(f"{path} is not plain text: {advice}")
    refuse_known_text(str(path), head)


def refuse_other_output(path: Path, *but: str) -> None:
    """Refuses to write lines of plain text under the name of another format. `but` are suffixes that may be written.

    A suffix that is also the code of a language is allowed.
    """
    suffix = suffix_of(path)
    if suffix in NOT_LINES and suffix not in (*_CODES, *but):
        begin, _, end = str(path).lower().rpartition(suffix)
        name = f"{str(path)[: len(begin)]}.txt{str(path)[len(begin) + len(suffix) :] if end else ''}"
        raise UsageError(f"--output {path}: what is written is no {suffix}; give it another name, such as {name}")


def refuse_known_text(name: str, head: str) -> None:
    """Refuses a text that begins as no text of sentences does."""
    for sign, (what, how) in _SIGNS.items():
        if re.match(sign, head, re.IGNORECASE):
            raise DataError(f"{name} looks like {what}: its lines are not sentences; {how}")
