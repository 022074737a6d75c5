"""HTML as texts to translate: what stands between the tags of blocks is one text, with the tags inside it as `<t1>`.

What is not text (scripts, code, `translate="no"`) and all that is written around the texts stays as it is.
"""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser

from ...data.cleaning import edges
from ..documents.inline import are_nested


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


INLINE = _names(
    "a abbr acronym b bdi bdo big cite del dfn em font i ins label mark q s small span strike strong sub sup"
)
INLINE |= _names("time tt u var")
"""Elements that stand inside a sentence; the tags of all others stand between two."""
KEPT = _names("code kbd math noscript object pre samp script style svg template textarea")
"""Elements whose content is no text."""
VOID = _names("area base br col embed hr img input link meta source track wbr")
_TAG = re.compile(r"(</?t\d+>)")

Translate = Callable[[list[str]], list[str]]


@dataclass(frozen=True)
class _Piece:
    """A tag inside a sentence, with its name, or text. `raw` is what the source has."""

    raw: str
    tag: str = ""


@dataclass
class _Text:
    """A text between two tags of blocks."""

    pieces: list[_Piece] = field(default_factory=list)

    @property
    def has_letters(self) -> bool:
        """Whether there is something to translate."""
        return any(not piece.tag and any(map(str.isalpha, html.unescape(piece.raw))) for piece in self.pieces)

    @property
    def flat(self) -> str:
        """The text in one line, with `<t1>` and `</t1>` for its tags."""
        return " ".join("".join(piece.tag or html.unescape(piece.raw) for piece in self.pieces).split())

    def filled(self, translation: str) -> str | None:
        """A translation of `flat` as HTML; None if a tag is missing, comes twice or is not nested."""
        written = {piece.tag: piece.raw for piece in self.pieces if piece.tag}
        parts, tags = _TAG.split(translation), _TAG.findall(translation)
        if sorted(tags) != sorted(written) or not are_nested(tags):
            return None
        inner = "".join(written.get(part) or html.escape(part, quote=False) for part in parts)
        before, _, after = edges("".join(piece.raw for piece in self.pieces))
        return before + inner + after


class _Reader(HTMLParser):
    """Cuts HTML into what stays and `_Text`."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.parts: list[str | _Text] = []
        self._open: list[tuple[str, int]] = []  # tags inside the sentence: names and numbers
        self._count = 0
        self._kept: list[str] = []  # elements around that are kept

    # --- what `HTMLParser` calls ---

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        raw, given = self.get_starttag_text() or "", dict(attrs)
        if self._kept:
            self._keep(raw)
            if tag == self._kept[-1]:
                self._kept.append(tag)
            return
        classes = (given.get("class") or "").split()
        if tag not in VOID and (tag in KEPT or given.get("translate") == "no" or "notranslate" in classes):
            self._kept.append(tag)
            self._keep(raw)
        elif tag in INLINE:
            self._count += 1
            self._open.append((tag, self._count))
            self._add(_Piece(raw, f"<t{self._count}>"))
        else:
            self._keep(raw)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._keep(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        raw = f"</{tag}>"
        if self._kept:
            self._keep(raw)
            if tag == self._kept[-1]:
                self._kept.pop()
        elif self._open and self._open[-1][0] == tag:
            self._add(_Piece(raw, f"</t{self._open.pop()[1]}>"))
        else:
            self._keep(raw)

    def handle_data(self, data: str) -> None:
        self._keep(data) if self._kept else self._add(_Piece(data))

    def handle_entityref(self, name: str) -> None:
        self.handle_data(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.handle_data(f"&#{name};")

    def handle_comment(self, data: str) -> None:
        self._keep(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self._keep(f"<!{decl}>")

    def handle_pi(self, data: str) -> None:
        self._keep(f"<?{data}>")

    def unknown_decl(self, data: str) -> None:
        self._keep(f"<![{data}]>")

    def _keep(self, raw: str) -> None:
        self._open.clear()
        self.parts.append(raw)

    def _add(self, piece: _Piece) -> None:
        if not self.parts or not isinstance(self.parts[-1], _Text):
            self.parts.append(_Text())
        text = self.parts[-1]
        assert isinstance(text, _Text)
        text.pieces.append(piece)


def translate_html(source: str, translate: Translate) -> str:
    """A page, or a part of one, with its texts translated.

    A text whose tags do not all arrive in its translation is translated again, from tag to tag. One whose translation
    is empty stays.

    Args:
        translate: From texts to their translations; called once or twice.
    """
    parts = _cut(source)
    texts = [part for part in parts if isinstance(part, _Text)]
    found = translate([text.flat for text in texts])
    whole = [text.filled(one or text.flat) for text, one in zip(texts, found, strict=True)]
    pieces = [piece for text, one in zip(texts, whole, strict=True) if one is None for piece in text.pieces]
    words = [" ".join(html.unescape(piece.raw).split()) for piece in pieces if not piece.tag and piece.raw.strip()]
    alone = (new or old for new, old in zip(translate(words) if words else [], words, strict=True))

    def piece_by_piece(text: _Text) -> str:
        written = list[str]()
        for piece in text.pieces:
            before, inner, after = edges(piece.raw)
            is_text = not piece.tag and inner
            written.append(before + html.escape(next(alone), quote=False) + after if is_text else piece.raw)
        return "".join(written)

    filled = iter(one if one is not None else piece_by_piece(text) for text, one in zip(texts, whole, strict=True))
    return "".join(part if isinstance(part, str) else next(filled) for part in parts)


def _cut(source: str) -> list[str | _Text]:
    """What stays as it is, and the texts with letters in them. Tags around all of a text are no part of it."""
    reader = _Reader()
    reader.feed(source)
    reader.close()
    parts = list[str | _Text]()
    for part in reader.parts:
        for one in [part] if isinstance(part, str) else _without_lone_tags(part):
            parts += [one] if isinstance(one, str) else _peeled(one)
    return parts


def _without_lone_tags(text: _Text) -> list[str | _Text]:
    """The same text, cut at tags whose other half is not in it."""
    tags = {piece.tag for piece in text.pieces}
    parts: list[str | _Text] = [_Text()]
    for piece in text.pieces:
        other = f"<{piece.tag[2:]}" if piece.tag.startswith("</") else f"</{piece.tag[1:]}"
        if piece.tag and other not in tags:
            parts += [piece.raw, _Text()]
        elif isinstance(last := parts[-1], _Text):
            last.pieces.append(piece)
    return parts


def _peeled(text: _Text) -> list[str | _Text]:
    """A text without the tags and the white space around it; what has no letters is none."""
    pieces = list(text.pieces)
    before, after = list[str](), list[str]()
    while pieces:
        first, last = pieces[0], pieces[-1]
        if not first.tag and not first.raw.strip():
            before.append(pieces.pop(0).raw)
        elif not last.tag and not last.raw.strip():
            after.append(pieces.pop().raw)
        elif first.tag and not first.tag.startswith("</") and last.tag == f"</{first.tag[1:]}":
            before.append(pieces.pop(0).raw)
            after.append(pieces.pop().raw)
        else:
            break
    inner = _Text(pieces)
    middle: list[str | _Text] = [inner] if inner.has_letters else [piece.raw for piece in pieces]
    return [*before, *middle, *reversed(after)]
