"""The toy language: German is right, English decides it, and dev and test stay unseen."""

import os
import subprocess
import sys

import pytest

from tfm.data.toy import ALL_DETERMINERS, adjectives_for, split_of, toy_pairs
from tfm.data.toy.grammar import (
    Clause,
    NounPhrase,
    Predicate,
    PrepositionalPhrase,
    Sentence,
    combinations,
    english_sentence,
    german_sentence,
)
from tfm.data.toy.lexicon import (
    ADJECTIVES,
    CLAUSAL_VERBS,
    CONJUNCTIONS,
    COPULA,
    FREQUENCY_ADVERBS,
    MODALS,
    NOUNS,
    NUMBERS,
    PLACE_PREPOSITIONS,
    PRONOUNS,
    TIME_ADVERBS,
    VERBS,
    Adjective,
    Adverb,
    Frame,
    Modal,
    Noun,
    Pronoun,
    Verb,
)


def noun(english: str) -> Noun:
    return next(entry for nouns in NOUNS.values() for entry in nouns if entry.english == english)


def adjective(english: str) -> Adjective:
    return next(entry for entry in ADJECTIVES if entry.english == english)


def verb(frame: Frame, english: str) -> Verb:
    return next(entry for entry in VERBS[frame] if entry.english.base == english)


def clausal(english: str) -> Verb:
    return next(entry for entry in CLAUSAL_VERBS if entry.english.base == english)


def adverb(english: str) -> Adverb:
    return next(entry for entry in (*TIME_ADVERBS, *FREQUENCY_ADVERBS) if entry.english == english)


def modal(english: str) -> Modal:
    return next(entry for entry in MODALS if entry.english == english)


def pronoun(english: str) -> Pronoun:
    return next(entry for entry in PRONOUNS if entry.english == english)


def phrase(determiner: str, *words: str) -> NounPhrase:
    """`phrase("two", "red", "apples")`: the noun comes last and may be plural."""
    for nouns in NOUNS.values():
        for entry in nouns:
            if words[-1] in (entry.english, entry.english_plural):
                attribute = adjective(words[0]) if len(words) == 2 else None
                return NounPhrase(determiner, entry, words[-1] == entry.english_plural, attribute)
    raise LookupError(words[-1])


def at(preposition: str, place: NounPhrase) -> PrepositionalPhrase:
    return PrepositionalPhrase(PLACE_PREPOSITIONS[preposition], place)


def with_verb(used: Verb, companion: NounPhrase) -> PrepositionalPhrase:
    assert used.preposition is not None
    return PrepositionalPhrase(used.preposition, companion)


GIVE = verb("ditransitive", "give")
SEE = verb("transitive", "see")
OPEN = verb("transitive", "open")
READ = verb("transitive", "read")
SLEEP = verb("intransitive", "sleep")
HELP = verb("dative", "help")
GO = verb("motion", "go")
WAIT = verb("prepositional", "wait")
CARE = verb("prepositional", "take care")
THE_MAN = phrase("the", "man")
THE_BOY = phrase("the", "boy")
THE_CHILD = phrase("the", "child")
THE_DOOR = phrase("the", "door")
BECAUSE, ALTHOUGH = CONJUNCTIONS
DOG_SLEEPS = Clause(phrase("the", "dog"), SLEEP)

EXAMPLE = Sentence(
    Clause(phrase("the", "old", "woman"), GIVE, dative=THE_CHILD, accusative=phrase("two", "red", "apples"))
)

