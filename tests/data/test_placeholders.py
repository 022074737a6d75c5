"""Placeholders: what counts as one, and that nothing of a text is lost where symbols stand for them."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.data.cleaning import clean
from tfm.data.placeholders import (
    EVERY_KIND,
    KINDS,
    SYMBOLS,
    Differences,
    PlaceholderCount,
    PlaceholderRule,
    differences,
    has_words,
    mask,
    placeholders,
)


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
        ("Hello, [X7X] and [X12X]! [X] [XX] [x1x]", ["[X7X]", "[X12X]"]),
        ("50%ige Lösung, 20 % of it", []),
        (r"{\an8}Hi {a[0]}", [r"{\an8}", "{a[0]}"]),
        ("访问https://example.com/a。谢谢", ["https://example.com/a"]),
        ("联系foo@example.com获取", ["foo@example.com"]),
        ("{the old woman sleeps} <the old woman sleeps> {and the child} {{the cat}} {note: the cat}", []),
        (
            "{n, number} {when, date, short} {:%Y-%m-%d %H:%M} {x!r:>10}",
            ["{n, number}", "{when, date, short}", "{:%Y-%m-%d %H:%M}", "{x!r:>10}"],
        ),
        (
            '<input disabled> <img src=a.png alt="x y"/> <br /> <fr>',
            ["<input disabled>", '<img src=a.png alt="x y"/>', "<br />", "<fr>"],
        ),
        ("%count% of %user_name%, %name%.", ["%count%", "%user_name%", "%name%"]),
        ("共有%count%个文件", ["%count%"]),
        ("%dx%d, %d%%, %d% of it, %ld% and %n%", ["%d", "%d", "%d", "%%", "%d", "%ld", "%n"]),
        ("50% of, 100 %, 5 % discount, 10% off, 30%-50%, 20%of%", []),
        ("%{count} of 50%{name}", ["%{count}", "{name}"]),
        ("%#@count@ in %1$#@all_files@", ["%#@count@", "%1$#@all_files@"]),
        ("%<PRIu64> of %5<PRId32> or 50%<b>", ["%<PRIu64>", "%5<PRId32>", "<b>"]),
        (
            """{{ user.name | upper }} {{ when|date:'short' }} {{ x | join(", ") | upper }} {{ words | of the cat }}""",
            ["{{ user.name | upper }}", "{{ when|date:'short' }}", '{{ x | join(", ") | upper }}'],
        ),
        ("{{#if a.b}}x{{else}}y{{/if}} {{> header}}", ["{{#if a.b}}", "{{else}}", "{{/if}}", "{{> header}}"]),
        ("{$name}, { $name } and {{ $name }}, {$}", ["{$name}", "{ $name }", "{{ $name }}"]),
        ("<0>x</0> <1/> <2 />, 5 <3> 4", ["<0>", "</0>", "<1/>", "<2 />", "<3>"]),
        ("1 <2 and 3> 2, <3, <v Tom>", []),
        ("https://ru.wikipedia.org/wiki/Кот.", ["https://ru.wikipedia.org/wiki/Кот"]),
        ("(https://exämple.de/é) www.παράδειγμα.gr, x", ["https://exämple.de/é", "www.παράδειγμα.gr"]),
        ("https://example.com에서, https://example.com/aの", ["https://example.com", "https://example.com/a"]),
        ("üser@exämple.de. tom@пример.рф!", ["üser@exämple.de", "tom@пример.рф"]),
        ("@name, :count, [b]", []),
        ("nothing here", []),
        ("", []),
    ],
)
def test_what_counts(text: str, expected: list[str]) -> None:
    assert placeholders(text) == expected


MARKUP = st.sampled_from(
    [
        "%s",
        "%name%",
        "%count%",
        "%{n}",
        "{{ a | b }}",
        "{{/if}}",
        "{ $n }",
        "<0>",
        "é",
        "{name}",
        "<b>",
        "</b>",
        "&amp;",
        "https://x.org/a",
        ":f:`x`",
        "%",
        "{",
        "<",
        "`",
        "|a|",
    ]
)
TEXTS = st.lists(MARKUP | st.text(max_size=4), max_size=30).map("".join)


@given(TEXTS, st.sets(st.sampled_from(KINDS)))
def test_a_text_comes_back(text: str, kinds: set[str]) -> None:
    text = "".join(character for character in text if character not in SYMBOLS)
    masked = mask(clean(text), kinds)
    assert clean(masked.text) == masked.text
    assert masked.unmask(masked.text) == clean(text)
    assert set(masked.values) == {character for character in masked.text if character in SYMBOLS}
    assert not set(placeholders(masked.text, kinds)) & set(masked.values.values())


@given(TEXTS, TEXTS)
def test_a_source_is_the_same_alone_and_in_a_pair_and_its_target_has_the_same_symbols(src: str, tgt: str) -> None:
    src, tgt = (clean("".join(c for c in text if c not in SYMBOLS)) for text in (src, tgt))
    masked = mask(src, KINDS)
    target = masked.mask(tgt)
    assert set(target) & set(SYMBOLS) <= set(masked.text)
    for symbol, value in masked.values.items():
        assert target.count(symbol) == placeholders(tgt).count(value)
    assert target.translate({ord(symbol): value for symbol, value in masked.values.items()}) == tgt


def test_equal_placeholders_are_one_symbol_and_others_are_others() -> None:
    masked = mask("%s and {a} and %s", KINDS)
    first, second = masked.values
    assert masked.text == f"{first} and {second} and {first}"
    other = next(symbol for symbol in SYMBOLS if symbol not in masked.values)
    assert masked.unmask(f"{second}, {first}{first}{other}") == "{a}, %s%s"


def test_more_placeholders_than_symbols() -> None:
    text = " ".join(f"{{field{number}}}" for number in range(40))
    masked = mask(text, KINDS)
    assert len(masked.values) == len(SYMBOLS) and "{field39}" in masked.text
    assert masked.unmask(masked.text) == text


def test_kinds_that_are_text_have_no_symbols() -> None:
    masked = mask("<fr> the cat sees %s", {"printf"})
    assert list(masked.values.values()) == ["%s"] and masked.text.startswith("<fr> the cat sees ")
    assert has_words("<fr> %s", {"printf"}) and not has_words("<fr> %s", KINDS)


def test_a_placeholder_that_touches_no_letter_in_the_source_touches_none_in_the_translation() -> None:
    masked = mask("the boy finds {name}, <b>red</b> and %s.", KINDS)
    symbol = {value: one for one, value in masked.values.items()}
    given = f"er findet{symbol['{name}']}und{symbol['<b>']}rot{symbol['</b>']}es {symbol['%s']}."
    assert masked.unmask(given) == "er findet {name} und <b>rot</b> es %s."
    unspaced = mask("Mr %s", KINDS)
    assert unspaced.unmask(f"\u79c1{unspaced.text[-1]}\u3055\u3093") == "\u79c1%s\u3055\u3093"


def test_a_placeholder_does_not_run_together_with_what_is_beside_it() -> None:
    masked = mask("&amp; https://example.org/a?b", KINDS)
    entity, url = masked.values
    assert masked.unmask(f"x {url}-{entity}") == "x https://example.org/a?b - &amp;"
    assert masked.unmask(f"x {url}{entity}") == "x https://example.org/a?b &amp;"


def test_texts_begin_with_different_symbols() -> None:
    firsts = {next(c for c in mask(f"text {n} %s", KINDS).text if c in SYMBOLS) for n in range(300)}
    assert firsts == set(SYMBOLS)


def counted(pairs: list[tuple[str, str]]) -> PlaceholderRule:
    count = PlaceholderCount()
    for pair in pairs:
        count.add(*pair)
    return count.rule()


def test_a_kind_is_carried_through_where_the_pairs_do_so() -> None:
    tags = [("<fr> the cat", "le chat"), ("<de> the cat", "die Katze")] * 10
    carried = [(f"the cat %s {n}", f"%s {n} die Katze") for n in range(19)]
    rule = counted([*tags, *carried])
    assert rule.pairs == {"tag": (20, 0), "printf": (19, 19)}
    assert rule.carried == set(), "19 pairs are too few"
    assert rule.expected == {*KINDS} - {"tag"}, "a tag that never arrives is text, and not missed"
    rule = counted([*tags, *carried, ("%s %s", "%s"), ("a %d", "b %d")])
    assert rule.pairs["printf"] == (21, 20) and rule.carried == {"printf"}
    assert counted([("%s", "%s")] * 18 + [("%s", "")] * 2).carried == {"printf"}
    rule = counted([("%s", "%s")] * 17 + [("%s", "")] * 3)
    assert rule.carried == set() and "printf" in rule.expected
    assert EVERY_KIND.carried == EVERY_KIND.expected == {*KINDS} and counted([("a", "b")]).pairs == {}


def test_differences() -> None:
    assert not differences("%s and <b>", "<b> und %s")
    found = differences("%s %s {a}", "%s {b}")
    assert found == Differences(("%s", "{a}"), ("{b}",))
    assert str(found) == "lost %s {a}, added {b}"
    assert str(Differences(("%s",) * 9_000, ("https://" + "a" * 10_000,))) == (
        "lost %s %s %s %s %s and 8,995 more, added https://" + "a" * 32 + ".."
    )
    assert differences("%s files", "%sdateien") == Differences(glued=("%s",))
    assert str(differences("%s files", "%sdateien")) == "glued to a letter %s"
    assert not differences("%s %s", "%s%s") and differences("{a} %s", "{a}x%s").glued == ("{a}", "%s")
    assert not differences("<b>red</b>", "<b>rot</b>") and not differences("%dx%d", "%dx%d")
    assert differences("%(s)s %s", "%(s)s").lost == ("%s",)
    assert differences("https://a.org https://a.org/b", "https://a.org/b").lost == ("https://a.org",)


def test_a_corrupted_address_is_lost() -> None:
    found = differences("Tom sent it to tom@example.com", "Tom l'a envoy\u00e9 \u00e0 tom@example.comp\u00e9tig\u00e9")
    assert found.lost == ("tom@example.com",) and found.added
    found = differences("see https://example.org/a", "voir https://example.org/abc")
    assert found == Differences(("https://example.org/a",), ("https://example.org/abc",))


@pytest.mark.parametrize(
    "text",
    [
        "A" * 100_000 + "@",
        "<!-- " * 10_000,
        "http://" * 20_000,
        "%" * 50_000,
        ":a" * 50_000,
        "%a" * 50_000,
        "{{#a" * 30_000,
        "%1" * 50_000,
        "{{ a" + "|b" * 50_000,
        "%" + "a." * 50_000,
        "é" * 100_000 + "@",
        "{{a|b:" * 20_000,
    ],
)
def test_long_lines_take_no_time(text: str) -> None:
    begun = time.perf_counter()
    placeholders(text)
    assert time.perf_counter() - begun < 2
