"""What a glossary costs: terms kept and BLEU with it and without it.

The glossary is drawn from the training pairs: frequent words of the source that nearly always stand with one and the
same word of the target, and are not written there as they are, as names are. In a script without spaces, a word is what
tfm takes for one, of two to five letters.
"""

import argparse
import json
import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from common import TFM, BenchmarkError, machine, markdown_table, note, output_of, read_lines, report_errors

from tfm.data.scripts import is_unspaced
from tfm.data.words import begins_word, ends_word

MIN_LETTERS = 4
"""Of a word of a script with spaces: shorter ones are mostly articles and the like."""
LETTERS_UNSPACED = (2, 3, 4, 5)
CANDIDATES = 600
"""The most frequent words of the source that are looked at."""
MIN_PAIRS = 8
"""In which a word has to stand."""
MIN_DICE = 0.55
"""Twice the pairs that have both words, over the pairs that have the one plus those that have the other."""


def words(text: str) -> Iterator[str]:
    """Words of a text that may be terms."""
    for word in re.findall(r"[^\W\d_]+", text):
        if not is_unspaced(word):
            if len(word) >= MIN_LETTERS:
                yield word
            continue
        for start in range(len(word)):
            for end in (start + length for length in LETTERS_UNSPACED if start + length <= len(word)):
                if begins_word(word, start) and ends_word(word, end):
                    yield word[start:end]


def draw(pairs: Iterable[tuple[str, str]], count: int) -> list[tuple[str, str]]:
    """Terms and their translations, the surest first, at most `count`."""
    sides = [(set(words(src)), set(words(tgt))) for src, tgt in pairs]
    sources = Counter(word for src, _ in sides for word in src)
    targets = Counter(word for _, tgt in sides for word in tgt)
    frequent = {word for word, pairs_with in sources.most_common(CANDIDATES) if pairs_with >= MIN_PAIRS}
    together = Counter((a, b) for src, tgt in sides for a in src & frequent for b in tgt)
    best: dict[str, tuple[float, int, str]] = {}
    for (a, b), both in together.items():
        rank = 2 * both / (sources[a] + targets[b]), len(b), b
        if rank[0] > MIN_DICE and 2 * together[a, a] < sources[a]:
            best[a] = max(best.get(a, rank), rank)
    surest = sorted(best.items(), key=lambda item: (item[1], item[0]), reverse=True)
    return [(term, translation) for term, (_, _, translation) in surest[:count]]


def main() -> None:
    """Draws a glossary and scores a run with it and without it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN")
    for name in ("train", "test"):
        parser.add_argument(f"--{name}", type=Path, nargs=2, required=True, metavar=("SRC", "TGT"))
    parser.add_argument("--terms", type=int, default=60, metavar="N")
    parser.add_argument("--glossary", type=Path, metavar="FILE", help="this one; default: drawn, into RUN/terms.tsv")
    options = parser.parse_args()
    glossary = options.glossary or options.run / "terms.tsv"
    if not options.glossary:
        terms = draw(zip(*map(read_lines, options.train), strict=True), options.terms)
        if not terms:
            raise BenchmarkError("the training pairs have no term that is frequent and unambiguous")
        glossary.write_text("".join(f"{term}\t{translation}\n" for term, translation in terms), encoding="utf-8")
    print(f"## Glossary\n\n{machine()}\n* `{shlex.join(['glossary.py', *sys.argv[1:]])}`", flush=True)
    files = ["--src", options.test[0], "--tgt", options.test[1], "--metric", "bleu", "--metric", "chrf", "--json"]
    rows: list[list[str]] = []
    for name, flags in (("no", []), ("yes", ["--glossary", glossary])):
        command = [*TFM, "evaluate", "--run", options.run, *files, *flags]
        found: dict[str, Any] = json.loads(output_of([os.fspath(part) for part in command]))
        scores = [f"{found['scores'][metric]:.2f}" for metric in ("bleu", "chrf")]
        rows.append([name, *scores, f"{found['terms']['kept']} of {found['terms']['of']}", str(found["constrained"])])
    note(markdown_table(("glossary", "BLEU", "chrF", "terms kept", "searched again"), rows))


if __name__ == "__main__":
    report_errors(main)
