"""What all formats have in common: a SPEC is recognised, missing files are noticed, and counting is reading."""

import bz2
import gzip
import itertools
import json
import lzma
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from datasets import Dataset
from helpers.tables import PAIRS, table
from helpers.written_files import Write

from tfm.data.config import DataConfig
from tfm.data.corpus import format_of, open_corpus, open_spec
from tfm.data.formats import SUFFIXES
from tfm.data.formats.arrow import open_hub
from tfm.data.formats.format import Format
from tfm.data.formats.gettext import PO
from tfm.data.formats.tables import JSONL, TSV
from tfm.data.formats.text import open_toy
from tfm.data.formats.tmx import TMX
from tfm.data.formats.xliff import XLIFF
from tfm.system.errors import DataError, UsageError


def test_missing_file_is_noticed_at_once(write: Write) -> None:
    src = write("train.de", "a\n")
    with pytest.raises(
        DataError,
        match=r"cannot read .*train\.en: no such file \(did you mean .*train\.de\?\)",
    ):
        open_corpus(DataConfig(src=[str(src)], tgt=[str(src.with_name("train.en"))]))
    with pytest.raises(DataError, match=r"cannot read .*trian\.tsv: no such file"):
        open_spec(str(src.with_name("trian.tsv")), DataConfig())


def test_training_refuses_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tsv")
    with pytest.raises(DataError, match="can be read only once"):
        open_spec(str(tmp_path / "pipe.tsv"), DataConfig())


LINES = {
    "plain": b"a\tb\nc\td\n",
    "last line open": b"a\tb\nc\td",
    "blank lines": b"\n\na\tb\n\n",
    "empty": b"",
    "byte-order mark": b"\xef\xbb\xbfa\tb\r\nc\td\r\n",
    "overlong line": b"a\tb" + b"x" * 2_500_000 + b"\nc\td\n",
}


def contents() -> Iterator[Any]:
    """All contents in all forms; an overlong line takes seconds, and is read the same way in each form."""
    for (name, content), compress in itertools.product(
        LINES.items(), (None, gzip.compress, bz2.compress, lzma.compress)
    ):
        slow = name == "overlong line" and compress in (bz2.compress, lzma.compress)
        form = compress.__module__ if compress else "plain"
        yield pytest.param(content, compress, id=f"{name}-{form}", marks=pytest.mark.slow if slow else ())


@pytest.mark.parametrize(("content", "compress"), list(contents()))
def test_count_of_lines(write: Write, content: bytes, compress: Callable[[bytes], bytes] | None) -> None:
    packed = compress(content) if compress and content else content
    path, lines = write("pairs.tsv", packed), str(write("lines.txt", packed))
    for corpus in (open_spec(str(path), DataConfig()), open_corpus(DataConfig(src=[lines] * 2, tgt=[lines] * 2))):
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


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("toy", open_toy),
        ("toy.tsv", TSV),
        ("./toy.tsv.gz", TSV),
        ("a.csv.tsv", TSV),
        ("A.TSV.GZ", TSV),
        ("a.tsv.zst", TSV),
        ("memory.tmx.gz", TMX),
        ("de.po", PO),
        ("a.sdlxliff", XLIFF),
        ("archive.tsv.xz.bz2", TSV),
        ("folder.csv/pairs.jsonl", JSONL),
        ("hf:owner/pairs.jsonl", open_hub),
        ("hf:toy", open_hub),
    ],
)
def test_a_spec_is_recognised(spec: str, expected: Format) -> None:
    assert format_of(spec) is expected


@pytest.mark.parametrize("spec", ["", "toys", "Toy", "a.gz", ".gz", "tsv", "a.tsv.old", "HF:name", "a.tsv/b"])
def test_what_fits_no_format_is_told_all_of_them(spec: str) -> None:
    with pytest.raises(UsageError) as refused:
        format_of(spec)
    notations = [*SUFFIXES, "hf:NAME", "a folder written by save_to_disk", "toy"]
    assert all(word in str(refused.value) for notation in notations for word in notation.split())


@pytest.mark.parametrize(
    ("spec", "how"),
    [("a.tsv.zip", "unpack it"), ("a.tsv.rar", "unpack it"), ("app.strings", "Xcode"), ("a.md", "md2po")],
)
def test_a_file_without_pairs_is_told_how_its_texts_come_out(spec: str, how: str) -> None:
    with pytest.raises(DataError, match=f"is not plain text: its lines are not sentences; .*{how}"):
        format_of(spec)


