"""The Transformer of Vaswani et al. (2017), equation by equation, and three architectures. Read in this order:

    config        the sizes and choices
    masks         sequences of unequal lengths as one tensor, and who may attend to whom
    embedding     tokens and positions to vectors
    rotary        the other way to know positions: queries and keys are turned
    attention     softmax(Q K^T / sqrt(d_k)) V, and many heads of it
    softmax       the same function, faster for short rows
    precision     matrix products and LayerNorm in half precision
    dropout       with a mask that is cheap to draw
    feed_forward  max(0, x W_1 + b_1) W_2 + b_2
    layers        residual + LayerNorm around the sub-layers
    stacks        N layers on top of each other

Then one module for each architecture, made of these, and `build`, which chooses among them:

    encoder_decoder   source and target meet in cross-attention: translates
    decoder_only      source and target are one sequence, or there is a text alone: translates, or continues text
    encoder_only      each sentence by itself, seen from both sides: its vector

Shapes, in every docstring: B sentences, S source length, T target length, V vocabulary, D = d_model, H heads,
batch first. A mask is True where attending is allowed.

"The paper" is Vaswani et al. (2017). Keys such as [Yang 2024a] are other texts that write the same equations out:
see docs/sources.md.
"""

from typing import TYPE_CHECKING, Any

from .config import ModelConfig

if TYPE_CHECKING:
    from .encoder_decoder import Transformer

__all__ = ["ModelConfig", "Transformer"]


def __getattr__(name: str) -> Any:
    # Late, so that reading a configuration does not load torch.
    if name == "Transformer":
        from .encoder_decoder import Transformer

        return Transformer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
