"""The toy language as a SPEC."""

import pytest

from tfm.data.config import DataConfig
from tfm.data.corpus import open_spec
from tfm.data.formats.toy import TOY_SIZES


@pytest.mark.parametrize("split", TOY_SIZES)
def test_toy(split: str) -> None:
    assert sum(1 for _ in open_spec("toy", DataConfig(), split).pairs()) == TOY_SIZES[split]
