"""Paired bootstrap resampling."""

import random
import unicodedata

import pytest

from tfm.engine.evaluation.scores import CLEANED, compare, score

WORDS = ["a", "cat", "dog", "sees", "has", "red", "blue", "big", "house", "man", "woman", "tree"]


def noisy(texts: list[str], share: float, seed: int) -> list[str]:
    """Texts with some of their words replaced."""
    draw = random.Random(seed)
    return [" ".join("x" if draw.random() < share else word for word in text.split()) for text in texts]


@pytest.fixture(scope="module")
def references() -> list[str]:
    """Sentences of eight words."""
    draw = random.Random(1)
    return [" ".join(draw.choice(WORDS) for _ in range(8)) for _ in range(200)]


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
def test_a_clear_difference_is_told_from_none(references: list[str], name: str) -> None:
    outputs = [noisy(references, share, seed) for share, seed in ((0.1, 1), (0.1, 2), (0.3, 3))]
    lists = [[text] for text in references]
    found = compare(name, outputs, lists)
    assert found.values == pytest.approx([score(name, one, lists).value for one in outputs])
    assert found.p_values[0] > 0.05 > 0.01 > found.p_values[1]
    assert all(0 < margin < 10 for margin in found.margins)
    assert "bs:1000|seed:12345" in found.signature
    assert compare(name, outputs, lists) == found, "the samples are the same each time"


def test_the_interval_has_the_share_of_test_sets_that_it_says(references: list[str]) -> None:
    """Of test sets drawn from one large one, some 95 % have the large one's score in their interval."""
    outputs, draw, inside = noisy(references * 20, 0.2, 4), random.Random(5), 0
    pairs = list(zip(outputs, references * 20, strict=True))
    true = score("bleu", outputs, [[text] for text in references * 20]).value
    for _ in range(40):
        sample = draw.sample(pairs, 150)
        side = [output for output, _ in sample]
        found = compare("bleu", [side, side], [[text] for _, text in sample], samples=200)
        inside += abs(found.values[0] - true) <= found.margins[0]
    assert 34 <= inside <= 40


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
def test_equal_text_does_not_differ_composed_or_not(name: str) -> None:
    texts = [f"schöne Häuser über {n} Flüssen" for n in range(30)]
    decomposed = [unicodedata.normalize("NFD", text) for text in texts]
    found = compare(name, [texts, decomposed], [[text] for text in texts], samples=50)
    assert found.values[0] == found.values[1] and found.p_values == [1.0] and found.signature.endswith(CLEANED)


def test_wrong_use() -> None:
    with pytest.raises(ValueError, match="there is a test for bleu, chrf, ter, but not for 'wer'"):
        compare("wer", [["a"], ["a"]], [["a"]])
    with pytest.raises(ValueError, match="outputs, but 1 references"):
        compare("bleu", [["a"], ["a", "b"]], [["a"]])
