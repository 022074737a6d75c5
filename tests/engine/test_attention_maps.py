"""Attention of translations."""

from pathlib import Path

import torch
from helpers.explained import SMALL, layers_of, write_run
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from tfm.data.tokenizer import BOS_ID, EOS_ID, Tokenizer
from tfm.engine import Translator
from tfm.engine.attention_maps import attention_map, heat_map
from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.attention import attention_maps

TEXT = "my sister finds two apples"


def test_it_is_the_cross_attention_of_the_output(tmp_path: Path, tokenizer: Tokenizer) -> None:
    run = write_run(tmp_path / "run", tokenizer, ModelConfig(**SMALL, **layers_of("encoder_decoder")))
    translator = Translator.load(run)
    (translation,) = translator.translate([TEXT])
    assert translation.ids is not None
    found = attention_map(translator, TEXT, translation)
    assert found is not None
    assert found.source == [*tokenizer.src.encode_as_pieces(TEXT), "</s>"]
    assert found.output == [*translation.tokens, "</s>"]
    src = torch.tensor([[*tokenizer.src.encode(TEXT), EOS_ID]])
    with torch.inference_mode(), attention_maps(translator.model) as maps:
        translator.model(src, torch.tensor([[BOS_ID, *translation.ids]]))
    assert list(found.weights) == ["decoder.layers.0.cross_attn", "decoder.layers.1.cross_attn"]
    for name, weights in found.weights.items():
        assert weights.equal(maps[name][0][0])


def test_a_decoder_only_model_gives_the_share_of_the_source(tmp_path: Path, tokenizer: Tokenizer) -> None:
    config = ModelConfig(**SMALL, **layers_of("decoder_only"), architecture="decoder_only")
    translator = Translator.load(write_run(tmp_path / "run", tokenizer, config))
    (translation,) = translator.translate([TEXT])
    found = attention_map(translator, TEXT, translation)
    assert found is not None
    for weights in found.weights.values():
        assert weights.shape == (2, len(found.output), len(found.source))
        assert (weights.sum(dim=-1) < 1).all()


def test_blank_texts_and_texts_in_parts_have_none(tmp_path: Path, tokenizer: Tokenizer) -> None:
    run = write_run(tmp_path / "run", tokenizer, ModelConfig(**SMALL, **layers_of("encoder_decoder")))
    translator = Translator.load(run)
    long = "a dog sees the house. " * 9
    blank, split = translator.translate(["  ", long])
    assert attention_map(translator, "  ", blank) is None
    assert split.ids is None and attention_map(translator, long, split) is None


def test_the_picture_has_every_piece_as_text_and_is_the_same_each_time(tmp_path: Path, tokenizer: Tokenizer) -> None:
    run = write_run(tmp_path / "run", tokenizer, ModelConfig(**SMALL, **layers_of("encoder_decoder")))
    translator = Translator.load(run)
    found = attention_map(translator, "a $x$ dog", translator.translate(["a $x$ dog"])[0])
    assert found is not None
    picture = heat_map(found, "line 1")
    texts = ["".join(one.itertext()).strip() for one in etree.fromstring(picture).iter("{*}text")]
    assert [piece for piece in (*found.source, *found.output) if piece.strip() and piece not in texts] == []
    assert picture == heat_map(found, "line 1")
