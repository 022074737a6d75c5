"""How much worse a run translates what is written otherwise than its training text: capitals, titles, typing errors.

    python benchmarks/unusual_text.py RUN [RUN ..] --src valid.src --tgt valid.tgt

Makes changed copies of a validation set and prints chrF and BLEU of each beside those of the set as it is. A copy has
the lines alone that the change changes, and their figures as they are beside it. What is in capitals, a title or
without a last sign is so on both sides; typing errors and small letters are in the source alone.
"""

import argparse
from pathlib import Path

import numpy as np
import regex
from common import markdown_table, note, read_lines, report_errors

from tfm.data.cleaning import clean
from tfm.data.corpus import Pair
from tfm.data.scripts import graphemes
from tfm.data.usual_form import capitals, open_ended, title
from tfm.engine import Translator
from tfm.engine.evaluation.scores import score

HEADER = ("run", "text", "lines", "chrF", "as it is", "difference", "BLEU", "as it is")
SEED = 7
LETTERS_AN_ERROR = 25
"""There is one typing error in about this many letters."""
_IN_A_WORD = regex.compile(r"(?<=\p{L}\p{M}*)\p{L}\p{M}*(?=\p{L})")
"""A letter that is neither the first nor the last of its word, with its marks."""


def typed(text: str, rng: np.random.Generator) -> str:
    """A text with typing errors inside words: two letters exchanged, one left out, or one written twice."""
    places = [match.span() for match in _IN_A_WORD.finditer(text)]
    for place in sorted(rng.permutation(len(places))[: -(-len(places) // LETTERS_AN_ERROR)], reverse=True):
        start, end = places[place]
        letter, rest = text[start:end], text[end:]
        after = graphemes(rest[:8])[0]
        match rng.integers(3):
            case 0:
                text = text[:start] + after + letter + rest[len(after) :]
            case 1:
                text = text[:start] + rest
            case _:
                text = text[:start] + letter + letter + rest
    return text


def changed_copies(pairs: list[Pair]) -> dict[str, list[Pair]]:
    """The pairs in each way of writing, line by line."""
    rngs = [np.random.Generator(np.random.Philox(key=[SEED, row])) for row in range(len(pairs))]
    return {
        "capitals": [(capitals(src), capitals(tgt)) for src, tgt in pairs],
        "title": [(title(src), title(tgt)) for src, tgt in pairs],
        "small letters": [(src.lower(), tgt) for src, tgt in pairs],
        "typing errors": [(typed(src, rng), tgt) for (src, tgt), rng in zip(pairs, rngs, strict=True)],
        "no last sign": [(open_ended(src), open_ended(tgt)) for src, tgt in pairs],
    }


def figures(translator: Translator, pairs: list[Pair]) -> tuple[float, float]:
    """chrF and BLEU of a set."""
    outputs = [one.text for one in translator.translate([src for src, _ in pairs])]
    references = [[tgt] for _, tgt in pairs]
    return score("chrf", outputs, references).value, score("bleu", outputs, references).value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--tgt", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=500)
    asked = parser.parse_args()
    sides = (read_lines(path)[: asked.sentences] for path in (asked.src, asked.tgt))
    pairs = [(clean(src), clean(tgt)) for src, tgt in zip(*sides, strict=True) if src.strip() and tgt.strip()]
    copies = changed_copies(pairs)
    table: list[list[object]] = []
    for run in asked.runs:
        translator = Translator.load(run)
        chrf, bleu = figures(translator, pairs)
        table.append([run.name, "as it is", len(pairs), f"{chrf:.2f}", "", "", f"{bleu:.2f}", ""])
        for name, copy in copies.items():
            rows = [row for row, (plain, other) in enumerate(zip(pairs, copy, strict=True)) if plain[0] != other[0]]
            if not rows:
                table.append([run.name, name, 0, "", "", "", "", ""])
                continue
            plain, other = (figures(translator, [of[row] for row in rows]) for of in (pairs, copy))
            difference = f"{other[0] - plain[0]:+.2f}"
            chrf_and_bleu = f"{other[0]:.2f}", f"{plain[0]:.2f}", difference, f"{other[1]:.2f}", f"{plain[1]:.2f}"
            table.append([run.name, name, len(rows), *chrf_and_bleu])
    note(markdown_table(HEADER, table))


if __name__ == "__main__":
    report_errors(main)
