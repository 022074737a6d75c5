"""The whole model: equal to torch's, causal, blind to padding, and with the parameters it should have."""

import math
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tfm.engine.runs import weights
from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.attention import MultiHeadAttention
from tfm.seq2seq.model.embedding import LearnedPositions
from tfm.seq2seq.model.encoder_decoder import Transformer
from tfm.seq2seq.model.layers import DecoderLayer, EncoderLayer, Residual

BuildModel = Callable[..., Transformer]
TinyConfig = Callable[..., ModelConfig]

PAD = 0
VARIANTS = [
    {"norm_order": "post"},
    {"norm_order": "pre", "activation": "swiglu"},
    {"norm_order": "pre", "positions": "learned", "num_heads": 3, "d_k": 5, "d_v": 7},
]


def real_ids(*shape: int) -> Tensor:
    return torch.randint(1, 11, shape)


def pad_to(ids: Tensor, length: int) -> Tensor:
    return nn.functional.pad(ids, (0, length - ids.size(1)), value=PAD)


def ragged_ids(*lengths: int) -> Tensor:
    return torch.cat([pad_to(real_ids(1, length), max(lengths)) for length in lengths])


def encoder_layers(model: Transformer) -> list[EncoderLayer]:
    return [cast(EncoderLayer, layer) for layer in model.encoder.layers]


def decoder_layers(model: Transformer) -> list[DecoderLayer]:
    return [cast(DecoderLayer, layer) for layer in model.decoder.layers]


def record_inputs(module: nn.Module) -> list[Tensor]:
    """Fills as the module runs."""
    inputs: list[Tensor] = []

    def hook(_: nn.Module, args: tuple[Tensor, ...]) -> None:
        inputs.append(args[0])

    module.register_forward_pre_hook(hook)
    return inputs


def record_outputs(module: nn.Module) -> list[Tensor]:
    """Fills as the module runs."""
    outputs: list[Tensor] = []

    def hook(_: nn.Module, __: tuple[Tensor, ...], output: Tensor) -> None:
        outputs.append(output)

    module.register_forward_hook(hook)
    return outputs


# torch.nn.Transformer with the same weights

SameParameter = tuple[Tensor, list[Tensor]]
"""One of torch's parameters, and those of ours that make it up, one below the other."""


def reference_for(model: Transformer) -> nn.Transformer:
    """torch's own, of the same sizes. Its stacks end in a LayerNorm only if pre-norm: the paper's has none there."""
    config = model.config
    d_model, pre_norm, eps = config.d_model, config.norm_order == "pre", config.norm_eps

    def final_norm() -> nn.LayerNorm | None:
        return nn.LayerNorm(d_model, eps=eps) if pre_norm else None

    sizes = (d_model, config.num_heads, config.d_ff, 0.0, config.activation)
    encoder_layer = nn.TransformerEncoderLayer(*sizes, layer_norm_eps=eps, batch_first=True, norm_first=pre_norm)
    decoder_layer = nn.TransformerDecoderLayer(*sizes, layer_norm_eps=eps, batch_first=True, norm_first=pre_norm)
    return nn.Transformer(
        d_model,
        config.num_heads,
        custom_encoder=nn.TransformerEncoder(
            encoder_layer, config.num_encoder_layers, final_norm(), enable_nested_tensor=False
        ),
        custom_decoder=nn.TransformerDecoder(decoder_layer, config.num_decoder_layers, final_norm()),
        batch_first=True,
    )


def same_attention(theirs: nn.Module, ours: MultiHeadAttention) -> Iterator[SameParameter]:
    assert isinstance(theirs, nn.MultiheadAttention)
    projections = [ours.q_proj, ours.k_proj, ours.v_proj]
    yield theirs.in_proj_weight, [projection.weight for projection in projections]
    yield theirs.in_proj_bias, [projection.bias for projection in projections]
    yield from same_module(theirs.out_proj, ours.out_proj)


def same_module(theirs: nn.Module, ours: nn.Module) -> Iterator[SameParameter]:
    for their_parameter, our_parameter in zip(theirs.parameters(), ours.parameters(), strict=True):
        yield their_parameter, [our_parameter]


