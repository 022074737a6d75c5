"""Made pairs: how they are made, and which are kept."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from helpers.tiny_run import Recorder

from tfm.data.facts import CorpusFacts, is_loop
from tfm.data.tokenizer import Tokenizer
from tfm.engine.evaluation.loss import force
from tfm.engine.improve.pairs import (
    BEST_FORWARD,
    SAMPLED_FROM,
    WORST,
    Made,
    kept,
    make,
    read_made,
    search_for,
    translated,
)
from tfm.engine.improve.sources import TAGS
from tfm.engine.translator import Translator
from tfm.seq2seq.decoding.beam import Beam
from tfm.seq2seq.decoding.sampling import Sample

GENUINE = [("the cat sees", "die Katze sieht"), ("a dog likes", "ein Hund mag es"), ("the child", "das Kind")]


def made(text: str, output: str, confidence: float = 0.5, forced: float | None = 0.5) -> Made:
    return Made(text, output, confidence, forced)


def test_the_improbable_the_odd_and_the_faulty_are_left_out() -> None:
    good = [made(f"der Satz {i}", f"the line {i}", 0.9, 0.9) for i in range(18)]
    bad = [
        made("ein Satz", ""),
        made("das Haus", "das Haus"),
        made("ein Satz mit 2", "a line with " + "very " * 30 + "2"),
        made("zu lang", "too long", forced=None),
        made("ein Tag", "\u0434\u0435\u043d\u044c \u0434\u0430"),
        made("von dev", "of dev"),
    ]
    worst = [made("wer weiß 1", "who knows 1", 0.01, 0.9), made("wer weiß 2", "who knows 2", 0.9, 0.01)]
    found = kept([*bad, *good, *worst], "back", GENUINE, [("of dev", "von dev")])
    assert found == [(f"{TAGS['back']} {one.output}", one.text) for one in good]


def test_what_repeats_itself_or_lacks_its_placeholders_is_not_repaired_but_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = {"ein Hund": "a dog a dog a dog a dog a dog a dog", "eine Katze <b>": "a cat", "das Kind": "the child"}

    class Said(NamedTuple):
        text: str
        confidence: float = 0.5

    class Speaker:
        facts, searched = CorpusFacts(), list[bool | None]()

        def translate(self, texts: list[str], *, repair: bool | None, **_: object) -> list[Said]:
            self.searched.append(repair)
            return [Said(said[text]) for text in texts]

    speaker: Any = Speaker()
    monkeypatch.setattr("tfm.engine.improve.pairs.force", lambda judge, outputs, texts: [Said("")] * len(texts))
    found = translated([*said], speaker, speaker, Beam(2), 0)
    assert speaker.searched == [False]
    assert kept(found, "back", GENUINE, []) == [(f"{TAGS['back']} the child", "das Kind")]


def test_of_made_targets_fewer_are_kept() -> None:
    all_ = [made(f"line number {i}", f"Zeile Nummer {i}", 0.2 + 0.01 * i) for i in range(20)]
    found = kept(all_, "forward", GENUINE, [])
    assert found == [(f"{TAGS['forward']} {one.text}", one.output) for one in all_[round(20 * (1 - BEST_FORWARD)) :]]
    assert len(kept(all_, "back", GENUINE, [])) == round(20 * (1 - WORST))


@pytest.fixture
def translator(run_directory: Path) -> Translator:
    return Translator.load(run_directory)


def test_making_goes_on_where_it_was_interrupted(
    translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pairs: list[tuple[str, str]]
) -> None:
    monkeypatch.setattr("tfm.engine.improve.pairs.CHUNK_TEXTS", 7)
    lines = [src for src, _ in pairs]

    def run(name: str, using: Any) -> list[Made]:
        return make(tmp_path / name, lines, using, translator, translator.search(), Recorder(), "work")

    whole = run("whole", translator)
    assert [one.text for one in whole] == lines
    outputs = [one.output for one in whole]
    scores = force(translator, outputs, lines)
    assert any(one.forced is not None for one in whole)
    for one, score in zip(whole, scores, strict=True):
        looped = is_loop(one.output, one.text, translator.facts.limit)
        assert one.forced == (None if looped or score is None else pytest.approx(score.confidence))

    chunks = 0

    class Fails:
        facts = translator.facts

        def translate(self, texts: list[str], **options: Any) -> Any:
            nonlocal chunks
            chunks += 1
            if chunks == 3:
                raise KeyboardInterrupt
            return translator.translate(texts, **options)

    with pytest.raises(KeyboardInterrupt):
        run("stopped", Fails())
    assert not (tmp_path / "stopped").exists()
    assert run("stopped", Fails()) == whole
    assert chunks == 3 + 4, "two chunks of six were there"
    assert (tmp_path / "stopped").read_bytes() == (tmp_path / "whole").read_bytes()
    assert read_made(tmp_path / "whole") == whole
    assert json.loads((tmp_path / "whole").read_text().splitlines()[0]).keys() == vars(whole[0]).keys()


def test_a_model_of_few_pairs_says_what_it_is_surest_of(translator: Translator, tokenizer: Tokenizer) -> None:
    assert isinstance(search_for(translator, SAMPLED_FROM - 1), Beam)
    assert isinstance(search_for(translator, SAMPLED_FROM), Sample)
