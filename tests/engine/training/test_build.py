"""Which settings suit which architecture, and what each minimises."""

from types import SimpleNamespace
from typing import Any, get_args

import pytest
import torch

from tfm.configs import RunConfig, load_config, merge, parse_config
from tfm.data.facts import CorpusFacts
from tfm.engine.runs.checkpoint import BEST_METRICS, COMMANDS, USES, Purpose, objective_of
from tfm.engine.runs.weights import build_model
from tfm.engine.training.build import (
    COUNTED,
    build_loss,
    check_architecture,
    describe_model,
    fixed_parts,
    learns_both_directions,
    purpose_of,
)
from tfm.seq2seq.model.config import Architecture
from tfm.seq2seq.training.config import Objective
from tfm.seq2seq.training.contrastive import ContrastiveLoss
from tfm.seq2seq.training.loss import NextTokenLoss
from tfm.seq2seq.training.masking import MaskedTokenLoss
from tfm.system.errors import UsageError

ENCODER: dict[str, Any] = {
    "model": {"architecture": "encoder_only", "num_decoder_layers": 0},
    "training": {"best_metric": "retrieval"},
}
DECODER = {"architecture": "decoder_only", "num_encoder_layers": 0}
TEXT_ALONE: dict[str, Any] = {"data": {"data": [], "text": ["toy"]}}
MASKED: dict[str, Any] = {"training": {"objective": "masked_lm", "best_metric": "loss"}}


def settings(*trees: dict[str, Any]) -> RunConfig:
    tree: dict[str, Any] = {"data": {"data": ["toy"]}}
    for other in trees:
        tree = merge(tree, other)
    return parse_config(tree)


def test_every_purpose_architecture_and_objective_is_provided_for() -> None:
    assert set(COMMANDS) == set(BEST_METRICS) == set(get_args(Purpose))
    assert set(USES) == set(get_args(Architecture))
    assert {one for uses in USES.values() for one in uses.objectives} == set(COUNTED) == set(get_args(Objective))


def test_an_encoder_only_model_is_a_sentence_encoder_and_learns_from_pairs() -> None:
    encoder = settings(ENCODER)
    check_architecture(encoder)
    assert purpose_of(encoder) == "sentence encoder"
    assert objective_of("encoder_only", encoder.training) == "contrastive"
    with pytest.raises(UsageError, match="learns from pairs, and text alone has none"):
        purpose_of(settings(ENCODER, TEXT_ALONE))
    assert purpose_of(settings(ENCODER, MASKED, TEXT_ALONE)) == "sentence encoder"


@pytest.mark.parametrize(
    ("trees", "message"),
    [
        ([{"training": {"objective": "contrastive"}}], "objective of encoder_decoder must be next_token, but is contr"),
        (
            [TEXT_ALONE, {"model": DECODER, "training": {"objective": "contrastive"}}],
            "objective of decoder_only must be next_token, but is contrastive",
        ),
        ([TEXT_ALONE], "--text needs model.architecture decoder_only"),
        ([ENCODER, {"training": {"objective": "next_token"}}], "must be contrastive or masked_lm, but is next_token"),
        (
            [ENCODER, {"training": {"best_metric": "bleu"}}],
            "of a sentence encoder must be loss or retrieval, but is bl",
        ),
        (
            [ENCODER, MASKED, {"training": {"best_metric": "retrieval"}}],
            "in masked_lm training must be loss, but is re",
        ),
        ([{"training": {"best_metric": "retrieval"}}], "of a translator must be .* but is retrieval"),
        ([ENCODER, {"tokenizer": {"separate": True}}], "encoder_only has one vocabulary; leave tokenizer.separate out"),
    ],
)
def test_what_does_not_suit_the_machine_is_refused_in_one_line(trees: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        check_architecture(settings(*trees))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("trees", "loss", "parts"),
    [([], NextTokenLoss, None), ([ENCODER], ContrastiveLoss, 1), ([ENCODER, MASKED], MaskedTokenLoss, None)],
)
def test_each_objective_has_its_loss_and_a_contrastive_batch_is_not_cut(
    trees: list[dict[str, Any]], loss: type, parts: int | None, tokenizer: Any
) -> None:
    configured = settings(*trees)
    description = describe_model(configured, tokenizer, CorpusFacts())
    assert isinstance(build_loss(description, configured.training, torch.float32), loss)
    assert fixed_parts(configured) == parts


@pytest.mark.parametrize(
    ("trees", "both"),
    [
        ([], True),
        ([{"model": {"architecture": "decoder_only", "num_encoder_layers": 0}}], True),
        ([ENCODER], False),
        (
            [
                {
                    "data": {"data": [], "text": ["toy"]},
                    "model": {"architecture": "decoder_only", "num_encoder_layers": 0},
                }
            ],
            False,
        ),
        ([{"training": {"both_directions": False}}], False),
    ],
)
def test_only_a_translator_learns_both_directions(trees: list[dict[str, Any]], both: bool, tokenizer: Any) -> None:
    configured = settings({"training": {"both_directions": True}}, *trees)
    description = describe_model(configured, tokenizer, CorpusFacts())
    assert learns_both_directions(configured.training, tokenizer, description) == both
    two_vocabularies: Any = SimpleNamespace(joint=False)
    assert not learns_both_directions(configured.training, two_vocabularies, description)


@pytest.mark.parametrize("preset", ["toy-encoder", "multi30k-encoder"])
def test_the_presets_suit_their_machine(preset: str, tokenizer: Any) -> None:
    configured = parse_config(load_config(preset))
    check_architecture(configured)
    description = describe_model(configured, tokenizer, CorpusFacts())
    assert description.purpose == "sentence encoder"
    with torch.device("meta"):
        build_model(description)
