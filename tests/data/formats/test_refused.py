"""Files whose lines are no sentences are refused; files of lines never are, whatever their names end in."""

import time
from pathlib import Path

import pytest
from helpers.written_files import Write
from hypothesis import given
from hypothesis import strategies as st

from tfm.data.formats import SUFFIXES
from tfm.data.formats.refused import NOT_LINES, refuse_known_format, refuse_known_text, refuse_other_output
from tfm.system.errors import DataError, UsageError

BY_NAME = {
    ".strings": "Xcode",
    ".xcstrings": "Xcode",
    ".properties": "prop2po",
    ".yml": "yaml2po",
    ".yaml": "yaml2po",
    ".toml": "toml2po",
    ".ini": "ini2po",
    ".json": "json2po",
    ".php": "php2po",
    ".conf": "ini2po",
    ".json5": "json2po",
    ".dfxp": "save the subtitles as .srt",
    ".ndjson": "give it the suffix .jsonl",
    ".resx": "resx2po",
    ".html": "html2po",
    ".htm": "html2po",
    ".md": "md2po",
    ".odt": "odf2xliff",
    ".docx": "tikal",
    ".pptx": "tikal",
    ".epub": "tikal",
    ".rst": "sphinx-build -b gettext",
    ".tex": "po4a",
    ".ftl": "the tool that made it",
    ".js": "the tool that made it",
    ".ipynb": "the tool that made it",
    ".ods": "save the sheet as .csv",
    ".srt": "tfm translate --input",
    ".sgm": "tfm evaluate",
    ".rc2": "rc2po",
    **dict.fromkeys((".svelte", ".haml", ".neon", ".go", ".rb", ".c"), "the tool that made it"),
    **dict.fromkeys((".7z", ".Z", ".lzma"), "unpack it first"),
}


LANGUAGES = (
    ".cs",
    ".pl",
    ".sh",
    ".hbs",
    ".cfg",
    ".org",
    ".tab",
    ".eml",
    ".lrc",
    ".smi",
    ".itt",
    ".svg",
    ".dtd",
    ".isl",
    ".lua",
)
"""Suffixes that are codes of languages, two of them of programs as well."""
BEGINNINGS = {
    ".ass": "[Events]",
    ".cfg": "[app]\n",
    ".dtd": "<!ENTITY a 'b'>",
    ".ejs": "<p><%= name %></p>",
    ".eml": "From: a@b.org\nSubject: c\n",
    ".erb": "<p><%= name %></p>",
    ".hbs": "<p>{{name}}</p>",
    ".itt": "<?xml version='1.0'?>",
    ".jsp": "<%@ page %>",
    ".lrc": "[00:12.00]a line",
    ".org": "* Title",
    ".smi": "<SAMI>",
    ".svg": "<svg>",
    ".tab": "one\teins\n",
    ".ts": "<TS>",
    ".tsx": "import React from 'react'",
    ".vue": "<template>",
    ".wxl": "<?xml version='1.0'?>",
    ".isl": "; *** Inno Setup\n[LangOptions]\n",
    ".lua": "local L = {}\n",
    ".nsh": "!insertmacro LANG\n",
    ".qmd": "---\ntitle: a\n---\n",
    ".rmd": "# A heading\n",
}
"""How a file begins whose suffix could be a language's code."""


@pytest.mark.parametrize("suffix", BY_NAME)
def test_a_name_says_it(write: Write, suffix: str) -> None:
    for name in (f"a{suffix}", f"a{suffix.upper()}.gz", "nowhere" + suffix):
        path = write(name, "a line\n") if name != "nowhere" + suffix else Path(name)
        with pytest.raises(DataError, match="is not plain text: its lines are not sentences; ") as refused:
            refuse_known_format(path)
        assert BY_NAME[suffix] in str(refused.value)


@pytest.mark.parametrize(
    ("name", "content", "refused"),
    [
        ("app.arb", '{\n  "title": "x"\n}', True),
        ("train.arb", "جملة عربية\n", False),
        ("a.ts", '<?xml version="1.0"?>\n<!DOCTYPE TS>', True),
        ("a.ts", "import { x } from 'y';\n", True),
        ("train.ts", "Xivulwa xa Xitsonga\n", False),
        *((f"train{suffix}", "A sentence; another one: 50 % of it.\nThe next {0}.\n", False) for suffix in LANGUAGES),
        *((f"train{suffix}", content, True) for suffix, content in BEGINNINGS.items()),
        ("a.ass", "[Script Info]\n", True),
        ("train.ass", "a line\n", False),
    ],
)
def test_where_a_suffix_is_a_language_the_content_says_it(write: Write, name: str, content: str, refused: bool) -> None:
    path = write(name, content)
    if refused:
        with pytest.raises(DataError, match="is not plain text"):
            refuse_known_format(path)
    else:
        refuse_known_format(path)


