"""Where lines may be broken, and how wide they are, as far as Unicode says it of two characters (UAX 14).

gettext has changed its mind twice about what may begin a line: today neither a letter behind a full stop nor a
backslash behind a letter may.
"""

import unicodedata
from itertools import pairwise
from typing import Literal, get_args

import regex

Rules = Literal["today", "before 0.22", "before 0.21"]
RULES: tuple[Rules, ...] = get_args(Rules)
_CLOSING = r"\p{lb=CL}\p{lb=CP}\p{lb=EX}\p{lb=IS}\p{lb=SY}"
_DASHES = r"\p{lb=BA}\u058a\u2010\u2012\u2013"
_SMALL_KANA = r"\p{lb=CJ}\p{lb=NS}"
_MARKS = r"\p{lb=CM}\p{lb=ZWJ}"
_GLUED = rf"{_CLOSING}{_DASHES}{_SMALL_KANA}{_MARKS}" + "".join(
    rf"\p{{lb={one}}}" for one in ("SP", "QU", "HY", "GL", "WJ", "ZW", "IN")
)
_LETTERS = r"\p{lb=AL}\p{lb=HL}\p{lb=NU}"
_IDEOGRAPHS = r"\p{lb=ID}\p{lb=H2}\p{lb=H3}"
_WIDE_BRACKET = r"[\p{lb=OP}&&\p{ea=W}\p{ea=F}]"
_TODAY = rf"""
    (?! \\n\Z ) (?:
        (?<= \p{{lb=SP}} ) (?! [{_CLOSING}\p{{lb=SP}}\p{{lb=WJ}}\p{{lb=ZW}}] )
            (?<! \p{{lb=OP}} \p{{lb=SP}}+ ) (?! (?<= \p{{lb=QU}} \p{{lb=SP}}+ ) \p{{lb=OP}} )
      | (?! [{_GLUED}] ) (?: (?<= [{_DASHES}\p{{lb=EX}}\p{{lb=B2}}\p{{lb=ZW}}\p{{lb=IN}}] )
          | (?<= \p{{lb=HY}} ) (?! \p{{lb=NU}} )
          | (?<= \p{{lb=SY}} ) (?! [\p{{lb=NU}}\p{{lb=HL}}] )
          | (?<= \p{{lb=CL}} ) (?! [\p{{lb=PR}}\p{{lb=PO}}] )
          | (?<= \p{{lb=CP}} ) (?! [{_LETTERS}\p{{lb=PR}}\p{{lb=PO}}] )
          | (?<= \p{{lb=IS}} ) (?! [{_LETTERS}] )
          | (?<= [{_IDEOGRAPHS}{_SMALL_KANA}] [{_MARKS}]* ) (?! \p{{lb=PO}} )
          | (?<= [{_LETTERS}\p{{lb=PO}}] [{_MARKS}]* ) (?= [{_IDEOGRAPHS}\p{{lb=B2}}] | {_WIDE_BRACKET} )
        )
    )"""
_BEFORE_0_22 = rf"{_TODAY} | (?<= \p{{lb=IS}} ) (?= [\p{{lb=AL}}\p{{lb=HL}}] )"
_BEFORE_0_21 = rf"{_BEFORE_0_22} | (?<= [{_LETTERS}] ) (?= \\ (?! n\Z ) )"
_BREAKS = {
    rules: regex.compile(pattern, regex.VERBOSE | regex.V1)
    for rules, pattern in zip(RULES, (_TODAY, _BEFORE_0_22, _BEFORE_0_21), strict=True)
}


def columns(text: str) -> int:
    """How many columns a text is wide: an East Asian character has two, one that stands above another has none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(one) in ("Mn", "Me", "Cf") else 1 + (unicodedata.east_asian_width(one) in "WF")
        for one in text
    )


def may_break(text: str, place: int, rules: Rules) -> bool:
    """Whether a line may end at a place of a text."""
    return _BREAKS[rules].match(text, place) is not None


def first_piece(text: str, rules: Rules) -> str:
    """What a line begins with at least, with the spaces behind it."""
    found = _BREAKS[rules].search(text, 1)
    return text[: found.start()] if found else text


def broken(text: str, width: int, taken: int = 0, rules: Rules = "today") -> list[str]:
    """The lines of a text, which together are the text: as many pieces as fit, at least one.

    Args:
        width: Columns of a line, in which spaces at its end count.
        taken: Columns of the first line that are not free.
    """
    lines = [""]
    for start, end in pairwise([0, *(match.start() for match in _BREAKS[rules].finditer(text)), len(text)]):
        wide = columns(text[start:end])
        if lines[-1] and taken + wide > width:
            lines.append("")
            taken = 0
        lines[-1] += text[start:end]
        taken += wide
    return lines