MAIN_CLAUSES = [
    # adjective endings after a definite article, ein, kein, a possessive, a number and no determiner
    (
        Clause(phrase("the", "old", "king"), SEE, accusative=phrase("the", "black", "dog")),
        "the old king sees the black dog",
        "der alte König sieht den schwarzen Hund",
    ),
    (
        Clause(phrase("a", "old", "man"), SEE, accusative=phrase("a", "small", "pig")),
        "an old man sees a small pig",
        "ein alter Mann sieht ein kleines Schwein",
    ),
    (
        Clause(phrase("no", "clever", "cat"), SEE, accusative=phrase("no", "white", "mice")),
        "no clever cat sees no white mice",
        "keine kluge Katze sieht keine weißen Mäuse",
    ),
    (
        Clause(phrase("our", "tired", "horse"), HELP, dative=phrase("my", "sick", "sister")),
        "our tired horse helps my sick sister",
        "unser müdes Pferd hilft meiner kranken Schwester",
    ),
    (
        Clause(phrase("his", "uncle"), READ, accusative=phrase("", "long", "novels")),
        "his uncle reads long novels",
        "sein Onkel liest lange Romane",
    ),
    (
        Clause(
            phrase("one", "poor", "boy"),
            verb("transitive", "need"),
            accusative=phrase("twelve", "expensive", "keys"),
        ),
        "one poor boy needs twelve expensive keys",
        "ein armer Junge braucht zwölf teure Schlüssel",
    ),
    # dative plural, weak nouns
    (
        Clause(THE_MAN, HELP, dative=phrase("three", "old", "farmers")),
        "the man helps three old farmers",
        "der Mann hilft drei alten Bauern",
    ),
    (
        Clause(THE_BOY, HELP, dative=phrase("the", "children")),
        "the boy helps the children",
        "der Junge hilft den Kindern",
    ),
    (
        Clause(phrase("the", "student"), SEE, accusative=THE_BOY),
        "the student sees the boy",
        "der Student sieht den Jungen",
    ),
    (
        Clause(phrase("a", "lion"), HELP, dative=phrase("a", "student")),
        "a lion helps a student",
        "ein Löwe hilft einem Studenten",
    ),
    # separable verbs: present, perfect, past, modal
    (Clause(THE_MAN, OPEN, accusative=THE_DOOR), "the man opens the door", "der Mann macht die Tür auf"),
    (
        Clause(THE_MAN, OPEN, "perfect", accusative=THE_DOOR),
        "the man has opened the door",
        "der Mann hat die Tür aufgemacht",
    ),
    (
        Clause(pronoun("i"), verb("intransitive", "wake up"), "past", adverb=adverb("yesterday")),
        "i woke up yesterday",
        "ich bin gestern aufgewacht",
    ),
    (
        Clause(pronoun("she"), OPEN, modal=modal("want to"), accusative=THE_DOOR),
        "she wants to open the door",
        "sie will die Tür aufmachen",
    ),
    (
        Clause(
            pronoun("we"),
            READ,
            modal=modal("will"),
            accusative=phrase("a", "book"),
            adverb=adverb("tomorrow"),
        ),
        "we will read a book tomorrow",
        "wir werden morgen ein Buch lesen",
    ),
    # verb second after a fronted time or place
    (
        Clause(THE_MAN, READ, accusative=phrase("a", "book"), adverb=adverb("today"), fronted="adverb"),
        "today the man reads a book",
        "heute liest der Mann ein Buch",
    ),
    (
        Clause(THE_CHILD, SLEEP, "perfect", place=at("in", phrase("the", "old", "garden")), fronted="place"),
        "in the old garden the child has slept",
        "im alten Garten hat das Kind geschlafen",
    ),
    # places, goals and prepositional objects
    (
        Clause(phrase("", "dogs"), SLEEP, place=at("in front of", phrase("the", "houses"))),
        "dogs sleep in front of the houses",
        "Hunde schlafen vor den Häusern",
    ),
    (
        Clause(pronoun("they"), GO, complement=at("to", phrase("the", "church")), frequency=adverb("often")),
        "they often go to the church",
        "sie gehen oft zur Kirche",
    ),
    (
        Clause(
            pronoun("he"),
            GO,
            "past",
            complement=at("to", phrase("the", "station")),
            adverb=adverb("last week"),
        ),
        "he went to the station last week",
        "er ist letzte Woche zum Bahnhof gegangen",
    ),
    (
        Clause(
            THE_MAN,
            WAIT,
            complement=with_verb(WAIT, phrase("a", "bus")),
            place=at("at", phrase("the", "lake")),
        ),
        "the man waits for a bus at the lake",
        "der Mann wartet am See auf einen Bus",
    ),
    (
        Clause(THE_BOY, CARE, negated=True, complement=with_verb(CARE, phrase("the", "bear"))),
        "the boy does not take care of the bear",
        "der Junge passt nicht auf den Bären auf",
    ),
    # negation: nicht, kein, cannot; copula
    (
        Clause(THE_BOY, READ, negated=True, accusative=phrase("the", "letter"), adverb=adverb("now")),
        "the boy does not read the letter now",
        "der Junge liest jetzt den Brief nicht",
    ),
    (
        Clause(THE_BOY, READ, "perfect", negated=True, accusative=phrase("a", "letter")),
        "the boy has not read a letter",
        "der Junge hat keinen Brief gelesen",
    ),
    (
        Clause(phrase("the", "girls"), HELP, negated=True, dative=phrase("", "old", "men")),
        "the girls do not help old men",
        "die Mädchen helfen keinen alten Männern",
    ),
    (
        Clause(pronoun("i"), SLEEP, modal=modal("can"), negated=True, place=at("under", phrase("a", "tree"))),
        "i cannot sleep under a tree",
        "ich kann nicht unter einem Baum schlafen",
    ),
    (
        Clause(phrase("his", "coat"), COPULA, negated=True, predicate=Predicate(adjective("expensive"), True)),
        "his coat is not very expensive",
        "sein Mantel ist nicht sehr teuer",
    ),
]

