"""The columns that hold the two sides: found by configured name, by common name, or because there are only two."""

from pathlib import Path

import pyarrow as pa
import pytest
from helpers.tables import LANGUAGES, jsonl, pairs_of
from helpers.written_files import Write
from pyarrow import parquet

from tfm.data.config import DataConfig
from tfm.data.corpus import Pair
from tfm.system.errors import DataError


def test_translation_field(write: Write) -> None:
    path = write("a.jsonl", jsonl([{"id": 1, "translation": {"en": "a dog", "de": "ein Hund"}}]))
    assert pairs_of(path, LANGUAGES) == [("ein Hund", "a dog")]
    assert pairs_of(path) == [("a dog", "ein Hund")], "without column names: in their order"


@pytest.mark.parametrize(
    ("columns", "config", "expected"),
    [
        (["tgt", "src"], DataConfig(), ("text 1", "text 0")),
        (["other", "target", "source"], DataConfig(), ("text 2", "text 1")),
        (["english", "german"], DataConfig(), ("text 0", "text 1")),
        (["en", "fr", "de"], LANGUAGES, ("text 2", "text 0")),
    ],
)
def test_columns_are_found(write: Write, columns: list[str], config: DataConfig, expected: Pair) -> None:
    row = {column: f"text {index}" for index, column in enumerate(columns)}
    assert pairs_of(write("a.jsonl", jsonl([row])), config) == [expected]
    assert pairs_of(write("a.csv", ",".join(columns) + "\n" + ",".join(row.values()) + "\n"), config) == [expected]


def test_a_table_beside_a_memory_need_not_call_its_columns_by_their_languages(write: Write) -> None:
    named = DataConfig(src_column="xx", tgt_column="yy-Latn")
    assert pairs_of(write("a.jsonl", jsonl([{"tgt": "b", "src": "a"}])), named) == [("a", "b")]
    with pytest.raises(DataError, match="no columns 'xx' and 'yy-Latn' among 'a', 'b'"):
        pairs_of(write("b.jsonl", jsonl([{"a": "b", "b": "a"}])), named)
    with pytest.raises(DataError, match="no columns 'Englsh' and 'tgt' among"):
        pairs_of(write("a.jsonl", jsonl([{"tgt": "b", "src": "a"}])), DataConfig(src_column="Englsh"))


@pytest.mark.parametrize(("columns", "config"), [(["src", "a", "b"], DataConfig()), (["en", "fr"], LANGUAGES)])
def test_columns_that_are_not_there_are_listed(write: Write, columns: list[str], config: DataConfig) -> None:
    path = write("a.csv", ",".join(columns) + "\n")
    with pytest.raises(
        DataError,
        match=f"no columns .* among {', '.join(map(repr, columns))}; name both, or number them from 1: --src-column",
    ):
        pairs_of(path, config)


@pytest.mark.parametrize("wanted", [("fr", "en"), ("3", "2"), ("FR", "2")])
def test_every_kind_of_table_has_the_same_columns(write: Write, tmp_path: Path, wanted: tuple[str, str]) -> None:
    rows = [["1", "a cat", "un chat"], ["2", "a dog", "un chien"]]
    names = ["id", "en", "fr"]
    records = [dict(zip(names, row, strict=True)) for row in rows]
    lines = [names, *rows]
    paths = [
        write("a.tsv", "".join("\t".join(line) + "\n" for line in lines)),
        write("a.csv", "".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in lines)),
        write("a.jsonl", jsonl(records)),
        tmp_path / "a.parquet",
        tmp_path / "a.arrow",
    ]
    table = pa.Table.from_pylist(records)
    parquet.write_table(table, paths[3])
    with pa.ipc.new_file(paths[4], table.schema) as writer:
        writer.write_table(table)
    config = DataConfig(src_column=wanted[0], tgt_column=wanted[1])
    for path in paths:
        assert pairs_of(path, config) == [("un chat", "a cat"), ("un chien", "a dog")], path
        with pytest.raises(DataError, match="no columns 'src' and 'tgt' among 'id', 'en', 'fr'"):
            pairs_of(path)


def test_a_column_of_numbers_is_not_one_of_the_only_two(write: Write) -> None:
    for name, content in (("a.jsonl", '{"id": 1, "text": "a cat"}\n'), ("a.csv", "id,text\n1,a cat\n")):
        with pytest.raises(DataError, match="no columns 'src' and 'tgt' among 'id', 'text'"):
            pairs_of(write(name, content))
    with pytest.raises(DataError, match=r"must be strings: 'nr\.' and 'text' are taken for them"):
        pairs_of(write("b.jsonl", '{"nr.": 1, "text": "a cat"}\n'))
