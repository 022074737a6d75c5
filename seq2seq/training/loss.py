"""Cross-entropy with label smoothing: the plain formula, and the same without ever holding all logits in memory."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ..model.masks import PAD_ID

CHUNK_ROWS = 512
"""Rows of logits computed at a time: a chunk stays in the processor's cache."""
LARGE_CHUNK_ROWS = 8192
"""Rows of logits that a GPU computes at a time: its products stay large, and its memory need not hold all logits."""
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
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    label_smoothing: float,
    ignore_id: int,
    *,
    may_wait: bool | None = None,
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
        may_wait: Whether numbers may be looked at on the way, which on a GPU takes a wait; by default on a CPU alone.

    Returns:
        A scalar: the sum over targets, in nats.
    """
    may_wait = hidden.device.type == "cpu" if may_wait is None else may_wait
    loss: Tensor = _FusedLinearCrossEntropy.apply(  # pyright: ignore[reportAssignmentType]
        hidden, weight, bias, targets, label_smoothing, ignore_id, may_wait
    )
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
        may_wait: bool,
    ) -> Tensor:
        counted, size = targets != ignore_id, CHUNK_ROWS
        if may_wait:  # the other rows are left out
            chosen, weights = counted.nonzero().squeeze(1), None
            rows, labels = hidden[chosen], targets[chosen]
        else:  # to count them, the host would have to wait for the device: they have weight 0 instead
            chosen, weights, size = slice(None), counted.float(), LARGE_CHUNK_ROWS
            rows, labels = hidden * counted[:, None], targets
        uniform = label_smoothing / len(weight)
        matrix, offset = weight.to(rows.dtype), None if bias is None else bias.to(rows.dtype)
        mean_logits = rows.float() @ weight.mean(dim=0) + (0.0 if bias is None else bias.mean())  # (N,)
        loss = -label_smoothing * _sum(mean_logits, weights)
        grad_rows = torch.empty_like(rows)
        grad_weight = torch.zeros_like(weight)
        number = len(labels) if weights is None else weights.sum()
        grad_bias = None if bias is None else torch.empty_like(bias).fill_(-uniform * number)
        for start in range(0, len(labels), size):
            part = slice(start, start + size)
            chunk, share = rows[part], None if weights is None else weights[part]
            losses, grad = _losses_and_gradient(
                F.linear(chunk, matrix, offset), labels[part], label_smoothing, may_wait
            )
            loss += _sum(losses, share)
            if grad_bias is not None:
                grad_bias += _sum(grad, share, grad_bias.dtype)
            torch.mm(grad, matrix, out=grad_rows[part])
            if grad.dtype == grad_weight.dtype:  # addmm_ adds in place, but takes one precision only
                grad_weight.addmm_(grad.T, chunk)
            else:
                grad_weight += grad.T @ chunk
        grad_weight -= uniform * rows.float().sum(dim=0)
        grad_rows -= (uniform * weight.sum(dim=0)).to(rows.dtype)
        grad_hidden = torch.zeros_like(hidden)
        grad_hidden[chosen] = grad_rows if weights is None else grad_rows * weights[:, None].to(rows.dtype)
        ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
        return loss

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (scale,) = grad_outputs
        grad_hidden, grad_weight, grad_bias = ctx.saved_tensors
        scaled_bias = None if grad_bias is None else grad_bias * scale
        return grad_hidden * scale, grad_weight * scale, scaled_bias, None, None, None, None


def _sum(values: Tensor, weights: Tensor | None, dtype: torch.dtype | None = None) -> Tensor:
    """The sum over the rows of values (n,) or (n, V), each times its weight if there are weights."""
    if weights is None:
        return values.sum(dim=0, dtype=dtype)
    return (weights.to(values.dtype) @ values).to(dtype or values.dtype)


def _losses_and_gradient(
    logits: Tensor, labels: Tensor, label_smoothing: float, may_wait: bool
) -> tuple[Tensor, Tensor]:
    """Of logits (n, V): -(1 - eps) z_y + log-normaliser (n,), and softmax(z) - (1 - eps) onehot(y) (n, V)."""
    columns = labels[:, None]
    probs = logits.softmax(dim=-1)
    true = logits.gather(1, columns).float()
    prob_true = probs.gather(1, columns).float()
    if may_wait:
        log_normaliser = true - prob_true.log()  # log p_y = z_y - log sum exp z
        underflow = (prob_true < SMALLEST_PROB).squeeze(1)
        if underflow.any():
            log_normaliser[underflow] = logits[underflow].float().logsumexp(dim=-1, keepdim=True)
    else:  # by the likeliest token, whose probability is never tiny: the host need not wait to see that
        largest, places = logits.max(dim=-1, keepdim=True)
        log_normaliser = largest.float() - probs.gather(1, places).float().log()
    # Written at flat positions: in bf16, torch's scatter_ would copy the whole tensor to float32 and back.
    flat = labels + torch.arange(0, probs.numel(), probs.size(1), device=labels.device)
    probs.view(-1)[flat] = (prob_true - (1 - label_smoothing)).to(probs.dtype).squeeze(1)
    return (log_normaliser - (1 - label_smoothing) * true).squeeze(1), probs


def training_loss(hidden: Tensor, output_layer: torch.nn.Linear, targets: Tensor, label_smoothing: float) -> Tensor:
    """The loss of decoder outputs (B, T, D), summed over targets (B, T) that are not padding, in nats."""
    weight, bias = output_layer.weight, output_layer.bias
    return fused_linear_cross_entropy(hidden.flatten(0, 1), weight, bias, targets.flatten(), label_smoothing, PAD_ID)


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
        hidden = model.hidden_states(batch.src, batch.tgt_in, self.dtype, batch.packing)  # (B, T, D)
        loss = training_loss(hidden, model.output_layer, batch.tgt_out, self.label_smoothing)
        return loss, batch.num_tokens
