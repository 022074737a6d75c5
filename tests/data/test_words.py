"""Where words begin and end, in many scripts."""

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from tfm.data.cleaning import clean
from tfm.data.words import begins_word, ends_word, find_terms


def found(term: str, text: str) -> int:
    return len(find_terms(clean(text), lambda part: part == clean(term), len(term)))


@pytest.mark.parametrize(
    ("term", "text"),
    [
        ("घर", "यह घर है"),
        ("eau", "l'eau"),
        ("eau", "J’ai bu d’eau."),
        ("acqua", "DELL'acqua"),
        ("cat", "the cat's tail"),
        ("Ankara", "Ankara'da"),
        ("known", "well-known"),
        ("n", "rock 'n' roll"),
        ("C++", "in C++, say"),
        ("C", "in C, say"),
        ("고양이", "고양이가"),
        ("한국", "한국에서는"),
        ("서울", "서울로 간다"),
        (".NET", "ASP.NET"),
        ("été", "l'e\u0301te\u0301"),
        ("كتاب", "والكتاب"),
        ("الكتاب", "والكتاب"),
        ("كتاب", "للكتاب"),
        ("كتاب جديد", "بكتاب جديد"),
        ("ספר", "ושבספר"),
        ("ספר", "הספר"),
        ("東京", "私は東京に"),
        ("Python", "使用Python编程"),
        ("アイス", "アイスを"),
        ("プリンタ", "3Dプリンタ"),
        ("แมว", "ผมรักแมวมาก"),
        ("ແມວ", "ຂ້ອຍຮັກແມວ"),
        ("မြန်မာ", "သူမြန်မာပြည်"),
        ("ខ្មែរ", "ភាសាខ្មែរ"),
        ("བོད", "བོད་སྐད"),
    ],
)
def test_a_term_is_found(term: str, text: str) -> None:
    assert found(term, text) == 1


@pytest.mark.parametrize(
    ("term", "text"),
    [
        ("मत", "कीमत"),
        ("घर", "घरों में"),
        ("கண", "கணினி"),
        ("কর", "করিম"),
        ("क", "क्षमा"),
        ("mat", "matter and format"),
        ("eau", "bateau"),
        ("e", "e\u0301te\u0301"),
        ("can", "I can't"),
        ("t", "can't"),
        ("clock", "o'clock"),
        ("ять", "п'ять"),
        ("da", "Ankara'da"),
        ("لد", "ولد"),
        ("كتاب", "مكتاب"),
        ("كتاب", "كتابي"),
        ("ספר", "ספרים"),
        ("کتاب", "کتاب\u200cها"),
        ("고양이", "고양이들"),
        ("한국", "한국는"),
        ("이", "이가"),
        ("C", "C++"),
        ("C", "C#"),
        ("アイス", "アイスクリーム"),
        ("バ", "バー"),
        ("กา", "เกา"),
        ("กก", "กกา"),
        ("น", "น้ำ"),
        ("การ", "การ์ด"),
        ("က", "ကန်"),
        ("က", "ကြီး"),
        ("ន", "ន្ត"),
        ("ត", "ន្ត"),
        ("ལ", "ལམ་"),
        ("👩", "👩‍🚀"),
        ("👍", "👍🏽"),
    ],
)
def test_a_part_of_a_word_or_a_syllable_is_no_term(term: str, text: str) -> None:
    assert found(term, text) == 0


@given(st.text(st.sampled_from("aé ' ’.كلاهשעקी्กเ้ำကန်្東アー\u200d\u0301👩🏽"), max_size=12).map(clean))
@example("\u17d2\U0001f3fd\u1000")
def test_no_place_is_inside_a_grapheme_cluster(text: str) -> None:
    clusters = {match.start() for match in regex.finditer(r"\X", text)} | {len(text)}
    for place in range(len(text) + 1):
        assert place in clusters or not (begins_word(text, place) or ends_word(text, place))


@given(st.text(st.sampled_from("ab '"), max_size=12))
def test_words_between_spaces_begin_and_end_there(text: str) -> None:
    for word in regex.finditer("[ab]+", text):
        before, after = text[: word.start()][-1:], text[word.end() :][:1]
        assert before == "'" or begins_word(text, word.start())
        assert after == "'" or ends_word(text, word.end())
        assert not any(begins_word(text, place) or ends_word(text, place) for place in range(*word.span())[1:])


def test_long_terms_come_first_and_hide_no_other_place() -> None:
    terms = {"house cat", "big house", "cat", "house cat food", "food", "big"}

    def is_term(part: str) -> bool:
        return part in terms

    assert find_terms("a cat, a big house cat and a cat", is_term, 20) == ["cat", "big house", "cat", "cat"]
    assert find_terms("a big house cat food, food", is_term, 20) == ["big", "house cat food", "food"]
    assert find_terms("big house, house cat", is_term, 20) == ["big house", "house cat"]
    assert find_terms("big house", is_term, 3) == ["big"]
