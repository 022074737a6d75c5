"""Corpora: every format gives the same pairs, misaligned files are refused, and a held-out set is really held out."""

import bz2
import gzip
import json
import lzma
import math
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.cleaning import clean
from tfm.data.config import DataConfig
from tfm.data.corpus import (
    HOLD_OUT_PAIRS,
    TOY_SIZES,
    Corpus,
    Pair,
    dev_corpus,
    hold_out,
    open_spec,
    parse_hub_spec,
    training_corpus,
)
from tfm.data.errors import DataError, UsageError

Write = Callable[[str, str | bytes], Path]
BuildCorpus = Callable[[list[Pair]], Corpus]
PAIRS = [
    ("ein Hund", "a dog"),
    ('mit "Komma", hier', "with, comma"),
    ("zwei\u2028halbe", "two halves"),
]
LANGUAGES = DataConfig(src_column="de", tgt_column="en")


def pairs_of(spec: str | Path, config: DataConfig | None = None) -> list[Pair]:
    return list(open_spec(str(spec), config or DataConfig()).pairs())


def table(src: str = "src", tgt: str = "tgt") -> Any:
    return pa.table({src: [s for s, _ in PAIRS], tgt: [t for _, t in PAIRS]})


def jsonl(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


# Two parallel files


def test_two_files(write: Write) -> None:
    src, tgt = write("a.de", "eins\r\nzwei\n"), write("a.en", bz2.compress(b"one\ntwo"))
    corpus = training_corpus(DataConfig(src=[str(src)], tgt=[str(tgt)]))
    assert list(corpus.pairs()) == list(corpus.pairs()) == [("eins", "one"), ("zwei", "two")]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 30), st.sampled_from([-2, -1, 1, 2]), st.booleans())
def test_unequal_line_counts_are_refused_with_both_counts(lines: int, difference: int, final_newline: bool) -> None:
    other = max(0, lines + difference)
    if other == lines:
        return
    with TemporaryDirectory() as directory:
        src, tgt = Path(directory, "a.de"), Path(directory, "a.en")
        for path, count in ((src, lines), (tgt, other)):
            text = "".join(f"line {number}\n" for number in range(count))
            path.write_text(text if final_newline else text.removesuffix("\n"))
        corpus = training_corpus(DataConfig(src=[str(src)], tgt=[str(tgt)]))
        with pytest.raises(
            DataError,
            match=rf"a\.de has {lines} lines and .*a\.en {other}; .*match line by line",
        ):
            list(corpus.pairs())


def test_blank_lines_are_empty_pairs_and_keep_their_place(write: Write) -> None:
    src, tgt = write("a.de", "eins\n\ndrei\n"), write("a.en", "one\ntwo\n\n")
    corpus = training_corpus(DataConfig(src=[str(src)], tgt=[str(tgt)]))
    assert list(corpus.pairs()) == [("eins", "one"), ("", "two"), ("drei", "")]


def test_bad_lines_stop_or_are_skipped_on_both_sides(write: Write) -> None:
    src, tgt = (
        str(write("a.de", b"eins\nzw\xff\ndrei\n")),
        str(write("a.en", b"one\ntwo\n\xffthree\n")),
    )
    with pytest.raises(DataError, match=r"a\.de:2 byte 3: invalid UTF-8"):
        list(training_corpus(DataConfig(src=[src], tgt=[tgt])).pairs())
    skipping = training_corpus(DataConfig(src=[src], tgt=[tgt], bad_lines="skip"))
    assert list(skipping.pairs()) == [("eins", "one"), ("", ""), ("", "")]


