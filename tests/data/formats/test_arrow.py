"""Arrow and Parquet files, folders of save_to_disk, and SPECs of the hub."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from datasets import Dataset, DatasetDict
from helpers.tables import LANGUAGES, PAIRS, jsonl, pairs_of, table
from helpers.written_files import Write

from tfm.data.config import DataConfig
from tfm.data.corpus import dev_corpus, open_spec
from tfm.data.formats import parse_hub_spec
from tfm.system.errors import DataError, UsageError


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


def test_one_table_and_a_table_for_each_split(tmp_path: Path) -> None:
    rows = Dataset(table())
    rows.save_to_disk(str(tmp_path / "one"))
    assert pairs_of(tmp_path / "one") == PAIRS
    DatasetDict({"train": rows, "validation": rows.select([1])}).save_to_disk(str(tmp_path / "both"))
    assert pairs_of(tmp_path / "both") == PAIRS
    dev = open_spec(str(tmp_path / "both"), DataConfig(), "dev")
    assert list(dev.pairs()) == [PAIRS[1]]
    assert dev.count() == 1
    with pytest.raises(UsageError, match=r"both has no test, but train, validation; name one: .*both/NAME"):
        open_spec(str(tmp_path / "both"), DataConfig(), "test")
    assert pairs_of(tmp_path / "both" / "validation") == [PAIRS[1]]


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
