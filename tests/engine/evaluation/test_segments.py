"""Scores of single sentences, and of sentences of similar length."""

import unicodedata

import pytest
import sacrebleu

from tfm.engine.evaluation.scores import correlation, score, scores_by_length, sentence_chrf


def test_chrf_of_each_sentence_is_sacrebleus() -> None:
    outputs, references = ["a red cat", "nothing", ""], [["a red cat"], ["anything", "no thing"], ["x"]]
    expected = [sacrebleu.sentence_chrf(o, r).score for o, r in zip(outputs, references, strict=True)]
    assert sentence_chrf(outputs, references) == pytest.approx(expected)
    assert expected[0] == pytest.approx(100)


def test_groups_have_all_sentences_of_their_length_and_their_scores() -> None:
    sources = [" ".join(["w"] * n) for n in range(1, 61)] + ["", "w w"]
    outputs = [f"{source} end of it all" for source in sources]
    references = [[output if len(output) < 40 else "something else altogether here"] for output in outputs]
    groups = scores_by_length(sources, outputs, references)
    assert [(g.least, g.most, g.sentences) for g in groups] == [(1, 10, 11), (11, 20, 10), (21, 40, 20), (41, None, 20)]
    rows = [i for i, source in enumerate(sources) if 11 <= len(source.split()) <= 20]
    expected = score("bleu", [outputs[i] for i in rows], [references[i] for i in rows]).value
    assert groups[1].bleu == expected and str(groups[3]).startswith("41 and more words: 20 sentences, BLEU ")


def test_sentences_and_groups_have_one_score_composed_or_not() -> None:
    texts = [f"schöne Häuser über {n} Flüssen" for n in range(12)]
    decomposed = [unicodedata.normalize("NFD", text) for text in texts]
    assert sentence_chrf(decomposed, [[text] for text in texts]) == pytest.approx([100] * 12)
    groups = scores_by_length(texts, texts, [[text] for text in texts])
    assert scores_by_length(decomposed, decomposed, [[text] for text in texts]) == groups
    unspaced = ["ö" * 30] * 12
    assert scores_by_length(
        [unicodedata.normalize("NFD", text) for text in unspaced], texts, [[text] for text in texts]
    ) == (scores_by_length(unspaced, texts, [[text] for text in texts]))


def test_sentences_without_spaces_are_measured_in_characters() -> None:
    groups = scores_by_length(["猫" * 30] * 12, ["x y"] * 12, [["x y"]] * 12)
    assert [(g.least, g.most, g.unit) for g in groups] == [(1, 40, "characters")]


def test_correlation() -> None:
    numbers = [float(n) for n in range(20)]
    assert correlation(numbers, [2 * n + 1 for n in numbers]) == pytest.approx(1)
    assert correlation(numbers, [-n for n in numbers]) == pytest.approx(-1)
    assert correlation(numbers[:5], numbers[:5]) is None and correlation([1.0] * 20, numbers) is None