def test_several_corpora_are_read_one_after_another(write: Write) -> None:
    src = [str(write("a.de", "eins\n")), str(write("b.de", "zwei\ndrei\n"))]
    tgt = [str(write("a.en", "one\n")), str(write("b.en", "two\nthree\n"))]
    corpus = training_corpus(DataConfig(src=src, tgt=tgt))
    assert list(corpus.pairs()) == [("eins", "one"), ("zwei", "two"), ("drei", "three")]
    assert " + " in corpus.name
    tables = [str(write("a.tsv", "vier\tfour\n")), str(write("b.tsv", "fünf\tfive\n"))]
    assert list(training_corpus(DataConfig(data=tables)).pairs()) == [
        ("vier", "four"),
        ("fünf", "five"),
    ]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (DataConfig(), "no training data"),
        (
            DataConfig(src=["a"], tgt=["b"], data=["toy"]),
            "either --src and --tgt, or --data, not both",
        ),
        (DataConfig(src=["a"]), "--src names 1 files and --tgt 0"),
        (DataConfig(data=["corpus.txt"]), "cannot tell the format of corpus.txt"),
        (DataConfig(data=["corpus"]), "for two text files use --src and --tgt"),
        (DataConfig(data=["hf:"]), "names no data set"),
    ],
)
def test_contradictory_settings(config: DataConfig, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        training_corpus(config)


def test_missing_file_is_noticed_at_once(write: Write) -> None:
    src = write("train.de", "a\n")
    with pytest.raises(
        DataError,
        match=r"cannot read .*train\.en: no such file \(did you mean .*train\.de\?\)",
    ):
        training_corpus(DataConfig(src=[str(src)], tgt=[str(src.with_name("train.en"))]))
    with pytest.raises(DataError, match=r"cannot read .*trian\.tsv: no such file"):
        open_spec(str(src.with_name("trian.tsv")), DataConfig())


def test_validation_set(write: Write) -> None:
    src, tgt = str(write("dev.de", "eins\n")), str(write("dev.en", "one\n"))
    assert dev_corpus(DataConfig(data=["toy"])) is None
    corpus = dev_corpus(DataConfig(dev_src=[src], dev_tgt=[tgt]))
    assert corpus is not None and list(corpus.pairs()) == [("eins", "one")]
    with pytest.raises(UsageError, match="--dev-src names 1 files and --dev-tgt 0"):
        dev_corpus(DataConfig(dev_src=[src]))
    with pytest.raises(UsageError, match="not both"):
        dev_corpus(DataConfig(dev_src=[src], dev_tgt=[tgt], dev=["toy"]))


@pytest.mark.parametrize("split", TOY_SIZES)
def test_toy(split: str) -> None:
    assert sum(1 for _ in open_spec("toy", DataConfig(), split).pairs()) == TOY_SIZES[split]


# Tables


def test_tsv(write: Write) -> None:
    path = write("a.tsv", "ein Hund\ta dog\r\n\nzwei\ttwo\tthird field\n")
    assert pairs_of(path) == [("ein Hund", "a dog"), ("", ""), ("zwei", "two")]
    with pytest.raises(DataError, match=r"b\.tsv:2: no tab"):
        pairs_of(write("b.tsv", "a\tb\nno tab here\n"))


def test_csv_with_commas_quotes_and_newlines_inside(write: Write) -> None:
    content = '\ufeffid,src,tgt\r\n1,ein Hund,a dog\r\n2,"eins, ""zwei""\ndrei","one,\r\ntwo"\r\n\r\n3,x,y'
    assert pairs_of(write("a.csv", content)) == [
        ("ein Hund", "a dog"),
        ('eins, "zwei"\ndrei', "one,\ntwo"),
        ("", ""),
        ("x", "y"),
    ]


def test_damaged_csv_names_its_line(write: Write) -> None:
    with pytest.raises(DataError, match=r"short\.csv:3: 1 fields, but the header names 2"):
        pairs_of(write("short.csv", "src,tgt\na,b\nshort\n"))
    with pytest.raises(DataError, match=r"open\.csv:\d+: field larger than field limit"):
        pairs_of(write("open.csv", 'src,tgt\na,"never closed\n' + "text\n" * 50_000))
    with pytest.raises(DataError, match=r"latin\.csv:3 byte 2: invalid UTF-8"):
        pairs_of(write("latin.csv", b"src,tgt\na,b\nT\xfcr,door\n"))
    with pytest.raises(DataError, match=r"empty\.csv: no columns 'src' and 'tgt' among none"):
        pairs_of(write("empty.csv", ""))
    skipped = pairs_of(
        write("skip.csv", b"src,tgt\na,b\nT\xfcr,door\nc,d\n"),
        DataConfig(bad_lines="skip"),
    )
    assert skipped == [("a", "b"), ("", ""), ("c", "d")]


def test_jsonl(write: Write) -> None:
    rows = [{"src": s, "tgt": t, "id": 1} for s, t in PAIRS] + [{"src": None, "tgt": "x"}]
    assert pairs_of(write("a.jsonl", jsonl(rows) + "\n")) == [
        *PAIRS,
        ("", ""),
        ("", ""),
    ]
    assert pairs_of(write("a.jsonl.bz2", bz2.compress(jsonl(rows[:3]).encode()))) == PAIRS


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not a JSON object: "),
        ("[1]", "not a JSON object"),
        ("[" * 100_000, "not a JSON object"),
        ('{"src": 1, "tgt": "x"}', "source and target must be strings"),
        (
            '{"a": "x", "b": "y", "c": "z"}',
            "no src and tgt, which the rows before have",
        ),
    ],
)
def test_damaged_jsonl_names_its_line(write: Write, line: str, message: str) -> None:
    with pytest.raises(DataError, match=f"a.jsonl:2: {message}"):
        pairs_of(write("a.jsonl", jsonl([{"src": "a", "tgt": "b"}]) + line + "\n"))


