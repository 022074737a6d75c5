"""A model of any architecture, by its configuration."""

from typing import TYPE_CHECKING, TypeAlias

from .config import ModelConfig, unknown

if TYPE_CHECKING:
    from .decoder_only import DecoderOnly
    from .encoder_decoder import Transformer
    from .encoder_only import EncoderOnly

Model: TypeAlias = "Transformer | DecoderOnly | EncoderOnly"
"""A model of any architecture. Its module is imported when one is built: the others need not be known."""


def build_model(config: ModelConfig, *, src_vocab_size: int, tgt_vocab_size: int, shared_vocab: bool) -> Model:
    """A model with fresh weights. One that has one vocabulary takes the target's."""
    match config.architecture:
        case "encoder_decoder":
            from .encoder_decoder import Transformer

            return Transformer(
                config, src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size, shared_vocab=shared_vocab
            )
        case "decoder_only":
            from .decoder_only import DecoderOnly

            return DecoderOnly(config, vocab_size=tgt_vocab_size)
        case "encoder_only":
            from .encoder_only import EncoderOnly

            return EncoderOnly(config, vocab_size=tgt_vocab_size)
        case other:
            raise unknown("architecture", other)
