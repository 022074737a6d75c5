"""How faithful outputs are to their sources: what must come through, how long they are, and what they repeat.

What stands in a source and in its reference in the same way has to be in the output, too: a number (in the digits of
any script), a name (a word with a capital that does not begin a sentence), a placeholder. What the reference says in
other words is not counted. It needs texts alone, so that outputs of any program are measured alike.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import regex

from ...data.cleaning import clean
from ...data.facts import USUAL_LIMIT, count_letters, is_loop, numbers
from ...data.placeholders import KINDS, placeholders
from ...data.scripts import UNSPACED, sentences

MUCH_SHORTER, MUCH_LONGER = 0.5, 2.0
"""An output omits something if it has fewer than the first times the letters of its reference, and invents something if
it has more than the second times as many."""
FEW_LETTERS = 5
"""It does neither if it has at most this many letters fewer or more than its reference."""
_WORD = regex.compile(rf"(?:(?!{UNSPACED})\p{{L}}(?:(?!{UNSPACED})[\p{{L}}\p{{M}}\p{{N}}'’-])*)")
_LETTER = regex.compile(r"[\p{L}\p{N}]")
_NAME = regex.compile(r"(?=.*\p{Lu})..+")
_NAME_ANYWHERE = regex.compile(r".+\p{Lu}.*")
"""A word that is a name even where it begins a sentence: `NATO`, `iPhone`."""


@dataclass(frozen=True)
class Kept:
    """How much the outputs have of all that they should have: `count` of `total`; the share is in per cent."""

    count: int
    total: int

    @property
    def share(self) -> float:
        return 100 * self.count / self.total


@dataclass(frozen=True)
class Faithfulness:
    """What was measured of a set of outputs.

    Attributes:
        invented: Numbers of outputs that neither source nor reference has.
        length: Letters of the outputs over those of the references.
        short, long: Outputs much shorter, and much longer, than their references.
        loops: Outputs that repeat themselves.
        unknown: Sources with text that the vocabulary does not know; None where no vocabulary is known.
    """

    outputs: int
    numbers: Kept
    names: Kept
    placeholders: Kept
    invented: int
    length: float
    short: int
    long: int
    loops: int
    unknown: int | None

    def __str__(self) -> str:
        """Two lines."""
        shares = [
            f"{kept.share:.1f} % of {kept.total:,} {name}"
            for name, kept in (("numbers", self.numbers), ("names", self.names), ("placeholders", self.placeholders))
            if kept.total
        ]
        unknown = f", {self.unknown:,} are of text that the vocabulary does not know" if self.unknown else ""
        return (
            f"kept: {', '.join(shares) or 'no numbers, names or placeholders to keep'}; {self.invented:,} numbers"
            f" invented\nlength: {self.length:.2f} of the references; of {self.outputs:,} outputs {self.short:,} have"
            f" less than half of theirs, {self.long:,} more than twice, {self.loops:,} repeat themselves{unknown}"
        )


def faithfulness(
    sources: Sequence[str],
    outputs: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    kinds: Collection[str] = KINDS,
    limit: int = USUAL_LIMIT,
    unknown: int | None = None,
) -> Faithfulness:
    """Measures outputs beside the sources and the first reference of each.

    `kinds` are those of the placeholders that a corpus has; `limit` is that of `facts.is_loop`.
    """
    rows = [tuple(map(clean, row)) for row in zip(sources, outputs, (refs[0] for refs in references), strict=True)]
    lengths = [(count_letters(output), count_letters(reference)) for _, output, reference in rows]

    def numbers_in(text: str) -> list[str]:
        return numbers(text, kinds)

    found = [
        Counter(numbers_in(output)) - (Counter(numbers_in(src)) | Counter(numbers_in(tgt))) for src, output, tgt in rows
    ]
    return Faithfulness(
        outputs=len(rows),
        numbers=_kept(rows, numbers_in),
        names=_kept(rows, names),
        placeholders=_kept(rows, lambda text: placeholders(text, kinds)),
        invented=sum(map(Counter.total, found)),
        length=sum(length for length, _ in lengths) / max(sum(wanted for _, wanted in lengths), 1),
        short=sum(length < MUCH_SHORTER * wanted and wanted - length > FEW_LETTERS for length, wanted in lengths),
        long=sum(length > MUCH_LONGER * wanted and length - wanted > FEW_LETTERS for length, wanted in lengths),
        loops=sum(is_loop(output, src, limit) for src, output, _ in rows),
        unknown=unknown,
    )


def names(text: str) -> list[str]:
    """Words with a capital, in order, but for those that have it because a sentence begins."""
    found: list[str] = []
    for sentence in sentences(text):
        for word in _WORD.finditer(sentence):
            begins = not _LETTER.search(sentence, 0, word.start())
            if (_NAME_ANYWHERE if begins else _NAME).fullmatch(word[0]):
                found.append(word[0])
    return found


def _kept(rows: Sequence[tuple[str, ...]], parts: Callable[[str], list[str]]) -> Kept:
    """How many of the parts that source and reference share are in the output."""
    count = total = 0
    for source, output, reference in rows:
        wanted = Counter(parts(source))
        if wanted and (wanted := wanted & Counter(parts(reference))):
            count += (wanted & Counter(parts(output))).total()
            total += wanted.total()
    return Kept(count, total)
