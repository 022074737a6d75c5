"""What is logged of a run under way."""

from pathlib import Path

import pytest
from helpers.tiny_run import TrainTiny

from tfm.engine.runs.curves import Panel


@pytest.mark.parametrize(("between", "drawn"), [(1e9, 1), (0.0, 3)])
def test_the_curve_is_drawn_now_and_then_and_at_the_end(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, between: float, drawn: int
) -> None:
    """There are three validations, the last one at the end."""
    curves: list[bytes] = []

    def draw(drawn: list[Panel]) -> bytes:
        curves.append(b"of %d points" % sum(len(curve.steps) for curve in drawn[0].curves))
        return curves[-1]

    monkeypatch.setattr("tfm.engine.runs.log.picture", draw)
    monkeypatch.setattr("tfm.engine.runs.log._BETWEEN_CURVES", between)
    train_tiny(tmp_path / "run")
    assert len(curves) == drawn
    assert (tmp_path / "run" / "learning_curve.png").read_bytes() == curves[-1] == b"of 11 points"
