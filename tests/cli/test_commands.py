"""The three functions for Python do what the three commands do."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from helpers.command import TINY_FLAGS, Tfm
from helpers.tiny_run import Recorder

from tfm import engine as api
from tfm.system.errors import DataError, UsageError

SETTINGS = {name: json.loads(value) for name, _, value in (flag.partition("=") for flag in TINY_FLAGS) if value}
"""Those of the tiny runs of other tests, by name."""


def test_training_is_that_of_the_command(corpus: Path, tfm: Tfm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(corpus)
    heard = Recorder()
    result = api.train(src="train.en", tgt=[Path("train.de")], run="a", max_steps=3, settings=SETTINGS, reporter=heard)
    assert result.step == 3 and any("180 pairs: preset pairs" in line for line in heard.said)
    flags = ["--src", "train.en", "--tgt", "train.de", "--run", "b", "--max-steps", 3, *TINY_FLAGS]
    assert tfm("train", *flags).returncode == 0
    assert Path("a/config.yaml").read_text() == Path("b/config.yaml").read_text()
    weights = "checkpoints/step-000003/model.safetensors"
    assert Path("a", weights).read_bytes() == Path("b", weights).read_bytes()
    again = api.train(src="train.en", tgt="train.de", run="a", max_steps=3, settings=SETTINGS, reporter=heard)
    assert again.already_finished
    with pytest.raises(UsageError, match="--replay"):
        api.train(src="train.en", tgt="train.de", run="c", replay="a", reporter=heard)


def test_translating_and_evaluating_are_those_of_the_commands(
    corpus: Path, tfm: Tfm, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus)
    texts = ["one two", "three " * 9]
    lines = tfm("translate", "--run", tiny_run, "--beam-size", 2, *texts).stdout.decode().splitlines()
    assert [one.text for one in api.translate(texts, run=tiny_run, beam_size=2)] == lines
    assert len(api.translate(texts, run=str(tiny_run), n_best=2)[1].alternatives) == 2
    found = api.evaluate(src="dev.en", tgt="dev.de", run=tiny_run, metrics=["bleu", "exact"])
    said = json.loads(
        tfm("evaluate", "--run", tiny_run, "--src", "dev.en", "--tgt", "dev.de", "--metric", "bleu", "--json").stdout
    )
    assert found.scores[0].value == said["scores"]["bleu"] and found.loss == said["loss"]
    with pytest.raises(UsageError, match="metric must be one of"):
        api.evaluate(src="dev.en", tgt="dev.de", run=tiny_run, metrics=["blue"])
    with pytest.raises(UsageError, match="there is no run in runs/ yet"):
        api.translate(["x"])
    with pytest.raises(TypeError, match="give a list of texts"):
        api.translate("ab", run=tiny_run)
    with pytest.raises(TypeError, match=r"texts\[1\] is None, not a string"):
        api.translate(["ab", None], run=tiny_run)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"files\[0\] is None, not a string"):
        api.evaluate(src=[None], tgt="dev.de", run=tiny_run)  # pyright: ignore[reportArgumentType]


def test_a_run_is_calibrated_and_its_opposite_asked(
    corpus: Path, calibrated_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus)
    path = calibrated_run / "calibration.json"
    by_command = path.read_bytes()
    path.unlink()
    evaluate = partial(api.evaluate, src="train.en", tgt="train.de", run=calibrated_run)
    assert evaluate().agreement is None
    found = evaluate(calibrate=True, opposite=calibrated_run)
    assert path.read_bytes() == by_command
    assert found.agreement is not None and found.both_ways is not None
    assert found.agreement.sentences == found.both_ways.sentences == 180
    with pytest.raises(DataError, match="its validation set is not there"):
        api.evaluate(run=calibrated_run, calibrate=True)


def test_the_import_is_light() -> None:
    code = "import sys; from tfm import engine; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
