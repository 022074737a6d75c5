"""The arranged weights compute what the modules compute that they were made from, and refuse what they do not know."""

from typing import Any, get_args

import pytest
import torch
from torch import Tensor, nn

from tfm.seq2seq.decoding.beam import Beam
from tfm.seq2seq.decoding.fast import FastTransformer, arrange, weights
from tfm.seq2seq.decoding.fast.weights import (
    CANDIDATES,
    FEW_ROWS,
    SMALL_VOCABULARY,
    Embedding,
    FeedForward,
    Linear,
    Norm,
    OutputLayer,
    final_norm,
)
from tfm.seq2seq.decoding.greedy import Greedy
from tfm.seq2seq.decoding.sampling import Sample
from tfm.seq2seq.decoding.search import Search, Task
from tfm.seq2seq.model import ModelConfig, Transformer
from tfm.seq2seq.model.config import Activation, NormOrder, Positions
from tfm.seq2seq.model.decoder_only import DecoderOnly
from tfm.seq2seq.model.layers import EncoderLayer

D = 12
SEARCHES: list[Search] = [Greedy(), Beam(5), Beam(12), Beam(3, no_repeat_ngram_size=2), Sample(seed=3)]


def build(**choices: Any) -> Transformer:
    torch.manual_seed(1)
    sizes: dict[str, Any] = {"d_model": D, "d_ff": 20, "num_heads": 2, "max_seq_len": 9}
    config = ModelConfig(**{**sizes, "num_encoder_layers": 1, "num_decoder_layers": 1, **choices})
    model = Transformer(config, src_vocab_size=17, tgt_vocab_size=17, shared_vocab=True).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model


def encoder_layer(model: Transformer) -> EncoderLayer:
    (layer,) = model.encoder.layers
    assert isinstance(layer, EncoderLayer)
    return layer


