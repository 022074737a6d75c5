"""docs/sources.md lists the texts that docstrings cite, and names modules and settings that there are."""

import re
from pathlib import Path

from tfm.configs import load_config, merge, parse_config
from tfm.configs.loader import parse_assignment

ROOT = Path(__file__).parent.parent
SOURCES = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
KEY = re.compile(r"\[[A-Z][A-Za-z-]+ (?:\d{4}[a-z]?|n\.d\.)\]")
LISTED = re.findall(rf"^\| ({KEY.pattern}) \|", SOURCES.partition("## From formula")[0], re.MULTILINE)


def cited() -> dict[str, set[str]]:
    """The keys in our Python files, each with the files that have it."""
    found: dict[str, set[str]] = {}
    for folder in ("cli", "configs", "data", "engine", "seq2seq", "system", "tests", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            for key in KEY.findall(path.read_text(encoding="utf-8")):
                found.setdefault(key, set()).add(str(path.relative_to(ROOT)))
    return found


def test_each_text_is_listed_once() -> None:
    assert len(LISTED) == len(set(LISTED)) >= 5


def test_what_docstrings_cite_is_listed_and_what_is_listed_is_cited() -> None:
    assert {key: files for key, files in cited().items() if key not in LISTED} == {}
    assert set(LISTED) - cited().keys() == set()


def test_the_document_itself_has_no_other_keys() -> None:
    assert set(KEY.findall(SOURCES)) == set(LISTED)


def test_the_modules_are_there() -> None:
    modules = re.findall(r"`((?:model|decoding)/\w+\.py)`", SOURCES)
    assert len(modules) >= 10
    for module in modules:
        assert (ROOT / "seq2seq" / module).is_file(), module


def test_the_names_are_in_their_modules() -> None:
    rows = re.findall(r"^\|.*\| ([^|]* in `(model/\w+\.py)`[^|]*)\|$", SOURCES, re.MULTILINE)
    assert len(rows) >= 10
    for cell, module in rows:
        text = (ROOT / "seq2seq" / module).read_text(encoding="utf-8")
        names = re.findall(r"`(\w+)(?:\([^`]*\))?`", cell.partition(" in `")[0])
        assert names
        for name in names:
            assert name in text, f"{name} in {module}"


def test_the_settings_are_settings() -> None:
    shown = re.findall(r"`(\w+=\w+|\w+: \w+)`", SOURCES)
    assert len(shown) > 15
    for setting in shown:
        name, value = re.split(r"=|: ", setting)
        parse_config(merge(load_config("base"), parse_assignment(f"model.{name}={value}")))


def test_the_readme_leads_there() -> None:
    assert "(docs/sources.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
