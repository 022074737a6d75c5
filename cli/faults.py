"""What translations lack of their sources: placeholders, and terms of a glossary. Said when all is translated."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .console import Console

if TYPE_CHECKING:
    from ..seq2seq.decoding import Translation

SHOWN = 5
"""Lines of each kind that are named."""


class Faults:
    """Collects faults, and says them.

    Args:
        place: What a text is called, such as `line`.
    """

    def __init__(self, place: str = "line") -> None:
        self._place = place
        self._placeholders: list[str] = []
        self._terms: list[str] = []

    def note(self, translations: Sequence["Translation"], first: int) -> None:
        """Looks at translations, the first of which is that of text `first`, counted from 0."""
        for number, one in enumerate(translations, start=first + 1):
            different = [("lost", one.lost), ("added", one.added)]
            said = ", ".join(f"{what} {' '.join(values)}" for what, values in different if values)
            if said:
                self._placeholders.append(f"{self._place} {number} {said}")
            if one.missed:
                self._terms.append(f"{self._place} {number} {', '.join(one.missed)}")

    def report(self, console: Console) -> None:
        """Warns of what was found."""
        kinds = (
            (self._placeholders, "with other placeholders than the source"),
            (self._terms, "without a term of the glossary"),
        )
        for faults, what in kinds:
            if faults:
                shown = "; ".join(faults[:SHOWN]) + (f"; and {len(faults) - SHOWN:,} more" * (len(faults) > SHOWN))
                console.warn(f"{len(faults):,} translation{'' if len(faults) == 1 else 's'} {what}: {shown}")
