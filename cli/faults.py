"""What is wrong with translations: placeholders, numbers, terms, unknown text. Said when all is translated."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..data.placeholders import Differences, in_short
from ..system.console import Console

if TYPE_CHECKING:
    from ..engine.translator import Translation

LONGEST = 500
"""Characters that are shown of what is wrong with one line."""


class Faults:
    """Collects faults, and says them.

    Args:
        place: What a text is called, such as `line`.
    """

    def __init__(self, place: str = "line") -> None:
        self._place = place
        self._found: dict[str, list[str]] = {
            "with other placeholders than the source": [],
            "with other numbers than the source": [],
            "without a term of the glossary": [],
            "of text that the vocabulary does not know": [],
        }

    def note(self, translations: Sequence["Translation"], first: int, texts: Sequence[str] = ()) -> None:
        """Looks at translations.

        Args:
            translations: What was found.
            first: Number of the text of the first one, counted from 0.
            texts: All texts, where they have no numbers that a person could find them by.
        """
        for number, one in enumerate(translations, start=first + 1):
            place = f"{self._place} {texts[number - 1][:40]!r}" if texts else f"{self._place} {number}"
            whats = (
                str(Differences(one.lost, one.added, one.glued)),
                str(one.numbers),
                in_short(one.missed, ", "),
                one.unknown and f"{in_short(one.unknown, ' ')} ({100 * one.unknown_share:.0f} % of it)",
            )
            for faults, what in zip(self._found.values(), whats, strict=True):
                if what:
                    faults.append(f"{place} {what}")

    def report(self, console: Console) -> None:
        """Warns of what was found."""
        for what, faults in self._found.items():
            if faults:
                many = f"{len(faults):,} translation{'' if len(faults) == 1 else 's'}"
                console.warn(f"{many} {what}: {in_short(faults, '; ', longest=LONGEST)}")
