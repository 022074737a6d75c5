"""What `test_strangers` does with translators, here with a language model and a sentence encoder."""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.forkserver import ForkServer

from .conftest import Share, Tell
from .test_strangers import PARTS, TRIES, seeds, use_changed_runs


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("model", ["language model", "encoder"])
def test_what_a_stranger_changed_works_or_is_refused_in_a_line(
    server: ForkServer,
    run_of: Callable[[str], Path],
    place: Path,
    share: Share,
    tell: Tell,
    model: str,
    part: int,
) -> None:
    tell(use_changed_runs(server, run_of(model), place, seeds(model, part, share(4, TRIES // PARTS))))
