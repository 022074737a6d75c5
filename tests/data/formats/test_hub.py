"""Data sets of the hub: their names, and local folders of the same kind."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet
import pytest
from helpers.tables import LANGUAGES, PAIRS, jsonl, pairs_of, table

from tfm.data.config import DataConfig
from tfm.data.corpus import dev_corpus, open_spec
from tfm.data.formats.hub import parse_hub_spec
from tfm.system.errors import DataError

Write = Callable[[str, str | bytes], Path]


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