def same_encoder_layer(theirs: nn.Module, ours: EncoderLayer) -> Iterator[SameParameter]:
    yield from same_attention(theirs.get_submodule("self_attn"), ours.self_attn)
    yield from same_module(theirs.get_submodule("norm1"), ours.self_attn_residual.norm)
    yield from same_module(theirs.get_submodule("linear1"), ours.feed_forward.linear_1)
    yield from same_module(theirs.get_submodule("linear2"), ours.feed_forward.linear_2)
    yield from same_module(theirs.get_submodule("norm2"), ours.feed_forward_residual.norm)


def same_decoder_layer(theirs: nn.Module, ours: DecoderLayer) -> Iterator[SameParameter]:
    yield from same_attention(theirs.get_submodule("self_attn"), ours.self_attn)
    yield from same_module(theirs.get_submodule("norm1"), ours.self_attn_residual.norm)
    yield from same_attention(theirs.get_submodule("multihead_attn"), ours.cross_attn)
    yield from same_module(theirs.get_submodule("norm2"), ours.cross_attn_residual.norm)
    yield from same_module(theirs.get_submodule("linear1"), ours.feed_forward.linear_1)
    yield from same_module(theirs.get_submodule("linear2"), ours.feed_forward.linear_2)
    yield from same_module(theirs.get_submodule("norm3"), ours.feed_forward_residual.norm)


def same_parameters(reference: nn.Transformer, model: Transformer) -> list[SameParameter]:
    pairs: list[SameParameter] = []
    for i, layer in enumerate(encoder_layers(model)):
        pairs += same_encoder_layer(reference.get_submodule(f"encoder.layers.{i}"), layer)
    for i, layer in enumerate(decoder_layers(model)):
        pairs += same_decoder_layer(reference.get_submodule(f"decoder.layers.{i}"), layer)
    if model.config.norm_order == "pre":
        pairs += same_module(reference.get_submodule("encoder.norm"), model.encoder.norm)
        pairs += same_module(reference.get_submodule("decoder.norm"), model.decoder.norm)

    theirs = {id(parameter) for parameter, _ in pairs}
    assert theirs == {id(parameter) for parameter in reference.parameters()}
    ours = {id(parameter) for _, parts in pairs for parameter in parts}
    assert ours == {id(parameter) for stack in (model.encoder, model.decoder) for parameter in stack.parameters()}
    return pairs


def gradient(parameter: Tensor) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_order", ["post", "pre"])
def test_the_model_and_its_gradients_are_torchs(
    build_model: BuildModel, norm_order: str, activation: str, dtype: torch.dtype, atol: float
) -> None:
    model = build_model(norm_order=norm_order, activation=activation, num_decoder_layers=3).to(dtype).train()
    reference = reference_for(model).to(dtype).train()
    pairs = same_parameters(reference, model)
    with torch.no_grad():
        for theirs, ours in pairs:
            theirs.copy_(torch.cat(ours))

    src, tgt = ragged_ids(7, 4, 1), ragged_ids(3, 5, 2)
    logits = model(src, tgt)
    their_hidden = reference(
        model.src_embedding(src),
        model.tgt_embedding(tgt),
        tgt_mask=torch.ones(5, 5, dtype=torch.bool).triu(diagonal=1),  # torch's masks are True where forbidden
        tgt_is_causal=True,
        src_key_padding_mask=src == PAD,
        tgt_key_padding_mask=tgt == PAD,
        memory_key_padding_mask=src == PAD,
    )
    their_logits = model.output_layer(their_hidden)
    real = tgt != PAD
    torch.testing.assert_close(logits[real], their_logits[real], atol=atol, rtol=0)

    direction = torch.randn_like(logits[real]) / logits[real].numel()
    ends = [*model.src_embedding.parameters(), *model.tgt_embedding.parameters()]
    their_ends = torch.autograd.grad((their_logits[real] * direction).sum(), ends, retain_graph=True)
    (their_logits[real] * direction).sum().backward()
    model.zero_grad()
    (logits[real] * direction).sum().backward()
    for theirs, ours in pairs:
        torch.testing.assert_close(torch.cat([gradient(part) for part in ours]), gradient(theirs), atol=atol, rtol=0)
    for end, their_gradient in zip(ends, their_ends, strict=True):
        torch.testing.assert_close(gradient(end), their_gradient, atol=atol, rtol=0)
    largest = max(gradient(theirs).abs().max().item() for theirs, _ in pairs)
    assert largest > 1000 * atol  # so that agreeing within atol says something


