"""CTranslate2 computes what our Transformer computes, whatever it is made of: each piece's probability, each search."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from helpers.full_pass import FullPass
from helpers.pieces import EOS, FORBIDDEN, piece_names

from tfm.engine.export.specification import specify
from tfm.seq2seq.decoding.beam import build_search
from tfm.seq2seq.decoding.config import DecodingConfig
from tfm.seq2seq.decoding.search import Hypothesis, Task
from tfm.seq2seq.model.config import Activation, NormOrder, Positions
from tfm.seq2seq.model.encoder_decoder import Transformer
from tfm.seq2seq.model.masks import pad

BOS, LIMIT, BEAM = 2, 20, 5
CHOICES: dict[str, dict[str, Any]] = {
    "the paper": {},
    **{f"norm_order {choice}": {"norm_order": choice} for choice in get_args(NormOrder)},
    **{f"activation {choice}": {"activation": choice} for choice in get_args(Activation)},
    **{f"positions {choice}": {"positions": choice} for choice in get_args(Positions)},
    "embeddings not scaled": {"scale_embeddings": False},
    "no bias in attention": {"attention_bias": False},
    "no bias in the output projection": {"attention_output_bias": False},
    "bias in the output projection alone": {"attention_bias": False, "attention_output_bias": True},
    "no second bias in the feed-forward network": {"feed_forward_output_bias": False},
    "no second bias beside a gate": {"feed_forward_output_bias": False, "activation": "swiglu"},
    "bias in the output layer": {"output_bias": True, "seed": 1},
    "embeddings not tied": {"tie_embeddings": False},
    "epsilon": {"norm_eps": 0.1},
    "no epsilon": {"norm_eps": 0.0},
    "more decoder than encoder": {"num_encoder_layers": 1, "num_decoder_layers": 3},
    "odd sizes": {"d_model": 15, "num_heads": 3, "d_ff": 31, "positions": "learned"},
    "heads narrower than d_model / H": {"d_k": 3, "d_v": 3},
    "heads wider than d_model / H": {"d_k": 12, "d_v": 12},
    "wide keys, narrow values": {"d_k": 11, "d_v": 3},
    "narrow keys, wide values": {"d_k": 3, "d_v": 8},
    **{
        f"rotary positions, d_k {d_k} and d_v {d_v}": {"positions": "rotary", "d_k": d_k, "d_v": d_v}
        for d_k, d_v in ((4, 7), (6, 2), (12, 12))
    },
    "much at once": {
        "norm_order": "pre",
        "activation": "swiglu",
        "positions": "learned",
        "scale_embeddings": False,
        "tie_embeddings": False,
        "output_bias": True,
    },
}


def sentences(count: int, size: int, *, seed: int = 1) -> list[list[int]]:
    """Random ids that may be generated, 1 to 12 of them."""
    rng = random.Random(seed)
    return [[rng.randrange(5, size) for _ in range(rng.randrange(1, 12))] for _ in range(count)]


def spell(ids: list[list[int]], vocabulary: list[str]) -> list[list[str]]:
    return [[vocabulary[i] for i in sentence] for sentence in ids]


@torch.inference_mode()
def log_probs(model: Transformer, src: list[list[int]], tgt: list[list[int]]) -> list[list[float]]:
    """Log-probability of each piece of each target and of its eos, one sentence at a time, from the full pass."""
    found: list[list[float]] = []
    for source, target in zip(src, tgt, strict=True):
        logits = model(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]]))[0]
        logits[:, FORBIDDEN] = float("-inf")
        found.append(logits.log_softmax(dim=-1).gather(1, torch.tensor([*target, EOS])[:, None]).squeeze(1).tolist())
    return found


@torch.inference_mode()
def our_search(model: Transformer, src: list[list[int]], beam_size: int) -> list[list[Hypothesis]]:
    step, search = (
        FullPass(model, FORBIDDEN),
        build_search(DecodingConfig(), beam_size, length_penalty=0, n_best=beam_size),
    )
    return search(step, step.encode(pad([[*ids, EOS] for ids in src])), Task([LIMIT] * len(src), BOS, EOS))


def their_search(export: Any, src: list[list[str]], beam_size: int) -> list[Any]:
    return export.translate_batch(
        src,
        beam_size=beam_size,
        num_hypotheses=beam_size,
        length_penalty=1e-9,
        min_decoding_length=0,
        max_decoding_length=LIMIT,
        return_scores=True,
        return_end_token=True,
    )


@pytest.mark.parametrize("choices", CHOICES.values(), ids=CHOICES.keys())
def test_an_export_is_the_model(
    choices: dict[str, Any], random_model: Callable[..., Transformer], export_model: Callable[..., Any]
) -> None:
    model, vocabulary = random_model(**choices), piece_names(60)
    export = export_model(model)
    src, tgt = sentences(40, 60), sentences(40, 60, seed=2)
    scored = export.score_batch(spell(src, vocabulary), spell(tgt, vocabulary))
    for ours, theirs in zip(log_probs(model, src, tgt), scored, strict=True):
        np.testing.assert_allclose(theirs.log_probs, ours, atol=1e-4)
    _check_greedy(model, export, src, vocabulary)
    _check_beam(model, export, src, vocabulary)


def _check_greedy(model: Transformer, export: Any, src: list[list[int]], vocabulary: list[str]) -> None:
    found = their_search(export, spell(src, vocabulary), 1)
    for (ours,), theirs in zip(our_search(model, src, 1), found, strict=True):
        pieces = theirs.hypotheses[0]
        assert pieces[: len(ours.ids)] == [vocabulary[i] for i in ours.ids]
        if pieces[-1] == "</s>":
            assert len(pieces) == len(ours.ids) + 1
            assert theirs.scores[0] == pytest.approx(ours.log_prob, abs=1e-4)
        else:  # ours ends at the limit, theirs breaks off
            assert len(pieces) == LIMIT == len(ours.ids) + 1


def _check_beam(model: Transformer, export: Any, src: list[list[int]], vocabulary: list[str]) -> None:
    """Hypotheses that end by themselves: theirs are the best of ours."""
    compared: list[tuple[str, ...]] = []
    found = their_search(export, spell(src, vocabulary), BEAM)
    for ours, theirs in zip(our_search(model, src, BEAM), found, strict=True):
        mine = {(*(vocabulary[i] for i in one.ids), "</s>"): one.log_prob for one in ours if len(one.ids) + 1 < LIMIT}
        others = {tuple(p): lp for p, lp in zip(theirs.hypotheses, theirs.scores, strict=True) if len(p) < LIMIT}
        for pieces, log_prob in others.items():
            assert mine[pieces] == pytest.approx(log_prob, abs=1e-4)
        best = sorted(mine.values(), reverse=True)[: len(others)]
        np.testing.assert_allclose(list(others.values()), best, atol=1e-4)
        compared += others
    assert len(compared) >= 40
    assert len(set(compared)) >= 5


@pytest.mark.parametrize("unknown", [{"activation": "tanh"}, {"positions": "unheard-of"}, {"norm_order": "sandwich"}])
def test_a_choice_that_is_not_known_is_refused(
    unknown: dict[str, str], random_model: Callable[..., Transformer]
) -> None:
    model, ((name, value),) = random_model(), unknown.items()
    object.__setattr__(model.config, name, value)  # as if added after all else
    with pytest.raises(NotImplementedError, match=f"^{name} '{value}' is not implemented here$"):
        specify(model, FORBIDDEN)


def test_two_vocabularies(random_model: Callable[..., Transformer], export_model: Callable[..., Any]) -> None:
    model = random_model(src_vocab_size=50, tgt_vocab_size=60, shared=False)
    source, target = piece_names(50, "s"), piece_names(60)
    export = export_model(model, source, target)
    src, tgt = sentences(20, 50), sentences(20, 60, seed=2)
    scored = export.score_batch(spell(src, source), spell(tgt, target))
    for ours, theirs in zip(log_probs(model, src, tgt), scored, strict=True):
        np.testing.assert_allclose(theirs.log_probs, ours, atol=1e-4)


def test_without_epsilon_an_export_has_none_either(
    random_model: Callable[..., Transformer], export_model: Callable[..., Any]
) -> None:
    """Embeddings are so small that CTranslate2's own epsilon, 1e-5, would show."""
    settings: dict[str, Any] = {"norm_order": "pre", "positions": "none", "tie_embeddings": False}
    model, other = (random_model(**settings, norm_eps=eps) for eps in (0.0, 1e-5))
    for one in (model, other):
        for embedding in (one.src_embedding, one.tgt_embedding):
            embedding.tokens.weight.data.mul_(1e-3)
    src, tgt, vocabulary = sentences(20, 60), sentences(20, 60, seed=2), piece_names(60)
    ours = np.concatenate(log_probs(model, src, tgt))
    scored = export_model(model).score_batch(spell(src, vocabulary), spell(tgt, vocabulary))
    np.testing.assert_allclose(np.concatenate([one.log_probs for one in scored]), ours, atol=1e-4)
    assert np.abs(np.concatenate(log_probs(other, src, tgt)) - ours).max() > 0.1


