"""Cross-entropy with label smoothing: the plain formula, and the same without ever holding all logits in memory."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

CHUNK_ROWS = 512
"""Rows of logits computed at a time: a chunk stays in the processor's cache."""
SMALLEST_PROB = 1e-30
"""Below it the logarithm of a float32 probability is no longer exact."""


def label_smoothed_cross_entropy(logits: Tensor, targets: Tensor, label_smoothing: float, ignore_id: int) -> Tensor:
    """The training loss, summed over target tokens (paper section 5.4).

        (1 - eps) * -log p(y) + eps * mean over all v of -log p(v)

    so eps is spread over the whole vocabulary, the true token included, as in torch's own `F.cross_entropy`.

    Logits are (N, V), targets (N,); positions holding `ignore_id` count nothing. A scalar, in nats.
    """
    log_probs = logits.float().log_softmax(dim=-1)
    true = log_probs.gather(1, targets[:, None]).squeeze(1)
    losses = -(1 - label_smoothing) * true - label_smoothing * log_probs.mean(dim=-1)
    return losses.masked_fill(targets == ignore_id, 0).sum()


def fused_linear_cross_entropy(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, label_smoothing: float, ignore_id: int
) -> Tensor:
    """`label_smoothed_cross_entropy(hidden @ weight.T + bias, ..)` in row chunks, gradients computed on the way.

    The logits of a batch are its largest tensor by far (4,096 x 8,000), and element-wise passes over it cost more than
    the matrix product. Here each chunk is projected, turned into probabilities by one fused softmax, into its gradient
    in place and multiplied back while it is still in cache; the backward pass only scales the stored results.

    With p the softmax of z = hidden @ weight.T + bias, the gradient with respect to z is

        p - (1 - eps) * onehot(y) - eps / V

    whose last term is the same for every element: it meets the weights as the sum of their rows, without another pass.

    Args:
        hidden: (N, D); its dtype is that of the three matrix products. Sums are taken in float32.
        weight: (V, D).
        bias: (V,) or None.
        targets: (N,); positions holding `ignore_id` are skipped.

    Returns:
        A scalar: the sum over targets, in nats.
    """
    loss: Tensor = _FusedLinearCrossEntropy.apply(hidden, weight, bias, targets, label_smoothing, ignore_id)  # pyright: ignore[reportAssignmentType]
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
    ) -> Tensor:
        counted = (targets != ignore_id).nonzero().squeeze(1)
        rows, labels = hidden[counted], targets[counted]
        uniform = label_smoothing / len(weight)
        matrix, offset = weight.to(rows.dtype), None if bias is None else bias.to(rows.dtype)
        mean_logits = rows.float() @ weight.mean(dim=0) + (0.0 if bias is None else bias.mean())  # (N,)
        loss = -label_smoothing * mean_logits.sum()
        grad_rows = torch.empty_like(rows)
        grad_weight = torch.zeros_like(weight)
        grad_bias = None if bias is None else torch.full_like(bias, -uniform * len(labels))
        for start in range(0, len(labels), CHUNK_ROWS):
            chunk, chunk_labels = rows[start : start + CHUNK_ROWS], labels[start : start + CHUNK_ROWS]
            chunk_loss, grad = _loss_and_gradient(F.linear(chunk, matrix, offset), chunk_labels, label_smoothing)
            loss += chunk_loss
            if grad_bias is not None:
                grad_bias += grad.sum(dim=0, dtype=grad_bias.dtype)
            torch.mm(grad, matrix, out=grad_rows[start : start + CHUNK_ROWS])
            if grad.dtype == grad_weight.dtype:  # addmm_ adds in place, but takes one precision only
                grad_weight.addmm_(grad.T, chunk)
            else:
                grad_weight += grad.T @ chunk
        grad_weight -= uniform * rows.float().sum(dim=0)
        grad_hidden = torch.zeros_like(hidden)
        grad_hidden[counted] = grad_rows - (uniform * weight.sum(dim=0)).to(rows.dtype)
        ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
        return loss

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (scale,) = grad_outputs
        grad_hidden, grad_weight, grad_bias = ctx.saved_tensors
        scaled_bias = None if grad_bias is None else grad_bias * scale
        return grad_hidden * scale, grad_weight * scale, scaled_bias, None, None, None


def _loss_and_gradient(logits: Tensor, labels: Tensor, label_smoothing: float) -> tuple[Tensor, Tensor]:
    """Of one chunk: -(1 - eps) z_y + log-normaliser, summed, and softmax(z) - (1 - eps) onehot(y); logits (n, V)."""
    columns = labels[:, None]
    probs = logits.softmax(dim=-1)
    true = logits.gather(1, columns).float()
    prob_true = probs.gather(1, columns).float()
    log_normaliser = true - prob_true.log()  # log p_y = z_y - log sum exp z
    underflow = (prob_true < SMALLEST_PROB).squeeze(1)
    if underflow.any():
        log_normaliser[underflow] = logits[underflow].float().logsumexp(dim=-1, keepdim=True)
    # Written at flat positions: in bf16, torch's scatter_ would copy the whole tensor to float32 and back.
    flat = labels + torch.arange(0, probs.numel(), probs.size(1), device=labels.device)
    probs.view(-1)[flat] = (prob_true - (1 - label_smoothing)).to(probs.dtype).squeeze(1)
    return (log_normaliser - (1 - label_smoothing) * true).sum(), probs


def training_loss(
    hidden: Tensor, output_layer: torch.nn.Linear, targets: Tensor, label_smoothing: float, ignore_id: int
) -> Tensor:
    """The loss of decoder outputs (B, T, D), summed over targets (B, T), in nats.

    Chunked on a CPU, by torch's own fused kernels elsewhere.
    """
    rows, labels = hidden.flatten(0, 1), targets.flatten()
    if rows.device.type == "cpu":
        return fused_linear_cross_entropy(
            rows, output_layer.weight, output_layer.bias, labels, label_smoothing, ignore_id
        )
    logits = output_layer(rows).float()
    return F.cross_entropy(logits, labels, ignore_index=ignore_id, label_smoothing=label_smoothing, reduction="sum")


@dataclass(frozen=True)
class NextTokenLoss:
    """The loss of predicting each target token from the source, if there is one, and from the target before it.

    Args:
        label_smoothing: Share of the target distribution that is spread over the vocabulary.
        dtype: Precision of activations and matrix products; weights, gradients and sums stay float32.
    """

    label_smoothing: float
    dtype: torch.dtype = torch.float32

    def __call__(self, model: Any, batch: Any) -> tuple[Tensor, int]:
        """The loss summed over the target tokens of a `Batch`, and their number."""
        hidden = model.hidden_states(batch.src, batch.tgt_in, self.dtype)  # (B, T, D)
        loss = training_loss(hidden, model.output_layer, batch.tgt_out, self.label_smoothing, model.pad_id)
        return loss, batch.num_tokens
