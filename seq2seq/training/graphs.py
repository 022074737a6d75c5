"""CUDA graphs: the kernels of an update, recorded once for each shape of batch and launched at once from then on.

The kernels of a small model take less time than a Python program takes to launch them one by one. Measured on an H100
with batches of 4,096 tokens and the model of the preset `multi30k`: 52 ms launched one by one, 5 ms from a graph.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..out_of_memory import free_memory, is_out_of_memory
from .batch import Batch
from .optimizer import Optimizer

MOST_GRAPHS = 256
"""A further shape is computed without a graph."""


@dataclass(frozen=True)
class _Recorded:
    """A graph, and the tensors that it reads and writes."""

    graph: "torch.cuda.CUDAGraph"
    batch: Batch
    loss: Tensor


class CudaGraphs:
    """Does what an update does, to the last bit, by graphs.

    The random numbers of a replay follow from the seed of torch's generator at that time, as those of a plain pass do.
    All graphs take their memory from one pool, since none needs what another has left there.

    Args:
        loss: Of a batch, summed, and the tokens in the sum. It must not wait for the device.
        parameters: With the gradients that are added to; these stay where they are.
    """

    def __init__(self, loss: Callable[[Batch], tuple[Tensor, int]], parameters: Sequence[nn.Parameter]) -> None:
        self._loss, self._parameters = loss, list(parameters)
        self._recorded: dict[tuple[int, ...], _Recorded] = {}
        self._step: torch.cuda.CUDAGraph | None = None
        self._rate = torch.zeros((), device=self._parameters[0].device)
        self._pool: Any = None
        self._is_full = False

    def ready(self, batch: Batch) -> bool:
        """Whether there is a graph of this batch's shape. It is recorded now if the batch is packed, so that its
        shape recurs, and memory is enough.

        If memory is not enough, all graphs are given up.
        """
        if batch.shape not in self._recorded and batch.packing is not None and not self._is_full:
            try:
                self._recorded[batch.shape] = self._record(batch)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                self._recorded.clear()
            self._is_full = not 0 < len(self._recorded) < MOST_GRAPHS
            if not self._recorded:
                free_memory()
        return batch.shape in self._recorded

    def backward(self, batch: Batch) -> tuple[Tensor, int]:
        """Adds the gradients of a batch that is `ready`. Returns its loss, which may be overwritten, and its tokens."""
        recorded = self._recorded[batch.shape]
        for static, given in zip(recorded.batch.tensors, batch.tensors, strict=True):
            static.copy_(given)
        recorded.graph.replay()
        return recorded.loss, batch.num_tokens

    def step(self, optimizer: Optimizer, rate: float) -> None:
        """Makes the optimizer's step at a rate."""
        self._rate.fill_(rate)
        if self._step is None:
            self._step = self._record_step(optimizer)
        self._step.replay()

    @torch.no_grad()
    def _record_step(self, optimizer: Optimizer) -> "torch.cuda.CUDAGraph":
        """Records the step. It is made once for its libraries to choose their kernels, and undone.

        So a run that goes on replays each step, as the run that was not stopped does: outside a graph, products may be
        summed in another order.
        """
        changed = [*self._parameters, *optimizer.state_tensors()]
        before = [tensor.clone() for tensor in changed]
        optimizer.step(self._rate)
        for tensor, then in zip(changed, before, strict=True):
            tensor.copy_(then)
        return self._capture(lambda: optimizer.step(self._rate))

    def _record(self, batch: Batch) -> _Recorded:
        """Records the passes over a batch, without a change to gradients or to the state of the generators."""
        static = batch.clone()
        self._warm_up(static)
        losses: list[Tensor] = []

        def passes() -> None:
            loss, _ = self._loss(static)
            loss.backward()
            losses.append(loss.detach())

        return _Recorded(self._capture(passes), static, losses[0])

    def _warm_up(self, batch: Batch) -> None:
        """Has libraries choose their kernels for this shape, which a recording does not allow."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.random.fork_rng(devices=[batch.src.device]), torch.cuda.stream(stream):
            loss, _ = self._loss(batch)
            torch.autograd.grad(loss, self._parameters, allow_unused=True)
        torch.cuda.current_stream().wait_stream(stream)

    def _capture(self, work: Callable[[], None]) -> "torch.cuda.CUDAGraph":
        """Records work, which is not done yet then."""
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            work()
        return graph