def test_pre_norm_stacks_end_in_a_layer_norm_and_post_norm_stacks_do_not(build_model: BuildModel) -> None:
    pre, post = build_model(norm_order="pre", norm_eps=0.25), build_model(norm_order="post")
    for norm in (pre.encoder.norm, pre.decoder.norm):
        assert isinstance(norm, nn.LayerNorm)
        assert norm.eps == 0.25
    assert not list(post.encoder.norm.parameters())
    assert not list(post.decoder.norm.parameters())


def test_every_layer_norm_has_the_epsilon_of_the_configuration(build_model: BuildModel) -> None:
    model = build_model(norm_eps=0.125)
    residuals = [module for module in model.modules() if isinstance(module, Residual)]
    assert len(residuals) == 2 * 2 + 2 * 3
    assert {residual.norm.eps for residual in residuals} == {0.125}


# Order


@pytest.mark.parametrize("norm_order", ["post", "pre"])
def test_without_positions_a_shuffled_source_gives_a_shuffled_memory(build_model: BuildModel, norm_order: str) -> None:
    model, src, shuffle = build_model(positions="none", norm_order=norm_order), real_ids(2, 9), torch.randperm(9)
    torch.testing.assert_close(model.encode(src[:, shuffle]), model.encode(src)[:, shuffle], atol=1e-5, rtol=0)


def test_without_positions_the_translation_does_not_know_the_order_of_the_source(build_model: BuildModel) -> None:
    model, src, tgt = build_model(positions="none"), real_ids(2, 9), real_ids(2, 5)
    torch.testing.assert_close(model(src[:, torch.randperm(9)], tgt), model(src, tgt), atol=1e-5, rtol=0)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_with_positions_order_matters(build_model: BuildModel, positions: str) -> None:
    model, src, shuffle = build_model(positions=positions), torch.arange(1, 10)[None], torch.randperm(9)
    moved = shuffle != torch.arange(9)
    difference = (model.encode(src[:, shuffle]) - model.encode(src)[:, shuffle]).abs().amax(dim=-1)[0]
    assert (difference[moved] > 1e-2).all()


# Causality


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("t", [0, 2, 5])
def test_a_target_token_changes_no_earlier_logits_and_all_later_ones(
    build_model: BuildModel, variant: dict[str, object], t: int
) -> None:
    model, src, tgt = build_model(**variant), real_ids(2, 7), real_ids(2, 6)
    changed = tgt.clone()
    changed[:, t] = tgt[:, t] % 10 + 1
    before, after = model(src, tgt), model(src, changed)
    torch.testing.assert_close(after[:, :t], before[:, :t], atol=1e-6, rtol=0)
    assert ((after - before)[:, t:].abs().amax(dim=-1) > 1e-4).all()


def test_logits_have_no_gradient_from_later_tokens(build_model: BuildModel) -> None:
    model, T = build_model(), 5
    embedded = record_outputs(model.tgt_embedding)
    logits = model(real_ids(1, 4), real_ids(1, T))
    for t in range(T):
        [reached] = torch.autograd.grad(logits[0, t].square().sum(), embedded, retain_graph=True)
        assert reached[0].any(dim=-1).tolist() == [i <= t for i in range(T)]


# Padding


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_batch_gives_each_sentence_what_it_gets_alone(build_model: BuildModel, variant: dict[str, object]) -> None:
    model = build_model(**variant)
    pairs = [(real_ids(1, S), real_ids(1, T)) for S, T in [(9, 4), (1, 7), (5, 1), (9, 7)]]
    logits = model(torch.cat([pad_to(src, 9) for src, _ in pairs]), torch.cat([pad_to(tgt, 7) for _, tgt in pairs]))
    for row, (src, tgt) in zip(logits, pairs, strict=True):
        torch.testing.assert_close(row[: tgt.size(1)], model(src, tgt)[0], atol=1e-5, rtol=0)


