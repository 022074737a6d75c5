"""Arrow and Parquet tables."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from helpers.tables import PAIRS, pairs_of, table

from tfm.data.config import DataConfig
from tfm.data.corpus import open_spec
from tfm.system.errors import DataError

Write = Callable[[str, str | bytes], Path]


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


def test_a_damaged_table_cannot_be_counted(write: Write) -> None:
    corpus = open_spec(str(write("t.parquet", b"PAR1 and no more")), DataConfig())
    with pytest.raises(DataError, match=r"cannot read .*t\.parquet"):
        corpus.count()
