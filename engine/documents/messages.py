"""Messages in ICU's format, `{n, plural, one {# cat} other {# cats}}`: the texts in their branches, and back.

The text of a branch is translated by itself, and so is text beside a plural or select. Its arguments and `#` are
placeholders in it. All else, the frame, stays as it is; a branch for a plural form that the target language has and the
source has not is made of `other`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...data.cleaning import edges
from ...data.languages import locale_of
from ...data.placeholders import has_words, placeholders

_MESSAGE = re.compile(r"\{\s*[^\s{},]+\s*,\s*(?:(?:plural|selectordinal|select)\s*,|(?i:choice)\s*,[^{}]*?[#<≤])")
_CHOICES = ("plural", "selectordinal", "select")
_QUOTED = re.compile(r"''|'([{}#](?:[^']|'')*)(?:'|$)")
"""Two apostrophes are one; one before a brace or `#` begins text in which these mean nothing."""


def looks_like_message(text: str) -> bool:
    """Whether a text has a plural, a select or a choice of ICU's format, or means to. Other braces are text."""
    return _MESSAGE.search(text) is not None


@dataclass(frozen=True)
class _Slot:
    """A text to translate.

    Attributes:
        text: With a placeholder for each argument.
        arguments: What these and all other placeholders stand for; None for one that is text, such as a tag.
        before, after: White space and the like around it.
        counts: Whether it is right in a plural, where `#` is the number.
    """

    text: str
    arguments: dict[str, str | None]
    before: str
    after: str
    counts: bool


@dataclass(frozen=True)
class _Branch:
    """A branch of a plural or select, in four parts: what is before its selector, this, how it opens, its content."""

    before: str
    selector: str
    opening: str
    content: "list[_Part]"


@dataclass(frozen=True)
class _Choice:
    """A plural or select: `{n, plural,`, its branches, and how it ends."""

    kind: str
    head: str
    branches: list[_Branch]
    end: str


_Part = str | _Slot | _Choice


class Message:
    """A message that has been parsed.

    Attributes:
        texts: Those of its branches, in order.
    """

    def __init__(self, source: str, tree: Any, parts: list[_Part]) -> None:
        self._source, self._shape, self._parts = source, _shape(tree), parts
        self._slots = list(_slots(parts))
        self.texts = [slot.text for slot in self._slots]

    def shorter(self, place: int, translation: str) -> tuple[str, str, str] | None:
        """For a text whose arguments did not come through: the text without those at its ends, between what is left
        out; None if they did, or if it has none there."""
        slot = self._slots[place]
        if _arrived(slot, translation):
            return None
        ends = "|".join(map(re.escape, slot.arguments)) or "(?!)"
        found = re.fullmatch(rf"((?:(?:{ends})\s*)*)(.*?)((?:\s*(?:{ends}))*)", slot.text, re.DOTALL)
        assert found is not None  # each part of it may be empty
        before, text, after = found.groups()
        return (before, text, after) if (before or after) and has_words(text) else None

    def filled(self, translations: Sequence[str], language: str) -> str | None:
        """The message with translations of its texts; None if they do not fit.

        Args:
            language: The target language, empty if it is not known.
        """
        if not all(map(_arrived, self._slots, translations)):
            return None
        doubled = "''" in self._source
        texts = iter([_put_back(*pair, doubled) for pair in zip(self._slots, translations, strict=True)])
        written = _written(self._parts, texts, _forms(language))
        tree = _parsed(written)
        return written if tree is not None and _is_like(_shape(tree), self._shape) else None


def parse_message(text: str) -> Message | None:
    """Parses a message; None if it is none, though it looks like one, or if it has a `choice`, which is not read."""
    tokens: list[dict[str, str]] = []
    tree = _parsed(text, tokens)
    if tree is None or "".join(token["text"] for token in tokens) != text:
        return None
    if any(token["type"] == "type" and token["text"].lower() == "choice" for token in tokens):
        return None
    return Message(text, tree, _Reader(tokens).content(counts=False))


def _parsed(text: str, tokens: list[dict[str, str]] | None = None) -> Any:
    """The tree of a message; None if it is none."""
    from pyicumessageformat import Parser

    try:
        return Parser().parse(text, [] if tokens is None else tokens)
    except SyntaxError:
        return None


class _Reader:
    """From the tokens of a message to its parts. They fit together: the parser has seen to that."""

    def __init__(self, tokens: list[dict[str, str]]) -> None:
        self._tokens, self._next = tokens, 0

    def content(self, *, counts: bool) -> list[_Part]:
        """What a branch, or the whole message, consists of."""
        parts: list[_Part] = []
        run: list[tuple[bool, str]] = []  # whether it is text, and how it is written
        while (token := self._peek()) is not None and token["text"] != "}":
            if token["type"] in ("text", "hash"):
                run.append((token["type"] == "text", self._take()))
                continue
            head, kind = self._head()
            if kind in _CHOICES:
                parts += [*_in_run(run, counts), self._choice(head, kind)]
                run = []
            else:
                run.append((False, head + self._until_closed()))
        return [*parts, *_in_run(run, counts)]

    def _peek(self) -> dict[str, str] | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1]["text"]

    def _take_all_but(self, *kinds: str) -> str:
        taken = ""
        while (token := self._peek()) is not None and token["type"] not in kinds:
            taken += self._take()
        return taken

    def _head(self) -> tuple[str, str]:
        """The beginning of an argument, through its type if it has one, and the type."""
        head = self._take() + self._take_all_but("syntax")
        if self._tokens[self._next]["text"] == "}":
            return head, ""
        head += self._take() + self._take_all_but("type")
        kind = self._take()
        return head + kind, kind

    def _until_closed(self) -> str:
        taken = ""
        while not taken.endswith("}"):
            taken += self._take()
        return taken

    def _choice(self, head: str, kind: str) -> _Choice:
        head += self._take_all_but("syntax") + self._take() + self._take_all_but("selector", "space")
        branches: list[_Branch] = []
        while True:
            before = self._take_all_but("selector", "syntax")
            token = self._peek()
            if token is None or token["type"] == "syntax":
                return _Choice(kind, head, branches, before + self._take())
            selector = self._take()
            opening = self._take_all_but("syntax") + self._take()
            inner = self.content(counts=kind != "select")
            self._take()
            branches.append(_Branch(before, selector, opening, inner))


