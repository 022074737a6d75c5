"""Folders of the library `datasets`."""

from pathlib import Path

import pytest
from datasets import Dataset, DatasetDict
from helpers.tables import PAIRS, pairs_of, table

from tfm.data.config import DataConfig
from tfm.data.corpus import open_spec
from tfm.system.errors import UsageError


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
