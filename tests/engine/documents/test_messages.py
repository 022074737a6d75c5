"""Messages in ICU's format: what is translated, what stays, and that a result says the same with the same numbers."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.engine.documents.messages import Message, looks_like_message, parse_message


def parsed(text: str) -> Message:
    message = parse_message(text)
    assert message is not None
    return message


def capitals(text: str) -> str:
    """Words in capitals; placeholders stay."""
    return "".join(part if part[:1] in "{<" else part.upper() for part in re.split(r"(\{[^{}]*\}|<[^<>]*>)", text))


@pytest.mark.parametrize(
    ("message", "texts", "filled"),
    [
        (
            "{VAR_PLURAL, plural, =0 {no cat} =1 {one cat} other {<t1/> cats}}",
            ["no cat", "one cat", "<t1/> cats"],
            "{VAR_PLURAL, plural, =0 {NO CAT} =1 {ONE CAT} other {<t1/> CATS}}",
        ),
        (
            "You have {n, plural,\n  one {# mail}\n  other {# mails}\n} in {m, number} folders.",
            ["You have", "{0} mail", "{0} mails", "in {m, number} folders."],
            "YOU HAVE {n, plural,\n  one {# MAIL}\n  other {# MAILS}\n} IN {m, number} FOLDERS.",
        ),
        (
            "{n,plural,offset:1 =0{nobody}one{You and # other}other{You and # others, it''s {name}}}",
            ["nobody", "You and {0} other", "You and {0} others, it's {name}"],
            "{n,plural,offset:1 =0{NOBODY}one{YOU AND # OTHER}other{YOU AND # OTHERS, IT''S {name}}}",
        ),
        (
            "{g, select, male {his {n, plural, one {cat} other {# cats}}} other {their '{cat}'}}",
            ["his", "cat", "{0} cats", "their {cat}"],
            "{g, select, male {HIS {n, plural, one {CAT} other {# CATS}}} other {THEIR '{cat}'}}",
        ),
        ("{n, selectordinal, one {#} other {#}}", [], "{n, selectordinal, one {#} other {#}}"),
        ("{t, date, ::yMMMd} and {n, plural, other {a {0} b}}", ["{t, date, ::yMMMd} and", "a {0} b"], None),
    ],
)
def test_branches_are_texts_and_the_frame_stays(message: str, texts: list[str], filled: str | None) -> None:
    found = parsed(message)
    assert found.texts == texts
    assert found.filled(texts, "") == message
    if filled is not None:
        assert found.filled([capitals(text) for text in texts], "") == filled


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("ru", ["few", "many", "one", "other"]),
        ("pl_PL", ["few", "many", "one", "other"]),
        ("ja", ["other"]),
        ("ar", ["few", "many", "one", "two", "zero", "other"]),
        ("", ["other"]),
        ("xx-unknown", ["other"]),
    ],
)
def test_forms_of_the_target_language_are_as_other(language: str, forms: list[str]) -> None:
    found = parsed("{n, plural, =1 {one} other {# cats}}").filled(["eins", "{0} Katzen"], language)
    expected = " ".join(f"{form} {{# Katzen}}" for form in forms)
    assert found == f"{{n, plural, =1 {{eins}} {expected}}}"


def test_forms_of_ordinals_are_others() -> None:
    message = "{n, selectordinal, other {place}} {g, select, other {x}}"
    found = parsed(message).filled(["Platz", "y"], "en")
    assert found == "{n, selectordinal, few {Platz} one {Platz} two {Platz} other {Platz}} {g, select, other {y}}"


@pytest.mark.parametrize(
    "text",
    [
        "{n, plural, one {x}",
        "{n, plural, one {x} two {y}}",
        "{n, plural,}",
        "the cat {n, select, a} sleeps",
        "{n, plural, other {x}} }",
    ],
)
def test_what_only_looks_like_a_message_is_none(text: str) -> None:
    assert looks_like_message(text)
    assert parse_message(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "{words in braces} {0} {name, number} ${x} {{n}}",
        "{n, pluralize, one {x}}",
        "plural, one {x} other {y}",
        "f(a) { return plural, b }",
    ],
)
def test_ordinary_braces_are_text(text: str) -> None:
    assert not looks_like_message(text)


@pytest.mark.parametrize(
    ("source", "translation", "written"),
    [
        ("{n, plural, other {cats}}", "l'eau", "l'eau"),
        ("{n, plural, other {cats}}", "les chats'", "les chats’"),
        ("{n, plural, other {cats of {x}}}", "d'{x}", "d’{x}"),
        ("{n, plural, other {it''s cats}}", "l'eau", "l''eau"),
        ("{n, plural, other {cats}}", "a {b} #c", "a '{b}' '#'c"),
        ("{g, select, other {cats}}", "no. #1", "no. #1"),
    ],
)
def test_signs_in_a_translation_mean_nothing(source: str, translation: str, written: str) -> None:
    found = parsed(source).filled([translation], "")
    assert found == source[: source.rindex("{", 0, source.index("cats")) + 1].split("it''s")[0] + written + "}}"


def test_a_translation_without_an_argument_or_with_one_twice_is_none() -> None:
    message = parsed("{n, plural, other {# cats of {name}}}")
    assert message.texts == ["{0} cats of {name}"]
    for wrong in ("cats of {name}", "{0} cats", "{0} {0} cats of {name}", ""):
        assert message.filled([wrong], "") is None


@pytest.mark.parametrize(
    "text",
    [
        "{0, choice, 0#no files|1#one file|1<many files}",
        "There {0,choice,0#are none|1#is one|1<are {0,number,integer}}.",
        "{n, plural, one {# cat} other {{0,choice,0#no|1#one}}}",
        "{0,CHOICE,0#a|1#b}",
    ],
)
def test_a_choice_is_left_as_it_is(text: str) -> None:
    """Its branches are texts, too: whole, it would be an argument that stays in the source's language."""
    assert looks_like_message(text)
    assert parse_message(text) is None


