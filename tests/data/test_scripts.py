"""Sentences, characters and scripts, in paragraphs of many scripts, and beside ICU's rules as node has them."""

import pytest
import regex
from helpers.javascript import javascript
from helpers.paragraphs import PARAGRAPHS, WITHOUT_SIGNS, paragraph
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.cleaning import clean
from tfm.data.scripts import (
    NUMBERED,
    TITLES,
    are_unspaced,
    grapheme_ends,
    graphemes,
    is_chinese,
    is_finished,
    is_unspaced,
    sentences,
)
from tfm.data.sentences import join_texts, split_text

LETTERS = st.text(st.sampled_from(sorted({one for name in PARAGRAPHS for one in paragraph(name)})), max_size=60)


@pytest.mark.parametrize("name", PARAGRAPHS)
def test_a_paragraph_of_any_script_is_split_at_its_sentence_ends(name: str) -> None:
    text = clean(paragraph(name))
    found = sentences(text, possible=name in WITHOUT_SIGNS)
    assert [one.strip() for one in found] == list(map(clean, PARAGRAPHS[name])) and "".join(found) == text


@pytest.mark.parametrize("name", PARAGRAPHS)
def test_parts_of_a_paragraph_are_sentences_and_joined_as_they_were(name: str) -> None:
    text, wanted = clean(paragraph(name)), list(map(clean, PARAGRAPHS[name]))
    for limit in range(max(map(len, wanted)), len(text) + 1):
        parts, cut = split_text(text, len, limit)
        assert not cut and join_texts(parts) == text
        assert all(any(part.endswith(one) for one in wanted) for part in parts)


@pytest.mark.parametrize("name", PARAGRAPHS)
def test_no_limit_makes_a_cut_inside_a_grapheme(name: str) -> None:
    text = clean(paragraph(name))
    seen = [one for one in regex.findall(r"\X", text) if one.strip()]
    for limit in range(max(map(len, graphemes(text))), 30):
        parts, _ = split_text(text, len, limit)
        assert [one for part in parts for one in regex.findall(r"\X", part) if one.strip()] == seen, (limit, parts)


def test_a_syllable_of_burmese_stays_whole() -> None:
    text = "ကျွန်တော်ကျောင်းသွားသည်"
    syllables = ["ကျွန်", "တော်", "ကျောင်း", "သွား", "သည်"]
    ends = {sum(map(len, syllables[: i + 1])) for i in range(len(syllables))}
    for limit in range(max(map(len, syllables)), len(text)):
        parts, _ = split_text(text, len, limit)
        assert {sum(map(len, parts[: i + 1])) for i in range(len(parts))} <= ends, parts


@given(LETTERS)
@settings(max_examples=300, deadline=None)
def test_sentences_and_graphemes_are_slices_of_any_text(text: str) -> None:
    for slices in (sentences(text), sentences(text, possible=True), graphemes(text)):
        assert "".join(slices) == text and all(slices)
    ends = {sum(map(len, sentences(text)[: i + 1])) for i in range(len(sentences(text)))}
    possible = sentences(text, possible=True)
    assert ends <= {sum(map(len, possible[: i + 1])) for i in range(len(possible))}


@pytest.mark.parametrize("abbreviation", f"{TITLES}|{NUMBERED}".split("|"))
def test_an_abbreviation_ends_no_sentence(abbreviation: str) -> None:
    for one in (abbreviation, abbreviation[0].lower() + abbreviation[1:]):
        text = f"So {one}. 7 or Ab was there. He left."
        assert sentences(text) == [f"So {one}. 7 or Ab was there. ", "He left."]
        assert sentences(text, possible=True)[0] == f"So {one}. "
    if abbreviation in NUMBERED.split("|"):
        assert sentences(f"So {abbreviation}. Yes.") == [f"So {abbreviation}. ", "Yes."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it rains. we stay. (yes.) so", ["it rains. ", "we stay. ", "(yes.) ", "so"]),  # nothing has a capital
        ("It rains. we stay.", ["It rains. we stay."]),
        ("He said: “Go!” and left. She didn't.", ["He said: “Go!” and left. ", "She didn't."]),
        ("Well... perhaps. No… never!", ["Well... perhaps. ", "No… never!"]),
        ("At 10 p.m. it ended. Vol. II is out.", ["At 10 p.m. it ended. ", "Vol. ", "II is out."]),
        ("Πού; τώρα; Ναι.", ["Πού; ", "τώρα; ", "Ναι."]),
        ("a; b: c. Ω; Yes", ["a; b: c. Ω; ", "Yes"]),
        ("ատ 10:30 է: Լավ", ["ատ 10:30 է: ", "Լավ"]),
        ("İstanbul'da. Sn. Öz geldi.", ["İstanbul'da. ", "Sn. ", "Öz geldi."]),
    ],
)
def test_sentence_ends(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_a_sentence_that_is_too_long_is_cut_where_one_may_end_before_it_is_halved() -> None:
    assert split_text("Then Dr. Weber came in", len, 16) == (["Then Dr.", "Weber came in"], False)
    assert split_text("ผมกลับบ้าน คุณอยู่ที่ไหน", len, 16) == (["ผมกลับบ้าน", "คุณอยู่ที่ไหน"], False)


def test_graphemes_are_those_of_icu() -> None:
    texts = [clean(paragraph(name)) for name in PARAGRAPHS] + ["👩\u200d🚀👍🏽🇩🇪🇫🇷", "क्षत्रि", "ᄒᆞᆫ각", "e\u0323\u0301x"]
    body = "return data.map((text) => [...new Intl.Segmenter('und').segment(text)].map((one) => one.segment))"
    for text, found in zip(texts, javascript(body, texts), strict=True):
        ends = {len("".join(found[: i + 1])) for i in range(len(found))}
        assert set(grapheme_ends(text)) <= ends, text  # ours keep every mark with its letter, ICU's nearly all


def test_sentence_ends_are_those_of_icu_where_it_knows_a_sign() -> None:
    names = sorted(PARAGRAPHS.keys() - WITHOUT_SIGNS - {"Latin", "German", "Spanish", "Cyrillic", "Greek", "Armenian"})
    texts = [clean(paragraph(name)) for name in names]
    body = """const sentences = new Intl.Segmenter("und", { granularity: "sentence" });
      return data.map((text) => [...sentences.segment(text)].map((one) => one.segment))"""
    found = dict(zip(names, javascript(body, texts), strict=True))
    assert {name for name in names if found[name] != sentences(clean(paragraph(name)))} <= {
        *("Tibetan", "Ethiopic"),  # of whose signs it lacks one
        *("Chinese", "Japanese"),  # where it leaves an opening quote with what is before it
    }


def test_lines_that_are_finished() -> None:
    assert all(map(is_finished, ["Ja.", "So:", "„Ja!“ ", "है।", "نعم؟", "はい。」", "Πού;", "ነው።", "(ok.)", "က။"]))
    assert not any(map(is_finished, ["Ja", "a,", "3.5", "", "日本", "x.y", "၊"]))


def test_scripts_without_spaces() -> None:
    assert all(map(is_unspaced, ["東京", "แมว", "カ", "བོད", "ꦧꦱ"]))
    assert not any(map(is_unspaced, ["eau", "고양이", "घर", "3D"]))
    assert are_unspaced(["日本語", "abc"]) is False and are_unspaced(["日本語を", "abc"]) and not are_unspaced([])
    assert is_chinese(["今天", "abc"]) and not is_chinese(["今日は"])
