"""The Transformer of Vaswani et al. (2017), equation by equation. Read in this order:

    config        the sizes and choices
    masks         who may attend to whom
    embedding     tokens and positions to vectors
    attention     softmax(Q K^T / sqrt(d_k)) V, and many heads of it
    feed_forward  max(0, x W_1 + b_1) W_2 + b_2
    layers        residual + LayerNorm around the sub-layers
    transformer   N encoder layers, M decoder layers, the output layer

Shapes, in every docstring: B sentences, S source length, T target length, V vocabulary, D = d_model, H heads,
batch first. A mask is True where attending is allowed.

"The paper" is Vaswani et al. (2017). Keys such as [Yang 2024a] are other texts that write the same equations out:
see docs/sources.md.
"""

from typing import TYPE_CHECKING, Any

from .config import ModelConfig

if TYPE_CHECKING:
    from .transformer import Transformer

__all__ = ["ModelConfig", "Transformer"]


def __getattr__(name: str) -> Any:
    # Late, so that reading a configuration does not load torch.
    if name == "Transformer":
        from .transformer import Transformer

        return Transformer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
