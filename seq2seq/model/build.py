"""A model of any architecture, by its configuration."""

from .config import ModelConfig, unknown
from .decoder_only import DecoderOnly
from .encoder_decoder import Transformer
from .encoder_only import EncoderOnly

Model = Transformer | DecoderOnly | EncoderOnly
"""A model of any architecture."""


def build_model(config: ModelConfig, *, src_vocab_size: int, tgt_vocab_size: int, shared_vocab: bool) -> Model:
    """A model with fresh weights. One that has one vocabulary takes the target's."""
    match config.architecture:
        case "encoder_decoder":
            return Transformer(
                config, src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size, shared_vocab=shared_vocab
            )
        case "decoder_only":
            return DecoderOnly(config, vocab_size=tgt_vocab_size)
        case "encoder_only":
            return EncoderOnly(config, vocab_size=tgt_vocab_size)
        case other:
            raise unknown("architecture", other)
