"""The recogniser in `helpers/toy_recogniser.py`; there is no module of this name in `tfm.data`.

Other tests judge with it what a trained model writes. It stands beside the tests because tfm itself has no use for it,
and its tests are here because pytest collects none from `helpers`.
"""

from collections.abc import Callable, Iterator

import pytest
from helpers.toy_recogniser import is_grammatical

from tfm.data.toy import toy_pairs
from tfm.data.toy.lexicon import ADJECTIVES, NOUNS, VERBS, Kind

KIND_OF: dict[str, tuple[Kind, bool]] = {
    form: (kind, bool(plural))
    for kind, nouns in NOUNS.items()
    for noun in nouns
    for plural, form in enumerate((noun.english, noun.english_plural))
}
KINDS_OF_ADJECTIVE = {adjective.english: adjective.kinds for adjective in ADJECTIVES}


@pytest.fixture(scope="module")
def train() -> list[str]:
    return [english for english, _ in toy_pairs("train", size=3000, seed=11)]


@pytest.mark.parametrize(("split", "size"), [("train", 3000), ("dev", 1000), ("test", 1000)])
def test_every_sentence_of_the_toy_language_is_accepted(split: str, size: int) -> None:
    assert [english for english, _ in toy_pairs(split, size=size) if not is_grammatical(english)] == []


@pytest.mark.parametrize(
    "sentence",
    [
        "they sleep",
        "i am very old",
        "in front of the old house the men never sleep",
        "last week a man gave the boys an old umbrella in the garden",
        "no man should read two books",
        "she wants to go to the station tomorrow",
        "she does not want to wait for a bus",
        "because the boys do not sleep, i am tired",
        "i know that the boys sleep today",
        "we ask whether an egg is not very expensive",
    ],
)
def test_rare_sentences_are_accepted(sentence: str) -> None:
    assert is_grammatical(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "",
        "sleep",
        "the man",
        "the man the woman",
        "man sleeps",
        "the sleeps",
        "the man sleep",
        "the men sleeps",
        "i sleeps",
        "i is old",
        "we am old",
        "the men has slept",
        "the man have slept",
        "the man has sleep",
        "the man slept",  # the past says when
        "the man slept today",
        "the man slept tomorrow",
        "the man sleeps yesterday",
        "the man put on a coat yesterday",  # which tense is it?
        "the man did not sleep today",
        "the man do not sleep",
        "the man does not sleeps",
        "the man not sleeps",
        "the man cans sleep",
        "the man can sleeps",
        "the man can to sleep",
        "the man want to sleep",
        "the man cannot always sleep",
        "the man never does not sleep",
        "the man always sleeps today",
        "a apple is red",
        "an pear is red",
        "a old apple is red",
        "an apples are red",
        "two apple are red",
        "one apples are red",
        "apple is red",
        "the apple is sad",
        "the sad apple is red",
        "the red apple is red",
        "the apple is always red",
        "the apple is red today",
        "the red big apple is cheap",
        "the man is very",
        "the man eats a book",
        "the apple eats a man",
        "the man eats",
        "the man sleeps the bed",
        "the man sleeps the dog",
        "the man gives a book",
        "the man gives a book the boy",
        "the man gives a book to the boy",
        "the man gives no boy a book",
        "the man gives two boys the book",
        "no man sees no dog",
        "no man does not sleep",
        "the man does not see two dogs",
        "the man waits the bus",
        "the man waits of the bus",
        "the man goes",
        "the man goes in the garden",
        "the man goes to the garden",
        "the man goes to two stations",
        "the man goes to the station in the garden",
        "the man sleeps in the river",
        "the man sleeps in my house",
        "my king sleeps",
        "the man sees a man",
        "my houses are old",
        "him sleeps",
        "i see him",
        "in the garden today the man sleeps",
        "today the man sleeps today",
        "the man sleeps today in the garden",
        "in the garden the man sleeps in the house",
        "in the garden the man sleeps today",
        "the man knows",
        "the man knows the boy sleeps",
        "the man knows whether the boy sleeps",
        "the man asks that the boy sleeps",
        "the man knew that the boy sleeps",
        "the dog knows that the boy sleeps",
        "the man does not know that the boy sleeps",
        "the man sleeps, because the boy sleeps",
        "because the boy sleeps the man sleeps",
        "because the boy sleeps, today the man sleeps",
        "because the boy sleeps",
        "that the boy sleeps, the man knows",
        "the man sleeps because the boy sleeps although the dog sleeps",
        "in front of the old house no men never sleep",
        "the man must read no book",
        "the man must not read the book",
        "i am tired because today the boys do not sleep",
        "today i know that the boys sleep",
        "The man sleeps",
        "the man sleeps.",
        "the  man sleeps",
        " the man sleeps",
        "the man sleeps ",
        "the man schläft",
    ],
)
def test_bad_sentences_are_refused(sentence: str) -> None:
    assert not is_grammatical(sentence)


