"""Texts and pieces to vectors: those of the model, one at a time or together, in the order of the texts."""

from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.descriptions import describe

from tfm.data.tokenizer import BOS_ID, EOS_ID, Tokenizer
from tfm.engine import Embedder, PieceEmbedder
from tfm.engine import embedder as embedder_module
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.runs.weights import model_tensors, write_checkpoint
from tfm.seq2seq.model.config import ModelConfig
from tfm.seq2seq.model.decoder_only import DecoderOnly
from tfm.seq2seq.model.encoder_decoder import Transformer
from tfm.seq2seq.model.encoder_only import EncoderOnly
from tfm.system.errors import UsageError

TEXTS = ["the cat sees the house.", "", "ein Hund mag zwei Äpfel.", "the cat", " \t ", "my sister finds a red ball."]


@pytest.fixture(scope="module")
def encoder(tokenizer: Tokenizer) -> EncoderOnly:
    torch.manual_seed(1)
    config = ModelConfig(
        architecture="encoder_only",
        d_model=16,
        d_ff=32,
        num_heads=2,
        num_encoder_layers=2,
        num_decoder_layers=0,
        max_seq_len=24,
    )
    return EncoderOnly(config, vocab_size=len(tokenizer.src)).eval()


@torch.no_grad()
def test_a_vector_is_the_models_for_the_pieces_and_eos(encoder: EncoderOnly, tokenizer: Tokenizer) -> None:
    vectors = Embedder(encoder, tokenizer).embed(TEXTS)
    assert vectors.shape == (6, 16) and vectors.dtype == np.float32
    for text, vector in zip(TEXTS, vectors, strict=True):
        if text.strip():
            alone = encoder.embed(torch.tensor([[*tokenizer.src.encode(text), EOS_ID]]))[0]
            np.testing.assert_allclose(vector, alone.numpy(), atol=1e-5)
        else:
            assert not vector.any()


