"""What the figures of a run are said to mean."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.command import write_lines

from tfm.configs import RunConfig, parse_config
from tfm.engine.runs.checkpoint import Purpose
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.runs.verdict import verdict
from tfm.seq2seq.training.progress import Progress
from tfm.system.files import json_line

FILES = {"src": ["train.en"], "tgt": ["train.de"]}
PATIENT = parse_config({"data": FILES, "training": {"schedule": "trapezoid", "patience": 3}})
FIXED = parse_config({"data": FILES})
Said = Callable[..., list[str]]


def validations(losses: list[float], bleu: list[float] | None = None) -> list[dict[str, Any]]:
    scores = bleu or [30 - loss for loss in losses]
    rows = enumerate(zip(losses, scores, strict=True), start=1)
    records = [
        {"kind": "validation", "step": 100 * i, "loss": loss, "bleu": score, "score": score, "exact": 1.0}
        for i, (loss, score) in rows
    ]
    return [{"kind": "train", "step": 50, "loss": 9.0}, *records]


@pytest.fixture
def said(in_tmp_path: Path) -> Said:
    """The verdict on a run in `my run` with these records; that its last line is a command is tested each time."""
    del in_tmp_path
    run = RunDirectory("my run")
    run.path.mkdir()

    def said(
        records: list[dict[str, Any]],
        settings: RunConfig = FIXED,
        *,
        purpose: Purpose = "translator",
        **figures: Any,
    ) -> list[str]:
        write_lines(run.metrics.path, [json_line({"epoch": 1, **record}) for record in records])
        step = records[-1]["step"] if records else 1
        limit = figures.pop("limit", step)
        *lines, last = verdict(run, settings, purpose, Progress(**{"step": step, "epoch": 5, **figures}), limit)
        words = shlex.split(last.removeprefix("next: "))
        assert last.startswith("next: tfm ") and "my run" in " ".join(words)
        return [*lines, last]

    return said


def test_overfitting_is_named_with_the_step_at_which_it_began(said: Said) -> None:
    lines = said(validations([4.0, 3.0, 2.5, 2.8, 3.1], [5, 20, 25, 26, 24]))
    assert "with many grave errors (BLEU 26.0, greedy)" in lines[0]
    assert lines[1].startswith("overfitting since step 300: the validation loss was 2.500 there and is 3.100 now")
    assert "the checkpoint of step 400" in lines[1] and "more pairs" in lines[2]
    assert lines[3] == (
        "next: tfm train --config 'my run/config.yaml' --set model.dropout=0.2 --run 'my run-dropout-0.2'"
    )


def test_a_run_that_was_still_improving_needs_more_updates(said: Said) -> None:
    lines = said(validations([4.0, 3.5, 3.2, 3.0, 2.9]))
    assert lines[1:] == [
        "validation was still improving when the updates ran out: more of them help",
        "next: tfm train --config 'my run/config.yaml' --max-steps 1000 --run 'my run-longer'",
    ]
    fine_tuned = [{"kind": "validation", "step": 0, "loss": 4.5, "score": 1.0}, *validations([4.0, 3.5, 3.2, 3.0, 2.9])]
    assert "--init-from 'my run' --max-steps 1000" in said(fine_tuned)[-1]


def test_a_run_that_had_stopped_improving_needs_something_else(said: Said) -> None:
    lines = said(validations([4.0, 3.0, 2.5, 2.499, 2.5], [5, 20, 25, 25, 25]), epoch=80)
    assert lines[1].startswith("validation had stopped improving")
    assert lines[2] == (
        "more pairs help most (each was seen 80 times); or a model of a similar corpus to start from: --init-from"
    )
    assert lines[3] == "next: tfm translate --run 'my run'"
    good = validations([3.0, 2.0, 2.0, 2.0, 2.0], [50.0] * 5)
    assert "its worst sentences" in said(good)[2]
    held = parse_config({"data": FILES | {"dev_src": ["a b.en"], "dev_tgt": ["a b.de"]}})
    assert said(good, held)[3] == "next: tfm evaluate --run 'my run' --src 'a b.en' --tgt 'a b.de' --worst 5"
    assert said(good, parse_config({"data": {"data": ["x"], "dev": ["toy"]}}))[3].endswith("--data toy --worst 5")


def test_patience_knows_whether_it_was_used_up(said: Said) -> None:
    records = validations([4.0, 3.5, 3.2, 3.0, 2.9])
    assert "stopped improving" in said(records, PATIENT, falling_since=300)[1]
    assert "still improving" in said(records, PATIENT)[1]
    assert "stopped improving" in said(validations([4.0, 3.0, 2.5, 2.48, 2.52]), PATIENT)[1]


@pytest.mark.parametrize("limit", [None, 900])
def test_a_run_under_way_goes_on(said: Said, limit: int | None) -> None:
    assert said(validations([4.0, 3.0]), limit=limit)[1:] == [
        "training has not come to its end; unless it is under way, this goes on:",
        "next: tfm train --run 'my run'",
    ]


def test_other_machines_and_runs_without_a_validation(said: Said) -> None:
    assert said([])[0] == "not validated yet: nothing can be said"
    kinds: list[tuple[Purpose, dict[str, float], str]] = [
        ("language model", {"ppl_per_byte": 2.5}, "among 2.50 equally likely ones"),
        ("sentence encoder", {"retrieval": 91.2}, "91 % of the validation sentences find their partner"),
        ("translator", {}, "best validation score: -1.000"),
    ]
    for purpose, figures, words in kinds:
        records = [{"kind": "validation", "step": step, "loss": 1.0, "score": -1.0, **figures} for step in (5, 10)]
        assert words in said(records, purpose=purpose)[0]
    exact = {"kind": "validation", "step": 5, "loss": 1.0, "score": 99.0, "bleu": 99.0, "exact": 95.0}
    assert said([exact])[0].endswith("(BLEU 99.0, greedy); 95 % come out exactly as in the references")


def test_a_run_that_is_the_working_directory_has_its_next_run_beside_it(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    del said
    run = RunDirectory("my run")
    for record in validations([5.0]):
        run.metrics.append(record)
    monkeypatch.chdir(run.path)
    progress = Progress(step=100)
    here = verdict(RunDirectory("."), FIXED, "translator", progress, 100)
    assert here[-1].endswith("--run '../my run-longer'")
