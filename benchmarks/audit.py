"""What `tfm data` finds of faults that were planted into real corpora: precision and recall of each kind.

Each kind of fault is planted alone, into 5 % of the pairs of a corpus, among those that can have it and were not marked
before. What was marked before anything was planted may be a fault of the corpus itself: it counts neither way, and is
shown apart.
"""

import argparse
import random
import re
from collections.abc import Callable
from pathlib import Path

from common import BenchmarkError, machine, markdown_table, note, read_lines, report_errors, say

from tfm.data import Pair
from tfm.data.audit import KINDS, Kind, audit
from tfm.data.placeholders import placeholder_spans, placeholders

SHARE = 0.05
OTHER_SCRIPT = "это совсем другой текст, который сюда не относится"
CORPORA = {
    "python_docs_es": ("en", "es"),
    "small_parallel_enja": ("en", "ja"),
    "tatoeba_en_fr": ("en", "fr"),
    "multi30k": ("en", "de"),
}
Damage = Callable[[Pair, random.Random], Pair | None]
"""Makes a faulty pair of a sound one; None where it cannot."""


def _identical(pair: Pair, rng: random.Random) -> Pair | None:
    del rng
    return (pair[0], pair[0]) if " " in pair[0] and sum(map(str.isalpha, pair[0])) >= 4 else None


def _mojibake(pair: Pair, rng: random.Random) -> Pair | None:
    """UTF-8 read as Windows-1252."""
    del rng
    try:
        broken = pair[1].encode().decode("cp1252")
    except UnicodeDecodeError:
        broken = pair[1].encode().decode("latin1")
    return None if pair[1].isascii() else (pair[0], broken)


def _numbers(pair: Pair, rng: random.Random) -> Pair | None:
    """Another number of two digits or more, outside the placeholders."""
    spans = placeholder_spans(pair[1])
    numbers = re.finditer(r"\d{2,}", pair[1])
    found = [one for one in numbers if not any(start < one.end() and one.start() < end for start, end in spans)]
    if not found:
        return None
    number = rng.choice(found)
    return pair[0], f"{pair[1][: number.start()]}{int(number[0]) + 11}{pair[1][number.end() :]}"


def _tags(pair: Pair, rng: random.Random) -> Pair | None:
    """A tag or placeholder lost."""
    found = placeholders(pair[1])
    return (pair[0], pair[1].replace(rng.choice(found), "", 1)) if found else None


DAMAGE: dict[Kind, Damage] = {
    "empty": lambda pair, rng: (pair[0], ""),
    "identical": _identical,
    "script": lambda pair, rng: (pair[0], OTHER_SCRIPT),
    "mojibake": _mojibake,
    "numbers": _numbers,
    "tags": _tags,
}


def plant(kind: Kind, pairs: list[Pair], marked: set[int], rng: random.Random) -> tuple[list[Pair], set[int]]:
    """The pairs with faults of a kind, and the rows that have them."""
    count = round(SHARE * len(pairs))
    damaged = list(pairs)
    if kind == "shifted":
        first = rng.randrange(len(pairs) // 4, len(pairs) // 2)
        rows = set(range(first, first + count))
        for row in rows:
            damaged[row] = pairs[row][0], pairs[row + 1][1]
        return damaged, rows
    free = [row for row in range(len(pairs) // 10, len(pairs)) if row not in marked]
    rng.shuffle(free)
    rows = set[int]()
    while len(rows) < count and free:
        row = free.pop()
        if kind == "duplicate":
            faulty: Pair | None = pairs[rng.randrange(len(pairs) // 10)]
        else:
            faulty = pairs[row] if kind == "overlap" else DAMAGE[kind](pairs[row], rng)
        if faulty is not None:
            damaged[row] = faulty
            rows.add(row)
    return damaged, rows


def rows_of(name: str, pairs: list[Pair], seed: int) -> list[list[object]]:
    """A line of the table for each kind."""
    before = audit(pairs)
    lines: list[list[object]] = []
    for kind in KINDS:
        say(f"{name}: {kind}")
        marked = before.rows([kind])
        damaged, rows = plant(kind, pairs, marked, random.Random(f"{seed} {kind}"))
        others = [damaged[row] for row in rows] if kind == "overlap" else []
        found = audit(damaged, others).rows([kind]) - (marked - rows)
        if kind == "overlap":  # a source that is there several times is rightly marked each time
            sources = {pairs[row][0] for row in rows}
            rows = {row for row, (src, _) in enumerate(pairs) if src in sources}
        right = len(found & rows)
        precision = f"{100 * right / len(found):.1f} %" if found else "-"
        recall = f"{100 * right / len(rows):.1f} %" if rows else "-"
        lines.append([name, kind, len(rows), precision, recall, len(marked)])
    return lines


def main() -> None:
    """Plants, and looks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--corpora", type=Path, required=True, help="as under $TFM_CORPORA")
    parser.add_argument("--pairs", type=int, default=10_000, help="of each corpus; default: 10,000")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", help="names of corpora; default: all")
    options = parser.parse_args()
    note(machine())
    table: list[list[object]] = []
    for name, endings in CORPORA.items():
        if options.only and name not in options.only:
            continue
        sides = [read_lines(options.corpora / name / f"train.{ending}")[: options.pairs] for ending in endings]
        if len(sides[0]) != len(sides[1]):
            raise BenchmarkError(f"the sides of {name} do not match line by line")
        table += rows_of(name, list(zip(*sides, strict=True)), options.seed)
    note(markdown_table(["corpus", "kind", "planted", "precision", "recall", "marked before"], table))


if __name__ == "__main__":
    report_errors(main)
