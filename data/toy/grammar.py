"""The grammar of the toy language: sentence structures and how English and German put them into words.

A structure is language-neutral (who does what to whom, when and where); `english_sentence` and
`german_sentence` each spell it out. German differs where a translator has to learn something: case,
gender and adjective endings, and the place of the verb (second in main clauses, last in subordinate ones,
with prefix, participle or infinitive at the very end).
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from .lexicon import (
    EIN_WORDS,
    NUMBERS,
    Adjective,
    Adverb,
    Case,
    Conjunction,
    Modal,
    Noun,
    Person,
    Preposition,
    Pronoun,
    Verb,
)

# Endings by case, then by gender (named after its article) or plural.
Endings: TypeAlias = dict[Case, dict[str, str]]

DEFINITE_ARTICLES: Endings = {
    "nominative": {"der": "der", "die": "die", "das": "das", "plural": "die"},
    "accusative": {"der": "den", "die": "die", "das": "das", "plural": "die"},
    "dative": {"der": "dem", "die": "der", "das": "dem", "plural": "den"},
}
EIN_ENDINGS: Endings = {
    "nominative": {"der": "", "die": "e", "das": "", "plural": "e"},
    "accusative": {"der": "en", "die": "e", "das": "", "plural": "e"},
    "dative": {"der": "em", "die": "er", "das": "em", "plural": "en"},
}
WEAK_ENDINGS: Endings = {  # after the definite article
    "nominative": {"der": "e", "die": "e", "das": "e", "plural": "en"},
    "accusative": {"der": "en", "die": "e", "das": "e", "plural": "en"},
    "dative": {"der": "en", "die": "en", "das": "en", "plural": "en"},
}
MIXED_ENDINGS: Endings = {  # after ein, kein and the possessives
    "nominative": {"der": "er", "die": "e", "das": "es", "plural": "en"},
    "accusative": {"der": "en", "die": "e", "das": "es", "plural": "en"},
    "dative": {"der": "en", "die": "en", "das": "en", "plural": "en"},
}
STRONG_ENDINGS: Endings = {  # after a number or no determiner, which here are always plural
    "nominative": {"plural": "e"},
    "accusative": {"plural": "e"},
    "dative": {"plural": "en"},
}

AUXILIARIES = {"haben": ("habe", "hat", "haben"), "sein": ("bin", "ist", "sind")}
CONTRACTIONS = {
    ("in", "dem"): "im",
    ("an", "dem"): "am",
    ("von", "dem"): "vom",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
}


class NounPhrase(NamedTuple):
    """A noun with its determiner: an English article, possessive or number word, or "" for none."""

    determiner: str
    noun: Noun
    plural: bool = False
    adjective: Adjective | None = None


class PrepositionalPhrase(NamedTuple):
    """A preposition and its noun phrase, as in "in the garden"."""

    preposition: Preposition
    phrase: NounPhrase


class Predicate(NamedTuple):
    """The adjective after "is"; it takes no ending in German."""

    adjective: Adjective
    very: bool = False


class Clause(NamedTuple):
    """One clause. `modal` overrides `tense`; `fronted` names what opens a main clause, if not the subject."""

    subject: NounPhrase | Pronoun
    verb: Verb
    tense: Literal["present", "perfect", "past"] = "present"
    modal: Modal | None = None
    negated: bool = False
    adverb: Adverb | None = None
    frequency: Adverb | None = None
    dative: NounPhrase | None = None
    accusative: NounPhrase | None = None
    complement: PrepositionalPhrase | None = None
    place: PrepositionalPhrase | None = None
    predicate: Predicate | None = None
    fronted: Literal["", "adverb", "place"] = ""


class Sentence(NamedTuple):
    """A main clause, possibly with a subordinate clause after it or before it."""

    main: Clause
    conjunction: Conjunction | None = None
    subordinate: Clause | None = None
    subordinate_first: bool = False


def person_of(subject: NounPhrase | Pronoun) -> Person:
    """The verb form that a subject asks for."""
    if isinstance(subject, Pronoun):
        return subject.person
    return Person.PLURAL if subject.plural else Person.THIRD


def _join(parts: list[str]) -> str:
    return " ".join(part for part in parts if part)


# --- English ---


def english_noun_phrase(phrase: NounPhrase) -> str:
    """For example "two red apples"; "a" becomes "an" before a vowel."""
    adjective = phrase.adjective.english if phrase.adjective else ""
    noun = phrase.noun.english_plural if phrase.plural else phrase.noun.english
    rest = _join([adjective, noun])
    determiner = "an" if phrase.determiner == "a" and rest[0] in "aeiou" else phrase.determiner
    return _join([determiner, rest])


def _english_place(place: PrepositionalPhrase | None) -> str:
    return f"{place.preposition.english} {english_noun_phrase(place.phrase)}" if place else ""


def _english_verb_group(clause: Clause) -> str:
    """Auxiliaries, "not", the adverb of frequency and the verb, in English order."""
    verb = clause.verb.english
    person = person_of(clause.subject)
    third = person is Person.THIRD
    frequency = clause.frequency.english if clause.frequency else ""
    negation = "not" if clause.negated else ""
    if clause.modal:
        modal = clause.modal
        if clause.negated:
            return _join([modal.negated_third if third else modal.negated, verb.base])
        return _join([modal.english_third if third else modal.english, verb.base])
    if verb.base == "be":
        return _join([("am", "is", "are")[person], negation, frequency])
    if clause.tense == "perfect":
        return _join(["has" if third else "have", negation, frequency, verb.participle])
    if clause.tense == "past":
        return _join(["did not", verb.base]) if clause.negated else verb.past
    if clause.negated:
        return _join(["does not" if third else "do not", verb.base])
    return _join([frequency, verb.third if third else verb.base])


def english_clause(clause: Clause) -> str:
    """Subject, verb, objects, place, time; a fronted part moves to the start and changes nothing else."""
    adverb = clause.adverb.english if clause.adverb else ""
    place = _english_place(clause.place)
    subject, predicate = clause.subject, clause.predicate
    parts = [
        {"": "", "adverb": adverb, "place": place}[clause.fronted],
        subject.english if isinstance(subject, Pronoun) else english_noun_phrase(subject),
        _english_verb_group(clause),
        "very" if predicate and predicate.very else "",
        predicate.adjective.english if predicate else "",
        english_noun_phrase(clause.dative) if clause.dative else "",
        english_noun_phrase(clause.accusative) if clause.accusative else "",
        _english_place(clause.complement),
        place if clause.fronted != "place" else "",
        adverb if clause.fronted != "adverb" else "",
    ]
    return _join(parts)


def english_sentence(sentence: Sentence) -> str:
    """The English side: lower case, no final period."""
    main = english_clause(sentence.main)
    if sentence.subordinate is None or sentence.conjunction is None:
        return main
    subordinate = f"{sentence.conjunction.english} {english_clause(sentence.subordinate)}"
    return f"{subordinate}, {main}" if sentence.subordinate_first else f"{main} {subordinate}"


# --- German ---


def _german_noun(phrase: NounPhrase, case: Case) -> str:
    noun = phrase.noun
    if phrase.plural:
        return noun.german_dative_plural if case == "dative" else noun.german_plural
    return noun.german if case == "nominative" else noun.german_oblique or noun.german


def german_noun_phrase(phrase: NounPhrase, case: Case) -> str:
    """For example "zwei rote Äpfel": which declension an adjective follows depends on the determiner."""
    column = "plural" if phrase.plural else phrase.noun.article
    if phrase.determiner == "the":
        determiner, endings = DEFINITE_ARTICLES[case][column], WEAK_ENDINGS
    elif phrase.determiner in EIN_WORDS:
        determiner, endings = EIN_WORDS[phrase.determiner] + EIN_ENDINGS[case][column], MIXED_ENDINGS
    else:
        determiner, endings = NUMBERS[phrase.determiner] if phrase.determiner else "", STRONG_ENDINGS
    adjective = phrase.adjective.stem + endings[case][column] if phrase.adjective else ""
    return _join([determiner, adjective, _german_noun(phrase, case)])


def german_prepositional_phrase(part: PrepositionalPhrase) -> str:
    """Preposition and noun phrase, contracted where German does it: im, am, vom, zum, zur."""
    preposition = part.preposition.german
    phrase = german_noun_phrase(part.phrase, part.preposition.case)
    article, _, rest = phrase.partition(" ")
    if part.phrase.determiner == "the" and (preposition, article) in CONTRACTIONS:
        return f"{CONTRACTIONS[preposition, article]} {rest}"
    return f"{preposition} {phrase}"


def _german_subject(subject: NounPhrase | Pronoun) -> str:
    return subject.german if isinstance(subject, Pronoun) else german_noun_phrase(subject, "nominative")


def _negate(phrase: NounPhrase) -> NounPhrase:
    """Negation turns an indefinite object into a "kein" object: keinen Apfel, keine Äpfel."""
    return phrase._replace(determiner="no") if phrase.determiner in ("a", "") else phrase


def _middle_field(clause: Clause) -> str:
    """What stands between the two verb positions: time, dative, accusative, "nicht", place, complement."""
    dative, accusative = clause.dative, clause.accusative
    negation = "nicht" if clause.negated else ""
    if clause.negated and accusative:
        accusative = _negate(accusative)
    elif clause.negated and dative:
        dative = _negate(dative)
    if (accusative, dative) != (clause.accusative, clause.dative):
        negation = ""
    predicate = clause.predicate
    parts = [
        clause.adverb.german if clause.adverb and clause.fronted != "adverb" else "",
        clause.frequency.german if clause.frequency else "",
        german_noun_phrase(dative, "dative") if dative else "",
        german_noun_phrase(accusative, "accusative") if accusative else "",
        negation,
        german_prepositional_phrase(clause.place) if clause.place and clause.fronted != "place" else "",
        german_prepositional_phrase(clause.complement) if clause.complement else "",
        "sehr" if predicate and predicate.very else "",
        predicate.adjective.german if predicate else "",
    ]
    return _join(parts)


def _verb_bracket(clause: Clause) -> tuple[str, str]:
    """The finite verb, and the part of the verb that waits at the end of the clause."""
    verb = clause.verb.german
    person = person_of(clause.subject)
    if clause.modal:
        return clause.modal.german[person], verb.prefix + verb.present[Person.PLURAL]
    if clause.tense == "present":
        return verb.present[person], verb.prefix
    return AUXILIARIES[verb.auxiliary][person], verb.participle


def german_main_clause(clause: Clause, verb_first: bool = False) -> str:
    """Verb-second order; `verb_first` leaves the first position to a subordinate clause before it."""
    finite, ending = _verb_bracket(clause)
    subject, middle = _german_subject(clause.subject), _middle_field(clause)
    if verb_first:
        return _join([finite, subject, middle, ending])
    if clause.fronted == "adverb" and clause.adverb:
        return _join([clause.adverb.german, finite, subject, middle, ending])
    if clause.fronted == "place" and clause.place:
        return _join([german_prepositional_phrase(clause.place), finite, subject, middle, ending])
    return _join([subject, finite, middle, ending])


def german_subordinate_clause(clause: Clause) -> str:
    """Verb-final order; a separable prefix joins its verb again: macht ... auf, but aufmacht."""
    finite, ending = _verb_bracket(clause)
    separable = clause.tense == "present" and not clause.modal
    verbs = ending + finite if separable else f"{ending} {finite}"
    return _join([_german_subject(clause.subject), _middle_field(clause), verbs])


def german_sentence(sentence: Sentence) -> str:
    """The German side: nouns capitalised, a comma before and after a subordinate clause, no final period."""
    if sentence.subordinate is None or sentence.conjunction is None:
        return german_main_clause(sentence.main)
    subordinate = f"{sentence.conjunction.german} {german_subordinate_clause(sentence.subordinate)}"
    if sentence.subordinate_first:
        return f"{subordinate}, {german_main_clause(sentence.main, verb_first=True)}"
    return f"{german_main_clause(sentence.main)}, {subordinate}"


def noun_phrases(clause: Clause) -> Iterator[NounPhrase]:
    """All noun phrases of a clause, those inside prepositional phrases included."""
    for part in (clause.subject, clause.dative, clause.accusative, clause.complement, clause.place):
        if isinstance(part, PrepositionalPhrase):
            yield part.phrase
        elif isinstance(part, NounPhrase):
            yield part


def combinations(sentence: Sentence) -> Iterator[str]:
    """Every "verb|adjective|noun" that meets in a clause: the content that is held out for dev and test."""
    for clause in (sentence.main, sentence.subordinate):
        if clause is None:
            continue
        verb = clause.verb.english.base
        for phrase in noun_phrases(clause):
            if phrase.adjective:
                yield f"{verb}|{phrase.adjective.english}|{phrase.noun.english}"
        if clause.predicate and isinstance(clause.subject, NounPhrase):
            yield f"{verb}|{clause.predicate.adjective.english}|{clause.subject.noun.english}"