CONTENTS = {
    "HTML": ["<!DOCTYPE html>\n<title>x</title>", "\n  <html lang='en'>\n"],
    "PHP": ["<?php return [];"],
    "JSON": ['{\n  "title": "x"\n}', '[\n\t{"a": 1}\n]', '{\r\n    "cells": [\r\n'],
    "LaTeX": ["\\documentclass{article}\n"],
    "RTF": ["{\\rtf1\\ansi"],
    "WebVTT": [
        "WEBVTT\n\n00:01.000 --> 00:02.000\nx\n",
        "WEBVTT - title\r\n\r\n",
        "WEBVTT\nKind: captions\nLanguage: en\n\n",
    ],
    "SRT": [f"{blank}1\r\n00:00:01,000 --> 00:00:02,000\r\nx\r\n" for blank in ("", "\r\n", "\n \n")],
    "subtitles of ASS": ["[Script Info]\nTitle: x\n"],
    "gettext's PO": ['# x\n\nmsgid ""\nmsgstr ""\n', '#: a.c:1\nmsgctxt "a"\nmsgid "b"\n', 'msgctxt "a"\nmsgid "b"\n'],
    "a test set of WMT": ['<srcset setid="x">\n'],
    "XML": ['<tmx version="1.4">\n'],
}


@pytest.mark.parametrize("what", CONTENTS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_beginning_says_it(write: Write, what: str, encoding: str) -> None:
    for content in CONTENTS[what]:
        with pytest.raises(DataError, match=rf"a\.txt looks like {what}: its lines are not sentences; "):
            refuse_known_format(write("a.txt", content.encode(encoding)))


@pytest.mark.parametrize(
    "text",
    [
        '{"translation": {"en": "a target of a parser"}}\n{"x": 1}\n',
        "{\n",
        "[\n[\n",
        "{ the cat sleeps }\n",
        "<b>the cat</b> sleeps\n",
        "<2de> the cat\n",
        "1\n2\n3\n",
        "WEBVTT is a format\nof subtitles\n",
        "WEBVTT\nof subtitles\n\n",
        "\n1\n2\n",
        "msgid is a keyword\n",
        "# a heading\n\n```\n",
        "title = the cat\n",
        "- the cat\n- the dog\n",
        "<html5 tags\n",
        "",
    ],
)
def test_sentences_may_look_odd(write: Write, text: str) -> None:
    for name in ("train.en", "train.txt", "train.de.gz", "train"):
        refuse_known_format(write(name, text))


@given(st.text())
def test_a_text_of_one_line_is_never_refused_for_its_content_but_for_markup(text: str) -> None:
    line = text.replace("\n", " ")
    if not line.strip().lower().startswith(("<", "{\\rtf", "\\documentclass", "msgid", "msgctxt", "[script info]")):
        refuse_known_text("it", line)


@pytest.mark.parametrize("text", ["\n", " \n", "#\n", "{\n", "<", "1\n", " "])
def test_the_look_takes_no_time(text: str) -> None:
    began = time.monotonic()
    refuse_known_text("it", text * 4096)
    assert time.monotonic() - began < 1


def test_what_pairs_there_are_is_said(write: Write) -> None:
    for suffix in sorted(NOT_LINES):
        with pytest.raises(DataError) as refused:
            content = BEGINNINGS.get(suffix, "{}")
            refuse_known_format(write(f"a{suffix}", content), "give it to --data")
        assert ("give it to --data" in str(refused.value)) == (suffix in SUFFIXES and suffix != ".json"), suffix


def test_lines_are_not_written_under_the_name_of_another_format() -> None:
    for name in ("out.zip", "out.7z", "out.Z", "out.lzma", "out.docx", "out.xlsx", "o/out.PO", "out.tmx", "out.csv"):
        stem = name.rpartition(".")[0]
        with pytest.raises(UsageError, match=rf"--output {name}: what is written is no \.\w+; .* such as {stem}\.txt$"):
            refuse_other_output(Path(name))
    with pytest.raises(UsageError, match=r"such as csv\.csv\.txt\.gz$"):
        refuse_other_output(Path("csv.csv.csv.gz"))
    for name in ("out", "out.txt", "out.de", "train.ts", "out.cs.gz", "out.bz2", "out.en.xz", "x.zst", "/dev/stdout"):
        refuse_other_output(Path(name))
    refuse_other_output(Path("out.json"), ".json")
