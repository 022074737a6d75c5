"""Subtitles: cues are translated, codes stay whole, and all else is as it was, to the byte."""

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.written_files import Write
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.config import DataConfig
from tfm.engine.documents.subtitles import SubtitleDocument
from tfm.system.errors import DataError

TIME = "00:00:01,000 --> 00:00:02,000"


def filled(
    path: Path, translate: Callable[[str], str] = str.upper, encoding: str = ""
) -> tuple[bytes, SubtitleDocument]:
    document = SubtitleDocument(path, DataConfig(encoding=encoding))
    document.fields.fill([translate(text) for text in document.fields.texts])
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue(), document


def test_codes_are_whole_and_have_no_width(write: Write) -> None:
    link = '<a href="https://example.org" target="x">'
    path = write("a.srt", f"1\n{TIME}\nthe old woman gives the child\n{link}two red apples</a>\n")
    (text,) = filled(path, str)[1].fields.texts
    assert text == f"the old woman gives the child {link}two red apples</a>"
    for word in ("a", "abcdefgh", "abcdefghijklmnopqrstuv"):
        lines = filled(path, lambda text, word=word: re.sub(r"\bthe\b", word, text))[0].decode().split("\n")[2:-1]
        assert len(lines) == 2 and any(link in line for line in lines)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (r"{\an8}the cat", "the cat"),
        (r"{\an8}{\i1}the cat", "the cat"),
        ("<i>the cat</i>", "the cat"),
        ("<v Mary Ann>the cat</v>", "the cat"),
        (r"{\an8}<font color=\"red\"><b>the cat</b></font>", "the cat"),
        ("<i>the</i> cat <i>sleeps</i>", "<i>the</i> cat <i>sleeps</i>"),
        ("<c.loud>the <i>cat</i></c>", "<c.loud>the <i>cat</i></c>".removeprefix("<c.loud>").removesuffix("</c>")),
        ("<v Mary>the cat", "the cat"),
        (r"{\i1}the cat{\i0}", "the cat"),
        ("&lrm;the cat&lrm;", "the cat"),
        ("<i>the cat <b>sleeps</b></i>", "the cat <b>sleeps</b>"),
        ("<b>the</b> cat<i>!</i> <c.yellow>now</c>", "<b>the</b> cat<i>!</i> <c.yellow>now</c>"),
        ("open <lang en>the cat</lang>.", "open <lang>the cat</lang>."),
        ("a <v Tom>cat <v.loud Mary>sleeps", "a <v>cat <v1>sleeps"),
    ],
)
def test_what_stands_around_a_text_is_not_translated(write: Write, line: str, text: str) -> None:
    content, document = filled(write("a.vtt", f"WEBVTT\n\n{TIME}\n{line}\n"), lambda text: text.replace("cat", "dog"))
    assert document.fields.texts == [text]
    assert content.decode() == f"WEBVTT\n\n{TIME}\n{line.replace('cat', 'dog')}\n"


def test_several_who_speak_have_a_text_each_however_many_lines_it_has(write: Write) -> None:
    texts = ["- Yes.", "- No, I see the", "house.", "– And I."]
    content, document = filled(write("a.srt", f"1\n{TIME}\n" + "\n".join(texts) + "\n"), str.upper)
    assert document.fields.texts == ["Yes.", "No, I see the house.", "And I."]
    assert content.decode().splitlines()[2:] == ["- YES.", "- NO, I SEE", "THE HOUSE.", "– AND I."]
    _, alone = filled(write("b.srt", f"1\n{TIME}\n- I saw\nher.\n"), str)
    assert alone.fields.texts == ["- I saw her."]


@pytest.mark.parametrize(
    ("lines", "texts"),
    [
        (["<v.loud Tom>I love you.</v>", "<v Mary>Go.</v>"], ["I love you.", "Go."]),
        (["<v Tom>I love", "you.", "<v Mary>Go."], ["I love you.", "Go."]),
        (["<i>- I love you.</i>", "- Go."], ["I love you.", "Go."]),
        (["- <i>I love you.</i>", "-Go."], ["I love you.", "Go."]),
        (["{\\an8}- I love you.", "- Go."], ["I love you.", "Go."]),
        (["<i>- I love you.", "- Go.</i>"], ["I love you.", "Go."]),
        (["&gt;&gt; I love you.", "&gt;&gt; Go."], ["I love you.", "Go."]),
        *(([f"{dash} I love you.", f"{dash} Go."], ["I love you.", "Go."]) for dash in "\u2010\u2013\u2014"),
        (["<i>one</i>", "<b>two</b>"], ["one", "two"]),
        (["<i>one</i> two", "<b>three</b>"], ["<i>one</i> two <b>three</b>"]),
        (["<i>one</i> <i>two</i>", "<b>three</b>"], ["<i>one</i> <i>two</i> <b>three</b>"]),
    ],
)
def test_who_speaks_and_what_is_in_tags_of_its_own_is_a_text_of_its_own(
    write: Write, lines: list[str], texts: list[str]
) -> None:
    for suffix, start in ((".vtt", "WEBVTT\n\n"), (".srt", "1\n")):
        content, document = filled(write(f"a{suffix}", start + f"{TIME}\n" + "\n".join(lines) + "\n"), str)
        assert document.fields.texts == texts
        written = content.decode().splitlines()[3 if start == "WEBVTT\n\n" else 2 :]
        assert " ".join(written).split() == " ".join(lines).split() and (len(texts) == 1 or written == lines)
    _, other = filled(write("b.srt", f"1\n{TIME}\n>> I love you.\n>> <door creaks> Go.\n"), str)
    assert other.fields.texts == ["I love you.", "<door creaks> Go."]