def test_every_suffix_has_its_format() -> None:
    for suffix in SUFFIXES:
        assert callable(format_of(f"pairs{suffix}"))


def test_the_table_loads_nothing_heavy() -> None:
    """So that whatever shows the formats, and whatever reads plain text, starts at once."""
    code = "import sys, tfm.data.corpus; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()
    assert not {"babel", "lxml", "polib", "numpy", "pyarrow", "datasets", "sentencepiece", "torch"} & set(loaded)


def written(folder: Path, kind: str, pairs: list[tuple[str, str]]) -> DataConfig:
    """The configuration that reads these pairs from a new folder."""
    folder.mkdir()
    rows = Dataset(pa.table({"src": [s for s, _ in pairs], "tgt": [t for _, t in pairs]}))
    match kind:
        case "two files":
            for side, name in enumerate(("a.src", "a.tgt")):
                (folder / name).write_text("".join(pair[side] + "\n" for pair in pairs))
            return DataConfig(src=[str(folder / "a.src")], tgt=[str(folder / "a.tgt")])
        case "text":
            (folder / "a.txt").write_text("".join(pair[1] + "\n" for pair in pairs))
            return DataConfig(text=[str(folder / "a.txt")])
        case "tsv":
            (folder / "a.tsv").write_text("".join("\t".join(pair) + "\n" for pair in pairs))
            return DataConfig(data=[str(folder / "a.tsv")])
        case _:
            rows.save_to_disk(str(folder / "saved"))
            return DataConfig(data=[str(folder / "saved")])


OLD, NEW = [(f"alt {i}", f"old {i}") for i in range(9)], [(f"neu {i}", f"new {i}") for i in range(9)]


@pytest.mark.parametrize("kind", ["two files", "text", "tsv", "saved by datasets"])
@pytest.mark.parametrize("moment", ["before it is read", "while it is read", "between two readings"])
@pytest.mark.parametrize("deed", ["replaced", "removed", "appended to"])
def test_data_that_change_under_way_are_an_error(tmp_path: Path, kind: str, moment: str, deed: str) -> None:
    """Never the hash of one text over another one, nor one half of each."""
    folder = tmp_path / "train"
    written(tmp_path / "other", kind, NEW)
    corpus = open_corpus(written(folder, kind, OLD))

    def do() -> None:
        if deed == "appended to":
            for path in folder.rglob("a.*" if kind != "saved by datasets" else "state.json"):
                path.write_bytes(path.read_bytes() + b"\n")
            return
        folder.rename(tmp_path / "before")
        if deed == "replaced":
            (tmp_path / "other").rename(folder)

    if moment == "between two readings":
        assert len(list(corpus.pairs())) == len(OLD)
    if moment == "while it is read":
        stream = corpus.pairs()
        next(stream)
        do()
    else:
        do()
        stream = corpus.pairs()
    with pytest.raises(DataError, match=r"was replaced, moved or written to while .* run the same command again"):
        list(stream)


def test_data_that_stay_are_read_as_often_as_need_be(tmp_path: Path) -> None:
    for kind in ("two files", "tsv", "saved by datasets"):
        corpus = open_corpus(written(tmp_path / kind, kind, OLD))
        assert list(corpus.pairs()) == list(corpus.pairs()) == OLD


def test_named_languages() -> None:
    assert DataConfig().languages == ("", "")
    assert DataConfig(src_language="en", tgt_language="pt-BR").languages == ("en", "pt-BR")
    assert DataConfig(tgt_language="zh_Hant_TW").languages == ("", "zh_Hant_TW")
    assert DataConfig(src_column="en", tgt_column="de").languages == ("en", "de")
    assert DataConfig(src_column="en", tgt_column="de", tgt_language="fr").languages == ("en", "fr")
    for columns in (("english", "german"), ("src", "de-"), ("2", "3"), ("src", "tgt")):
        assert DataConfig(src_column=columns[0], tgt_column=columns[1]).languages == ("", "")
    with pytest.raises(ValueError, match=r"src_language must be the code of a language, .* but is '12'"):
        DataConfig(src_language="12")


def test_named_languages_make_another_corpus(write: Write) -> None:
    path = write("a.tsv", "a\tb\n")
    identities = {open_spec(str(path), DataConfig(tgt_language=code)).identity for code in ("", "de", "fr")}
    assert len(identities) == 3
