"""The base of all documents: texts to translate, and the places where their translations go."""

import codecs
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from ...data.charset import encoding_of
from ...data.config import DataConfig
from ...data.reading import open_bytes, read_lines
from ...system.errors import DataError
from .messages import looks_like_message, parse_message

if TYPE_CHECKING:
    from ..projection import Projection
    from ..translation import Translation

Put = Callable[[str], bool]
"""Puts a translation in its place, or says that it does not fit there."""
BYTE_ORDER_MARK = "\ufeff"
_LINE_END = re.compile(r"([ \t]*\r?\n[ \t]*)")
Cut = tuple[str, str, str]
"""A text without what stands at its ends, between these."""
WORST_SHARE = 0.1
"""Of the places with the lowest projections, which a reviewer is told to read first."""


@dataclass(frozen=True, order=True)
class Review:
    """What a reviewer is told of a place: how good its translation probably is, and whether it is to be read first."""

    projection: "Projection"
    is_worst: bool

    def __str__(self) -> str:
        return f"{self.projection}{', one of the worst tenth' if self.is_worst else ''}"


@dataclass(frozen=True)
class _Field:
    """A place for a translation.

    Attributes:
        whole: Makes the translation of the place of those of its texts; None if they do not fit.
        note: Tells the reviewer of the place; None where the format has no notes.
    """

    texts: range
    whole: Callable[[Sequence[str]], str | None]
    put: Put
    note: Callable[[Review], None] | None


