"""What a list of runs says of each: read from small files, without torch."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...system.errors import ModelError
from ...system.untrusted import read_object
from .checkpoint import checkpoint_step, read_description
from .curves import best_of, score_in_words, validations
from .directory import RunDirectory


@dataclass(frozen=True)
class Listed:
    """A run in a list.

    Attributes:
        what: What its model is for, and between which languages, as far as that is known.
        examples: Pairs or texts that it was trained on; None once its cache is gone.
        score: The best of its validations in words; empty before the first.
        step: Of its newest checkpoint.
        trained: When that was written, in seconds since 1970.
        bytes: Of all its files.
        problem: Why its newest checkpoint cannot be read; else empty.
    """

    name: str
    what: str
    examples: int | None
    score: str
    step: int
    trained: float
    bytes: int
    problem: str


def listed(path: Path) -> Listed:
    """What there is to say of a run that has a checkpoint."""
    run = RunDirectory(path)
    newest, what, problem = run.checkpoints()[-1], "", ""
    try:
        description = read_description(newest)
        languages = "-".join(filter(None, (description.src_language, description.tgt_language)))
        what = f"{description.purpose} {languages}".strip()
    except ModelError as error:
        problem = str(error)
    best = best_of(validations(run.metrics.records()))
    return Listed(
        name=str(run),
        what=what,
        examples=_examples(run),
        score="" if best is None else score_in_words(best),
        step=checkpoint_step(newest),
        trained=newest.stat().st_mtime,
        bytes=sum(file.lstat().st_size for file in run.path.rglob("*") if file.is_file()),
        problem=problem,
    )


def _examples(run: RunDirectory) -> int | None:
    """How many the larger of its two stores has kept: that of training."""
    counts: list[int] = []
    for report in run.cache.glob("*/report.json"):
        with suppress(ModelError, OSError, KeyError, TypeError):
            counts.append(int(read_object(report)["report"]["kept"]))
    return max(counts, default=None)