def test_batches_and_order_change_nothing(
    encoder: EncoderOnly, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = Embedder(encoder, tokenizer)
    texts = [f"{'the cat sees ' * (i % 3)}a dog" for i in range(30)] + TEXTS
    together = embedder.embed(texts)
    np.testing.assert_allclose(embedder.embed(texts[::-1])[::-1], together, atol=1e-5)
    seen: list[int] = []
    encode = embedder._encode
    monkeypatch.setattr(embedder_module, "MAX_BATCH_TOKENS", 60)
    monkeypatch.setattr(
        embedder,
        "_encode",
        lambda rows, check: (seen.append(len(rows) * (len(rows[0]) + 1)), encode(rows, check))[1],
    )
    np.testing.assert_allclose(embedder.embed(texts), together, atol=1e-5)
    assert len(seen) > 3 and max(seen) <= 60


def test_no_texts_have_no_vectors(encoder: EncoderOnly, tokenizer: Tokenizer) -> None:
    assert Embedder(encoder, tokenizer).embed([]).shape == (0, 16)


def test_a_long_text_is_cut_at_the_limit_and_that_is_said(encoder: EncoderOnly, tokenizer: Tokenizer) -> None:
    warned: list[str] = []
    embedder = Embedder(encoder, tokenizer, warn=warned.append)
    long = "the cat sees the house. " * 10
    pieces = tokenizer.src.encode(long)
    vectors = embedder.embed(["a dog", long], first_line=100)
    assert warned == [f"line 102 has {len(pieces)} pieces; its vector is that of the first 23"]
    with torch.no_grad():
        cut = encoder.embed(torch.tensor([[*pieces[:23], EOS_ID]]))[0]
    np.testing.assert_allclose(vectors[1], cut.numpy(), atol=1e-5)


def test_it_is_loaded_from_a_run_and_from_no_other_kind(
    encoder: EncoderOnly, tokenizer: Tokenizer, run_directory: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="is a translator, and this needs a sentence encoder; use tfm translate"):
        Embedder.load(run_directory)
    description = describe(encoder.config, tokenizer)
    tokenizer.save(tmp_path / "tokenizer")
    target = RunDirectory(tmp_path).checkpoint_path(10)
    state = {"score": 1.0, "max_steps": 10, "progress": {"step": 10}}
    write_checkpoint(target, tensors={"model": model_tensors(encoder)}, description=description, state=state)
    embedder = Embedder.load(tmp_path)
    assert embedder.checkpoint == target
    np.testing.assert_allclose(embedder.embed(TEXTS), Embedder(encoder, tokenizer).embed(TEXTS), atol=1e-6)


def test_one_text_is_not_read_letter_by_letter(encoder: EncoderOnly, tokenizer: Tokenizer) -> None:
    with pytest.raises(TypeError, match="give a list of texts"):
        Embedder(encoder, tokenizer).embed("ab")
    with pytest.raises(TypeError, match=r"texts\[0\] is of type bytes, not a string"):
        Embedder(encoder, tokenizer).embed([b"a"])  # pyright: ignore[reportArgumentType]


@torch.no_grad()
def test_vectors_of_pieces_are_what_the_decoder_of_a_translator_attends_to(
    tokenizer: Tokenizer, run_directory: Path
) -> None:
    embedder = PieceEmbedder.load(run_directory)
    model = embedder.model
    assert isinstance(model, Transformer)
    tgt_in = torch.tensor([[BOS_ID, 9, 8, 7]])
    for text, found in zip(TEXTS, embedder.embed_pieces(TEXTS), strict=True):
        if not text.strip():
            assert found.pieces == [] and found.vectors.shape == (0, embedder.size)
            continue
        assert found.pieces == [*tokenizer.src.encode_as_pieces(text), "</s>"]
        assert found.vectors.dtype == np.float32 and found.vectors.shape == (len(found.pieces), embedder.size)
        src = torch.tensor([[*tokenizer.src.encode(text), EOS_ID]])
        attending = model.decode(tgt_in, torch.from_numpy(found.vectors)[None], model.src_mask(src))
        torch.testing.assert_close(model.output_layer(attending), model(src, tgt_in), atol=1e-4, rtol=1e-4)


def test_the_mean_of_the_pieces_is_the_vector_of_the_sentence(encoder: EncoderOnly, tokenizer: Tokenizer) -> None:
    embedder = Embedder(encoder, tokenizer)
    for found, vector in zip(embedder.embed_pieces(TEXTS), embedder.embed(TEXTS), strict=True):
        if found.pieces:
            mean = found.vectors.mean(axis=0)
            np.testing.assert_allclose(mean / np.linalg.norm(mean), vector, atol=1e-5)


def test_of_a_long_text_the_first_pieces_have_vectors(encoder: EncoderOnly, tokenizer: Tokenizer) -> None:
    warned: list[str] = []
    long = "the cat sees the house. " * 10
    pieces = tokenizer.src.encode_as_pieces(long)
    [found] = PieceEmbedder(encoder, tokenizer, warn=warned.append).embed_pieces([long], first_line=7)
    assert warned == [f"line 8 has {len(pieces)} pieces; only the first 23 have vectors"]
    assert found.pieces == [*pieces[:23], "</s>"] and len(found.vectors) == 24


def test_a_decoder_alone_has_no_vectors_of_pieces(tokenizer: Tokenizer, tmp_path: Path) -> None:
    config = ModelConfig(
        architecture="decoder_only", d_model=8, d_ff=8, num_heads=1, num_encoder_layers=0, num_decoder_layers=1
    )
    tokenizer.save(tmp_path / "tokenizer")
    state = {"score": 1.0, "max_steps": 10, "progress": {"step": 10}}
    write_checkpoint(
        RunDirectory(tmp_path).checkpoint_path(10),
        tensors={"model": model_tensors(DecoderOnly(config, vocab_size=len(tokenizer.src)))},
        description=describe(config, tokenizer),
        state=state,
    )
    with pytest.raises(UsageError, match="a model that is decoder_only has no encoder"):
        PieceEmbedder.load(tmp_path)
