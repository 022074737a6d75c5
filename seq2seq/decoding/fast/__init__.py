"""The Transformer written out for decoding: what `model` computes, in fewer and larger operations. Read in this order:

    weights    the matrices of the model, arranged to be multiplied by a few rows
    encoder    source ids to vectors
    memory     keys and values of the source for all decoder layers, and attending to them
    state      keys and values of what has been generated; begins with a picture of them
    decoder    what the two that follow share
    model      an encoder-decoder: source ids to a state, then step by step to logits
    decoder_only   the same of a decoder-only Transformer, whose source is a prompt

Why it exists: `Transformer.forward` computes all positions of a target at once, as training needs it. A search has one
new position at a time, and to compute the earlier ones again would take most of the time. So their keys and values
are kept. Then a step is a hundred small operations, and what costs time is their number, and memory that is moved:

* weights are prepared once: transposed, 1 / sqrt(d_k) multiplied into the queries', those of one input put together;
* the keys and values of a source exist once per sentence, and its hypotheses attend to them together;
* past keys and values of all layers lie in one tensor, first by position: keys, values and queries of a new position
  are one product, written in place, and reordering is one operation;
* weights are multiplied by oneDNN, which on some processors takes half the time of torch's usual library;
* for a short source that is alone, where the number of operations is all that counts, the projections before and
  after cross-attention are multiplied into its keys and values.

The plain form is the model itself: the tests compare each step with `Transformer.forward` over the whole target. What
the configuration of a model may say is matched value by value, and a value that is not known here is refused.

Shapes as in `model`; K hypotheses per sentence, R = B * K rows, L decoder layers, T positions so far; d is the larger
of d_k and d_v, with zeros to fill up the other.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...model.encoder_decoder import Transformer
from .model import FastTransformer

if TYPE_CHECKING:
    from ...model.decoder_only import DecoderOnly
    from .decoder_only import FastDecoderOnly

__all__ = ["FastTransformer", "arrange"]


def arrange(model: "Transformer | DecoderOnly", forbidden_ids: Iterable[int]) -> "FastTransformer | FastDecoderOnly":
    """A translator's model, in evaluation mode, arranged for decoding; see `FastDecoder`."""
    if isinstance(model, Transformer):
        return FastTransformer(model, forbidden_ids)
    from .decoder_only import FastDecoderOnly

    return FastDecoderOnly(model, forbidden_ids)