def _in_run(run: list[tuple[bool, str]], counts: bool) -> list[_Part]:
    """Text and arguments in a row: one text to translate, if there are words in it."""
    written = "".join(piece for _, piece in run)
    names = {piece for is_text, piece in run if not is_text}
    arguments: dict[str, str | None] = {}
    text = ""
    for is_text, piece in run:
        if is_text:
            text += _QUOTED.sub(lambda match: "'" if match[1] is None else match[1].replace("''", "'"), piece)
            continue
        marker = piece
        if placeholders(piece) != [piece]:  # such as #, which is nothing that a translator carries through
            marker = next(f"{{{n}}}" for n in range(len(run) + 1) if f"{{{n}}}" not in names | arguments.keys())
        arguments[marker] = piece
        text += marker
    arguments = {**dict.fromkeys(placeholders(text)), **arguments}
    if not has_words(text):
        return [written] if written else []
    before, inner, after = edges(text)
    return [_Slot(inner, arguments, before, after, counts)]


def _slots(parts: Sequence[_Part]) -> Iterator[_Slot]:
    for part in parts:
        if isinstance(part, _Slot):
            yield part
        elif isinstance(part, _Choice):
            for branch in part.branches:
                yield from _slots(branch.content)


def _arrived(slot: _Slot, translation: str) -> bool:
    """Whether a translation has the arguments of a text, each as often."""
    counts = Counter(_split(slot, translation)[1::2])
    return counts == Counter(_split(slot, slot.text)[1::2])


def _split(slot: _Slot, text: str) -> list[str]:
    """Words and arguments in turn."""
    return re.split(f"({'|'.join(map(re.escape, slot.arguments)) or '(?!)'})", text)


def _put_back(slot: _Slot, translation: str, doubled: bool) -> str:
    """A translation as it is written in the message."""
    pieces = _split(slot, translation)
    for place, piece in enumerate(pieces):
        argument = slot.arguments[piece] if place % 2 else None
        pieces[place] = _quoted(piece, slot.counts, doubled) if argument is None else argument
    return slot.before + "".join(pieces) + slot.after


def _quoted(words: str, counts: bool, doubled: bool) -> str:
    """Text in which no brace and no apostrophe means anything.

    Not all that read such messages know that two apostrophes are one: where the source does not show it, one that
    would open a quotation is written as it is printed.
    """
    special = "{}#" if counts else "{}"
    words = words.replace("'", "''") if doubled else re.sub(f"'(?=[{special}]|$)", "’", words)
    return re.sub(rf"\{{[^'{{}}]*\}}|[{special}]+", lambda match: f"'{match[0]}'", words)


def _written(parts: Sequence[_Part], texts: Iterator[str], forms: dict[str, frozenset[str]]) -> str:
    """The parts of a message as it is written, with texts in the places of its slots."""
    written = ""
    for part in parts:
        if isinstance(part, str):
            written += part
        elif isinstance(part, _Slot):
            written += next(texts)
        else:
            contents = [_written(branch.content, texts, forms) for branch in part.branches]
            there = {branch.selector for branch in part.branches}
            written += part.head
            for branch, content in zip(part.branches, contents, strict=True):
                missing = sorted(forms.get(part.kind, frozenset()) - there) if branch.selector == "other" else []
                before = branch.before or (" " if missing else "")
                for selector in (*missing, branch.selector):
                    written += f"{before}{selector}{branch.opening}{content}}}"
            written += part.end
    return written


def _forms(language: str) -> dict[str, frozenset[str]]:
    """The plural forms that CLDR knows of a language, for both kinds of plurals; none if it does not know it."""
    locale = locale_of(language) if language else None
    if locale is None:
        return {}
    return {"plural": frozenset(locale.plural_form.tags), "selectordinal": frozenset(locale.ordinal_form.tags)}


_Shape = tuple[Counter[tuple[str, ...]], list[tuple[str, str, int, dict[str, Any]]]]


def _shape(tree: Any) -> _Shape:
    """The arguments of a message, and its plurals and selects with the shapes of their branches."""
    arguments = [one for one in tree if isinstance(one, dict)]
    simple = Counter(
        (one["name"], one.get("type", ""), one.get("format", "")) for one in arguments if "options" not in one
    )
    choices = [
        (one["name"], one["type"], one.get("offset", 0), {key: _shape(value) for key, value in one["options"].items()})
        for one in arguments
        if "options" in one
    ]
    return simple, choices


def _is_like(shape: _Shape, source: _Shape) -> bool:
    """Whether a shape is that of the source, but for plural forms that are as `other` is."""
    if shape[0] != source[0] or len(shape[1]) != len(source[1]):
        return False
    for (*head, branches), (*source_head, source_branches) in zip(shape[1], source[1], strict=True):
        if head != source_head or not source_branches.keys() <= branches.keys():
            return False
        for selector, branch in branches.items():
            if not _is_like(branch, source_branches.get(selector, source_branches["other"])):
                return False
    return True
