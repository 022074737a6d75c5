"""Parts of a text that a translation must have exactly as they are: `%s`, `{name}`, `<b>`, URLs, markup of code.

Each stands in the text as one symbol while a model reads and writes it; afterwards it is put back. A vocabulary has a
piece for each symbol, see `tokenizer`.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

Pair = tuple[str, str]

SYMBOLS = [chr(0xFDD0 + index) for index in range(1, 16)]
"""Noncharacters of Unicode: no text for people has them."""
_NOTHING = dict.fromkeys(map(ord, SYMBOLS), "")

_PLACEHOLDER = re.compile(
    r"""
      (?: https?:// | ftp:// | www\. ) [!\#-&(-;=?-_a-{}~]* [A-Za-z0-9/#=&_~%+-]     # an address; a full stop is text
    | (?<![A-Za-z0-9.+_-]) [A-Za-z0-9.+_-]{1,64} @ [A-Za-z0-9-]+ (?: \. [A-Za-z0-9-]+ )+ # an e-mail address
    | :[A-Za-z][\w.:+-]{0,50}:` [^`<>]+ `                                   # :func:`x`, without words of its own
    | `` [^`]+ `` | (?<![\w`]) ` [^`\s]+ ` (?! [\w`])                       # ``code`` and `code`
    | \|\w[\w.-]*\|                                                         # |name|, which stands for a text
    | </? [A-Za-z] [^<>]* > | <!--.{0,500}?-->                              # a tag
    | & (?: \#\d+ | \#x[0-9A-Fa-f]+ | [A-Za-z]\w* ) ;                       # &amp;
    | \{\\[^{}]*\} | \$? \{\{? [\w\s.,:!%$+\[\]-]* \}?\}                    # {\an8}, {}, {name}, {0:.2f}, ${name}
    | % \([\w.]+\) [-#0+]? \d* (?: \.\d+ )? [a-zA-Z]                        # %(name)s
    | %% | % L? [1-9]\d? (?! [\d$.%]|\w) | (?<!\d) %n \b                     # %1 and %n, of Qt
    | (?<!\d) % (?: \d+\$ )? [-#0+']? (?: \d+ | \* )? (?: \.(?:\d+|\*) )?   # %s, %1$s, %5.2f ..
        (?: hh|ll|I64|[hlqLjzt] )? [diouxXeEfFgGcrsap@]
    | (?<=\d) % (?: \d+\$ )? [diouxXeEfFgGcrsap@] (?! \w)                   # %d%s, but not 50%ige
    | \\ [nrt"'\\]                                                          # an escape that is spelt out
    """,
    re.VERBOSE,
)

_HINT = re.compile(r"[%{<&`|\\@]|://|www\.")
"""Each placeholder has one of these: most texts are seen to have none at once."""


@dataclass(frozen=True)
class Masked:
    """A text with symbols in the places of its placeholders.

    Attributes:
        text: With symbols.
        values: What each symbol stands for.
    """

    text: str
    values: dict[str, str]

    def unmask(self, text: str) -> str:
        """Puts the placeholders back into a text that has the symbols. A symbol that stands for none vanishes."""
        return text.translate(_NOTHING | {ord(symbol): value for symbol, value in self.values.items()})


def placeholders(text: str) -> list[str]:
    """The placeholders of a text, in order."""
    return [match[0] for match in _PLACEHOLDER.finditer(text)] if _HINT.search(text) else []


def has_words(text: str) -> bool:
    """Whether a text has letters besides its placeholders."""
    return any(character.isalpha() for character in (_PLACEHOLDER.sub(" ", text) if _HINT.search(text) else text))


def mask(text: str) -> Masked:
    """Puts a symbol in the place of each placeholder, equal ones in that of equal ones.

    Those for which no symbol is left stay as they are.
    """
    symbol_of = dict(zip(dict.fromkeys(placeholders(text)), SYMBOLS, strict=False))
    return Masked(_replaced(text, symbol_of), {symbol: value for value, symbol in symbol_of.items()})


def mask_pair(src: str, tgt: str) -> Pair:
    """Puts symbols in the places of what both sides have equally often; the rest stays, for a model to learn.

    Which symbol comes first depends on the pair, so that a model meets all of them.
    """
    found = placeholders(src)
    if not found:
        return src, tgt
    counts, other = Counter(found), Counter(placeholders(tgt))
    common = [value for value in counts if counts[value] == other[value]]
    first = crc32(src.encode("utf-8", errors="replace")) % len(SYMBOLS)
    symbol_of = dict(zip(common, SYMBOLS[first:] + SYMBOLS[:first], strict=False))
    return _replaced(src, symbol_of), _replaced(tgt, symbol_of)


def _replaced(text: str, symbol_of: dict[str, str]) -> str:
    if not symbol_of:
        return text
    return _PLACEHOLDER.sub(lambda match: symbol_of.get(match[0], match[0]), text)


@dataclass(frozen=True)
class Differences:
    """How the placeholders of a translation differ from those of its source.

    Attributes:
        lost: Those that it should have, and has not.
        added: Those that it has, and should not.
    """

    lost: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lost or self.added)

    def __str__(self) -> str:
        parts = [("lost", self.lost), ("added", self.added)]
        return ", ".join(f"{what} {in_short(values, ' ')}" for what, values in parts if values)


def in_short(values: Sequence[str], between: str, most: int = 5, longest: int = 40) -> str:
    """The first of some values, each cut where it is long, and how many more there are."""
    shown = [value if len(value) <= longest else value[:longest] + ".." for value in values[:most]]
    more = [f"and {len(values) - most:,} more"] if len(values) > most else []
    return between.join(shown + more)


def differences(source: str, translation: str) -> Differences:
    """Compares the placeholders of two texts; their order is free, and letters may follow one in a translation."""
    wanted = Counter(placeholders(source))
    lost, rest = Counter[str](), translation
    for value in sorted(wanted, key=len, reverse=True):  # one may be part of another
        there = min(rest.count(value), wanted[value])
        rest = rest.replace(value, "<>", there)  # which is part of none
        lost[value] = wanted[value] - there
    return Differences(tuple(value for value in wanted for _ in range(lost[value])), tuple(placeholders(rest)))
