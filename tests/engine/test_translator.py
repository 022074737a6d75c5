"""The translator: text in, text out, in order, whatever the text."""

import math
import random
import re
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from tfm import engine
from tfm.data.cleaning import clean
from tfm.data.config import TokenizerConfig
from tfm.data.facts import CorpusFacts
from tfm.data.glossary import Glossary
from tfm.data.sentences import split_text
from tfm.data.tokenizer import BOS_ID, EOS_ID, FIRST_TEXT_ID, UNK_ID, Tokenizer, Vocabulary
from tfm.data.usual_form import capitals, in_usual_form, open_ended, title
from tfm.data.vocabulary_training import build_tokenizer
from tfm.engine import Beam, Greedy, Sample, Translation, Translator
from tfm.engine import translator as translator_module
from tfm.engine.searcher import ModelSearcher
from tfm.engine.translation import SIGNS, Part
from tfm.seq2seq.decoding.config import DecodingConfig
from tfm.seq2seq.decoding.search import Hypothesis, Search, SearchState, Step, Task
from tfm.seq2seq.model.encoder_decoder import Transformer
from tfm.system.errors import DataError, ModelError

LINES = [
    "the cat sees the house.",
    "a dog",
    "",
    "my sister likes two apples and my sister finds a red ball.",
    "  the child \t likes  a dog ",
    "zzz qqq",
    "a red ball.",
    "\u200b \u3000",
    "the dog sees a child.",
    "two houses",
]
SEARCHES = [Greedy(), Beam(4, n_best=3), Sample(top_k=20, seed=4, samples=2)]


@pytest.fixture(scope="module")
def translator(model: Transformer, tokenizer: Tokenizer) -> Translator:
    return Translator(model, tokenizer, DecodingConfig(beam_size=3, max_length_factor=1.0, max_length_offset=4))


def texts(translations: list[Translation]) -> list[list[str]]:
    return [[alternative.text for alternative in translation.alternatives] for translation in translations]


def log_probs(translations: list[Translation]) -> list[float]:
    return [alternative.log_prob for translation in translations for alternative in translation.alternatives]


def test_every_search_that_the_package_offers_is_tried_here() -> None:
    offered = [getattr(engine, name) for name in engine.__all__]
    assert {one for one in offered if hasattr(one, "rows") and callable(one)} == {type(search) for search in SEARCHES}


@pytest.mark.parametrize("search", SEARCHES)
def test_a_translation_depends_neither_on_the_other_lines_nor_on_their_order(
    translator: Translator, search: Search
) -> None:
    together = translator.translate(LINES, search=search)
    alone = [translator.translate([line], first_line=i, search=search)[0] for i, line in enumerate(LINES)]
    assert texts(together) == texts(alone)
    assert log_probs(together) == pytest.approx(log_probs(alone), abs=1e-4)
    assert len({translation.text for translation in together}) > 4
    if not isinstance(search, Sample):
        order = random.Random(0).sample(range(len(LINES)), len(LINES))
        shuffled = translator.translate([LINES[i] for i in order], search=search)
        assert texts(shuffled) == [texts(together)[i] for i in order]


