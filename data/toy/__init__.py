"""A small English-German language of our own making, to train a translator on without any download.

`toy_pairs` streams sentence pairs. English and German follow one grammar (`grammar.py`) over one dictionary
(`lexicon.py`), and every English sentence has exactly one German translation, so a good model can get all
of them right.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from random import Random
from typing import Literal
from zlib import crc32

from .grammar import (
    Clause,
    NounPhrase,
    Predicate,
    PrepositionalPhrase,
    Sentence,
    combinations,
    english_sentence,
    german_sentence,
    noun_phrases,
)
from .lexicon import (
    ADJECTIVES,
    CLAUSAL_VERBS,
    CONJUNCTIONS,
    COPULA,
    FREQUENCY_ADVERBS,
    MODALS,
    NOUNS,
    NUMBERS,
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
    Pronoun,
    Tense,
    Verb,
)

SPLITS = ("train", "dev", "test")
HELD_OUT_PERCENT = 5  # of all combinations, for dev and again for test
MAX_WORDS = 20

# Repeats are weights: one entry is drawn uniformly.
OBJECT_DETERMINERS = ("the", "the", "the", "a", "a", "possessive", "bare")
ALL_DETERMINERS = (*OBJECT_DETERMINERS, "the", "number")
PRONOUN_SHARE = 0.3
PLACE_DETERMINERS = ("the", "the", "the", "a")
FRAME_WEIGHTS: dict[Frame | Literal["copular"], int] = {
    "intransitive": 15,
    "motion": 9,
    "transitive": 32,
    "dative": 10,
    "ditransitive": 13,
    "prepositional": 10,
    "copular": 16,
}
TENSE_WEIGHTS: dict[Tense, int] = {"present": 50, "perfect": 18, "past": 14, "modal": 18}
POLARITY_WEIGHTS = {"plain": 76, "not": 14, "no subject": 5, "no object": 5}
UNOWNED_KINDS = ("person", "building", "landscape")


def toy_pairs(split: str, *, size: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Yield `size` pairs (english, german) of a split ("train", "dev" or "test"), the same ones for a seed.

    What is held out are combinations of a verb, an adjective and a noun that meet in one clause, such as
    "give red apple": a stable hash sends 5 % of them to dev, 5 % to test and the rest to train. A train
    sentence contains no held-out combination; a dev sentence contains at least one dev combination and no
    test combination; a test sentence the other way round. So no sentence is in two splits, whatever the
    seed, while every single word and construction occurs in train. Within one call, dev and test
    yield no sentence twice (train may).
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}: expected one of {', '.join(SPLITS)}")
    return _generate(split, size, Random(f"{seed}/{split}"))


def _generate(split: str, size: int, rng: Random) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    produced = 0
    while produced < size:
        sentence = _draw_sentence(rng)
        if split_of(combinations(sentence)) != split:
            continue
        english = english_sentence(sentence)
        if len(english.split()) > MAX_WORDS or english in seen:
            continue
        if split != "train":
            seen.add(english)
        produced += 1
        yield english, german_sentence(sentence)


def split_of(sentence_combinations: Iterable[str]) -> str | None:
    """The split that a sentence with these combinations belongs to; None if it mixes dev and test."""
    held_out: set[str] = set()
    for combination in sentence_combinations:
        bucket = crc32(combination.encode()) % 100
        if bucket < HELD_OUT_PERCENT:
            held_out.add("dev")
        elif bucket < 2 * HELD_OUT_PERCENT:
            held_out.add("test")
    if len(held_out) > 1:
        return None
    return held_out.pop() if held_out else "train"


def _draw_sentence(rng: Random) -> Sentence:
    """Mostly one clause; else a "that" clause, or a reason or concession after or before the main clause."""
    roll = rng.random()
    if roll < 0.62:
        return Sentence(_draw_clause(rng, rich=True, main=True))
    subordinate = _draw_clause(rng, rich=False, main=False)
    if roll < 0.80:
        verb = rng.choice(CLAUSAL_VERBS)
        matrix = Clause(_draw_subject(rng, verb.subjects, ALL_DETERMINERS, adjective=0.25), verb)
        return Sentence(matrix, verb.conjunction, subordinate)
    subordinate_first = rng.random() < 0.4
    main = _draw_clause(rng, rich=False, main=not subordinate_first)
    return Sentence(main, rng.choice(CONJUNCTIONS), subordinate, subordinate_first)


def _draw_clause(rng: Random, *, rich: bool, main: bool) -> Clause:
    """A clause that names no noun twice; `rich` ones carry more adjectives and adverbials."""
    while True:
        frame = rng.choices(list(FRAME_WEIGHTS), list(FRAME_WEIGHTS.values()))[0]
        if frame == "copular":
            return _draw_copular_clause(rng)
        clause = _draw_verbal_clause(rng, frame, rich)
        nouns = [phrase.noun for phrase in noun_phrases(clause)]
        if len(set(nouns)) == len(nouns):
            return _front(rng, clause) if main else clause


def _draw_copular_clause(rng: Random) -> Clause:
    """For example "the apple is very red"; every kind of noun can be its subject."""
    kind = rng.choice(list(NOUNS))
    subject = _draw_subject(rng, (kind,), ALL_DETERMINERS, adjective=0.6)
    attribute = subject.adjective if isinstance(subject, NounPhrase) else None
    adjective = rng.choice([other for other in adjectives_for(kind) if other is not attribute])
    predicate = Predicate(adjective, very=rng.random() < 0.3)
    return Clause(subject, COPULA, negated=rng.random() < 0.2, predicate=predicate)


def _draw_verbal_clause(rng: Random, frame: Frame, rich: bool) -> Clause:
    verb = rng.choice(VERBS[frame])
    tense = _draw_tense(rng, verb)
    modal = rng.choice(MODALS) if tense == "modal" else None
    polarity = _draw_polarity(rng, modal)
    adjective = 0.4 if rich else 0.25
    objects = {"not": OBJECT_DETERMINERS, "no object": ("no",)}.get(polarity, ALL_DETERMINERS)
    subjects = ("no",) if polarity == "no subject" else ALL_DETERMINERS
    dative = accusative = complement = None
    if frame in ("transitive", "ditransitive"):
        accusative = _draw_noun_phrase(rng, verb.objects, objects, adjective)
    if frame == "dative":
        dative = _draw_noun_phrase(rng, verb.objects, objects, adjective)
    if frame == "ditransitive":
        dative = _draw_noun_phrase(rng, ("person", "relative"), OBJECT_DETERMINERS, adjective / 2)
    if frame == "prepositional" and verb.preposition:
        complement = PrepositionalPhrase(verb.preposition, _draw_noun_phrase(rng, verb.objects, objects, adjective))
    if frame == "motion":
        complement = _draw_goal(rng, adjective)
    adverb, frequency = _draw_adverbs(rng, tense, polarity, rich)
    place = None
    if frame != "motion" and rng.random() < (0.3 if rich else 0.12):
        place = _draw_place(rng, adjective)
    return Clause(
        subject=_draw_subject(rng, verb.subjects, subjects, adjective),
        verb=verb,
        tense="present" if tense == "modal" else tense,
        modal=modal,
        negated=polarity == "not",
        adverb=adverb,
        frequency=frequency,
        dative=dative,
        accusative=accusative,
        complement=complement,
        place=place,
    )


def _draw_tense(rng: Random, verb: Verb) -> Tense:
    """Verbs like "read", whose past looks like the present, are left out of the past tense."""
    tense = rng.choices(list(TENSE_WEIGHTS), list(TENSE_WEIGHTS.values()))[0]
    return "perfect" if tense == "past" and verb.english.past == verb.english.base else tense


def _draw_polarity(rng: Random, modal: Modal | None) -> str:
    """ "Must not" is no negated "must", so "must" is never negated."""
    if modal and not modal.negated:
        return "plain"
    return rng.choices(list(POLARITY_WEIGHTS), list(POLARITY_WEIGHTS.values()))[0]


def _draw_adverbs(rng: Random, tense: Tense, polarity: str, rich: bool) -> tuple[Adverb | None, Adverb | None]:
    """An adverb of time or of frequency or neither; the past always says when, negation never how often."""
    share = 0.3 if rich else 0.15
    if tense == "past" or rng.random() < share:
        return rng.choice([adverb for adverb in TIME_ADVERBS if tense in adverb.tenses]), None
    fitting = [adverb for adverb in FREQUENCY_ADVERBS if tense in adverb.tenses]
    if fitting and polarity == "plain" and rng.random() < share:
        return None, rng.choice(fitting)
    return None, None


def _front(rng: Random, clause: Clause) -> Clause:
    """Sometimes open a main clause with the time or the place."""
    if clause.adverb and rng.random() < 0.5:
        return clause._replace(fronted="adverb")
    if clause.place and not clause.adverb and rng.random() < 0.3:
        return clause._replace(fronted="place")
    return clause


def _draw_subject(
    rng: Random, kinds: tuple[Kind, ...], determiners: tuple[str, ...], adjective: float
) -> NounPhrase | Pronoun:
    if "person" in kinds and determiners != ("no",) and rng.random() < PRONOUN_SHARE:
        person = rng.choice(list(Person))  # first the verb form, so that "i" is not rare
        return rng.choice([pronoun for pronoun in PRONOUNS if pronoun.person is person])
    return _draw_noun_phrase(rng, kinds, determiners, adjective)


def _draw_place(rng: Random, adjective: float) -> PrepositionalPhrase:
    """Where something happens, such as "in the old garden"."""
    noun, kind = _draw_place_noun(rng)
    name = rng.choice([name for name in noun.prepositions if name != "to"])
    return PrepositionalPhrase(PLACE_PREPOSITIONS[name], _dress(rng, noun, kind, PLACE_DETERMINERS, adjective))


def _draw_goal(rng: Random, adjective: float) -> PrepositionalPhrase:
    """Where a movement leads, such as "to the station"."""
    while True:
        noun, kind = _draw_place_noun(rng)
        if "to" in noun.prepositions:
            phrase = _dress(rng, noun, kind, PLACE_DETERMINERS, adjective)
            return PrepositionalPhrase(PLACE_PREPOSITIONS["to"], phrase)


def _draw_place_noun(rng: Random) -> tuple[Noun, Kind]:
    kind: Kind = rng.choice(("building", "landscape"))
    return rng.choice(NOUNS[kind]), kind


def _draw_noun_phrase(
    rng: Random, kinds: tuple[Kind, ...], determiners: tuple[str, ...], adjective: float
) -> NounPhrase:
    kind = rng.choice(kinds)
    return _dress(rng, rng.choice(NOUNS[kind]), kind, determiners, adjective)


def _dress(rng: Random, noun: Noun, kind: Kind, determiners: tuple[str, ...], adjective: float) -> NounPhrase:
    """Give a noun a determiner, a grammatical number and, with probability `adjective`, an adjective."""
    determiner = rng.choice(determiners)
    if determiner == "possessive":
        determiner = "the" if kind in UNOWNED_KINDS else rng.choice(POSSESSIVES)
    if determiner == "number":
        determiner = rng.choice(("one", *NUMBERS))
        plural = determiner != "one"
    elif determiner == "bare":
        determiner, plural = "", True
    else:
        plural = determiner != "a" and rng.random() < 0.35
    drawn = rng.choice(adjectives_for(kind)) if rng.random() < adjective else None
    return NounPhrase(determiner, noun, plural, drawn)


@cache
def adjectives_for(kind: Kind) -> tuple[Adjective, ...]:
    """The adjectives that make sense for a kind of noun."""
    return tuple(adjective for adjective in ADJECTIVES if kind in adjective.kinds)
