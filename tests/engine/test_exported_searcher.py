"""CTranslate2 behind a translator: an export translates as its run does, by every search."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tfm.data.facts import CorpusFacts
from tfm.data.glossary import Glossary
from tfm.engine import Beam, Greedy, Sample, Translation, Translator
from tfm.engine.attention_maps import attention_map
from tfm.engine.evaluation.loss import force
from tfm.engine.evaluation.test_set import evaluate_set
from tfm.engine.export.directory import export_checkpoint
from tfm.engine.export.parity import as_ctranslate2
from tfm.engine.runs.directory import RunDirectory
from tfm.seq2seq.decoding.config import DecodingConfig
from tfm.system.errors import EnvironmentFault, ModelError, UsageError

pytest.importorskip("ctranslate2")


@pytest.fixture(scope="module", params=[False, True], ids=["joint", "separate"])
def run(request: pytest.FixtureRequest, trained_run: Callable[..., Path]) -> Path:
    decoding = DecodingConfig(beam_size=3, length_penalty=0.8)
    return trained_run(separate=request.param, decoding=decoding, num_encoder_layers=1, num_decoder_layers=1)


@pytest.fixture(scope="module")
def exported(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("exports") / "made.ct2"
    export_checkpoint(RunDirectory(run), RunDirectory(run).find_model(), output)
    return output


@pytest.fixture
def both(run: Path, exported: Path) -> tuple[Translator, Translator]:
    """The run and its export."""
    return Translator.load(run, device="cpu"), Translator.load(exported)


@pytest.fixture
def texts(pairs: list[tuple[str, str]]) -> list[str]:
    odd = [
        "",
        "  12 %  ",
        "the  cat\tsees %s",
        "zebra \u2581 \ue000 q\u0301x",
        "a dog " * 30 + "sees. the child likes.",
    ]
    return [src for src, _ in pairs] + odd


def test_torch_keeps_its_threads(exported: Path) -> None:
    """Translating takes one core otherwise: batches are divided among as many threads as torch has."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        Translator.load(exported)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def assert_alike(ours: list[Translation], theirs: list[Translation]) -> None:
    """The same, but for rounding."""
    assert [replace(one, score=0.0, log_prob=0.0, alternatives=()) for one in theirs] == [
        replace(one, score=0.0, log_prob=0.0, alternatives=()) for one in ours
    ]
    for one, other in zip(ours, theirs, strict=True):
        assert other.log_prob == pytest.approx(one.log_prob, abs=1e-3)
        assert other.score == pytest.approx(one.score, abs=1e-3)
        # Of more hypotheses than the beam that end at once CTranslate2 keeps the likeliest, we those that rank best.
        assert len(other.alternatives) == len(one.alternatives)


@pytest.mark.parametrize(
    "search",
    [
        *(Greedy(), Greedy(0.3, no_repeat_ngram_size=1), Beam(3), Beam(4, 1.2, n_best=4)),
        *(Sample(seed=3), Sample(0.8, top_k=9, samples=2, seed=5)),
    ],
    ids=repr,
)
def test_every_search_finds_what_the_run_finds(
    both: tuple[Translator, Translator], texts: list[str], search: Any
) -> None:
    ours, theirs = both
    expected = ours.translate(texts, search=as_ctranslate2(search) if isinstance(search, Beam) else search)
    assert len({one.text for one in expected}) > 10
    assert_alike(expected, theirs.translate(texts, search=search))
    alone = [theirs.translate([text], search=search, first_line=row)[0].text for row, text in enumerate(texts)]
    assert alone == [one.text for one in expected]


@pytest.mark.parametrize("search", [Greedy(), Beam(3)], ids=repr)
def test_prefixes(both: tuple[Translator, Translator], texts: list[str], search: Greedy | Beam) -> None:
    ours, theirs = both
    prefixes = [("", "eine", "das Haus")[row % 3] for row in range(len(texts))]
    expected = ours.translate(texts, search=as_ctranslate2(search), prefixes=prefixes)
    assert_alike(expected, theirs.translate(texts, search=search, prefixes=prefixes))