@given(
    src_length=st.integers(1, 8),
    tgt_length=st.integers(1, 8),
    src_padding=st.integers(0, 8),
    tgt_padding=st.integers(0, 8),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=25, deadline=None)
def test_padding_changes_nothing(
    build_model: BuildModel, src_length: int, tgt_length: int, src_padding: int, tgt_padding: int, seed: int
) -> None:
    model = build_model(seed=seed)
    src, tgt = real_ids(1, src_length), real_ids(1, tgt_length)
    padded = model(pad_to(src, src_length + src_padding), pad_to(tgt, tgt_length + tgt_padding))
    torch.testing.assert_close(padded[:, :tgt_length], model(src, tgt), atol=1e-5, rtol=0)


def test_the_vector_of_the_padding_does_not_matter(build_model: BuildModel) -> None:
    model, src, tgt = build_model(), ragged_ids(7, 3), real_ids(2, 5)
    before = model(src, tgt)
    with torch.no_grad():
        model.src_embedding.tokens.weight[PAD] = 1000
    torch.testing.assert_close(model(src, tgt), before, atol=1e-5, rtol=0)


def test_the_memory_of_the_padding_does_not_matter(build_model: BuildModel) -> None:
    model, src, tgt = build_model(), ragged_ids(7, 3), real_ids(2, 5)
    memory = model.encode(src)
    garbage = torch.where((src == PAD)[..., None], 1000.0, memory)
    mask = model.src_mask(src)
    torch.testing.assert_close(model.decode(tgt, garbage, mask), model.decode(tgt, memory, mask), atol=1e-5, rtol=0)


# Cross-attention


def test_the_decoder_reads_the_source_through_the_memory_alone(build_model: BuildModel) -> None:
    model, src, other, tgt = build_model(), real_ids(2, 7), real_ids(2, 7), real_ids(2, 5)
    difference = model.hidden_states(src, tgt) - model.hidden_states(other, tgt)
    assert (difference.abs().amax(dim=-1) > 1e-3).all()  # at each target position
    memory, mask = model.encode(other), model.src_mask(other)
    assert model.decode(tgt, memory, mask).equal(model.hidden_states(other, tgt))


@pytest.mark.parametrize("norm_order", ["post", "pre"])
def test_keys_and_values_come_from_the_encoders_last_output_and_queries_from_the_decoder(
    build_model: BuildModel, norm_order: str
) -> None:
    model, src, tgt = build_model(norm_order=norm_order, num_encoder_layers=3), real_ids(2, 7), real_ids(2, 5)
    layers = decoder_layers(model)
    queries_of = [record_inputs(layer.cross_attn.q_proj) for layer in layers]
    keys_of = [record_inputs(layer.cross_attn.k_proj) for layer in layers]
    values_of = [record_inputs(layer.cross_attn.v_proj) for layer in layers]
    before_cross_attention = [
        record_outputs(layer.cross_attn_residual.norm if norm_order == "pre" else layer.self_attn_residual)
        for layer in layers
    ]

    model(src, tgt)

    memory = model.encode(src)
    for [read_by_keys], [read_by_values] in zip(keys_of, values_of, strict=True):
        assert read_by_keys.equal(memory)
        assert read_by_values.equal(memory)
    for [read_by_queries], [decoder_state] in zip(queries_of, before_cross_attention, strict=True):
        assert read_by_queries.equal(decoder_state)


# Output layer, tying


@pytest.mark.parametrize("output_bias", [True, False])
def test_logits_are_the_hidden_states_times_the_output_matrix(build_model: BuildModel, output_bias: bool) -> None:
    model, src, tgt = build_model(output_bias=output_bias), real_ids(2, 7), real_ids(2, 5)
    expected = model.hidden_states(src, tgt) @ model.output_layer.weight.t()
    if output_bias:
        assert model.output_layer.bias.any()
        expected = expected + model.output_layer.bias
    assert (model.output_layer.bias is not None) == output_bias
    torch.testing.assert_close(model(src, tgt), expected, atol=1e-5, rtol=0)


