"""Holding out: a validation set that shares no sentence with the rest, the same one at every start."""

import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.cleaning import clean
from tfm.data.config import DataConfig, TokenizerConfig
from tfm.data.corpus import Corpus, Pair, open_spec
from tfm.data.holdout import HOLD_OUT_PAIRS, hold_out
from tfm.data.vocabulary_training import VocabularySample
from tfm.system.errors import DataError

BuildCorpus = Callable[[list[Pair]], Corpus]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 400), max_size=400), st.integers(0, 2**63 - 1))
def test_held_out_pairs_share_no_source_sentence(corpus_of: BuildCorpus, numbers: list[int], seed: int) -> None:
    pairs = [(f" sentence  {number}" if number else "", f"{place}") for place, number in enumerate(numbers)]
    counts = Counter(clean(src) for src, _ in pairs)
    size = math.ceil(0.05 * len(pairs))
    frequent = [count > size for source, count in counts.items() if source]
    if len(pairs) > 1 and frequent and all(frequent):
        with pytest.raises(DataError, match=r"too often to hold out 5 % .* name a validation set with --dev-src"):
            hold_out(corpus_of(pairs), seed=seed)
        return
    rest, held = (list(part.pairs()) for part in hold_out(corpus_of(pairs), seed=seed))
    assert sorted(rest + held) == sorted(pairs)
    assert held or len(pairs) < 2 or not frequent
    assert not {source for source, _ in rest} & {source for source, _ in held}
    assert len(held) <= 0.05 * len(pairs) + 1
    assert "" not in {source for source, _ in held}
    assert [pair for pair in pairs if pair in held] == held


@pytest.mark.parametrize(
    ("size", "held_out"),
    [(0, 0), (1, 0), (2, 1), (20, 1), (1000, 50), (19_999, 1000), (50_000, 1000)],
)
def test_a_twentieth_but_at_most_a_thousand(corpus_of: BuildCorpus, size: int, held_out: int) -> None:
    rest, held = hold_out(corpus_of([(f"sentence {number}", "") for number in range(size)]), seed=1)
    found = len(list(held.pairs()))
    assert found <= min(held_out, HOLD_OUT_PAIRS)
    assert found >= held_out - 1  # two sentences of one hash stay together
    assert found + len(list(rest.pairs())) == size


def test_sentences_that_differ_only_in_spaces_stay_together(
    corpus_of: BuildCorpus,
) -> None:
    pairs = [(f"{'  ' * (number % 2)}sentence\u00a0{number // 2}", "") for number in range(400)]
    _, held = hold_out(corpus_of(pairs), seed=1)
    numbers = [source.strip() for source, _ in held.pairs()]
    assert numbers and all(numbers.count(number) == 2 for number in numbers)


def test_seed_decides_what_is_held_out(corpus_of: BuildCorpus) -> None:
    corpus = corpus_of([(f"sentence {number}", "") for number in range(1000)])
    first, again, other = (hold_out(corpus, seed=seed) for seed in (1, 1, 2))
    assert list(first[1].pairs()) == list(again[1].pairs()) != list(other[1].pairs())
    assert [part.identity for part in first] == [part.identity for part in again]
    assert len({part.identity for part in (*first, *other, (corpus))}) == 5


def test_sentences_that_make_up_most_of_a_corpus_stay_in_training(corpus_of: BuildCorpus) -> None:
    """Whichever seed: eight sentences 100 times each, and 200 others once or twice."""
    pairs = [(f"often {number % 8}", f"{number}") for number in range(800)]
    pairs += [(f"rare {number % 150}", f"{number}") for number in range(200)]
    for seed in range(20):
        rest, held = (list(part.pairs()) for part in hold_out(corpus_of(pairs), seed=seed))
        assert 25 <= len(held) <= 50
        assert sorted(rest + held) == sorted(pairs)
        assert not {source for source, _ in rest} & {source for source, _ in held}
        assert all(source.startswith("rare") for source, _ in held)


def test_a_validation_set_of_few_sentences_is_said(corpus_of: BuildCorpus) -> None:
    few = [(f"sentence {number % 40}", f"{number}") for number in range(4_000)]
    _, held = hold_out(corpus_of(few), seed=1)
    (remark,) = held.remarks
    assert "its 200 held-out pairs have only 2 different ones" in remark
    _, held = hold_out(corpus_of([(f"sentence {number}", "") for number in range(100)]), seed=1)
    assert held.remarks == ()
    with pytest.raises(DataError, match=r"has 4,000 pairs, but only 8 different sources, each of them too often"):
        hold_out(corpus_of([(f"sentence {number % 8}", "") for number in range(4_000)]), seed=1)


def split_by_the_formula(pairs: list[Pair], seed: int) -> tuple[list[Pair], list[Pair]] | None:
    """Sources ranked by the CRC of seed and text; as many of the lowest are held out as fit, equal ones together.

    If these are less than half, those that do not fit are passed over. None if then there are none.
    """
    cleaned = [clean(src) for src, _ in pairs]
    ranks = [zlib.crc32(f"{seed}\t{source}".encode()) if source else 2**32 - 1 for source in cleaned]
    size = min(math.ceil(0.05 * len(pairs)), 1000)
    threshold = sorted(ranks)[size] if len(pairs) > 1 else 0
    held = {rank for rank in ranks if rank < threshold}
    if len(pairs) > 1 and sum(rank in held for rank in ranks) < size / 2:
        held = set[int]()
        for rank in sorted({*ranks} - {2**32 - 1}):
            if sum(one in held for one in ranks) + ranks.count(rank) <= size:
                held.add(rank)
        if not held and any(cleaned):  # of blank lines others tell
            return None
    rest = [pair for pair, rank in zip(pairs, ranks, strict=True) if rank not in held]
    return rest, [pair for pair, rank in zip(pairs, ranks, strict=True) if rank in held]


