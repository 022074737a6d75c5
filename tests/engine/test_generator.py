"""Texts from a language model: they begin as they are told to, and depend on nothing else than seed and line."""

import re
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from tfm.data.cleaning import clean
from tfm.data.tokenizer import BOS_ID, EOS_ID, Tokenizer
from tfm.engine import Beam, Generator, Greedy, Sample, Translator
from tfm.engine.runs.checkpoint import ModelDescription
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.runs.weights import model_tensors, write_checkpoint
from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.decoder_only import DecoderOnly
from tfm.seq2seq.model.encoder_decoder import Transformer
from tfm.system.errors import UsageError

BEGINNINGS = ["die Katze", "", "ein Hund sieht", "mag"]


@pytest.fixture(scope="module")
def language_model(tokenizer: Tokenizer) -> DecoderOnly:
    """A random one, which prefers whole pieces to bytes."""
    config = ModelConfig(
        architecture="decoder_only",
        d_model=16,
        d_ff=32,
        num_heads=2,
        num_encoder_layers=0,
        num_decoder_layers=2,
        max_seq_len=24,
        tie_embeddings=False,
        output_bias=True,
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(5)
        model = DecoderOnly(config, vocab_size=len(tokenizer.tgt))
        model.output_layer.weight.mul_(6)
        assert model.output_layer.bias is not None
        model.output_layer.bias[[tokenizer.tgt.is_byte(i) for i in range(len(tokenizer.tgt))]] = -20
        model.output_layer.bias[EOS_ID] = 2
    return model.eval()


@pytest.fixture
def generator(language_model: DecoderOnly, tokenizer: Tokenizer) -> Generator:
    return Generator(language_model, tokenizer)


@pytest.mark.parametrize("search", [Sample(seed=3), Sample(top_k=3), Greedy(), Beam(3)], ids=str)
def test_a_text_begins_as_it_is_told_to(generator: Generator, search: Sample | Greedy | Beam) -> None:
    found = generator.generate(BEGINNINGS, search=search)
    assert len(found) == len(BEGINNINGS)
    for beginning, one in zip(BEGINNINGS, found, strict=True):
        assert one.text.startswith(beginning)
        assert one.text == clean(one.text)
        assert one.ended == (len(one.tokens) + 1 < generator.max_pieces)


def test_together_or_one_by_one_the_texts_are_the_same(generator: Generator) -> None:
    together = generator.generate(BEGINNINGS * 5, search=Sample(seed=1))
    alone = [
        generator.generate([text], search=Sample(seed=1), first_line=line)[0]
        for line, text in enumerate(BEGINNINGS * 5)
    ]
    assert [one.text for one in together] == [one.text for one in alone]
    assert len({one.text for one in together}) > len(BEGINNINGS)


def test_another_seed_gives_other_texts(generator: Generator) -> None:
    first, second = (generator.generate([""] * 8, search=Sample(seed=seed)) for seed in (1, 2))
    assert [one.text for one in first] != [one.text for one in second]


def test_the_log_probability_is_that_of_the_whole_text(generator: Generator, language_model: DecoderOnly) -> None:
    one = generator.generate(["die Katze"], search=Greedy())[0]
    vocabulary = generator.tokenizer.tgt
    known = {vocabulary.piece(i): i for i in range(len(vocabulary))}
    ids = torch.tensor([[BOS_ID, *(known[piece] for piece in one.tokens), EOS_ID]])
    with torch.no_grad():
        logits = language_model(torch.empty(1, 0, dtype=torch.long), ids[:, :-1])
    logits[:, :, vocabulary.forbidden_ids()] = float("-inf")
    expected = logits.log_softmax(-1).gather(2, ids[:, 1:, None]).sum()
    assert one.log_prob == pytest.approx(expected.item(), rel=1e-4)


def test_several_samples_for_each_line(generator: Generator) -> None:
    found = generator.generate(["die Katze", ""], search=Sample(samples=3))
    assert len(found) == 6
    assert all(one.text.startswith("die Katze") for one in found[:3])


def test_the_length_is_limited(generator: Generator) -> None:
    found = generator.generate([""] * 20, max_pieces=4)
    assert max(len(one.tokens) for one in found) == 3
    with pytest.raises(UsageError, match="at most 24 pieces, its end included, not 25"):
        generator.generate([""], max_pieces=25)


@pytest.mark.parametrize("samples", [1, 2])
def test_what_cannot_be_continued_is_left_as_it_is_and_the_others_are_as_without_it(
    generator: Generator, samples: int
) -> None:
    long = "die Katze " * 20
    found = generator.generate(["", long, "die Katze"], search=Sample(samples=samples))
    refused = found[samples : 2 * samples]
    assert {(one.text, one.tokens, one.ended) for one in refused} == {(long.strip(), (), False)}
    assert all(re.fullmatch(r"the beginning has \d+ pieces, but a text has at most 23", one.problem) for one in refused)
    without = generator.generate(["", "", "die Katze"], search=Sample(samples=samples))
    assert [one.text for one in found if not one.problem] == [
        one.text for one in (*without[:samples], *without[2 * samples :])
    ]
    assert not any(one.problem for one in without)


def save(run: Path, model: DecoderOnly | Transformer, description: ModelDescription, tokenizer: Tokenizer) -> None:
    tokenizer.save(run / "tokenizer")
    target = RunDirectory(run).checkpoint_path(1)
    write_checkpoint(
        target,
        tensors={"model": model_tensors(model)},
        description=description,
        state={"score": 1.0, "progress": {"step": 1}},
    )


def test_each_machine_names_the_command_that_it_is_for(
    tmp_path: Path,
    language_model: DecoderOnly,
    model: Transformer,
    tokenizer: Tokenizer,
    describe_model: Callable[[Transformer], ModelDescription],
) -> None:
    translator = describe_model(model)
    text = replace(translator, model=asdict(language_model.config), src_vocab_size=0)
    save(tmp_path / "text", language_model, text, tokenizer)
    save(tmp_path / "translator", model, translator, tokenizer)
    assert Generator.load(tmp_path / "text", device="cpu").generate(["die Katze"])[0].text.startswith("die Katze")
    with pytest.raises(UsageError, match="text is a language model, and this needs a translator; use tfm generate"):
        Translator.load(tmp_path / "text", device="cpu")
    with pytest.raises(UsageError, match="is a translator, and this needs a language model; use tfm translate"):
        Generator.load(tmp_path / "translator", device="cpu")


def test_one_beginning_is_not_continued_letter_by_letter(generator: Generator) -> None:
    with pytest.raises(TypeError, match="give a list of texts"):
        generator.generate("ab")
    with pytest.raises(TypeError, match=r"beginnings\[1\] is of type float, not a string"):
        generator.generate(["a", float("nan")])  # pyright: ignore[reportArgumentType]
