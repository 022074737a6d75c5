"""From the size of a corpus to its settings."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.configs import load_config, merge, parse_config
from tfm.configs.recipe import (
    BATCH_TOKENS,
    BATCH_TOKENS_OF_LONG_LINES,
    LARGEST_CHOSEN,
    MAX_DROPOUT,
    MIN_DROPOUT,
    SMALLEST_CHOSEN,
    UPDATES,
    batch_tokens,
    dropout,
    recipe,
)
from tfm.data.size import CorpusSize

LONG = CorpusSize(5_000, 754_000, 854_000, 130)
"""Technical sentences of 22 words."""
SHORT = CorpusSize(5_000, 164_000, 197_000, 92)
"""Sentences of 7 words."""
Sizes = st.builds(
    CorpusSize,
    pairs=st.integers(0, 60_000),
    src_letters=st.integers(0, 10**8),
    tgt_letters=st.integers(0, 10**8),
    characters=st.integers(0, 20_000),
)


def chosen(size: CorpusSize) -> dict[str, float]:
    return {choice.key: choice.value for choice in recipe(size)}


def test_as_many_pairs_of_longer_sentences_get_more_pieces_and_less_dropout() -> None:
    assert chosen(LONG) == {"vocab_size": 8000, "dropout": 0.2, "max_tokens_per_batch": 1536, "max_steps": UPDATES}
    short = {"vocab_size": 5000, "dropout": 0.3, "max_tokens_per_batch": 2048, "max_steps": UPDATES}
    assert chosen(SHORT) == {**short, "both_directions": True, "subword_dropout": 0.1}


def test_little_text_that_is_seen_often_is_learned_in_both_directions_where_it_may_be() -> None:
    def both(size: CorpusSize, max_steps: int | None = None, *, turns_round: bool = True) -> bool:
        return any(choice.key == "both_directions" for choice in recipe(size, max_steps, turns_round=turns_round))

    sizes = [CorpusSize(pairs, 30 * pairs, 40 * pairs, 90) for pairs in (2_000, 5_000, 12_000, 13_000, 40_000)]
    assert [both(size) for size in sizes] == [True, True, True, False, False]
    assert not any(both(size, turns_round=False) for size in sizes)
    talks = CorpusSize(4_600, 90 * 4_600, 95 * 4_600, 120)
    assert both(talks) and not both(talks, max_steps=400)
    assert not both(LONG)


def test_the_reason_of_dropout_counts_the_pairs_that_the_batches_hold() -> None:
    # 1,900 updates of 3,800 pieces show 213,500 pieces 34 times; long lines come in batches of three quarters.
    reasons = {choice.key: choice.reason for choice in recipe(LONG)}
    assert reasons["dropout"] == "dropout 0.2: 1,900 updates show each pair about 25 times to the model"
    assert reasons["max_tokens_per_batch"] == "batches of 1,536 tokens: a line has about 43 pieces"


def test_batches_are_smaller_from_a_length_of_line_on() -> None:
    sizes = [CorpusSize(100, 9_000, letters, 90) for letters in (11_900, 12_000)]
    assert load_config("pairs")["training"]["max_tokens_per_batch"] == BATCH_TOKENS
    assert [batch_tokens(size) for size in sizes] == [BATCH_TOKENS, BATCH_TOKENS_OF_LONG_LINES]


def test_a_script_of_many_characters_gets_pieces_for_them() -> None:
    kanji = CorpusSize(5_000, 164_000, 197_000, 1_800)
    assert chosen(kanji)["vocab_size"] == 6500


@given(Sizes)
@settings(deadline=None)  # the first example loads pydantic
def test_any_corpus_gets_settings_that_are_valid(size: CorpusSize) -> None:
    tree = load_config("pairs")
    for choice in recipe(size):
        assert choice.key in tree[choice.section], "the preset says it, too"
        assert "\n" not in choice.reason and len(choice.reason) < 110
        tree = merge(tree, {choice.section: {choice.key: choice.value}})
    parse_config(tree)
    assert MIN_DROPOUT <= tree["model"]["dropout"] <= MAX_DROPOUT
    assert SMALLEST_CHOSEN <= tree["tokenizer"]["vocab_size"] <= LARGEST_CHOSEN


@given(st.floats(0.1, 1000))
def test_dropout_grows_with_the_epochs_in_steps(epochs: float) -> None:
    assert dropout(epochs) <= dropout(2 * epochs)
    assert dropout(epochs) in (0.1, 0.15, 0.2, 0.25, 0.3)


def test_dropout_at_its_ends() -> None:
    assert [dropout(epochs) for epochs in (1, 20, 40, 80, 500)] == pytest.approx([0.1, 0.1, 0.2, 0.3, 0.3])


def test_more_pairs_of_one_kind_never_get_fewer_updates_fewer_pieces_or_more_dropout() -> None:
    sizes = [CorpusSize(n, 150 * n, 170 * n, 100) for n in (100, 1_000, 2_000, 5_000, 10_000, 20_000, 40_000)]
    for smaller, larger in pairwise(chosen(size) for size in sizes):
        assert smaller["max_steps"] <= larger["max_steps"]
        assert smaller["vocab_size"] <= larger["vocab_size"]
        assert smaller["dropout"] >= larger["dropout"]
