"""What all documents share: texts to translate, and the places where their translations go."""

import re
from collections.abc import Callable, Sequence
from typing import IO, Protocol

Put = Callable[[str], bool]
"""Puts a translation in its place, or says that it does not fit there."""
_LINE_END = re.compile(r"([ \t]*\r?\n[ \t]*)")


class Fields:
    """Texts of a document, line by line: white space and line ends stay as they are.

    Attributes:
        texts: What is to be translated, in order.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._fields: list[tuple[list[str | int], Put]] = []

    def __len__(self) -> int:
        return len(self._fields)

    def add(self, text: str, put: Put) -> None:
        """Adds a text.

        Args:
            text: With its line ends.
            put: Called with its translation, once there is one.
        """
        parts: list[str | int] = []
        for piece in _LINE_END.split(text):
            inner = piece.strip()
            if not inner:
                parts.append(piece)
                continue
            before, _, after = piece.partition(inner)
            parts += [before, len(self.texts), after]
            self.texts.append(inner)
        self._fields.append((parts, put))

    def fill(self, translations: Sequence[str]) -> int:
        """Puts translations in their places.

        Args:
            translations: One for each text. A place whose text has an empty one stays as it was.

        Returns:
            How many places were left.
        """
        left = 0
        for parts, put in self._fields:
            pieces = [translations[part] if isinstance(part, int) else part for part in parts]
            whole = all(pieces[i] for i, part in enumerate(parts) if isinstance(part, int))
            left += not (whole and put("".join(pieces)))
        return left


class Document(Protocol):
    """A file with places for translations.

    Attributes:
        fields: The texts to translate.
        remark: What was found, in a line for people.
    """

    fields: Fields
    remark: str

    def save(self, stream: IO[bytes]) -> None:
        """Writes the whole file, with what has been filled in."""
        ...
