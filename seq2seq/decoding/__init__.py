"""From a trained model to text, or to vectors. Read in this order:

    config      a run's defaults
    search      what a search is: a step and a state go in, hypotheses come out
    repeats     no n tokens in a row twice, where that is asked for
    rows        one row for each hypothesis, extended token by token
    greedy      the likeliest token each time
    sampling    a token at random, as likely as the model says
    beam        the likeliest hypotheses side by side
    fast/       the model written out for decoding, whose step a search calls
    threads     one batch for each core
    translator  text to text: tokenize, search, detokenize
    generator   a beginning to a text, by a language model
    embedder    texts to vectors, by a sentence encoder

From Python:

    from tfm.seq2seq.decoding import Beam, Translator

    translator = Translator.load("runs/toy")
    print(translator.translate(["the old woman gives the child two red apples"], beam_size=5)[0].text)
    print(translator.translate(["the old woman sleeps"], search=Beam(8, n_best=3), prefixes="Die Frau")[0].alternatives)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .config import DecodingConfig

if TYPE_CHECKING:
    from .beam import Beam
    from .embedder import Embedder
    from .generator import Generation, Generator
    from .greedy import Greedy
    from .sampling import Sample
    from .translator import Translation, Translator

__all__ = [
    "Beam",
    "DecodingConfig",
    "Embedder",
    "Generation",
    "Generator",
    "Greedy",
    "Sample",
    "Translation",
    "Translator",
]

_MODULES = {
    "Beam": "beam",
    "Embedder": "embedder",
    "Generation": "generator",
    "Generator": "generator",
    "Greedy": "greedy",
    "Sample": "sampling",
    "Translation": "translator",
    "Translator": "translator",
}


def __getattr__(name: str) -> Any:
    # Late, so that reading a configuration does not load torch.
    if name in _MODULES:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