def test_translation_field(write: Write) -> None:
    path = write("a.jsonl", jsonl([{"id": 1, "translation": {"en": "a dog", "de": "ein Hund"}}]))
    assert pairs_of(path, LANGUAGES) == [("ein Hund", "a dog")]
    assert pairs_of(path) == [("a dog", "ein Hund")], "without column names: in their order"


@pytest.mark.parametrize(
    ("columns", "config", "expected"),
    [
        (["tgt", "src"], DataConfig(), ("1", "0")),
        (["other", "target", "source"], DataConfig(), ("2", "1")),
        (["english", "german"], DataConfig(), ("0", "1")),
        (["en", "fr", "de"], LANGUAGES, ("2", "0")),
    ],
)
def test_columns_are_found(write: Write, columns: list[str], config: DataConfig, expected: Pair) -> None:
    row = {column: str(index) for index, column in enumerate(columns)}
    assert pairs_of(write("a.jsonl", jsonl([row])), config) == [expected]
    assert pairs_of(write("a.csv", ",".join(columns) + "\n" + ",".join(row.values()) + "\n"), config) == [expected]


@pytest.mark.parametrize(("columns", "config"), [(["src"], DataConfig()), (["en", "fr"], LANGUAGES)])
def test_columns_that_are_not_there_are_listed(write: Write, columns: list[str], config: DataConfig) -> None:
    path = write("a.csv", ",".join(columns) + "\n")
    with pytest.raises(
        DataError,
        match=f"no columns .* among {', '.join(map(repr, columns))}; name them when training",
    ):
        pairs_of(path, config)


