"""Scores: sacreBLEU's where they are sacreBLEU's, and ours by hand."""

import unicodedata

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from tfm.data.cleaning import clean
from tfm.engine.evaluation.scores import (
    CLEANED,
    METRICS,
    bleu_tokenizer,
    edit_distance,
    score,
    word_error_rate,
)

HYPOTHESES = ["the cat sat on the mat .", "a dog barks at the tall man", "it rains", "he went home very late today"]
FIRST = ["the cat sat on a mat .", "the dog barks at a tall man", "it is raining", "he went home late today"]
SECOND = ["a cat was sitting on the mat .", "a dog is barking at the man", "it rains", "today he came home very late"]
SACREBLEU = {"bleu": BLEU, "chrf": CHRF, "ter": TER}
WORDS = st.lists(st.sampled_from("abc"), max_size=7)


@pytest.mark.parametrize("name", SACREBLEU)
@pytest.mark.parametrize("streams", [[FIRST], [FIRST, SECOND]])
def test_sacrebleu_scores_are_those_of_sacrebleu(name: str, streams: list[list[str]]) -> None:
    metric = SACREBLEU[name]()
    expected = metric.corpus_score(HYPOTHESES, streams)
    found = score(name, HYPOTHESES, [list(refs) for refs in zip(*streams, strict=True)])
    assert found.name == name
    assert found.value == expected.score
    assert found.signature == str(metric.get_signature()) + CLEANED
    assert f"nrefs:{len(streams)}" in found.signature
    assert "version:" in found.signature
    assert 0 < found.value < 100


@pytest.mark.parametrize("name", SACREBLEU)
def test_sentences_may_have_different_numbers_of_references(name: str) -> None:
    references = [[FIRST[0], SECOND[0]], [FIRST[1]], [FIRST[2], SECOND[2]], [FIRST[3]]]
    repeated = [refs if len(refs) == 2 else refs * 2 for refs in references]
    assert score(name, HYPOTHESES, references).value == score(name, HYPOTHESES, repeated).value


@pytest.mark.parametrize("name", METRICS)
def test_perfect_output_has_the_perfect_score(name: str) -> None:
    value = score(name, HYPOTHESES, [[hypothesis] for hypothesis in HYPOTHESES]).value
    assert value == pytest.approx(0 if name in ("ter", "wer") else 100)


@pytest.mark.parametrize("name", METRICS)
def test_every_score_says_how_it_came_about(name: str) -> None:
    assert score(name, HYPOTHESES, [[reference] for reference in FIRST]).signature


TEXTS = [
    "Die Frau hört schöne Lieder.",
    "Où est la forêt\u00a0? Là-bas, près du château.",
    "Zwei Häuser über\u200bqueren",
]


@pytest.mark.parametrize("name", METRICS)
def test_text_has_one_score_composed_or_not(name: str) -> None:
    """And with white space of any kind, and with invisible characters in it."""
    decomposed = [f" {unicodedata.normalize('NFD', text)}\u00ad  " for text in TEXTS]
    perfect = 0 if name in ("ter", "wer") else 100
    for one, other in ((TEXTS, decomposed), (decomposed, TEXTS)):
        found = score(name, one, [[text] for text in other])
        assert found.value == pytest.approx(perfect) and found.signature.endswith(CLEANED)
        rough = [text.replace("e", "x") for text in TEXTS]
        composed = score(name, rough, [[text] for text in TEXTS]).value
        assert score(name, rough, [[text] for text in decomposed]).value == composed


def test_exact_is_the_share_of_outputs_equal_to_any_reference() -> None:
    assert score("exact", ["a b", "c", "d", "E"], [["a b"], ["x", "c"], ["d."], ["e"]]).value == 50


@pytest.mark.parametrize(
    ("hypotheses", "references", "percent"),
    [
        (["a b c"], [["a b c"]], 0),
        (["a x c"], [["a b c d"]], 50),  # one substitution, one insertion
        (["a b c d"], [["a b"]], 100),  # two deletions
        ([""], [["a b"]], 100),
        (["a b"], [[""]], 200),
        (["a", "b c"], [["a"], ["b x"]], 100 / 3),  # over the words of the whole set
        (["a b c d"], [["x y", "a b c"]], 100 / 3),  # the closer reference
        (["a b"], [["a c", "a b c d e f"]], 50),  # one word of two is closer than four of six
        ([], [], 0),
    ],
)
def test_word_error_rate_by_hand(hypotheses: list[str], references: list[list[str]], percent: float) -> None:
    assert word_error_rate(hypotheses, references) == pytest.approx(percent)
    assert score("wer", hypotheses, references).value == pytest.approx(percent)


