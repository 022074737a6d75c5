"""CTranslate2 behind a translator: an export searches as its run does.

Greedy search and beam search are CTranslate2's own, by the same rules but for what `export.parity` says: its beam
search ends once as many hypotheses have ended as the beam has. Three things are made equal here. Hypotheses are ranked
by our length penalty. An output that comes to its longest length gets its end in place of its last piece. A prefix
counts in a log-probability, and a limit on repetitions does not.

Every other search (samples, terms and placeholders that must be written) is our own. It asks CTranslate2 for the logits
of the next piece, which computes the whole output so far anew: that takes long, and few lines need it.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never

import numpy as np
import torch
from torch import Tensor

from ..seq2seq.decoding.beam import Beam
from ..seq2seq.decoding.greedy import Greedy
from ..seq2seq.decoding.search import Hypothesis, Search, finished
from ..system.errors import EnvironmentFault, ModelError, UsageError
from .device import cores_for_batches
from .searcher import task_of
from .translation import Part

if TYPE_CHECKING:
    from .runs.exported import StoredExport

NO_PENALTY = 1e-9
"""length^1e-9 is 1 in float32. At a penalty of 0 CTranslate2 may stop by another rule."""
_EOS = "</s>"
_EVERYTHING: dict[str, Any] = {"max_input_length": 0, "min_decoding_length": 0}
_CPU = torch.device("cpu")


class ExportedSearcher:
    """An export, loaded by CTranslate2.

    Args:
        device: `auto`, `cpu` or `cuda`.

    Raises:
        EnvironmentFault: CTranslate2 is missing, or cannot compute with these weights here.
        UsageError: CTranslate2 has no such device here.
    """

    scores_unknown = False

    def __init__(self, stored: "StoredExport", device: str) -> None:
        self._stored = stored
        self.device = _pick_device(device, imported("translating with an export").get_cuda_device_count())
        self.max_seq_len = stored.description.model_config().max_seq_len
        threads = cores_for_batches(_CPU)
        try:
            self._translator: Any = load_ctranslate2(
                stored.directory,
                device=self.device.type,
                files=stored.files,
                inter_threads=threads if self.device == _CPU else 1,
                intra_threads=1 if self.device == _CPU else 0,
            )
        except ValueError as error:  # a kind of weights that this machine cannot compute with
            raise EnvironmentFault(f"CTranslate2 cannot use {stored.directory} on this machine: {error}") from error
        except RuntimeError as error:
            raise ModelError(f"CTranslate2 cannot read {stored.directory}: {error}") from error
        source, target = stored.tokenizer.src, stored.tokenizer.tgt
        self._source = [source.piece(token) for token in range(len(source))]
        self._target = [target.piece(token) for token in range(len(target))]
        self._ids = {piece: token for token, piece in enumerate(self._target)}

    @property
    def model(self) -> Never:
        """There is none that could be looked into."""
        raise UsageError(
            f"{self._stored.directory} is an export, in which nobody can look at attention; take the run it was made"
            f" of: {self._stored.origin.run}"
        )

    def search(self, search: Search, batch: Sequence[Part], check: Callable[[], None]) -> list[list[Hypothesis]]:
        """See `Searcher`."""
        check()
        if isinstance(search, Greedy):
            return [[one] for one in self._greedy(search, batch)]
        if isinstance(search, Beam):
            return self._beam(search, batch)

        def step(last: Tensor, position: int, state: Any) -> Tensor:
            check()
            state.extend(last, position)
            return self._logits(state, position)

        return search(step, _Rows(batch), task_of(batch, _CPU))

    def log_probs(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[float]:
        """See `Searcher`. A piece that must not be generated makes a target all but impossible."""
        sources, targets = ([self._pieces_of(side, pair[side]) for pair in pairs] for side in (0, 1))
        results = self._translator.score_batch(sources, targets, max_input_length=0)
        return [sum(one.log_probs) for one in results]

    def _pieces_of(self, side: int, ids: Sequence[int]) -> list[str]:
        pieces = self._target if side else self._source
        return [pieces[token] for token in ids]

    # --- CTranslate2's own searches ---

    def _greedy(self, search: Greedy, batch: Sequence[Part]) -> list[Hypothesis]:
        found: list[Hypothesis] = []
        again: list[int] = []
        longest = max(part.max_length for part in batch)
        for row, (part, result) in enumerate(zip(batch, self._translated(search, batch, longest), strict=True)):
            (pieces,) = result.hypotheses
            ids = self._without_end(pieces)
            fits = len(ids) < len(pieces) <= part.max_length
            if not fits or part.prefix or search.no_repeat_ngram_size:
                again.append(row)
            found.append(finished(ids[: part.max_length - 1], result.scores[0], search.length_penalty))
        return self._scored(found, again, batch, search.length_penalty)

    def _beam(self, search: Beam, batch: Sequence[Part]) -> list[list[Hypothesis]]:
        found: list[list[Hypothesis]] = [[] for _ in batch]
        at_limit: list[int] = []
        longest = max(part.max_length for part in batch)
        for row, (part, result) in enumerate(zip(batch, self._translated(search, batch, longest), strict=True)):
            if any(len(one) > part.max_length or one[-1:] != [_EOS] for one in result.hypotheses):
                at_limit.append(row)
                continue
            pairs = zip(result.hypotheses, result.scores, strict=True)
            found[row] = [finished(self._without_end(one), score, search.length_penalty) for one, score in pairs]
        again = [row for row, part in enumerate(batch) if part.prefix or search.no_repeat_ngram_size]
        for row, ended in self._ended_at_limit(search, batch, at_limit):
            found[row] = ended
        for row in sorted({*at_limit, *again}):
            parts = [batch[row]] * len(found[row])
            found[row] = self._scored(found[row], range(len(parts)), parts, search.length_penalty)
        return [sorted(ended, key=lambda one: -one.score)[: search.n_best] for ended in found]

    def _ended_at_limit(
        self, search: Beam, batch: Sequence[Part], rows: Sequence[int]
    ) -> "list[tuple[int, list[Hypothesis]]]":
        """Searches once more for parts that come to their longest length, where a hypothesis can only end."""
        ended: list[tuple[int, list[Hypothesis]]] = []
        ordered = sorted(rows, key=lambda row: batch[row].max_length)
        for limit, group in groupby(ordered, key=lambda row: batch[row].max_length):
            numbers = list(group)
            open_ones = [row for row in numbers if len(batch[row].prefix) < limit - 1]  # the others are their prefix
            results = self._translated(search, [batch[row] for row in open_ones], limit - 1) if open_ones else []
            found = dict(zip(open_ones, results, strict=True))
            for row in numbers:
                outputs = found[row].hypotheses if row in found else [self._pieces_of(1, batch[row].prefix)]
                ended.append((row, [Hypothesis(self._without_end(one), 0.0, 0.0) for one in outputs]))
        return ended

    def _translated(self, search: Greedy | Beam, batch: Sequence[Part], longest: int) -> Sequence[Any]:
        """What CTranslate2 finds; all hypotheses, since it would choose among them by another length penalty."""
        prefixes = [self._pieces_of(1, part.prefix) for part in batch] if any(part.prefix for part in batch) else None
        return self._translator.translate_batch(
            [self._pieces_of(0, part.ids) for part in batch],
            target_prefix=prefixes,
            beam_size=search.rows,
            num_hypotheses=search.rows,
            length_penalty=NO_PENALTY,
            no_repeat_ngram_size=search.no_repeat_ngram_size,
            max_decoding_length=longest,
            return_end_token=True,
            return_scores=True,
            **_EVERYTHING,
        )

    def _without_end(self, pieces: Sequence[str]) -> list[int]:
        """Ids of an output without its end, if it has one."""
        return [self._ids[piece] for piece in (pieces[:-1] if pieces[-1:] == [_EOS] else pieces)]

    def _scored(
        self, found: list[Hypothesis], rows: Sequence[int], batch: Sequence[Part], alpha: float
    ) -> list[Hypothesis]:
        """Hypotheses, some of which CTranslate2 did not score as the model would: without a prefix, say."""
        log_probs = self.log_probs([(batch[row].ids, found[row].ids) for row in rows]) if rows else []
        right = {row: finished(found[row].ids, one, alpha) for row, one in zip(rows, log_probs, strict=True)}
        return [right.get(row, one) for row, one in enumerate(found)]

    # --- ours, step by step ---

    def _logits(self, rows: "_Rows", position: int) -> Tensor:
        """Logits (R, V) of the pieces at a position, on the CPU."""
        results = self._translator.translate_batch(
            [self._pieces_of(0, source) for source, _ in rows.rows],
            target_prefix=[self._pieces_of(1, output) for _, output in rows.rows],
            beam_size=1,
            max_decoding_length=position + 1,
            return_logits_vocab=True,
            **_EVERYTHING,
        )
        return torch.from_numpy(np.stack([_as_array(one.logits[0][position]) for one in results]))


class _Rows:
    """The rows of a search, of each its source and its output: a `SearchState` that keeps nothing computed."""

    def __init__(self, batch: Sequence[Part]) -> None:
        self.rows: list[tuple[list[int], list[int]]] = [(part.ids, []) for part in batch]

    def extend(self, last: Tensor, position: int) -> None:
        """Adds the newest pieces (R,), of which that at the first position is bos. A row may go on after its end."""
        if position:
            for (_, output), token in zip(self.rows, last.tolist(), strict=True):
                output.append(token)

    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """See `SearchState`."""
        del sentences  # a row has its source with it
        self.rows = [(source, [*output]) for source, output in (self.rows[row] for row in rows.tolist())]


def _as_array(view: Any) -> "np.ndarray[Any, np.dtype[np.float32]]":
    import ctranslate2

    return np.array(view.to(ctranslate2.DataType.float32).to_device(ctranslate2.Device.cpu))


def load_ctranslate2(directory: Path, **options: Any) -> Any:
    """A `ctranslate2.Translator`; torch computes with as many threads afterwards as before.

    Raises:
        EnvironmentFault: CTranslate2 is missing.
        ValueError, RuntimeError: It cannot compute with these weights here, or cannot read them.
    """
    ctranslate2 = imported("translating with an export")
    allowed = torch.get_num_threads()
    try:
        return ctranslate2.Translator(str(directory), **options)
    finally:
        torch.set_num_threads(allowed)  # CTranslate2 sets OpenMP's number, which is torch's, too, to its own


def imported(purpose: str) -> Any:
    """The module `ctranslate2`; EnvironmentFault, which names what it is needed for, if it is missing."""
    try:
        import logging

        import ctranslate2
    except ImportError as error:
        raise EnvironmentFault(f"{purpose} needs CTranslate2 ({error}): pip install ctranslate2") from error
    ctranslate2.set_log_level(logging.ERROR)  # that half precision is computed as float32 on a CPU goes without saying
    return ctranslate2


def _pick_device(name: str, gpus: int) -> torch.device:
    """The device that `--device` names, if CTranslate2 has it."""
    if name == "auto":
        name = "cuda" if gpus else "cpu"
    if name not in ("cpu", "cuda"):
        raise UsageError(f"an export is translated with on cpu or cuda, not on {name}")
    if name == "cuda" and not gpus:
        raise UsageError("this machine or this build of CTranslate2 has no cuda device; use --device cpu")
    return torch.device(name)
