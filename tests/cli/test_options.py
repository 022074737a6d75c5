"""Help texts that repeat what other modules know; written out, so that `--help` need not load those modules."""

from typing import get_args, get_type_hints

from tfm.cli.evaluate import evaluate
from tfm.cli.options import Data
from tfm.data.formats import SUFFIXES
from tfm.data.formats.arrow import DISK, HUB
from tfm.data.formats.text import TOY_LANGUAGE
from tfm.engine.evaluation.scores import METRICS


def test_the_help_of_data_names_every_format() -> None:
    text = get_args(Data)[1].help
    assert f"({' '.join(SUFFIXES)})" in text
    assert all(known.notation in text for known in (HUB, DISK, TOY_LANGUAGE))


def test_the_help_of_evaluate_names_every_metric() -> None:
    text = get_args(get_type_hints(evaluate, include_extras=True)["metric"])[1].help
    assert text.startswith(f"{', '.join(METRICS[:-1])} or {METRICS[-1]};")