def test_tied_with_one_vocabulary_all_three_matrices_are_one(tiny_config: TinyConfig) -> None:
    model = Transformer(tiny_config(tie_embeddings=True), src_vocab_size=11, tgt_vocab_size=11, shared_vocab=True)
    assert model.src_embedding.tokens.weight is model.tgt_embedding.tokens.weight
    assert model.tgt_embedding.tokens.weight is model.output_layer.weight


def test_tied_with_two_vocabularies_target_and_output_are_one(tiny_config: TinyConfig) -> None:
    model = Transformer(tiny_config(tie_embeddings=True), src_vocab_size=11, tgt_vocab_size=13, shared_vocab=False)
    assert model.src_embedding.tokens.weight is not model.tgt_embedding.tokens.weight
    assert model.tgt_embedding.tokens.weight is model.output_layer.weight
    assert model.src_embedding.tokens.weight.shape == (11, 16)
    assert model.output_layer.weight.shape == (13, 16)


def test_two_vocabularies_of_one_size_are_still_two(tiny_config: TinyConfig) -> None:
    model = Transformer(tiny_config(tie_embeddings=True), src_vocab_size=11, tgt_vocab_size=11, shared_vocab=False)
    assert model.src_embedding.tokens.weight is not model.tgt_embedding.tokens.weight


@pytest.mark.parametrize("one_vocabulary", [True, False])
def test_untied_no_matrix_serves_twice(tiny_config: TinyConfig, one_vocabulary: bool) -> None:
    config = tiny_config(tie_embeddings=False)
    model = Transformer(config, src_vocab_size=11, tgt_vocab_size=11, shared_vocab=one_vocabulary)
    matrices = [model.src_embedding.tokens.weight, model.tgt_embedding.tokens.weight, model.output_layer.weight]
    assert len({matrix.data_ptr() for matrix in matrices}) == 3


def test_tying_ties_no_positions(tiny_config: TinyConfig) -> None:
    config = tiny_config(tie_embeddings=True, positions="learned")
    model = Transformer(config, src_vocab_size=11, tgt_vocab_size=11, shared_vocab=True)
    src_positions, tgt_positions = model.src_embedding.positions, model.tgt_embedding.positions
    assert isinstance(src_positions, LearnedPositions)
    assert isinstance(tgt_positions, LearnedPositions)
    assert src_positions.weight is not tgt_positions.weight


def test_a_tied_matrix_learns_from_all_its_uses(tiny_config: TinyConfig) -> None:
    model = Transformer(tiny_config(), src_vocab_size=11, tgt_vocab_size=11, shared_vocab=True)
    model(torch.tensor([[1, 2]]), torch.tensor([[3]]))[..., 4].sum().backward()
    learned = gradient(model.output_layer.weight).any(dim=-1).nonzero().flatten()
    assert learned.tolist() == [1, 2, 3, 4]  # source ids, target id, predicted id


def test_one_vocabulary_has_one_size(tiny_config: TinyConfig) -> None:
    with pytest.raises(ValueError, match=r"^a shared vocabulary has one size, but got 11 and 13$"):
        Transformer(tiny_config(), src_vocab_size=11, tgt_vocab_size=13, shared_vocab=True)


# Counting


