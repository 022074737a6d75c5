"""engine.js, vocabulary: text to pieces and back, as SentencePiece has it, for every kind of vocabulary."""

import base64
import itertools
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from helpers.javascript import javascript, needs_node
from helpers.odd_text import PLACEHOLDERS, SPECIAL, odd_line

from tfm.data.config import TokenizerConfig, VocabularyType
from tfm.data.tokenizer import Tokenizer, Vocabulary
from tfm.data.toy import toy_pairs
from tfm.data.vocabulary_training import build_tokenizer

pytestmark = needs_node
HOSTILE = 10_000
BODY = """
  const vocabulary = new engine.Vocabulary(Buffer.from(data.model, "base64"));
  const { lines } = data;
  const texts = (data.ids ?? []).map((ids) => vocabulary.decode(ids));
  return { ids: lines.map((line) => vocabulary.encode(line)), texts };"""


def training(placeholders: bool) -> Iterator[tuple[str, str]]:
    """Pairs with characters of many scripts, and if asked for with placeholders that are carried through."""
    rng = random.Random(1)
    for number, (src, tgt) in enumerate(toy_pairs("train", size=1_500)):
        odd = "".join(rng.choices("日本語東京ไทยأبجд жÄößéñ🙂👍", k=5)) if number % 5 == 0 else ""
        placeholder = rng.choice(PLACEHOLDERS[:9]) if placeholders else ""
        yield f"{src} {odd} {placeholder}", f"{placeholder} {tgt} {odd}"


@pytest.fixture(scope="module", params=[*get_args(VocabularyType), "symbols unigram", "symbols bpe", "symbols char"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    """A tokenizer of each kind; and with symbols for placeholders."""
    symbols, _, kind = request.param.rpartition(" ")
    config = TokenizerConfig(vocab_size=900, type=kind, placeholders=bool(symbols))
    tokenizer = build_tokenizer(training(bool(symbols)), config)
    assert tokenizer.has_placeholders == bool(symbols)
    return tokenizer


@pytest.fixture(scope="module")
def vocabulary(tokenizer: Tokenizer) -> Vocabulary:
    """Its vocabulary."""
    return tokenizer.src


def in_javascript(vocabulary: Vocabulary, **data: Any) -> dict[str, Any]:
    return javascript(BODY, {"model": base64.b64encode(vocabulary.model).decode(), **data}, timeout=1_200)


def test_hostile_strings_are_cut_as_sentencepiece_cuts_them(vocabulary: Vocabulary) -> None:
    rng = random.Random(2)
    # Equal letters are cut in several ways whose sums differ by rounding alone.
    symbols = [
        "w",
        "oo",
        "000",
        "rrr",
        "aaaa",
        *SPECIAL,
        *map(chr, range(0xFDD0, 0xFDE0)),
        "the",
        " ",
        "日",
        "\u2581",
        "apples",
        "ß",
    ]
    lines = [odd_line(rng, longest=1_500)[:1_500] for _ in range(HOSTILE // 2)]
    lines += ["".join(rng.choices(symbols, k=rng.randint(1, 12))) for _ in range(HOSTILE // 2)]
    found = in_javascript(vocabulary, lines=lines)["ids"]
    wrong = [(line, ids) for line, ids in zip(lines, found, strict=True) if ids != vocabulary.encode(line)]
    assert wrong == []


def test_any_ids_are_decoded_as_sentencepiece_decodes_them(vocabulary: Vocabulary) -> None:
    rng = random.Random(3)
    lists = [[rng.randrange(len(vocabulary)) for _ in range(rng.randint(0, 12))] for _ in range(3_000)]
    found = in_javascript(vocabulary, lines=[], ids=lists)["texts"]
    assert [(ids, text) for ids, text in zip(lists, found, strict=True) if text != vocabulary.decode(ids)] == []


def test_what_is_not_known_is_found(tokenizer: Tokenizer) -> None:
    lines = ["the old woman", "the ☃ woman", "日本 ☃ ☃ x", "", "\ufdd3 the"]
    body = """
      const vocabulary = new engine.Vocabulary(Buffer.from(data.model, "base64"));
      return data.lines.map((line) => vocabulary.unknown(line));"""
    found = javascript(body, {"model": base64.b64encode(tokenizer.src.model).decode(), "lines": lines})
    for line, one in zip(lines, found, strict=True):
        unknown, share = tokenizer.unknown(line)
        assert (one["unknown"], one["share"]) == (list(unknown), pytest.approx(share)), line


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_every_line_of_the_real_corpora(kind: VocabularyType, tmp_path: Path) -> None:
    folder = os.environ.get("TFM_CORPORA")
    if not folder:
        pytest.skip("TFM_CORPORA is not set")
    for corpus in sorted(path for path in Path(folder).iterdir() if path.is_dir()):
        files = sorted(path for path in corpus.iterdir() if path.is_file() and path.suffix != ".md")
        lines = [line for path in files for line in path.read_text(encoding="utf-8", errors="replace").split("\n")]
        lines = [line for line in lines if line.strip()]
        pairs = zip(lines[::2], lines[1::2], strict=False)
        config = TokenizerConfig(vocab_size=8_000, type=kind, max_sentences=20_000)
        vocabulary = build_tokenizer(itertools.islice(pairs, 20_000), config).src
        for start in range(0, len(lines), 50_000):
            part = lines[start : start + 50_000]
            found = in_javascript(vocabulary, lines=part)["ids"]
            wrong = [line for line, ids in zip(part, found, strict=True) if ids != vocabulary.encode(line)]
            assert wrong == [], (corpus, start)
