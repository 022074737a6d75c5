"""Curves of runs: drawn whatever a run was scored by, and however little it has logged; seeds as a band."""

from pathlib import Path
from typing import Any

import pytest
from helpers.command import write_lines

from tfm.configs import parse_config
from tfm.engine.runs.curves import compared, metric_of, panels, picture, score_in_words
from tfm.engine.runs.directory import RunDirectory
from tfm.seq2seq.training.config import TrainingConfig
from tfm.system.errors import DataError
from tfm.system.files import json_line

TRAIN: list[dict[str, Any]] = [{"kind": "train", "step": step, "loss": 5.0 / step} for step in (1, 2, 3)]


def validations(*names: str) -> list[dict[str, Any]]:
    return [
        {"kind": "validation", "step": step, "loss": 1.0, "score": 10.0 * step} | dict.fromkeys(names, 10.0 * step)
        for step in (2, 3)
    ]


@pytest.mark.parametrize(
    "records",
    [
        TRAIN,
        TRAIN[:1],
        TRAIN + validations(),
        TRAIN + validations("bleu", "chrf", "exact"),
        TRAIN + validations("retrieval"),
        TRAIN + validations("accuracy"),
    ],
)
def test_each_kind_of_run_is_drawn(records: list[dict[str, Any]]) -> None:
    drawn = panels(records, TrainingConfig())
    assert picture(drawn).startswith(b"\x89PNG")
    assert list(drawn[0].curves[1].steps) == [record["step"] for record in records if record["kind"] == "train"]


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ({"bleu": 10.24, "chrf": 30.0, "score": 10.24}, "BLEU 10.2"),
        ({"bleu": 10.24, "exact": 30.0, "score": 30.0}, "30.0 % exact"),
        ({"loss": 2.5, "score": -2.5}, "loss 2.500"),
    ],
)
def test_a_score_is_said_with_its_name(figures: dict[str, float], words: str) -> None:
    assert score_in_words(figures) == words


def a_run(path: Path, losses: dict[int, float], training: dict[str, Any]) -> RunDirectory:
    run = RunDirectory(path)
    path.mkdir()
    run.write_configuration(parse_config({"training": training}))
    records = [{"step": s, "kind": "validation", "epoch": 1, "loss": x, "score": -x} for s, x in losses.items()]
    write_lines(run.metrics.path, [json_line(record) for record in records])
    return run


def test_seeds_are_a_band_and_other_settings_a_curve_of_their_own(tmp_path: Path) -> None:
    runs = [
        a_run(tmp_path / "a", {10: 4.0, 20: 3.0, 30: 2.5}, {"seed": 1, "max_steps": 30}),
        a_run(tmp_path / "other", {10: 9.0}, {"seed": 2, "max_steps": 30, "learning_rate": 0.5}),
        a_run(tmp_path / "b", {10: 5.0, 20: 2.0}, {"seed": 2, "max_steps": 30, "log_every": 7}),
    ]
    (panel,) = compared(runs)
    band, single = panel.curves
    assert band.label == f"{tmp_path / 'a'} and 1 more seed"
    assert (band.steps, band.values, band.lowest, band.highest) == ([10, 20], [4.5, 2.5], [4.0, 2.0], [5.0, 3.0])
    assert (single.label, single.values, single.lowest) == (str(tmp_path / "other"), [9.0], ())
    assert picture([panel]).startswith(b"\x89PNG")


def test_what_nobody_has_is_said(tmp_path: Path) -> None:
    run = a_run(tmp_path / "a", {10: 4.0}, {})
    with pytest.raises(DataError, match="has the figure bleu"):
        compared([run], "bleu")
    with pytest.raises(DataError, match="no validation yet"):
        compared([a_run(tmp_path / "new", {}, {})])
    assert metric_of({"score": 3.0, "loss": 1.0}) == "loss"
