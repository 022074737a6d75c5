"""engine.js, text: cleaning, placeholders, sentences, repetition and numbers are those of Python."""

import base64
import random
import re
import sys
import unicodedata
from typing import get_args

import pytest
import regex
from helpers.javascript import javascript, needs_node
from helpers.odd_text import INVISIBLE, PLACEHOLDERS, SPACES, odd_line
from helpers.paragraphs import PARAGRAPHS, paragraph

from tfm.data.cleaning import clean
from tfm.data.config import TokenizerConfig, VocabularyType
from tfm.data.facts import CorpusFacts, differences_in_numbers, is_loop
from tfm.data.placeholders import KINDS, has_words, mask, placeholders
from tfm.data.scripts import NUMBERED, TITLES, sentences
from tfm.data.sentences import join_texts, split_text
from tfm.data.toy import toy_pairs
from tfm.data.usual_form import in_usual_form, title
from tfm.data.vocabulary_training import build_tokenizer
from tfm.engine.browser.pack import characters, facts_of

pytestmark = needs_node
HOSTILE = 10_000
SYNTAX = [
    "[X7X]",
    "[X",
    *PLACEHOLDERS,
    "{",
    "}",
    "%",
    "%d",
    "%5.2f",
    "50%",
    "{{",
    "}}",
    "{n, plural}",
    "${a}",
    "$",
    "<a",
    " href=",
    '"',
]
SYNTAX += [
    "'",
    ">",
    "/>",
    "<!--",
    "-->",
    "`",
    "``",
    "|",
    "|a|",
    ":a:`",
    "http://",
    "www.",
    "a@b",
    ".c",
    "&#1;",
    "&x;",
    "\\",
]
SYNTAX += [
    "n",
    "s",
    "1",
    "%1",
    "$s",
    "%(a)s",
    "disabled",
    "=",
    " ",
    ".",
    "é",
    "日",
    "_",
    "-",
    "ق",
    "%n",
    "%L1",
    "{a!r:>5}",
    "count",
    "%count%",
    "%name%",
    "%{n}",
    "%#@n@",
    "%<PRIu64>",
    "{{ a | b }}",
    "{{ a|date:'x' }}",
    "|b(",
    "{{#if a}}",
    "{{/",
    "{$n}",
    "<0>",
    "</0>",
    "<1/>",
    "Кот",
    "ü@é.de",
]
MARKS = [
    *".!?。！？…\"'()[]«»„“”’ ",
    "Mr.",
    "3.14",
    "e.g.",
    "الف",
    "؟",
    "。」",
    "\u0301",
    "\u200d",
    "।",
    "ສະ",
    "ไทย",
    "日本",
    "ー",
]
NUMBERS = [
    "1",
    "12",
    "1,000",
    "1.000",
    "1 000",
    "1'000",
    "3,5",
    "17:45",
    "٣٤",
    "٫",
    "三",
    "十",
    "两",
    "二〇",
    "x",
    "²",
    "①",
    "१२",
    "<t1>",
    "%2$s",
]


def hostile(seed: int, count: int = HOSTILE) -> list[str]:
    """Lines that nobody should write."""
    rng = random.Random(seed)
    return [odd_line(rng, longest=2_000)[:2_000] for _ in range(count)]


def mixed(pieces: list[str], seed: int, count: int, longest: int = 14) -> list[str]:
    """Lines of pieces in any order."""
    rng = random.Random(seed)
    return ["".join(rng.choices(pieces, k=rng.randint(1, longest))) for _ in range(count)]


def assigned(character: str) -> bool:
    """Whether this Python knows a character; node may know more."""
    return unicodedata.category(character) != "Cn"


def test_cleaning() -> None:
    lines = hostile(1) + mixed([*SPACES, *INVISIBLE, "e", "\u0301", "\udc00", "🏴", "\U000e0067"], 2, HOSTILE)
    found = javascript("return data.map(engine.clean)", lines)
    assert [one for one in zip(lines, found, map(clean, lines), strict=True) if one[1] != one[2]] == []


def test_letters_are_those_of_python() -> None:
    every = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000 and assigned(chr(code))]
    body = """
      const matching = (pattern) => data.every.filter((one) => new RegExp(`^${pattern}$`, "u").test(one)).join("");
      return Object.fromEntries(Object.entries(data.patterns).map(([name, pattern]) => [name, matching(pattern)]));"""
    patterns = {"letter": r"\p{L}", "digit": r"\p{Nd}", "alnum": r"[\p{L}\p{N}]"}
    found = javascript(body, {"every": every, "patterns": patterns})
    assert found["letter"] == "".join(filter(str.isalpha, every))
    assert found["digit"] == "".join(filter(str.isdecimal, every))
    assert found["alnum"] == "".join(filter(str.isalnum, every))
    words = javascript(
        "const matching = (pattern) => data.filter((one) => new RegExp(`^${pattern}$`, 'u').test(one)).join('');"
        "return [matching(engine.WORD), matching(engine.REGEX_WORD)];",
        every,
    )
    assert words[0] == "".join(re.findall(r"\w", "".join(every)))
    assert words[1] == "".join(regex.findall(r"\w", "".join(every)))


