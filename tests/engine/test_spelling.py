"""How terms and placeholders are spelt: judged by the text that all tokens around them give."""

from collections.abc import Sequence

import pytest
import regex
from helpers.languages import EOS, FakeLanguage
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.config import TokenizerConfig, VocabularyType
from tfm.data.placeholders import SYMBOLS
from tfm.data.tokenizer import BOS_ID, EOS_ID, PLACEHOLDER_IDS, Vocabulary
from tfm.data.vocabulary_training import build_tokenizer
from tfm.data.words import missed
from tfm.engine.spelling import Speller
from tfm.seq2seq.decoding.beam import Beam
from tfm.seq2seq.decoding.constrained import ConstrainedBeam
from tfm.seq2seq.decoding.phrases import Phrase, PhraseProgress
from tfm.seq2seq.decoding.search import Task

FRENCH = ["J'adore l'eau.", "le grand bateau", "(l'eau) «eau» d'eau-de-vie", "les eaux, le pain et l'été"] * 20
PLACES = ["東京", "京都", "大阪", "名古屋", "学校", "日本", "アイスクリーム"]
JAPANESE = [f"{a}に住んでいる私は{b}と{c}に行った。" for a in PLACES for b in PLACES for c in PLACES]
SPLIT = [f"{a} に 住ん で いる 私 は {b} と {c} に 行っ た 。" for a in PLACES for b in PLACES for c in PLACES]
MARKED = ["click %s now", "(%s) is {name}", "the %d files"] * 20


def vocabulary_of(texts: Sequence[str], kind: VocabularyType = "unigram") -> Vocabulary:
    return build_tokenizer(zip(texts, texts, strict=True), TokenizerConfig(vocab_size=360, type=kind)).tgt


@pytest.fixture(scope="module")
def french() -> Vocabulary:
    return vocabulary_of(FRENCH)


@pytest.fixture(scope="module")
def japanese() -> Vocabulary:
    return vocabulary_of(JAPANESE)


def has(vocabulary: Vocabulary, phrase: Phrase | None, ids: Sequence[int]) -> bool:
    """Whether tokens have a phrase."""
    assert phrase is not None
    progress: PhraseProgress | None = PhraseProgress((phrase,))
    for previous, token in zip([BOS_ID, *ids], ids, strict=False):
        progress = progress and progress.after(previous, token)
    return progress is not None and not progress.missing(ids[-1])


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char", "word"])
@pytest.mark.parametrize(
    ("text", "is_there"),
    [
        ("J'adore l'eau.", True),
        ("eau", True),
        ("(eau)", True),
        ("le «eau»", True),
        ("l'eau-de-vie", True),
        ("le bateau", False),
        ("les eaux", False),
        ("le pain", False),
    ],
)
def test_a_term_is_a_word_of_its_own(kind: VocabularyType, text: str, *, is_there: bool) -> None:
    vocabulary = vocabulary_of([*FRENCH, *["eau", "(eau)", "le «eau»", "l'eau-de-vie"] * 20], kind)
    assert has(vocabulary, Speller(vocabulary).term("eau"), vocabulary.encode(text)) == is_there


def test_a_piece_that_has_more_than_the_term_is_a_spelling() -> None:
    vocabulary = vocabulary_of(["l'eau.", "eau", "au"] * 20, "word")
    assert len(ids := vocabulary.encode("l'eau.")) == 1
    assert has(vocabulary, Speller(vocabulary).term("eau"), ids)
    assert not has(vocabulary, Speller(vocabulary).term("au"), ids)


TEXTS = st.lists(st.sampled_from(["eau", "x", " ", "'", "l'", "(", ".", "s", "é", "🙂"]), min_size=1, max_size=8)


@given(TEXTS.map("".join).map(str.strip).filter(bool))
@settings(max_examples=200, deadline=None)
def test_what_a_search_takes_for_a_term_is_one_in_the_text(french: Vocabulary, text: str) -> None:
    """A search may miss a term, where the text before a token matters, but takes nothing else for one."""
    ids = french.encode(text)
    assert not has(french, Speller(french).term("eau"), ids) or not missed(["eau"], french.decode(ids)) or "'" in text


