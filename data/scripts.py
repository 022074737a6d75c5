"""What Unicode's properties say of text: where sentences and characters end, and which scripts have no spaces.

A sentence ends at a sign that Unicode calls a sentence terminal, with the quotes and brackets that close there. Some
scripts have signs of their own besides: Tibetan and Khmer shads, `;` after Greek letters, `:` after Armenian ones. A
full stop also stands after abbreviations. So it ends no sentence where a small letter follows in a text with capitals,
nor after an initial, a number of one or two digits, or a title. Thai and Lao have no sign: a space may be an end.
"""

import itertools
import re
from collections.abc import Iterable
from itertools import pairwise

import regex

MARK = r"[\p{M}\u200d]"
"""What belongs to the character before it; this and the next one are for the library `regex`."""
UNSPACED = r"[\p{lb=SA}\p{Han}\p{Hiragana}\p{Katakana}ー\p{Bopomofo}\p{Yi}\p{Balinese}\p{Javanese}]"
"""A letter of a script without spaces between words. SA are scripts of South East Asia, which need a dictionary."""
_LETTER, _UNSPACED_LETTER = regex.compile(r"\p{Alphabetic}"), regex.compile(rf"{UNSPACED}|\p{{Tibetan}}")
_HAN = regex.compile(r"\p{Han}")
_CHINESE = 0.95
"""Texts with a greater share of Han among their letters are Chinese: Japanese has more kana than that."""

SIGN = r"\p{Sentence_Terminal}\u0f0d-\u0f12\u17d4\u17d5\u17d9\u17da"
"""Signs that end a sentence: Unicode's, and those of Tibetan and Khmer."""
_END = rf"(?:(?!၊)[{SIGN}…]|(?<=\p{{Greek}})[;\u037e]|(?<=\p{{Armenian}}):|፡፡)"
_ALSO_INSIDE = r"[.!?…․‼‽⁇⁈⁉;:\u037e]"
"""Signs that end a sentence only before a space: they stand in numbers, names and addresses, too."""
_MORE = rf"\s*{_END}(?:(?<!{_ALSO_INSIDE})|(?!\w))|{MARK}|[\p{{Pe}}\p{{Pf}}]"
"""What may follow on a sign that ends a sentence: another one, or a quote or a bracket that closes."""
_SPACED_END = rf"{_END}(?:{_MORE}|['\p{{Pi}}]|\s+[\p{{Pe}}\p{{Pf}}](?=\s|$)){{0,8}}+\s++"
_UNSPACED_END = rf"{_END}(?<!{_ALSO_INSIDE})(?:(?<!\d.)|(?!\d))(?:{_MORE}){{0,8}}+(?![\p{{Pe}}\p{{Pf}}])\s*+"

TITLES = (
    "Mr|Mrs|Ms|Mx|Dr|Drs|Prof|St|Rev|Hon|Gen|Col|Capt|Lt|Sgt|Gov|Sen|Messrs|Mme|Mlle|Mgr|Hr|Fr|Frl|Ing|Dipl|Sr|Sra|Srta"
    "|Dña|Lic|Arq|Exmo|Sig|Dott|Avv|Dhr|Mevr|Doç|Sdr|Bpk|Ca|Bzw|Vgl|Cf|Vs|Им|Ул|Просп|Проф|Акад|Доц|Св|Ред|Вул|Ім|Δρ|Καθ"
)
NUMBERED = "No|Nr|Nos|Núm|Art|Fig|Abb|Abs|Bd|Kap|Cap|Ch|Sec|Eq|Vol|Pp|Str|Pág|Blz|Örn|Стр|Рис|Табл|Гл|См|Разд|Σελ|Αρ"
"""Abbreviations before names, and before numbers; also with a small letter."""


def _either_case(words: str) -> str:
    return re.sub(r"\b\w", lambda found: f"[{found[0]}{found[0].lower()}]", words)


