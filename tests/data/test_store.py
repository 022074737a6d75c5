"""The store: what goes in comes out, what is dropped is counted, and what is damaged is not opened."""

import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data import encoding
from tfm.data import store as store_module
from tfm.data.corpus import Corpus, Pair
from tfm.data.store import FilterReport, Limits, TokenStore, build_store, open_store
from tfm.data.tokenizer import Tokenizer
from tfm.system.errors import DataError, EnvironmentFault

BuildCorpus = Callable[[list[Pair]], Corpus]
ROOMY = Limits(max_tokens=1000, max_length_ratio=9.0)


def rows_of(store: TokenStore) -> list[tuple[list[int], list[int]]]:
    return [(src.tolist(), tgt.tolist()) for src, tgt in (store[row] for row in range(len(store)))]


def words(count: int) -> str:
    """A text of this many pieces in the `word` vocabulary."""
    return " ".join(["the"] * count)


@pytest.fixture(scope="session")
def word_tokenizer(tokenizers: dict[str, Tokenizer]) -> Tokenizer:
    return tokenizers["word"]


@pytest.fixture
def toy_corpus(corpus_of: BuildCorpus, toy_sentences: list[Pair]) -> Corpus:
    return corpus_of(toy_sentences)


@pytest.mark.parametrize("rows_per_block", [1, 7, 200, 65_536])
def test_ids_come_back_in_order_over_any_number_of_blocks(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    toy_corpus: Corpus,
    toy_sentences: list[Pair],
    tokenizer: Tokenizer,
    rows_per_block: int,
) -> None:
    monkeypatch.setattr(store_module, "ROWS_PER_BLOCK", rows_per_block)
    built = build_store(tmp_path / "store", toy_corpus, tokenizer, ROOMY)
    reopened = open_store(tmp_path / "store")
    assert reopened is not None
    expected = [(tokenizer.src.encode(s), tokenizer.tgt.encode(t)) for s, t in toy_sentences]
    assert rows_of(built) == rows_of(reopened) == expected
    assert reopened.src_lengths.tolist() == [len(s) for s, _ in expected]
    assert reopened.tgt_lengths.tolist() == [len(t) for _, t in expected]
    assert reopened.report == built.report
    assert (built.report.src_tokens, built.report.tgt_tokens) == (
        sum(len(s) for s, _ in expected),
        sum(len(t) for _, t in expected),
    )


@pytest.mark.parametrize("processes", [1, 3])
def test_the_file_is_what_arrow_makes_of_plain_lists(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    toy_corpus: Corpus,
    toy_sentences: list[Pair],
    tokenizer: Tokenizer,
    processes: int,
) -> None:
    monkeypatch.setattr(store_module, "ROWS_PER_BLOCK", 64)
    monkeypatch.setattr(encoding, "CHUNK_PAIRS", 10)
    monkeypatch.setattr(encoding, "CHUNKS_ALONE", 2)
    limits = Limits(max_tokens=30, max_length_ratio=9.0)
    store = build_store(tmp_path / "store", toy_corpus, tokenizer, limits, processes=processes)
    rows = [(tokenizer.src.encode(s), tokenizer.tgt.encode(t)) for s, t in toy_sentences]
    rows = [row for row in rows if max(map(len, row)) <= 30]
    assert 64 < len(rows) < len(toy_sentences)
    schema = pa.schema([("src", pa.list_(pa.int32())), ("tgt", pa.list_(pa.int32()))])
    with pa.OSFile(str(tmp_path / "plain.arrow"), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for start in range(0, len(rows), 64):
            columns: Any = list(zip(*rows[start : start + 64], strict=True))
            writer.write_batch(pa.record_batch([list(column) for column in columns], schema=schema))
    assert (tmp_path / "store" / "pairs.arrow").read_bytes() == (tmp_path / "plain.arrow").read_bytes()
    assert store.report == FilterReport(
        read=len(toy_sentences),
        kept=len(rows),
        too_long=len(toy_sentences) - len(rows),
        src_tokens=sum(len(src) for src, _ in rows),
        tgt_tokens=sum(len(tgt) for _, tgt in rows),
    )


def test_an_open_store_holds_eight_bytes_for_a_pair(
    tmp_path: Path, corpus_of: BuildCorpus, word_tokenizer: Tokenizer
) -> None:
    build_store(tmp_path / "store", corpus_of([(words(5), words(6))] * 50_000), word_tokenizer, ROOMY)
    tracemalloc.start()
    try:
        store = open_store(tmp_path / "store")
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert store is not None and len(store) == 50_000
    assert held < 8 * 50_000 + 100_000
    assert peak < 8 * 50_000 + 400_000  # hashing reads the file in pieces


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=30))
def test_everything_read_is_kept_or_counted_as_dropped(
    word_tokenizer: Tokenizer, corpus_of: BuildCorpus, lengths: list[tuple[int, int]]
) -> None:
    usable = [(5, 5)] * (len(lengths) + 1)  # never more than half empty
    pairs = [(words(s), words(t)) for s, t in lengths + usable]
    with TemporaryDirectory() as directory:
        store = build_store(Path(directory) / "store", corpus_of(pairs), word_tokenizer, Limits(10, 1.5))
        report, kept = store.report, rows_of(store)
    assert report.read == len(pairs)
    assert report.kept + report.empty + report.too_long + report.unequal == report.read
    assert report.empty == sum(not s or not t for s, t in lengths)
    assert report.too_long == sum(max(s, t) > 10 and min(s, t) > 0 for s, t in lengths)
    assert [(len(s), len(t)) for s, t in kept] == [
        (s, t) for s, t in lengths + usable if min(s, t) > 0 and max(s, t) <= min(10, 1.5 * min(s, t) + 5)
    ]


