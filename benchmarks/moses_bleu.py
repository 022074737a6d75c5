"""BLEU as papers on Multi30k report it: lower-cased, punctuation-normalised and Moses-tokenised on both sides.

Outputs are put into that form with sacremoses; the published references (`data/task1/tok` of the data set's repository)
are in it: from the plain references it makes exactly them. Not to be compared with cased BLEU of plain text.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

from common import BenchmarkError, read_lines, report_errors


def moses_form(language: str) -> Callable[[str], str]:
    """What brings a line of this language into the form."""
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    normaliser, tokenizer = MosesPunctNormalizer(lang=language), MosesTokenizer(lang=language)

    def convert(line: str) -> str:
        return str(tokenizer.tokenize(normaliser.normalize(line.lower()), return_str=True))

    return convert


def moses_bleu(outputs: Path, references: Path, language: str, *, plain: bool = False) -> tuple[float, str]:
    """The score and its signature; `plain` references are converted, too.

    Raises:
        BenchmarkError: The files have different numbers of lines, or are not UTF-8.
    """
    from sacrebleu.metrics.bleu import BLEU

    convert = moses_form(language)
    ours, theirs = [convert(line) for line in read_lines(outputs)], read_lines(references)
    if len(ours) != len(theirs):
        raise BenchmarkError(f"{outputs} has {len(ours):,} lines and {references} {len(theirs):,}")
    if plain:
        theirs = [convert(line) for line in theirs]
    metric = BLEU(tokenize="none", force=True)
    return metric.corpus_score(ours, [theirs]).score, str(metric.get_signature())


def main() -> None:
    """Parses the command line, scores, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("outputs", type=Path, help="plain text, a line a sentence")
    parser.add_argument("references", type=Path, help="references in the published form, or plain ones with --plain")
    parser.add_argument("--language", default="de", help="of both; default: de")
    parser.add_argument("--plain", action="store_true", help="the references are plain text and are converted, too")
    options = parser.parse_args()
    score, signature = moses_bleu(options.outputs, options.references, options.language, plain=options.plain)
    print(f"{score:.2f} ({signature}, lower-cased and Moses-tokenised beforehand)")


if __name__ == "__main__":
    report_errors(main)
