"""A vocabulary of made-up pieces."""

EOS = 3
FORBIDDEN = [0, 1, 2, 4]
"""Pieces that are never to be generated; 4 stands for the reserved ones."""


def piece_names(size: int, prefix: str = "t") -> list[str]:
    """So many pieces, control pieces first."""
    return ["<pad>", "<unk>", "<s>", "</s>", *(f"{prefix}{i}" for i in range(4, size))]