def test_report_in_words(tmp_path: Path, corpus_of: BuildCorpus, word_tokenizer: Tokenizer) -> None:
    pairs = [(words(3), words(3))] * 6 + [("", words(3)), (" \u200b", words(3)), (words(30), words(30))]
    pairs += [(words(1), words(9))]
    store = build_store(tmp_path / "store", corpus_of(pairs), word_tokenizer, Limits(20, 2.0))
    assert str(store.report) == (
        "6 of 10 pairs kept (dropped: 2 empty, 1 too long, 1 of very unequal length),"
        " 5 of them copies, 6 of them with the same text on both sides"
    )
    assert str(FilterReport(read=2000, kept=2000)) == "2,000 of 2,000 pairs kept"


def test_pairs_of_the_validation_set_are_counted_and_kept(
    tmp_path: Path, toy_corpus: Corpus, toy_sentences: list[Pair], tokenizer: Tokenizer
) -> None:
    dev = frozenset([*toy_sentences[:7], ("not", "there")])
    store = build_store(tmp_path / "store", toy_corpus, tokenizer, ROOMY, dev_pairs=dev)
    assert store.report.in_dev_set == sum(pair in dev for pair in toy_sentences) >= 7
    assert store.report.kept == len(toy_sentences)


def test_rows_are_views_of_the_mapped_file(tmp_path: Path, toy_corpus: Corpus, tokenizer: Tokenizer) -> None:
    before = pa.total_allocated_bytes()
    store = build_store(tmp_path / "store", toy_corpus, tokenizer, ROOMY)
    src, tgt = store[3]
    assert np.shares_memory(src, store._src[0].values)
    assert np.shares_memory(tgt, store._tgt[0].values)
    assert not src.flags.owndata and not src.flags.writeable
    assert pa.total_allocated_bytes() - before < (tmp_path / "store" / "pairs.arrow").stat().st_size / 2


@pytest.mark.parametrize("name", ["pairs.arrow", "report.json"])
@pytest.mark.parametrize("damage", ["flipped", "truncated", "emptied", "removed"])
def test_damaged_store_is_not_opened(
    tmp_path: Path, toy_corpus: Corpus, tokenizer: Tokenizer, name: str, damage: str
) -> None:
    build_store(tmp_path / "store", toy_corpus, tokenizer, ROOMY)
    path = tmp_path / "store" / name
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[5] ^= 0xFF
    path.unlink()
    if damage != "removed":
        path.write_bytes({"flipped": content, "truncated": content[:-40], "emptied": b""}[damage])
    assert open_store(tmp_path / "store") is None


def test_a_report_with_another_number_is_noticed(tmp_path: Path, toy_corpus: Corpus, tokenizer: Tokenizer) -> None:
    report = build_store(tmp_path / "store", toy_corpus, tokenizer, ROOMY).report
    path = tmp_path / "store" / "report.json"
    changed = path.read_text().replace(f'"kept": {report.kept}', f'"kept": {report.kept + 1}')
    path.write_text(changed)
    assert open_store(tmp_path / "store") is None


