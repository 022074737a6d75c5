"""Where words begin and end in a text, as far as its letters alone say it, and terms found between such places.

* Letters, marks, digits and `_` make words. A vowel sign, a virama or a joiner belongs to its word.
* Scripts that put no spaces between words (Thai, Lao, Burmese, Khmer, Chinese, Japanese) may have a term anywhere, but
  no syllable is cut. A run of katakana is one word. Tibetan words are divided by their own marks.
* An apostrophe between letters does not begin a word, except after an article or another short word that has lost its
  vowel: `l'eau`, `dell'acqua`. A word may end before one (`cat's`), but not before `'t`.
* Arabic and Hebrew words of three letters and more may follow the letters that are written together with them: و or ف,
  then ب, ك or ل, then ال (لل for ل and ال); ו, then ש, כש or מש, then ב, כ, ל or מ, then ה.
* Korean words of two syllables and more may stand before a particle that is written together with them, as in 한국은
  and 한국에서.
* A term does not end before `++` or `#`: `C` is not in `C++` or `C#`.
"""  # noqa: RUF002

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence

import regex

from .cleaning import clean
from .placeholders import span_around
from .scripts import UNSPACED

_KATAKANA = r"[\p{Katakana}ー]"
_INSIDE = rf"""
      (?<= \w) (?= \w) (?<! {UNSPACED}) (?! {UNSPACED})
    | (?<= {_KATAKANA}) (?= {_KATAKANA})
    | (?= [\p{{M}}\p{{GCB=Extend}}\p{{GCB=SpacingMark}}\p{{Join_Control}}])
    | (?= \p{{InSC=Vowel_Dependent}}) (?! \p{{Logical_Order_Exception}})
    | (?<= [\p{{Logical_Order_Exception}}\u200d])
    | (?<= [\p{{InCB=Linker}}\p{{InSC=Invisible_Stacker}}] [\p{{M}}\p{{GCB=Extend}}\u200c]* )
    | (?= \p{{InSC=Consonant}} \p{{InSC=Tone_Mark}}* [\p{{InSC=Pure_Killer}}\p{{InSC=Consonant_Killer}}])
"""
"""Places inside a word: between letters, or inside a syllable. Thai has vowels that stand before their consonant."""
_ELIDED = (
    "[cdjlmnstv]|qu|jusqu|lorsqu|puisqu|quoiqu|quelqu|entr|grand"
    "|un|gl|dell|all|dall|nell|sull|coll|quell|quest|bell|sant|tutt|mezz|senz|anch|com|dov|cos"
)
"""Words of French, Italian and Catalan that have lost their vowel before an apostrophe."""
_PREFIXES = r"[وف] | [وف]?(?: [بكل] | [بكل]?ال | لل ) | ו?(?:[כמ]?ש)?[בכלמ]?ה?"
_BEGIN = regex.compile(
    rf"""
      (?! {_INSIDE} ) (?! (?<= \w ['’]) \w )
    | (?<= (?<! \w) (?: {_ELIDED}) ['’])
    | (?<= (?<! \w) (?: {_PREFIXES})) (?= [[\p{{Arabic}}\p{{Hebrew}}]&&\p{{L}}]{{3}})
    """,
    regex.VERBOSE | regex.IGNORECASE | regex.V1,
)
_PARTICLES = r"""
      (?<= \p{GCB=LVT}) (?: 은 | 이 | 을 | 과 | 으로(?:는|도|서|써)? | (?:이)?(?:라고|라는) )
    | (?<= \p{GCB=LV}) (?: 는 | 가 | 를 | 와 | 라고 | 라는 )
    | (?: 의 | 도 | 만 | 에(?:는|도|게(?:는|도|서)?|서(?:는|도|의)?)? | 로(?:는|도|서|써)? )
    | (?: 까지 | 부터 | 보다 | 처럼 | 께서? | 한테(?:서)? | 마다 | 조차 | 마저 | 밖에 | 하고 )
"""
"""Particles of Korean: after a syllable that ends with a consonant, after one that does not, and after both."""
_END = regex.compile(
    rf"""
      (?! {_INSIDE} ) (?! ['’] t \b ) (?! (?<= \w) (?: \+\+ | \# (?! \w) ))
    | (?<= [가-힣]{{2}}) (?= (?: {_PARTICLES} ) (?! \w ))
    """,
    regex.VERBOSE | regex.IGNORECASE | regex.V1,
)


def begins_word(text: str, place: int) -> bool:
    """Whether a term may begin at a place of a text."""
    return _BEGIN.match(text, place) is not None


def ends_word(text: str, place: int) -> bool:
    """Whether a term may end before a place of a text."""
    return _END.match(text, place) is not None


def find_terms(
    text: str, is_term: Callable[[str], bool], longest: int, *, outside: Sequence[tuple[int, int]] = ()
) -> list[str]:
    """Terms that stand in a text, in order. None overlap: a longer one is preferred, then the first.

    Args:
        outside: Spans, sorted, which do not overlap. In each of them only its whole text can be a term.
    """

    def is_part(start: int, end: int) -> bool:
        around = span_around(outside, start)
        return around is not None and end <= around[1] and around != (start, end)

    ends = [match.start() for match in _END.finditer(text)]
    spans = [
        (start, end)
        for start in (match.start() for match in _BEGIN.finditer(text))
        for end in ends[bisect_right(ends, start) : bisect_right(ends, start + longest)]
        if is_term(text[start:end]) and not is_part(start, end)
    ]
    taken = bytearray(len(text))
    chosen: list[tuple[int, int]] = []
    for start, end in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        if not any(taken[start:end]):
            taken[start:end] = b"\1" * (end - start)
            chosen.append((start, end))
    return [text[start:end] for start, end in sorted(chosen)]


def missed(wanted: Sequence[str], translation: str) -> tuple[str, ...]:
    """Of the translations of terms, those that a text lacks, each as often as it does. Letter case does not matter.

    They are found as terms are: as whole words, without another ending, and none inside another.
    """
    if not wanted:  # as most texts
        return ()
    keys = {folded(clean(term)) for term in wanted}
    found = find_terms(clean(translation), lambda part: folded(part) in keys, max(map(len, keys)))
    there = Counter(map(folded, found))
    lacking: list[str] = []
    for term in wanted:
        key = folded(clean(term))
        if not there[key]:
            lacking.append(term)
        there[key] -= there[key] > 0
    return tuple(lacking)


def folded(text: str) -> str:
    """A text without the difference between small letters and capitals, those of Turkish i included."""
    return with_plain_signs(text).casefold().replace("i\u0307", "i")


def with_plain_signs(text: str) -> str:
    """A text with `'` for the typographic apostrophe and `-` for other hyphens: they say nothing about a word."""
    return text.replace("\u2019", "'").replace("\u2010", "-").replace("\u2011", "-")
