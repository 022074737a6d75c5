"""What is usual in a corpus, and else a fault of a translation: repetition, other numbers, text where no letters were.

A text repeats itself as a model does that has learned little. That is counted in letters, not in pieces: a char
vocabulary and a word vocabulary are judged alike. Numbers are compared in the digits of any script. The two sides of
a corpus are known by their groups of three characters, so that swapped ones are noticed. The letters of the sources
(capitals, titles, small letters) and the signs at their ends are counted for `usual_form`.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import regex

from . import Pair
from .cleaning import clean
from .placeholders import CARRIED_SHARE, KINDS, MIN_PAIRS, TEXT_SHARE, has_words, without_placeholders

SAMPLE = 5_000
"""At most this many training pairs are looked at."""
NEVER_A_LOOP = 1_000_000
"""A limit of `is_loop` that no text reaches."""
MAX_LOOPS = 0.001
"""Where a greater share of the training targets repeats itself, repetition is no fault."""

MIN_TIMES = 3
"""This many repetitions in a row are a loop."""
MIN_LETTERS = 12
"""A loop has at least this many letters in all; a wide character counts as three."""

_REPEATED = [re.compile(rf"(.{{{least},{most}}}?)\1{{{MIN_TIMES - 1},}}") for least, most in ((1, 3), (4, 100))]
"""Two patterns, so that three equal letters do not hide a longer repetition that begins with them."""
USUAL_LIMIT, HIGHEST_LIMIT = 3, 6
"""Three words in a row are a loop if a text has them this many times: 3, or up to 6 where the corpus has such texts."""
_WIDE = re.compile("[\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]+")

_NUMBER = re.compile(r"\d{1,3}(?:['’\u00a0\u2009\u202f ]\d{3})+(?!\d)(?:[.,٫]\d+)?|\d+(?:[.,:٫٬．，：]\d+)*")
_OPEN, _TERMINAL = regex.compile(r"[\p{L}\p{M}\p{N}]$"), regex.compile(r"\p{Sentence_Terminal}")
_GROUPS = re.compile(r"(\D)")
_HAN = {str(value): signs for value, signs in enumerate(["〇零", "一", "二两兩", *"三四五六七八九十"])}
"""Small numbers as Chinese and Japanese may write them."""

LOOKED_AT = 2_000
"""This many pairs are compared, from all over a corpus."""
FEWEST_PAIRS, FEWEST_GROUPS = 10, 300
"""A side with fewer says too little."""
CLEARLY = 1.5
"""Sides are swapped if each is this many times closer to the other side of the training data than to its own."""

WORDS_OF_A_TITLE = 3
"""A text with fewer words is no title: it may be a name."""
LETTERS_OF_A_WORD = 5
"""A word alone, in capitals, with fewer letters may be an abbreviation."""
HARDLY_ANY = 0.001
"""What a smaller share of the sources has is unusual."""
OFTEN = 0.1
"""What a greater share of the sources has, a model reads well as it stands."""
TURKISH = 0.2
"""In Turkish and its relatives at least this share of the targets has a dotless i."""

Style = Literal["capitals", "title", "small letters"]


@dataclass(frozen=True)
class CorpusFacts:
    """What a sample of training pairs is like. A checkpoint keeps it."""

    pairs: int = 0
    loops: int = 0  # targets that say the same several times in a row, see `says_in_a_row`
    limit: int = USUAL_LIMIT  # of `is_loop`: so that hardly any of the targets is a loop
    letterless: int = 0  # sources without letters
    unchanged: int = 0  # of these, those with the same text as target
    numbered: int = 0  # sources with numbers
    same_numbers: int = 0  # of these, those whose targets have the same numbers
    in_capitals: int = 0  # sources
    same_capitals: int = 0  # of these, those whose targets are in capitals, or in a script that has none
    titles: int = 0  # sources, see `style_of`
    same_titles: int = 0  # of these, those whose targets are titles, or in a script without capitals
    in_small_letters: int = SAMPLE  # sources; older models do not say how many
    with_capital: int = 0  # sources that begin with one
    with_dotless_i: int = 0  # targets
    last_sign: str = ""  # the usual sign at the end of a source, where hardly any ends without one

    @property
    def loops_are_faults(self) -> bool:
        """Whether a translation that repeats itself is wrong."""
        return self.loops <= MAX_LOOPS * self.pairs

    @property
    def keeps_letterless(self) -> bool:
        """Whether a line without letters is its own translation: unless the corpus shows that it is not."""
        return self.letterless < MIN_PAIRS or self.unchanged >= CARRIED_SHARE * self.letterless

    @property
    def keeps_numbers(self) -> bool:
        """Whether other numbers in a translation are a fault: unless the corpus spells or changes them."""
        return self.numbered < MIN_PAIRS or self.same_numbers >= TEXT_SHARE * self.numbered

    def keeps(self, style: Style) -> bool:
        """Whether a translation has the style of its text: unless the corpus shows that it has not."""
        in_capitals = style == "capitals"
        there, same = (self.in_capitals, self.same_capitals) if in_capitals else (self.titles, self.same_titles)
        return there < MIN_PAIRS or same >= CARRIED_SHARE * there

    @property
    def begins_with_capitals(self) -> bool:
        """Whether sentences begin with a capital."""
        return 0 < self.pairs <= 2 * self.with_capital

    @property
    def unusual_styles(self) -> tuple[Style, ...]:
        """Styles in which a text is not read as it stands: small letters where hardly any source is in them, capitals
        and titles where not many are."""
        most = {
            "capitals": self.in_capitals - OFTEN * self.pairs,
            "title": self.titles - OFTEN * self.pairs,
            "small letters": self.in_small_letters - HARDLY_ANY * self.pairs,
        }
        return tuple(style for style in get_args(Style) if most[style] <= 0)

    @property
    def is_turkish(self) -> bool:
        """Whether the targets have another capital for i than I."""
        return self.pairs > 0 and self.with_dotless_i >= TURKISH * self.pairs

    def is_usual(self, text: str) -> bool:
        """Whether a text has the letters and the end of training text."""
        return style_of(text) not in self.unusual_styles and not (self.last_sign and is_open(text))

    @property
    def remark(self) -> str:
        """Why a translation that repeats itself is searched for once more, or is not."""
        share = f"{100 * self.loops / self.pairs:.2f} %" if self.pairs else "no one knows how many"
        return f"{'on' if self.loops_are_faults else 'off'} ({share} of the training targets repeat themselves)"


def look_at(pairs: Collection[Pair], placeholder_kinds: Collection[str]) -> CorpusFacts:
    """Counts what pairs are like. Placeholders of these kinds have no letters or numbers that count."""
    letterless = [(src, tgt) for src, tgt in pairs if src and not has_words(src, placeholder_kinds)]
    numbered = [pair for pair in pairs if numbers(pair[0], placeholder_kinds)]
    styles = Counter((style, _is_in(tgt, style)) for src, tgt in pairs if (style := style_of(src)))
    return CorpusFacts(
        pairs=len(pairs),
        loops=sum(says_in_a_row(tgt, src) for src, tgt in pairs),
        limit=_limit([words_again(tgt, src) for src, tgt in pairs]),
        letterless=len(letterless),
        unchanged=sum(src == tgt for src, tgt in letterless),
        numbered=len(numbered),
        same_numbers=sum(not any(differences_in_numbers(*pair, placeholder_kinds)) for pair in numbered),
        in_capitals=styles["capitals", True] + styles["capitals", False],
        same_capitals=styles["capitals", True],
        titles=styles["title", True] + styles["title", False],
        same_titles=styles["title", True],
        in_small_letters=styles["small letters", True] + styles["small letters", False],
        with_capital=sum(src[:1].isupper() for src, _ in pairs),
        with_dotless_i=sum("ı" in tgt for _, tgt in pairs),
        last_sign=_last_sign([src for src, _ in pairs]),
    )


def style_of(text: str) -> Style | None:
    """Whether a text is all in capitals or in small letters, or each of its words begins with a capital."""
    words = [word for word in text.split() if word.lower() != word.upper()]
    if not any(len(word) > 1 for word in words) or (not text.isascii() and any(map(_has_no_case, text))):
        return None  # nothing that could be in another style, or a script that has no capitals
    if all(map(str.isupper, words)):
        return "capitals" if len(words) > 1 or len(words[0]) >= LETTERS_OF_A_WORD else None
    if all(map(str.islower, words)):
        return "small letters"
    first = (next(character for character in word if character.lower() != character.upper()) for word in words)
    return "title" if len(words) >= WORDS_OF_A_TITLE and all(not one.islower() for one in first) else None


def _has_no_case(character: str) -> bool:
    return character.isalpha() and character.lower() == character.upper()


def is_open(text: str) -> bool:
    """Whether a text ends with a letter or a digit."""
    return bool(_OPEN.search(text))


def _last_sign(texts: list[str]) -> str:
    """The most frequent sign at the end, if hardly any text is open and most have this one."""
    [(sign, times)] = Counter(text[-1:] for text in texts).most_common(1) or [("", 0)]
    usual = 2 * times >= len(texts) and sum(map(is_open, texts)) <= HARDLY_ANY * len(texts)
    return sign if usual and _TERMINAL.match(sign) else ""


def _is_in(text: str, style: Style) -> bool:
    """Whether a text is in a style of letters, or has no capitals that it could be in."""
    return text.lower() == text.upper() or style_of(text) == style


def _limit(times: list[int]) -> int:
    """The lowest limit that at most a share of `MAX_LOOPS` reaches; where that is none, one that no text reaches."""
    for limit in range(USUAL_LIMIT, HIGHEST_LIMIT + 1):
        if sum(one >= limit for one in times) <= MAX_LOOPS * len(times):
            return limit
    return NEVER_A_LOOP


def is_loop(text: str, source: str, limit: int = USUAL_LIMIT) -> bool:
    """Whether a text repeats itself, more often than its source does: `very, very, very` may be right.

    Three words in a row that stand `limit` times anywhere in the text are a loop, too.
    """
    return says_in_a_row(text, source) or words_again(text, source) >= limit


def says_in_a_row(text: str, source: str) -> bool:
    """Whether a text says the same several times in a row, more often than its source."""
    times = _most_repeated(text)
    return times >= MIN_TIMES and times > _most_repeated(source)


def words_again(text: str, source: str) -> int:
    """How often a text has its most frequent three words in a row; 0 if its source repeats three words as often."""
    times = _most_frequent(text)
    return times if times > _most_frequent(source) else 0


def _most_frequent(text: str) -> int:
    words = text.split()
    threes = list(zip(words, words[1:], words[2:], strict=False))
    if len(set(threes)) == len(threes):  # as of most texts
        return min(len(threes), 1)
    return max(Counter(threes).values())


def _most_repeated(text: str) -> int:
    """The longest run of repetitions in a text: how many times it says the same in a row."""
    text += " "  # the last word repeats the others with their spaces
    runs = (found for pattern in _REPEATED for found in pattern.finditer(text))
    return max((len(run[0]) // len(run[1]) for run in runs if count_letters(run[0]) >= MIN_LETTERS), default=0)


def count_letters(text: str) -> int:
    """Letters and digits of a text, a wide character counted as three."""
    return sum(map(str.isalnum, text)) + 2 * wide_characters(text)


def wide_characters(text: str) -> int:
    """How many Chinese, Japanese and Korean characters a text has."""
    return sum(map(len, _WIDE.findall(text)))


def numbers(text: str, kinds: Collection[str] = KINDS) -> list[str]:
    """The numbers of a text outside placeholders of these kinds, in ASCII digits: `1,000`, `1.000`, `1 000` are `1000`.

    What stands before three last digits, or more than once, divides groups; another separator counts as a decimal
    point: `1,5` is `1.5`, and `17:45` is `17.45`. Superscripts, circled digits and Chinese numerals are no digits.
    """
    return list(map(_normal, _spelt(text, kinds)))


def differences_in_numbers(
    source: str, translation: str, kinds: Collection[str] = KINDS
) -> tuple[list[str], list[str]]:
    """The numbers that a translation has lost, and those that it has added, as they are spelt; none in placeholders.

    A hint: a number may be a word on the other side, which is seen of Chinese numerals up to ten alone. Numbers that
    are only divided in another way, as dates are, do not count.
    """
    spelt = _spelt(source, kinds), _spelt(translation, kinds)
    if not any(spelt):  # as most texts
        return [], []
    src, tgt = (Counter(map(_normal, side)) for side in spelt)
    lost = _surplus(spelt[0], _without_words(src - tgt, translation))
    added = _surplus(spelt[1], _without_words(tgt - src, source))
    divided = len(lost) != len(added) and _digits(lost) == _digits(added)
    return ([], []) if divided else (lost, added)


def _spelt(text: str, kinds: Collection[str]) -> list[str]:
    return _NUMBER.findall(without_placeholders(text, kinds, by="\n"))  # a space may divide a number


def _normal(number: str) -> str:
    groups = _GROUPS.split("".join(_ascii(character) for character in number))
    *others, last = groups[1::2] or [""]
    is_point = last and last not in others and len(groups[-1]) != 3
    return "".join(groups[:-1:2]) + ("." if is_point else "") + groups[-1]


def _ascii(character: str) -> str:
    return str(unicodedata.decimal(character, character))


def _without_words(more: Counter[str], other: str) -> Counter[str]:
    """Numbers that one side has more of, without those that the other side says in Chinese numerals."""
    return more - Counter({number: sum(map(other.count, signs)) for number, signs in _HAN.items()})


def _surplus(spelt: list[str], more: Counter[str]) -> list[str]:
    """The last occurrences of each number of which there are more, as they are spelt."""
    left, found = more.copy(), list[str]()
    for number in reversed(spelt):
        if left[_normal(number)] > 0:
            left[_normal(number)] -= 1
            found.append(number)
    return found[::-1]


def _digits(spelt: Iterable[str]) -> list[str]:
    return sorted(filter(str.isdecimal, map(_ascii, "".join(spelt))))


def sample_rows(count: int) -> range:
    """Rows of a corpus, evenly from all over it, few enough to be looked at."""
    return range(0, count, max(-(-count // LOOKED_AT), 1))


def swap_remark(train: Iterable[Pair], dev: Sequence[Pair]) -> str | None:
    """What to say of a validation set whose sources are in the language of the targets, and the other way round.

    Nothing is said where both sides are written alike, as in copies, nor of one side alone.
    """
    dev = [dev[row] for row in sample_rows(len(dev))]
    train_sides, dev_sides = _groups(train), _groups(dev)
    if len(dev) < FEWEST_PAIRS or min(side.total() for side in (*train_sides, *dev_sides)) < FEWEST_GROUPS:
        return None
    for side in (0, 1):
        own = _overlap(dev_sides[side], train_sides[side])
        if _overlap(dev_sides[side], train_sides[1 - side]) <= max(CLEARLY * own, 0.1):
            return None
    return (
        "the sides of the validation set seem to be swapped: its sources look like the targets of the training data,"
        " and its targets like the sources; name its files, or columns, the other way round"
    )


def _groups(pairs: Iterable[Pair]) -> tuple[Counter[str], Counter[str]]:
    """How often each group of three characters is found in the sources, and in the targets."""
    sides = Counter[str](), Counter[str]()
    for pair in pairs:
        for found, text in zip(sides, pair, strict=True):
            padded = f" {clean(text).lower()} "
            found.update(padded[i : i + 3] for i in range(len(padded) - 2))
    return sides


def _overlap(one: Counter[str], other: Counter[str]) -> float:
    """The share that two distributions have in common: 0 of nothing, 1 of all."""
    size, other_size = one.total(), other.total()
    return sum(min(count / size, other[group] / other_size) for group, count in one.items())