def formula(config: ModelConfig, src_vocab_size: int, tgt_vocab_size: int, one_vocabulary: bool) -> int:
    """The number of parameters, written out."""
    D, F, H = config.d_model, config.d_ff, config.num_heads
    d_k, d_v = config.d_k or D // H, config.d_v or D // H

    attention = D * H * d_k + D * H * d_k + D * H * d_v + H * d_v * D
    if config.attention_bias:
        attention += H * d_k + H * d_k + H * d_v
    if config.attention_bias if config.attention_output_bias is None else config.attention_output_bias:
        attention += D
    feed_forward = D * F + F + F * D
    if config.feed_forward_output_bias:
        feed_forward += D
    if config.activation == "swiglu":
        feed_forward += D * F + F
    norm = 2 * D  # gamma and beta

    encoder = config.num_encoder_layers * (attention + feed_forward + 2 * norm)
    decoder = config.num_decoder_layers * (2 * attention + feed_forward + 3 * norm)
    final_norms = 2 * norm if config.norm_order == "pre" else 0

    if not config.tie_embeddings:
        matrices = src_vocab_size * D + 2 * tgt_vocab_size * D
    elif one_vocabulary:
        matrices = tgt_vocab_size * D
    else:
        matrices = src_vocab_size * D + tgt_vocab_size * D
    output_bias = tgt_vocab_size if config.output_bias else 0
    positions = 2 * config.max_seq_len * D if config.positions == "learned" else 0
    return encoder + decoder + final_norms + matrices + output_bias + positions


def count_parameters(config: ModelConfig, **sizes: Any) -> int:
    """Of a model that is not allocated, as `tfm info` counts them."""
    with torch.device("meta"):
        return weights.count_parameters(Transformer(config, **sizes))


@pytest.mark.parametrize(("src_vocab_size", "tgt_vocab_size", "one_vocabulary"), [(11, 13, False), (11, 11, True)])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tie_embeddings": False},
        {"output_bias": True},
        {"attention_bias": False},
        {"attention_output_bias": False},
        {"attention_bias": False, "attention_output_bias": True},
        {"feed_forward_output_bias": False},
        {"norm_order": "pre"},
        {"activation": "swiglu"},
        {"positions": "learned"},
        {"num_heads": 3, "d_k": 5, "d_v": 7},
        {"num_encoder_layers": 3, "num_decoder_layers": 1},
    ],
)
def test_the_number_of_parameters(
    tiny_config: TinyConfig, changes: dict[str, object], src_vocab_size: int, tgt_vocab_size: int, one_vocabulary: bool
) -> None:
    config = tiny_config(**changes)
    sizes = {"src_vocab_size": src_vocab_size, "tgt_vocab_size": tgt_vocab_size}
    expected = formula(config, src_vocab_size, tgt_vocab_size, one_vocabulary)
    model = Transformer(config, **sizes, shared_vocab=one_vocabulary)
    assert weights.count_parameters(model) == expected
    assert count_parameters(config, **sizes, shared_vocab=one_vocabulary) == expected


def test_the_base_model_of_the_paper_has_its_65_million_parameters() -> None:
    """Table 3 says 65 million; with a joint vocabulary of about 37,000 (section 5.1) the formula gives 63."""
    V = 37_000
    count = count_parameters(ModelConfig(), src_vocab_size=V, tgt_vocab_size=V, shared_vocab=True)
    assert count == formula(ModelConfig(), V, V, True)
    assert 63e6 < count < 65e6


def test_counting_allocates_nothing() -> None:
    config = ModelConfig(d_model=2**20, d_ff=2**22)  # petabytes, were it allocated
    sizes = {"src_vocab_size": 10**6, "tgt_vocab_size": 10**6}
    assert count_parameters(config, **sizes, shared_vocab=True) == formula(config, 10**6, 10**6, True)


def test_counting_draws_no_random_numbers(tiny_config: TinyConfig) -> None:
    before = torch.get_rng_state()
    count_parameters(tiny_config(), src_vocab_size=11, tgt_vocab_size=13, shared_vocab=False)
    assert torch.get_rng_state().equal(before)


# Names in a checkpoint

