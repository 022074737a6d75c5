"""The comparison: an export agrees with its run, a wrong one does not, and each difference in the search is seen."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tfm.engine.export.directory import export_checkpoint
from tfm.engine.export.parity import Way, compare, searches, table, translate_pieces
from tfm.engine.exported_searcher import load_ctranslate2
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.translator import Translator
from tfm.seq2seq.decoding.config import DecodingConfig


@pytest.fixture(scope="module")
def run(trained_run: Callable[..., Path]) -> Path:
    """A run that translates."""
    decoding = DecodingConfig(beam_size=3, length_penalty=0.6)
    return trained_run(separate=False, decoding=decoding, num_encoder_layers=1, num_decoder_layers=1)


@pytest.fixture
def exported(run: Path, tmp_path: Path) -> Any:
    """Its export, loaded."""
    export_checkpoint(RunDirectory(run), RunDirectory(run).find_model(), tmp_path / "export")
    return load_ctranslate2(tmp_path / "export", device="cpu")


@pytest.fixture
def translator(run: Path) -> Translator:
    """The run itself."""
    return Translator.load(run, device="cpu")


def test_an_export_agrees_with_its_run(translator: Translator, exported: Any, pairs: list[tuple[str, str]]) -> None:
    done: list[int] = []
    agreements = compare(translator, exported, pairs, on_done=done.append)
    assert done == [len(pairs) * (i + 1) for i in range(4)]
    for one in agreements[:3]:
        assert one.equal == one.compared == len(pairs)
        assert one.export_bleu == pytest.approx(one.bleu)
        assert one.difference is not None
        assert one.difference < 1e-3
    assert [one.search.name for one in agreements] == [
        *("greedy", "beam 5, no length penalty"),
        *("beam 3, length penalty 0.6", "beam 3, CTranslate2's penalty 0.6"),
    ]
    lines = table(agreements)
    assert any(line.startswith("greedy") and "100.0 %" in line for line in lines)


def test_placeholders_are_not_searched_for_again_where_the_export_cannot(translator: Translator, exported: Any) -> None:
    pairs = [("the cat sees %s.", "die Katze sieht %s."), ("{name} likes a dog.", "{name} mag einen Hund.")]
    (found,) = translator.translate([pairs[0][0]], repair=False)
    assert found.lost, "else this shows nothing"
    assert all(one.equal == one.compared == 2 for one in compare(translator, exported, pairs)[:2])


def test_what_may_stand_once_is_the_same_for_both(
    translator: Translator, exported: Any, pairs: list[tuple[str, str]]
) -> None:
    """Searched greedily: there the sum of the probabilities that are left does not matter."""
    free = [one.tokens for one in translator.translate([src for src, _ in pairs], beam_size=1)]
    translator.decoding = replace(translator.decoding, no_repeat_ngram_size=1)
    once = [one.tokens for one in translator.translate([src for src, _ in pairs], beam_size=1)]
    assert any(len(set(tokens)) < len(tokens) for tokens in free), "or there is nothing to forbid"
    assert all(len(set(tokens)) == len(tokens) for tokens in once)
    greedy, *_ = compare(translator, exported, pairs)
    assert greedy.equal == greedy.compared == len(pairs)


def test_a_wrong_export_is_found_out(translator: Translator, exported: Any, pairs: list[tuple[str, str]]) -> None:
    with torch.no_grad():
        translator.model.decoder.layers[0].cross_attn.v_proj.weight.mul_(-1)  # pyright: ignore
    wrong = Translator(translator.model, translator.tokenizer, translator.decoding)  # reads the weights
    greedy, beam, *_ = compare(wrong, exported, pairs)
    assert min(greedy.share, beam.share) < 0.9


def test_sentences_that_do_not_fit_or_are_blank_are_left_out(translator: Translator, exported: Any) -> None:
    pairs = [("the cat sees a dog.", "x"), ("  ", "x"), ("the cat sees " * 40, "x")]
    assert {one.compared + one.left_out for one in compare(translator, exported, pairs)} == {1}


def test_translations_that_do_not_end(translator: Translator, exported: Any, pairs: list[tuple[str, str]]) -> None:
    translator.decoding = replace(translator.decoding, max_length_offset=3, max_length_factor=0.01)
    greedy, beam, *_ = compare(translator, exported, pairs)
    assert (greedy.equal, greedy.left_out) == (len(pairs), 0)
    assert beam.left_out > 0
    assert beam.equal == beam.compared
    assert "did not end" in table([greedy, beam])[-1]
    assert replace(beam, equal=0, compared=0).share == 1


def test_searches_are_those_of_the_run() -> None:
    names = [one.name for one in searches(4, 1.5)]
    assert names == [
        *("greedy", "beam 5, no length penalty"),
        *("beam 4, length penalty 1.5", "beam 4, CTranslate2's penalty 1.5"),
    ]
    assert len(searches(1, 0.6)) == len(searches(5, 0.0)) == 2
    assert DecodingConfig().beam_size == 5


class FakeExport:
    """Answers each sentence with the same hypotheses."""

    def __init__(self, *hypotheses: tuple[list[str], float]) -> None:
        self.hypotheses, self.scores = zip(*hypotheses, strict=True)
        self.calls: list[dict[str, Any]] = []

    def translate_batch(self, sources: list[list[str]], **options: Any) -> list["FakeExport"]:
        self.calls.append({"sources": sources, **options})
        return [self for _ in sources]


def test_hypotheses_are_ranked_by_our_length_penalty() -> None:
    short, long = (["a", "</s>"], -2.0), ["b"] * 7 + ["</s>"]
    export = FakeExport(short, (long, -2.1))
    best = [translate_pieces(export, [["x"]], [20], Way("", 5, alpha))[0].tokens for alpha in (0.0, 1.0)]
    assert best == [("a",), ("b",) * 7]
    assert export.calls[0]["length_penalty"] == 1e-9
    assert export.calls[0]["min_decoding_length"] == 0


def test_sentences_with_the_same_limit_are_searched_together_and_come_back_in_order() -> None:
    export = FakeExport((["a", "</s>"], -1.0))
    sources = [["x"] * n for n in (3, 1, 3, 2)]
    found = translate_pieces(export, sources, [8, 6, 8, 7], Way("", 2, 0.0))
    assert [(call["max_decoding_length"], len(call["sources"])) for call in export.calls] == [(6, 1), (7, 1), (8, 2)]
    assert len(found) == 4


def test_what_did_not_end_is_told_apart() -> None:
    export = FakeExport((["a", "b"], -1.0))
    assert not translate_pieces(export, [["x"]], [2], Way("", 2, 0.0))[0].ended
    own = translate_pieces(export, [["x"]], [2], Way("", 2, 0.6, own_penalty=True))[0]
    assert not own.ended
    assert math.isnan(own.log_prob)
    assert translate_pieces(export, [["x"]], [3], Way("", 2, 0.6, own_penalty=True))[0].ended
