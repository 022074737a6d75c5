"""ModelConfig: the paper's base model by default, and one line for each thing that cannot be."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, replace
from typing import Any, get_args

import pytest

import tfm.seq2seq.model
from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.config import Architecture


def configure(**settings: Any) -> ModelConfig:
    """A configuration of settings whose types are not known here."""
    return ModelConfig(**settings)


def problems(**settings: Any) -> list[str]:
    with pytest.raises(ValueError, match=r"must be|divisible") as error:
        ModelConfig(**settings)
    return str(error.value).splitlines()


def test_the_defaults_are_the_base_model_of_the_paper() -> None:
    base = ModelConfig()
    assert (base.num_encoder_layers, base.num_decoder_layers) == (6, 6)
    assert (base.d_model, base.d_ff, base.num_heads) == (512, 2048, 8)
    assert (base.key_size, base.value_size) == (64, 64)
    assert base.dropout == 0.1
    assert (base.norm_order, base.activation, base.positions) == ("post", "relu", "sinusoidal")
    assert base.scale_embeddings
    assert base.tie_embeddings


@pytest.mark.parametrize("architecture", get_args(Architecture))
def test_every_architecture_has_a_stack_of_layers(architecture: str) -> None:
    found = problems(architecture=architecture, num_encoder_layers=0, num_decoder_layers=0)
    assert all("must be at least 1, but is 0" in problem for problem in found)


@pytest.mark.parametrize(
    "name", ["d_model", "d_ff", "num_heads", "num_encoder_layers", "num_decoder_layers", "d_k", "d_v"]
)
@pytest.mark.parametrize("size", [0, -1])
def test_sizes_are_at_least_1(name: str, size: int) -> None:
    assert problems(**{name: size}) == [f"{name} must be at least 1, but is {size}"]


@pytest.mark.parametrize("name", ["d_ff", "num_heads", "num_encoder_layers", "num_decoder_layers", "d_k", "d_v"])
def test_size_1_is_allowed(name: str) -> None:
    assert getattr(configure(**{name: 1}), name) == 1


def test_d_model_1_is_allowed_without_sinusoids() -> None:
    assert ModelConfig(d_model=1, num_heads=1, positions="none").d_model == 1


@pytest.mark.parametrize("length", [1, 0, -5])
def test_max_seq_len_holds_one_piece_and_eos(length: int) -> None:
    assert problems(max_seq_len=length) == [f"max_seq_len must be at least 2, but is {length}"]
    assert ModelConfig(max_seq_len=2).max_seq_len == 2


@pytest.mark.parametrize("name", ["dropout", "attention_dropout", "feed_forward_dropout"])
@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5, float("nan"), float("inf")])
def test_rates_are_at_least_0_and_below_1(name: str, rate: float) -> None:
    assert problems(**{name: rate}) == [f"{name} must be at least 0 and below 1, but is {rate}"]


@pytest.mark.parametrize("name", ["dropout", "attention_dropout", "feed_forward_dropout"])
@pytest.mark.parametrize("rate", [0.0, 0.999])
def test_rates_from_0_to_just_below_1_are_allowed(name: str, rate: float) -> None:
    assert getattr(configure(**{name: rate}), name) == rate


@pytest.mark.parametrize("eps", [-1e-5, 1.0, float("nan")])
def test_norm_eps_is_at_least_0_and_below_1(eps: float) -> None:
    assert problems(norm_eps=eps) == [f"norm_eps must be at least 0 and below 1, but is {eps}"]


@pytest.mark.parametrize("eps", [0.0, 1e-12, 0.999])
def test_norm_eps_from_0_to_just_below_1_is_allowed(eps: float) -> None:
    assert ModelConfig(norm_eps=eps).norm_eps == eps


@pytest.mark.parametrize(
    ("d_model", "num_heads", "below", "above"), [(100, 8, 96, 104), (510, 4, 508, 512), (6, 8, 8, 16)]
)
def test_d_model_is_divided_among_the_heads(d_model: int, num_heads: int, below: int, above: int) -> None:
    assert problems(d_model=d_model, num_heads=num_heads) == [
        f"d_model {d_model} is not divisible by num_heads {num_heads} (try {below} or {above}, or set d_k and d_v)"
    ]
    for suggestion in (below, above):
        assert ModelConfig(d_model=suggestion, num_heads=num_heads).key_size * num_heads == suggestion


@pytest.mark.parametrize("only", ["d_k", "d_v"])
def test_setting_one_head_width_of_two_still_divides_for_the_other(only: str) -> None:
    [problem] = problems(d_model=100, num_heads=8, **{only: 16})
    assert problem.startswith("d_model 100 is not divisible by num_heads 8")
    assert configure(d_model=96, num_heads=8, **{only: 16})


def test_d_k_and_d_v_are_free() -> None:
    config = ModelConfig(d_model=100, num_heads=8, d_k=7, d_v=33)
    assert (config.key_size, config.value_size) == (7, 33)


@pytest.mark.parametrize(
    ("bias", "output", "expected"),
    [(True, None, True), (False, None, False), (True, False, False), (False, True, True)],
)
def test_the_output_projection_has_a_bias_as_the_others_unless_it_is_told(
    bias: bool, output: bool | None, expected: bool
) -> None:
    assert ModelConfig(attention_bias=bias, attention_output_bias=output).output_projection_bias == expected


def test_sinusoids_come_in_pairs() -> None:
    assert problems(d_model=9, num_heads=3) == ["d_model must be even for sinusoidal positions, but is 9"]
    assert ModelConfig(d_model=9, num_heads=3, positions="learned")
    assert ModelConfig(d_model=9, num_heads=3, positions="none")
    assert problems(d_model=9, num_heads=3, positions="rotary") == [
        "d_k must be even for rotary positions, but is 3 (set d_k=4, or positions=sinusoidal)"
    ]
    assert ModelConfig(d_model=9, num_heads=3, d_k=4, positions="rotary")


def test_all_problems_are_told_at_once() -> None:
    assert problems(d_ff=0, max_seq_len=1, dropout=2.0, norm_eps=-1.0, d_k=-3) == [
        "d_ff must be at least 1, but is 0",
        "d_k must be at least 1, but is -3",
        "max_seq_len must be at least 2, but is 1",
        "dropout must be at least 0 and below 1, but is 2.0",
        "norm_eps must be at least 0 and below 1, but is -1.0",
    ]


def test_zero_heads_is_a_range_error_not_a_division_by_zero() -> None:
    assert problems(num_heads=0) == ["num_heads must be at least 1, but is 0"]


def test_a_configuration_does_not_change(tiny_config: Callable[..., ModelConfig]) -> None:
    config = tiny_config()
    with pytest.raises(FrozenInstanceError):
        config.d_model = 32  # pyright: ignore[reportAttributeAccessIssue]


def test_a_changed_copy_is_checked_again() -> None:
    with pytest.raises(ValueError, match="d_model must be at least 1"):
        replace(ModelConfig(), d_model=0)


def test_a_model_of_an_earlier_version_lacks_the_settings_that_came_later() -> None:
    earlier = asdict(ModelConfig(attention_bias=False))
    for name in ("attention_output_bias", "feed_forward_output_bias"):
        del earlier[name]
    config = ModelConfig(**earlier)
    assert config == ModelConfig(attention_bias=False)
    assert not config.output_projection_bias  # as then: all four projections, or none
    assert config.feed_forward_output_bias


def test_a_configuration_needs_no_torch() -> None:
    code = "import sys; from tfm.seq2seq.model import ModelConfig; ModelConfig(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_package_exports_the_configuration_and_the_model() -> None:
    from tfm.seq2seq.model.encoder_decoder import Transformer

    assert tfm.seq2seq.model.Transformer is Transformer
    with pytest.raises(AttributeError, match="no attribute 'Transfomer'"):
        _ = tfm.seq2seq.model.Transfomer  # pyright: ignore[reportAttributeAccessIssue]
