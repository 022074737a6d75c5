"""How translations are searched for. A plain dataclass: no torch."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class DecodingConfig:
    """Defaults of `tfm translate` and `tfm evaluate` for a run; they travel in `model.json`."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    beam_size: int = 5
    """Hypotheses kept at each step; 1 is greedy search."""
    length_penalty: float = 0.6
    """Alpha in score = log_prob / ((5 + length) / 6)^alpha (Wu et al. 2016, eq. 14); 0 prefers short output."""
    max_length_factor: float = 2.0
    """Longest output: this many times the source's pieces .."""
    max_length_offset: int = 50
    """.. plus this many (the paper's section 6.1 has 1 and 50)."""

    def __post_init__(self) -> None:
        problems: list[str] = []
        if self.beam_size < 1:
            problems.append(f"beam_size must be at least 1, but is {self.beam_size}")
        if not 0 <= self.length_penalty <= 10:
            problems.append(f"length_penalty must be between 0 and 10, but is {self.length_penalty}")
        if not 0 < self.max_length_factor <= 100:
            problems.append(f"max_length_factor must be above 0 and at most 100, but is {self.max_length_factor}")
        if self.max_length_offset < 0:
            problems.append(f"max_length_offset must be at least 0, but is {self.max_length_offset}")
        if problems:
            raise ValueError("\n".join(problems))

    def max_decode_len(self, src_length: int, max_seq_len: int) -> int:
        """Most pieces, eos included, that the translation of a source of this many pieces may have."""
        return max(1, min(int(self.max_length_factor * src_length) + self.max_length_offset, max_seq_len))