def test_scripts_without_spaces(japanese: Vocabulary) -> None:
    speller = Speller(japanese)
    for text, is_there in [
        ("東京に住んでいる", True),
        ("私は東京に", True),
        ("京都に行った", False),
    ]:
        assert has(japanese, speller.term("東京"), japanese.encode(text)) == is_there, text
    for text in ["私は東京に", "東京。", "。東京"]:
        assert has(japanese, speller.term("東京"), [*japanese.encode("は"), *japanese.encode_inside(text)])
    assert not has(japanese, speller.term("アイス"), japanese.encode("私はアイスクリームが好きだ"))
    phrase = speller.term("東京")
    assert phrase is not None
    for spelling in phrase.spellings:
        assert spelling.may_follow(BOS_ID)
        has_space = (japanese.text(spelling.tokens[0]) or "").startswith(" ")
        assert spelling.may_follow(japanese.encode_inside("は")[0]) == (not has_space)
    split = vocabulary_of(SPLIT)
    assert has(split, Speller(split).term("東京"), split.encode("私 は 東京 に"))


@pytest.mark.parametrize("seed", range(6))
def test_a_search_glues_no_term_to_letters(french: Vocabulary, seed: int) -> None:
    phrase, size = Speller(french).term("eau"), len(french)
    assert phrase is not None
    language = FakeLanguage(seed, size)
    forbidden = set(french.forbidden_ids()) | {token for token in range(size) if french.is_byte(token)}

    class Step(FakeLanguage):
        def logits(self, sentence: int, prefix: list[int]) -> list[float]:
            drawn = language.logits(sentence, prefix)
            return [float("-inf") if token in forbidden else logit for token, logit in enumerate(drawn)]

    assert EOS != EOS_ID
    task = Task([12, 12], -1, EOS_ID, phrases=[[phrase], [phrase, phrase]])
    step = Step(seed, size)
    found = ConstrainedBeam(Beam(3))(step, step.state(0, 1), task)
    for count, (best, *_) in enumerate(found, start=1):
        words = regex.findall(r"[\w]+", french.decode(best.ids))
        assert words.count("eau") >= count, french.decode(best.ids)


def test_a_term_is_glued_to_no_full_stop(french: Vocabulary) -> None:
    phrase = Speller(french).term("eau")
    for text, is_there in [(".eau", False), (")eau", False), (". eau", True), ("-eau", True), ("(eau", True)]:
        assert has(french, phrase, french.encode(text)) == is_there, text


def test_what_cannot_be_spelt(french: Vocabulary) -> None:
    words = vocabulary_of(FRENCH, "word")
    assert Speller(words).term("Wasser") is None and Speller(words).placeholder("%s", glued=True) is None
    assert Speller(french).term("Wasser") is not None


@pytest.mark.parametrize("texts", [MARKED, FRENCH])
def test_placeholders_touch_no_letters(texts: list[str]) -> None:
    vocabulary = vocabulary_of(texts)
    assert vocabulary.has_placeholders == (texts is MARKED)
    speller, value = Speller(vocabulary), SYMBOLS[0] if vocabulary.has_placeholders else "%s"
    for text, spaced, glued in [
        (f"the {value} is", True, True),
        (f"the ({value}) is", False, True),
        (f"the{value} is", False, False),
        (f"the {value}is", False, False),
        (f"{value}, the", True, True),
    ]:
        ids = vocabulary.encode(text)
        assert has(vocabulary, speller.placeholder(value, glued=False), ids) == spaced, text
        assert has(vocabulary, speller.placeholder(value, glued=True), ids) == glued, text


def test_placeholders_keep_the_spaces_of_their_source(french: Vocabulary) -> None:
    speller = Speller(french)
    assert speller.placeholders(["%s", "%d", "%s"], "(%s) x %d%s") == (
        speller.placeholder("%s", glued=True),
        speller.placeholder("%d", glued=False),
        speller.placeholder("%s", glued=True),
    )


def test_placeholders_may_stand_side_by_side_and_in_scripts_without_spaces(japanese: Vocabulary) -> None:
    marked = vocabulary_of(MARKED)
    two = marked.encode(SYMBOLS[1] + SYMBOLS[0])
    assert two[-2:] == [PLACEHOLDER_IDS[1], PLACEHOLDER_IDS[0]]
    assert has(marked, Speller(marked).placeholder(SYMBOLS[0], glued=True), two)
    assert has(japanese, Speller(japanese).placeholder("%s", glued=False), japanese.encode("私は%sに"))
