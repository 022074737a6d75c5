"""What a shell is told when somebody presses Tab."""

from pathlib import Path

import pytest
from helpers.command import Tfm, error_of

from tfm.cli import completion
from tfm.engine.evaluation.scores import METRICS


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("tfm cur", ["curves"]),
        ("tfm train --config multi30k-d", ["multi30k-decoder"]),
        ("tfm presets multi30k-d", ["multi30k-decoder"]),
        (
            "tfm train --set training.l",
            [f"training.{key}=" for key in ("label_smoothing", "learning_rate", "log_every")],
        ),
        ("tfm info --run m", ["mine"]),
        ("tfm curves runs/", ["runs/mine"]),
        ("tfm curves --metric re", ["retrieval"]),
        ("tfm train --init-from m", ["mine"]),
        ("tfm evaluate --run m", ["mine"]),
        ("tfm evaluate --metric t", ["ter"]),
    ],
)
def test_names_are_completed(installed: Tfm, tiny_run: Path, tmp_path: Path, line: str, offered: list[str]) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "mine").symlink_to(tiny_run)
    asked = {"_TFM_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    done = installed(env=asked)
    assert done.stdout.decode().split() == offered, error_of(done)


def test_all_metrics_are_offered() -> None:
    assert completion.metrics("") == sorted(METRICS)