TEXTS = st.sampled_from(["", " ", "\ud800", "\u00a0a", "a", *(f"sentence {number}" for number in range(60))])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=120), st.integers(0, 99))
def test_the_split_follows_the_formula_at_first_and_from_memory(
    corpus_of: BuildCorpus, pairs: list[Pair], seed: int
) -> None:
    expected = split_by_the_formula(pairs, seed)
    corpus = Corpus("c", "c", lambda: iter(pairs))
    if expected is None:
        with pytest.raises(DataError):
            hold_out(corpus, seed=seed)
        return
    with TemporaryDirectory() as memo:
        for directory in (None, Path(memo), Path(memo)):
            parts = hold_out(corpus, seed=seed, memo=directory)
            assert tuple(list(part.pairs()) for part in parts) == expected
            assert [part.identity for part in parts] == [part.identity for part in hold_out(corpus, seed=seed)]


def unreadable() -> Iterator[Pair]:
    raise AssertionError("the corpus was read")


def test_a_remembered_split_reads_no_text(tmp_path: Path) -> None:
    pairs = [(f"sentence {number}", f"Satz {number}") for number in range(100)]
    first = hold_out(Corpus("c", "identity", lambda: iter(pairs)), seed=1, memo=tmp_path)
    again = hold_out(Corpus("c", "identity", unreadable), seed=1, memo=tmp_path)
    assert list(again[1].pairs()) == list(first[1].pairs())
    assert [part.identity for part in again] == [part.identity for part in first]
    for other in (Corpus("c", "changed", unreadable), Corpus("c", "identity", unreadable)):
        with pytest.raises(AssertionError, match="was read"):
            hold_out(other, seed=1 if other.identity == "changed" else 2, memo=tmp_path)


@pytest.mark.parametrize("damage", ["changed", "truncated", "emptied", "removed", "not JSON", "a list"])
def test_a_damaged_split_is_made_again(tmp_path: Path, damage: str) -> None:
    pairs = [(f"sentence {number}", f"Satz {number}") for number in range(100)]
    corpus = Corpus("c", "identity", lambda: iter(pairs))
    expected = list(hold_out(corpus, seed=1, memo=tmp_path)[1].pairs())
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    path.unlink()
    if damage != "removed":
        wrong = {"changed": content.replace(b"Satz", b"Sitz"), "truncated": content[:-9], "emptied": b""}
        path.write_bytes({**wrong, "not JSON": b"\xff{", "a list": b"[1]"}[damage])
    assert list(hold_out(corpus, seed=1, memo=tmp_path)[1].pairs()) == expected
    assert path.read_bytes() == content


def test_of_a_file_that_is_mostly_untranslated_a_part_of_what_is_translated_is_held_out() -> None:
    pairs = [(f"s{number}", f"t{number}") if number % 10 == 0 else ("", "") for number in range(1_000)]
    rest, held_out = hold_out(Corpus("app.po", "1", lambda: iter(pairs), incomplete=True), seed=1)
    assert held_out.count() == 5
    assert sum(pair != ("", "") for pair in rest.pairs()) == 95


def test_what_is_in_a_corpus_several_times_is_held_out_once(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"source {n}\ttarget {n}\n" for n in range(100)))
    rest, held_out = hold_out(open_spec(f"{path}=3", DataConfig()), seed=1)
    pairs = list(held_out.pairs())
    assert 1 <= len(pairs) == len(set(pairs)) and not set(pairs) & set(rest.pairs())
    assert len(list(rest.pairs())) == 3 * (100 - len(pairs))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 3)), min_size=2, max_size=300), st.integers(1, 3), st.data()
)
def test_what_is_sampled_meanwhile_is_what_is_left(
    corpus_of: BuildCorpus, numbers: list[tuple[int, int]], times: int, data: st.DataObject
) -> None:
    separate = data.draw(st.booleans())
    targets = ["", "nothing ", "keeps %s", "<b> and  %s"]
    pairs = [(f"read %s of <b>{number}", targets[target]) for number, target in numbers]
    corpus = replace(corpus_of(pairs * times), repeats=times > 1)
    sample, again = (VocabularySample(TokenizerConfig(separate=separate)) for _ in range(2))
    try:
        rest, _ = hold_out(corpus, seed=len(pairs), sample=sample)
    except DataError:  # too few different sentences
        return
    for src, tgt in rest.pairs():
        again.add((clean(src), clean(tgt)))
    assert sample.sentences() == again.sentences()


def test_a_split_that_is_remembered_gives_the_same_sample(corpus_of: BuildCorpus, tmp_path: Path) -> None:
    first, again = (VocabularySample(TokenizerConfig(max_sentences=20)) for _ in range(2))
    for sample in (first, again):
        hold_out(corpus_of([(f"sentence {n}", "") for n in range(400)]), seed=1, memo=tmp_path, sample=sample)
    assert first.sentences() == again.sentences()