@pytest.mark.parametrize("search", [Greedy(), Beam(3), Beam(3, no_repeat_ngram_size=2)], ids=repr)
@pytest.mark.parametrize("longest", [1, 2, 4, 7])
def test_at_the_longest_length_an_output_ends(
    both: tuple[Translator, Translator], texts: list[str], search: Greedy | Beam, longest: int
) -> None:
    for one in both:
        one.decoding = replace(one.decoding, max_length_factor=1e-9, max_length_offset=longest)
    expected, found = (one.translate(texts, search=as_ctranslate2(search), repair=False) for one in both)
    assert any(len(one.tokens) == longest - 1 for one in found)
    assert all(len(one.ids or ()) < longest for one in found)
    if isinstance(search, Greedy):
        assert_alike(expected, found)
    elif not search.no_repeat_ngram_size:  # at the last step CTranslate2 puts no hypotheses in the places of ended ones
        assert sum(one.ids == other.ids for one, other in zip(expected, found, strict=True)) >= 0.7 * len(texts)


def test_terms_placeholders_and_loops_are_searched_for_again(
    both: tuple[Translator, Translator], pairs: list[tuple[str, str]]
) -> None:
    texts = [*(src for src, _ in pairs[:6]), "the cat sees %s.", "{name} likes a dog."]
    glossary = Glossary([("cat", "Kater"), ("apples", "Birnen")])
    for one in both:
        one.facts = CorpusFacts()
    expected, found = (
        one.translate(texts, search=as_ctranslate2(Beam(3)), glossary=glossary, repair=True) for one in both
    )
    assert any(one.constrained for one in found) and any("Kater" in one.text for one in found)
    assert_alike(expected, found)


def test_an_evaluation_has_the_same_figures(run: Path, exported: Path, pairs: list[tuple[str, str]]) -> None:
    sources, references = [src for src, _ in pairs], [[tgt] for _, tgt in pairs]
    ours, theirs = (
        evaluate_set(one, sources, references, metrics=["bleu", "chrf", "exact"], search=one.search(1))
        for one in (Translator.load(run, device="cpu"), Translator.load(exported, device="cpu"))
    )
    assert theirs.scores == ours.scores
    assert theirs.outputs == ours.outputs
    assert theirs.loss == pytest.approx(ours.loss, abs=2e-3)  # an export gives control pieces no probability
    assert theirs.checkpoint == exported


def test_what_an_export_cannot_write_has_no_forced_score(both: tuple[Translator, Translator]) -> None:
    ours, theirs = both
    unknown = ours.tokenizer.tgt.piece(1)
    assert unknown == "<unk>"
    (here,), (there,) = (force(one, ["the cat"], ["die Katze"]) for one in both)
    assert here and there and there.log_prob == pytest.approx(here.log_prob, abs=0.05)
    assert not theirs.searcher.scores_unknown


def test_what_it_cannot_do_is_refused_and_names_the_run(
    exported: Path, run: Path, both: tuple[Translator, Translator]
) -> None:
    theirs = both[1]
    (found,) = theirs.translate(["the cat sees the house."])
    with pytest.raises(UsageError, match=rf"is an export, .*take the run it was made of: {run}$"):
        attention_map(theirs, "the cat sees the house.", found)
    with pytest.raises(ModelError, match=rf"take the run it was made of: {run}$"):
        RunDirectory(exported).find_model()
    with pytest.raises(UsageError, match="an export of one checkpoint; leave --checkpoint last out"):
        Translator.load(exported, checkpoint="last")
    with pytest.raises(UsageError, match="on cpu or cuda, not on mps"):
        Translator.load(exported, device="mps")


def test_without_ctranslate2_one_line_says_what_to_install(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(
        EnvironmentFault, match=r"translating with an export needs CTranslate2 .*: pip install ctranslate2"
    ):
        Translator.load(exported)
