"""Plural forms: those that a header names, and those of a language."""

import os
import re
import subprocess
from gettext import c2py  # pyright: ignore[reportAttributeAccessIssue]

import pytest
from babel import Locale, localedata
from babel.messages.plurals import PLURALS
from helpers.po_files import needs_gettext
from helpers.written_files import Write

from tfm.data.formats.plurals import Plurals, rule_of
from tfm.system.errors import UsageError

LANGUAGES = sorted({*(name.split("_")[0] for name in localedata.locale_identifiers()), *PLURALS})


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("nplurals=2; plural=(n != 1);", Plurals(2, 0, 1, True)),
        ("nplurals=2; plural=n>1;", Plurals(2, 0, 1, False)),
        ("nplurals=1; plural=0;", Plurals(1, 0, 0, False)),
        ("nplurals=3; plural=(n==0 ? 0 : n==1 ? 1 : 2);", Plurals(3, 1, 2, True)),
        ("nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);", Plurals(3, 0, 1, False)),
        ("nplurals=INTEGER; plural=EXPRESSION;", Plurals()),
        ("nplurals=2; plural=n%0;", Plurals()),
        ("", Plurals()),
    ],
)
def test_a_rule_says_which_form_is_for_one_thing(rule: str, expected: Plurals) -> None:
    assert Plurals.of(f"Language: xx\nPlural-Forms: {rule}\n") == expected


def test_the_form_for_one_thing_translates_the_singular_unless_it_has_to_show_other_numbers() -> None:
    german, french, japanese = (Plurals.by_rule(rule_of(language)) for language in ("de", "fr", "ja"))
    assert german.is_singular(0, "one file", "%d files") and not german.is_singular(1, "one file", "%d files")
    assert french.is_singular(0, "%d file", "%d files") and not french.is_singular(0, "one file", "%d files")
    assert not japanese.is_singular(0, "%d file", "%d files")


@pytest.mark.parametrize(
    ("language", "rule"),
    [
        ("pt", "nplurals=2; plural=(n != 1);"),
        ("pt-BR", "nplurals=2; plural=(n > 1);"),
        ("pt_br", "nplurals=2; plural=(n > 1);"),
        ("de-AT", "nplurals=2; plural=(n != 1);"),
        ("zh-Hans-CN", "nplurals=1; plural=0;"),
        ("id", "nplurals=1; plural=0;"),
        ("ht", "nplurals=2; plural=(n > 1);"),
    ],
)
def test_the_rule_of_a_language(language: str, rule: str) -> None:
    assert rule_of(language) == rule


def test_a_language_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UsageError, match="no plural forms are known for the language xx"):
        rule_of("xx")


@pytest.mark.parametrize("language", [name for name in LANGUAGES if name not in PLURALS])
def test_other_rules_tell_apart_what_cldr_tells_apart(language: str) -> None:
    rule = Locale(language).plural_form
    formula = re.search(r"plural=(.*);", rule_of(language))
    assert formula
    form = c2py(formula[1])
    pairs = {(form(number), rule(number)) for number in range(1_000)}
    assert len(pairs) == len({one for one, _ in pairs}) == len({other for _, other in pairs})


@needs_gettext
def test_msgfmt_accepts_the_rule_of_each_language(write: Write) -> None:
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\nPlural-Forms: {}\\n"\n'
    for language in LANGUAGES:
        rule = rule_of(language)
        count = Plurals.by_rule(rule).count or 0
        forms = "".join(f'msgstr[{form}] "b"\n' for form in range(count))
        path = write("a.po", f'{header.format(rule)}\nmsgid "a"\nmsgid_plural "c"\n{forms}')
        done = subprocess.run(["msgfmt", "--check-header", "-o", os.devnull, path], capture_output=True)
        assert done.returncode == 0, (language, done.stderr)