COMPLEX_SENTENCES = [
    (
        Sentence(Clause(THE_MAN, clausal("know")), clausal("know").conjunction, Clause(THE_CHILD, SLEEP)),
        "the man knows that the child sleeps",
        "der Mann weiß, dass das Kind schläft",
    ),
    (
        Sentence(
            Clause(pronoun("i"), clausal("ask")),
            clausal("ask").conjunction,
            Clause(THE_MAN, OPEN, accusative=THE_DOOR),
        ),
        "i ask whether the man opens the door",
        "ich frage, ob der Mann die Tür aufmacht",
    ),
    (
        Sentence(Clause(THE_BOY, HELP, dative=phrase("a", "aunt")), BECAUSE, DOG_SLEEPS),
        "the boy helps an aunt because the dog sleeps",
        "der Junge hilft einer Tante, weil der Hund schläft",
    ),
    (
        Sentence(Clause(THE_MAN, OPEN, accusative=THE_DOOR), ALTHOUGH, DOG_SLEEPS, subordinate_first=True),
        "although the dog sleeps, the man opens the door",
        "obwohl der Hund schläft, macht der Mann die Tür auf",
    ),
    (
        Sentence(DOG_SLEEPS, BECAUSE, Clause(THE_MAN, OPEN, "perfect", accusative=phrase("no", "windows"))),
        "the dog sleeps because the man has opened no windows",
        "der Hund schläft, weil der Mann keine Fenster aufgemacht hat",
    ),
    (
        Sentence(DOG_SLEEPS, BECAUSE, Clause(pronoun("they"), SLEEP, modal=modal("must"))),
        "the dog sleeps because they must sleep",
        "der Hund schläft, weil sie schlafen müssen",
    ),
    (
        Sentence(DOG_SLEEPS, BECAUSE, Clause(phrase("the", "pears"), COPULA, predicate=Predicate(adjective("red")))),
        "the dog sleeps because the pears are red",
        "der Hund schläft, weil die Birnen rot sind",
    ),
]


@pytest.mark.parametrize(("clause", "english", "german"), MAIN_CLAUSES)
def test_main_clauses(clause: Clause, english: str, german: str) -> None:
    assert english_sentence(Sentence(clause)) == english
    assert german_sentence(Sentence(clause)) == german


@pytest.mark.parametrize(("sentence", "english", "german"), COMPLEX_SENTENCES)
def test_complex_sentences(sentence: Sentence, english: str, german: str) -> None:
    assert english_sentence(sentence) == english
    assert german_sentence(sentence) == german


def test_the_example_sentence_is_in_the_language() -> None:
    assert english_sentence(EXAMPLE) == "the old woman gives the child two red apples"
    assert german_sentence(EXAMPLE) == "die alte Frau gibt dem Kind zwei rote Äpfel"
    # The drawing only mixes what fits, so the sentence can also be drawn:
    assert "person" in GIVE.subjects and noun("woman") in NOUNS["person"] and noun("child") in NOUNS["person"]
    assert "food" in GIVE.objects and noun("apple") in NOUNS["food"]
    assert adjective("old") in adjectives_for("person") and adjective("red") in adjectives_for("food")
    assert "number" in ALL_DETERMINERS and "two" in NUMBERS
    assert split_of(combinations(EXAMPLE)) is not None


