"""Subword dropout: other pieces, the same text, at the rate asked for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.corpus import Pair
from tfm.data.subword_dropout import SubwordDropout
from tfm.data.tokenizer import Tokenizer

KINDS = ["unigram", "bpe", "char", "word"]


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=[seed, 0]))


def encoded(tokenizer: Tokenizer, pairs: list[Pair]) -> list[np.ndarray]:
    return [np.array(tokenizer.src.encode(src), np.int32) for src, _ in pairs]


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=30)
@given(st.data(), st.floats(0.0, 1.0), st.integers(0, 2**63 - 1))
def test_text_stays_the_same(
    kind: str, tokenizers: dict[str, Tokenizer], toy_sentences: list[Pair], data: st.DataObject, rate: float, seed: int
) -> None:
    vocabulary = tokenizers[kind].src
    rows = encoded(tokenizers[kind], data.draw(st.lists(st.sampled_from(toy_sentences), min_size=1, max_size=20)))
    divided = SubwordDropout(vocabulary, rate, 1000)(rows, rng(seed))
    assert [vocabulary.decode(row.tolist()) for row in divided] == [vocabulary.decode(row.tolist()) for row in rows]
    assert all(row.dtype == np.int32 for row in divided)


def test_any_text_survives_bytes_and_rare_characters_included(tokenizer: Tokenizer) -> None:
    text = "the 猫 sees <unk> </s> <0x41> \ue000 ▁ red  dogs"
    row = np.array(tokenizer.src.encode(text), np.int32)
    for seed in range(20):
        (divided,) = SubwordDropout(tokenizer.src, 0.9, 1000)([row], rng(seed))
        assert tokenizer.src.decode(divided.tolist()) == tokenizer.src.decode(row.tolist())


def test_pieces_are_divided_at_the_rate_and_in_every_possible_way(tokenizer: Tokenizer) -> None:
    pieces = [tokenizer.src.piece(i) for i in range(len(tokenizer.src))]
    ways = {
        i: {(piece[:cut], piece[cut:]) for cut in range(1, len(piece)) if {piece[:cut], piece[cut:]} <= set(pieces)}
        for i, piece in enumerate(pieces)
    }
    piece = max(ways, key=lambda i: len(ways[i]) if not tokenizer.src.is_byte(i) else -1)
    assert len(ways[piece]) > 1
    rows = SubwordDropout(tokenizer.src, 0.25, 10)([np.array([piece], np.int32)] * 8000, rng())
    divided = [tuple(pieces[i] for i in row) for row in rows if len(row) == 2]
    assert abs(len(divided) / 8000 - 0.25) < 0.02
    assert set(divided) == ways[piece]
    assert min(divided.count(way) for way in ways[piece]) > 0.7 * len(divided) / len(ways[piece])


def test_same_generator_same_result_and_another_one_another(tokenizer: Tokenizer, toy_sentences: list[Pair]) -> None:
    dropout, rows = SubwordDropout(tokenizer.src, 0.3, 100), encoded(tokenizer, toy_sentences)
    first, again, other = (np.concatenate(dropout(rows, rng(seed))).tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_no_row_becomes_longer_than_the_model_can_read(tokenizer: Tokenizer, toy_sentences: list[Pair]) -> None:
    rows = encoded(tokenizer, toy_sentences)
    longest = max(map(len, rows))
    divided = SubwordDropout(tokenizer.src, 1.0, longest)(rows, rng())
    assert max(map(len, divided)) == longest
    assert sum(map(len, divided)) > sum(map(len, rows))


def test_pieces_of_characters_cannot_be_divided(tokenizers: dict[str, Tokenizer], toy_sentences: list[Pair]) -> None:
    rows = encoded(tokenizers["char"], toy_sentences)
    divided = SubwordDropout(tokenizers["char"].src, 1.0, 1000)(rows, rng())
    assert [row.tolist() for row in divided] == [row.tolist() for row in rows]