_CASED = r"[\p{Lu}\p{Ll}]\p{M}*"
_ABBREVIATION = (
    rf"\.(?<=(?<![\p{{L}}\p{{M}}\p{{N}}])(?:\p{{Nd}}{{1,2}}|(?:{_CASED}\.){{0,4}}{_CASED}|{_either_case(TITLES)})\.)\s"
    rf"|\.(?<=(?<![\p{{L}}\p{{M}}\p{{N}}])(?:{_either_case(NUMBERED)})\.)\s+\p{{Nd}}"
)
"""A full stop that ends no sentence, and what follows it."""
_SMALL_LETTER = r"(?<=[.!?…][^\p{L}\p{N}]{1,20})[\p{Ps}\p{Pi}'’¿¡-]*(?!\p{Georgian})\p{Ll}"
"""Behind a full stop. Georgian sentences begin with such a letter."""
_THAI, _NO_END = r"[\p{Thai}\p{Lao}]", r"[\p{Nd}\p{Lm}ฯ]"

_POSSIBLE_END = regex.compile(
    rf"(?:{_SPACED_END}|{_UNSPACED_END}|(?<={_THAI})(?<!{_NO_END})\s++(?={_THAI})(?!{_NO_END}))(?!{MARK})"
)
_UNCASED_END = regex.compile(rf"(?:(?!{_ABBREVIATION}){_SPACED_END}|{_UNSPACED_END})(?!{MARK})")
_CASED_END = regex.compile(rf"(?:(?!{_ABBREVIATION}){_SPACED_END}|{_UNSPACED_END})(?!{MARK}|{_SMALL_LETTER})")
_CAPITAL = regex.compile(r"\p{Lu}")
_FINISHED = regex.compile(rf"(?:{_END}|[:;：；])[\p{{Pe}}\p{{Pf}}\p{{Pi}}\"'{MARK[1:-1]}\s]*$")

_GRAPHEME = regex.compile(rf"\X(?!{MARK})")


def sentences(text: str, *, possible: bool = False) -> list[str]:
    """Slices that together are the text: a space stays with the sentence before it.

    With `possible`, every place counts where a sentence may end: after an abbreviation, and at a space of Thai or Lao.
    """
    end = _POSSIBLE_END if possible else _CASED_END if _CAPITAL.search(text) else _UNCASED_END
    ends = [0, *(match.end() for match in end.finditer(_with_directed_quotes(text))), len(text)]
    return [text[start:end] for start, end in pairwise(ends) if start < end]


def _with_directed_quotes(text: str) -> str:
    """A text in which straight quotes open and close in turn."""
    if '"' not in text:
        return text
    quotes = itertools.cycle("“”")
    return "".join(next(quotes) if character == '"' else character for character in text)


def is_finished(line: str) -> bool:
    """Whether a line ends with a sign that ends a sentence, or one that announces what follows."""
    return _FINISHED.search(line) is not None


def grapheme_ends(text: str, first: int = 0, last: int | None = None) -> list[int]:
    """Where the characters end that a reader sees, between two places of a text, both included."""
    last = len(text) if last is None else last
    ends = (match.end() for match in _GRAPHEME.finditer(text, max(first - 1, 0), last + 1))
    return [end for end in ends if first <= end <= last]


def graphemes(text: str) -> list[str]:
    """The characters of a text that a reader sees."""
    return [text[start:end] for start, end in pairwise([0, *grapheme_ends(text)])]


def is_unspaced(text: str) -> bool:
    """Whether a text begins in a script that puts no spaces between words."""
    return _UNSPACED_LETTER.match(text) is not None


def are_unspaced(texts: Iterable[str]) -> bool:
    """Whether most letters of texts belong to scripts that put no spaces between words."""
    letters = unspaced = 0
    for text in texts:
        letters += len(_LETTER.findall(text))
        unspaced += 0 if text.isascii() else len(_UNSPACED_LETTER.findall(text))
    return 2 * unspaced > letters


def is_chinese(texts: Iterable[str]) -> bool:
    """Whether texts in scripts without spaces are Chinese: hardly any of their letters is of another one."""
    unspaced = [letter for text in texts if not text.isascii() for letter in _UNSPACED_LETTER.findall(text)]
    return sum(map(bool, map(_HAN.match, unspaced))) > _CHINESE * len(unspaced)
