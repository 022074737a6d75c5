"""Help texts that repeat what other modules know; written out, so that `--help` need not load those modules."""

from typing import get_args, get_type_hints

from tfm.cli.evaluate import evaluate
from tfm.cli.options import Data
from tfm.data.formats import SUFFIXES
from tfm.engine.evaluation.scores import METRICS


def test_the_help_of_data_names_every_format() -> None:
    text = get_args(Data)[1].help
    assert f"({' '.join(SUFFIXES)})" in text
    assert all(notation in text for notation in ("hf:NAME", "a folder written by save_to_disk", "toy"))


def test_the_help_of_evaluate_names_every_metric() -> None:
    text = get_args(get_type_hints(evaluate, include_extras=True)["metric"])[1].help
    assert text.startswith(f"{', '.join(METRICS[:-1])} or {METRICS[-1]};")
