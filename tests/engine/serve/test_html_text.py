"""HTML: texts are translated, tags inside them arrive or the text is translated from tag to tag, all else stays."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.engine.serve.html_text import translate_html


def upper(texts: list[str]) -> list[str]:
    return [re.sub(r"(</?T\d+>)", lambda tag: tag[0].lower(), text.upper()) for text in texts]


def without_tags(texts: list[str]) -> list[str]:
    return [re.sub(r"</?t\d+>", "", text).upper() for text in texts]


PAGES = [
    ("plain & simple", "PLAIN &amp; SIMPLE"),
    ("<p>one</p>\n<p> two </p>", "<p>ONE</p>\n<p> TWO </p>"),
    ("<p>a <b>b <i>c</i></b> d</p>", "<p>A <b>B <i>C</i></b> D</p>"),
    ("<a href='x.html'>whole</a>", "<a href='x.html'>WHOLE</a>"),
    ("a<br>b<hr/>c", "A<br>B<hr/>C"),
    ("<li>one<li>two <b>open</ul>rest", "<li>ONE<li>TWO <b>OPEN</ul>REST"),
    ("x &lt; y &eacute;", "X &lt; Y É"),
    ("<script>let a = 'b'</script><style>p {x: y}</style>t", "<script>let a = 'b'</script><style>p {x: y}</style>T"),
    ("<p translate='no'>a <b>b</b></p><p class='x notranslate'>c</p>d", None),
    ("<code>x = <code>1</code></code> end", "<code>x = <code>1</code></code> END"),
    ("<!DOCTYPE html><!-- note --><p>1 + 2</p>", "<!DOCTYPE html><!-- note --><p>1 + 2</p>"),
    ("", ""),
]


@pytest.mark.parametrize(("page", "expected"), PAGES)
@pytest.mark.parametrize("translate", [upper, without_tags])
def test_pages(page: str, expected: str | None, translate: object) -> None:
    found = translate_html(page, translate)  # pyright: ignore[reportArgumentType]
    assert found == (page.removesuffix("d") + "D" if expected is None else expected)


def test_words_may_change_places_with_their_tags() -> None:
    def turned(texts: list[str]) -> list[str]:
        assert texts == ["a <t1>red</t1> <t2>house</t2>"]
        return ["une <t2>maison</t2> <t1>rouge</t1> & <i>"]

    page = "a <b>red</b> <a href='h'>house</a>"
    assert translate_html(page, turned) == "une <a href='h'>maison</a> <b>rouge</b> &amp; &lt;i&gt;"


@pytest.mark.parametrize("wrong", ["x", "<t1>x", "</t1>x<t1>", "<t1>x</t1><t1>y</t1>", "<t1>a<t2>b</t1>c</t2>"])
def test_what_is_not_nested_is_translated_from_tag_to_tag(wrong: str) -> None:
    asked: list[list[str]] = []

    def translate(texts: list[str]) -> list[str]:
        asked.append(texts)
        return [wrong] if len(asked) == 1 else upper(texts)

    assert translate_html("a <b>b</b> c <i>d</i>", translate) == "A <b>B</b> C <i>D</i>"
    assert asked[1] == ["a", "b", "c", "d"]


NAMES = st.sampled_from(["b", "i", "p", "div", "span", "code", "li", "script", "td", "br"])
FRAGMENTS = st.one_of(
    st.sampled_from(["word", " ", "\n", "&amp;", "&#65;", "&nope", "<", ">", '"', "1", "<!-- c -->", "é", "&", "<t1>"]),
    NAMES.map(lambda name: f"<{name}>"),
    NAMES.map(lambda name: f"</{name}>"),
    NAMES.map(lambda name: f"<{name} class='a b' x=\"1 > 2\">"),
)


class Tags(HTMLParser):
    """The tags of a page, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(f"{tag} {attrs}")

    def handle_endtag(self, tag: str) -> None:
        self.found.append(f"/{tag}")


@settings(max_examples=300, deadline=None)
@given(st.lists(FRAGMENTS, max_size=25).map("".join))
def test_no_page_loses_a_tag(page: str) -> None:
    for translate in (upper, without_tags, lambda texts: ["" for _ in texts]):
        assert Tags(translate_html(page, translate)).found == Tags(page).found
