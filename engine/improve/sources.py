"""What is improved, and with what: a run with its own pairs, and lines that are fit to be translated."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ...configs import RunConfig
from ...data.cleaning import clean
from ...data.config import DataConfig
from ...data.corpus import Corpus, Pair, Reservoir, open_corpus, usable_pairs
from ...system.errors import DataError, MissingFile, ModelError
from ...system.files import OutputFile, json_line, make_directory
from ...system.reporter import Reporter
from ..runs.checkpoint import StoredModel, read_state
from ..runs.directory import RunDirectory, best_checkpoint, improved_with
from ..training.prepare import FEW_DEV_PAIRS, read_corpora

MOST_LINES = 200_000
"""At most this many lines of a text are taken; of a longer text, a sample."""
LONGEST_LINE = 1_000
"""Characters; longer lines are no sentences."""
TAGS = {"back": "\ufde0", "forward": "\ufde1"}
"""What the source of a made pair begins with: the source was made, or the target was. These are noncharacters of
Unicode: no text for people has them, and a vocabulary that is built of such sources has each as a piece."""


@dataclass(frozen=True)
class Base:
    """What is improved.

    Attributes:
        train: The pairs that the run was trained on.
        dev: The pairs that decide which of two models is better.
        identity: Changes with any of these pairs.
    """

    run: RunDirectory
    settings: RunConfig
    train: Corpus
    dev: list[Pair]
    identity: str


def read_base(run: RunDirectory, reporter: Reporter) -> Base:
    """Opens the pairs of a translator.

    Raises:
        ModelError: It does not say what it was trained on.
        DataError: Its pairs are not there, or are not those that it was trained on.
    """
    if not run.has_begun:
        raise ModelError(f"{run} has no config.yaml, which says what it was trained on: train it with tfm train")
    settings = run.configuration()
    try:
        train, dev, identity = read_corpora(settings, run.cache, reporter)
        pairs = usable_pairs(dev)
    except MissingFile as error:
        raise DataError(
            f"{error}. {run.config} names it: if the files of this run were moved, say once where they are now, with"
            f" {run.data_flags()}: tfm train --run {run.quoted} .."
        ) from error
    if not pairs:
        raise DataError(f"{run} has no validation set, which decides what is better; train it with one: --dev-src, ..")
    if len(pairs) < FEW_DEV_PAIRS:
        reporter.warn(f"the validation set has {len(pairs):,} pairs: a small gain cannot be told from chance")
    trained = [path for path in run.sound_checkpoints()[0] if not improved_with(read_state(path))]
    if any(read_state(path).get("data", identity) != identity for path in trained):
        raise DataError(f"the training or validation data of {run} changed since it was trained; restore the files")
    return Base(run, settings, train, pairs, identity)


def starting_model(run: RunDirectory, text: str) -> StoredModel:
    """The best model but for those that came of this text."""
    others = [path for path in run.sound_checkpoints()[0] if improved_with(read_state(path)) != text]
    best = best_checkpoint(others) or others[-1]
    return run.find_model(best.name.removeprefix("step-"))


def open_lines(path: Path, encoding: str) -> Corpus:
    """A text, one sentence per line; DataError if it cannot be read."""
    return open_corpus(DataConfig(text=[str(path)], encoding=encoding))


def fit_lines(text: Corpus, own: Iterable[str], dev: Iterable[str], say: Callable[[str], None]) -> list[str]:
    """The new lines of a text, cleaned, each once, in their order. If there are too many, a sample of them.

    Args:
        own, dev: The same side of the run's pairs and of its validation set. Their lines are left out: of the former
            the translations are known, and what is validated on must not be trained on.

    Raises:
        DataError: The file cannot be read, or no line is left.
    """
    reasons = {hash(""): "blank"}
    reasons |= {hash(clean(line)): "among the training pairs" for line in own}
    reasons |= {hash(clean(line)): "in the validation set" for line in dev}
    sample, left_out, total = Reservoir[tuple[int, str]](MOST_LINES, seed=MOST_LINES), Counter[str](), 0
    for number, (_, raw) in enumerate(text.pairs()):
        line, total = clean(raw), number + 1
        reason = reasons.get(hash(line), "")
        if not reason and (len(line) > LONGEST_LINE or any(tag in line for tag in TAGS.values())):
            reason = "no sentence"
        if reason:
            left_out[reason] += 1
            continue
        reasons[hash(line)] = "there before"
        sample.add((number, line))
    said = "; ".join(f"{count:,} {reason}" for reason, count in left_out.items())
    if not sample.kept:
        raise DataError(f"{text.name} has no line to learn from: {said or 'it is empty'}; name another text")
    taken = f"{len(sample.kept):,} of {total:,} lines taken"
    say(f"{text.name}: {taken}{f' (left out: {said})' if said else ''}")
    return [line for _, line in sorted(sample.kept)]


def write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    """Writes pairs as JSON Lines, unless that was done before."""
    if path.exists():
        return
    make_directory(path.parent)
    with OutputFile(path) as stream:
        stream.writelines(json_line({"source": src, "target": tgt}) + "\n" for src, tgt in pairs)


def read_pairs(path: Path) -> list[Pair]:
    """The pairs that `write_pairs` wrote."""
    with open(path, encoding="utf-8") as stream:
        return [(record["source"], record["target"]) for record in map(json.loads, stream)]
