"""What the figures of a run are said to mean."""

from typing import Any

import pytest

from tfm.engine.runs.verdict import verdict
from tfm.seq2seq.training.config import TrainingConfig
from tfm.seq2seq.training.progress import Progress

PATIENT = TrainingConfig(schedule="trapezoid", patience=3)
FIXED = TrainingConfig()


def validations(losses: list[float], bleu: list[float] | None = None) -> list[dict[str, Any]]:
    scores = bleu or [30 - loss for loss in losses]
    rows = enumerate(zip(losses, scores, strict=True), start=1)
    records = [
        {"kind": "validation", "step": 100 * i, "loss": loss, "bleu": score, "score": score, "exact": 1.0}
        for i, (loss, score) in rows
    ]
    return [{"kind": "train", "step": 50, "loss": 9.0}, *records]


def said(records: list[dict[str, Any]], training: TrainingConfig = FIXED, **figures: Any) -> list[str]:
    step = records[-1]["step"]
    limit = figures.pop("limit", step)
    return verdict(records, training, Progress(**{"step": step, "epoch": 5, **figures}), limit)


def test_overfitting_is_named_with_the_step_at_which_it_began() -> None:
    lines = said(validations([4.0, 3.0, 2.5, 2.8, 3.1], [5, 20, 25, 26, 24]))
    assert "with many grave errors (BLEU 26.0, greedy)" in lines[0]
    assert lines[1].startswith("overfitting since step 300: the validation loss was 2.500 there and is 3.100 now")
    assert "the checkpoint of step 400" in lines[1] and "more pairs" in lines[2]


def test_a_run_that_was_still_improving_needs_more_updates() -> None:
    lines = said(validations([4.0, 3.5, 3.2, 3.0, 2.9]))
    assert lines[1:] == [
        "validation was still improving when the updates ran out",
        "next: a new run with more of them, such as --max-steps 1000",
    ]


def test_a_run_that_had_stopped_improving_needs_something_else() -> None:
    lines = said(validations([4.0, 3.0, 2.5, 2.499, 2.5], [5, 20, 25, 25, 25]), epoch=80)
    assert lines[1].startswith("validation had stopped improving")
    assert lines[2] == (
        "next: more pairs help most (each was seen 80 times); or a model of a similar corpus to start from: --init-from"
    )
    assert "look at translations" in said(validations([3.0, 2.0, 2.0, 2.0, 2.0], [50.0] * 5))[2]


def test_patience_knows_whether_it_was_used_up() -> None:
    records = validations([4.0, 3.5, 3.2, 3.0, 2.9])
    assert "stopped improving" in said(records, PATIENT, falling_since=300)[1]
    assert "still improving" in said(records, PATIENT)[1]
    assert "stopped improving" in said(validations([4.0, 3.0, 2.5, 2.48, 2.52]), PATIENT)[1]


@pytest.mark.parametrize("limit", [None, 900])
def test_a_run_under_way_goes_on(limit: int | None) -> None:
    assert said(validations([4.0, 3.0]), limit=limit)[1:] == [
        "training has not come to its end: the same command goes on"
    ]


def test_other_machines_and_runs_without_a_validation() -> None:
    assert verdict([], FIXED, Progress(step=1), 1) == ["not validated yet: nothing can be said"]
    for figures, words in [
        ({"ppl_per_byte": 2.5}, "among 2.50 equally likely ones"),
        ({"retrieval": 91.2}, "91 % of the validation sentences find their partner"),
        ({}, "best validation score: -1.000"),
    ]:
        assert words in said([{"kind": "validation", "step": 5, "loss": 1.0, "score": -1.0, **figures}])[0]
    exact = {"kind": "validation", "step": 5, "loss": 1.0, "score": 99.0, "bleu": 99.0, "exact": 95.0}
    assert said([exact])[0].endswith("(BLEU 99.0, greedy); 95 % come out exactly as in the references")
