"""Text to text: tokenize, search, detokenize. The public Python interface of a trained run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ...data.cleaning import clean
from ...data.padding import pad_sources
from ...data.sentences import split_text
from ...data.tokenizer import BOS_ID, EOS_ID, Tokenizer
from ..device import pick_device
from ..model.transformer import Transformer
from ..runs.directory import RunDirectory
from ..runs.weights import load_model
from .beam import beam_search
from .config import DecodingConfig
from .greedy import extend_greedily, most_likely
from .inference import InferenceModel, InferenceState
from .sampling import Sampling, sample_tokens
from .search import Hypothesis, SearchState, Step
from .threads import on_all_cores

MAX_BATCH_TOKENS = 12_000
"""Source positions, padding included and times the beam size, that are searched together at most."""
_MIN_BATCH_TOKENS = 1_000
"""No fewer are put in a batch to give another core some work, too: in smaller ones Python is what takes time."""


@dataclass(frozen=True)
class Translation:
    """The translation of one text.

    Attributes:
        text: The best output, detokenized; empty for an empty input.
        score: Its length-normalised log-probability, summed over the parts of a text that had to be split.
        log_prob: Its raw log-probability.
        tokens: Its pieces.
        alternatives: All the hypotheses asked for with `n_best`, this one included: best first, samples in the
            order drawn.
    """

    text: str
    score: float = 0.0
    log_prob: float = 0.0
    tokens: tuple[str, ...] = ()
    alternatives: tuple["Translation", ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class _Part:
    """One piece of one input text: what is searched for at a time."""

    line: int
    index: int
    ids: list[int]


class Translator:
    """Translates text with a trained model.

    Args:
        model: In evaluation mode.
        tokenizer: The one it was trained with.
        decoding: Defaults of the search.
        warn: Receives a sentence when a text had to be cut inside a sentence.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        decoding: DecodingConfig | None = None,
        *,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.decoding = decoding or DecodingConfig()
        self.warn = warn
        self.device = next(model.parameters()).device
        self.checkpoint: Path | None = None
        """Where the model was loaded from, if it was."""
        self._model = InferenceModel(model, tokenizer.tgt.forbidden_ids())
        self._max_source = model.config.max_seq_len - 1  # eos takes one place

    @classmethod
    def load(
        cls,
        run: str | Path,
        *,
        checkpoint: str = "best",
        device: str = "auto",
        warn: Callable[[str], None] = lambda text: None,
    ) -> "Translator":
        """Loads a run directory.

        Args:
            run: For example `runs/toy`.
            checkpoint: `best`, `last` or a step.
            device: `auto`, `cpu`, `cuda` or `mps`.
            warn: Receives a sentence when a text had to be cut inside a sentence.

        Raises:
            ModelError: No sound checkpoint, or a tokenizer that is not the model's.
        """
        directory = RunDirectory(run)
        found = directory.find_checkpoint(checkpoint, warn=warn)
        model, description = load_model(found, device=pick_device(device))
        tokenizer = directory.load_tokenizer(description.tokenizer_sha256)
        translator = cls(model, tokenizer, description.decoding_config(), warn=warn)
        translator.checkpoint = found
        return translator

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        n_best: int = 1,
        sampling: Sampling | None = None,
        first_line: int = 0,
    ) -> list[Translation]:
        """Translates texts, in order, one translation for each.

        Texts longer than the model allows are split at sentence ends and their translations joined. Blank texts give
        blank translations.

        Args:
            texts: Any strings.
            beam_size: Hypotheses kept; 1 is greedy search. The run's default if not given.
            length_penalty: Alpha of the GNMT length penalty. The run's default if not given.
            n_best: How many alternatives to return, at most the beam size; with sampling, how many to draw.
            sampling: Sample instead of searching.
            first_line: Number of the first text in a longer stream; a sample and a warning depend on its line's number.

        Raises:
            ValueError: `n_best` exceeds the beam size.
        """
        beam_size = self.decoding.beam_size if beam_size is None else beam_size
        alpha = self.decoding.length_penalty if length_penalty is None else length_penalty
        if beam_size < 1:
            raise ValueError(f"beam_size must be at least 1, but is {beam_size}")
        if n_best < 1:
            raise ValueError(f"n_best must be at least 1, but is {n_best}")
        if sampling is None and n_best > beam_size:
            raise ValueError(f"n_best must be at most beam_size ({beam_size}), but is {n_best}")
        parts = [part for line, text in enumerate(texts) for part in self._split(line, text, first_line)]
        rows = n_best if sampling else beam_size

        def search(batch: list[_Part], check: Callable[[], None]) -> list[list[Hypothesis]]:
            return self._search(batch, check, beam_size, alpha, n_best, sampling, first_line)

        total = sum(len(part.ids) + 1 for part in parts) * rows
        on_cpu = self.device.type == "cpu"
        batches = _length_batches(parts, (_batch_tokens(total) if on_cpu else MAX_BATCH_TOKENS) // rows)
        # A GPU computes one batch after the other; several threads would only get in each other's way, on MPS fatally.
        all_results = on_all_cores(search, batches) if on_cpu else (search(batch, lambda: None) for batch in batches)
        found: dict[tuple[int, int], list[Hypothesis]] = {}
        for batch, results in zip(batches, all_results, strict=True):
            for part, hypotheses in zip(batch, results, strict=True):
                found[part.line, part.index] = hypotheses
        per_line: list[list[list[Hypothesis]]] = [[] for _ in texts]
        for line, index in sorted(found):
            per_line[line].append(found[line, index])
        return [self._join(parts_of_line, n_best) for parts_of_line in per_line]

    def _split(self, line: int, text: str, first_line: int) -> list[_Part]:
        text = clean(text)
        if not text:
            return []
        ids = self.tokenizer.src.encode(text)
        if len(ids) <= self._max_source:
            return [_Part(line, 0, ids)]
        pieces, cut = split_text(text, lambda part: len(self.tokenizer.src.encode(part)), self._max_source)
        if cut:
            number = first_line + line + 1
            self.warn(f"line {number} has a sentence longer than {self._max_source} pieces; translated in parts")
        return [_Part(line, i, self.tokenizer.src.encode(piece)) for i, piece in enumerate(pieces)]

    @torch.inference_mode()
    def _search(
        self,
        batch: list[_Part],
        check: Callable[[], None],
        beam_size: int,
        alpha: float,
        n_best: int,
        sampling: Sampling | None,
        first_line: int,
    ) -> list[list[Hypothesis]]:
        """Runs one search over parts of similar length; for each part its hypotheses, best first."""
        src = torch.from_numpy(pad_sources([part.ids for part in batch])).to(self.device)
        max_seq_len = self.model.config.max_seq_len
        limits = [self.decoding.max_decode_len(len(part.ids), max_seq_len) for part in batch]
        state = self._model.encode(src)

        def step(last: Tensor, position: int, state: SearchState) -> Tensor:
            check()
            return self._model(last, position, state)

        ends = {"bos_id": BOS_ID, "eos_id": EOS_ID}
        if sampling is not None:
            return self._sample(step, state, batch, limits, sampling, n_best, alpha, first_line)
        if beam_size == 1:
            choose, device = most_likely, self.device
            best = extend_greedily(
                step, state, max_lengths=limits, length_penalty=alpha, choose=choose, device=device, **ends
            )
            return [[hypothesis] for hypothesis in best]
        return beam_search(
            step,
            state,
            beam_size=beam_size,
            length_penalty=alpha,
            max_lengths=limits,
            n_best=n_best,
            device=self.device,
            **ends,
        )

    def _sample(
        self,
        step: Step,
        state: InferenceState,
        batch: list[_Part],
        limits: list[int],
        sampling: Sampling,
        samples: int,
        alpha: float,
        first_line: int,
    ) -> list[list[Hypothesis]]:
        keys = [f"{first_line + part.line}.{part.index}.{i}" for part in batch for i in range(samples)]
        repeated = torch.arange(len(batch), device=self.device).repeat_interleave(samples)
        state.reorder(repeated, repeated)
        drawn = extend_greedily(
            step,
            state,
            max_lengths=[limit for limit in limits for _ in range(samples)],
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            length_penalty=alpha,
            choose=lambda log_probs, rows, position: sample_tokens(
                log_probs, sampling, [keys[row] for row in rows], position
            ),
            device=self.device,
        )
        return [drawn[i : i + samples] for i in range(0, len(drawn), samples)]

    def _join(self, parts: list[list[Hypothesis]], n_best: int) -> Translation:
        """Joins the parts of one text, rank by rank; a part with fewer hypotheses repeats its last."""
        if not parts:
            return Translation("", alternatives=(Translation(""),))
        count = min(n_best, max(len(hypotheses) for hypotheses in parts))
        ranked = [[hypotheses[min(rank, len(hypotheses) - 1)] for hypotheses in parts] for rank in range(count)]
        alternatives = tuple(self._detokenized(hypotheses) for hypotheses in ranked)
        best = alternatives[0]
        return Translation(best.text, best.score, best.log_prob, best.tokens, alternatives)

    def _detokenized(self, parts: list[Hypothesis]) -> Translation:
        vocabulary = self.tokenizer.tgt
        texts = [clean(vocabulary.decode(part.ids)) for part in parts]
        return Translation(
            text=" ".join(text for text in texts if text),
            score=sum(part.score for part in parts),
            log_prob=sum(part.log_prob for part in parts),
            tokens=tuple(vocabulary.piece(token) for part in parts for token in part.ids),
        )


def _batch_tokens(total: int) -> int:
    """How large batches may be so that all cores end at about the same time: two or more batches for each."""
    each = -(-total // (2 * torch.get_num_threads()))
    return min(max(each, _MIN_BATCH_TOKENS), MAX_BATCH_TOKENS)


def _length_batches(parts: list[_Part], max_tokens: int) -> list[list[_Part]]:
    """Groups parts of similar length, longest first, so that the largest batch meets the memory limit at once."""
    batches: list[list[_Part]] = []
    for part in sorted(parts, key=lambda part: -len(part.ids)):
        if batches and (len(batches[-1]) + 1) * (len(batches[-1][0].ids) + 1) <= max_tokens:
            batches[-1].append(part)
        else:
            batches.append([part])
    return batches
