"""Text from a language model: it continues beginnings until it ends them. The Python interface of such a run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from ..data.cleaning import check_texts, clean
from ..data.tokenizer import BOS_ID, EOS_ID, UNK_ID, Tokenizer
from ..seq2seq.decoding.fast.decoder_only import FastDecoderOnly
from ..seq2seq.decoding.sampling import Sample
from ..seq2seq.decoding.search import Hypothesis, Search, SearchState, Task
from ..seq2seq.model.decoder_only import DecoderOnly
from ..system.errors import UsageError
from ..system.reporter import say_nothing
from .device import in_batches
from .runs.checkpoint import Purpose
from .runs.load import FromRun, TrainedRun

MAX_BATCH_ROWS = 128
"""Texts that are continued together at most."""


@dataclass(frozen=True)
class Generation:
    """One text.

    Attributes:
        text: The beginning and what follows it, detokenized.
        log_prob: Log-probability of the whole, the beginning included; 0 if there is a problem.
        ended: Whether the model ended it; else it has reached the length limit.
        problem: Why the beginning could not be continued, and is the whole text; empty if it could.
    """

    text: str
    log_prob: float
    tokens: tuple[str, ...]
    ended: bool
    problem: str = ""

    def __str__(self) -> str:
        return self.text


class Generator(FromRun):
    """Continues texts with a trained language model, which is in evaluation mode, and its own tokenizer.

    >>> generator = Generator.load("runs/text")
    >>> generation = generator.generate(["one two"], search=Sample(top_p=0.9, seed=7), max_pieces=12)[0]
    >>> generation.text.startswith("one two")
    True
    """

    purpose: ClassVar[Purpose | None] = "language model"

    def __init__(self, model: DecoderOnly, tokenizer: Tokenizer) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.device = next(model.parameters()).device
        self.max_pieces = model.config.max_seq_len
        """Longest text, eos included."""
        self._model = FastDecoderOnly(model, tokenizer.tgt.forbidden_ids())

    @classmethod
    def of(cls, loaded: TrainedRun, warn: Callable[[str], None] = say_nothing) -> Self:
        """See `FromRun.of`."""
        del warn  # nothing is cut
        assert isinstance(loaded.model, DecoderOnly)
        return cls(loaded.model, loaded.tokenizer)

    def generate(
        self,
        beginnings: Sequence[str],
        *,
        search: Search | None = None,
        max_pieces: int | None = None,
        first_line: int = 0,
    ) -> list[Generation]:
        """Continues texts, in order; the best one for each, or with several samples, as many for each.

        Args:
            beginnings: What the texts begin with; an empty one leaves all to the model. The last word of a beginning
                may go on: `Haus` can become `Haustür`.
            search: `Sample`, `Greedy` or `Beam`; a sample unless given.
            max_pieces: Longest text, beginning and eos included; as many as the model reads unless given.
            first_line: Number of the first beginning in a longer stream: what is drawn depends on its line's number.

        Returns:
            Texts. A beginning that is longer than the limit, or has characters that the vocabulary lacks, is returned
            as it is, with the reason in `problem`.

        Raises:
            UsageError: The model does not read texts of `max_pieces`.
            TypeError: One text came instead of several, or one of them is no string.
        """
        check_texts(beginnings, "beginnings")
        search, limit = search or Sample(), max_pieces or self.max_pieces
        if limit > self.max_pieces:
            raise UsageError(
                f"a text of this model has at most {self.max_pieces} pieces, its end included, not {limit}"
            )
        encoded = [self.tokenizer.tgt.encode(beginning) for beginning in beginnings]
        problems = [self._problem(ids, limit) for ids in encoded]
        lines = [line for line, problem in enumerate(problems) if not problem]
        size = max(MAX_BATCH_ROWS // search.rows, 1)
        batches = [range(start, min(start + size, len(lines))) for start in range(0, len(lines), size)]

        def search_batch(batch: Sequence[int], check: Callable[[], None]) -> list[list[Hypothesis]]:
            keys = [str(first_line + line) for line in batch]
            return self._search([encoded[line] for line in batch], keys, limit, search, check)

        continued = iter(in_batches(self.device, search_batch, lines, batches))
        each = search.samples if isinstance(search, Sample) else 1
        texts: list[Generation] = []
        for beginning, problem in zip(beginnings, problems, strict=True):
            if problem:
                texts += [Generation(clean(beginning), 0.0, (), ended=False, problem=problem)] * each
            else:
                texts += [self._detokenized(hypothesis, limit) for hypothesis in next(continued)[:each]]
        return texts

    def _problem(self, beginning: list[int], limit: int) -> str:
        """Why a beginning cannot be continued; empty if it can."""
        if len(beginning) >= limit:
            return f"the beginning has {len(beginning)} pieces, but a text has at most {limit - 1}"
        return "the beginning has a character or a word that is not in the vocabulary" if UNK_ID in beginning else ""

    @torch.inference_mode()
    def _search(
        self, prefixes: list[list[int]], keys: list[str], limit: int, search: Search, check: Callable[[], None]
    ) -> list[list[Hypothesis]]:
        task = Task(
            max_lengths=[limit] * len(prefixes),
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            prefixes=prefixes,
            keys=keys,
            device=self.device,
        )

        def step(last: Tensor, position: int, state: SearchState) -> Tensor:
            check()
            return self._model(last, position, state)

        return search(
            step, self._model.encode(torch.empty((len(prefixes), 0), dtype=torch.long, device=self.device)), task
        )

    def _detokenized(self, hypothesis: Hypothesis, limit: int) -> Generation:
        vocabulary = self.tokenizer.tgt
        return Generation(
            text=clean(vocabulary.decode(hypothesis.ids)),
            log_prob=hypothesis.log_prob,
            tokens=tuple(vocabulary.piece(token) for token in hypothesis.ids),
            ended=len(hypothesis.ids) + 1 < limit,
        )
