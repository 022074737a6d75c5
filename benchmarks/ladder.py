"""A ladder of small corpora, and what `tfm train` with no flags makes of each: quality, loops, minutes, updates.

`build` writes the rungs: 2,000 to 40,000 pairs of each corpus under $TFM_CORPORA, nested, with the corpus's own
validation and test sets. No source sentence stands on two sides, nor twice in training. `run` trains rungs and prints
a row for each; a rung that is finished already is only scored. Develop on --set valid; `test` is for what is decided.
"""

import argparse
import json
import os
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import TFM, BenchmarkError, machine, markdown_table, note, output_of, read_lines, report_errors, say

SIZES = (2_000, 5_000, 10_000, 20_000, 40_000)
SHUFFLED_BY = 1
"""Seed of the order in which pairs are taken."""
Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Source:
    """A corpus to take rungs from.

    Attributes:
        folder: Under $TFM_CORPORA.
        src, tgt: Endings of its files.
        dev: Name of its validation files.
        test: Name of its test files.
    """

    folder: str
    src: str
    tgt: str
    dev: str = "valid"
    test: str = "test"


SOURCES = (
    Source("python_docs_es", "en", "es"),
    Source("small_parallel_enja", "en", "ja", dev="dev"),
    Source("tatoeba_en_fr", "en", "fr"),
    Source("multi30k", "en", "de", test="test2016"),
)


def rung_name(folder: str, size: int) -> str:
    """What a rung is called: the corpus and the thousands of its pairs."""
    return f"{folder}-{size // 1000}k"


def read_part(root: Path, source: Source, part: str) -> Pairs:
    """The pairs of one part of a corpus, no source twice; the first of them stays.

    Raises:
        BenchmarkError: A file is missing, or the sides do not match.
    """
    paths = [root / source.folder / f"{part}.{ending}" for ending in (source.src, source.tgt)]
    for path in paths:
        if not path.is_file():
            raise BenchmarkError(f"there is no {path}")
    sides = [read_lines(path) for path in paths]
    if len(sides[0]) != len(sides[1]):
        raise BenchmarkError(f"{paths[0]} and {paths[1]} do not match line by line")
    found: dict[str, str] = {}
    for src, tgt in zip(*sides, strict=True):
        if src.strip() and tgt.strip():
            found.setdefault(src, tgt)
    return list(found.items())


def without(pairs: Pairs, *others: Pairs) -> Pairs:
    """The pairs whose source stands in none of the others."""
    known = {src for part in others for src, _ in part}
    return [pair for pair in pairs if pair[0] not in known]


def build(root: Path, work: Path) -> None:
    """Writes every rung that the corpora are large enough for, and says what it wrote."""
    rows: list[list[str]] = []
    for source in SOURCES:
        test = read_part(root, source, source.test)
        dev = without(read_part(root, source, source.dev), test)
        train = without(read_part(root, source, "train"), dev, test)
        random.Random(SHUFFLED_BY).shuffle(train)
        for size in SIZES:
            if size > len(train):
                note(f"{source.folder} has {len(train):,} pairs: no rung of {size:,}")
                break
            folder = work / rung_name(source.folder, size)
            folder.mkdir(parents=True, exist_ok=True)
            for part, pairs in (("train", train[:size]), ("valid", dev), ("test", test)):
                for side, ending in enumerate(("src", "tgt")):
                    text = "".join(f"{pair[side]}\n" for pair in pairs)
                    (folder / f"{part}.{ending}").write_text(text, encoding="utf-8")
            words = sum(len(src.split()) for src, _ in train[:size]) / size
            rows.append([folder.name, f"{size:,}", f"{len(dev):,}", f"{len(test):,}", f"{words:.1f}"])
    note(markdown_table(("rung", "pairs", "validation", "test", "words of a source"), rows))


def loops(text: str) -> bool:
    """Whether a trigram of words stands in a text three times or more."""
    words = text.split()
    counts: dict[tuple[str, ...], int] = {}
    for start in range(len(words) - 2):
        trigram = tuple(words[start : start + 3])
        counts[trigram] = counts.get(trigram, 0) + 1
        if counts[trigram] == 3:
            return True
    return False