def test_entities_of_webvtt_are_what_they_stand_for_and_times_of_words_go(write: Write) -> None:
    line = "&gt;&gt; Tom &amp; I &lt;3 <i>cats</i> <00:00:01.500>now"
    content, document = filled(write("a.vtt", f"WEBVTT\n\n{TIME}\n{line}\n"), str.upper)
    assert document.fields.texts == [">> Tom & I <3 <i>cats</i> now"]
    assert "left out 1 of the times" in document.remark
    content, _ = filled(write("b.vtt", f"WEBVTT\n\n{TIME}\n{line}\n"), lambda text: text.replace("cats", "dogs"))
    assert content.decode().splitlines()[-1] == "&gt;&gt; Tom &amp; I &lt;3 <i>dogs</i> now"
    _, other = filled(write("a.srt", f"1\n{TIME}\nTom &amp; I\n"), str)
    assert other.fields.texts == ["Tom &amp; I"], "SRT has no entities"


def test_a_blank_line_parts_the_texts_of_a_cue_of_srt(write: Write) -> None:
    text = f"1\n{TIME}\none\ntwo\n\nthree\n\n\n2\n{TIME}\n\nfour\n5\n\n3\n{TIME}\n6\n4\n{TIME}\nseven"
    content, document = filled(write("a.srt", text))
    assert document.fields.texts == ["one two", "three", "four 5", "6", "seven"]
    assert content.decode() == text.replace("one", "ONE").replace("two", "TWO").replace("three", "THREE").replace(
        "four", "FOUR"
    ).replace("seven", "SEVEN")


def test_what_is_in_no_cue_of_webvtt_stays_and_is_said(write: Write) -> None:
    blocks = [
        "WEBVTT - a title",
        "STYLE\n::cue { color: red }",
        "NOTE the cat",
        f"a name\n{TIME} align:start\none",
        "NOTE\nthe old\nwoman",
        "stray words\nin two lines",
        "REGION\nid:fred",
        f"{TIME}\ntwo",
        f"a\n{TIME}\nthree",
    ]
    content, document = filled(write("a.vtt", "\r\n\r\n".join(blocks).replace("\n", "\r\n").replace("\r\r", "\r")))
    assert document.fields.texts == ["one", "two", "three"]
    assert document.remark.endswith("3 cues; 1 texts behind a blank line are in no cue, and stay as they are")
    written = "\r\n\r\n".join(blocks).replace("\n", "\r\n").replace("\r\r", "\r")
    for word in ("one", "two", "three"):
        place = written.rindex(f"\r\n{word}") + 2
        written = written[:place] + word.upper() + written[place + len(word) :]
    assert content.decode() == written


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1251", "shift_jis"])
def test_a_file_is_written_in_its_encoding(write: Write, encoding: str) -> None:
    word = "猫" if encoding == "shift_jis" else "кот"
    text = f"1\r\n{TIME}\r\n{word}\r\n\r\n2\r\n{TIME}\r\nabc\r\n"
    path = write("a.srt", text.encode(encoding))
    named = "" if encoding.startswith("utf") else encoding
    assert filled(path, lambda text: "", named)[0] == path.read_bytes()
    content, _ = filled(path, lambda text: text.replace("abc", word), named)
    assert content == text.replace("abc", word).encode(encoding)
    content, _ = filled(path, lambda text: "\u1234" if text == "abc" else word, named)
    assert content == (text.encode(encoding) if named else text.replace("abc", "\u1234").encode(encoding))


LINES = st.sampled_from(
    [
        "",
        "1",
        "7",
        TIME,
        "00:00.500 --> 00:01.000 line:0",
        "text",
        "- a",
        "- b",
        "NOTE x",
        "<i>",
        "x</i>",
        "<v A b>c</v>",
        "a <lang en>b",
        "{\\an8}",
        "{\\i1}a{\\i0}",
        "日本",
        "a b c",
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(LINES, max_size=14), st.sampled_from([".srt", ".vtt"]), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_any_file_with_nothing_filled_is_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], suffix: str, end: str, marked: bool
) -> None:
    content = ("\ufeff" * marked + end.join(lines)).encode()
    path = tmp_path_factory.mktemp("s") / f"a{suffix}"
    path.write_bytes(content)
    try:
        empty, _ = filled(path, lambda text: "")
    except DataError:
        assert not any("-->" in line for line in lines)
        return
    assert empty == content
    same = filled(path, str)[0].decode()
    timed = [line for line in content.decode().split(end) if "-->" in line]
    assert [line for line in same.split(end) if "-->" in line] == timed
    assert re.sub(r"\s", "", same) == re.sub(r"\s", "", content.decode()), "nothing is lost"
