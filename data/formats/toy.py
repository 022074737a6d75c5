"""The toy language by its name: `toy`."""

from ..config import DataConfig
from ..toy import toy_pairs
from .format import Opened

TOY = "toy"
TOY_SIZES = {"train": 40_000, "dev": 500, "test": 1_000}


class ToyFormat:
    """Pairs that are made up while they are read. Their identity depends on the split and its size."""

    notation = TOY

    def fits(self, spec: str) -> bool:
        """Whether it is the word."""
        return spec == TOY

    def open(self, spec: str, config: DataConfig, split: str) -> Opened:
        """Opens a split; there is nothing to configure."""
        del spec, config
        size = TOY_SIZES[split]
        identity = f"toy-{split}-{size}"
        return Opened(f"the toy language ({split})", identity, lambda: toy_pairs(split, size=size), lambda: size)


TOY_LANGUAGE = ToyFormat()
