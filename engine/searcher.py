"""What searches behind a translator: the model of a run here, or CTranslate2 with an export (`exported_searcher`).

All else that happens to a line, before its search and after it, is in `translator`, and the same for both.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from ..data.tokenizer import BOS_ID, EOS_ID
from ..seq2seq.decoding.fast import arrange
from ..seq2seq.decoding.search import Hypothesis, Search, SearchState, Task
from ..seq2seq.model.masks import pad
from .translation import Part

if TYPE_CHECKING:
    from ..seq2seq.model.decoder_only import DecoderOnly
    from ..seq2seq.model.encoder_decoder import Transformer


class Searcher(Protocol):
    """A model, as a translator sees it."""

    @property
    def model(self) -> "Transformer | DecoderOnly":
        """The model itself, for who looks inside; UsageError if only another program can read it."""
        ...

    @property
    def max_seq_len(self) -> int:
        """Most pieces of a source and of an output, eos included."""
        ...

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        ...

    @property
    def scores_unknown(self) -> bool:
        """Whether it gives a probability to pieces that it never generates: to the unknown piece of a target."""
        ...

    def search(self, search: Search, batch: Sequence[Part], check: Callable[[], None]) -> list[list[Hypothesis]]:
        """Runs one search over parts of similar length; for each part its hypotheses, best first.

        `check` is to be called now and then, see `on_all_cores`.
        """
        ...

    def log_probs(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[float]:
        """The log-probability of each target given its source, eos included; of ids without eos."""
        ...


def task_of(batch: Sequence[Part], device: torch.device) -> Task:
    """What is searched for in a batch."""
    return Task(
        max_lengths=[part.max_length for part in batch],
        bos_id=BOS_ID,
        eos_id=EOS_ID,
        prefixes=[part.prefix for part in batch],
        phrases=[part.phrases or () for part in batch],
        keys=[part.key for part in batch],
        expected=[part.expected_length for part in batch],
        device=device,
    )


class ModelSearcher:
    """The model of a run, written out for decoding."""

    scores_unknown = True

    def __init__(self, model: "Transformer | DecoderOnly", forbidden_ids: Sequence[int]) -> None:
        self.model = model
        self.max_seq_len = model.config.max_seq_len
        self.device = next(model.parameters()).device
        self._fast = arrange(model, forbidden_ids)

    @torch.inference_mode()
    def search(self, search: Search, batch: Sequence[Part], check: Callable[[], None]) -> list[list[Hypothesis]]:
        """See `Searcher`."""
        src = pad([[*part.ids, EOS_ID] for part in batch]).to(self.device)

        def step(last: Tensor, position: int, state: SearchState) -> Tensor:
            check()
            return self._fast(last, position, state)

        return search(step, self._fast.encode(src), task_of(batch, self.device))

    def log_probs(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[float]:
        """See `Searcher`."""
        from ..data.batching import training_rows  # a translation needs none of this
        from ..seq2seq.training.batch import Batch
        from .evaluation.loss import pair_log_probs

        batch = Batch.of(training_rows(pairs), device=self.device)
        return pair_log_probs(self.model, batch).tolist()
