"""Explanations: the same output as `tfm translate`, searches, heads, checkpoints; and texts that are refused."""

from dataclasses import replace
from pathlib import Path

import pytest
from helpers.explained import SMALL, layers_of, write_run

from tfm.data.tokenizer import Tokenizer
from tfm.engine import Translator
from tfm.engine.explain.explanation import CONTINUATION, SAMPLES, Explanation, explain
from tfm.engine.explain.questions import questions
from tfm.engine.explain.text import Focus
from tfm.engine.explain.text import text as walk
from tfm.engine.generator import Generator
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.runs.load import load_run
from tfm.seq2seq.decoding.greedy import Greedy
from tfm.seq2seq.decoding.sampling import Sample
from tfm.seq2seq.model import ModelConfig
from tfm.system.errors import DataError


def explained(run: Path, text: str, *, with_checkpoints: bool = False) -> Explanation:
    return explain(RunDirectory(run), load_run(run, None), text, with_checkpoints=with_checkpoints)


@pytest.mark.parametrize("architecture", ["encoder_decoder", "decoder_only"])
def test_its_outputs_are_those_of_translate(tmp_path: Path, tokenizer: Tokenizer, architecture: str) -> None:
    config = ModelConfig(**SMALL, **layers_of(architecture), architecture=architecture)  # pyright: ignore[reportArgumentType]
    run = write_run(tmp_path / "run", tokenizer, config)
    translator = Translator.load(run)
    for text in ("my sister finds two apples", "a dog  sees the house."):
        found = explained(run, text)
        (expected,) = translator.translate([text], repair=False)
        assert found.output is not None and found.greedy is not None
        assert found.output.text == expected.text
        assert found.output.log_prob == pytest.approx(expected.log_prob, abs=1e-4)
        assert found.output.score == pytest.approx(expected.score, abs=1e-4)
        assert found.greedy.text == translator.translate([text], beam_size=1, repair=False)[0].text
        drawn = translator.translate([text], search=Sample(samples=SAMPLES))[0]
        assert [one.text for one in found.samples] == [one.text for one in drawn.alternatives]
        assert [one["text"] for one in found.beam["hypotheses"]] == [
            one.text
            for one in translator.translate([text], search=translator.search(3, n_best=3), repair=False)[0].alternatives
        ]
        assert len(found.steps) == len(found.written) == len(found.axes["tgt"])


def test_a_language_model_continues(tmp_path: Path, tokenizer: Tokenizer) -> None:
    config = ModelConfig(**SMALL, **layers_of("decoder_only"), architecture="decoder_only")
    run = write_run(tmp_path / "run", tokenizer, config, text_only=True)
    found = explained(run, "my sister")
    limit = len(tokenizer.tgt.encode("my sister")) + CONTINUATION
    (expected,) = Generator.load(run).generate(["my sister"], search=Greedy(), max_pieces=min(limit, 40))
    assert found.greedy is not None and found.greedy.text == expected.text
    assert found.greedy.text.startswith("my sister")
    assert found.at_limit == (len(found.written) == min(limit, 40))
    assert [piece.text for piece in found.axes["seq"]] == [piece.text for piece in found.axes["tgt"]]


def test_a_beginning_is_shown_as_given_and_nothing_beside_it(tmp_path: Path, tokenizer: Tokenizer) -> None:
    """No other beginning was looked at, and no question is about a step at which the model was not free."""
    config = ModelConfig(**SMALL, **layers_of("decoder_only"), architecture="decoder_only")
    run = write_run(tmp_path / "run", tokenizer, config, text_only=True)
    found = explained(run, "my sister")
    given = tokenizer.tgt.encode("my sister")
    assert found.prefix == len(given) >= 2
    looked_at = [one for one in found.beam["extensions"] if one["position"] < found.prefix]
    assert [(one["token"], one["fate"]) for one in looked_at] == [(token, "kept") for token in given]
    (answer,) = [one.answer for one in questions(found) if one.station == "choice"]
    extensions = found.beam["extensions"]
    cut = sum(one["fate"] == "cut" for one in extensions)
    assert f"looked at {len(extensions)} beginnings and cut {cut}" in answer
    assert f"step 1 was given {found.written[0].text}," in walk(found, Focus(step=0))
    assert f"step {len(given) + 1} wrote {found.written[len(given)].text}," in walk(found, Focus(step=len(given)))


@pytest.mark.parametrize("at_limit", [True, False])
def test_a_step_that_was_not_free_is_not_the_least_sure(tmp_path: Path, tokenizer: Tokenizer, at_limit: bool) -> None:
    config = ModelConfig(**SMALL, **layers_of("decoder_only"), architecture="decoder_only")
    found = explained(write_run(tmp_path / "run", tokenizer, config, text_only=True), "my sister")
    found.at_limit = at_limit
    for step in (0, len(found.steps) - 1):  # one was given, and one is the end at the limit
        found.steps[step] = replace(found.steps[step], probability=0.0)
    (asked,) = [one for one in questions(found) if one.station == "probabilities"]
    assert (asked.show["step"] == len(found.steps) - 1) != at_limit
    assert asked.show["step"] >= found.prefix


def test_heads_off_are_compared_with_the_output(tmp_path: Path, tokenizer: Tokenizer) -> None:
    config = ModelConfig(**SMALL, **layers_of("encoder_decoder"))
    found = explained(write_run(tmp_path / "run", tokenizer, config), "a dog sees the house")
    assert len(found.heads_off) == 2 * (3 + 2 + 2)
    for one in found.heads_off:
        assert len(one.log_probs) == len(found.written)
        assert one.log_prob == pytest.approx(sum(one.log_probs))


def test_checkpoints_are_looked_at_with_one_output(tmp_path: Path, tokenizer: Tokenizer) -> None:
    config = ModelConfig(**SMALL, **layers_of("encoder_decoder"))
    run = write_run(tmp_path / "run", tokenizer, config, steps=(10, 20))
    found = explained(run, "a dog sees the house", with_checkpoints=True)
    first, best = found.snapshots
    assert (first.step, best.step) == (10, 20)
    assert best.probabilities == pytest.approx([step.probability for step in found.steps], abs=1e-5)
    assert first.probabilities != pytest.approx(best.probabilities, abs=1e-3)
    for name in best.modules:
        assert found.arrays[f"checkpoints.20.{name}"].allclose(found.arrays[f"{name}.weights"], atol=1e-6)
        assert not found.arrays[f"checkpoints.10.{name}"].allclose(found.arrays[f"{name}.weights"], atol=1e-3)
    assert found.stations[-1].id == "checkpoints"


def test_what_cannot_be_explained(tmp_path: Path, tokenizer: Tokenizer) -> None:
    config = ModelConfig(**SMALL, **layers_of("encoder_decoder"))
    run = write_run(tmp_path / "run", tokenizer, config)
    with pytest.raises(DataError, match="the text is blank"):
        explained(run, "  \t ")
    with pytest.raises(DataError, match=r"has \d+ pieces, but this model reads at most 39; give a shorter sentence"):
        explained(run, "a dog sees the house " * 8)
