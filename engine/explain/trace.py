"""Every intermediate result of one forward pass, taken from the model's own modules while it computes.

Hooks read what the modules return. Three results that the model does not keep apart are derived, in one line each:
Q K^T before it is divided, mean and variance of LayerNorm's input.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor, nn

from ...seq2seq.model.attention import AttentionCall, attention_scores, recording
from ...seq2seq.model.embedding import Embedding
from ...seq2seq.model.feed_forward import FeedForward
from ...seq2seq.model.layers import Residual
from ...seq2seq.model.rotary import RotaryPositions

SHOWN_POSITIONS = 64
"""Least rows in the picture of the positions, if the model has as many positions."""
Arrays = dict[str, Tensor]
"""Results by name: `MODULE`, or `MODULE.RESULT`. They have no batch dimension: (T, D) for vectors of positions,
(H, T, d_k) for vectors of heads, (H, T, S) for maps."""


def trace(model: nn.Module, run: Callable[[], Tensor]) -> Arrays:
    """The results of one forward pass, in which `run` calls the model once, on a batch of one sentence.

    Returns:
        Of each module below, under its name:

        * embedding: `.tokens` E[ids], `.scaled`, `.positions` if they are added, and the sum; `.picture`, of more
          positions than the sentence has
        * attention: `.q`, `.k`, `.v`, `.products` Q K^T, `.scores` divided by sqrt(d_k), `.masked` with -inf where the
          mask forbids, `.weights`, `.heads`, `.concat`, and the output; where rotary positions turn queries and keys,
          `.rotary.q` and `.rotary.k`, as they were before
        * residual connection with LayerNorm: `.in`, and the output; LayerNorm in it: `.in`, `.mean`, `.variance`, and
          the output
        * feed-forward: `.linear_1`, `.gate` (swiglu), `.hidden` after the activation, and the output
        * the stacks' last LayerNorm and the output layer: as above

        All are float32 on the CPU.
    """
    arrays: Arrays = {}
    hooks = [
        module.register_forward_hook(partial(_HOOKS[type_], arrays, name))
        for name, module in model.named_modules()
        for type_ in _HOOKS
        if isinstance(module, type_)
    ]
    try:
        with recording(model, lambda call: call) as calls:
            run()
    finally:
        for hook in hooks:
            hook.remove()
    for name, [call] in calls.items():
        _keep_attention(arrays, name, call)
    return arrays


def _keep(arrays: Arrays, name: str, value: Tensor) -> None:
    arrays[name] = value.detach()[0].float().cpu()


def _keep_attention(arrays: Arrays, name: str, call: AttentionCall) -> None:
    """Each is (1, H, T, ..); scores are computed again without the mask, and without the division."""
    scores = attention_scores(call.q, call.k)
    products = scores * math.sqrt(call.q.size(-1))
    found = {"q": call.q, "k": call.k, "v": call.v, "products": products, "scores": scores}
    found |= {"masked": call.scores, "weights": call.weights, "heads": call.heads}
    for part, value in found.items():
        _keep(arrays, f"{name}.{part}", value)


def _on_linear(arrays: Arrays, name: str, module: nn.Linear, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    """Inputs and outputs of the matrices of attention and feed-forward; Q, K and V come by `recording`."""
    if name.endswith(".out_proj"):
        _keep(arrays, name.removesuffix("out_proj") + "concat", inputs[0])
        _keep(arrays, name.removesuffix(".out_proj"), output)
    elif name.endswith((".linear_1", ".gate")) or name == "output_layer":
        _keep(arrays, name, output)
    elif name.endswith(".linear_2"):
        _keep(arrays, name.removesuffix("linear_2") + "hidden", inputs[0])


def _on_residual(arrays: Arrays, name: str, module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
    _keep(arrays, f"{name}.in", inputs[0])
    _keep(arrays, name, output)


def _on_norm(arrays: Arrays, name: str, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    (x,) = inputs
    _keep(arrays, f"{name}.in", x)
    _keep(arrays, f"{name}.mean", x.mean(dim=-1))
    _keep(arrays, f"{name}.variance", x.var(dim=-1, unbiased=False))
    _keep(arrays, name, output)


def _on_embedding(arrays: Arrays, name: str, module: Embedding, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Tied embeddings share one table, which has one name: its rows are looked up here for each embedding."""
    ids: Tensor = inputs[0]
    tokens = module.tokens(ids)
    _keep(arrays, f"{name}.tokens", tokens)
    _keep(arrays, f"{name}.scaled", tokens * module.scale)
    if module.positions is not None:
        _keep(arrays, f"{name}.positions", module.positions(ids.size(1))[None])
        shown = max(min(SHOWN_POSITIONS, module.num_positions), ids.size(1))
        _keep(arrays, f"{name}.picture", module.positions(shown)[None])
    _keep(arrays, name, output)


def _on_rotary(arrays: Arrays, name: str, module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Queries and keys before they are turned; the turned ones come by `recording`."""
    for part, value in zip("qk", inputs[0].chunk(2, dim=1), strict=True):
        _keep(arrays, f"{name}.{part}", value)


_HOOKS: dict[type[nn.Module], Callable[..., None]] = {
    Embedding: _on_embedding,
    RotaryPositions: _on_rotary,
    nn.Linear: _on_linear,
    nn.LayerNorm: _on_norm,
    FeedForward: lambda arrays, name, module, inputs, output: _keep(arrays, name, output),
    Residual: _on_residual,
}


def encoder_output(arrays: Arrays, num_layers: int) -> Tensor:
    """The output (S, D) of an encoder: that of its last LayerNorm, if it has one."""
    last = arrays[f"encoder.layers.{num_layers - 1}.feed_forward_residual"]
    return arrays.get("encoder.norm", last)
