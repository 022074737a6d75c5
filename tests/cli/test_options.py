"""Help texts that repeat what other modules know; written out, so that `--help` need not load those modules."""

from typing import get_args

from tfm.cli.options import Data
from tfm.data.formats import FORMATS, SUFFIXES


def test_the_help_of_data_names_every_format() -> None:
    text = get_args(Data)[1].help
    assert f"({' '.join(SUFFIXES)})" in text
    assert all(known.notation in text for known in FORMATS)
