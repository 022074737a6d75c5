"""What text without translations brings: a rung of the ladder without flags, and after `tfm improve`.

The text is taken from the rest of the rung's corpus: targets that stand on no side of the rung, whose sources do not
either, each once. Prints a row for each rung, and a test of the difference. `tfm improve` goes on where it was stopped,
and so does this script.
"""

import argparse
import json
import os
import random
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from common import TFM, BenchmarkError, machine, markdown_table, note, output_of, read_lines, report_errors, say
from ladder import SHUFFLED_BY, SOURCES, read_part, score, train

PARTS = ("train", "valid", "test")


def text_beside(root: Path, rung: Path, lines: int, target: Path) -> int:
    """Writes targets of a rung's corpus that have nothing in common with the rung; returns how many there are.

    Raises:
        BenchmarkError: The rung is of no corpus of the ladder.
    """
    source = next((one for one in SOURCES if rung.name.startswith(one.folder)), None)
    if source is None:
        raise BenchmarkError(f"{rung.name} is no rung of {', '.join(one.folder for one in SOURCES)}")
    known = [{line for part in PARTS for line in read_lines(rung / f"{part}.{side}")} for side in ("src", "tgt")]
    pairs = read_part(root, source, "train")
    left = list(dict.fromkeys(tgt for src, tgt in pairs if src not in known[0] and tgt not in known[1]))
    random.Random(SHUFFLED_BY).shuffle(left)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(f"{line}\n" for line in left[:lines]), encoding="utf-8")
    return len(left[:lines])


def p_value(rung: Path, part: str, outputs: Sequence[Path]) -> float:
    """How likely chance explains the difference in BLEU of two outputs."""
    files = [flag for path in outputs for flag in ("--hyp", str(path))]
    command = [*TFM, "evaluate", *files, "--tgt", str(rung / f"{part}.tgt"), "--metric", "bleu", "--json"]
    return json.loads(output_of(command))["scores"]["bleu"]["p_values"][0]


def improved(
    rung: Path, run: Path, text: Path, part: str, flags: Sequence[str], train_flags: Sequence[str]
) -> list[str]:
    """Trains a rung, improves it, and scores it before and after: a row."""
    minutes = train(rung, run, train_flags)
    if not (run / "before.hyp").exists():
        before, _ = score(rung, run, part)
        (run / f"{part}.hyp").rename(run / "before.hyp")
        (run / "before.json").write_text(json.dumps(before["scores"]), encoding="utf-8")
    before = json.loads((run / "before.json").read_text(encoding="utf-8"))
    said = json.loads(output_of([*TFM, "improve", "--run", str(run), "--tgt-text", str(text), "--json", *flags]))
    after = score(rung, run, part)[0]["scores"]
    p = p_value(rung, part, [run / "before.hyp", run / f"{part}.hyp"])
    scores = [f"{one[metric]:.2f}" for metric in ("bleu", "chrf") for one in (before, after)]
    spent = sum(said["seconds"].values()) / 60
    accepted = ", ".join(one["name"] for one in said["stages"] if one["trial"]["p_value"] < 0.05) or "none"
    return [rung.name, f"{len(read_lines(text)):,}", *scores, f"{p:.3f}", f"{minutes:.1f}", f"{spent:.1f}", accepted]


def main() -> None:
    """Trains, improves, scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rungs", nargs="+", metavar="RUNG", help="such as tatoeba_en_fr-5k; made by ladder.py build")
    parser.add_argument("--work", type=Path, required=True, metavar="DIR", help="holds the rungs")
    parser.add_argument("--runs", type=Path, metavar="DIR", help="for the runs; default: WORK/improved")
    parser.add_argument("--lines", type=int, default=40_000, help="of text; default: 40,000")
    parser.add_argument("--set", dest="part", choices=("valid", "test"), default="valid", help="what to score")
    parser.add_argument("--train-flag", action="append", default=[], help="of tfm train")
    parser.add_argument("--flag", action="append", default=[], help="of tfm improve, such as --flag=--max-time=4h")
    options = parser.parse_args()
    if "TFM_CORPORA" not in os.environ:
        raise BenchmarkError("TFM_CORPORA does not say where the corpora lie")
    print(f"## Text without translations\n\n{machine()}\n* `{shlex.join(['improve.py', *sys.argv[1:]])}`", flush=True)
    note(f"* scored on {options.part}")
    rows: list[list[str]] = []
    for name in options.rungs:
        rung, run = options.work / name, (options.runs or options.work / "improved") / name
        if not rung.is_dir():
            raise BenchmarkError(f"there is no rung {rung}; build the ladder first")
        text = run.with_name(f"{name}-{options.lines}.txt")
        if not text.exists():
            text_beside(Path(os.environ["TFM_CORPORA"]), rung, options.lines, text)
        rows.append(improved(rung, run, text, options.part, options.flag, options.train_flag))
        say(" | ".join(rows[-1]))
    scores = ("BLEU before", "after", "chrF before", "after", "p")
    note(markdown_table(("rung", "lines", *scores, "minutes before", "to improve", "better"), rows))


if __name__ == "__main__":
    report_errors(main)
