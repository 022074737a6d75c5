"""Placeholders: what counts as one, and that nothing of a text is lost where symbols stand for them."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.data.placeholders import SYMBOLS, Differences, differences, mask, mask_pair, placeholders


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello %s, you have %d new messages", ["%s", "%d"]),
        ("%(count)d of %(total)s, %1$s %5.2f %%", ["%(count)d", "%(total)s", "%1$s", "%5.2f", "%%"]),
        ("50% of the people", []),
        ("a 100%discount", []),
        (
            "Hi {name}, {0:.2f} and {} or {{ user.name }} ${HOME}",
            ["{name}", "{0:.2f}", "{}", "{{ user.name }}", "${HOME}"],
        ),
        ("a <b>bold</b> word<br/>", ["<b>", "</b>", "<br/>"]),
        ('<a href="x y.html">here</a>', ['<a href="x y.html">', "</a>"]),
        ("1 < 2 and 3 > 2", []),
        ("salt &amp; pepper &#160; at&t", ["&amp;", "&#160;"]),
        ("See https://example.org/a?b=c#d.", ["https://example.org/a?b=c#d"]),
        ("(www.example.org)", ["www.example.org"]),
        ("write to me@example.org, please", ["me@example.org"]),
        (r"one\ntwo", [r"\n"]),
        ("use :func:`open` and ``x = 1`` or `code`", [":func:`open`", "``x = 1``", "`code`"]),
        ("see :ref:`the tutorial <tut>`", ["<tut>"]),
        ("|version| of it", ["|version|"]),
        ("%dx%d pixels, %dMB", ["%d", "%d", "%d"]),
        ("%1 of %L2, %n files", ["%1", "%L2", "%n"]),
        ("50%ige Lösung, 20 % of it", []),
        (r"{\an8}Hi {a[0]}", [r"{\an8}", "{a[0]}"]),
        ("访问https://example.com/a。谢谢", ["https://example.com/a"]),
        ("联系foo@example.com获取", ["foo@example.com"]),
        ("nothing here", []),
        ("", []),
    ],
)
def test_what_counts(text: str, expected: list[str]) -> None:
    assert placeholders(text) == expected


MARKUP = st.sampled_from(
    ["%s", "{name}", "<b>", "</b>", "&amp;", "https://x.org/a", ":f:`x`", "%", "{", "<", "`", "|a|"]
)
TEXTS = st.lists(MARKUP | st.text(max_size=4), max_size=30).map("".join)


@given(TEXTS)
def test_a_text_comes_back(text: str) -> None:
    text = "".join(character for character in text if character not in SYMBOLS)
    masked = mask(text)
    assert masked.unmask(masked.text) == text
    assert set(masked.values) == {character for character in masked.text if character in SYMBOLS}


@given(TEXTS, TEXTS)
def test_both_sides_of_a_pair_come_back_with_the_same_symbols(src: str, tgt: str) -> None:
    src, tgt = ("".join(c for c in text if c not in SYMBOLS) for text in (src, tgt))
    masked_src, masked_tgt = mask_pair(src, tgt)
    assert [masked_src.count(symbol) for symbol in SYMBOLS] == [masked_tgt.count(symbol) for symbol in SYMBOLS]
    if masked_src == src:
        assert masked_tgt == tgt


def test_equal_placeholders_are_one_symbol_and_others_are_others() -> None:
    masked = mask("%s and {a} and %s")
    assert masked.text == f"{SYMBOLS[0]} and {SYMBOLS[1]} and {SYMBOLS[0]}"
    assert masked.unmask(f"{SYMBOLS[1]}, {SYMBOLS[0]}{SYMBOLS[0]}{SYMBOLS[5]}") == "{a}, %s%s"


def test_more_placeholders_than_symbols() -> None:
    text = " ".join(f"{{field{number}}}" for number in range(40))
    masked = mask(text)
    assert len(masked.values) == len(SYMBOLS) and "{field39}" in masked.text
    assert masked.unmask(masked.text) == text


def test_a_pair_has_symbols_for_what_both_sides_have_equally_often() -> None:
    src, tgt = mask_pair("Click <b>%s</b> or %d", "Klicke <b>%s</b> oder %d %d")
    assert "%d" in src and "%d %d" in tgt
    assert "%s" not in src + tgt and "<b>" not in src + tgt
    assert [c for c in src if c in SYMBOLS] == [c for c in tgt if c in SYMBOLS]
    assert mask_pair("plain %s", "einfach") == ("plain %s", "einfach")


def test_pairs_begin_with_different_symbols() -> None:
    firsts = {next(c for c in mask_pair(f"text {n} %s", "%s")[0] if c in SYMBOLS) for n in range(300)}
    assert firsts == set(SYMBOLS)


def test_differences() -> None:
    assert not differences("%s and <b>", "<b> und %s")
    found = differences("%s %s {a}", "%s {b}")
    assert found == Differences(("%s", "{a}"), ("{b}",))
    assert str(found) == "lost %s {a}, added {b}"
    assert str(Differences(("%s",) * 9_000, ("https://" + "a" * 10_000,))) == (
        "lost %s %s %s %s %s and 8,995 more, added https://" + "a" * 32 + ".."
    )
    assert not differences("%s files", "%sdateien") and differences("%(s)s %s", "%(s)s").lost == ("%s",)
    assert differences("https://a.org https://a.org/b", "https://a.org/b").lost == ("https://a.org",)


@pytest.mark.parametrize(
    "text", ["A" * 100_000 + "@", "<!-- " * 10_000, "http://" * 20_000, "%" * 50_000, ":a" * 50_000]
)
def test_long_lines_take_no_time(text: str) -> None:
    begun = time.perf_counter()
    placeholders(text)
    assert time.perf_counter() - begun < 2
