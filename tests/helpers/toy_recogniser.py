"""A parser of the toy language's English side: is a sentence one that the toy language can have?

It shares the lexicon with `tfm.data.toy`, and nothing of what draws sentences or spells them out. Every rule is written
here a second time, from the reader's side: words in, structures out.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from tfm.data.toy.lexicon import (
    ADJECTIVES,
    CLAUSAL_VERBS,
    CONJUNCTIONS,
    FREQUENCY_ADVERBS,
    MODALS,
    NOUNS,
    NUMBERS,
    PEOPLE,
    PLACE_PREPOSITIONS,
    POSSESSIVES,
    PRONOUNS,
    TIME_ADVERBS,
    VERBS,
    Adjective,
    Adverb,
    Frame,
    Kind,
    Modal,
    Noun,
    Person,
    Tense,
    Verb,
)

MAX_WORDS = 20

Words: TypeAlias = Sequence[str]
Determiner: TypeAlias = Literal["the", "a", "possessive", "number", "bare", "no"]
Form: TypeAlias = Literal["base", "third", "past", "participle"]

PLACES: set[Determiner] = {"the", "a"}
OBJECTS: set[Determiner] = {"the", "a", "possessive", "bare"}
ANY: set[Determiner] = {*OBJECTS, "number"}
NONE: set[Determiner] = {"no"}

NOBODYS: set[Kind] = {"person", "building", "landscape"}
"""Kinds of which nobody says "my"."""
PLACE_KINDS: tuple[Kind, ...] = ("building", "landscape")


def is_grammatical(sentence: str) -> bool:
    """Whether the toy language can have this sentence.

    Accepted is what the grammar can spell out and the drawing rules allow:

    * One clause; a subject with "know", "believe", "say", "think" or "ask" and a clause after "that" or "whether"; two
      clauses with "because" or "although" between them, or before both and a comma between them.
    * In a clause: subject, verb and its objects of kinds that the lexicon allows for the verb; then a place, then a
      time. A verb of motion has a place with "to" instead. A sentence that begins with its main clause may open with
      the time, or with the place if there is no time. "Is" takes an adjective that fits its subject, and nothing else.
    * Verb forms agree with the subject. A clause in the past has an adverb of the past; any adverb fits its tense. A
      verb whose past looks like the present is never in the past. An adverb of frequency goes without time, negation
      and modal.
    * At most one negation in a clause: "not", a subject with "no", or an object with "no". With "must" there is none.
      After "not", no object has a number. The receiver ("the boy" in "gives the boy a book") has neither "no" nor a
      number.
    * Determiners agree in number, "a" and "an" with the next word. An adjective fits the noun's kind. Persons and
      places have no possessive. Where something happens or leads to, the determiner is "the" or "a".
    * No noun stands twice in a clause, and no adjective twice in a clause with "is". At most 20 words, single spaces,
      lower case, no full stop.

    Not judged: which combinations of verb, adjective and noun are held out.
    """
    words = sentence.split(" ")
    if len(words) > MAX_WORDS:
        return False
    if "," in sentence:
        return _subordinate_comes_first(sentence)
    return _is_clause(words, main=True) or _has_clause_as_object(words) or _subordinate_comes_last(words)


def _subordinate_comes_first(sentence: str) -> bool:
    first, _, main = sentence.partition(", ")
    conjunction, *subordinate = first.split(" ")
    known = conjunction in {known.english for known in CONJUNCTIONS}
    return known and _is_clause(subordinate) and _is_clause(main.split(" "))


def _subordinate_comes_last(words: Words) -> bool:
    conjunctions = {known.english for known in CONJUNCTIONS}
    places = (place for place, word in enumerate(words) if word in conjunctions)
    return any(_is_clause(words[:place], main=True) and _is_clause(words[place + 1 :]) for place in places)


def _has_clause_as_object(words: Words) -> bool:
    for subject, end in _subjects(words, 0):
        for verb in CLAUSAL_VERBS:
            finite = verb.english.third if subject.person is Person.THIRD else verb.english.base
            that = verb.conjunction.english if verb.conjunction else ""
            if words[end : end + 2] == [finite, that] and subject.can_be(verb.subjects, ANY):
                return _is_clause(words[end + 2 :])
    return False


def _is_clause(words: Words, *, main: bool = False) -> bool:
    return _is_copular(words) or _is_verbal(words, main)


# Noun phrases


class Phrase(NamedTuple):
    """A noun with what stands before it."""

    determiner: Determiner
    kind: Kind
    noun: Noun
    plural: bool
    adjective: Adjective | None

    def can_be(self, kinds: Collection[Kind], determiners: Collection[Determiner]) -> bool:
        """Whether it is of one of these kinds and has one of these determiners."""
        return self.kind in kinds and self.determiner in determiners


class Subject(NamedTuple):
    """What a verb agrees with; without a phrase, a pronoun."""

    person: Person
    phrase: Phrase | None = None

    def can_be(self, kinds: Collection[Kind], determiners: Collection[Determiner]) -> bool:
        """Whether it is of one of these kinds and has one of these determiners; a pronoun is any person."""
        if self.phrase is None:
            return "person" in kinds and determiners != NONE
        return self.phrase.can_be(kinds, determiners)


def _nouns_by_form() -> dict[str, tuple[Kind, Noun, bool]]:
    forms: dict[str, tuple[Kind, Noun, bool]] = {}
    for kind, nouns in NOUNS.items():
        for noun in nouns:
            for form, plural in ((noun.english, False), (noun.english_plural, True)):
                assert form not in forms, form
                forms[form] = kind, noun, plural
    return forms


_NOUNS = _nouns_by_form()
_ADJECTIVES = {adjective.english: adjective for adjective in ADJECTIVES}
_DETERMINERS: dict[str, Determiner] = {
    "the": "the",
    "a": "a",
    "an": "a",
    "no": "no",
    **dict.fromkeys(POSSESSIVES, "possessive"),
    **dict.fromkeys(("one", *NUMBERS), "number"),
}


def _noun_phrase(words: Words, start: int) -> tuple[Phrase, int] | None:
    """The noun phrase that begins at a word, and where it ends. There is only one, because no word has two roles."""
    word = _at(words, start)
    determiner = _DETERMINERS.get(word, "bare")
    place = start + (word in _DETERMINERS)
    if determiner == "a" and (word == "an") != _at(words, place).startswith(("a", "e", "i", "o", "u")):
        return None
    adjective = _ADJECTIVES.get(_at(words, place))
    place += adjective is not None
    if _at(words, place) not in _NOUNS:
        return None
    kind, noun, plural = _NOUNS[words[place]]
    if adjective and kind not in adjective.kinds:
        return None
    if determiner == "possessive" and kind in NOBODYS:
        return None
    if determiner in ("a", "bare", "number") and plural != (determiner == "bare" or word in NUMBERS):
        return None
    return Phrase(determiner, kind, noun, plural, adjective), place + 1


def _subjects(words: Words, start: int) -> Iterator[tuple[Subject, int]]:
    for pronoun in PRONOUNS:
        if _at(words, start) == pronoun.english:
            yield Subject(pronoun.person), start + 1
    if found := _noun_phrase(words, start):
        phrase, end = found
        yield Subject(Person.PLURAL if phrase.plural else Person.THIRD, phrase), end


def _places(words: Words, start: int) -> Iterator[tuple[str, Phrase, int]]:
    """Places such as "in front of the house", each with its preposition, and where it ends."""
    for name, preposition in PLACE_PREPOSITIONS.items():
        for after in _after(words, start, preposition.english):
            found = _noun_phrase(words, after)
            if found and found[0].can_be(PLACE_KINDS, PLACES) and name in found[0].noun.prepositions:
                yield name, *found


# Clauses with "is"


def _is_copular(words: Words) -> bool:
    for subject, end in _subjects(words, 0):
        rest = list(words[end:])
        if not rest or rest[0] != {Person.FIRST: "am", Person.THIRD: "is", Person.PLURAL: "are"}[subject.person]:
            continue
        del rest[0]
        for optional in ("not", "very"):
            if rest and rest[0] == optional:
                del rest[0]
        if len(rest) != 1 or rest[0] not in _ADJECTIVES:
            continue
        adjective = _ADJECTIVES[rest[0]]
        repeated = subject.phrase is not None and subject.phrase.adjective == adjective
        if subject.can_be(adjective.kinds, ANY) and not repeated:
            return True
    return False


# Clauses with any other verb


class Opening(NamedTuple):
    """What stands before the subject."""

    end: int
    adverb: Adverb | None = None
    place: Phrase | None = None


class VerbGroup(NamedTuple):
    """Auxiliaries, "not", the adverb of frequency and the verb."""

    frame: Frame
    verb: Verb
    tense: Tense
    negated: bool = False
    frequency: Adverb | None = None
    modal: Modal | None = None

    @property
    def deniable(self) -> bool:
        """Whether the clause may hold a negation."""
        return self.modal is None or bool(self.modal.negated)


class Role(NamedTuple):
    """What a verb asks for: a noun phrase, perhaps after a preposition."""

    kinds: tuple[Kind, ...]
    determiners: set[Determiner]
    preposition: str = ""


def _is_verbal(words: Words, main: bool) -> bool:
    for opening in _openings(words, main):
        for subject, after_subject in _subjects(words, opening.end):
            for group, after_verb in _verb_groups(words, after_subject, subject.person):
                if any(end == len(words) for end in _clause_ends(words, opening, subject, group, after_verb)):
                    return True
    return False


def _openings(words: Words, main: bool) -> Iterator[Opening]:
    yield Opening(0)
    if main:
        for adverb, end in _adverbs(words, 0, TIME_ADVERBS):
            yield Opening(end, adverb=adverb)
        for name, place, end in _places(words, 0):
            if name != "to":
                yield Opening(end, place=place)


def _adverbs(words: Words, start: int, adverbs: Iterable[Adverb]) -> Iterator[tuple[Adverb, int]]:
    for adverb in adverbs:
        for end in _after(words, start, adverb.english):
            yield adverb, end


def _verbs(words: Words, start: int, form: Form) -> Iterator[tuple[Frame, Verb, int]]:
    for frame, verbs in VERBS.items():
        for verb in verbs:
            for end in _after(words, start, getattr(verb.english, form)):
                yield frame, verb, end


def _verb_groups(words: Words, start: int, person: Person) -> Iterator[tuple[VerbGroup, int]]:
    third = person is Person.THIRD
    yield from _modal_groups(words, start, third)
    yield from _perfect_groups(words, start, third)
    for frame, verb, end in _verbs(words, start, "past"):
        if _has_past(verb):
            yield VerbGroup(frame, verb, "past"), end
    for after in _after(words, start, "did not"):
        for frame, verb, end in _verbs(words, after, "base"):
            if _has_past(verb):
                yield VerbGroup(frame, verb, "past", negated=True), end
    for after in _after(words, start, "does not" if third else "do not"):
        for frame, verb, end in _verbs(words, after, "base"):
            yield VerbGroup(frame, verb, "present", negated=True), end
    for frequency, after in ((None, start), *_adverbs(words, start, _frequencies("present"))):
        for frame, verb, end in _verbs(words, after, "third" if third else "base"):
            yield VerbGroup(frame, verb, "present", frequency=frequency), end


def _modal_groups(words: Words, start: int, third: bool) -> Iterator[tuple[VerbGroup, int]]:
    for modal in MODALS:
        spellings = (modal.english_third, modal.negated_third) if third else (modal.english, modal.negated)
        for negated, spelling in enumerate(spellings):
            for after in _after(words, start, spelling):
                for frame, verb, end in _verbs(words, after, "base"):
                    yield VerbGroup(frame, verb, "modal", negated=bool(negated), modal=modal), end


def _perfect_groups(words: Words, start: int, third: bool) -> Iterator[tuple[VerbGroup, int]]:
    for after in _after(words, start, "has" if third else "have"):
        for frame, verb, end in _verbs(words, after, "participle"):
            yield VerbGroup(frame, verb, "perfect"), end
        for after_not in _after(words, after, "not"):
            for frame, verb, end in _verbs(words, after_not, "participle"):
                yield VerbGroup(frame, verb, "perfect", negated=True), end
        for frequency, after_often in _adverbs(words, after, _frequencies("perfect")):
            for frame, verb, end in _verbs(words, after_often, "participle"):
                yield VerbGroup(frame, verb, "perfect", frequency=frequency), end


def _has_past(verb: Verb) -> bool:
    return verb.english.past != verb.english.base


def _frequencies(tense: Tense) -> list[Adverb]:
    return [adverb for adverb in FREQUENCY_ADVERBS if tense in adverb.tenses]


def _clause_ends(words: Words, opening: Opening, subject: Subject, group: VerbGroup, start: int) -> Iterator[int]:
    """Where a clause can end that has gone so far: through objects, goal, place and time."""
    for objects in _object_determiners(subject, group):
        for phrases, after_objects in _objects(words, start, _roles(group, objects)):
            nouns = [phrase.noun for phrase in (subject.phrase, opening.place, *phrases) if phrase]
            for more, after_place in _goal_or_place(words, after_objects, group, opening):
                all_nouns = [*nouns, *(phrase.noun for phrase in more)]
                if len(set(all_nouns)) == len(all_nouns):
                    yield from _time_ends(words, after_place, group, opening)


def _object_determiners(subject: Subject, group: VerbGroup) -> Iterator[set[Determiner]]:
    """The determiners that the object may have, once for each way in which the clause can be negative or not."""
    if group.negated:
        if subject.can_be(group.verb.subjects, ANY):
            yield OBJECTS
        return
    if subject.can_be(group.verb.subjects, ANY):
        yield ANY
    if group.frequency or not group.deniable:
        return
    if subject.can_be(group.verb.subjects, NONE):
        yield ANY
    elif subject.can_be(group.verb.subjects, ANY):
        yield NONE


def _roles(group: VerbGroup, objects: set[Determiner]) -> list[Role]:
    verb = group.verb
    if group.frame in ("transitive", "dative"):
        return [Role(verb.objects, objects)]
    if group.frame == "ditransitive":
        return [Role(PEOPLE, OBJECTS), Role(verb.objects, objects)]
    if group.frame == "prepositional" and verb.preposition:
        return [Role(verb.objects, objects, verb.preposition.english)]
    return []


def _objects(words: Words, start: int, roles: list[Role]) -> Iterator[tuple[list[Phrase], int]]:
    if not roles:
        yield [], start
        return
    role, *others = roles
    for after in _after(words, start, role.preposition) if role.preposition else [start]:
        found = _noun_phrase(words, after)
        if found and found[0].can_be(role.kinds, role.determiners):
            for phrases, end in _objects(words, found[1], others):
                yield [found[0], *phrases], end


def _goal_or_place(words: Words, start: int, group: VerbGroup, opening: Opening) -> Iterator[tuple[list[Phrase], int]]:
    moves = group.frame == "motion"
    if moves and opening.place:
        return
    if not moves:
        yield [], start
    if not opening.place:
        for name, place, end in _places(words, start):
            if moves == (name == "to"):
                yield [place], end


def _time_ends(words: Words, start: int, group: VerbGroup, opening: Opening) -> Iterator[int]:
    if opening.adverb:
        if group.tense in opening.adverb.tenses and not group.frequency:
            yield start
        return
    if group.tense != "past":
        yield start
    if not opening.place and not group.frequency:
        for _, end in _adverbs(words, start, [adverb for adverb in TIME_ADVERBS if group.tense in adverb.tenses]):
            yield end


# Words


def _at(words: Words, place: int) -> str:
    return words[place] if place < len(words) else ""


def _after(words: Words, start: int, text: str) -> list[int]:
    """Where these words end if they stand here; empty if they do not. The empty text stands nowhere."""
    expected = text.split()
    end = start + len(expected)
    return [end] if expected and list(words[start:end]) == expected else []