@torch.no_grad()
@pytest.mark.parametrize("bias", [True, False])
def test_projections_of_one_input_are_one_product(bias: bool) -> None:
    linears, x, residual = [nn.Linear(D, 5, bias=bias), nn.Linear(D, 3)], torch.randn(4, D), torch.randn(4, 8)
    expected = torch.cat([linear(x) for linear in linears], dim=1)
    linear = Linear.of(*linears)
    torch.testing.assert_close(linear(x), expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(linear.add_to(residual.clone(), x), residual + expected, atol=1e-6, rtol=0)


def room(rows: int, columns: int, like: Tensor) -> Tensor:
    return like.new_empty(rows, columns)


@pytest.fixture
def rounding_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a processor that multiplies bfloat16 faster."""
    monkeypatch.setattr(weights, "rounding_pays", lambda width, tokens: True)


@torch.no_grad()
@pytest.mark.usefixtures("rounding_pays")
@pytest.mark.parametrize("bias", [True, False])
def test_the_likeliest_logits_are_those_in_float32(bias: bool) -> None:
    linear, y, forbidden = nn.Linear(D, SMALL_VOCABULARY, bias=bias), torch.randn(FEW_ROWS, D), torch.tensor([0, 7])
    nn.init.normal_(linear.weight)
    layer = OutputLayer(linear, forbidden)
    exact = linear(y).index_fill(1, forbidden, float("-inf"))
    expected, found = layer(y, room, None), layer(y, room, 10)
    torch.testing.assert_close(expected, exact, atol=1e-5, rtol=1e-5)
    best = expected.topk(10).indices
    assert found.topk(10).indices.equal(best)
    torch.testing.assert_close(found.gather(1, best), expected.gather(1, best), atol=1e-5, rtol=1e-5)
    assert not found.equal(expected)  # the others are rounded
    torch.testing.assert_close(found, expected, atol=0.1, rtol=0)
    torch.testing.assert_close(found.logsumexp(dim=1), expected.logsumexp(dim=1), atol=5e-3, rtol=0)
    for rows, candidates in ((FEW_ROWS - 1, 10), (FEW_ROWS, CANDIDATES + 1)):
        assert layer(y[:rows], room, candidates).equal(layer(y[:rows], room, None))


@pytest.mark.parametrize(
    ("half", "tokens", "dtype", "pays"),
    [
        (0.4, SMALL_VOCABULARY, torch.float32, True),
        (0.6, SMALL_VOCABULARY, torch.float32, False),
        (0.4, SMALL_VOCABULARY - 1, torch.float32, False),
        (0.4, SMALL_VOCABULARY, torch.float64, False),
    ],
)
def test_rounding_pays_where_it_takes_half_the_time(
    half: float, tokens: int, dtype: torch.dtype, pays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([1.0, half])
    monkeypatch.setattr(weights, "_seconds", lambda call, enough: next(times))
    monkeypatch.setattr(weights, "rounding_pays", weights.rounding_pays.__wrapped__)  # not one that is remembered
    assert OutputLayer(nn.Linear(D, tokens).to(dtype), torch.tensor([0]))._may_round == pays


def test_what_is_hopeless_is_timed_once() -> None:
    calls: list[None] = []
    assert weights._seconds(lambda: calls.append(None), -1) > 0
    assert weights._seconds(lambda: calls.append(None), 9) < 9
    assert len(calls) == 1 + weights._TIMES


@torch.no_grad()
@pytest.mark.usefixtures("rounding_pays")
@pytest.mark.parametrize("search", SEARCHES, ids=str)
@pytest.mark.parametrize("architecture", ["encoder_decoder", "decoder_only"])
def test_no_search_finds_anything_else_for_the_rounding(architecture: str, search: Search) -> None:
    """Each is told only where it looks at the likeliest tokens alone."""
    torch.manual_seed(2)
    layers = {"num_encoder_layers": int(architecture == "encoder_decoder"), "num_decoder_layers": 1}
    config = ModelConfig(d_model=D, d_ff=20, num_heads=2, max_seq_len=9, architecture=architecture, **layers)  # pyright: ignore[reportArgumentType]
    if architecture == "encoder_decoder":
        model: Any = Transformer(
            config, src_vocab_size=SMALL_VOCABULARY, tgt_vocab_size=SMALL_VOCABULARY, shared_vocab=True
        )
    else:
        model = DecoderOnly(config, vocab_size=SMALL_VOCABULARY)
    for parameter in model.eval().parameters():
        nn.init.normal_(parameter, std=0.4)
    fast = arrange(model, [0, 2])
    src = torch.randint(4, SMALL_VOCABULARY, (24, 5))
    task = Task([4] * 24, 2, 3, keys=[str(number) for number in range(24)])
    found: list[Any] = []
    for candidates in (None, search.candidates):
        state = fast.encode(src)
        state.candidates = candidates
        found.append([[one.ids for one in each] for each in search(fast, state, task)])
    assert found[0] == found[1]


@torch.no_grad()
@pytest.mark.parametrize("order", get_args(NormOrder))
@pytest.mark.parametrize("activation", get_args(Activation))
def test_a_feed_forward_network_with_its_residual_connection(order: NormOrder, activation: Activation) -> None:
    model = build(norm_order=order, activation=activation)
    layer, x = encoder_layer(model), torch.randn(4, D)
    expected = layer.feed_forward_residual(x, layer.feed_forward)
    found = FeedForward.of(layer.feed_forward, layer.feed_forward_residual, model.config)(x.clone())
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("positions", get_args(Positions))
def test_an_embedding_adds_its_positions(positions: Positions) -> None:
    module, ids = build(positions=positions).src_embedding, torch.randint(17, (2, 5))
    torch.testing.assert_close(Embedding.of(module)(ids), module(ids), atol=1e-6, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("order", get_args(NormOrder))
def test_the_norm_at_the_end_of_a_stack(order: NormOrder) -> None:
    module, x = build(norm_order=order).encoder.norm, torch.randn(4, D)
    norm = final_norm(module, order)
    assert (norm is None) == (order == "post")
    torch.testing.assert_close(x if norm is None else norm(x), module(x))


def fake(model: Transformer, **unknown: str) -> Transformer:
    """A model with a value that was added to the configuration after all else."""
    for name, value in unknown.items():
        object.__setattr__(model.config, name, value)
    return model


def test_a_choice_that_is_not_known_is_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"^norm_order 'sandwich' is not implemented here$"):
        FastTransformer(fake(build(), norm_order="sandwich"))


def test_each_kind_of_weights_refuses_by_itself() -> None:
    unknown: Any = "unheard-of"
    norm = encoder_layer(build()).feed_forward_residual.norm
    for attempt in (lambda: Norm.of(norm, unknown), lambda: final_norm(norm, unknown)):
        with pytest.raises(NotImplementedError, match="unheard-of"):
            attempt()


def test_weights_are_shared_where_they_need_not_be_arranged() -> None:
    model = build()
    tokens: Tensor = Embedding.of(model.src_embedding).tokens
    assert tokens.data_ptr() == model.src_embedding.tokens.weight.data_ptr()
