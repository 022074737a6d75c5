"""From a trained model to text: key-value cache, greedy search, sampling, beam search, and the `Translator`.

from tfm.seq2seq.decoding import Translator
translator = Translator.load("runs/toy")
print(translator.translate(["the old woman gives the child two red apples"], beam_size=5)[0].text)
"""

from typing import TYPE_CHECKING, Any

from .config import DecodingConfig

if TYPE_CHECKING:
    from .translator import Translation, Translator

__all__ = ["DecodingConfig", "Translation", "Translator"]


def __getattr__(name: str) -> Any:
    # Late, so that reading a configuration does not load torch.
    if name in ("Translation", "Translator"):
        from . import translator

        return getattr(translator, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
