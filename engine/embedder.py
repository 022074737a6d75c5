"""Texts to vectors, by a sentence encoder. The Python interface of such a run."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from ..data.sentences import check_texts
from ..data.tokenizer import EOS_ID, Tokenizer
from ..seq2seq.model.encoder_only import EncoderOnly
from ..seq2seq.model.masks import pad
from ..seq2seq.out_of_memory import in_halves
from .runs.load import load_run
from .threads import on_device

Vectors = npt.NDArray[np.float32]

MAX_BATCH_TOKENS = 8_000
"""Positions, padding included, that are encoded together at most."""


class Embedder:
    """Turns texts into vectors with a trained sentence encoder. Texts that mean the same are to have similar vectors.

    Args:
        model: In evaluation mode.
        tokenizer: The one it was trained with.
        warn: Receives a sentence when a text is too long to be read whole.
    """

    def __init__(
        self, model: EncoderOnly, tokenizer: Tokenizer, *, warn: Callable[[str], None] = lambda text: None
    ) -> None:
        self.model, self.tokenizer, self.warn = model, tokenizer, warn
        self.device = next(model.parameters()).device
        self.checkpoint: Path | None = None
        """Where the model was loaded from, if it was."""
        self.size = model.config.d_model
        """D, the length of a vector."""
        self.max_pieces = model.config.max_seq_len - 1
        """Pieces of a text that are read at most; eos takes one place."""

    @classmethod
    def load(
        cls,
        run: str | Path,
        *,
        checkpoint: str = "best",
        device: str = "auto",
        warn: Callable[[str], None] = lambda text: None,
    ) -> "Embedder":
        """Loads a run directory.

        Args:
            run: For example `runs/toy-encoder`.
            checkpoint: `best`, `last` or a step.
            device: `auto`, `cpu`, `cuda` or `mps`.
            warn: Receives a sentence when a text is too long to be read whole.

        Raises:
            ModelError: No sound checkpoint, or a tokenizer that is not the model's.
            UsageError: The model is no sentence encoder.
        """
        loaded = load_run(run, "sentence encoder", checkpoint=checkpoint, device=device, warn=warn)
        assert isinstance(loaded.model, EncoderOnly)
        embedder = cls(loaded.model, loaded.tokenizer, warn=warn)
        embedder.checkpoint = loaded.checkpoint
        return embedder

    def embed(self, texts: Sequence[str], *, first_line: int = 0) -> Vectors:
        """The vectors of texts, in order.

        The dot product of two vectors is their similarity: 1 for the same direction, around 0 for texts that have
        nothing in common. Texts longer than the model allows are cut.

        Args:
            texts: Any strings, in either of the languages that the model was trained on.
            first_line: Number of the first text in a longer stream, for warnings.

        Returns:
            (N, D), float32, each of length 1; zeros for a blank text.

        Raises:
            TypeError: One text came instead of several, or one of them is no string.
        """
        check_texts(texts)
        encoded = self.tokenizer.src.encode_all(self.tokenizer.mask(text).text for text in texts)
        for line, ids in enumerate(encoded, start=first_line + 1):
            if len(ids) > self.max_pieces:
                self.warn(f"line {line} has {len(ids)} pieces; its vector is that of the first {self.max_pieces}")
        read = [ids[: self.max_pieces] for ids in encoded]
        batches = _length_batches([len(ids) for ids in read])
        vectors = np.zeros((len(texts), self.size), dtype=np.float32)

        def encode(rows: list[int], check: Callable[[], None]) -> list[Vectors]:
            check()
            return in_halves(lambda part: self._encode([read[row] for row in part]), rows)

        results = on_device(self.device, encode, batches)
        for rows, found in zip(batches, results, strict=True):
            vectors[rows] = found
        return vectors

    @torch.inference_mode()
    def _encode(self, sentences: list[list[int]]) -> Vectors:
        ids = pad([[*ids, EOS_ID] for ids in sentences]).to(self.device)
        return self.model.embed(ids).float().cpu().numpy()


def _length_batches(lengths: list[int]) -> list[list[int]]:
    """Groups texts of similar length, longest first, by their numbers; blank texts are in none."""
    batches: list[list[int]] = []
    for row in sorted((row for row, length in enumerate(lengths) if length), key=lambda row: -lengths[row]):
        if batches and (len(batches[-1]) + 1) * (lengths[batches[-1][0]] + 1) <= MAX_BATCH_TOKENS:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches
