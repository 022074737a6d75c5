"""Slips of typing: which words are read as others, and which stay."""

import random
import time

import pytest

from tfm.data.config import TokenizerConfig, VocabularyType
from tfm.data.slips import slips, without_slips
from tfm.data.tokenizer import Vocabulary
from tfm.data.vocabulary_training import build_tokenizer

WORDS = [
    "the",
    "plants",
    "window",
    "bridge",
    "trial",
    "market",
    "stranger",
    "flower",
    "gardens",
    "father",
    "Paris",
    "children",
]


@pytest.fixture(scope="module", params=["unigram", "bpe", "word"])
def vocabulary(request: pytest.FixtureRequest) -> Vocabulary:
    type_: VocabularyType = request.param
    rng = random.Random(3)
    sentences = [" ".join(rng.sample(WORDS, 6)) for _ in range(500)]
    sentences += ["a b c d e f g h i j k l m n o p q r s t u v w x y z"] * (type_ != "word")
    vocabulary = build_tokenizer([(one, one) for one in sentences], TokenizerConfig(vocab_size=400, type=type_)).src
    assert vocabulary.words.issuperset(WORDS)
    return vocabulary


def read(text: str, vocabulary: Vocabulary) -> str:
    return without_slips(text, slips(text, vocabulary))


@pytest.mark.parametrize("slip", ["plnats", "palnts", "plantts", "plats", "plannts"])
def test_a_slip_is_read_as_the_word_that_is_meant(vocabulary: Vocabulary, slip: str) -> None:
    text = f"see the {slip}, the {slip}."
    begin = text.index(slip)
    expected = [(begin, slip, "plants"), (begin + len(slip) + 6, slip, "plants")]
    assert slips(text, vocabulary) == expected
    assert read(text, vocabulary) == "see the plants, the plants."


@pytest.mark.parametrize(
    "word",
    [
        "plants",  # it is known
        "lpants",  # the first letter
        "pxants",  # one in the place of another
        "plant",  # another ending
        "plantsx",
        "PLNATS",  # capitals have a form of their own
        "plNats",
        "pln4ts",
        "plnats's",
        "plnats_x",
        "Psari",  # it would be Paris with two slips
        "{plnats}",  # in a placeholder
        "https://plnats.org",
        "plnats.org",
        "plnats.txt",
        "#plnats",
        "@plnats",
        "plnats()",
        "src/plnats",
        "plnats=5",
    ],
)
def test_other_words_stay(vocabulary: Vocabulary, word: str) -> None:
    assert slips(f"see the {word} now", vocabulary) == []


def test_a_capital_begins_the_word_that_is_meant_too(vocabulary: Vocabulary) -> None:
    for slip in ("Prais", "Pariis", "Pairs"):
        assert read(f"we see {slip} now", vocabulary) == "we see Paris now"
    assert read("we see pariis now", vocabulary) == "we see pariis now"


@pytest.mark.parametrize("around", ["({})", "«{}»", "{}.", "{}: no", "{}!", '"{}"', "{}-like", "re-{}"])
def test_signs_around_a_word_are_no_part_of_it(vocabulary: Vocabulary, around: str) -> None:
    text = f"see the {around} now"
    assert read(text.format("plnats"), vocabulary) == text.format("plants")


def test_long_words_and_many_placeholders_take_no_time(vocabulary: Vocabulary) -> None:
    for text in (f"a man {'xqy' * 100_000} is here", "plnats {x} " * 20_000, "plnats " * 20_000):
        begun = time.process_time()
        slips(text, vocabulary)
        assert time.process_time() - begun < 2


def test_a_text_of_one_or_two_words_stays(vocabulary: Vocabulary) -> None:
    for text in ("plnats", "the plnats"):
        assert read(text, vocabulary) == text
    assert read("see the plnats", vocabulary) == "see the plants"


def test_what_may_be_several_words_stays() -> None:
    sentences = ["trial market", "trail market", "a b c d e f g h i j k l m n o p q r s t u v w x y z"] * 50
    vocabulary = build_tokenizer([(one, one) for one in sentences], TokenizerConfig(vocab_size=500, type="bpe")).src
    assert {"trial", "trail"} <= vocabulary.words
    assert read("the triil is long", vocabulary) == "the triil is long"
    assert read("the trrail is long", vocabulary) == "the trail is long"
    assert read("the tral is long", vocabulary) == "the tral is long"


def test_a_word_whose_letters_stand_together_as_in_known_words_stays() -> None:
    sentences = ["plants pane", "pane plants", "a b c d e f g h i j k l m n o p q r s t u v w x y z"] * 50
    vocabulary = build_tokenizer([(one, one) for one in sentences], TokenizerConfig(vocab_size=500, type="bpe")).src
    assert {"plants", "pane"} <= vocabulary.words
    assert read("see the pants now", vocabulary) == "see the pants now", "as likely a new word"
    assert read("see the plats now", vocabulary) == "see the plants now"
