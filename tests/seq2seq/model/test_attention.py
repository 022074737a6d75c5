"""Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V, and many heads of it ([Peng 2023], [Zhou n.d.])."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from tfm.seq2seq.model import attention as attention_module
from tfm.seq2seq.model.attention import MultiHeadAttention, attention, attention_maps, attention_within, recording
from tfm.seq2seq.model.dropout import Dropout
from tfm.seq2seq.model.encoder_decoder import Transformer
from tfm.seq2seq.model.masks import PAD_ID, Packed, Within, additive_mask, causal_mask

B, T, S, D = 2, 5, 7, 12
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def random_mask(*shape: int) -> Tensor:
    """Half of it allowed, and for each query the first key at least."""
    mask = torch.rand(shape) < 0.5
    mask[..., 0] = True
    return mask


def multi_head(
    *,
    num_heads: int = 3,
    d_k: int = 5,
    d_v: int = 2,
    bias: bool = True,
    output_bias: bool | None = None,
    dropout: float = 0.0,
) -> MultiHeadAttention:
    """By default with d_k, d_v and d_model / num_heads = 4 all different, and all biases or none."""
    return MultiHeadAttention(
        d_model=D,
        num_heads=num_heads,
        d_k=d_k,
        d_v=d_v,
        bias=bias,
        output_bias=bias if output_bias is None else output_bias,
        dropout=dropout,
    )


# The function


def test_each_output_is_the_weighted_sum_of_the_values() -> None:
    d_k, d_v = 4, 3
    q, k, v = torch.randn(T, d_k), torch.randn(S, d_k), torch.randn(S, d_v)
    output, weights = attention(q, k, v)
    for i in range(T):
        exponentials = [math.exp(torch.dot(q[i], k[j]).item() / math.sqrt(d_k)) for j in range(S)]
        s = [exponential / sum(exponentials) for exponential in exponentials]
        torch.testing.assert_close(weights[i], torch.tensor(s), atol=1e-6, rtol=0)
        torch.testing.assert_close(output[i], sum(s[j] * v[j] for j in range(S)), atol=1e-6, rtol=0)


@pytest.mark.parametrize("mask_shape", [None, (T, S), (B, 1, 1, S), (B, 3, T, S)])
def test_attention_is_torchs_own_and_so_is_its_gradient(mask_shape: tuple[int, ...] | None) -> None:
    q, k, v = (torch.randn(B, 3, *shape, requires_grad=True) for shape in ((T, 4), (S, 4), (S, 6)))
    mask = None if mask_shape is None else random_mask(*mask_shape)

    ours, _ = attention(q, k, v, mask)
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)
    direction = torch.randn_like(ours)
    for our_gradient, their_gradient in zip(
        torch.autograd.grad(ours, (q, k, v), direction), torch.autograd.grad(theirs, (q, k, v), direction), strict=True
    ):
        torch.testing.assert_close(our_gradient, their_gradient, atol=1e-5, rtol=0)


@given(
    batch=st.integers(1, 3),
    num_heads=st.integers(1, 3),
    queries=st.integers(1, 6),
    keys=st.integers(1, 6),
    d_k=st.integers(1, 5),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=50, deadline=None)
def test_weights_are_distributions_over_the_allowed_keys(
    batch: int, num_heads: int, queries: int, keys: int, d_k: int, seed: int
) -> None:
    torch.manual_seed(seed)
    q, k = torch.randn(batch, num_heads, queries, d_k), torch.randn(batch, num_heads, keys, d_k)
    mask = random_mask(batch, 1, queries, keys)
    _, weights = attention(q, k, torch.randn(batch, num_heads, keys, 2), mask)
    assert weights.shape == (batch, num_heads, queries, keys)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(batch, num_heads, queries))
    assert (weights > 0).equal(mask.expand_as(weights))  # exactly zero where forbidden


def test_what_is_masked_does_not_matter() -> None:
    q, k, v = torch.randn(T, 4), torch.randn(S, 4), torch.randn(S, 4)
    mask = torch.arange(S) < 4
    output, _ = attention(q, k, v, mask.expand(T, S))
    without, _ = attention(q, k[:4], v[:4])
    torch.testing.assert_close(output, without, atol=1e-6, rtol=0)


def test_one_allowed_key_gives_its_value() -> None:
    v = torch.randn(S, 4)
    output, _ = attention(torch.randn(S, 4), torch.randn(S, 4), v, torch.eye(S, dtype=torch.bool))
    torch.testing.assert_close(output, v)


def test_equal_keys_give_the_mean_of_the_values() -> None:
    v = torch.randn(S, 4)
    output, _ = attention(torch.randn(T, 4), torch.randn(1, 4).expand(S, 4), v)
    torch.testing.assert_close(output, v.mean(dim=0).expand(T, 4), atol=1e-6, rtol=0)


def test_huge_scores_do_not_overflow() -> None:
    q, k, v = 1e4 * torch.randn(T, 4), 1e4 * torch.randn(S, 4), torch.randn(S, 4)
    output, weights = attention(q, k, v)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(T))
    assert output.isfinite().all()


def test_dropout_falls_on_the_weights_before_they_meet_the_values() -> None:
    q, k, v = torch.randn(T, 4), torch.randn(S, 4), torch.randn(S, 4)
    keep = 2.0 * (torch.rand(T, S) < 0.5)
    _, plain_weights = attention(q, k, v)
    output, weights = attention(q, k, v, dropout=lambda weights: weights * keep)
    torch.testing.assert_close(output, (plain_weights * keep) @ v)
    assert weights.equal(plain_weights)  # returned undropped: rows still sum to 1


# Many heads


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize(("d_k", "d_v"), [(4, 4), (5, 2), (1, 7)])
def test_multi_head_attention_is_torchs_own_between_projections(bias: bool, masked: bool, d_k: int, d_v: int) -> None:
    H = 3
    module = multi_head(num_heads=H, d_k=d_k, d_v=d_v, bias=bias)
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    mask = random_mask(B, 1, T, S) if masked else None

    q = module.q_proj(x).view(B, T, H, d_k).transpose(1, 2)
    k = module.k_proj(memory).view(B, S, H, d_k).transpose(1, 2)
    v = module.v_proj(memory).view(B, S, H, d_v).transpose(1, 2)
    heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    expected = module.out_proj(heads.transpose(1, 2).reshape(B, T, H * d_v))

    torch.testing.assert_close(module(x, memory, mask), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("d_k", "d_v"), [(4, 4), (5, 2), (3, 8)])
def test_many_heads_are_a_sum_over_heads(bias: bool, d_k: int, d_v: int) -> None:
    """u_i = sum_h W_O^(h) sum_j alpha_ij^(h) V^(h)(x_j), as [Zhou n.d.] writes it."""
    H = 3
    module = multi_head(num_heads=H, d_k=d_k, d_v=d_v, bias=bias)
    x = torch.randn(B, S, D)
    u = torch.zeros(B, S, D) if module.out_proj.bias is None else module.out_proj.bias.expand(B, S, D)
    for h in range(H):
        keys, values = slice(h * d_k, (h + 1) * d_k), slice(h * d_v, (h + 1) * d_v)
        Q = F.linear(x, module.q_proj.weight[keys], module.q_proj.bias[keys] if bias else None)
        K = F.linear(x, module.k_proj.weight[keys], module.k_proj.bias[keys] if bias else None)
        V = F.linear(x, module.v_proj.weight[values], module.v_proj.bias[values] if bias else None)
        alpha = (Q @ K.transpose(1, 2) / math.sqrt(d_k)).softmax(dim=-1)
        W_O = module.out_proj.weight[:, values]
        u = u + alpha @ V @ W_O.t()
    torch.testing.assert_close(module(x, x), u, atol=1e-6, rtol=0)


@pytest.mark.parametrize("output_bias", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_the_projections_have_a_bias_or_none(bias: bool, output_bias: bool) -> None:
    H, d_k, d_v = 3, 5, 2
    numbers = sum(parameter.numel() for parameter in multi_head(bias=bias, output_bias=output_bias).parameters())
    weights = D * H * d_k + D * H * d_k + D * H * d_v + H * d_v * D
    assert numbers == weights + (H * d_k + H * d_k + H * d_v if bias else 0) + (D if output_bias else 0)


@pytest.mark.parametrize(("bias", "output_bias"), [(True, False), (False, True)])
def test_biases_of_the_output_projection_and_of_the_others_are_apart(bias: bool, output_bias: bool) -> None:
    """torch's own knows all of them or none: there, what is left out is zero."""
    module = multi_head(d_k=4, d_v=4, bias=bias, output_bias=output_bias)
    reference = torch.nn.MultiheadAttention(D, 3, batch_first=True)
    projections = (module.q_proj, module.k_proj, module.v_proj)
    with torch.no_grad():
        reference.in_proj_weight.copy_(torch.cat([projection.weight for projection in projections]))
        reference.out_proj.weight.copy_(module.out_proj.weight)
        reference.in_proj_bias.zero_()
        reference.out_proj.bias.zero_()
        if bias:
            reference.in_proj_bias.copy_(torch.cat([projection.bias for projection in projections]))
        if output_bias:
            reference.out_proj.bias.copy_(module.out_proj.bias)
    x = torch.randn(B, T, D)
    expected, _ = reference(x, x, x)
    torch.testing.assert_close(module(x, x), expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(module(x, x.clone()), expected, atol=1e-6, rtol=0)  # three products, not one


def test_a_boolean_mask_equals_adding_minus_infinity() -> None:
    module = multi_head(num_heads=1)
    x = torch.randn(B, T, D)
    q, k, v = module.q_proj(x), module.k_proj(x), module.v_proj(x)
    weights = (q @ k.transpose(1, 2) / math.sqrt(5) + additive_mask(causal_mask(T))).softmax(dim=-1)
    torch.testing.assert_close(module(x, x, causal_mask(T)), module.out_proj(weights @ v), atol=1e-6, rtol=0)


def test_queries_come_from_x_and_keys_and_values_from_elsewhere() -> None:
    module = multi_head()
    with recording(module, lambda call: (call.q.shape, call.k.shape, call.v.shape)) as shapes:
        assert module(torch.randn(B, T, D), torch.randn(B, S, D)).shape == (B, T, D)
    assert shapes == {"": [((B, 3, T, 5), (B, 3, S, 5), (B, 3, S, 2))]}


def test_attention_dropout_acts_in_training_only() -> None:
    module = multi_head(dropout=0.5)
    assert isinstance(module.dropout, Dropout)
    x = torch.randn(B, T, D)
    without = multi_head(dropout=0.0)
    without.load_state_dict(module.state_dict())
    expected = without(x, x)
    assert module.eval()(x, x).equal(expected)
    assert not torch.allclose(module.train()(x, x), expected)


def test_attention_dropout_drops_weights_not_outputs() -> None:
    module = multi_head(num_heads=1, d_v=D, bias=False, dropout=0.5)
    with torch.no_grad():
        module.v_proj.weight.copy_(torch.eye(D))
        module.out_proj.weight.copy_(torch.eye(D))
    x = torch.eye(D)[None]  # value j is the j-th unit vector: the outputs are the weights
    weights = module.eval()(x, x)
    dropped = module.train()(x, x)
    kept = dropped != 0
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(1, D))
    torch.testing.assert_close(dropped[kept], 2 * weights[kept])
    assert 0 < kept.sum() < kept.numel()


