"""What outputs must contain, as a search sees it: tokens, what may stand around them, and how much of it is there."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple


@dataclass(frozen=True)
class Spelling:
    """One way to write a phrase: one token or more."""

    tokens: tuple[int, ...]
    after: frozenset[int] | None = None
    """Tokens that it may follow, bos among them if an output may begin with it; None: all."""
    before: frozenset[int] | None = None
    """Tokens that may follow it, besides eos; None: all."""

    def may_follow(self, token: int) -> bool:
        """Whether it may stand after a token."""
        return self.after is None or token in self.after


@dataclass(frozen=True)
class Phrase:
    """What an output must contain, in one of its spellings; at least one."""

    spellings: tuple[Spelling, ...]

    @cached_property
    def longest(self) -> int:
        """Tokens of its longest spelling."""
        return max(len(spelling.tokens) for spelling in self.spellings)


MAX_READINGS = 16
"""Most ways to see phrases in one hypothesis that are kept in mind; more than one or two are rare."""


class PhraseReading(NamedTuple):
    """One way to see phrases in a hypothesis, at different places each."""

    met: frozenset[int] = frozenset()
    """Which phrases it has, by their numbers."""
    begun: int | None = None
    """The number of a phrase that has just begun: some or all of its tokens have come, and the next token still decides
    whether it counts."""
    spelling: Spelling = Spelling(())
    """The spelling of the phrase `begun`. Its first `come` tokens have come."""
    come: int = 0

    @property
    def seen(self) -> frozenset[int]:
        """The phrases met, and the one begun."""
        return self.met if self.begun is None else self.met | {self.begun}

    @property
    def rest(self) -> tuple[int, ...]:
        """The tokens of the phrase begun that are still to come."""
        return self.spelling.tokens[self.come :]


@dataclass(frozen=True)
class PhraseProgress:
    """How much of its phrases a hypothesis has, in all ways to see it: tokens may end one phrase or begin another."""

    phrases: tuple[Phrase, ...]
    """The phrases that the output must contain. A phrase that stands here twice must come twice."""
    only_in_phrases: frozenset[int] = frozenset()
    """Tokens that come nowhere but in a phrase."""
    readings: tuple[PhraseReading, ...] = (PhraseReading(),)
    known: dict[tuple[PhraseReading, ...], "PhraseProgress"] = field(default_factory=dict, compare=False, repr=False)
    """Every progress that was reached from the same start, by its readings, so that equal ones are one object."""

    @cached_property
    def tokens(self) -> int:
        """Tokens of phrases that are there. A phrase counts as its longest spelling, less what is still to come."""
        return max(map(self._tokens, self.readings))

    def missing(self, previous: int) -> int:
        """Tokens that have to come, at least, after `previous` to have all phrases."""
        return min(
            len(reading.rest)
            + sum(
                min(len(one.tokens) + (not one.may_follow(previous)) for one in phrase.spellings)
                for _, phrase in self._unseen(reading)
            )
            for reading in self.readings
        )

    @cached_property
    def most_missing(self) -> int:
        """What `missing` is at most, whatever comes before."""
        return sum(phrase.longest + 1 for phrase in self.phrases)

    def wanted(self, previous: int) -> set[int]:
        """Tokens that bring the furthest readings further: the next one of a phrase begun, or the first of another."""
        return {token for token, after in self._steps if after is None or previous in after}

    @cached_property
    def _steps(self) -> list[tuple[int, frozenset[int] | None]]:
        """The tokens that are wanted, each with those that it may follow."""
        found: list[tuple[int, frozenset[int] | None]] = []
        for reading in self.readings:
            if self._tokens(reading) < self.tokens:
                continue
            if reading.rest:
                found.append((reading.rest[0], None))
            else:
                before = reading.spelling.before
                firsts = [(spelling.tokens[0], spelling.after) for _, spelling in self._unmet(reading)]
                found += [(token, after) for token, after in firsts if before is None or token in before]
        return found

    @cached_property
    def only(self) -> frozenset[int] | None:
        """The tokens that may come next; None: all. Not all may after one of `only_in_phrases`."""
        found: frozenset[int] = frozenset()
        for reading in self.readings:
            if reading.rest:
                found |= {reading.rest[0]}
            elif reading.spelling.before is None:
                return None
            else:
                found |= reading.spelling.before
        return found

    def after(self, previous: int, token: int) -> "PhraseProgress | None":
        """What it becomes with a token after `previous`. A phrase that is broken off has to begin anew.

        None where a token would stand outside a phrase that comes only in phrases.
        """
        if token in self._noticed:
            key = previous, token
        elif self._sides:  # all other tokens are alike that may stand, or not, after what has just come
            key = tuple(token in side for side in self._sides)
        elif self._is_begun:
            key = ()
        else:
            return self
        if key not in self._next:
            self._next[key] = self._changed(previous, token)
        return self._next[key]

    @cached_property
    def _next(self) -> "dict[tuple[int, ...], PhraseProgress | None]":
        """What it becomes, as far as it was asked."""
        return {}

    @cached_property
    def _noticed(self) -> frozenset[int]:
        """Tokens that begin a phrase, go on with one, or come in phrases only."""
        firsts = {spelling.tokens[0] for reading in self.readings for _, spelling in self._unmet(reading)}
        return self.only_in_phrases | firsts | {token for reading in self.readings for token in reading.rest[:1]}

    @cached_property
    def _sides(self) -> list[frozenset[int]]:
        """What may follow the phrases that have just come, if not everything may."""
        return [one.spelling.before for one in self.readings if one.spelling.before is not None and not one.rest]

    @cached_property
    def _is_begun(self) -> bool:
        return any(reading.begun is not None for reading in self.readings)

    def _changed(self, previous: int, token: int) -> "PhraseProgress | None":
        found = dict.fromkeys(new for reading in self.readings for new in self._after(reading, previous, token))
        kept = [one for one in found if not any(self._is_no_better(one, other) for other in found)]
        kept.sort(key=lambda one: (one.begun is not None, -self._tokens(one)))
        readings = tuple(kept[:MAX_READINGS])
        if readings and readings not in self.known:
            self.known[readings] = replace(self, readings=readings)
        return self.known[readings] if readings else None

    def _after(self, reading: PhraseReading, previous: int, token: int) -> Iterator[PhraseReading]:
        """What a reading becomes, the phrase begun apart: another reading is without it."""
        if reading.rest:
            if reading.rest[0] == token:
                yield self._with(reading, reading.begun, reading.spelling, reading.come + 1)
            return
        if reading.begun is not None:
            if reading.spelling.before is not None and token not in reading.spelling.before:
                return
            reading = PhraseReading(reading.met | {reading.begun})
        if token not in self.only_in_phrases:
            yield reading
        for number, spelling in self._unmet(reading):
            if spelling.tokens[0] == token and spelling.may_follow(previous):
                yield self._with(reading, number, spelling, 1)

    def _with(self, reading: PhraseReading, number: int | None, spelling: Spelling, come: int) -> PhraseReading:
        assert number is not None
        if come == len(spelling.tokens) and spelling.before is None:
            return PhraseReading(reading.met | {number})
        return PhraseReading(reading.met, number, spelling, come)

    def _unmet(self, reading: PhraseReading) -> Iterator[tuple[int, Spelling]]:
        """The spellings of the phrases that a reading lacks, of equal phrases one."""
        open_phrases = {phrase: number for number, phrase in self._unseen(reading)}
        return ((number, spelling) for phrase, number in open_phrases.items() for spelling in phrase.spellings)

    def _unseen(self, reading: PhraseReading) -> Iterator[tuple[int, Phrase]]:
        return ((number, phrase) for number, phrase in enumerate(self.phrases) if number not in reading.seen)

    def _tokens(self, reading: PhraseReading) -> int:
        return sum(self.phrases[number].longest for number in reading.seen) - len(reading.rest)

    def _is_no_better(self, one: PhraseReading, other: PhraseReading) -> bool:
        """Whether a reading can do nothing that another one, which lacks fewer phrases, cannot do as well.

        A phrase that it lacks may be the only place for one of `only_in_phrases` that is still to come.
        """
        return (
            one[1:] == other[1:]
            and one.met < other.met
            and not any(
                self.only_in_phrases.intersection(spelling.tokens)
                for number in other.met - one.met
                for spelling in self.phrases[number].spellings
            )
        )
