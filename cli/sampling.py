"""From the flags that say how to draw to a sample."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..seq2seq.decoding.sampling import Sample


def make_sample(drawing: Mapping[str, float | None], samples: int = 1) -> "Sample":
    """What to draw.

    Args:
        drawing: Flags by the name of their field; None where not given.
        samples: How many for each line.

    Raises:
        UsageError: A value is out of range.
    """
    from ..seq2seq.decoding.sampling import Sample
    from ..system.errors import UsageError

    given: dict[str, Any] = {name: value for name, value in drawing.items() if value is not None}
    try:
        return replace(Sample(samples=samples), **given)
    except ValueError as error:
        raise UsageError(str(error)) from error
