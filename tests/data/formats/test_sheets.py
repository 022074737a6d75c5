"""Spreadsheets, written by another library or by hand."""

import gzip
import io
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from helpers.tables import PAIRS, pairs_of
from helpers.written_files import Write

from tfm.data.config import DataConfig
from tfm.data.corpus import open_spec
from tfm.system.errors import DataError, EnvironmentFault

pytest.importorskip("python_calamine")
Sheet = list[list[object]]


def xlsx(*sheets: Sheet) -> bytes:
    """A workbook as Excel writes one, with the text in its cells."""
    kinds = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"

    def cell(value: object) -> str:
        if isinstance(value, int | float):
            return f"<c><v>{value}</v></c>"
        return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(str(value))}</t></is></c>' if value else "<c/>"

    names = range(1, len(sheets) + 1)
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kinds}.sheet.main+xml"/>'
        + "".join(f'<Override PartName="/xl/s{n}.xml" ContentType="{kinds}.worksheet+xml"/>' for n in names)
        + "</Types>",
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1"'
        f' Type="{relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{relations}"><sheets>'
        + "".join(f'<sheet name="Sheet {n}" sheetId="{n}" r:id="r{n}"/>' for n in names)
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
        + "".join(f'<Relationship Id="r{n}" Type="{relations}/worksheet" Target="s{n}.xml"/>' for n in names)
        + "</Relationships>",
    }
    for number, sheet in zip(names, sheets, strict=True):
        rows = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in sheet)
        parts[f"xl/s{number}.xml"] = f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>'
    return zipped(parts)


def ods(*sheets: Sheet) -> bytes:
    """A spreadsheet of OpenDocument."""
    namespaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
    )

    def cell(value: object) -> str:
        if isinstance(value, int | float):
            return f'<table:table-cell office:value-type="float" office:value="{value}"/>'
        text = f"<text:p>{escape(str(value))}</text:p>"
        whole = f'<table:table-cell office:value-type="string">{text}</table:table-cell>'
        return whole if value else "<table:table-cell/>"

    tables = "".join(
        f'<table:table table:name="Sheet {number}">'
        + "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in sheet)
        + "</table:table>"
        for number, sheet in enumerate(sheets, start=1)
    )
    mime = "application/vnd.oasis.opendocument.spreadsheet"
    content = f"<office:document-content {namespaces}><office:body><office:spreadsheet>{tables}"
    content += "</office:spreadsheet></office:body></office:document-content>"
    manifest = 'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"'
    parts = {"mimetype": mime, "META-INF/manifest.xml": f"<manifest:manifest {manifest}/>", "content.xml": content}
    return zipped(parts)


def zipped(parts: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text if name == "mimetype" else f'<?xml version="1.0" encoding="UTF-8"?>\n{text}')
    return stream.getvalue()


BOOKS = {"a.xlsx": xlsx, "a.ods": ods}


@pytest.mark.parametrize("name", BOOKS)
def test_pairs_are_read(write: Write, name: str) -> None:
    rows: Sheet = [["src", "tgt"], *([src, tgt] for src, tgt in PAIRS)]
    path = write(name, BOOKS[name](rows))
    assert pairs_of(path) == PAIRS
    assert pairs_of(write(f"{name}.gz", gzip.compress(path.read_bytes()))) == PAIRS


@pytest.mark.parametrize("name", BOOKS)
def test_columns_are_found_as_in_a_csv_and_the_sheet_is_named(write: Write, name: str) -> None:
    rows: Sheet = [["id", "en", "fr", ""], [1, "a cat", "un chat", ""], [], [2, 3, 4.5, "x"]]
    path = write(name, BOOKS[name]([], rows, [["src", "tgt"], ["other", "sheet"]]))
    corpus = open_spec(str(path), DataConfig(src_column="en", tgt_column="fr"))
    assert list(corpus.pairs()) == [("a cat", "un chat"), ("", ""), ("3", "4.5")]
    (remark,) = corpus.remarks
    assert f"{path}: sheet 'Sheet 2'" in remark and "source in column 2, target in column 3" in remark
    with pytest.raises(DataError, match=r"among 'id', 'en', 'fr'.*below: '1', 'a cat'"):
        pairs_of(path)


@pytest.mark.parametrize("name", BOOKS)
def test_what_is_none_is_said(write: Write, name: str) -> None:
    with pytest.raises(DataError, match=f"cannot read .*{name}"):
        pairs_of(write(name, b"PK\x03\x04 and no more"))
    with pytest.raises(DataError, match="has no row"):
        pairs_of(write(name, BOOKS[name]([])))


def test_without_the_library_its_extra_is_named(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    real = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name == "python_calamine":
            raise ImportError(name)
        return real(name, *rest)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(builtins, "__import__", without)
    path = write("a.xlsx", xlsx([["src", "tgt"]]))
    with pytest.raises(EnvironmentFault, match=r"pip install 'tfm\[tables\]'; or save the sheet as .csv"):
        pairs_of(Path(path))
