"""The usual form of a text: how it is read, and that what comes of it has the form of the text again."""

import random
from collections.abc import Callable

import pytest
from helpers.paragraphs import PARAGRAPHS, paragraph
from hypothesis import given
from hypothesis import strategies as st

from tfm.data.cleaning import clean
from tfm.data.config import TokenizerConfig, VocabularyType
from tfm.data.facts import SAMPLE, CorpusFacts, look_at, style_of
from tfm.data.tokenizer import Vocabulary
from tfm.data.usual_form import UsualForm, capitals, in_usual_form, open_ended, title
from tfm.data.vocabulary_training import build_tokenizer

TEXTS = st.one_of(st.sampled_from([clean(paragraph(name)) for name in PARAGRAPHS]), st.text(max_size=60).map(clean))
NAMES, VERBS, PLACES = ("Tom", "Anna", "NATO", "I"), ("like", "visit", "don't see"), ("Paris", "the house", "a street")
WORDS = ("he", "she", "old", "new", "green", "every", "some", "father", "mother", "river", "bridge", "market", "window")
Change = Callable[[str], str]
FACTS = CorpusFacts(pairs=1_000, in_small_letters=0, with_capital=990, last_sign=".")


def sentence(rng: random.Random) -> str:
    some = " ".join(rng.choices(WORDS, k=6))
    text = f"{some}, {rng.choice(NAMES)} {rng.choice(VERBS)} {rng.choice(PLACES)} and we {rng.choice(VERBS)} it."
    return text[0].upper() + text[1:]


def vocabulary_of(sentences: list[str], type_: VocabularyType = "bpe") -> Vocabulary:
    return build_tokenizer([(one, one) for one in sentences], TokenizerConfig(vocab_size=800, type=type_)).src


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    rng = random.Random(4)
    return [sentence(rng) for _ in range(3_000)]


@pytest.fixture(scope="module")
def vocabulary(sentences: list[str]) -> Vocabulary:
    return vocabulary_of(sentences)


def test_capitals_titles_and_open_ends() -> None:
    assert capitals("Straße 5, l'été: ვინ \ufdd1") == "STRASSE 5, L'ÉTÉ: ვინ \ufdd1"
    assert capitals("kırık bir kitap", turkish=True) == "KIRIK BİR KİTAP" and capitals("in Kırık") == "IN KIRIK"
    assert title("istanbul ve ısı", turkish=True) == "İstanbul Ve Isı"
    assert title("the cat's l'eau — école 3rd ვინ") == "The Cat's L'eau — École 3rd ვინ"
    assert [open_ended(text) for text in ("Ja.", "Was?!", "यह है।", "はい。", "3.5", "...", "(so.)")] == [
        *("Ja", "Was", "यह है", "はい", "3.5", "...", "(so.)")
    ]


def test_styles() -> None:
    assert [style_of(text) for text in ("I LOVE YOU.", "A 3 \ufdd1 NO!", "СТОЙТЕ", "ΟΧΙ ΝΑΙ")] == ["capitals"] * 4
    assert [style_of(text) for text in ("The Old Man", "«The» L'Eau 3 Is", "Der Hund Ist")] == ["title"] * 3
    assert [style_of(text) for text in ("i see", "été", "straße 5")] == ["small letters"] * 3
    assert not any(
        map(
            style_of,
            (
                "The old Man",
                "Tom Smith",
                "I",
                "A 5",
                "",
                "はい",
                "123",
                "यह है",
                "iPhone",
                "NASA",
                "10 PM",
                "他在NASA工作",
                "我 有 TV 和 PC",
            ),
        )
    )


@pytest.mark.parametrize("change", [capitals, title, str.lower])
def test_each_word_is_spelt_as_the_vocabulary_has_it(
    sentences: list[str], vocabulary: Vocabulary, change: Callable[[str], str]
) -> None:
    for text in sentences[:100]:
        read, restore, *_ = in_usual_form(change(text), vocabulary, FACTS)
        assert read == text
        assert restore("ein Text") == (change("ein Text") if change is not str.lower else "ein Text")


