"""How translations are searched for, unless a caller says otherwise. A plain dataclass: no torch."""

from dataclasses import dataclass
from typing import ClassVar

LENGTH_PENALTY = 0.6
"""The default."""
MAX_LENGTH_PENALTY = 10
CHUNK_TEXTS = 200
"""Texts translated together, wherever there are many: in validation as in translation, so that the same batches come
out of them. Few enough for a bar that moves, and to lose little when interrupted."""


@dataclass(frozen=True)
class DecodingConfig:
    """Defaults of `tfm translate` and `tfm evaluate` for a run; they travel in `model.json`."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    beam_size: int = 5
    """Hypotheses kept at each step; 1 is greedy search."""
    length_penalty: float = LENGTH_PENALTY
    """Alpha in score = log_prob / ((5 + length) / 6)^alpha (Wu et al. 2016, eq. 14); 0 prefers short output."""
    no_repeat_ngram_size: int = 0
    """In greedy and beam search this many pieces in a row stand at most once in an output: else a model that has seen
    little may say the same again and again. 0 for no such limit: good translations repeat themselves, too."""
    max_length_factor: float = 2.0
    """The longest output has this many times the source's pieces, plus `max_length_offset`."""
    max_length_offset: int = 50
    """Pieces that are added to that (the paper's section 6.1 has a factor of 1 and an offset of 50)."""

    def __post_init__(self) -> None:
        problems: list[str] = []
        if self.beam_size < 1:
            problems.append(f"beam_size must be at least 1, but is {self.beam_size}")
        problems += _problems_of_search(self.length_penalty, self.no_repeat_ngram_size)
        if not 0 < self.max_length_factor <= 100:
            problems.append(f"max_length_factor must be above 0 and at most 100, but is {self.max_length_factor}")
        if self.max_length_offset < 0:
            problems.append(f"max_length_offset must be at least 0, but is {self.max_length_offset}")
        if problems:
            raise ValueError("\n".join(problems))

    def max_decode_len(self, src_length: int, max_seq_len: int) -> int:
        """Most pieces, eos included, that the translation of a source of this many pieces may have."""
        return max(1, min(int(self.max_length_factor * src_length) + self.max_length_offset, max_seq_len))


def check_n_best(n_best: int, beam_size: int) -> None:
    """Raises ValueError for more hypotheses than a beam of this size is sure to find, or fewer than one."""
    if n_best < 1:
        raise ValueError(f"n_best must be at least 1, but is {n_best}")
    if n_best > beam_size:
        raise ValueError(f"n_best must be at most the beam size, {beam_size}, but is {n_best}")


def check_search(length_penalty: float, no_repeat_ngram_size: int = 0) -> None:
    """Raises ValueError for what no search can do."""
    for problem in _problems_of_search(length_penalty, no_repeat_ngram_size):
        raise ValueError(problem)


def _problems_of_search(length_penalty: float, no_repeat_ngram_size: int) -> list[str]:
    problems: list[str] = []
    if not 0 <= length_penalty <= MAX_LENGTH_PENALTY:
        problems.append(f"length_penalty must be between 0 and {MAX_LENGTH_PENALTY}, but is {length_penalty}")
    if no_repeat_ngram_size < 0:
        problems.append(f"no_repeat_ngram_size must be at least 0, but is {no_repeat_ngram_size}")
    return problems
