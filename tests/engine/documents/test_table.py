"""Tables: of a row that is filled the target alone is written anew, in the manner of the file."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.written_files import Write
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.config import DataConfig
from tfm.engine.documents.document import RawDocument
from tfm.engine.documents.table import CsvDocument, JsonlDocument, TsvDocument, with_value

OPENS: dict[str, Callable[[Path, DataConfig], RawDocument]] = {
    ".csv": CsvDocument,
    ".tsv": TsvDocument,
    ".jsonl": JsonlDocument,
}


def filled(path: Path, translate: Callable[[str], str] = str.upper, encoding: str = "") -> bytes:
    document = OPENS[path.suffix](path, DataConfig(encoding=encoding))
    document.fields.fill([translate(text) for text in document.fields.texts])
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("a,", "a,A"),
        ("a", "a,A"),
        ('"a",""', '"a","A"'),
        ('"a",', '"a","A"'),
        ('a,""', 'a,"A"'),
        ('"a, b",', '"a, b","A, B"'),
        ('"a ""b""",,"x",  "y"', '"a ""b""","A ""B""","x",  "y"'),
        ("a,,  kept  ,'x'", "a,A,  kept  ,'x'"),
    ],
)
def test_a_field_is_quoted_as_its_row_is(write: Write, row: str, expected: str) -> None:
    path = write("a.csv", f"src,tgt,c,d\r\n{row}\r\ndone,fertig,,\r\n")
    assert filled(path) == f"src,tgt,c,d\r\n{expected}\r\ndone,fertig,,\r\n".encode()


CELLS = st.text(alphabet='ab", ü中\u2028', max_size=6).map(str.strip)
NOTES = st.text(alphabet='ab", \nü', max_size=6)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(CELLS, st.sampled_from(["", "done"]), NOTES), min_size=1, max_size=6),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_any_csv_differs_in_the_filled_fields_alone(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str, str]],
    quoting: Any,
    end: str,
    marked: bool,
) -> None:
    rows = [(src, tgt, note.replace("\n", end)) for src, tgt, note in rows]
    stream = io.StringIO()
    writer = csv.writer(stream, quoting=quoting, lineterminator=end)
    writer.writerows([("src", "tgt", "note"), *rows])
    content = ("\ufeff" * marked + stream.getvalue()).encode()
    path = tmp_path_factory.mktemp("t") / "a.csv"
    path.write_bytes(content)
    if not any(cell.strip() for cell, _, _ in rows):
        return
    assert filled(path, lambda text: "") == content
    found = filled(path, lambda text: 'x "y", z')
    put = [src.replace(src.strip(), 'x "y", z') if src.strip() else "" for src, _, _ in rows]
    wanted = [(src, tgt or new, note) for (src, tgt, note), new in zip(rows, put, strict=True)]
    read = list(csv.reader(io.StringIO(found.decode().removeprefix("\ufeff"), newline="")))
    assert [tuple(row) for row in read[1:]] == wanted
    untouched = [line for line in content.split(b"\n") if b"done" in line]
    assert [line for line in found.split(b"\n") if b"done" in line] == untouched


@pytest.mark.parametrize("suffix", OPENS)
@pytest.mark.parametrize("encoding", ["utf-16", "cp1251", "utf-8-sig"])
def test_a_table_is_written_in_its_encoding(write: Write, suffix: str, encoding: str) -> None:
    rows = {
        ".csv": "src,tgt\r\nкот,\r\nдом,house\r\n",
        ".tsv": "кот\t\r\nдом\thouse\r\n",
        ".jsonl": '{"src": "кот", "tgt": ""}\r\n{"src": "дом", "tgt": "house"}\r\n',
    }[suffix]
    path = write(f"a{suffix}", rows.encode(encoding))
    named = encoding if encoding == "cp1251" else ""
    assert filled(path, lambda text: "", named) == path.read_bytes()
    expected = {".csv": ("кот,", "кот,КОТ"), ".tsv": ("кот\t", "кот\tКОТ"), ".jsonl": ('""', '"КОТ"')}[suffix]
    assert filled(path, encoding=named) == rows.replace(*expected).encode(encoding)
    if named:
        assert filled(path, lambda text: "日本", named) == path.read_bytes(), "which cp1251 has not"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ('{"id": 2, "src": "c"}\n{"id": 1, "src": "a", "trg": "b"}\n', '{"id": 2, "src": "c", "trg": "C"}\n'),
        ('{"id": 2, "src": "c"}\n{"id": 1}\n', '{"id": 2, "src": "c", "tgt": "C"}\n'),
        ('{"en": "c"}\n{"en": "a", "de": "b"}\n', '{"en": "c", "de": "C"}\n'),
    ],
)
def test_the_field_that_is_filled_is_the_one_that_other_objects_have(write: Write, rows: str, expected: str) -> None:
    assert filled(write("a.jsonl", rows)).decode() == expected + rows.partition("\n")[2]


@pytest.mark.parametrize("rows", ["src,tgt\n", "src,tgt\r\na,b\r\n", "\ufeffsrc;tgt;x\na;b;\n\n"])
def test_nothing_to_fill_is_no_error(write: Write, rows: str) -> None:
    assert filled(write("a.csv", rows)) == rows.encode()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
)


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(st.text(max_size=4), VALUES, max_size=5),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")]),
    st.text(max_size=4),
)
def test_any_object_differs_in_one_value_alone(
    members: dict[str, Any], inside: bool, ascii_only: bool, separators: tuple[str, str], key: str
) -> None:
    whole: dict[str, Any] = {"a": [1, "}"], "translation": members, "b": {"translation": 0}} if inside else members
    line = json.dumps(whole, ensure_ascii=ascii_only, separators=separators)
    found = with_value(line, ["translation", key] if inside else [key], '"new"')
    expected = {**whole, "translation": {**members, key: "new"}} if inside else {**members, key: "new"}
    assert json.loads(found) == expected and list(json.loads(found)) == list(expected)
    if key in members or len(members) > 1:  # else it does not show what stands between them
        assert found == json.dumps(expected, ensure_ascii=line.isascii(), separators=separators)


def test_an_object_that_has_a_key_twice_gets_the_value_that_counts() -> None:
    assert with_value('{"tgt": 1, "tgt": ""}', ["tgt"], '"x"') == '{"tgt": 1, "tgt": "x"}'
    assert with_value("  { }", ["tgt"], '"x"') == '  {"tgt": "x" }'