def test_sentences_begin_with_capitals_and_names_keep_theirs(vocabulary: Vocabulary) -> None:
    read, *_ = in_usual_form("WE VISIT PARIS. «WE DON'T SEE NATO AND I LIKE TOM.»", vocabulary, FACTS)
    assert read == "We visit Paris. «We don't see NATO and I like Tom.»"


@pytest.mark.parametrize("type_", ["unigram", "char", "word"])
def test_any_kind_of_vocabulary_has_a_usual_form(sentences: list[str], type_: VocabularyType) -> None:
    vocabulary = vocabulary_of(sentences, type_)
    read, restore, *_ = in_usual_form("WE LIKE THE HOUSE.", vocabulary, FACTS)
    assert read.lower() == "we like the house." and read.endswith("like the house.") and restore("ja") == "JA"


def test_german_and_turkish_letters() -> None:
    words = ["Die Straße ist groß.", "Wir dass Kasse."] * 60
    assert in_usual_form("DIE STRASSE IST GROSS.", vocabulary_of(words), FACTS)[0] == "Die Straße ist groß."
    words = ["Kırık bir kitap ısıtılır.", "İyi bir ışık."] * 60
    assert in_usual_form("KIRIK BİR KİTAP.", vocabulary_of(words), FACTS)[0].lower() == "kırık bir kitap."


def test_what_is_usual_is_read_as_it_is(sentences: list[str], vocabulary: Vocabulary) -> None:
    for text in (*sentences[:50], "NATO.", "€5 +", "Tom Visit Paris and more.", "123 %", ""):
        assert in_usual_form(text, vocabulary, FACTS) == UsualForm(text)
    nouns = vocabulary_of(["Hunde Katzen Mäuse sind da.", "Die Hunde und Katzen."] * 60)
    assert in_usual_form("Hunde Katzen Mäuse.", nouns, FACTS) == UsualForm("Hunde Katzen Mäuse.")


def test_a_lower_case_corpus_knows_no_other_letters() -> None:
    vocabulary = vocabulary_of(["the cat sees the house.", "a dog likes it."] * 60)
    facts = look_at([("the cat sees the house.", "die Katze.")] * 300, ())
    assert in_usual_form("the cat sees.", vocabulary, facts) == UsualForm("the cat sees.")
    assert in_usual_form("THE CAT SEES.", vocabulary, facts)[0] == "the cat sees."


def test_what_the_training_pairs_show() -> None:
    shouted, quiet = ("WARNING SIGN", "VORSICHT SCHILD"), ("WARNING SIGN", "Vorsicht, Schild")
    assert look_at([shouted] * 30, ()).keeps("capitals") and look_at([quiet] * 19, ()).keeps("capitals")
    assert not look_at([quiet] * 20, ()).keeps("capitals")
    assert look_at([("WARNING SIGN", "警告。")] * 30, ()).keeps("capitals"), "no letters that could be small"
    named, plain = ("The Old Man", "Der Alte Mann"), ("The Old Man", "El hombre viejo")
    assert look_at([named] * 30, ()).keeps("title") and not look_at([plain] * 30, ()).keeps("title")
    ends, open_ = ("He is here.", "Er ist da."), ("He is", "Er ist")
    assert (
        look_at([ends] * 999 + [open_], ()).last_sign == "." and not look_at([ends] * 998 + [open_] * 2, ()).last_sign
    )
    assert look_at([("यह है।", "Yes.")] * 9, ()).last_sign == "।" and not look_at([("(so)", "(ja)")] * 9, ()).last_sign
    small = ("he is", "er ist")
    assert look_at([ends] * 999 + [small], ()).unusual_styles == ("capitals", "title", "small letters")
    assert look_at([ends] * 998 + [small] * 2, ()).unusual_styles == ("capitals", "title")
    assert look_at([ends] * 8 + [shouted, named], ()).unusual_styles == ("capitals", "title", "small letters")
    assert look_at([ends] * 7 + [shouted, named] * 2, ()).unusual_styles == ("small letters",)
    assert CorpusFacts(pairs=SAMPLE - 1).unusual_styles == ("capitals", "title"), "of an older model nothing is known"
    assert (
        look_at([("a", "ısı"), *[ends] * 4], ()).is_turkish and not look_at([("a", "ısı"), *[ends] * 5], ()).is_turkish
    )


