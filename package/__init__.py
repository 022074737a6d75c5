"""Train your own Transformer from text files, and use it.

    import tfm

    tfm.train(src="train.en", tgt="train.de", run="runs/mine")
    print(tfm.translate(["One sentence."], run="mine")[0].text)

The names are those of `tfm.engine`; `tfm.__version__` is the version. Importing this package loads no torch.
"""

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfm.engine import (
        Beam,
        Embedder,
        Generation,
        Generator,
        Greedy,
        PieceEmbedder,
        Sample,
        Translation,
        Translator,
        evaluate,
        train,
        translate,
    )

    __version__: str

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
    "__version__",
    "evaluate",
    "train",
    "translate",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return metadata.version("tfm")
    if name in __all__:
        return getattr(import_module(".engine", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