@pytest.mark.parametrize("output_bias", [False, True])
@pytest.mark.parametrize("quantization", ["float32", "float16", "int8"])
def test_forbidden_pieces_are_never_generated(
    quantization: str,
    output_bias: bool,
    random_model: Callable[..., Transformer],
    export_model: Callable[..., Any],
) -> None:
    model = random_model(output_bias=output_bias, norm_order="pre")
    norm: Any = model.decoder.norm
    with torch.no_grad():  # the model itself wants nothing else than reserved piece 4
        row = model.output_layer.weight[4]
        norm.bias.add_(row * 10 / row.square().sum())
    src = spell(sentences(20, 60), piece_names(60))
    names = {piece_names(60)[i] for i in FORBIDDEN}
    options = {"max_decoding_length": LIMIT, "num_hypotheses": 5}
    allowed = export_model(model, quantization=quantization, forbidden=[])
    assert any(
        names & set(pieces) for r in allowed.translate_batch(src, beam_size=5, **options) for pieces in r.hypotheses
    )
    export = export_model(model, quantization=quantization)
    for search in ({"beam_size": 5}, {"beam_size": 1, "sampling_topk": 0, "sampling_temperature": 2.0}):
        for result in export.translate_batch(src, **search, **options):
            assert not names & {piece for pieces in result.hypotheses for piece in pieces}