class Fields:
    """Texts of a document, line by line: white space and line ends stay as they are.

    Attributes:
        texts: The texts to translate, in order.
        language: The code of the target language, empty if it is not known. Messages in ICU's format get its plural
            forms.
        unread: Places whose text looks like a message in ICU's format and is none, or has a choice: they are left.
        worst: Texts of the places that a reviewer is to read first, the worst of them first.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.language = ""
        self.unread = 0
        self.worst: list[tuple[str, Review]] = []
        self._shorter: dict[int, Callable[[str], Cut | None]] = {}
        """For texts, by their places: from a translation that lacks something to a text that is easier to translate."""
        self._fields: list[_Field] = []

    def __len__(self) -> int:
        return len(self._fields)

    def add(
        self,
        text: str,
        put: Put,
        note: Callable[[Review], None] | None = None,
        shorter: Callable[[str, str], Cut | None] | None = None,
    ) -> None:
        """Adds a text, with its line ends; `put` is called with its translation, once there is one, and then `note`.

        Args:
            shorter: Shortens a line of the text whose translation lacks something; None if nothing is to be cut.
        """
        if looks_like_message(text):
            message = parse_message(text)
            if message is None:
                self.unread += 1
                return
            for place in range(len(message.texts)):
                self._shorter[len(self.texts) + place] = partial(message.shorter, place)
            self._add(message.texts, lambda translations: message.filled(translations, self.language), put, note)
            return
        pieces = _LINE_END.split(text)
        inner = [piece.strip() for piece in pieces]

        def whole(translations: Sequence[str]) -> str | None:
            left = iter(translations)
            return "".join(
                piece.replace(words, next(left), 1) if words else piece
                for piece, words in zip(pieces, inner, strict=True)
            )

        lines = [words for words in inner if words]
        if shorter is not None:
            self._shorter |= {len(self.texts) + place: partial(shorter, line) for place, line in enumerate(lines)}
        self._add(lines, whole, put, note)

    def _add(
        self,
        texts: Sequence[str],
        whole: Callable[[Sequence[str]], str | None],
        put: Put,
        note: Callable[[Review], None] | None,
    ) -> None:
        first = len(self.texts)
        self.texts += texts
        self._fields.append(_Field(range(first, len(self.texts)), whole, put, note))

    def without_ends(
        self, outputs: list[str], translate: "Callable[[list[str]], list[Translation]]"
    ) -> "dict[int, Translation]":
        """Translates once more what has lost the arguments or tags at its ends, without them, and puts them around it.

        Args:
            outputs: A translation of each of `texts`; those that are new take their places in it.

        Returns:
            The new translations, by their places.
        """
        shorter = {
            place: found for place, shorten in self._shorter.items() if (found := shorten(outputs[place])) is not None
        }
        again = translate([text for _, text, _ in shorter.values()]) if shorter else []
        for (place, (before, _, after)), one in zip(shorter.items(), again, strict=True):
            outputs[place] = before + one.text + after if one.text else ""
        return dict(zip(shorter, again, strict=True))

    def fill(self, translations: Sequence[str], projections: "Sequence[Projection | None]" = ()) -> int:
        """Puts a translation of each text in its place; an empty one leaves the place as it was.

        Args:
            projections: How good each translation probably is, where somebody is to be told. A place is as good as the
                worst of its texts.

        Returns:
            How many places were left.
        """
        filled: list[_Field] = []
        for field in self._fields:
            parts = [translations[place] for place in field.texts]
            whole = field.whole(parts) if all(parts) else None
            if whole is not None and field.put(whole):
                filled.append(field)
        if projections:
            self._tell(filled, projections)
        return len(self) - len(filled)

    def _tell(self, filled: "list[_Field]", projections: "Sequence[Projection | None]") -> None:
        """Notes what is projected of the places that were filled, where something is."""
        known = [[one for place in field.texts if (one := projections[place]) is not None] for field in filled]
        ranked = sorted((min(few), number) for number, few in enumerate(known) if few)
        last = math.ceil(WORST_SHARE * len(ranked))
        for rank, (projection, number) in enumerate(ranked):
            review, field = Review(projection, rank < last), filled[number]
            if field.note is not None:
                field.note(review)
            if review.is_worst:
                text = min((one, self.texts[at]) for at in field.texts if (one := projections[at]) is not None)[1]
                self.worst.append((text, review))


class Document(Protocol):
    """A file with places for translations; `remark` describes it in lines for people."""

    fields: Fields
    remark: str

    def save(self, stream: IO[bytes]) -> None:
        """Writes the whole file, with the translations that have been filled in."""
        ...


class RawDocument:
    """Pieces of a file of text, each with its line end; a byte-order mark stays in the first one.

    A piece that is not filled is written as it was read, to the byte, and one that is in the encoding of the file.

    Raises:
        DataError: The file cannot be read, or not be written as it was.
    """

    def __init__(self, path: Path, config: DataConfig) -> None:
        self.fields = Fields()
        for _ in read_lines(path, encoding=config.encoding):
            pass  # an error names what is wrong with the file, and where
        with open_bytes(path, text=False) as file:
            content = file.read()
        self._encoding = encoding_of(content[:4], config.encoding)
        text = content.decode(self._encoding)
        if text.encode(self._encoding) != content:
            raise DataError(f"{path} cannot be written in {self._encoding} as it was; convert it to UTF-8")
        lines = text.split("\n")
        self._pieces = [*(f"{line}\n" for line in lines[:-1]), *([lines[-1]] if lines[-1] else [])]

    def _replace(self, first: int, last: int, content: str) -> bool:
        """Puts content in the place of pieces, between a byte-order mark and the line end of the last, if it has one.

        Returns:
            False if the encoding of the file has not all its characters; nothing is then replaced.
        """
        try:
            codecs.encode(content, self._encoding)
        except UnicodeEncodeError:
            return False
        mark = BYTE_ORDER_MARK if self._pieces[first].startswith(BYTE_ORDER_MARK) else ""
        end = line_end(self._pieces[last - 1])
        self._pieces[first:last] = [mark + content + end, *[""] * (last - first - 1)]
        return True

    def save(self, stream: IO[bytes]) -> None:
        """Writes the file in the encoding that it had."""
        stream.write("".join(self._pieces).encode(self._encoding))


def line_end(line: str) -> str:
    """The line feed of a line, and a carriage return before it; the last line of a file may have none."""
    return "\r\n" if line.endswith("\r\n") else line[len(line.removesuffix("\n")) :]