def looping_share(texts: Sequence[str]) -> float:
    """Percentage of texts that repeat themselves."""
    return 100 * sum(map(loops, texts)) / max(len(texts), 1)


def train(rung: Path, run: Path, flags: Sequence[str]) -> float:
    """Trains a rung to its end; returns the minutes that it took, next to none if it was finished before.

    Raises:
        BenchmarkError: It failed.
    """
    sides = {"--src": "train.src", "--tgt": "train.tgt", "--dev-src": "valid.src", "--dev-tgt": "valid.tgt"}
    files = [part for flag, name in sides.items() for part in (flag, str(rung / name))]
    start = time.monotonic()
    code = subprocess.run([*TFM, "train", *files, "--run", str(run), *flags], check=False).returncode
    if code:
        raise BenchmarkError(f"training {rung.name} ended with {code}")
    return (time.monotonic() - start) / 60


def score(rung: Path, run: Path, part: str) -> tuple[dict[str, Any], list[str]]:
    """What `tfm evaluate` says of a run, and its outputs."""
    output = run / f"{part}.hyp"
    files = ["--src", str(rung / f"{part}.src"), "--tgt", str(rung / f"{part}.tgt"), "--output", str(output)]
    metrics = ["--metric", "bleu", "--metric", "chrf", "--json"]
    return json.loads(output_of([*TFM, "evaluate", "--run", str(run), *files, *metrics])), read_lines(output)


def updates(run: Path) -> tuple[int, int]:
    """The step of the best checkpoint, and the number of updates made."""
    found = json.loads(output_of([*TFM, "info", "--run", str(run), "--json"]))
    best = [one["step"] for one in found["checkpoints"] if one.get("best")]
    return (best[0] if best else found["training"]["step"]), found["training"]["step"]


def climb(work: Path, runs: Path, rungs: Sequence[str], part: str, flags: Sequence[str]) -> None:
    """Trains and scores rungs, and prints a row for each as soon as it is there."""
    header = ("rung", "BLEU", "chrF", "loops", "loops of references", "minutes", "best update", "updates")
    rows: list[list[str]] = []
    signatures: set[str] = set()
    for name in rungs:
        rung, run = work / name, runs / name
        if not rung.is_dir():
            raise BenchmarkError(f"there is no rung {rung}; build the ladder first")
        minutes = train(rung, run, flags)
        result, outputs = score(rung, run, part)
        best, made = updates(run)
        references = looping_share(read_lines(rung / f"{part}.tgt"))
        figures = [f"{result['scores'][metric]:.2f}" for metric in ("bleu", "chrf")]
        shares = [f"{share:.2f} %" for share in (looping_share(outputs), references)]
        rows.append([name, *figures, *shares, f"{minutes:.1f}", f"{best:,}", f"{made:,}"])
        signatures |= set(result["signatures"].values())
        say(" | ".join(rows[-1]))
    note(markdown_table(header, rows))
    for signature in sorted(signatures):
        note(f"* `{signature}`")


def main() -> None:
    """Builds or climbs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, what in (("build", "write the rungs"), ("run", "train rungs and score them")):
        command = commands.add_parser(name, help=what)
        command.add_argument("--work", type=Path, required=True, metavar="DIR", help="holds the rungs")
    command = commands.choices["run"]
    command.add_argument("rungs", nargs="+", metavar="RUNG", help="such as python_docs_es-5k")
    command.add_argument("--runs", type=Path, metavar="DIR", help="for the runs; default: WORK/runs")
    command.add_argument("--set", dest="part", choices=("valid", "test"), default="valid", help="what to score")
    command.add_argument("--flag", action="append", default=[], help="of tfm train, such as --flag=--max-time=5m")
    options = parser.parse_args()
    if options.command == "build":
        if "TFM_CORPORA" not in os.environ:
            raise BenchmarkError("TFM_CORPORA does not say where the corpora lie")
        build(Path(os.environ["TFM_CORPORA"]), options.work)
        return
    print(f"## Ladder\n\n{machine()}\n* `{shlex.join(['ladder.py', *sys.argv[1:]])}`", flush=True)
    note(f"* scored on {options.part}")
    climb(options.work, options.runs or options.work / "runs", options.rungs, options.part, options.flag)


if __name__ == "__main__":
    report_errors(main)