def test_longer_sentences_than_the_toy_language_has_are_refused() -> None:
    clause = "the old man gives the young boy the red apple"
    assert is_grammatical(f"{clause} because {clause}".replace("the red apple", "two apples", 1))
    assert is_grammatical(f"{clause} in the evening because the boy sleeps now")
    assert is_grammatical(f"because {clause}, the boy sleeps in front of the old school")
    assert not is_grammatical(f"{clause} because {clause}")


# One change that is wrong for certain, whatever the rest of the sentence

OTHER_FORM = {"has": "have", "does": "do", "is": "are", "wants": "want", "a": "an"}
OTHER_FORM |= {other: form for form, other in OTHER_FORM.items()} | {"am": "is"}
AUXILIARIES = {"has", "have", "does", "do", "is", "are", "am", "wants"}
FORMS_OF_VERBS = [verb.english for verbs in VERBS.values() for verb in verbs]
BASE_OF = {verb.third.split()[0]: verb.base.split()[0] for verb in FORMS_OF_VERBS}
THIRD_OF = {base: third for third, base in BASE_OF.items()}


def other_article(words: list[str], place: int) -> Iterator[list[str]]:
    if words[place] in ("a", "an"):
        yield [*words[:place], OTHER_FORM[words[place]], *words[place + 1 :]]


def other_auxiliary(words: list[str], place: int) -> Iterator[list[str]]:
    if words[place] in AUXILIARIES - {"want"}:
        yield [*words[:place], OTHER_FORM[words[place]], *words[place + 1 :]]


def third_person_for_another(words: list[str], place: int) -> Iterator[list[str]]:
    for forms in (BASE_OF, THIRD_OF):
        if words[place] in forms and forms[words[place]] != words[place]:
            yield [*words[:place], forms[words[place]], *words[place + 1 :]]


def without_the_determiner_of_one(words: list[str], place: int) -> Iterator[list[str]]:
    nouns = [KIND_OF[word] for word in words[place + 1 : place + 3] if word in KIND_OF]
    if words[place] in ("the", "a", "an", "one") and nouns and not nouns[0][1]:
        yield [*words[:place], *words[place + 1 :]]


def noun_before_its_determiner(words: list[str], place: int) -> Iterator[list[str]]:
    following = words[place + 1] if place + 1 < len(words) else ""
    if words[place] in ("the", "a", "an", "one") and following in KIND_OF and not KIND_OF[following][1]:
        yield [*words[:place], following, words[place], *words[place + 2 :]]


def noun_before_its_adjective(words: list[str], place: int) -> Iterator[list[str]]:
    noun, *after = [*words[place + 1 : place + 3], ""]
    if words[place] in KINDS_OF_ADJECTIVE and noun in KIND_OF and after[0] not in KIND_OF:  # "gives a clever boy pears"
        yield [*words[:place], words[place + 1], words[place], *words[place + 2 :]]


def noun_that_its_adjective_does_not_fit(words: list[str], place: int) -> Iterator[list[str]]:
    following = words[place + 1] if place + 1 < len(words) else ""
    if words[place] in KINDS_OF_ADJECTIVE and following in KIND_OF:
        for noun, (kind, plural) in KIND_OF.items():
            if plural == KIND_OF[following][1] and kind not in KINDS_OF_ADJECTIVE[words[place]]:
                yield [*words[: place + 1], noun, *words[place + 2 :]]
                return


def object_that_nobody_eats(words: list[str], place: int) -> Iterator[list[str]]:
    food = words[place].strip(",")
    eaten = {"eat", "eats", "ate", "eaten"} & set(words[max(0, place - 3) : place])
    if eaten and food in KIND_OF and KIND_OF[food][0] == "food":
        other = ("pear", "pears", "car", "cars")[2 + KIND_OF[food][1]]
        yield [*words[:place], words[place].replace(food, other), *words[place + 1 :]]


def word_twice(words: list[str], place: int) -> Iterator[list[str]]:
    if "," not in words[place]:
        yield [*words[: place + 1], words[place], *words[place + 1 :]]


Change = Callable[[list[str], int], Iterator[list[str]]]
CHANGES: list[Change] = [
    other_article,
    other_auxiliary,
    third_person_for_another,
    without_the_determiner_of_one,
    noun_before_its_determiner,
    noun_before_its_adjective,
    noun_that_its_adjective_does_not_fit,
    object_that_nobody_eats,
    word_twice,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_changed_sentences_are_refused(train: list[str], change: Change) -> None:
    changed = [
        " ".join(words)
        for sentence in train
        for place in range(len(sentence.split()))
        for words in change(sentence.split(), place)
        if len(words) <= 20
    ]
    assert len(changed) >= 30
    assert [sentence for sentence in changed if is_grammatical(sentence)] == []