@pytest.mark.usefixtures("offline")
def test_parquet_and_arrow(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(table(), tmp_path / "a.parquet")
    with (
        pa.OSFile(str(tmp_path / "file.arrow"), "wb") as sink,
        pa.ipc.new_file(sink, table().schema) as writer,
    ):
        writer.write_table(table())
    with (
        pa.OSFile(str(tmp_path / "stream.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, table().schema) as writer,
    ):
        writer.write_table(table())
    for name in ("a.parquet", "file.arrow", "stream.arrow"):
        corpus = open_spec(str(tmp_path / name), DataConfig())
        assert list(corpus.pairs()) == list(corpus.pairs()) == PAIRS


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
@pytest.mark.parametrize("content", [b"", b"PAR1ARROW1", b"ARROW1\0\0" + b"x" * 100])
def test_damaged_parquet_and_arrow(write: Write, name: str, content: bytes) -> None:
    path = write(name, content)
    with pytest.raises(DataError, match=f"cannot read .*{name}"):
        pairs_of(path)


# Hugging Face data sets


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("hf:wmt14", ("wmt14", None, None, None)),
        ("hf:owner/name", ("owner/name", None, None, None)),
        ("hf:owner/name/de-en", ("owner/name", "de-en", None, None)),
        ("hf:owner/name:test", ("owner/name", None, "test", None)),
        ("hf:owner/name@v1.0", ("owner/name", None, None, "v1.0")),
        (
            "hf:owner/name/de-en:test@refs/pr/1",
            ("owner/name", "de-en", "test", "refs/pr/1"),
        ),
        ("hf:owner/name:train[:10%]", ("owner/name", None, "train[:10%]", None)),
        ("hf:./some/local/folder", ("./some/local/folder", None, None, None)),
        ("hf:./some/local/folder:dev", ("./some/local/folder", None, "dev", None)),
    ],
)
def test_hub_specs(spec: str, expected: tuple[str | None, ...]) -> None:
    assert parse_hub_spec(spec) == expected


def test_local_folder_is_taken_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a/b/c", "at@home:x"):
        Path(name).mkdir(parents=True)
        assert parse_hub_spec(f"hf:{name}") == (name, None, None, None)
    assert parse_hub_spec("hf:a/b/c:dev") == ("a/b/c", None, "dev", None)


@pytest.mark.usefixtures("offline")
def test_local_folder_of_parquet_files(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    pyarrow.parquet.write_table(table(), folder / "train.parquet")
    pyarrow.parquet.write_table(table().slice(1), folder / "validation.parquet")
    assert pairs_of(f"hf:{folder}") == PAIRS
    assert pairs_of(f"hf:{folder}:train[:2]") == PAIRS[:2]
    dev = dev_corpus(DataConfig(dev=[f"hf:{folder}"]))
    assert dev is not None and list(dev.pairs()) == PAIRS[1:]
    with pytest.raises(DataError, match=r"cannot load hf:.*set:test \(split test\): Unknown split"):
        pairs_of(f"hf:{folder}:test")


@pytest.mark.usefixtures("offline")
def test_local_folder_of_json_files(write: Write) -> None:
    rows = [{"translation": {"de": s, "en": t}} for s, t in PAIRS]
    folder = write("set/train.jsonl", jsonl(rows)).parent
    before = open_spec(f"hf:{folder}", LANGUAGES)
    assert list(before.pairs()) == PAIRS
    write("set/train.jsonl", jsonl(rows[:1]))
    assert open_spec(f"hf:{folder}", LANGUAGES).identity != before.identity


@pytest.mark.usefixtures("offline")
def test_data_set_that_is_not_there() -> None:
    with pytest.raises(
        DataError,
        match=r"cannot load hf:no-such-owner/no-such-set \(split train\): [^\n]+$",
    ):
        open_spec("hf:no-such-owner/no-such-set", DataConfig())


# Identity


def test_identity_follows_the_content(write: Write) -> None:
    src, tgt = write("a.de", "eins\n"), write("a.en", "one\n")

    def identity() -> str:
        return training_corpus(DataConfig(src=[str(src)], tgt=[str(tgt)])).identity

    first = identity()
    assert identity() == first
    write("a.en", "two\n")
    assert identity() != first
    write("a.en", "one\n")
    assert identity() == first


def test_identity_follows_order_and_columns(write: Write) -> None:
    a, b = str(write("a.tsv", "a\tb\n")), str(write("b.tsv", "c\td\n"))
    orders = [training_corpus(DataConfig(data=data)).identity for data in ([a, b], [b, a], [a])]
    assert len(set(orders)) == 3
    assert open_spec(a, DataConfig()).identity != open_spec(a, LANGUAGES).identity


# Holding out


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 400), max_size=400), st.integers(0, 2**63 - 1))
def test_held_out_pairs_share_no_source_sentence(corpus_of: BuildCorpus, numbers: list[int], seed: int) -> None:
    pairs = [(f" sentence  {number}" if number else "", f"{place}") for place, number in enumerate(numbers)]
    rest, held = (list(part.pairs()) for part in hold_out(corpus_of(pairs), seed=seed))
    assert sorted(rest + held) == sorted(pairs)
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


def test_the_columns_of_jsonl_are_picked_once(tmp_path: Path) -> None:
    path = tmp_path / "swapped.jsonl"
    path.write_text('{"en": "dog", "de": "Hund"}\n{"de": "Katze", "en": "cat"}\n')
    assert list(open_spec(str(path), DataConfig()).pairs()) == [("dog", "Hund"), ("cat", "Katze")]
    path.write_text('{"en": "dog", "de": "Hund"}\n{"en": "cat", "fr": "chat"}\n')
    with pytest.raises(DataError, match="no en and de, which the rows before have"):
        list(open_spec(str(path), DataConfig()).pairs())


