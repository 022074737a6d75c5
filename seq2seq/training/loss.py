"""Cross-entropy with label smoothing: the plain formula, and the same without ever holding all logits in memory."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

CHUNK_ROWS = 256
"""Rows of logits computed at a time: (256, V) stays in the processor's cache."""


def label_smoothed_cross_entropy(logits: Tensor, targets: Tensor, label_smoothing: float, ignore_id: int) -> Tensor:
    """The training loss, summed over target tokens (paper section 5.4).

        (1 - eps) * -log p(y) + eps * mean over all v of -log p(v)

    so eps is spread over the whole vocabulary, the true token included, as in torch's own `F.cross_entropy`.

    Args:
        logits: (N, V).
        targets: (N,) token ids; positions holding `ignore_id` count nothing.

    Returns:
        A scalar, in nats.
    """
    log_probs = logits.float().log_softmax(dim=-1)
    true = log_probs.gather(1, targets[:, None]).squeeze(1)
    losses = -(1 - label_smoothing) * true - label_smoothing * log_probs.mean(dim=-1)
    return losses.masked_fill(targets == ignore_id, 0).sum()


def fused_linear_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    label_smoothing: float,
    ignore_id: int,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """`label_smoothed_cross_entropy(hidden @ weight.T + bias, ..)` in row chunks, gradients computed on the way.

    The logits of a batch are its largest tensor by far (4,096 x 8,000), and element-wise passes over it cost more than
    the matrix product. Here each chunk is projected, turned into its gradient in place and multiplied back while it is
    still in cache; the backward pass only scales the stored results.

    Args:
        hidden: (N, D).
        weight: (V, D).
        bias: (V,) or None.
        targets: (N,); positions holding `ignore_id` are skipped.
        dtype: Precision of the three matrix products.

    Returns:
        A scalar: the sum over targets, in nats.
    """
    loss: Tensor = _FusedLinearCrossEntropy.apply(hidden, weight, bias, targets, label_smoothing, ignore_id, dtype)  # pyright: ignore[reportAssignmentType]
    return loss


class _FusedLinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        label_smoothing: float,
        ignore_id: int,
        dtype: torch.dtype,
    ) -> Tensor:
        counted = (targets != ignore_id).nonzero().squeeze(1)
        rows, labels = hidden.detach()[counted].to(dtype), targets[counted]
        matrix = weight.detach().to(dtype)
        loss = torch.zeros((), dtype=torch.float32, device=hidden.device)
        grad_rows = torch.empty_like(rows)
        grad_weight = torch.zeros_like(weight, dtype=torch.float32)
        grad_bias = None if bias is None else torch.zeros_like(bias, dtype=torch.float32)
        for start in range(0, len(labels), CHUNK_ROWS):
            chunk, chunk_labels = rows[start : start + CHUNK_ROWS], labels[start : start + CHUNK_ROWS]
            logits = (chunk @ matrix.T).float()  # (n, V)
            if bias is not None:
                logits += bias.detach()
            chunk_loss, grad = _loss_and_gradient(logits, chunk_labels, label_smoothing)
            loss += chunk_loss
            if grad_bias is not None:
                grad_bias += grad.sum(dim=0)
            grad = grad.to(dtype)
            grad_rows[start : start + CHUNK_ROWS] = grad @ matrix
            grad_weight += (grad.T @ chunk).float()
        grad_hidden = torch.zeros_like(hidden)
        grad_hidden[counted] = grad_rows.to(hidden.dtype)
        ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
        return loss

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (scale,) = grad_outputs
        grad_hidden, grad_weight, grad_bias = ctx.saved_tensors
        scaled_bias = None if grad_bias is None else grad_bias * scale
        return grad_hidden * scale, grad_weight * scale, scaled_bias, None, None, None, None


def _loss_and_gradient(logits: Tensor, labels: Tensor, label_smoothing: float) -> tuple[Tensor, Tensor]:
    """The summed loss of one chunk and its gradient, softmax(z) - (1 - eps) * onehot(y) - eps / V, written over z."""
    vocab_size = logits.size(1)
    log_normaliser = logits.logsumexp(dim=-1, keepdim=True)  # (n, 1)
    true = logits.gather(1, labels[:, None])
    expected = (1 - label_smoothing) * true + label_smoothing * logits.mean(dim=-1, keepdim=True)
    loss = (log_normaliser - expected).sum()
    grad = logits.sub_(log_normaliser).exp_()
    if label_smoothing:
        grad -= label_smoothing / vocab_size
    grad.scatter_add_(1, labels[:, None], torch.full_like(true, label_smoothing - 1))
    return loss, grad


def training_loss(
    hidden: Tensor, output_layer: torch.nn.Linear, targets: Tensor, label_smoothing: float, ignore_id: int
) -> Tensor:
    """The loss of decoder outputs: chunked on a CPU, torch's own fused kernels elsewhere.

    Args:
        hidden: (B, T, D) decoder outputs.
        output_layer: D to V.
        targets: (B, T).

    Returns:
        A scalar: the sum over target tokens, in nats.
    """
    rows, labels = hidden.flatten(0, 1), targets.flatten()
    if rows.device.type == "cpu":
        dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
        with torch.autocast("cpu", enabled=False):
            return fused_linear_cross_entropy(
                rows, output_layer.weight, output_layer.bias, labels, label_smoothing, ignore_id, dtype
            )
    logits = output_layer(rows).float()
    return F.cross_entropy(logits, labels, ignore_index=ignore_id, label_smoothing=label_smoothing, reduction="sum")
