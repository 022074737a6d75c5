"""A whole test set: translations, their scores, and the loss of the references."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tfm.data.batching import training_rows
from tfm.engine import Greedy, Translator
from tfm.engine.evaluation import test_set
from tfm.engine.evaluation.loss import evaluate_loss
from tfm.engine.evaluation.scores import METRICS, score
from tfm.engine.runs.directory import RunDirectory
from tfm.seq2seq.training.batch import Batch
from tfm.system.errors import ModelError, UsageError

SEARCH = ("beam_size", "length_penalty", "no_repeat_ngram_size")


def evaluate(run: Path, pairs: list[tuple[str, str]], **options: Any) -> Any:
    sources, targets = zip(*pairs, strict=True)
    loading = {name: options.pop(name) for name in ("checkpoint", "warn") if name in options}
    translator = Translator.load(run, device="cpu", **loading)
    searching = {name: options.pop(name) for name in SEARCH if name in options}
    if (opposite := options.pop("opposite", None)) is not None:
        options["back"] = test_set.load_opposite(run, opposite, "cpu")
    options = {"metrics": METRICS, "search": translator.search(**searching), **options}
    return test_set.evaluate_set(translator, sources, [[target, target.lower()] for target in targets], **options)


def test_outputs_are_the_translators_and_scores_those_of_the_outputs(
    run_directory: Path, pairs: list[tuple[str, str]]
) -> None:
    result = evaluate(run_directory, pairs)
    sources, targets = zip(*pairs, strict=True)
    references = [[target, target.lower()] for target in targets]
    assert result.outputs == [str(one) for one in Translator.load(run_directory, device="cpu").translate(sources)]
    assert result.scores == [score(name, result.outputs, references) for name in METRICS]
    assert (result.beam_size, result.length_penalty, result.no_repeat_ngram_size) == (3, 0.6, 0)
    assert result.checkpoint == RunDirectory(run_directory).checkpoint_path(20)


def test_options_of_the_search_are_used_and_reported(run_directory: Path, pairs: list[tuple[str, str]]) -> None:
    result = evaluate(run_directory, pairs, checkpoint="10", beam_size=1, length_penalty=0.0, no_repeat_ngram_size=2)
    translator = Translator.load(run_directory, checkpoint="10", device="cpu")
    assert result.outputs == [
        str(one) for one in translator.translate([src for src, _ in pairs], search=Greedy(0.0, 2))
    ]
    assert (result.beam_size, result.length_penalty, result.no_repeat_ngram_size) == (1, 0.0, 2)
    assert result.checkpoint == RunDirectory(run_directory).checkpoint_path(10)


def test_loss_is_that_of_the_first_references(run_directory: Path, pairs: list[tuple[str, str]]) -> None:
    translator = Translator.load(run_directory, device="cpu")
    encode = translator.tokenizer.src.encode
    batch = Batch.of(training_rows([(encode(src), encode(tgt)) for src, tgt in pairs]))
    expected = evaluate_loss(translator.model, [batch])
    result = evaluate(run_directory, pairs)
    assert result.loss == pytest.approx(expected.loss, rel=1e-5)
    assert result.ppl == pytest.approx(expected.ppl, rel=1e-4)


def test_pairs_too_long_for_the_model_are_translated_but_have_no_loss(
    run_directory: Path, pairs: list[tuple[str, str]]
) -> None:
    warnings: list[str] = []
    longer = [*pairs, ("a dog and " * 40, "ein Hund"), ("a dog", "ein Hund und " * 40)]
    result = evaluate(run_directory, longer, warn=warnings.append)
    assert result.loss == pytest.approx(evaluate(run_directory, pairs).loss, rel=1e-5)
    assert len(result.outputs) == len(longer)
    assert [warning.split(" has")[0] for warning in warnings] == [f"line {len(pairs) + 1}"]


def test_the_checkpoint_that_is_named_is_the_one_that_was_scored(
    run_directory: Path, pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(run_directory, run)
    weights = RunDirectory(run).checkpoint_path(20) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    warnings: list[str] = []
    result = evaluate(run, pairs, warn=warnings.append)
    assert result.checkpoint == RunDirectory(run).checkpoint_path(30)  # the second best, as the best is damaged
    assert result.outputs == evaluate(run, pairs, checkpoint="30").outputs != evaluate(run_directory, pairs).outputs
    assert len(warnings) == 1 and "step-000020" in warnings[0]


def test_progress_is_told_and_lines_keep_their_numbers_when_a_set_is_taken_in_chunks(
    run_directory: Path, pairs: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [*pairs[:6], ("a dog and " * 40, "ein Hund")]
    whole = evaluate(run_directory, pairs)
    done: list[int] = []
    warnings: list[str] = []
    monkeypatch.setattr(test_set, "CHUNK_TEXTS", 3)
    found = evaluate(run_directory, pairs, on_done=done.append, warn=warnings.append)
    assert found.confidences == pytest.approx(whole.confidences, abs=1e-6)  # of batches of other shapes
    assert replace(found, confidences=[]) == replace(whole, confidences=[])
    assert done == [3, 6, 7]
    assert [warning.split(" has")[0] for warning in warnings] == ["line 7"]


def test_warnings_name_the_lines_of_the_file(run_directory: Path, pairs: list[tuple[str, str]]) -> None:
    heard: list[str] = []
    long = (" ".join(["cat"] * 80), "Katze")
    evaluate(run_directory, [pairs[0], long], lines=[3, 40], metrics=["bleu"], beam_size=1, warn=heard.append)
    assert [one.split(" has ")[0] for one in heard] == ["line 40"]


def test_a_run_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no run"):
        evaluate(tmp_path / "absent", [("a", "b")])


def test_the_opposite_direction_is_one_of_these_languages(
    run_directory: Path, pairs: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    shutil.copytree(run_directory, other)
    assert evaluate(run_directory, pairs[:4], opposite=other).both_ways.sentences == 4, "no languages are known"
    known = {run_directory: ("en", "de"), other: ("en-GB", "de")}
    monkeypatch.setattr(RunDirectory, "languages", property(lambda run: known[run.path]))
    with pytest.raises(UsageError, match="en-GB to de, which is not the opposite direction of en to de"):
        evaluate(run_directory, pairs[:4], opposite=other)
    known[other] = ("de", "en-GB")
    assert evaluate(run_directory, pairs[:4], opposite=other).both_ways.sentences == 4
