"""Experiments: a model with a head switched off, and a model read after each layer."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ...seq2seq.model.attention import MultiHeadAttention, attention_modules


@dataclass(frozen=True)
class WithoutHead:
    """The model while one head of an attention, counted from 0, gives zeros."""

    module: str
    head: int
    log_prob: float
    """Of the output that the whole model found; `log_probs` are those of its pieces, given those before."""
    log_probs: list[float]
    text: str
    """The text that greedy search finds now."""


@contextmanager
def head_off(attention: MultiHeadAttention, head: int) -> Iterator[None]:
    """One head gives zeros inside the block: the rows of W^O that read it are 0 (columns, as torch stores it)."""
    width = attention.out_proj.in_features // attention.num_heads
    with torch.no_grad():
        columns = attention.out_proj.weight[:, head * width : (head + 1) * width]
        kept = columns.clone()
        columns.zero_()
        try:
            yield
        finally:
            columns.copy_(kept)


def without_each_head(
    model: nn.Module, log_probs: Callable[[], Tensor], search: Callable[[], str]
) -> list[WithoutHead]:
    """Switches off each head of each attention in turn, and calls both functions, which use the model.

    `log_probs` computes the log-probabilities (T,) of a fixed output.
    """
    found: list[WithoutHead] = []
    for name, attention in attention_modules(model).items():
        for head in range(attention.num_heads):
            with head_off(attention, head):
                each = log_probs().tolist()
                found.append(WithoutHead(name, head, sum(each), each, search()))
    return found


def early_logits(hidden: Tensor, norm: nn.Module, output_layer: nn.Module) -> Tensor:
    """The logits (T, V) if a layer were the last one: its output (T, D) through the output layer.

    With pre-norm the stack's last LayerNorm comes between; with post-norm `norm` does nothing.
    """
    return output_layer(norm(hidden))
