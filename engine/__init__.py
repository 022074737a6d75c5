"""What tfm does, from Python.

    from tfm.engine import Translator, evaluate, train, translate

    train(src="train.en", tgt="train.de", run="runs/mine")
    print(translate(["One sentence."], run="runs/mine")[0].text)
    print(evaluate(src="test.en", tgt="test.de", run="runs/mine").scores)
    translator = Translator.load("runs/mine")
    print(translator.translate(["Another sentence."], beam_size=5)[0].text)

    commands                    the three commands as functions
    translator, translation     text to text
    projection                  how good a translation probably is
    searcher, exported_searcher what searches for it: the model of a run, or CTranslate2 with an export
    generator, embedder: beginnings to texts, texts to vectors
    choose                      which settings a start gets
    training/, workers/         a training, and its processes
    runs/, describe             what a run is, on disk and in words
    evaluation/                 scores
    documents/                  files that are translated in place
    device                      where is computed
    spelling                    terms and placeholders as pieces that must be written
    file_guard                  no command writes a file that it reads
    explain/, export/, improve/, serve/   wings, imported by their commands alone (attention_maps, exportable are not)
    browser/                    the model in JavaScript, which the pages of two wings share

Importing this package loads no torch; the names below do when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..seq2seq.decoding.beam import Beam
    from ..seq2seq.decoding.greedy import Greedy
    from ..seq2seq.decoding.sampling import Sample
    from .commands import evaluate, train, translate
    from .embedder import Embedder, PieceEmbedder
    from .generator import Generation, Generator
    from .translator import Translation, Translator

__all__ = [
    "Beam",
    "Embedder",
    "Generation",
    "Generator",
    "Greedy",
    "PieceEmbedder",
    "Sample",
    "Translation",
    "Translator",
    "evaluate",
    "train",
    "translate",
]

_MODULES = {
    "Beam": "tfm.seq2seq.decoding.beam",
    "Embedder": "tfm.engine.embedder",
    "Generation": "tfm.engine.generator",
    "Generator": "tfm.engine.generator",
    "Greedy": "tfm.seq2seq.decoding.greedy",
    "PieceEmbedder": "tfm.engine.embedder",
    "Sample": "tfm.seq2seq.decoding.sampling",
    "Translation": "tfm.engine.translator",
    "Translator": "tfm.engine.translator",
    "evaluate": "tfm.engine.commands",
    "train": "tfm.engine.commands",
    "translate": "tfm.engine.commands",
}
"""The module of each name."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
