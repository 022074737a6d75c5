"""Too little memory for a batch: it is computed in smaller pieces, and so are the batches after it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...system.errors import OutOfMemory
from ..out_of_memory import free_memory, is_out_of_memory
from .batch import Batch
from .progress import Progress

if TYPE_CHECKING:
    from .update import GradientBuffer


class Pieces:
    """The micro-batches of one update, whole as long as memory is enough. To be iterated over once.

    Where it is not enough, the gradients are cleared and all micro-batches that were taken come again, in smaller
    pieces: the backward pass that failed may have added some of its gradients.

    Args:
        micro_batches: Each with its number.
        gradients: What the pieces are added to.
        progress: Knows what has fitted so far, and learns what does not.
    """

    def __init__(
        self, micro_batches: Iterable[tuple[int, Batch]], gradients: "GradientBuffer", progress: Progress
    ) -> None:
        self._micro_batches, self._gradients, self._progress = micro_batches, gradients, progress
        self._failed = False

    def __iter__(self) -> Iterator[tuple[int, int, Batch]]:
        """The numbers of a micro-batch and of a piece of it, and the piece."""
        self._gradients.clear()
        taken: list[tuple[int, Batch]] = []
        for micro_batch in self._micro_batches:
            taken.append(micro_batch)
            yield from self._cut(*micro_batch)
            while self._failed:
                free_memory()
                self._gradients.clear()
                self._failed = False
                for again in taken:
                    if not self._failed:
                        yield from self._cut(*again)

    def _cut(self, number: int, batch: Batch) -> Iterator[tuple[int, int, Batch]]:
        """The pieces of a micro-batch, until one does not fit."""
        pieces = in_pieces(batch, self._progress.fitting)
        for index, piece in enumerate(pieces):
            yield number, index, piece
            if self._failed:
                return
        if len(pieces) > 1:
            self._gradients.count_divided()

    @contextmanager
    def fitting(self, piece: Batch) -> Iterator[None]:
        """Inside the block a piece is computed. If it does not fit into memory, the block ends, and smaller ones come.

        Raises:
            OutOfMemory: The piece is a single sentence.
        """
        try:
            yield
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            if len(piece) == 1:
                raise OutOfMemory(
                    f"step {self._progress.step + 1:,}: not enough memory for a single sentence of"
                    f" {piece.positions:,} positions; end other programs, or train a smaller model in a new --run:"
                    " --set model.d_model=.. model.max_seq_len=.., or with training.ranks=1"
                ) from error
            self._progress.fitting = piece.positions // 2
            self._failed = True


def in_pieces(batch: Batch, fitting: int) -> list[Batch]:
    """A batch in as few pieces as have `fitting` positions at most, or one sentence; whole if `fitting` is 0.

    A piece is every so-many-th sentence: they stand in order of length, so that the pieces are about equally large.
    """
    if not fitting or batch.positions <= fitting:
        return [batch]
    batch = batch.unpacked()
    count = min(-(-batch.positions // fitting), len(batch))
    return [batch.rows(slice(start, None, count)) for start in range(count)] if count > 1 else [batch]
