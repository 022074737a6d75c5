"""What translations lack of their sources: placeholders, and terms of a glossary. Said when all is translated."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..data.placeholders import Differences, in_short
from .console import Console

if TYPE_CHECKING:
    from ..seq2seq.decoding import Translation

LONGEST = 500
"""Characters that are shown of what is wrong with one line."""


class Faults:
    """Collects faults, and says them.

    Args:
        place: What a text is called, such as `line`.
    """

    def __init__(self, place: str = "line") -> None:
        self._place = place
        self._placeholders: list[str] = []
        self._terms: list[str] = []

    def note(self, translations: Sequence["Translation"], first: int, texts: Sequence[str] = ()) -> None:
        """Looks at translations.

        Args:
            translations: What was found.
            first: Number of the text of the first one, counted from 0.
            texts: All texts, where they have no numbers that a person could find them by.
        """
        for number, one in enumerate(translations, start=first + 1):
            place = f"{self._place} {texts[number - 1][:40]!r}" if texts else f"{self._place} {number}"
            if different := Differences(one.lost, one.added):
                self._placeholders.append(f"{place} {different}")
            if one.missed:
                self._terms.append(f"{place} {in_short(one.missed, ', ')}")

    def report(self, console: Console) -> None:
        """Warns of what was found."""
        kinds = (
            (self._placeholders, "with other placeholders than the source"),
            (self._terms, "without a term of the glossary"),
        )
        for faults, what in kinds:
            if faults:
                many = f"{len(faults):,} translation{'' if len(faults) == 1 else 's'}"
                console.warn(f"{many} {what}: {in_short(faults, '; ', longest=LONGEST)}")