def test_positions_last_for_the_defaults_of_ctranslate2(
    random_model: Callable[..., Transformer], export_model: Callable[..., Any]
) -> None:
    """Beyond max_seq_len a translation is poor, but one runaway sentence must not cost its whole batch."""
    for positions in sorted({*get_args(Positions)} - {"learned"}):
        model = random_model(positions=positions)
        with torch.no_grad():
            model.output_layer.weight[EOS] = 0
        export = export_model(model, forbidden=[*FORBIDDEN, EOS])
        assert len(export.translate_batch([["t7"] * 1024])[0].hypotheses[0]) == 256


@pytest.mark.parametrize("quantization", ["int8", "int8_float32", "int16", "float16", "bfloat16"])
def test_quantized_exports_come_close_and_leave_the_model_alone(
    quantization: str, random_model: Callable[..., Transformer], export_model: Callable[..., Any]
) -> None:
    model, vocabulary = random_model(d_model=15, num_heads=3, positions="learned"), piece_names(60)
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    export = export_model(model, quantization=quantization)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name]), name
    src, tgt = sentences(20, 60), sentences(20, 60, seed=2)
    ours = np.concatenate(log_probs(model, src, tgt))
    scored = export.score_batch(spell(src, vocabulary), spell(tgt, vocabulary))
    theirs = np.concatenate([one.log_probs for one in scored])
    assert 0 < np.abs(theirs - ours).mean() < 0.2


def test_tied_matrices_are_written_once(
    random_model: Callable[..., Transformer], export_model: Callable[..., Any], tmp_path: Path
) -> None:
    sizes: list[int] = []
    for tie in (True, False):
        model = random_model(tie_embeddings=tie, src_vocab_size=500, tgt_vocab_size=500)
        export_model(model, piece_names(500), piece_names(500))
        sizes.append((tmp_path / "model.bin").stat().st_size)
    assert sizes[1] - sizes[0] == pytest.approx(2 * 4 * 500 * 16, abs=200)  # one for each of three


def test_ctranslate2_counts_eos_when_it_divides_by_the_length(
    random_model: Callable[..., Transformer], export_model: Callable[..., Any]
) -> None:
    """The README of an export says so of `length_penalty`."""
    export, src = export_model(random_model()), spell(sentences(20, 60), piece_names(60))
    found = export.translate_batch(
        src, beam_size=4, length_penalty=1.0, max_decoding_length=LIMIT, min_decoding_length=0, return_scores=True
    )
    ended = [(s, r) for s, r in zip(src, found, strict=True) if 0 < len(r.hypotheses[0]) < LIMIT]
    assert len(ended) >= 5
    for source, result in ended:
        pieces = result.hypotheses[0]
        log_prob = sum(export.score_batch([source], [pieces])[0].log_probs)
        assert result.scores[0] == pytest.approx(log_prob / (len(pieces) + 1), abs=1e-4)