def test_same_seed_same_pairs_also_in_another_process() -> None:
    code = "from tfm.data.toy import toy_pairs; print(list(toy_pairs('dev', size=50, seed=3)))"
    outputs = {
        subprocess.run(
            [sys.executable, "-X", "utf8", "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            encoding="utf-8",
            check=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    }
    assert outputs == {str(list(toy_pairs("dev", size=50, seed=3)))}


def test_seeds_differ_and_a_longer_call_starts_the_same() -> None:
    short = list(toy_pairs("train", size=100, seed=0))
    assert list(toy_pairs("train", size=300, seed=0))[:100] == short
    assert len(set(short) & set(toy_pairs("train", size=100, seed=1))) < 10


def test_unknown_split_is_refused_at_the_call() -> None:
    with pytest.raises(ValueError, match="valid"):
        toy_pairs("valid", size=1)


@pytest.fixture(scope="module")
def pairs() -> dict[str, list[tuple[str, str]]]:
    sizes = {"train": 20_000, "dev": 2_000, "test": 2_000}
    return {split: list(toy_pairs(split, size=size)) for split, size in sizes.items()}


def test_sizes_and_no_repeats_in_dev_and_test(pairs: dict[str, list[tuple[str, str]]]) -> None:
    assert {split: len(found) for split, found in pairs.items()} == {
        "train": 20_000,
        "dev": 2_000,
        "test": 2_000,
    }
    assert len({english for english, _ in pairs["dev"]}) == 2_000
    assert len({english for english, _ in pairs["test"]}) == 2_000


def test_english_decides_german(pairs: dict[str, list[tuple[str, str]]]) -> None:
    german_of: dict[str, str] = {}
    for english, german in (pair for split in pairs.values() for pair in split):
        assert german_of.setdefault(english, german) == german, english


def test_splits_share_no_sentence_whatever_the_seed(pairs: dict[str, list[tuple[str, str]]]) -> None:
    train, dev, test = ({english for english, _ in pairs[split]} for split in ("train", "dev", "test"))
    other_train = {english for english, _ in toy_pairs("train", size=20_000, seed=7)}
    assert not dev & test
    assert not (train | other_train) & (dev | test)


def test_every_word_of_dev_and_test_occurs_in_train(pairs: dict[str, list[tuple[str, str]]]) -> None:
    for side in (0, 1):
        known = {word.strip(",") for pair in pairs["train"] for word in pair[side].split()}
        held_out = {word.strip(",") for pair in pairs["dev"] + pairs["test"] for word in pair[side].split()}
        assert held_out - known == set()


def test_split_rule() -> None:
    held_out: dict[str, str] = {}
    for index in range(1_000):
        name = f"give|red|noun{index}"
        split = split_of([name])
        assert split is not None
        held_out.setdefault(split, name)
    dev, test, train = held_out["dev"], held_out["test"], held_out["train"]
    assert split_of([]) == "train"
    assert split_of([train, dev]) == "dev"
    assert split_of([train, test, test]) == "test"
    assert split_of([dev, test]) is None


def test_combinations_of_both_clauses_count() -> None:
    quiet = Clause(phrase("the", "cars"), COPULA, predicate=Predicate(adjective("slow")))
    assert set(combinations(Sentence(EXAMPLE.main, BECAUSE, quiet))) == {
        "give|old|woman",
        "give|red|apple",
        "be|slow|car",
    }


def test_form_of_the_sentences(pairs: dict[str, list[tuple[str, str]]]) -> None:
    lengths = [len(english.split()) for english, _ in pairs["train"]]
    assert 8 <= sum(lengths) / len(lengths) <= 10
    assert min(lengths) >= 2 and max(lengths) <= 20
    for english, german in pairs["train"]:
        assert english == english.lower()
        assert "  " not in english + german and not german.endswith((".", ",", " "))
