"""Texts to vectors, by a sentence encoder. The Python interface of such a run."""

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch

from ..data.cleaning import check_texts
from ..data.tokenizer import EOS_ID, Tokenizer
from ..seq2seq.model.encoder_only import EncoderOnly
from ..seq2seq.model.masks import pad
from .device import by_length, in_batches
from .runs.checkpoint import Purpose
from .runs.load import FromRun, TrainedRun, say_nothing

Vectors = npt.NDArray[np.float32]

MAX_BATCH_TOKENS = 8_000
"""Positions, padding included, that are encoded together at most."""


class Embedder(FromRun):
    """Turns texts into vectors with a trained sentence encoder. Texts that mean the same are to have similar vectors.

    >>> vectors = Embedder.load("runs/vectors").embed(["one two", "eins zwei"])
    >>> vectors.shape
    (2, 8)
    >>> similarity = vectors[0] @ vectors[1]

    Args:
        warn: Receives a sentence when a text is too long to be read whole.
    """

    purpose: ClassVar[Purpose] = "sentence encoder"

    def __init__(self, model: EncoderOnly, tokenizer: Tokenizer, *, warn: Callable[[str], None] = say_nothing) -> None:
        self.model, self.tokenizer, self.warn = model, tokenizer, warn
        self.device = next(model.parameters()).device
        self.size = model.config.d_model
        """D, the length of a vector."""
        self.max_pieces = model.config.max_seq_len - 1
        """Pieces of a text that are read at most; eos takes one place."""

    @classmethod
    def _made_of(cls, loaded: TrainedRun, warn: Callable[[str], None]) -> "Embedder":
        assert isinstance(loaded.model, EncoderOnly)
        return cls(loaded.model, loaded.tokenizer, warn=warn)

    def embed(self, texts: Sequence[str], *, first_line: int = 0) -> Vectors:
        """The vectors of texts, in order.

        The dot product of two vectors is their similarity: 1 for the same direction, around 0 for texts that have
        nothing in common. Texts longer than the model allows are cut.

        Args:
            texts: Strings in either of the languages that the model was trained on.
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
        rows = [row for row, ids in enumerate(encoded) if ids]
        read = [encoded[row][: self.max_pieces] for row in rows]
        vectors = np.zeros((len(texts), self.size), dtype=np.float32)
        if rows:
            vectors[rows] = in_batches(
                self.device, self._encode, read, by_length(list(map(len, read)), MAX_BATCH_TOKENS)
            )
        return vectors

    @torch.inference_mode()
    def _encode(self, sentences: Sequence[list[int]], check: Callable[[], None]) -> Vectors:
        check()
        ids = pad([[*ids, EOS_ID] for ids in sentences]).to(self.device)
        return self.model.embed(ids).float().cpu().numpy()
