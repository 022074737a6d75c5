"""What an export can be, and what CTranslate2's format cannot hold. Plain: neither torch nor CTranslate2 is needed."""

from collections.abc import Sequence
from typing import Literal, get_args

from ..seq2seq.model.config import ModelConfig

QUANTIZATIONS = ("float32", "float16", "bfloat16", "int16", "int8", "int8_float32", "int8_float16", "int8_bfloat16")
"""How weights may be stored; `int8_float16` is int8 with the rest in half precision. `float32` changes nothing."""

Weights = Literal["int8", "float16", "float32"]
"""How a page stores matrices; int8 has a scale for each row."""
WEIGHTS: Sequence[Weights] = get_args(Weights)

MIN_POSITIONS = 1025
"""Length of an exported table of positions, at least, where it can be computed. CTranslate2 raises an error for a whole
batch if one hypothesis outgrows the table; unless told otherwise it stops at 256 pieces, and at sources of 1,024 and
eos."""

_MAX_HEADS = 2**15 - 1  # an int16
_MAX_BYTES = 2**32 - 1  # of one matrix: its size is written in 32 bits


def why_not_exportable(config: ModelConfig, *, vocab_size: int = 1) -> list[str]:
    """The reasons why a model cannot be exported to CTranslate2; empty for every encoder-decoder of usual size.

    Every other choice of `ModelConfig` has its equivalent: no positions are a table of zeros, and heads whose d_k and
    d_v differ are filled up with zeros. What remains are the sizes that the file format can write; `vocab_size` is
    that of the larger vocabulary.
    """
    reasons: list[str] = []
    if config.architecture != "encoder_decoder":
        return [f"tfm export writes encoder-decoders, and this model is {config.architecture}"]
    if config.num_heads > _MAX_HEADS:
        reasons.append(f"num_heads is {config.num_heads:,}, and CTranslate2 takes at most {_MAX_HEADS:,}")
    heads = config.num_heads * max(config.key_size, config.value_size)
    rows = {
        "the projections to queries, keys and values": 3 * heads,
        "the feed-forward network": config.d_ff,
        "the table of positions": max(config.max_seq_len, MIN_POSITIONS),
        "the vocabulary": vocab_size,
    }
    for name, count in rows.items():
        if (size := 4 * count * config.d_model) > _MAX_BYTES:
            reasons.append(f"{name} would be a matrix of {size / 2**30:,.1f} GiB, and CTranslate2 takes less than 4")
    return reasons
