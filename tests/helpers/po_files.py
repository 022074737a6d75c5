"""PO files as strangers write them, made at random, with what they mean."""

import shutil
from dataclasses import dataclass, field

import pytest
from hypothesis import strategies as st

needs_gettext = pytest.mark.skipif(shutil.which("msgfmt") is None, reason="gettext is not installed")

_LETTERS = st.sampled_from(
    [*"abc XYZ%:;.#~|[]'", "ä", "字", "\U0001f600", "\u0301", "\t", "\v", "\f", "\x85", "\u2028"]
)
_NAMED = {r"\n": "\n", r"\t": "\t", r"\b": "\b", r"\r": "\r", r"\f": "\f", r"\v": "\v", r"\a": "\a"}
_NAMED |= {"\\\\": "\\", r"\"": '"', r"\101": "A", r"\033": "\x1b", r"\303\244": "ä", r"\x1b": "\x1b", r"\xc3\xa4": "ä"}
_PIECES = st.one_of(
    _LETTERS.map(lambda one: (one, one)),
    st.sampled_from(list(_NAMED.items())).map(
        lambda pair: (f"{pair[0]} ", f"{pair[1]} ")
    ),  # a digit would belong to it
    st.just(("\\\n", "")),  # gettext before 0.23 does not join lines that end in CR and LF
)
_KINDS = (
    "c objc c++ python python-brace java java-printf csharp javascript scheme lisp elisp librep rust go sh sh-printf "
    "ruby awk lua object-pascal modula2 d ocaml smalltalk qt qt-plural kde kde-kuit boost tcl perl perl-brace php "
    "gcc-internal gfc-internal ycp"
)
_FLAGS = [*(f"no-{kind}-format" for kind in _KINDS.split()), "no-wrap", "range:0..9", "range:1..2"]
"""Those of gettext's manual. Without `no-`, msgfmt would look at the text, too."""
_BLANKS = st.lists(st.sampled_from(["\n", " \n", "\t\n", "\r\n", "\f\n"]), max_size=2).map("".join)
_BETWEEN = st.sampled_from(["\n", "\r\n", " ", "", "\n  ", "\t"])
HEADER = (
    'msgid ""\nmsgstr ""\n"Language: lt\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Plural-Forms: nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2);\\n"\n'
)


@dataclass
class Meant:
    """What a message means."""

    context: str | None
    msgid: str
    plural: str | None
    msgstr: list[str]
    flags: set[str] = field(default_factory=set)
    obsolete: bool = False


@st.composite
def _part(draw: st.DrawFn, keyword: str, begin: str | None) -> tuple[str, str]:
    """A keyword with its strings, and what they say: nothing, or a text that begins and ends with letters.

    msgfmt wants line ends at the beginning and at the end of a text in its translation, too.
    """
    strings = draw(st.lists(st.lists(_PIECES, max_size=8), max_size=3))
    strings = [[]] if begin is None else [[(begin, begin)], *strings, [("z", "z")]]
    written = keyword + draw(st.sampled_from([" ", "\t", "", "\n", "  "]))
    written += draw(_BETWEEN).join(f'"{"".join(source for source, _ in one)}"' for one in strings)
    return written, "".join(meaning for one in strings for _, meaning in one)


@st.composite
def _message(draw: st.DrawFn, number: int) -> tuple[str, Meant]:
    lines, flags, end = list[str](), set[str](), draw(st.sampled_from(["\n", "\n", "\r\n"]))
    for mark in draw(st.lists(st.sampled_from(["# ", "#", "#.", "#:", "#,"]), max_size=5)):
        if mark == "#," and flags:
            continue  # gettext before 0.23 heeds the last such line alone
        if mark == "#,":
            found = draw(st.lists(st.sampled_from([*_FLAGS, "fuzzy", "fuzzy"]), min_size=1, max_size=3))
            flags |= set(found)
            lines.append(f"#{draw(st.sampled_from([',', ', ']))}{', '.join(found)}")
        else:
            text = draw(
                st.sampled_from(["", " a comment", ' msgid "no"', " ä\u2028\x85", "\ta.c:1 b.c:2", " it's, \\n"])
            )
            lines.append(mark + text)
    if draw(st.booleans()):
        lines.append('#| msgid "before"')
        if draw(st.booleans()):
            lines.append('#| "and more"')
    written, meant = list[str](), Meant(None, "", None, [], flags)
    if draw(st.integers(0, 3)) == 0:
        source, meant.context = draw(_part("msgctxt", "c"))
        written.append(source)
    source, meant.msgid = draw(_part("msgid", f"{number} "))
    written.append(source)
    if draw(st.integers(0, 3)) == 0:
        source, meant.plural = draw(_part("msgid_plural", "p"))
        written.append(source)
        keywords = [f"msgstr[{form}]" for form in range(3)]
        keywords[0] = draw(st.sampled_from(["msgstr[0]", "msgstr [ 0 ]"]))
    else:
        keywords = ["msgstr"]
    for keyword in keywords:
        source, text = draw(_part(keyword, None if draw(st.integers(0, 3)) == 0 else "t"))
        written.append(source)
        meant.msgstr.append(text)
    body = draw(st.sampled_from(["\n", "\n", "\r\n", " "])).join(written)
    if draw(st.integers(0, 5)) == 0 and "\\\n" not in body:
        meant.obsolete = True
        lines = [line for line in lines if not line.startswith("#|")]
        body = "".join(f"#~ {line}\n" for line in body.split("\n")).removesuffix("\n")
    return "".join(line + end for line in lines) + body + "\n", meant


@st.composite
def po_files(draw: st.DrawFn) -> tuple[bytes, list[Meant]]:
    """The content of a file that `msgfmt` accepts, and its messages without the header."""
    count = draw(st.integers(1, 4))
    found = [draw(_message(number)) for number in range(count)]
    text = HEADER + "".join(draw(_BLANKS) + written for written, _ in found) + draw(_BLANKS)
    if draw(st.booleans()):
        text = text.rstrip()
    return text.encode(), [meant for _, meant in found]