@pytest.mark.parametrize("kinds", [KINDS, ("braces", "tag"), ("printf",)])
def test_placeholders(kinds: tuple[str, ...]) -> None:
    lines = [clean(line) for line in mixed(SYNTAX, 3, HOSTILE) + mixed(SYNTAX, 4, 300, longest=80)]
    body = "return data.lines.map((line) => [engine.placeholders(line, data.kinds), engine.hasWords(line, data.kinds)])"
    found = javascript(body, {"lines": lines, "kinds": list(kinds)})
    expected = [[placeholders(line, kinds), has_words(line, kinds)] for line in lines]
    assert [one for one in zip(lines, found, expected, strict=True) if one[1] != one[2]] == []


def test_placeholders_are_masked_and_put_back() -> None:
    rng = random.Random(5)
    lines = [clean(line) for line in mixed(SYNTAX, 6, 3_000)]
    outputs: list[str] = []
    for line in lines:
        characters_of = list(mask(line, KINDS).text) + rng.choices(["x", " ", "日", "\ufdd3", "s", "%"], k=5)
        rng.shuffle(characters_of)
        outputs.append(clean("".join(characters_of)))
    body = """
      const letter = `(?:(?!${data.unspaced})(?!_)${engine.REGEX_WORD})`;
      return data.lines.map((line, i) => {
        const masked = new engine.Masked(line, data.kinds);
        return [masked.text, masked.unmask(masked.text, letter), masked.unmask(data.outputs[i], letter)];
      });"""
    unspaced = characters()["unspaced"]
    found = javascript(body, {"lines": lines, "outputs": outputs, "kinds": list(KINDS), "unspaced": unspaced})
    for line, output, one in zip(lines, outputs, found, strict=True):
        masked = mask(line, KINDS)
        assert one == [masked.text, masked.unmask(masked.text), masked.unmask(output)], (line, output)


def test_sentences_are_split_and_joined() -> None:
    words = ["one", "two", "Haus", "ein", "日本語", "ไทยภาษา", "한국어", "ок"]
    lines = [clean(line) for line in mixed([*MARKS, *words, " "], 7, 4_000, longest=40)]
    lines += [clean(line) for line in mixed([*words, " "], 8, 500, longest=60)]
    body = "return data.map((line) => engine.splitText(line, (part) => [...part].length, 25, () => false))"
    found = javascript(body, lines)
    plain = [line for line in lines if not regex.search(r"[^\s]{13}", line)]  # or words are cut, which is tested below
    assert len(plain) > 800
    for line, (parts, cut) in zip(lines, found, strict=True):
        if line in plain:
            assert (parts, cut) == split_text(line, len, 25), line
        assert all(len(part) <= 25 for part in parts)
    several = [split_text(line, len, 25)[0] for line in lines]
    assert javascript("return data.map(engine.joinTexts)", several) == [join_texts(parts) for parts in several]


def test_sentences_end_where_python_ends_them() -> None:
    abbreviations = f"{TITLES}|{NUMBERED}".split("|")
    signs = [
        "A.",
        "z. B.",
        "3.",
        "12. ",
        "Ω;",
        "է:",
        "፡፡",
        "၊",
        "။",
        "ๆ ",
        "ไทย ",
        "ລາວ ",
        "ი. ",
        "a",
        "Ab ",
        "é. ",
        ". ",
        "«x»",
    ]
    lines = mixed([*signs, *abbreviations, *abbreviations, " ", ". ", " 5"], 14, 5_000, longest=30)
    lines = [clean(line) for line in [*lines, *mixed(MARKS, 15, 2_000, 30), *map(paragraph, PARAGRAPHS)]]
    found = javascript("return data.map((line) => [engine.sentencesOf(line), engine.sentencesOf(line, true)])", lines)
    for line, one in zip(lines, found, strict=True):
        assert one == [sentences(line), sentences(line, possible=True)], line
    several = [[one.strip() for one in parts] for _, parts in found]
    assert javascript("return data.map(engine.joinTexts)", several) == [join_texts(parts) for parts in several]


