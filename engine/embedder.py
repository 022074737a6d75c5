"""Texts to vectors, by an encoder: one for each piece, or, by a sentence encoder, one for each text."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..data.cleaning import check_texts
from ..data.placeholders import Masked
from ..data.tokenizer import EOS_ID, Tokenizer
from ..seq2seq.model.encoder_decoder import Transformer
from ..seq2seq.model.encoder_only import EncoderOnly
from ..seq2seq.model.masks import pad
from ..system.errors import UsageError
from ..system.reporter import say_nothing
from .device import by_length, in_batches
from .runs.checkpoint import Purpose
from .runs.load import FromRun, TrainedRun

Vectors = npt.NDArray[np.float32]

MAX_BATCH_TOKENS = 8_000
"""Positions, padding included, that are encoded together at most."""


@dataclass(frozen=True)
class PieceVectors:
    """The encoder's output for one text.

    Attributes:
        pieces: S pieces, `</s>` the last one; none of a blank text.
        vectors: (S, D), float32.
    """

    pieces: list[str]
    vectors: Vectors


class PieceEmbedder(FromRun):
    """Turns texts into what the encoder of a trained translator or sentence encoder gives: a vector for each piece.

    >>> [found] = PieceEmbedder.load("runs/mine").embed_pieces(["one two"])
    >>> len(found.pieces) == len(found.vectors)
    True

    Args:
        warn: Receives a sentence when a text is too long to be read whole.
    """

    purpose: ClassVar[Purpose | None] = None

    def __init__(
        self, model: Transformer | EncoderOnly, tokenizer: Tokenizer, *, warn: Callable[[str], None] = say_nothing
    ) -> None:
        self.model, self.tokenizer, self.warn = model, tokenizer, warn
        self.device = next(model.parameters()).device
        self.size = model.config.d_model
        """D, the length of a vector."""
        self.max_pieces = model.config.max_seq_len - 1
        """Pieces of a text that are read at most; eos takes one place."""

    @classmethod
    def of(cls, loaded: TrainedRun, warn: Callable[[str], None] = say_nothing) -> Self:
        """See `FromRun.of`."""
        if not isinstance(loaded.model, Transformer | EncoderOnly):
            raise UsageError(
                f"{loaded.checkpoint}: a model that is {loaded.model.config.architecture} has no encoder; vectors of"
                " pieces need one that is encoder_decoder or encoder_only"
            )
        return cls(loaded.model, loaded.tokenizer, warn=warn)

    def embed_pieces(self, texts: Sequence[str], *, first_line: int = 0) -> list[PieceVectors]:
        """The encoder's output for each piece of texts, in order. For a translator that is what its decoder attends to.

        Texts longer than the model allows are cut.

        Args:
            texts: Strings in the source language; for a sentence encoder in either one.
            first_line: Number of the first text in a longer stream, for warnings.

        Raises:
            TypeError: One text came instead of several, or one of them is no string.
        """
        masked, ids = self._read(texts, first_line, "only the first {} have vectors")
        empty = np.zeros((0, self.size), dtype=np.float32)
        found = self._encoded(ids, self._encode_pieces)
        return [
            PieceVectors([one.unmask(self.tokenizer.src.piece(each)) for each in (*row, EOS_ID)], found[number])
            if number in found
            else PieceVectors([], empty)
            for number, (one, row) in enumerate(zip(masked, ids, strict=True))
        ]

    def _read(self, texts: Sequence[str], first_line: int, cut: str) -> tuple[list[Masked], list[list[int]]]:
        """The texts with symbols for placeholders, and as many ids as the model reads; `cut` warns of a cut."""
        check_texts(texts)
        masked = [self.tokenizer.mask(text) for text in texts]
        encoded = self.tokenizer.src.encode_all(one.text for one in masked)
        for line, ids in enumerate(encoded, start=first_line + 1):
            if len(ids) > self.max_pieces:
                self.warn(f"line {line} has {len(ids)} pieces; {cut.format(self.max_pieces)}")
        return masked, [ids[: self.max_pieces] for ids in encoded]

    def _encoded(
        self, ids: Sequence[list[int]], encode: Callable[[Sequence[list[int]], Callable[[], None]], Iterable[Vectors]]
    ) -> dict[int, Vectors]:
        """What a function of batches gives for each text that is not blank, by the text's number."""
        rows = [row for row, one in enumerate(ids) if one]
        batches = by_length([len(ids[row]) for row in rows], MAX_BATCH_TOKENS)
        return dict(zip(rows, in_batches(self.device, encode, [ids[row] for row in rows], batches), strict=True))

    def _padded(self, sentences: Sequence[list[int]]) -> Tensor:
        return pad([[*ids, EOS_ID] for ids in sentences]).to(self.device)

    @torch.inference_mode()
    def _encode_pieces(self, sentences: Sequence[list[int]], check: Callable[[], None]) -> list[Vectors]:
        check()
        ids, model = self._padded(sentences), self.model
        hidden = model.encode(ids) if isinstance(model, Transformer) else model.hidden_states(ids)  # (B, S, D)
        return [row[: len(one) + 1] for row, one in zip(hidden.float().cpu().numpy(), sentences, strict=True)]


class Embedder(PieceEmbedder):
    """Turns texts into vectors with a trained sentence encoder. Texts that mean the same are to have similar vectors.

    >>> vectors = Embedder.load("runs/vectors").embed(["one two", "eins zwei"])
    >>> vectors.shape
    (2, 8)
    >>> similarity = vectors[0] @ vectors[1]

    Args:
        warn: Receives a sentence when a text is too long to be read whole.
    """

    purpose: ClassVar[Purpose | None] = "sentence encoder"

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
        _, ids = self._read(texts, first_line, "its vector is that of the first {}")
        vectors = np.zeros((len(texts), self.size), dtype=np.float32)
        for row, vector in self._encoded(ids, self._encode).items():
            vectors[row] = vector
        return vectors

    @torch.inference_mode()
    def _encode(self, sentences: Sequence[list[int]], check: Callable[[], None]) -> Vectors:
        check()
        assert isinstance(self.model, EncoderOnly)
        return self.model.embed(self._padded(sentences)).float().cpu().numpy()