def test_edit_distance_by_hand() -> None:
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance("", "abc") == 3
    assert edit_distance("flaw", "lawn") == 2


@given(WORDS, WORDS, WORDS)
def test_edit_distance_is_a_distance(a: list[str], b: list[str], c: list[str]) -> None:
    assert edit_distance(a, a) == 0
    assert (edit_distance(a, b) == 0) == (a == b)
    assert edit_distance(a, b) == edit_distance(b, a)
    assert edit_distance(a, c) <= edit_distance(a, b) + edit_distance(b, c)


@given(WORDS, WORDS)
def test_edit_distance_lies_between_its_bounds(a: list[str], b: list[str]) -> None:
    assert abs(len(a) - len(b)) <= edit_distance(a, b) <= max(len(a), len(b))


def test_an_unknown_metric_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"metric must be one of bleu, chrf, ter, exact, wer, but is 'meteor'"):
        score("meteor", ["a"], [["a"]])


def test_sets_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="2 hypotheses, but 1 references"):
        score("bleu", ["a", "b"], [["a"]])


@pytest.mark.parametrize(
    ("references", "tokenizer"),
    [
        (["Die Katze schläft."], "13a"),
        (["Кошка спит.", "القطة نائمة", "η γάτα κοιμάται"], "13a"),
        (["고양이가 자고 있다"], "13a"),
        (["猫睡在地毯上。", "今天的天气很好"], "zh"),
        (["猫はマットの上で寝ています。"], "char"),
        (["誰 が 一番 に 着 く か 私 に は 分か り ま せ ん 。"], "char"),
        (["แมวนอนบนเสื่อ"], "char"),
        (["The word 猫 means cat, and this sentence is English."], "13a"),
        (["tfm train を実行すると、モデルが保存されます。"], "char"),
        (["ラーメンー"], "char"),
        (["ຂ້ອຍມັກກິນເຂົ້າ"], "char"),
        (["ខ្ញុំចូលចិត្តអាន"], "char"),
        (["သူမသည်စာအုပ်ဖတ်သည်။"], "char"),
        (["བཀྲ་ཤིས་བདེ་ལེགས།"], "char"),
        (["हिन्दी में लिखा है", "Tôi không biết"], "13a"),
        (["12 : 30", ""], "13a"),
        ([], "13a"),
    ],
)
def test_words_are_split_as_the_script_of_the_references_asks(references: list[str], tokenizer: str) -> None:
    assert bleu_tokenizer(references) == tokenizer


def test_a_sentence_without_spaces_is_not_one_word_to_bleu() -> None:
    found = score("bleu", ["猫はマットの上で寝ています。"], [["犬はマットの上で寝ています。"]])
    assert "tok:char" in found.signature
    assert found.value > 80


@pytest.mark.parametrize(
    ("hypothesis", "reference"),
    [
        ("แมวนอนบนเสื่อ", "แมวนอนบนเสือ"),
        ("猫はマットの上で寝る。", "犬はマットの上で寝ていた。"),
        ("猫睡在地毯上。", "狗睡在地毯上"),
        ("ຂ້ອຍ ມັກ ກິນ", "ຂ້ອຍມັກ ກິນເຂົ້າ"),
        ("ខ្ញុំចូល", "ខ្ញុំចូលចិត្ត"),
        ("သူမသည်", "သူသည်"),
        ("བཀྲ་ཤིས།", "བཀྲ་ཤིས་བདེ།"),
    ],
)
def test_without_spaces_between_words_wer_counts_characters(hypothesis: str, reference: str) -> None:
    characters = [regex.findall(r"\X", clean(text).replace(" ", "")) for text in (hypothesis, reference)]
    expected = 100 * edit_distance(*characters) / len(characters[1])
    found = score("wer", [hypothesis], [[reference]])
    assert found.value == pytest.approx(expected) and "|unit:grapheme" in found.signature


def test_ter_is_by_character_where_words_have_no_spaces() -> None:
    found = score("ter", ["猫睡在地毯上。"], [["狗睡在地毯上。"]])
    assert found.value == pytest.approx(100 / 7) and "asian:yes" in found.signature
    for text, other in (("แมวนอนบนเสื่อ", "แมวนอนบนเสือ"), ("猫はマットの上", "犬はマットの上")):
        found, length = score("ter", [text], [[other]]), len(regex.findall(r"\X", other))
        assert found.value == pytest.approx(100 / length) and "|unit:grapheme" in found.signature
    assert score("ter", ["a b"], [["a c"]]).value == 50