def test_what_is_lost_at_the_ends_is_left_out_for_a_second_try() -> None:
    message = parsed("{n, plural, one {# cat} other {<b>{x} cats</b> {y}} =5 {a {z} b}}")
    assert message.shorter(0, "Katze") == ("{0} ", "cat", "")
    assert message.shorter(0, "{0} Katze") is None, "it came through"
    assert message.shorter(1, "Katzen") == ("<b>{x} ", "cats", "</b> {y}")
    assert message.shorter(2, "a b") is None, "it is in the middle"


# --- generated messages: an evaluation written here, which knows nothing of tokens ---

WORDS = st.text(alphabet="abcü 中.,!?-", min_size=1, max_size=8).filter(str.strip)
NAMES = st.sampled_from(["n", "count", "user.name", "0"])


def simple() -> st.SearchStrategy[list[Any]]:
    argument = st.builds(lambda name, kind: ("argument", name, kind), NAMES, st.sampled_from(["", ", number"]))
    return st.lists(st.one_of(WORDS, argument, st.just(("hash",))), min_size=1, max_size=4)


def choices(content: st.SearchStrategy[list[Any]]) -> st.SearchStrategy[list[Any]]:
    def choice(kind: str, keys: list[str]) -> st.SearchStrategy[tuple[Any, ...]]:
        branches = st.fixed_dictionaries({"other": content}, optional=dict.fromkeys(keys, content))
        return st.builds(lambda name, found, space: ("choice", kind, name, found, space), NAMES, branches, SPACES)

    plural = st.sampled_from(["plural", "selectordinal"]).flatmap(lambda kind: choice(kind, ["one", "=0", "many"]))
    return st.lists(st.one_of(WORDS, plural, choice("select", ["male", "x"])), min_size=1, max_size=3)


SPACES = st.sampled_from(["", " ", "\n  "])
MESSAGES = st.recursive(simple(), choices, max_leaves=6)


def written(parts: list[Any], counts: bool = False) -> str:
    out = ""
    for part in parts:
        match part:
            case str():
                out += part
            case ("argument", name, kind):
                out += f"{{{name}{kind}}}"
            case ("hash",):
                out += "#" if counts else ""
            case ("choice", kind, name, branches, space):
                inner = kind != "select"
                listed = "".join(f"{space}{key}{space}{{{written(value, inner)}}}" for key, value in branches.items())
                out += f"{{{name},{space}{kind},{listed}{space}}}"
    return out


@settings(max_examples=300, deadline=None)
@given(MESSAGES, st.sampled_from(["", "de", "ru", "ar"]))
def test_any_message_comes_back_and_with_words_changed_has_the_same_frame(parts: list[Any], language: str) -> None:
    text = written(parts)
    if not looks_like_message(text):
        return
    message = parsed(text)
    assert message.filled(message.texts, "") == text
    changed = message.filled([capitals(one) for one in message.texts], language)
    assert changed is not None
    again = parsed(changed)
    assert again.filled(again.texts, language) == changed, "no form is added twice"