@pytest.mark.parametrize("search", SEARCHES)
def test_many_small_batches_equal_one_large_one(
    translator: Translator, search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = texts(translator.translate(LINES, search=search))
    monkeypatch.setattr(translator_module, "MAX_BATCH_TOKENS", 60)
    assert texts(translator.translate(LINES, search=search)) == together


def cut_into(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text has so many pieces, whatever the version of SentencePiece."""
    monkeypatch.setattr(Vocabulary, "encode", lambda vocabulary, text: [FIRST_TEXT_ID] * count)


@pytest.mark.parametrize(("beam_size", "lines", "batches"), [(1, 400, 9), (4, 100, 10), (1, 10, 1), (1, 4000, 23)])
def test_every_core_gets_its_share_and_no_batch_is_too_large(
    translator: Translator, monkeypatch: pytest.MonkeyPatch, beam_size: int, lines: int, batches: int
) -> None:
    """The first batch is a quarter of all, or as large as may be, the last ones are small; few lines stay together."""
    cut_into(39, monkeypatch)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    positions: list[int] = []

    def shared_out(device: torch.device, function: Any, parts: list[Part], batches: list[list[int]]) -> list[Any]:
        positions.extend(len(batch) * (len(parts[batch[0]].ids) + 1) * beam_size for batch in batches)
        return [[Hypothesis([], 0.0, 0.0)] for _ in parts]

    monkeypatch.setattr(translator_module, "in_batches", shared_out)
    translator.translate(LINES[3:4] * lines, beam_size=beam_size)
    assert len(positions) == batches
    assert sum(positions) == lines * beam_size * 40
    assert positions == sorted(positions, reverse=True)
    assert positions[0] <= min(max(sum(positions) / 4, 1_000), translator_module.MAX_BATCH_TOKENS)
    assert positions[-1] <= 1_000


@pytest.mark.parametrize("search", SEARCHES)
def test_blank_lines_have_blank_translations_and_no_others_do(translator: Translator, search: Search) -> None:
    found = translator.translate(LINES, search=search)
    for line, translation in zip(LINES, found, strict=True):
        blank = line in ("", "\u200b \u3000")
        assert (translation.log_prob == 0) == blank
        assert not (blank and translation.tokens)
        assert not (blank and translation.text)
    assert found[2] == Translation("", alternatives=(Translation(""),))


def test_no_lines_have_no_translations(translator: Translator) -> None:
    assert translator.translate([]) == []


def test_the_best_alternative_is_the_translation(translator: Translator) -> None:
    for translation in translator.translate(LINES[:2], search=Beam(4, n_best=4)):
        best = translation.alternatives[0]
        assert (best.text, best.score, best.log_prob, best.tokens) == (
            str(translation),
            translation.score,
            translation.log_prob,
            translation.tokens,
        )
        scores = [alternative.score for alternative in translation.alternatives]
        assert len(scores) == 4
        assert scores == sorted(scores, reverse=True)
        assert len({alternative.tokens for alternative in translation.alternatives}) == 4


def test_defaults_are_those_of_the_run(translator: Translator) -> None:
    decoding = translator.decoding
    explicit = Beam(decoding.beam_size, decoding.length_penalty)
    assert translator.translate(LINES) == translator.translate(LINES, search=explicit)


def test_a_beam_size_alone_is_short_for_a_search(translator: Translator) -> None:
    assert translator.translate(LINES, beam_size=4) == translator.translate(LINES, search=Beam(4, 0.6))
    assert translator.translate(LINES, beam_size=1) == translator.translate(LINES, search=Greedy(0.6))


def test_the_length_penalty_changes_scores_alone_for_greedy_search(translator: Translator) -> None:
    (plain,) = translator.translate(LINES[:1], search=Greedy(0.0))
    (normalised,) = translator.translate(LINES[:1], search=Greedy(1.0))
    assert plain.tokens == normalised.tokens
    assert plain.score == plain.log_prob == normalised.log_prob
    assert normalised.score == pytest.approx(plain.log_prob / ((5 + len(plain.tokens) + 1) / 6))


def test_impossible_searches_are_refused(translator: Translator) -> None:
    with pytest.raises(ValueError, match="beam size must be at least 1"):
        translator.translate(["a dog"], beam_size=0)
    with pytest.raises(ValueError, match="beam_size or search, not both"):
        translator.translate(["a dog"], beam_size=2, search=Beam(2))


@pytest.mark.parametrize("search", SEARCHES)
def test_control_pieces_and_unknowns_are_never_generated(
    make_model: Callable[[int], Transformer], tokenizer: Tokenizer, search: Search
) -> None:
    model, control = make_model(15), [*tokenizer.tgt.control_ids(), UNK_ID]
    assert len(control) == 20
    with torch.no_grad():
        model.output_layer.bias[[i for i in control if i != EOS_ID]] = 50  # likelier than anything else
    found = Translator(model, tokenizer).translate(LINES[:2], search=search)
    generated = {token for translation in found for one in translation.alternatives for token in one.tokens}
    assert len(generated) > 1
    assert generated.isdisjoint(tokenizer.tgt.piece(i) for i in control)


def test_log_prob_is_the_teacher_forced_sum(translator: Translator, tokenizer: Tokenizer) -> None:
    ids = {tokenizer.tgt.piece(i): i for i in range(len(tokenizer.tgt))}
    forbidden = [i for i in [*tokenizer.tgt.control_ids(), UNK_ID] if i != EOS_ID]
    for source, translation in zip(LINES[:2], translator.translate(LINES[:2], search=Beam(3, n_best=3)), strict=True):
        for one in translation.alternatives:
            output = [ids[piece] for piece in one.tokens]
            src, tgt_in = torch.tensor([[*tokenizer.src.encode(source), EOS_ID]]), torch.tensor([[BOS_ID, *output]])
            with torch.no_grad():
                logits = translator.model(src, tgt_in)[0]
            logits[:, forbidden] = float("-inf")
            loss = F.cross_entropy(logits, torch.tensor([*output, EOS_ID]), reduction="sum")
            assert one.log_prob == pytest.approx(-loss.item(), abs=1e-4)


# Sampling


def test_the_same_seed_gives_the_same_sample_and_another_seed_another(translator: Translator) -> None:
    first = texts(translator.translate(LINES, search=Sample(seed=1)))
    assert texts(translator.translate(LINES, search=Sample(seed=1))) == first
    assert texts(translator.translate(LINES, search=Sample(seed=2))) != first


@pytest.mark.parametrize("search", [Sample(temperature=1e-4), Sample(top_k=1), Sample(top_p=1e-6)])
def test_the_sharpest_sampling_is_greedy_search(translator: Translator, search: Sample) -> None:
    greedy = translator.translate(LINES, beam_size=1, repair=False)
    assert texts(translator.translate(LINES, search=search)) == texts(greedy)


def test_a_stream_may_be_cut_anywhere(translator: Translator) -> None:
    search, stream = Sample(seed=3), ["the cat likes a dog"] * 10
    whole = texts(translator.translate(stream, search=search))
    halves = translator.translate(stream[:5], search=search)
    halves += translator.translate(stream[5:], search=search, first_line=5)
    assert texts(halves) == whole
    assert len({text for (text,) in whole}) > 5


def test_samples_of_one_line_differ_and_do_not_depend_on_their_number(translator: Translator) -> None:
    (two,) = texts(translator.translate(LINES[:1], search=Sample(samples=2)))
    (five,) = texts(translator.translate(LINES[:1], search=Sample(samples=5)))
    assert five[:2] == two
    assert len(set(five)) > 2


# Long texts

SENTENCES = ["the cat sees the house.", "a dog likes two apples!", "my sister finds a red ball?"]


def test_a_text_beyond_the_limit_is_split_at_sentence_ends_and_joined(model: Transformer, tokenizer: Tokenizer) -> None:
    warnings: list[str] = []
    translator = Translator(model, tokenizer, warn=warnings.append)
    limit = model.config.max_seq_len - 1
    repeated = SENTENCES * 3
    assert all(len(tokenizer.src.encode(sentence)) <= limit for sentence in repeated)
    assert len(tokenizer.src.encode(" ".join(repeated))) > limit
    expected_parts: list[str] = []
    for sentence in repeated:
        joined = f"{expected_parts[-1]} {sentence}" if expected_parts else sentence
        if expected_parts and len(tokenizer.src.encode(joined)) <= limit:
            expected_parts[-1] = joined
        else:
            expected_parts.append(sentence)
    search = Beam(2, n_best=2)
    (whole,) = translator.translate([" ".join(repeated)], search=search)
    parts = translator.translate(expected_parts, search=search)
    for rank, alternative in enumerate(whole.alternatives):
        ranked = [part.alternatives[rank] for part in parts]
        assert alternative.text == " ".join(one.text for one in ranked)
        assert alternative.tokens == sum((one.tokens for one in ranked), ())
        assert alternative.score == pytest.approx(sum(one.score for one in ranked), abs=1e-3)
        assert alternative.log_prob == pytest.approx(sum(one.log_prob for one in ranked), abs=1e-3)
    assert warnings == []


@dataclass(frozen=True)
class Says:
    """A search that always finds the same."""

    ids: list[int]
    rows: int = 1
    length_penalty: float = 0.6

    def __call__(self, step: Step, state: SearchState, task: Task) -> list[list[Hypothesis]]:
        return [[Hypothesis(self.ids, -1.0, -1.0)] for _ in task.max_lengths]


@pytest.mark.parametrize(
    ("said", "joint"), [("the cat sleeps.", " "), ("猫が寝る。", ""), ("แมวนอน", " "), ("猫 が 寝る 。", " ")]
)
def test_parts_are_joined_as_the_script_of_the_translation_does(
    model: Transformer, tokenizer: Tokenizer, said: str, joint: str
) -> None:
    translator = Translator(model, tokenizer)
    (found,) = translator.translate([" ".join(SENTENCES * 3)], search=Says(tokenizer.tgt.encode(said)))
    parts = found.text.count(said)
    assert parts > 1 and found.text == joint.join([said] * parts)


def test_a_sentence_beyond_the_limit_is_cut_with_a_warning_that_names_its_line(
    model: Transformer, tokenizer: Tokenizer
) -> None:
    warnings: list[str] = []
    translator = Translator(model, tokenizer, warn=warnings.append)
    found = translator.translate(["a dog", "the cat likes a red ball and " * 20], beam_size=1, first_line=100)
    assert len(found) == 2
    (warning,) = warnings
    assert warning.startswith("line 102 has a sentence longer than 39 pieces")


@pytest.mark.parametrize(
    "text",
    ["x" * 500, "日本語。" * 100, "\U0001f600" * 60, '."' * 200, "a" * 39, "a" * 40, "e" + "\u0323" * 300, "क्ष" * 99],
)
def test_any_text_fits(translator: Translator, text: str) -> None:
    translates_all = Translator(translator.model, translator.tokenizer, facts=CorpusFacts(letterless=20))
    alone, inside = translates_all.translate([text, f"the {text} dog"], beam_size=1)
    assert alone.log_prob < 0 or (alone.text, alone.unknown_share) == (text, 1), (
        "it is copied where nothing of it is known"
    )
    assert inside.log_prob < 0
    assert inside.text == " ".join(inside.text.split())


# Given beginnings

PREFIXES = ["die", "ein roter", "der Hund", "", "Ja", "ein", "", "das", "die Kat", "Zz-"]


def pieces(tokenizer: Tokenizer, text: str) -> tuple[str, ...]:
    return tuple(tokenizer.tgt.piece(i) for i in tokenizer.tgt.encode(text))


@pytest.mark.parametrize("search", SEARCHES)
def test_translations_begin_with_their_prefixes(translator: Translator, tokenizer: Tokenizer, search: Search) -> None:
    """The lines are of several lengths, two of them are blank, and two prefixes are empty."""
    free = translator.translate(LINES, search=search)
    found = translator.translate(LINES, search=search, prefixes=PREFIXES)
    for line, prefix, without, translation in zip(LINES, PREFIXES, free, found, strict=True):
        for one in translation.alternatives:
            if line in ("", "\u200b \u3000"):
                assert one == Translation("")
            else:
                assert one.text.startswith(prefix)
                assert one.tokens[: len(pieces(tokenizer, prefix))] == pieces(tokenizer, prefix)
        if not prefix:
            assert [one.text for one in translation.alternatives] == [one.text for one in without.alternatives]
    assert sum(len(one.text) > len(prefix) for one, prefix in zip(found, PREFIXES, strict=True)) > 4


@pytest.mark.parametrize("search", SEARCHES)
def test_lines_with_prefixes_depend_not_on_each_other(translator: Translator, search: Search) -> None:
    together = translator.translate(LINES, search=search, prefixes=PREFIXES)
    alone = [
        translator.translate([line], search=search, prefixes=[prefix], first_line=i)[0]
        for i, (line, prefix) in enumerate(zip(LINES, PREFIXES, strict=True))
    ]
    assert texts(together) == texts(alone)
    assert log_probs(together) == pytest.approx(log_probs(alone), abs=1e-4)


@pytest.mark.parametrize("search", SEARCHES)
def test_one_prefix_is_for_all_lines(translator: Translator, search: Search) -> None:
    one = translator.translate(LINES, search=search, prefixes=" ein  Hund")
    assert one == translator.translate(LINES, search=search, prefixes=["ein Hund"] * len(LINES))
    assert one != translator.translate(LINES, search=search)
    for blank in ("", " \u200b"):
        assert translator.translate(LINES, search=search, prefixes=blank) == translator.translate(LINES, search=search)


def test_the_beginning_of_a_greedy_translation_gives_that_translation(
    translator: Translator, tokenizer: Tokenizer
) -> None:
    """Cut after each word: where SentencePiece cuts the beginning as the model did, nothing changes."""
    compared = 0
    for line, free in zip(LINES, translator.translate(LINES, beam_size=1, repair=False), strict=True):
        words = free.text.split()
        for count in range(1, len(words) + 1):
            prefix = " ".join(words[:count])
            start = pieces(tokenizer, prefix)
            if free.tokens[: len(start)] == start:
                (found,) = translator.translate([line], beam_size=1, prefixes=prefix, repair=False)
                assert found.tokens == free.tokens
                assert found.log_prob == pytest.approx(free.log_prob, abs=1e-4)
                compared += 1
    assert compared > 5


def test_log_prob_with_a_prefix_is_that_of_the_whole_output(translator: Translator, tokenizer: Tokenizer) -> None:
    ids = {tokenizer.tgt.piece(i): i for i in range(len(tokenizer.tgt))}
    (translation,) = translator.translate(LINES[:1], search=Beam(3, n_best=3), prefixes="die Katze")
    for one in translation.alternatives:
        output = [ids[piece] for piece in one.tokens]
        with torch.no_grad():
            src, tgt_in = torch.tensor([[*tokenizer.src.encode(LINES[0]), EOS_ID]]), torch.tensor([[BOS_ID, *output]])
            logits = translator.model(src, tgt_in)[0]
        logits[:, tokenizer.tgt.forbidden_ids()] = float("-inf")
        loss = F.cross_entropy(logits, torch.tensor([*output, EOS_ID]), reduction="sum")
        assert one.log_prob == pytest.approx(-loss.item(), abs=1e-4)
        assert one.score == pytest.approx(one.log_prob / ((5 + len(output) + 1) / 6) ** 0.6)


@pytest.mark.parametrize(
    "prefix", ["\u2581", "\ue000a", "日本", "e\u0301", "<s> </s>", "Äpf", "\U0001f600", "a\u00a0 b", "⁇"]
)
@pytest.mark.parametrize("seed", range(5))
def test_any_text_can_be_a_prefix(translator: Translator, prefix: str, seed: int) -> None:
    """Bytes of characters that are no pieces may follow, too: the sampling is wild."""
    search = Sample(temperature=20, seed=seed, samples=8)
    (found,) = translator.translate(LINES[:1], search=search, prefixes=prefix)
    assert all(one.text.startswith(clean(prefix)) for one in found.alternatives)
    assert len(set(found.alternatives)) > 4


def test_a_text_that_is_split_takes_its_prefix_in_the_first_part(model: Transformer, tokenizer: Tokenizer) -> None:
    translator = Translator(model, tokenizer)
    (whole,) = translator.translate([" ".join(SENTENCES * 3)], prefixes=["der Hund"])
    first, *_ = split_text(" ".join(SENTENCES * 3), lambda text: len(tokenizer.src.encode(text)), 39)[0]
    (free,) = translator.translate([" ".join(SENTENCES * 3)])
    (begun,) = translator.translate([first], prefixes="der Hund")
    (free_first,) = translator.translate([first])
    assert whole.text.startswith("der Hund")
    assert whole.tokens == begun.tokens + free.tokens[len(free_first.tokens) :]


def test_a_prefix_may_be_longer_than_the_run_would_write(translator: Translator, tokenizer: Tokenizer) -> None:
    prefix = "die Katze sieht das Haus und die Katze sieht den Hund"
    limit = translator.decoding.max_decode_len(len(tokenizer.src.encode("a dog")), 40)
    assert limit < len(pieces(tokenizer, prefix)) + 1 <= 40
    for search in SEARCHES:
        (found,) = translator.translate(["a dog"], search=search, prefixes=prefix)
        assert {one.text for one in found.alternatives} == {prefix}


def test_prefixes_that_cannot_be_are_refused_in_one_line(translator: Translator, model: Transformer) -> None:
    fitting = "é" * 18 + "é"  # no piece: two bytes each, after one for the space
    assert len(translator.tokenizer.tgt.encode(fitting)) == 39
    (found,) = translator.translate(["a dog"], beam_size=1, prefixes=fitting)
    assert found.text == fitting
    with pytest.raises(
        DataError, match=r"^prefixes\[0\] 'é+\.\.' has \d+ pieces, but this model writes at most 39; shorten it$"
    ):
        translator.translate(["a dog"], prefixes=["é" * 70])
    with pytest.raises(ValueError, match="there are 2 texts, but 1 prefixes"):
        translator.translate(["a dog", "a cat"], prefixes=["ein"])
    words = build_tokenizer(zip(["a dog"], ["ein Hund"], strict=True), TokenizerConfig(type="word"))
    config = replace(model.config, num_encoder_layers=1, num_decoder_layers=1)
    vocabulary = {"src_vocab_size": len(words.src), "tgt_vocab_size": len(words.tgt), "shared_vocab": True}
    by_words = Translator(Transformer(config, **vocabulary).eval(), words)
    assert by_words.translate(["a dog"], prefixes="ein")[0].text.startswith("ein")
    with pytest.raises(DataError, match="the prefix 'ein Pferd' has a character or a word that is not in the target"):
        by_words.translate(["a dog"], prefixes="ein Pferd")


# Loading


def test_a_run_is_loaded_by_its_path(run_directory: Path) -> None:
    translator = Translator.load(str(run_directory), device="cpu")
    assert translator.decoding.beam_size == 3
    assert not translator.model.training
    assert translator.translate(["a dog sees the house."])[0].tokens


@pytest.mark.parametrize(("checkpoint", "step"), [("best", 20), ("last", 30), ("10", 10), ("000010", 10)])
def test_the_checkpoint_asked_for_is_loaded(
    run_directory: Path, make_model: Callable[[int], Transformer], checkpoint: str, step: int
) -> None:
    loaded = Translator.load(run_directory, checkpoint=checkpoint, device="cpu").model
    assert torch.equal(loaded.output_layer.weight, make_model(step).output_layer.weight)


@pytest.mark.parametrize("checkpoint", ["40", "0", "-10", "newest", "9" * 5000, "10.0", "../10", ""])
def test_a_checkpoint_that_is_not_there_is_refused_with_those_that_are(run_directory: Path, checkpoint: str) -> None:
    with pytest.raises(ModelError, match="best, last and the steps: 10, 20, 30"):
        Translator.load(run_directory, checkpoint=checkpoint, device="cpu")


def test_a_run_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no run"):
        Translator.load(tmp_path / "absent")


def test_a_directory_without_checkpoints_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no valid checkpoint"):
        Translator.load(tmp_path)


def test_the_tokenizer_of_another_model_is_refused(
    run_directory: Path, tmp_path: Path, pairs: list[tuple[str, str]]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(run_directory, run)
    sources, targets = zip(*pairs[:20], strict=True)
    build_tokenizer(zip(sources, targets, strict=True), TokenizerConfig(type="word")).save(run / "tokenizer")
    with pytest.raises(ModelError, match="is not the tokenizer that this model was trained with"):
        Translator.load(run, device="cpu")


def test_a_run_without_its_tokenizer_is_refused(run_directory: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(run_directory, run)
    shutil.rmtree(run / "tokenizer")
    with pytest.raises(ModelError, match="not a tokenizer directory"):
        Translator.load(run, device="cpu")


def test_a_loaded_model_translates_as_the_one_that_was_saved(
    run_directory: Path, make_model: Callable[[int], Transformer], tokenizer: Tokenizer
) -> None:
    loaded = Translator.load(run_directory, checkpoint="last", device="cpu")
    assert loaded.translate(LINES) == Translator(make_model(30), tokenizer, loaded.decoding).translate(LINES)


@pytest.mark.parametrize(("device", "shared", "batches"), [("cpu", True, 7), ("cuda", False, 1), ("mps", False, 1)])
def test_only_a_cpu_is_shared_among_threads(
    model: Transformer,
    tokenizer: Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
    device: str,
    shared: bool,
    batches: int,
) -> None:
    """Several Python threads on MPS end the process; on CUDA they launch more and smaller work."""
    threads: list[threading.Thread] = []

    def search(self: ModelSearcher, search: Search, batch: list[Any], check: object) -> list[list[Hypothesis]]:
        threads.append(threading.current_thread())
        return [[Hypothesis([EOS_ID], 0.0, 0.0)] for _ in batch]

    monkeypatch.setattr(ModelSearcher, "search", search)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)
    cut_into(18, monkeypatch)
    translator = Translator(model, tokenizer)
    translator.searcher.device = torch.device(device)  # pyright: ignore[reportAttributeAccessIssue]
    assert len(translator.translate(["the cat sees the house."] * 400, beam_size=1)) == 400
    assert len(threads) == batches
    assert all(thread is threading.main_thread() for thread in threads) != shared


def test_one_text_is_not_translated_letter_by_letter(translator: Translator) -> None:
    with pytest.raises(TypeError, match=r"give a list of texts, not one text: \['ab'\]"):
        translator.translate("ab")
    with pytest.raises(TypeError, match=r"texts\[1\] is None, not a string"):
        translator.translate(["a", None])  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"prefixes\[0\] is of type int, not a string"):
        translator.translate(["a"], prefixes=[3])  # pyright: ignore[reportArgumentType]


# --- signs ---


@pytest.mark.parametrize(
    ("argument", "value", "expected"),
    [
        ("repair", "off", "bool or None"),
        ("repair", 0, "bool or None"),
        ("glossary", {"a": "b"}, "Glossary"),
        ("glossary", "terms.tsv", "Glossary"),
        ("search", "beam", "Greedy, Sample or Beam"),
        ("beam_size", "5", "int or None"),
        ("beam_size", 2.5, "int or None"),
        ("beam_size", True, "int or None"),
        ("first_line", None, "int or Sequence"),
    ],
)
def test_an_argument_of_another_type_is_named(
    translator: Translator, argument: str, value: object, expected: str
) -> None:
    with pytest.raises(TypeError, match=f"^{argument} must be {expected}, but is {re.escape(repr(value))}$"):
        translator.translate(["a dog"], **{argument: value})  # pyright: ignore[reportArgumentType]


def test_a_run_or_a_checkpoint_of_another_type_is_named(run_directory: Path) -> None:
    with pytest.raises(TypeError, match=r"^run must be str or Path, but is None$"):
        Translator.load(None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"^checkpoint must be str, but is 1200$"):
        Translator.load(run_directory, checkpoint=1200)  # pyright: ignore[reportArgumentType]


def test_signs_are_what_they_are_called(translator: Translator) -> None:
    text = "the cat sees the 12 houses."
    (found,) = translator.translate([text])
    read, tokenizer = translator.tokenizer.src.encode(text), translator.tokenizer
    written = tokenizer.tgt.encode(found.text) if found.ids is None else list(found.ids)
    assert dict(zip(SIGNS, found.signs, strict=True)) == pytest.approx(
        {
            "confidence": found.confidence,
            "log_pieces": math.log(len(written) + 1),
            "log_length_ratio": math.log((len(found.text) + 1) / (len(text) + 1)),
            "source_log_rank": sum(math.log(token) for token in read) / len(read),
            "source_letters_per_piece": len(text) / (len(read) + 1),
            "output_letters_per_piece": len(found.text) / (len(written) + 1),
            "faults": float(bool(found.numbers) or found.looped),
        }
    )
    blank, kept = translator.translate(["", "12:30"])
    assert blank.signs == kept.signs == () and blank.projected is None


def test_a_long_text_has_the_signs_of_all_its_parts(translator: Translator) -> None:
    sentences = ["the cat sees the house.", "my sister likes two apples.", "the dog sees a child."] * 8
    (found,) = translator.translate([" ".join(sentences)])
    assert found.ids is None, "it was split"
    assert found.signs[SIGNS.index("log_pieces")] == pytest.approx(math.log(len(found.tokens) + 1))
    assert found.signs[SIGNS.index("source_letters_per_piece")] == pytest.approx(
        len(" ".join(sentences)) / (len(translator.tokenizer.src.encode(" ".join(sentences))) + 1), rel=0.1
    )


def test_a_text_in_capitals_is_read_in_small_letters_and_its_translation_is_in_capitals(translator: Translator) -> None:
    shouts = ["THE CAT SEES THE HOUSE.", "MY SISTER LIKES TWO APPLES. THE DOG SEES A CHILD.", "A RED BALL."]
    plain = [in_usual_form(text, translator.tokenizer.src, translator.facts).text for text in shouts]
    for search in SEARCHES:
        usual, shouted = (translator.translate(of, search=search) for of in (plain, shouts))
        for one, other in zip(usual, shouted, strict=True):
            assert [each.text for each in other.alternatives] == [capitals(each.text) for each in one.alternatives]
            assert (other.ids, other.score, other.unknown, other.tokens) == (one.ids, one.score, (), one.tokens)
    titles = translator.translate([title(text) for text in plain[:2]])
    assert [one.text for one in titles] == [title(one.text) for one in translator.translate(plain[:2])]


def test_a_text_in_capitals_keeps_its_terms_and_a_given_beginning(translator: Translator) -> None:
    glossary = Glossary([("dog", "Zelt")])
    plain, shouted = (translator.translate([text], glossary=glossary)[0] for text in ("a dog", "A DOG"))
    assert (plain.missed, plain.constrained) == (shouted.missed, shouted.constrained) == ((), True)
    assert shouted.text == plain.text.upper() and "ZELT" in shouted.text
    assert translator.translate(["☃ a dog"], glossary=Glossary([("☃", "Eis")]))[0].missed == ()
    begun_of = "THE CAT SEES THE HOUSE."
    begun = translator.translate([begun_of], prefixes="ein Hund")[0]
    assert begun.text.startswith("ein Hund") and begun.source_ids == (*translator.tokenizer.src.encode(begun_of),)


@pytest.fixture(scope="module")
def by_words(pairs: list[tuple[str, str]], model: Transformer) -> Translator:
    """A translator whose pieces are the words of the pairs."""
    words = build_tokenizer([*pairs, ("my sister likes two apples", "ein Hund")], TokenizerConfig(type="word"))
    vocabulary = {"src_vocab_size": len(words.src), "tgt_vocab_size": len(words.tgt), "shared_vocab": True}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        return Translator(Transformer(model.config, **vocabulary).eval(), words)


def test_a_slip_of_typing_is_read_as_the_word_that_is_meant_and_said(by_words: Translator) -> None:
    text = "my sister likes two apples"
    assert by_words.tokenizer.src.words.issuperset(text.split())
    typed = text.replace("sister", "sisster").replace("apples", "aplpes")
    meant = (("sisster", "sister"), ("aplpes", "apples"))
    for search in SEARCHES:
        plain, odd = (by_words.translate([one], search=search)[0] for one in (text, typed))
        assert (odd.text, odd.ids, odd.slips, plain.slips) == (plain.text, plain.ids, meant, ())
        assert odd.to_dict()["slips"] == list(meant) and "slips" not in plain.to_dict()
    begun = by_words.translate([typed], prefixes="ein")[0]
    assert begun.slips == () and begun.source_ids == (*by_words.tokenizer.src.encode(typed),)
    long = by_words.translate([" ".join([typed] * 9)])[0]
    assert long.ids is None and long.slips == meant * 9


def test_a_term_is_found_in_a_word_with_a_slip_and_may_look_like_one(by_words: Translator) -> None:
    typed = "my sister likes two aplpes"
    for term, slips in (("apples", (("aplpes", "apples"),)), ("aplpes", ())):
        (found,) = by_words.translate([typed], glossary=Glossary([(term, "Hund")]))
        assert (found.missed, found.slips) == ((), slips) and "Hund" in found.text


def test_a_text_without_a_last_sign_is_read_with_one(model: Transformer, tokenizer: Tokenizer) -> None:
    facts = CorpusFacts(pairs=1_000, last_sign=".")
    translator = Translator(model, tokenizer, facts=facts)
    whole, open_ = translator.translate(["the cat sees the house.", "the cat sees the house"])
    assert open_.ids == whole.ids and open_.text == open_ended(whole.text)


def test_emoji_and_other_scripts_are_copied_and_said(translator: Translator) -> None:
    plain, marked, foreign = translator.translate(["a red ball.", "東京 a red ball. ☃", "Привет 12!"])
    assert marked.text == f"東京 {plain.text} ☃" and marked.ids == plain.ids
    assert marked.unknown == ("東", "京", "☃") and 0 < marked.unknown_share < 1 and marked.confidence < plain.confidence
    assert (foreign.text, foreign.confidence < 0.6, foreign.unknown[:2]) == ("Привет 12!", True, ("П", "р"))