def test_training_refuses_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tsv")
    with pytest.raises(DataError, match="can be read only once"):
        open_spec(str(tmp_path / "pipe.tsv"), DataConfig())


def split_by_the_formula(pairs: list[Pair], seed: int) -> tuple[list[Pair], list[Pair]]:
    """Sources ranked by the CRC of seed and text; as many of the lowest are held out as fit, equal ones together."""
    cleaned = [clean(src) for src, _ in pairs]
    ranks = [zlib.crc32(f"{seed}\t{source}".encode()) if source else 2**32 - 1 for source in cleaned]
    size = min(math.ceil(0.05 * len(pairs)), 1000)
    threshold = sorted(ranks)[size] if len(pairs) > 1 else 0
    rest = [pair for pair, rank in zip(pairs, ranks, strict=True) if rank >= threshold]
    return rest, [pair for pair, rank in zip(pairs, ranks, strict=True) if rank < threshold]


TEXTS = st.sampled_from(["", " ", "\ud800", "\u00a0a", "a", *(f"sentence {number}" for number in range(60))])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=120), st.integers(0, 99))
def test_the_split_follows_the_formula_at_first_and_from_memory(
    corpus_of: BuildCorpus, pairs: list[Pair], seed: int
) -> None:
    expected = split_by_the_formula(pairs, seed)
    corpus = Corpus("c", "c", lambda: iter(pairs))
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


LINES = {
    "plain": b"a\tb\nc\td\n",
    "last line open": b"a\tb\nc\td",
    "blank lines": b"\n\na\tb\n\n",
    "empty": b"",
    "byte-order mark": b"\xef\xbb\xbfa\tb\r\nc\td\r\n",
    "overlong line": b"a\tb" + b"x" * 2_500_000 + b"\nc\td\n",
}


@pytest.mark.parametrize("content", LINES.values(), ids=LINES)
@pytest.mark.parametrize("compress", [None, gzip.compress, bz2.compress, lzma.compress])
def test_count_of_lines(write: Write, content: bytes, compress: Callable[[bytes], bytes] | None) -> None:
    path = write("pairs.tsv", compress(content) if compress and content else content)
    for corpus in (
        open_spec(str(path), DataConfig()),
        training_corpus(DataConfig(src=[str(path)] * 2, tgt=[str(path)] * 2)),
    ):
        assert corpus.count() == len(list(corpus.pairs()))


def test_count_of_tables(tmp_path: Path, write: Write, offline: None) -> None:
    del offline
    rows = [{"src": src, "tgt": tgt} for src, tgt in PAIRS]
    write("t.jsonl", "\n".join(map(json.dumps, rows)) + "\n\n")
    write("t.csv", 'src,tgt\n"one\nfield",two\n\n"a ""quoted"" one",b\n')
    pyarrow.parquet.write_table(table(), tmp_path / "t.parquet")
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink, pa.ipc.new_file(sink, table().schema) as writer:
        writer.write_table(table())
    (tmp_path / "folder").mkdir()
    pyarrow.parquet.write_table(table(), tmp_path / "folder" / "train.parquet")
    specs = [str(tmp_path / f"t.{suffix}") for suffix in ("jsonl", "csv", "parquet", "arrow")]
    for spec in [*specs, f"hf:{tmp_path / 'folder'}"]:
        corpus = open_spec(spec, DataConfig())
        assert corpus.count() == len(list(corpus.pairs())) >= 3
    assert open_spec("toy", DataConfig()).count() == 40_000


def test_counting_does_not_tokenise_or_decode(write: Write) -> None:
    path = str(write("latin1.txt", "zw\u00f6lf\n".encode("latin-1")))
    assert training_corpus(DataConfig(src=[path], tgt=[path])).count() == 1


def test_a_damaged_table_cannot_be_counted(write: Write) -> None:
    corpus = open_spec(str(write("t.parquet", b"PAR1 and no more")), DataConfig())
    with pytest.raises(DataError, match=r"cannot read .*t\.parquet"):
        corpus.count()
