"""How the next models are trained, and when one is better."""

from pathlib import Path
from typing import Any

import pytest
from helpers.tiny_run import Recorder

from tfm.configs import RunConfig, parse_config
from tfm.engine.choose import training_settings
from tfm.engine.improve import models
from tfm.engine.improve.models import Trainings, Trial, metric_of
from tfm.engine.improve.sources import write_pairs
from tfm.engine.training.train import TrainingResult
from tfm.system.interrupts import Interrupts

OWN = {
    "model": {"d_model": 48, "num_heads": 2, "dropout": 0.15},
    "tokenizer": {"type": "bpe", "vocab_size": 700},
    "training": {"seed": 7, "max_steps": 33, "best_metric": "chrf"},
    "decoding": {"beam_size": 2},
}


@pytest.mark.parametrize(
    ("after", "p", "better"), [(21.0, 0.01, True), (21.0, 0.05, False), (19.0, 0.01, False), (20.0, 0.0, False)]
)
def test_a_model_is_better_if_it_scores_higher_and_that_is_no_chance(after: float, p: float, better: bool) -> None:
    assert Trial("bleu", 20.0, after, p).better == better


def test_models_are_compared_by_what_there_is_a_test_for() -> None:
    for name, expected in (("bleu", "bleu"), ("chrf", "chrf"), ("exact", "bleu"), ("loss", "bleu")):
        assert metric_of(parse_config({"training": {"best_metric": name}})) == expected


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Begins a training of so many made pairs, and returns its settings: nothing is trained."""
    for name, count in (("genuine", 50), ("made", 150), ("dev", 5)):
        write_pairs(tmp_path / f"{name}.jsonl", [(f"{name} line {i}", f"Zeile {i}") for i in range(count)])
    seen: list[RunConfig] = []

    def train(settings: RunConfig, **_: object) -> TrainingResult:
        seen.append(settings)
        return TrainingResult(1, 1, 1.0, False, "", [])

    monkeypatch.setattr(models, "train", train)

    def start(
        max_time: str | None = None, assignments: tuple[str, ...] = (), *, swapped: bool = False, made: bool = True
    ) -> RunConfig:
        trainings = Trainings(parse_config(OWN), assignments, ("en", "de"), Recorder(), Interrupts())
        paths = [tmp_path / f"{name}.jsonl" for name in ("genuine", "made", "dev")]
        files = {"genuine": paths[0], "made": paths[1:2] if made else [], "dev": paths[2]}
        trainings.train(tmp_path / "run", **files, count=6.0, max_time=max_time, swapped=swapped)
        return seen[-1]

    return start


def test_a_model_has_the_size_of_the_first_one_and_is_trained_as_without_flags(started: Any, tmp_path: Path) -> None:
    found = started()
    names = [str(tmp_path / f"{name}.jsonl") for name in ("genuine", "made")]
    plain = training_settings(config=None, run=None, init_from=None, data={"data": names}, training={}, assignments=[])
    assert (found.model.d_model, found.model.num_heads, found.decoding.beam_size) == (48, 2, 2)
    assert (found.tokenizer.type, found.training.seed, found.training.best_metric) == ("bpe", 7, "chrf")
    assert found.model.dropout == plain.model.dropout and found.tokenizer.vocab_size == plain.tokenizer.vocab_size
    for key in ("max_steps", "max_tokens_per_batch", "patience", "learning_rate", "optimizer"):
        assert getattr(found.training, key) == getattr(plain.training, key)
    assert found.data.data == [f"{names[0]}=3", names[1]]  # made pairs are twice the genuine ones
    assert found.data.dev == [str(tmp_path / "dev.jsonl")]
    assert found.data.languages == ("en", "de")


def test_the_opposite_direction_reads_the_same_files_the_other_way_round(started: Any) -> None:
    found = started(swapped=True)
    assert (found.data.src_column, found.data.tgt_column) == ("target", "source")
    assert found.data.languages == ("de", "en")


def test_pairs_with_tags_are_not_turned_round(started: Any) -> None:
    assert not started().training.both_directions
    assert started(made=False).training.both_directions
    assert started(assignments=("training.both_directions=true",)).training.both_directions


def test_a_time_limits_the_updates_that_the_recipe_has(started: Any) -> None:
    found, free = started("20m"), started()
    assert (found.training.max_time, free.training.max_time) == ("20m", None)
    assert found.training.max_steps == free.training.max_steps


def test_the_user_has_the_last_word(started: Any) -> None:
    assert started(assignments=("training.seed=9", "model.d_model=64")).training.seed == 9
