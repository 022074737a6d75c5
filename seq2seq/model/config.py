"""What a Transformer is made of. A plain dataclass: no torch."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Never, get_args

_SIZES = ("d_model", "d_ff", "num_heads", "d_k", "d_v", "max_seq_len")
_LARGEST = 10_000_000
"""The largest value of a size in `_SIZES`. No model is so large, and its square is still a number for torch."""
_LONGEST = 100_000
"""The largest `max_seq_len`: a table of this many positions still fits into memory."""
_DEEPEST = 1_000
"""The most layers that a stack may have."""
Architecture = Literal["encoder_decoder", "decoder_only", "encoder_only"]
NormOrder = Literal["post", "pre"]
Activation = Literal["relu", "gelu", "swiglu"]
Positions = Literal["sinusoidal", "learned", "rotary", "none"]
_CHOICES = {
    "architecture": get_args(Architecture),
    "norm_order": get_args(NormOrder),
    "activation": get_args(Activation),
    "positions": get_args(Positions),
}
_STACKS: dict[str, set[str]] = {
    "encoder_decoder": {"num_encoder_layers", "num_decoder_layers"},
    "decoder_only": {"num_decoder_layers"},
    "encoder_only": {"num_encoder_layers"},
}
"""Which layers an architecture has."""


def unknown(setting: str, value: Never) -> NotImplementedError:
    """The error at the end of a `match` over a setting: a value that is added later is refused until it is handled.

    A type checker finds such a place before anything runs, since `value` can then be more than `Never`.
    """
    return NotImplementedError(f"{setting} {value!r:.60} is not implemented here")


@dataclass(frozen=True)
class ModelConfig:
    """Sizes and choices of one Transformer. The defaults are the base model of Vaswani et al. (2017), table 3."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    architecture: Architecture = "encoder_decoder"
    """`encoder_decoder` translates; `decoder_only` translates, or continues text (`data.text`); `encoder_only` turns
    sentences into vectors. What an architecture does not have has 0 layers."""

    d_model: int = 512
    """Width of the residual stream, D."""
    d_ff: int = 2048
    """Width of the feed-forward network's hidden layer."""
    num_heads: int = 8
    """Attention heads, H."""
    d_k: int | None = None
    """Width of a query or key in one head; d_model / num_heads if not given."""
    d_v: int | None = None
    """Width of a value in one head; d_model / num_heads if not given."""
    num_encoder_layers: int = 6
    """Encoder layers, N."""
    num_decoder_layers: int = 6
    """Decoder layers."""
    max_seq_len: int = 256
    """Longest text on either side, in pieces, its special piece included: longer pairs are left out of training, longer
    sources are split, and translations end there. The model itself reads longer sequences, unless positions are
    learned: there are exactly this many of them."""
    dropout: float = 0.1
    """Dropout on the embeddings and on each sub-layer's output (paper section 5.4)."""
    attention_dropout: float = 0.0
    """Dropout on the attention weights."""
    feed_forward_dropout: float = 0.0
    """Dropout on the feed-forward network's hidden layer."""
    norm_order: NormOrder = "post"
    """`post`: LayerNorm(x + f(x)), the paper. `pre`: x + f(LayerNorm(x)), and one more LayerNorm after each stack."""
    norm_eps: float = 1e-5
    """Epsilon under the root in LayerNorm. 0 is the formula of [Zhou n.d.]; a row of equal elements then gives 0 / 0,
    which is not a number."""
    activation: Activation = "relu"
    """The feed-forward network: `relu` as in the paper, `gelu` in its place, or `swiglu`, which has one more matrix."""
    feed_forward_output_bias: bool = True
    """b_2, the bias of the feed-forward network's second matrix; [Zhou n.d.] has none."""
    positions: Positions = "sinusoidal"
    """How the model knows the order. `sinusoidal` and `learned` vectors are added to the embeddings. With `rotary`
    nothing is added: the queries and keys of self-attention are turned, so that their products depend on distances (Su
    et al. 2021). With `none` the encoder does not know the order of its input, and the decoder knows its own from the
    causal mask alone. [Zhou n.d.] does not think positions necessary."""
    scale_embeddings: bool = True
    """Multiply token embeddings by sqrt(d_model) (paper section 3.4; [Zhou n.d.]: in certain cases)."""
    attention_bias: bool = True
    """Bias in the query, key and value projections. The paper's formulas have none, most code has one, and
    [Anonymous n.d.] shows both."""
    attention_output_bias: bool | None = None
    """Bias in the output projection W^O; as `attention_bias` if not given. [Anonymous n.d.] has none there, even where
    it has the others."""
    output_bias: bool = False
    """Bias in the output layer."""
    tie_embeddings: bool = True
    """One matrix for target embedding and output layer, and for the source embedding too if the vocabulary is joint."""

    def __post_init__(self) -> None:
        problems: list[str] = []
        for name in _SIZES:
            size, least = getattr(self, name), 2 if name == "max_seq_len" else 1
            most = _LONGEST if name == "max_seq_len" else _LARGEST
            if size is not None and not least <= size <= most:
                bound = f"at least {least}" if size < least else f"at most {most}"
                problems.append(f"{name} must be {bound}, but is {size}")
        problems += self._wrong_layers()
        for name in ("dropout", "attention_dropout", "feed_forward_dropout"):
            if not 0 <= getattr(self, name) < 1:
                problems.append(f"{name} must be at least 0 and below 1, but is {getattr(self, name)}")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                problems.append(f"{name} must be one of {', '.join(choices)}, but is {getattr(self, name)!r:.60}")
        if not 0 <= self.norm_eps < 1:
            problems.append(f"norm_eps must be at least 0 and below 1, but is {self.norm_eps}")
        if not problems and None in (self.d_k, self.d_v) and self.d_model % self.num_heads:
            below = max(self.d_model // self.num_heads, 1) * self.num_heads
            problems.append(
                f"d_model {self.d_model} is not divisible by num_heads {self.num_heads}"
                f" (try {below} or {below + self.num_heads}, or set d_k and d_v)"
            )
        if not problems and self.positions == "sinusoidal" and self.d_model % 2:
            problems.append(f"d_model must be even for sinusoidal positions, but is {self.d_model}")
        if not problems and self.positions == "rotary" and self.key_size % 2:
            problems.append(
                f"d_k must be even for rotary positions, but is {self.key_size}"
                f" (set d_k={self.key_size + 1}, or positions=sinusoidal)"
            )
        if problems:
            raise ValueError("\n".join(problems))

    def _wrong_layers(self) -> list[str]:
        """What is wrong with the numbers of layers."""
        if self.architecture not in _STACKS:
            return []  # said elsewhere
        problems: list[str] = []
        for name in ("num_encoder_layers", "num_decoder_layers"):
            count = getattr(self, name)
            if name in _STACKS[self.architecture]:
                if not 1 <= count <= _DEEPEST:
                    bound = "at least 1" if count < 1 else f"at most {_DEEPEST}"
                    problems.append(f"{name} must be {bound}, but is {count}")
            elif count != 0:
                problems.append(f"{name} must be 0, for {self.architecture} has none, but is {count}")
        return problems

    def without_dropout(self) -> "ModelConfig":
        """The same model, its dropout rates 0: all that its weights depend on. Dropout may change between trainings."""
        return replace(self, dropout=0.0, attention_dropout=0.0, feed_forward_dropout=0.0)

    @property
    def num_positions(self) -> int:
        """How many positions a sequence has. A decoder-only model reads a source and a target as one sequence."""
        return self.max_seq_len * (2 if self.architecture == "decoder_only" else 1)

    @property
    def key_size(self) -> int:
        """d_k, with its default filled in."""
        return self.d_k or self.d_model // self.num_heads

    @property
    def value_size(self) -> int:
        """d_v, with its default filled in."""
        return self.d_v or self.d_model // self.num_heads

    @property
    def output_projection_bias(self) -> bool:
        """attention_output_bias, with its default filled in."""
        return self.attention_bias if self.attention_output_bias is None else self.attention_output_bias
