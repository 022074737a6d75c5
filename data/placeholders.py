"""Parts of a text that a translation has exactly as they are: `%s`, `{name}`, `<b>`, URLs, markup of code.

The corpus decides whether a kind is carried through: `PlaceholderRule` says so. A part of such a kind stands in the
text as one symbol while a model reads and writes it; afterwards it is put back. A vocabulary has a piece for each
symbol, see `tokenizer`. All other kinds are text, for the model to learn.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from zlib import crc32

import regex

from .scripts import UNSPACED

SYMBOLS = [chr(0xFDD0 + index) for index in range(1, 16)]
"""Noncharacters of Unicode: no text for people has them."""
_SYMBOL = re.compile(f"[{SYMBOLS[0]}-{SYMBOLS[-1]}]")

_BOOLEAN_ATTRIBUTES = (
    "allowfullscreen|async|autofocus|autoplay|checked|controls|default|defer|disabled|hidden|loop|multiple|muted|nowrap"
    "|open|readonly|required|reversed|selected"
)
_FOREIGN = (
    r"\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0300-\u037d\u037f-\u0386\u0388-\u0481\u048a-\u0556\u0561-\u0587"
    r"\u05d0-\u05ea\u0620-\u065f\u066e-\u06d3\u0900-\u0963\u0966-\u096f\u0971-\u0df3\u10a0-\u10fa\u10fc-\u10ff\u1e00-\u1fff"
)
"""Letters of addresses besides those of ASCII. Where words follow without a space, as in Chinese, Thai and Korean, they
are text."""
_CONVERSION = "(?: hh|ll|I64|[hlqLjzt] )? [diouxXeEfFgGcrsap@]"
"""The end of a `%s`, `%ld` .."""
_NAME = "[A-Za-z_] [A-Za-z0-9_.-]* [A-Za-z0-9_]"
_PATTERNS = {
    "url": rf"""
        (?: https?:// | ftp:// | www\. ) [!\#-&(-;=?-_a-{{}}~{_FOREIGN}]*
        [A-Za-z0-9/\#=&_~%+{_FOREIGN}-]                # a full stop is text
        """,
    "email": rf"""
        (?<![A-Za-z0-9.+_{_FOREIGN}-]) [A-Za-z0-9.+_{_FOREIGN}-]{{1,64}}
        @ [A-Za-z0-9{_FOREIGN}-]+ (?: \. [A-Za-z0-9{_FOREIGN}-]+ )+
        """,
    "markup": r"""
        :[A-Za-z][\w.:+-]{0,50}:` [^`<>]+ `            # :func:`x`, without words of its own
        | `` [^`]+ `` | (?<![\w`]) ` [^`\s]+ ` (?! [\w`])  # ``code`` and `code`
        | \|\w[\w.-]*\|                                # |name|, which stands for a text
        """,
    "tag": rf"""
        < /? [0-9]{{1,3}} > | < [0-9]{{1,3}} \s? /> # <0>, </0> and <1/>, of react-i18next
        | </ [A-Za-z][\w:.-]* \s* > | <!--.{{0,500}}?-->
        | < [A-Za-z][\w:.-]*                           # words in angle brackets have no attributes: they are text
          (?: \s+ (?: [\w:@.-]+ \s*=\s* (?: "[^"]*" | '[^']*' | [^\s"'<>=]+ ) | (?:{_BOOLEAN_ATTRIBUTES})\b ) )*
          \s* /? >
        """,
    "entity": r"& (?: \#\d+ | \#x[0-9A-Fa-f]+ | [A-Za-z]\w* ) ;",
    "braces": r"""
        \{\\[^{}]*\}                                   # {\an8}, of subtitles
        | \{\{ [\#/^>] \s? [A-Za-z] [^{}]{0,200} \}\}    # {{#if x}} and {{/if}}
        | \{\{ \s? [\w$.\[\]-]+ (?: \s? \| \s? \w+ (?: \([^(){}]*\) )?  # {{ x | date:'short' }}
            (?: \s? : \s? (?: '[^'{}]*' | "[^"{}]*" | [\w.-]+ ) )* )+ \s? \}\}
        | (?: \$ | (?<!\d) % (?=\{\w) )?                # ${name}, and %{name}, of Ruby
          (?P<double>\{)? \{ \s? (?: \$ (?=\w) )? [\w.\[\]-]* (?: ![rsa] )? (?: : (?: [^{}\s]* | [^{}]* % [^{}]* ) )?
          (?: , \s? \w+ (?: , \s? [\w:/.\#-]+ )? )? \s? \} (?(double)\})   # {}, {name}, {0:.2f}, ${name}, {n, number}
        """,
    "printf": rf"""
        % (?:\d+\$)? \#@ \w+ @                                             # %#@count@, of Xcode
        | % (?:\d+\$)? [-#0+']? (?: \d+ | \* )? (?: \.(?:\d+|\*) )? <PRI[diouxX][A-Z0-9]+>  # of gettext
        | (?<!\d) % (?! {_CONVERSION} ) {_NAME} %                           # %name%, of Symfony
        | (?<!\d) % (?= {_CONVERSION} [^%] ) {_NAME} % (?! [A-Za-z0-9_%] )  # %count%, but not %dx%d
        | % \([\w.]+\) [-#0+]? \d* (?: \.\d+ )? [a-zA-Z]                      # %(name)s
        | %% | % L? [1-9]\d? (?! [\d$.%]|\w) | (?<!\d) %n \b                # %1 and %n, of Qt
        | (?<!\d) % (?: \d+\$ )? [-#0+']? (?: \d+ | \* )? (?: \.(?:\d+|\*) )?   # %s, %1$s, %5.2f ..
          {_CONVERSION}
        | (?<=\d) % (?: \d+\$ )? [diouxXeEfFgGcrsap@] (?! \w)               # %d%s, but not 50%ige
        | \[X\d+X\]                                                        # what Weblate sends instead
        """,
    "escape": r"""\\ [nrt"'\\]""",  # an escape that is spelt out
}
KINDS = tuple(_PATTERNS)
"""Kinds of placeholders. Words in brackets, such as `{and the child}`, are none."""
_PLACEHOLDER = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS.items()), re.VERBOSE)

_LETTER = rf"(?:(?!{UNSPACED})[^\W_])"
"""A letter or digit of a script that puts spaces between words."""
_LETTER_START, _LETTER_END = regex.compile(_LETTER), regex.compile(f"{_LETTER}$")
_HINT = re.compile(r"[%{<&`|\\@]|://|www\.|\[X")
"""Each placeholder has one of these: most texts are seen to have none at once."""

MIN_PAIRS = 20
"""Fewer pairs with a kind of placeholders do not show what a corpus does with it."""
CARRIED_SHARE = 0.9
"""A kind that at least this share of its pairs carries through is carried through by force."""
TEXT_SHARE = 0.5
"""A kind that less than this share of its pairs carries through is text, as a language tag is: it may be gone."""


def _find(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """The placeholders of a text, in order, each with its kind."""
    if _HINT.search(text):
        for match in _PLACEHOLDER.finditer(text):
            yield next(kind for kind in KINDS if match[kind] is not None), match


def placeholders(text: str, kinds: Collection[str] = KINDS) -> list[str]:
    """The placeholders of these kinds, in order."""
    return [match[0] for kind, match in _find(text) if kind in kinds]


def placeholder_spans(text: str) -> list[tuple[int, int]]:
    """Where the placeholders of all kinds begin and end."""
    return [match.span() for _, match in _find(text)]


def span_around(spans: Sequence[tuple[int, int]], place: int) -> tuple[int, int] | None:
    """The span that a place is in. The spans are sorted and do not overlap."""
    before = bisect_right(spans, place, key=lambda span: span[0]) - 1
    return spans[before] if before >= 0 and place < spans[before][1] else None


def without_placeholders(text: str, kinds: Collection[str] = KINDS, *, by: str = " ") -> str:
    """A text with a space, or what is given, in the place of each placeholder of these kinds."""
    return _replaced(text, dict.fromkeys(placeholders(text, kinds), by)) if _HINT.search(text) else text


def has_words(text: str, kinds: Collection[str] = KINDS) -> bool:
    """Whether a text has letters besides its placeholders of these kinds."""
    return any(character.isalpha() for character in without_placeholders(text, kinds))


def _replaced(text: str, by: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: by.get(match[0], match[0]), text) if by else text


@dataclass(frozen=True)
class Masked:
    """A text with symbols in the places of its placeholders."""

    text: str
    values: Mapping[str, str]

    def mask(self, translation: str) -> str:
        """Puts the same symbols in the places of the same placeholders in a translation."""
        return _replaced(translation, {value: symbol for symbol, value in self.values.items()})

    def unmask(self, text: str) -> str:
        """Puts the placeholders back into a text that has the symbols. A symbol that stands for none vanishes.

        A placeholder that touches no letter in the source touches none here: a space is put between them.
        """
        if not _SYMBOL.search(text):  # as most pieces
            return text
        text = _SYMBOL.sub(lambda match: match[0] if match[0] in self.values else "", text)
        for symbol in self.values:
            for place in (f"(?<={_LETTER})(?={symbol})", f"(?<={symbol})(?={_LETTER})"):
                if not regex.search(place, self.text):
                    text = regex.sub(place, " ", text)
        found = Counter(self.values[character] for character in text if character in self.values)
        if found - Counter(placeholders(self._put_back(text))):  # one would run together with what is beside it
            text = re.sub(" +", " ", _SYMBOL.sub(r" \g<0> ", text)).strip()
        return self._put_back(text)

    def _put_back(self, text: str) -> str:
        return text.translate({ord(symbol): value for symbol, value in self.values.items()})


def mask(text: str, kinds: Collection[str]) -> Masked:
    """Puts a symbol in the place of each placeholder of these kinds in a clean text, which stays clean.

    Equal placeholders have equal symbols. Those for which no symbol is left stay as they are. Which symbol comes first
    depends on the text, so that a model in training meets all of them.
    """
    values = dict.fromkeys(placeholders(text, kinds)) if kinds else {}
    if not values:
        return Masked(text, {})
    first = crc32(text.encode("utf-8", errors="replace")) % len(SYMBOLS)
    symbol_of = dict(zip(values, SYMBOLS[first:] + SYMBOLS[:first], strict=False))
    return Masked(_replaced(text, symbol_of), {symbol: value for value, symbol in symbol_of.items()})


@dataclass(frozen=True)
class PlaceholderRule:
    """What becomes of each kind of placeholders, by what the training pairs do with it."""

    pairs: Mapping[str, tuple[int, int]]
    """For each kind, how many pairs have it in the source, and how many of them carry it through: the target has the
    same ones, each as often. A kind that no pair has may be left out."""

    @cached_property
    def carried(self) -> frozenset[str]:
        """The kinds that are carried through by force."""
        return frozenset(kind for kind in self.pairs if self._share(kind, unknown=0.0) >= CARRIED_SHARE)

    @cached_property
    def expected(self) -> frozenset[str]:
        """The kinds that a translation should have: all but those that the corpus shows to be text."""
        return frozenset(kind for kind in KINDS if self._share(kind, unknown=1.0) >= TEXT_SHARE)

    def _share(self, kind: str, unknown: float) -> float:
        """The share of pairs that carry a kind through; `unknown` where there are too few of them."""
        pairs, carried = self.pairs.get(kind, (0, 0))
        return carried / pairs if pairs >= MIN_PAIRS else unknown


EVERY_KIND = PlaceholderRule(dict.fromkeys(KINDS, (MIN_PAIRS, MIN_PAIRS)))
"""Carries every kind, as earlier versions of tfm did where a vocabulary has the symbols."""


class PlaceholderCount:
    """Counts what pairs do with the placeholders of their sources."""

    def __init__(self) -> None:
        self._pairs, self._carried = Counter[str](), Counter[str]()

    def add(self, src: str, tgt: str, times: int = 1) -> None:
        """Looks at a pair, cleaned; `times` of -1 takes back one that was added."""
        found = list(_find(src))
        if not found:
            return
        there = Counter(placeholders(tgt))
        for kind in {kind for kind, _ in found}:
            wanted = Counter(match[0] for of_kind, match in found if of_kind == kind)
            self._pairs[kind] += times
            self._carried[kind] += times * all(there[value] == count for value, count in wanted.items())

    def rule(self) -> PlaceholderRule:
        """What follows from the pairs so far."""
        return PlaceholderRule({kind: (self._pairs[kind], self._carried[kind]) for kind in KINDS if self._pairs[kind]})


@dataclass(frozen=True)
class Differences:
    """How the placeholders of a translation differ from those of its source."""

    lost: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    glued: tuple[str, ...] = ()
    """Those that touch a letter, and touch none in the source."""

    def __bool__(self) -> bool:
        return bool(self.lost or self.added or self.glued)

    def __str__(self) -> str:
        parts = [("lost", self.lost), ("added", self.added), ("glued to a letter", self.glued)]
        return ", ".join(f"{what} {in_short(values, ' ')}" for what, values in parts if values)


NO_DIFFERENCES = Differences()


_SHOWN = 5
"""This many of several values are shown in a message."""


def in_short(values: Sequence[str], between: str, longest: int = 40) -> str:
    """The first of some values, each cut where it is long, and how many more there are."""
    shown = [value if len(value) <= longest else value[:longest] + ".." for value in values[:_SHOWN]]
    more = [f"and {len(values) - _SHOWN:,} more"] if len(values) > _SHOWN else []
    return between.join(shown + more)


def differences(source: str, translation: str, kinds: Collection[str] = KINDS) -> Differences:
    """Compares the placeholders of two texts, of these kinds; their order is free."""
    if not (_HINT.search(source) or _HINT.search(translation)):  # as in most texts
        return NO_DIFFERENCES
    wanted, there = Counter(placeholders(source, kinds)), Counter(placeholders(translation, kinds))
    glued = Counter(_touching(translation, kinds)) - Counter(_touching(source, kinds))
    return Differences(
        tuple((wanted - there).elements()),
        tuple((there - wanted).elements()),
        tuple(value for value in glued.elements() if value in wanted),
    )


def _touching(text: str, kinds: Collection[str]) -> list[str]:
    """The placeholders of these kinds that have a letter right before or after them, not that of another one."""
    found = list(_find(text))
    around = _PLACEHOLDER.split(text)[:: _PLACEHOLDER.groups + 1] if found else []
    touches = [bool(_LETTER_END.search(a) or _LETTER_START.match(b)) for a, b in pairwise(around)]
    return [match[0] for (kind, match), letter in zip(found, touches, strict=True) if letter and kind in kinds]
