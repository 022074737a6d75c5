"""Too little memory for a batch: it is computed in smaller pieces, and so are the batches after it."""

from collections.abc import Callable, Iterable

from ...system.errors import OutOfMemory
from ..out_of_memory import free_memory, is_out_of_memory
from .batch import Batch
from .gradients import GradientBuffer
from .progress import Progress

AddGradient = Callable[[Batch, int, int], None]
"""Adds the gradient of a batch to the buffer; takes its number, and that of a piece of it."""


def add_gradients(
    micro_batches: Iterable[tuple[int, Batch]], add: AddGradient, gradients: GradientBuffer, progress: Progress
) -> None:
    """Adds the gradients of micro-batches, whole as long as memory is enough.

    Where it is not, all that were added are computed anew, in smaller pieces: the backward pass that failed may have
    added some of its gradients.

    Args:
        micro_batches: Of one update, each with its number.
        add: Computes one of them, or a piece.
        gradients: What `add` adds to.
        progress: Knows what has fitted so far, and learns what does not.

    Raises:
        OutOfMemory: Not even one sentence fits.
    """
    gradients.clear()
    taken: list[tuple[int, Batch]] = []
    for micro_batch in micro_batches:
        taken.append(micro_batch)
        fits = _add(*micro_batch, add, gradients, progress)
        while not fits:
            free_memory()
            gradients.clear()
            fits = all(_add(*one, add, gradients, progress) for one in taken)


def _add(number: int, batch: Batch, add: AddGradient, gradients: GradientBuffer, progress: Progress) -> bool:
    """Adds the gradient of one micro-batch, if it fits; if not, says so and makes `progress.fitting` smaller."""
    pieces = in_pieces(batch, progress.fitting)
    for index, piece in enumerate(pieces):
        try:
            add(piece, number, index)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            if len(piece) == 1:
                raise OutOfMemory(
                    f"step {progress.step + 1:,}: not enough memory for a single sentence of {piece.positions:,}"
                    " positions; end other programs, or train a smaller model in a new --run: --set model.d_model=.."
                    " model.max_seq_len=.., or with training.ranks=1"
                ) from error
            progress.fitting = piece.positions // 2
            return False
    if len(pieces) > 1:
        gradients.count_divided()
    return True


def in_pieces(batch: Batch, fitting: int) -> list[Batch]:
    """A batch in as few pieces as have `fitting` positions at most, or one sentence; whole if `fitting` is 0.

    A piece is every so-many-th sentence: they stand in order of length, so that the pieces are about equally large.
    """
    count = min(-(-batch.positions // fitting), len(batch)) if fitting else 1
    return [batch.rows(slice(start, None, count)) for start in range(count)] if count > 1 else [batch]