def test_titles_that_no_target_has_are_read_but_not_restored(vocabulary: Vocabulary) -> None:
    facts = CorpusFacts(pairs=1_000, with_capital=990, titles=50, same_titles=4)
    assert in_usual_form("We Like The House And It", vocabulary, facts) == UsualForm("We like the house and it")


def test_a_text_without_a_sign_is_read_with_one(vocabulary: Vocabulary) -> None:
    read, restore, *_ = in_usual_form("We like it", vocabulary, FACTS)
    assert (read, restore("Wir mögen es."), restore("Wie?")) == ("We like it.", "Wir mögen es", "Wie")
    read, restore, *_ = in_usual_form("WE LIKE IT", vocabulary, FACTS)
    assert (read, restore("Wir mögen es.")) == ("We like it.", "WIR MÖGEN ES")
    assert in_usual_form("We like it,", vocabulary, FACTS) == UsualForm("We like it,")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("%s VISIT THE HOUSE {NAME} AND <B>WE</B> LIKE IT.", "%s VISIT THE HOUSE {NAME} AND <B>WE</B> LIKE IT."),
        ("<FR> WE LIKE IT AT TOM@EXAMPLE.COM.", "<FR> We like it at TOM@EXAMPLE.COM."),
        ("we like %s and tom.", "We like %s and Tom."),
        ("WE VISIT THE MP3 AND NATO.", "We visit the MP3 and NATO."),
        ("We Like The House And The MARKET.", "We like the house and the MARKET."),
        ("Tom Visit Paris.", "Tom Visit Paris."),
        ("€tom and +tom.", "€Tom and +Tom."),
    ],
)
def test_what_is_no_word_stays(vocabulary: Vocabulary, text: str, read: str) -> None:
    assert in_usual_form(text, vocabulary, FACTS).text == read


@pytest.mark.parametrize(
    ("text", "read", "unread"),
    [
        ("We like it. 😀", "We like it.", ("", " 😀")),
        ("❤️ WE LIKE IT ❤️", "We like it.", ("❤️ ", " ❤️")),
        ("We like it☃.☃", "We like it☃.", ("", "☃")),
        ("东京。 We like «Привет» it. Привет, Том!", "We like «Привет» it.", ("东京。 ", " Привет, Том!")),
        ("We like 😀 it.", "We like 😀 it.", ("", "")),
        ("We like it\u033e", "We like it\u033e.", ("", "")),
        ("We like \ufdd1 😀", "We like \ufdd1", ("", " 😀")),
        ("Привет 12!", "", ("Привет 12!", "")),
    ],
)
def test_ends_of_which_nothing_is_known_are_left_out(
    vocabulary: Vocabulary, text: str, read: str, unread: tuple[str, str]
) -> None:
    found = in_usual_form(text, vocabulary, FACTS)
    assert (found.text, found.unread) == (read, unread)
    restored = found.restore("ja.")
    assert restored.startswith(unread[0]) and restored.endswith(unread[1])


@given(TEXTS, st.sampled_from([capitals, title, str.lower]))
def test_nothing_but_letters_and_the_last_sign_changes(
    vocabulary: Vocabulary, text: str, change: Callable[[str], str]
) -> None:
    changed = change(text)
    read, _, (begin, end), _ = in_usual_form(changed, vocabulary, FACTS)
    assert changed.startswith(begin) and changed.endswith(end)
    middle = changed[len(begin) : len(changed) - len(end)]
    signs, before = ([one for one in of if not one.isalpha()] for of in (read, middle))
    assert signs == before or signs == [*before, "."]