NAMES = {
    "src_embedding.tokens.weight",
    "tgt_embedding.tokens.weight",
    "encoder.layers.0.self_attn.q_proj.weight",
    "encoder.layers.0.self_attn.q_proj.bias",
    "encoder.layers.0.self_attn.k_proj.weight",
    "encoder.layers.0.self_attn.k_proj.bias",
    "encoder.layers.0.self_attn.v_proj.weight",
    "encoder.layers.0.self_attn.v_proj.bias",
    "encoder.layers.0.self_attn.out_proj.weight",
    "encoder.layers.0.self_attn.out_proj.bias",
    "encoder.layers.0.self_attn_residual.norm.weight",
    "encoder.layers.0.self_attn_residual.norm.bias",
    "encoder.layers.0.feed_forward.linear_1.weight",
    "encoder.layers.0.feed_forward.linear_1.bias",
    "encoder.layers.0.feed_forward.linear_2.weight",
    "encoder.layers.0.feed_forward.linear_2.bias",
    "encoder.layers.0.feed_forward_residual.norm.weight",
    "encoder.layers.0.feed_forward_residual.norm.bias",
    "decoder.layers.0.self_attn.q_proj.weight",
    "decoder.layers.0.self_attn.q_proj.bias",
    "decoder.layers.0.self_attn.k_proj.weight",
    "decoder.layers.0.self_attn.k_proj.bias",
    "decoder.layers.0.self_attn.v_proj.weight",
    "decoder.layers.0.self_attn.v_proj.bias",
    "decoder.layers.0.self_attn.out_proj.weight",
    "decoder.layers.0.self_attn.out_proj.bias",
    "decoder.layers.0.self_attn_residual.norm.weight",
    "decoder.layers.0.self_attn_residual.norm.bias",
    "decoder.layers.0.cross_attn.q_proj.weight",
    "decoder.layers.0.cross_attn.q_proj.bias",
    "decoder.layers.0.cross_attn.k_proj.weight",
    "decoder.layers.0.cross_attn.k_proj.bias",
    "decoder.layers.0.cross_attn.v_proj.weight",
    "decoder.layers.0.cross_attn.v_proj.bias",
    "decoder.layers.0.cross_attn.out_proj.weight",
    "decoder.layers.0.cross_attn.out_proj.bias",
    "decoder.layers.0.cross_attn_residual.norm.weight",
    "decoder.layers.0.cross_attn_residual.norm.bias",
    "decoder.layers.0.feed_forward.linear_1.weight",
    "decoder.layers.0.feed_forward.linear_1.bias",
    "decoder.layers.0.feed_forward.linear_2.weight",
    "decoder.layers.0.feed_forward.linear_2.bias",
    "decoder.layers.0.feed_forward_residual.norm.weight",
    "decoder.layers.0.feed_forward_residual.norm.bias",
    "output_layer.weight",
}
"""A checkpoint API: who renames one of these breaks every saved model."""

FINAL_NORMS = {"encoder.norm.weight", "encoder.norm.bias", "decoder.norm.weight", "decoder.norm.bias"}
GATES = {
    "encoder.layers.0.feed_forward.gate.weight",
    "encoder.layers.0.feed_forward.gate.bias",
    "decoder.layers.0.feed_forward.gate.weight",
    "decoder.layers.0.feed_forward.gate.bias",
}
POSITIONS = {"src_embedding.positions.weight", "tgt_embedding.positions.weight"}


@pytest.mark.parametrize(
    ("changes", "added"),
    [
        ({}, set()),
        ({"tie_embeddings": False}, set()),
        ({"norm_order": "pre"}, FINAL_NORMS),
        ({"activation": "swiglu"}, GATES),
        ({"positions": "learned"}, POSITIONS),
        ({"positions": "none"}, set()),
        ({"output_bias": True}, {"output_layer.bias"}),
    ],
)
def test_the_names_in_a_checkpoint(build_model: BuildModel, changes: dict[str, object], added: set[str]) -> None:
    model = build_model(num_encoder_layers=1, num_decoder_layers=1, **changes)
    assert set(model.state_dict()) == NAMES | added


def test_without_attention_bias_the_projections_biases_are_gone(build_model: BuildModel) -> None:
    model = build_model(num_encoder_layers=1, num_decoder_layers=1, attention_bias=False)
    assert set(model.state_dict()) == {name for name in NAMES if not name.endswith("_proj.bias")}


@pytest.mark.parametrize(
    ("setting", "gone"),
    [("attention_output_bias", "out_proj.bias"), ("feed_forward_output_bias", "linear_2.bias")],
)
def test_a_bias_that_is_left_out_is_gone_from_the_checkpoint(build_model: BuildModel, setting: str, gone: str) -> None:
    model = build_model(num_encoder_layers=1, num_decoder_layers=1, **{setting: False})
    assert set(model.state_dict()) == {name for name in NAMES if not name.endswith(gone)}


