"""Questions: each answer is what the numbers say."""

from typing import Any, get_args

import pytest
import torch
from helpers.explained import SMALL, layers_of, write_run

from tfm.data.tokenizer import Tokenizer
from tfm.engine.explain.explanation import Explanation, explain
from tfm.engine.explain.questions import questions
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.runs.load import load_run
from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.config import Architecture


@pytest.fixture(scope="module", params=get_args(Architecture))
def found(request: Any, tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Explanation:
    config = ModelConfig(**SMALL, **layers_of(request.param), architecture=request.param)
    run = write_run(tmp_path_factory.mktemp("asked") / "run", tokenizer, config)
    return explain(RunDirectory(run), load_run(run, None), "my sister finds two apples")


def test_each_is_asked_at_a_station_and_shows_what_is_there(found: Explanation) -> None:
    asked = questions(found)
    assert {one.station for one in asked} <= {one.id for one in found.stations}
    assert len({one.station for one in asked}) == len(asked) >= 7
    config = found.sizes.config
    pieces = found.axes.get("seq") or found.axes["src"]
    for one in asked:
        assert one.question.endswith("?") and one.answer.endswith(".")
        assert one.show.get("layer", 0) < max(config.num_encoder_layers, config.num_decoder_layers)
        assert one.show.get("head", 0) < config.num_heads
        assert one.show.get("token", 0) < len(pieces)
        assert one.show.get("step", 0) < max(len(found.written), 1)


def test_answers_are_found_in_the_numbers(found: Explanation) -> None:
    answers = {one.station: one for one in questions(found)}
    if found.output is None:
        alike = torch.cosine_similarity(
            found.arrays["encoder.layers.2.feed_forward_residual"], found.arrays["sentence.mean"]
        )
        assert f"{alike.max():.2f}" in answers["vector"].answer
        return
    free = found.steps[: len(found.steps) - found.at_limit]
    least_sure = min(step.probability for step in free)
    assert f"{least_sure:.3f}" in answers["probabilities"].answer
    least = min(one.log_prob for one in found.heads_off)
    assert f"{least:.2f}" in answers["heads-off"].answer
    if "src" in found.axes:
        one = answers["decoder.layers.{layer}.cross_attn-weights"]
        weights = found.arrays[f"decoder.layers.{one.show['layer']}.cross_attn.weights"]
        sharpest = max(
            found.arrays[f"decoder.layers.{layer}.cross_attn.weights"][:, one.show["step"]].max() for layer in range(2)
        )
        assert weights[one.show["head"], one.show["step"], one.show["token"]] == sharpest
        assert f"{sharpest:.2f}" in one.answer