def test_absent_store_is_not_opened(tmp_path: Path) -> None:
    assert open_store(tmp_path / "nowhere") is None


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, DataError, MemoryError])
def test_interrupted_build_leaves_nothing(
    tmp_path: Path, toy_sentences: list[Pair], tokenizer: Tokenizer, interruption: type[BaseException]
) -> None:
    def pairs() -> Iterator[Pair]:
        yield from toy_sentences[:50]
        raise interruption

    with pytest.raises(interruption):
        build_store(tmp_path / "store", Corpus("c", "c", pairs), tokenizer, ROOMY)
    assert list(tmp_path.iterdir()) == []


def test_progress_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toy_corpus: Corpus, tokenizer: Tokenizer
) -> None:
    monkeypatch.setattr(encoding, "CHUNK_PAIRS", 60)
    seen: list[int] = []
    build_store(tmp_path / "store", toy_corpus, tokenizer, ROOMY, on_read=seen.append)
    assert seen == [60, 120, 180, 200]


@pytest.mark.parametrize("pairs", [[], [("", "")], [("", "a b")] * 3])
def test_nothing_usable(tmp_path: Path, corpus_of: BuildCorpus, tokenizer: Tokenizer, pairs: list[Pair]) -> None:
    with pytest.raises(DataError, match=f"the corpus has no usable pair: 0 of {len(pairs)} pairs kept"):
        build_store(tmp_path / "store", corpus_of(pairs), tokenizer, ROOMY)
    assert list(tmp_path.iterdir()) == []


def test_more_than_half_empty(tmp_path: Path, corpus_of: BuildCorpus, tokenizer: Tokenizer) -> None:
    pairs = [("a", "b")] * 2 + [("", "b"), ("a", "")]
    build_store(tmp_path / "half", corpus_of(pairs), tokenizer, ROOMY)
    with pytest.raises(DataError, match="more than half"):
        build_store(tmp_path / "more", corpus_of([*pairs, ("", "")]), tokenizer, ROOMY)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(28, "No space left on device"), "No space left on device, .* MB free"),
        (OSError("Arrow says"), "Arrow says, .* MB free"),
    ],
)
def test_full_disk_is_the_environments_fault(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    toy_corpus: Corpus,
    tokenizer: Tokenizer,
    error: OSError,
    message: str,
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(pa, "OSFile", fail)
    with pytest.raises(EnvironmentFault, match=rf"cannot write .*store: {message}"):
        build_store(tmp_path / "store", toy_corpus, tokenizer, ROOMY)
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_usually_incomplete_may_be(tmp_path: Path, tokenizer: Tokenizer) -> None:
    pairs = [("the cat", "die Katze"), *9 * [("", "")]]
    with pytest.raises(DataError, match="more than half of the pairs have an empty side"):
        build_store(tmp_path / "lines", Corpus("lines", "1", lambda: iter(pairs)), tokenizer, ROOMY)
    messages = Corpus("app.po", "2", lambda: iter(pairs), incomplete=True)
    assert len(build_store(tmp_path / "messages", messages, tokenizer, ROOMY)) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names are UTF-8, or UTF-16")
def test_the_name_of_a_directory_need_not_be_utf8(tmp_path: Path, toy_corpus: Corpus, tokenizer: Tokenizer) -> None:
    store = build_store(tmp_path / "a\udcff", toy_corpus, tokenizer, ROOMY)
    reopened = open_store(tmp_path / "a\udcff")
    assert reopened is not None and rows_of(reopened) == rows_of(store)


def test_copies_identical_sides_and_control_characters_are_counted(
    tmp_path: Path, corpus_of: BuildCorpus, word_tokenizer: Tokenizer
) -> None:
    pairs = [("the", "a"), ("the", "a"), ("the", "the"), ("the\x00\x1b", "the\ta\x85"), ("\ud800", "\x9b"), ("", "")]
    report = build_store(tmp_path / "store", corpus_of(pairs), word_tokenizer, ROOMY).report
    assert (report.read, report.kept) == (6, 4)
    assert (report.copies, report.identical, report.controls) == (1, 1, 2)
    assert str(report).endswith(
        "(dropped: 2 empty), 1 of them copies, 1 of them with the same text on both sides,"
        " 2 control characters made spaces"
    )