@pytest.fixture
def fused_rates(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Lets the CPU pass for a GPU; fills with the dropout rate of each call of the fused kernel."""
    rates: list[float] = []
    fused = F.scaled_dot_product_attention

    def spy(q: Tensor, k: Tensor, v: Tensor, *, attn_mask: Tensor | None, dropout_p: float) -> Tensor:
        rates.append(dropout_p)
        return fused(q, k, v, attn_mask=attn_mask, dropout_p=dropout_p)

    monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
    monkeypatch.setattr(Tensor, "is_cuda", True)
    return rates


@pytest.mark.parametrize("masked", [True, False])
def test_the_branch_for_gpus_equals_the_formula(fused_rates: list[float], masked: bool) -> None:
    module, x = multi_head(dropout=0.5).eval(), torch.randn(B, T, D)
    mask = random_mask(B, 1, T, T) if masked else None
    with attention_maps(module):
        formula = module(x, x, mask)  # recorded weights come from the formula, on any device
    assert fused_rates == []
    torch.testing.assert_close(module(x, x, mask), formula, atol=1e-6, rtol=0)
    assert fused_rates == [0.0]


def test_the_branch_for_gpus_drops_weights_in_training(fused_rates: list[float]) -> None:
    module, x = multi_head(dropout=0.5).train(), torch.randn(B, T, D)
    module(x, x)
    assert fused_rates == [0.5]


def test_dropout_of_weights_in_packed_sequences_is_for_training_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[float] = []

    def spy(q: Tensor, k: Tensor, v: Tensor, mask: Within, dropout: float) -> Tensor:
        rates.append(dropout)
        return attention(q, k, v, mask.dense())[0]

    monkeypatch.setattr(attention_module, "attention_within", spy)
    monkeypatch.setattr(Tensor, "is_cuda", True)
    module, x, sequences = multi_head(dropout=0.5), torch.randn(1, 7, D), packed(3, 4)
    for training in (True, False):
        module.train(training)(x, x, Within(sequences, sequences))
    assert rates == [0.5, 0.0]


def packed(*lengths: int, device: str = "cpu") -> Packed:
    starts = torch.tensor([0, *lengths], device=device).cumsum(0, dtype=torch.int32)
    positions = torch.cat([torch.arange(length, device=device) for length in lengths])[None]
    longest = min(1 << (max(128, *lengths) - 1).bit_length(), sum(lengths))  # as a batch has it
    return Packed(starts, positions, longest)


@pytest.mark.parametrize("causal", [False, True])
def test_packed_sequences_attend_within_themselves(causal: bool) -> None:
    module, sources, targets = multi_head(), packed(2, 4, 1), packed(3, 1, 3)
    queries, keys = torch.randn(1, 7, D), torch.randn(1, 7, D)
    if causal:
        keys, sources = queries, targets
    found = module(queries, keys, Within(targets, sources, causal))[0]
    places = [side.starts.diff().tolist() for side in (targets, sources)]
    for one, *sides in zip(found.split(places[0]), queries[0].split(places[0]), keys[0].split(places[1]), strict=True):
        x, source = (side[None] for side in sides)
        expected = module(x, source, causal_mask(x.size(1)) if causal else None)[0]
        torch.testing.assert_close(one, expected)


@needs_cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("sizes", [(5, 2), (16, 3), (16, 16)])
def test_a_module_reads_packed_sequences_on_a_gpu(sizes: tuple[int, int], dtype: torch.dtype) -> None:
    """Its queries, keys and values are parts of one product."""
    module, x = multi_head(num_heads=2, d_k=sizes[0], d_v=sizes[1]), torch.randn(1, 30, D)
    expected = module(x, x, Within(packed(9, 1, 20), packed(9, 1, 20)))
    module, sequences = module.cuda(), packed(9, 1, 20, device="cuda")
    x = x.to("cuda", dtype)
    found = module(x, x, Within(sequences, sequences)).float().cpu()
    tolerance = 1e-5 if dtype == torch.float32 else 3e-2
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


@needs_cuda
@pytest.mark.parametrize("lengths", [(5, 30, 1, 64, 17), (300, 2, 200, 10), (512, 129, 3), (20,) * 60])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sizes", [(64, 64), (48, 16), (5, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_packed_sequences_attend_within_themselves_on_a_gpu(
    lengths: tuple[int, ...], causal: bool, sizes: tuple[int, int], dtype: torch.dtype
) -> None:
    """Outputs and gradients, and to the last bit each time."""
    queries = packed(*lengths, device="cuda")
    keys = queries if causal else packed(*(length + 3 for length in lengths), device="cuda")
    mask, total = Within(queries, keys, causal), sum(lengths)
    shapes = (total, sizes[0]), (keys.positions.size(1), sizes[0]), (keys.positions.size(1), sizes[1])
    q, k, v = (torch.randn(1, 2, *shape, device="cuda", dtype=dtype, requires_grad=True) for shape in shapes)
    weights = torch.randn(1, 2, total, sizes[1], device="cuda", dtype=dtype)

    def found(output: Tensor) -> list[Tensor]:
        return [output.detach(), *torch.autograd.grad((output * weights).sum(), (q, k, v))]

    first, *again = (found(attention_within(q, k, v, mask, 0.0)) for _ in range(20))
    expected = found(attention(q, k, v, mask.dense())[0])
    for place, (one, right) in enumerate(zip(first, expected, strict=True)):
        assert all(one.equal(other[place]) for other in again)
        tolerance = 1e-4 if dtype == torch.float32 else 3e-2
        torch.testing.assert_close(one, right, rtol=tolerance, atol=tolerance * right.abs().max().item())


@needs_cuda
@pytest.mark.parametrize("masked", [True, False])
def test_the_fused_kernel_equals_the_formula(masked: bool) -> None:
    module, x = multi_head(d_k=8, d_v=8), torch.randn(B, T, D)
    mask = random_mask(B, 1, T, T) if masked else None
    on_cpu = module(x, x, mask)
    module, x = module.cuda(), x.cuda()
    on_gpu = module(x, x, None if mask is None else mask.cuda())
    torch.testing.assert_close(on_gpu.cpu(), on_cpu, atol=1e-5, rtol=0)


# Recording


def ids(*shape: int) -> Tensor:
    return torch.randint(1, 11, shape)


def test_maps_hold_the_weights_of_every_attention(build_model: Callable[..., Transformer]) -> None:
    model, H = build_model(), 4
    with attention_maps(model) as maps:
        model(ids(B, S), ids(B, T))
    assert {name: [weights.shape for weights in calls] for name, calls in maps.items()} == {
        "encoder.layers.0.self_attn": [(B, H, S, S)],
        "encoder.layers.1.self_attn": [(B, H, S, S)],
        "decoder.layers.0.self_attn": [(B, H, T, T)],
        "decoder.layers.0.cross_attn": [(B, H, T, S)],
        "decoder.layers.1.self_attn": [(B, H, T, T)],
        "decoder.layers.1.cross_attn": [(B, H, T, S)],
    }
    for [weights] in maps.values():
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))


def test_maps_are_zero_where_a_mask_forbids(build_model: Callable[..., Transformer]) -> None:
    model, src = build_model(), ids(B, S)
    src[1, 4:] = PAD_ID
    with attention_maps(model) as maps:
        model(src, ids(B, T))
    for name, [weights] in maps.items():
        if name.startswith("decoder") and name.endswith("self_attn"):
            assert not weights.triu(diagonal=1).any(), name
        else:
            assert not weights[1, :, :, 4:].any(), name
            assert weights[0, :, :, 4:].all(), name


def test_the_recorded_weights_are_those_of_the_formula(build_model: Callable[..., Transformer]) -> None:
    model, src = build_model(num_heads=1), ids(B, S)
    with attention_maps(model) as maps:
        model.encode(src)
    x, first = model.src_embedding(src), model.get_submodule("encoder.layers.0.self_attn")
    assert isinstance(first, MultiHeadAttention)
    weights = (first.q_proj(x) @ first.k_proj(x).transpose(1, 2) / math.sqrt(16)).softmax(dim=-1)
    torch.testing.assert_close(maps["encoder.layers.0.self_attn"][0][:, 0], weights, atol=1e-6, rtol=0)


def test_the_recorded_scores_are_those_of_the_formula(build_model: Callable[..., Transformer]) -> None:
    model, src, tgt = build_model(d_k=3), ids(B, S), ids(B, T)
    src[1, 4:] = PAD_ID
    with attention_maps(model, scores=True) as maps:
        model(src, tgt)
    for name, x, mask in (
        ("encoder.layers.0.self_attn", model.src_embedding(src), (src != PAD_ID)[:, None, None]),
        ("decoder.layers.0.self_attn", model.tgt_embedding(tgt), torch.ones(T, T, dtype=torch.bool).tril()),
    ):
        attn = model.get_submodule(name)
        assert isinstance(attn, MultiHeadAttention)
        q, k = (linear(x).view(*x.shape[:2], 4, 3).transpose(1, 2) for linear in (attn.q_proj, attn.k_proj))
        scores = torch.where(mask, q @ k.transpose(2, 3) / math.sqrt(3), float("-inf"))
        torch.testing.assert_close(maps[name], [scores], atol=1e-6, rtol=0)


def test_scores_are_had_where_weights_are_and_their_softmax_is_the_weights(
    build_model: Callable[..., Transformer],
) -> None:
    model, src, tgt = build_model(attention_dropout=0.5).eval(), ids(B, S), ids(B, T)
    src[1, 4:] = PAD_ID
    with attention_maps(model) as weights:
        plain = model(src, tgt)
    with attention_maps(model, scores=True) as scores:
        assert model(src, tgt).equal(plain)
    assert scores.keys() == weights.keys()
    for name, [recorded] in scores.items():
        torch.testing.assert_close([recorded.softmax(dim=-1)], weights[name], atol=1e-6, rtol=0)
    model(src, tgt)
    assert {len(calls) for calls in scores.values()} == {1}


def test_each_call_is_recorded(build_model: Callable[..., Transformer]) -> None:
    model = build_model()
    with attention_maps(model) as maps:
        model.encode(ids(1, 3))
        model.encode(ids(1, 6))
    assert [weights.shape[-1] for weights in maps["encoder.layers.1.self_attn"]] == [3, 6]
    assert maps["decoder.layers.0.cross_attn"] == []


def test_recording_does_not_change_the_output(build_model: Callable[..., Transformer]) -> None:
    model, src, tgt = build_model(), ids(B, S), ids(B, T)
    with attention_maps(model) as maps:
        recorded = model(src, tgt)
    assert all(maps.values())
    assert recorded.equal(model(src, tgt))


def test_weights_are_recorded_before_dropout(build_model: Callable[..., Transformer]) -> None:
    model = build_model(attention_dropout=0.5).train()
    with attention_maps(model) as maps:
        model(ids(B, S), ids(B, T))
    for [weights] in maps.values():
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))


def test_nothing_is_recorded_after_the_block(build_model: Callable[..., Transformer]) -> None:
    model, src, tgt = build_model(), ids(B, S), ids(B, T)
    with attention_maps(model) as maps:
        model(src, tgt)
    model(src, tgt)
    assert {len(calls) for calls in maps.values()} == {1}


def test_nothing_is_recorded_after_an_exception(build_model: Callable[..., Transformer]) -> None:
    model, src, tgt = build_model(), ids(B, S), ids(B, T)
    maps: dict[str, list[Tensor]] = {}

    def record_and_fail() -> None:
        nonlocal maps
        with attention_maps(model) as maps:
            raise KeyError("in the block")

    with pytest.raises(KeyError, match="in the block"):
        record_and_fail()
    model(src, tgt)
    assert len(maps) == 6
    assert not any(maps.values())


@needs_cuda
def test_on_a_gpu_the_recorded_output_is_that_of_the_fused_kernel(build_model: Callable[..., Transformer]) -> None:
    model, src, tgt = build_model().double().cuda(), ids(B, S).cuda(), ids(B, T).cuda()
    with attention_maps(model) as maps:
        recorded = model(src, tgt)
    assert all(maps.values())
    torch.testing.assert_close(recorded, model(src, tgt), atol=1e-9, rtol=0)
