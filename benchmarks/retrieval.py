"""What the vectors of a sentence encoder are good for: finding translations, and finding pairs that are none.

Prints how often the sentence nearest to one is its translation, in both directions. With --shuffle a share of the
targets change places among themselves; pairs whose similarity is below a threshold are then taken for wrong. The
threshold is the best one (by F1) for a second pair of files, shuffled alike. Trains nothing: for an encoder that has
learned from the shuffled pairs themselves, write them first with --write, and train on those.
"""

import argparse
import random
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common import BenchmarkError, machine, markdown_table, note, read_lines, report_errors

from tfm.engine import Embedder

Pairs = tuple[list[str], list[str]]


@dataclass(frozen=True)
class Detection:
    """How well wrong pairs were found.

    Attributes:
        found: Pairs taken for wrong.
        wrong: Pairs that are wrong.
        hits: Pairs that are both.
    """

    found: int
    wrong: int
    hits: int

    @property
    def precision(self) -> float:
        """Share of the pairs taken for wrong that are."""
        return self.hits / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """Share of the wrong pairs that were found."""
        return self.hits / self.wrong if self.wrong else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of both."""
        return 2 * self.hits / (self.found + self.wrong) if self.hits else 0.0


def detect(similarities: Sequence[float], wrong: Sequence[bool], threshold: float) -> Detection:
    """Takes pairs below a threshold for wrong."""
    found = [similarity < threshold for similarity in similarities]
    hits = sum(one and other for one, other in zip(found, wrong, strict=True))
    return Detection(sum(found), sum(wrong), hits)


def best_threshold(similarities: Sequence[float], wrong: Sequence[bool]) -> float:
    """The threshold of the highest F1: in the middle between two similarities that stand next to each other."""
    ranked = sorted(zip(similarities, wrong, strict=True))
    best, threshold, hits = 0.0, -1.0, 0
    for found, (similarity, is_wrong) in enumerate(ranked, start=1):
        hits += is_wrong
        above = ranked[found][0] if found < len(ranked) else 1.0
        f1 = Detection(found, sum(wrong), hits).f1
        if above > similarity and f1 > best:
            best, threshold = f1, (similarity + above) / 2
    return threshold


def shuffled(pairs: Pairs, share: float, seed: int) -> tuple[Pairs, list[bool]]:
    """The pairs, a share of the targets moved to other places of that share, and which pairs are wrong now."""
    sources, targets = pairs
    count = round(share * len(targets))
    if count < 2:
        raise BenchmarkError(f"--shuffle {share} of {len(targets):,} pairs leaves nothing to change places with")
    chosen = random.Random(seed).sample(range(len(targets)), count)
    moved = list(targets)
    for place, origin in zip(chosen, [*chosen[1:], chosen[0]], strict=True):
        moved[place] = targets[origin]
    return (sources, moved), [before != after for before, after in zip(targets, moved, strict=True)]


def write_shuffled(pairs: Pairs, share: float | None, seed: int, path: Path) -> None:
    """Writes the targets of shuffled pairs.

    Raises:
        BenchmarkError: The share is not given.
    """
    if share is None:
        raise BenchmarkError("--write needs --shuffle: the share of the targets that change places")
    (_, targets), wrong = shuffled(pairs, share, seed)
    path.write_text("".join(f"{line}\n" for line in targets), encoding="utf-8")
    note(f"{path}: {sum(wrong):,} of {len(targets):,} targets belong to other sources")


def similarities(embedder: Embedder, pairs: Pairs) -> list[float]:
    """Of the two sides of each pair."""
    return (embedder.embed(pairs[0]) * embedder.embed(pairs[1])).sum(axis=1).tolist()


def retrieval_table(embedder: Embedder, pairs: Pairs) -> str:
    """Top-1 retrieval in both directions; equal sentences count as one."""
    import torch

    from tfm.engine.evaluation.retrieval import top_1

    vectors = [torch.from_numpy(embedder.embed(side)) for side in pairs]
    numbers: dict[str, int] = {}
    keys = [torch.tensor([numbers.setdefault(text, len(numbers)) for text in side]) for side in pairs]
    found = top_1(vectors[0], vectors[1], keys[0], keys[1])
    row = [f"{len(pairs[0]):,}", *(f"{share:.2f} %" for share in (found.src_to_tgt, found.tgt_to_src, found.mean))]
    return markdown_table(("pairs", "source to target", "target to source", "mean"), [row])


def detection_table(embedder: Embedder, test: Pairs, dev: Pairs, share: float, seed: int) -> str:
    """Precision and recall of finding shuffled pairs, on both sets, with the threshold of the second."""
    scored: list[tuple[str, list[float], list[bool]]] = []
    for name, pairs in (("dev", dev), ("test", test)):
        mixed, wrong = shuffled(pairs, share, seed)
        scored.append((name, similarities(embedder, mixed), wrong))
    threshold = best_threshold(*scored[0][1:])
    rows: list[list[str]] = []
    for name, values, wrong in scored:
        one = detect(values, wrong, threshold)
        shares = [f"{100 * figure:.2f} %" for figure in (one.precision, one.recall, one.f1)]
        rows.append([name, f"{len(wrong):,}", f"{one.wrong:,}", f"{one.found:,}", *shares])
    table = markdown_table(("set", "pairs", "wrong", "taken for wrong", "precision", "recall", "F1"), rows)
    return f"{table}\n\nThreshold {threshold:.4f}, the best one for dev."


def read_pairs(src: Path, tgt: Path) -> Pairs:
    """Two files as pairs.

    Raises:
        BenchmarkError: They do not match line by line.
    """
    sides = read_lines(src), read_lines(tgt)
    if len(sides[0]) != len(sides[1]):
        raise BenchmarkError(f"{src} has {len(sides[0]):,} lines and {tgt} {len(sides[1]):,}")
    return sides


def main() -> None:
    """Parses the command line, embeds, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="a sentence encoder")
    parser.add_argument("--src", type=Path, required=True, help="test sentences, one per line")
    parser.add_argument("--tgt", type=Path, required=True, help="their translations")
    parser.add_argument("--dev-src", type=Path, help="with --shuffle: other sentences, to choose the threshold on")
    parser.add_argument("--dev-tgt", type=Path, help="their translations")
    parser.add_argument("--shuffle", type=float, metavar="SHARE", help="share of the targets that change places")
    parser.add_argument("--seed", type=int, default=1, help="decides which; default: 1")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the shuffled targets there, and end")
    options = parser.parse_args()
    if options.write is not None:
        write_shuffled(read_pairs(options.src, options.tgt), options.shuffle, options.seed, options.write)
        return
    if options.run is None:
        raise BenchmarkError("name a sentence encoder with --run")
    if options.shuffle is not None and (options.dev_src is None or options.dev_tgt is None):
        raise BenchmarkError("--shuffle needs --dev-src and --dev-tgt, to choose the threshold on")
    test = read_pairs(options.src, options.tgt)
    embedder = Embedder.load(options.run)
    print(f"## Retrieval\n\n{machine()}\n* `{shlex.join(['retrieval.py', *sys.argv[1:]])}`", flush=True)
    assert embedder.checkpoint is not None
    note(f"* {options.run}, {embedder.checkpoint.name}")
    note(retrieval_table(embedder, test))
    if options.shuffle is not None:
        dev = read_pairs(options.dev_src, options.dev_tgt)
        note(f"{100 * options.shuffle:g} % of the targets shuffled, seed {options.seed}")
        note(detection_table(embedder, test, dev, options.shuffle, options.seed))


if __name__ == "__main__":
    report_errors(main)