def test_a_state_dict_carries_the_whole_model(build_model: BuildModel) -> None:
    model, copy = build_model(seed=1), build_model(seed=2)
    src, tgt = real_ids(2, 7), real_ids(2, 5)
    assert not torch.allclose(copy(src, tgt), model(src, tgt))
    copy.load_state_dict(model.state_dict())
    assert copy(src, tgt).equal(model(src, tgt))


# Fresh weights


def fresh_model(**changes: object) -> Transformer:
    config = ModelConfig(d_model=64, d_ff=128, num_encoder_layers=1, num_decoder_layers=1, max_seq_len=64)
    config = ModelConfig(**{**vars(config), **changes})
    return Transformer(config, src_vocab_size=500, tgt_vocab_size=500, shared_vocab=False)


def test_fresh_matrices_are_xavier_uniform_and_biases_zero() -> None:
    model = fresh_model(output_bias=True)
    linears = [module for module in model.modules() if isinstance(module, nn.Linear) and module != model.output_layer]
    for linear in linears:
        bound = math.sqrt(6 / (linear.in_features + linear.out_features))
        assert linear.weight.abs().max() <= bound
        assert linear.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
        assert not linear.bias.any()
    assert not model.output_layer.bias.any()


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_fresh_embeddings_have_unit_variance_after_scaling(positions: str) -> None:
    model = fresh_model(positions=positions)
    for name, matrix in model.named_parameters():
        if name.endswith(("tokens.weight", "positions.weight")):
            assert matrix.std().item() * math.sqrt(64) == pytest.approx(1, rel=0.05), name


def test_an_untied_output_layer_is_xavier_uniform_too() -> None:
    weight = fresh_model(tie_embeddings=False).output_layer.weight
    assert weight.abs().max() <= math.sqrt(6 / (64 + 500))


def test_fresh_logits_of_a_tied_model_have_about_unit_variance() -> None:
    logits = fresh_model()(torch.randint(1, 500, (8, 20)), torch.randint(1, 500, (8, 20)))
    assert logits.std().item() == pytest.approx(1, rel=0.1)


def test_the_seed_decides_the_fresh_weights() -> None:
    def weights(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return nn.utils.parameters_to_vector(fresh_model().parameters())

    assert weights(1).equal(weights(1))
    assert not weights(1).equal(weights(2))


# Training and evaluation mode


@pytest.mark.parametrize("name", ["dropout", "attention_dropout", "feed_forward_dropout"])
def test_each_dropout_acts_in_training_only(build_model: BuildModel, name: str) -> None:
    model, without = build_model(**{name: 0.5}), build_model()
    src, tgt = real_ids(2, 7), real_ids(2, 5)
    assert model(src, tgt).equal(without(src, tgt))
    model.train()
    assert not torch.allclose(model(src, tgt), without(src, tgt))


@pytest.mark.parametrize("positions", ["sinusoidal", "none"])
def test_only_text_is_limited_to_max_seq_len_not_the_model(build_model: BuildModel, positions: str) -> None:
    short, long = build_model(positions=positions, max_seq_len=4), build_model(positions=positions, max_seq_len=32)
    assert short.state_dict().keys() == long.state_dict().keys()
    src, tgt = real_ids(2, 23), real_ids(2, 19)
    torch.testing.assert_close(short(src, tgt), long(src, tgt), atol=1e-6, rtol=0)


@pytest.mark.parametrize("side", ["source", "target"])
def test_learned_positions_refuse_a_sequence_that_is_too_long(build_model: BuildModel, side: str) -> None:
    model = build_model(positions="learned", max_seq_len=4)
    fits, too_long = real_ids(1, 4), real_ids(1, 5)
    assert model(fits, fits).shape == (1, 4, 13)
    with pytest.raises(ValueError, match="sequence of 5 tokens, but max_seq_len is 4"):
        model(*((too_long, fits) if side == "source" else (fits, too_long)))
