"""Texts are several. Splitting long ones: no word is lost, every part fits, and cuts fall at sentence ends."""

import itertools
import re
from itertools import pairwise

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.cleaning import clean
from tfm.data.sentences import join_texts, split_text

TEXTS = st.text(alphabet="ab é.!?…\"')»。！日😀 ", max_size=80).map(clean)
LIMITS = st.integers(1, 20)


def bytes_of(text: str) -> int:
    return len(text.encode())


def without_space(text: str) -> str:
    return re.sub(r"\s", "", text)


@given(TEXTS, LIMITS)
@settings(max_examples=300, deadline=None)
def test_nothing_is_lost_and_every_part_fits(text: str, limit: int) -> None:
    parts, _ = split_text(text, bytes_of, limit)
    assert without_space("".join(parts)) == without_space(text)
    assert all(bytes_of(part) <= limit or len(part) == 1 for part in parts)
    assert all(part == part.strip() for part in parts)
    assert all(parts) or parts == [""]


@given(st.lists(st.text(alphabet="abc.", min_size=1, max_size=6), min_size=1, max_size=20), st.integers(6, 20))
@settings(max_examples=200, deadline=None)
def test_words_that_fit_stay_whole(words: list[str], limit: int) -> None:
    parts, _ = split_text(" ".join(words), len, limit)
    assert " ".join(parts).split() == words


@given(
    st.lists(st.text(alphabet="ab ", min_size=1, max_size=12).map(clean).filter(bool), max_size=9), st.integers(1, 25)
)
@settings(max_examples=200, deadline=None)
def test_sentences_are_cut_only_if_one_of_them_is_too_long(sentences: list[str], limit: int) -> None:
    ended = [f"{sentence}aaa." for sentence in sentences]  # after one letter, a full stop need not end anything
    parts, cut = split_text(" ".join(ended), len, limit)
    assert cut == any(len(sentence) > limit for sentence in ended)
    assert cut or all(part.endswith(".") for part in parts if part)
    assert cut or all(len(f"{a} {b.split('.')[0]}.") > limit for a, b in pairwise(parts))


@given(TEXTS)
def test_a_text_that_fits_is_left_alone(text: str) -> None:
    assert split_text(text, bytes_of, bytes_of(text)) == ([text], False)


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        ("One. Two! Three? Four", 12, ["One. Two!", "Three? Four"]),
        ("One. Two! Three? Four", 9, ["One. Two!", "Three?", "Four"]),
        ("He said: “Go!” She went.", 15, ["He said: “Go!”", "She went."]),
        ("(See there.) Then go.", 14, ["(See there.)", "Then go."]),
        ("你好。再见！走吧", 3, ["你好。", "再见！", "走吧"]),
        ("It is 3.5 km. Far.", 13, ["It is 3.5 km.", "Far."]),
        ("Well… Yes.", 6, ["Well…", "Yes."]),
    ],
)
def test_cuts_fall_at_sentence_ends(text: str, limit: int, parts: list[str]) -> None:
    assert split_text(text, len, limit) == (parts, False)


@pytest.mark.parametrize(
    "sentences",
    [
        ["यह पहला वाक्य है।", " यह दूसरा है॥", " यह तीसरा।", "यह चौथा।"],
        ["هل هذا صحيح؟", " نعم هذا صحيح.", " لا!"],
        ["یہ پہلا جملہ ہے۔", " یہ دوسرا ہے۔"],
        ["Սա առաջինն է։", " «Սա երկրորդն է։»", " Սա երրորդն է։"],
        ["ကျောင်းသွားသည်။", "မေမေဈေးသွားသည်။"],
        ["ខ្ញុំទៅសាលា។", "អ្នកទៅផ្សារ៕", "គាត់ទៅធ្វើការ។"],
        ["ይህ የመጀመሪያው ነው።", " ይህ ሁለተኛው ነው፧", " ይህ ሦስተኛው ነው።"],
        ["བཀྲ་ཤིས་བདེ་ལེགས། །", "བོད་སྐད། །", "ཡིག"],
        ["私は行く。", "「本当ですか？」", "（はい。）", "『そう！？』", "行く｡", "はい"],
        ["他说：“你好。”", "她走了……", " 他说。", '"你好。"', "好！"],
        ["Er sagte: „Geh!“", " Sie ging.", " »Ja?«", " Nein."],
        ["Il dit : « Va ! »", " Elle part.", " « Non. »", " Si."],
        ['He said " go ! "', " She left .", ' "Why?"', " So . . .", " well"],
        ["It is 3.5 km to .NET and a.b/c?d=e.", " Yes‽", " No"],
        ["平成30。5月。", "第1節。"],
        ["हाँ।", " १।२ लाख रुपये।"],
        ["はい。", f"{'（' * 12}いいえ。{'）' * 12}"],
        ["aa.", " Ab. \u0301cccccc."],
    ],
    ids=lambda sentences: sentences[0],
)
def test_sentences_of_other_scripts_end_where_unicode_says(sentences: list[str]) -> None:
    """With the quotes and brackets that close there, with a space after them or without."""
    longest = max(len(sentence.strip()) for sentence in sentences)
    text, sizes = "".join(sentences), [len(sentence.strip()) for sentence in sentences]
    for limit in (longest, *range(longest, len(text))):
        parts, cut = split_text(text, len, limit)
        ends = set(itertools.accumulate(map(len, map(without_space, sentences))))
        assert not cut and set(itertools.accumulate(map(len, map(without_space, parts)))) <= ends
    if all(size + other > longest for size, other in pairwise(sizes)):
        assert split_text(text, len, longest)[0] == [sentence.strip() for sentence in sentences]


