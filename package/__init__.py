"""Train your own Transformer from text files, and use it.

    import tfm

    tfm.train(src="train.en", tgt="train.de", run="runs/mine")
    print(tfm.translate(["One sentence."], run="mine")[0].text)

The names are those of `tfm.engine`; `tfm.__version__` is the version. Importing this package loads no torch.
"""

from importlib import metadata
from typing import TYPE_CHECKING, Any

from tfm import engine

if TYPE_CHECKING:
    from tfm.engine import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary]

    __version__: str

__all__ = ["__version__"]
__all__ += engine.__all__


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return metadata.version("tfm")
    if name in __all__:
        return getattr(engine, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