def test_words_are_cut_where_python_cuts_them() -> None:
    words = [
        "one",
        "Haus",
        "日本語",
        "カタカナ",
        "ひらがな",
        "ไทยภาษา",
        "한국어",
        "ок",
        "123",
        "。",
        "«",
        "က္ခ",
        "เก",
        "\u0e4c",
    ]
    lines = [clean(line) for line in mixed(words, 9, 1_500, longest=25)]
    body = """
      const isBetween = (sentence, place) => engine.isBetweenWords(sentence, place, data.characters);
      return data.lines.map((line) => engine.splitText(line, (part) => [...part].length, 25, isBetween));"""
    found = javascript(body, {"lines": lines, "characters": characters()})
    equal = sum(one == list(split_text(line, len, 25)) for line, one in zip(lines, found, strict=True))
    assert equal >= 0.97 * len(lines)


def test_repetition_and_numbers() -> None:
    pairs = list(zip(mixed([*NUMBERS, " "], 10, 3_000), mixed([*NUMBERS, " "], 11, 3_000), strict=True))
    pairs += list(
        zip(mixed(["the cat ", "ja ", "日本", "a", "abc"], 12, 3_000, 30), mixed(["ja ", "a"], 13, 3_000), strict=True)
    )
    pairs = [(clean(src), clean(tgt)) for src, tgt in pairs]
    body = (
        "return data.pairs.map(([a, b]) => [engine.isLoop(a, b, 3), engine.lostNumbers(a, b, data.zeros, data.kinds)])"
    )
    found = javascript(body, {"pairs": pairs, "zeros": characters()["zeros"], "kinds": KINDS})
    for (src, tgt), (loops, lost) in zip(pairs, found, strict=True):
        assert loops == is_loop(src, tgt, 3), (src, tgt)
        assert len(lost) == len(differences_in_numbers(src, tgt)[0]), (src, tgt, lost)


def with_slip(text: str, rng: random.Random) -> str:
    """A text with two neighbours exchanged, one left out, or one written twice."""
    at = rng.randrange(max(len(text) - 1, 1))
    return (
        text[:at] + rng.choice([text[at + 1 : at + 2] + text[at : at + 1], "", 2 * text[at : at + 2]]) + text[at + 2 :]
    )


USUAL = """
  const vocabulary = new engine.Vocabulary(Buffer.from(data.model, "base64"));
  return data.lines.map((line) => {
    const [read, restore, unread] = engine.inUsualForm(line, vocabulary, data.facts);
    return [read, unread, ...data.outputs.map(restore)];
  });"""


@pytest.mark.parametrize("type_", get_args(VocabularyType))
@pytest.mark.parametrize(
    "facts",
    [
        CorpusFacts(pairs=1_000, in_small_letters=0, with_capital=900, last_sign="."),
        CorpusFacts(pairs=1_000, in_capitals=90, titles=90, with_dotless_i=900),
    ],
)
def test_the_usual_form_is_that_of_python(type_: VocabularyType, facts: CorpusFacts) -> None:
    corpus = [clean(paragraph(name)) for name in PARAGRAPHS] + [
        f"{src.capitalize()}." for src, _ in toy_pairs("dev", size=200)
    ]
    tokenizer = build_tokenizer([(line, line) for line in corpus], TokenizerConfig(vocab_size=1_200, type=type_))
    odd = [
        "I",
        "don't",
        "Straße",
        "ısı",
        "İyi",
        "ΣΑΣ",
        "ǆ",
        "ვინ",
        "Ვ",
        "ª",
        "Ⅷ",
        "ⅷ",
        "3rd",
        "-",
        "«",
        "☃",
        "👍🏽",
        "❤️",
        "𝔘",
        "ꙮ̾",
    ]
    odd += ["%s", "<fr>", "€", "a@b.de", "MP3", "他", "{N}", ". ", "\ufdd1", "the", "old", "Gives", *"     "]
    lines = corpus + mixed(list[str](odd), 16, 900, longest=12)
    lines = [change(line) for line in map(clean, lines) for change in (str, str.upper, str.lower, title)]
    rng = random.Random(17)
    lines += [with_slip(line, rng) for line in corpus for _ in range(3)]
    outputs = ["die alte Frau ist groß.", "ısı ve iyi?!", "l'été «est» là…", "", "日本語。"]
    data = {"model": base64.b64encode(tokenizer.src.model).decode(), "lines": lines, "facts": facts_of(facts)}
    for line, one in zip(lines, javascript(USUAL, data | {"outputs": outputs}), strict=True):
        read, restore, unread, _ = in_usual_form(line, tokenizer.src, facts)
        assert one == [read, list(unread), *map(restore, outputs)], line