SCRIPTS = st.lists(
    st.sampled_from(
        [
            *"ab .!?।。、」『（”",
            "e\u0323",
            "क्ष",
            "त्रि",
            "ខ្ញុំ",
            "က်",
            "သွား",
            "น้ำ",
            "เก็",
            "か\u3099",
            "🇩🇪",
            "👩\u200d🚀",
            "👍🏽",
            "ᄒᆞᆫ",
        ]
    ),
    max_size=40,
).map(lambda clusters: clean("".join(clusters)))


@given(SCRIPTS, st.integers(8, 20))
@settings(max_examples=500, deadline=None)
def test_no_cut_falls_inside_what_a_reader_takes_for_one_character(text: str, limit: int) -> None:
    parts, _ = split_text(text, len, limit)
    found = [cluster for part in parts for cluster in regex.findall(r"\X", part)]
    assert [one for one in found if one != " "] == [one for one in regex.findall(r"\X", text) if one != " "]
    assert not any(regex.match(r"\p{M}", part) for part in parts[1:])


@given(SCRIPTS, st.integers(8, 20))
@settings(max_examples=300, deadline=None)
def test_a_closing_quote_stays_with_the_sentence_that_it_closes(text: str, limit: int) -> None:
    parts, cut = split_text(text, len, limit)
    assert cut or not any(regex.match(r"[」”]", part) for part in parts[1:] if "。" + part in text)


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        ("私は毎日学校へ行き、友達と遊ぶ", 12, ["私は毎日学校へ行き、", "友達と遊ぶ"]),
        ("これはコンピューターです", 9, ["これは", "コンピューターです"]),
        ("เขาไปโรงเรียน", 8, ["เขาไป", "โรงเรียน"]),
        ("ကျွန်တော်ကျောင်းသွားသည်။", 20, ["ကျွန်တော်", "ကျောင်းသွားသည်။"]),
        ("🇩🇪🇫🇷🇬🇧", 4, ["🇩🇪", "🇫🇷🇬🇧"]),
    ],
)
def test_without_a_space_a_cut_falls_after_a_sign_or_between_words(text: str, limit: int, parts: list[str]) -> None:
    assert split_text(text, len, limit) == (parts, True)


@pytest.mark.parametrize(
    ("texts", "joined"),
    [
        (["One.", "Two."], "One. Two."),
        (["私は行く。", "「はい」", "（Ａ）です"], "私は行く。「はい」（Ａ）です"),
        (["他说“好”", "“是”。", "她走了"], "他说“好”“是”。她走了"),
        (["昭和", "64", "年"], "昭和 64 年"),
        (["昭和64", "年"], "昭和64年"),
        (["你好", "Hello", "你好"], "你好 Hello 你好"),
        (["です.", "これ"], "です. これ"),
        (["ฉันไป", "คุณมา"], "ฉันไป คุณมา"),
        (["ខ្ញុំទៅ។", "អ្នក"], "ខ្ញុំទៅ។ អ្នក"),
        (["ខ្ញុំ", "ទៅ។"], "ខ្ញុំទៅ។"),
        (["သွားသည်။”", "မေမေ"], "သွားသည်။” မေမေ"),
        (["私 は 行く 。", "はい 。"], "私 は 行く 。 はい 。"),
        (["안녕하세요。", "네"], "안녕하세요。 네"),
        (["यह है।", "वह है।"], "यह है। वह है।"),
        (["", "a", "", "b", ""], "a b"),
        (["", ""], ""),
        ([], ""),
    ],
)
def test_parts_are_joined_as_their_script_does(texts: list[str], joined: str) -> None:
    assert join_texts(texts) == joined


def test_lines_of_a_paragraph_are_no_sentences() -> None:
    assert join_texts(["ฉันไป", "คุณมา"], are_lines=True) == "ฉันไปคุณมา"
    assert join_texts(["ខ្ញុំទៅ។", "អ្នក"], are_lines=True) == "ខ្ញុំទៅ។ អ្នក"


@pytest.mark.parametrize("count", range(95, 115))
def test_flags_stay_whole_in_a_long_row(count: int) -> None:
    parts, _ = split_text("🇩🇪" * count, len, 7)
    assert all(part == "🇩🇪" * (len(part) // 2) for part in parts) and len("".join(parts)) == 2 * count


def test_a_long_sentence_is_halved_at_the_space_nearest_its_middle() -> None:
    assert split_text("aa bbbb cc dddd ee", len, 10) == (["aa bbbb cc", "dddd ee"], True)
    assert split_text("a bbbbbbbbbbbb", len, 12) == (["a", "bbbbbbbbbbbb"], True)


def test_a_long_word_is_cut_inside() -> None:
    assert split_text("abcdefgh", len, 2) == (["ab", "cd", "ef", "gh"], True)


def test_a_character_that_cannot_fit_is_kept() -> None:
    assert split_text("a😀b", bytes_of, 2) == (["a", "😀", "b"], True)
