"""From the text of Multi30k to BLEU: trains a preset, times it, and scores every test set that there is.

One row for each test set: BLEU of plain text, greedy and with the preset's beam, and of the latter BLEU as papers have
it (see moses_bleu.py), where the published references are in `lc_norm_tok` and sacremoses is installed. A run that is
finished already is only scored; a run that was stopped goes on, and the time says so.
"""

import argparse
import importlib.util
import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import HERE, TFM, BenchmarkError, machine, markdown_table, note, output_of, read_lines, report_errors, say
from corpora import corpus_folder
from moses_bleu import moses_bleu

TEST_SETS = {"test2016": "test_2016_flickr", "test2017": "test_2017_flickr", "testcoco": "test_2017_mscoco"}
"""Each with the name of its published references."""


@dataclass(frozen=True)
class Training:
    """How a training went.

    Attributes:
        before, after: Steps done when it was started, and when it ended.
        seconds: Between the two, by the clock on the wall, start-up included.
    """

    before: int
    after: int
    seconds: float

    def __str__(self) -> str:
        if self.before == self.after:
            return f"{self.after:,} updates, made before"
        begun = f", continued at {self.before:,}" if self.before else ""
        each = self.seconds / (self.after - self.before)
        minutes, seconds = divmod(round(self.seconds), 60)
        return f"{self.after:,} updates{begun}; `tfm train` took {minutes} min {seconds} s, {each:.2f} s an update"


def train(command: Sequence[str], run: Path) -> Training:
    """Runs `tfm train` to its end; what it says goes to standard error.

    Raises:
        BenchmarkError: It failed.
    """
    before, start = steps_done(run), time.monotonic()
    code = subprocess.run(command, check=False).returncode
    seconds = time.monotonic() - start
    if code:
        raise BenchmarkError(f"{' '.join(command)} ended with {code}")
    return Training(before, steps_done(run), seconds)


def steps_done(run: Path) -> int:
    """The newest checkpoint's step; 0 where there is none."""
    from tfm.engine.runs.checkpoint import checkpoint_step
    from tfm.engine.runs.directory import RunDirectory

    return max(map(checkpoint_step, RunDirectory(run).checkpoints()), default=0)


def evaluate(run: Path, sides: tuple[Path, Path], output: Path, *flags: str) -> dict[str, Any]:
    """What `tfm evaluate --json` says; the translations go to `output`.

    Raises:
        BenchmarkError: It failed.
    """
    files = ["--src", str(sides[0]), "--tgt", str(sides[1]), "--output", str(output)]
    command = [*TFM, "evaluate", "--run", str(run), *files, "--metric", "bleu", "--json", *flags]
    return json.loads(output_of(command))


def as_papers_report(outputs: Path, references: Path, language: str) -> str:
    """What moses_bleu.py computes, or why there is nothing."""
    if not references.is_file():
        return "no references"
    if importlib.util.find_spec("sacremoses") is None:
        return "sacremoses not installed"
    return f"{moses_bleu(outputs, references, language)[0]:.2f}"


def score(run: Path, corpus: Path, language: str) -> str:
    """The table of all test sets, and what was scored how."""
    rows: list[list[str]] = []
    beam: dict[str, Any] = {}
    for name, published in TEST_SETS.items():
        sides = corpus / f"{name}.en", corpus / f"{name}.{language}"
        if not all(side.is_file() for side in sides):
            continue
        say(f"scoring {name}")
        output = run / f"{name}.out.{language}"
        greedy = evaluate(run, sides, output, "--beam-size", "1")
        beam = evaluate(run, sides, output)
        papers = as_papers_report(output, corpus / "lc_norm_tok" / f"{published}.lc.norm.tok.{language}", language)
        sentences = len(read_lines(output))
        rows.append([name, f"{sentences:,}", *(f"{one['scores']['bleu']:.2f}" for one in (greedy, beam)), papers])
    if not rows:
        raise BenchmarkError(f"{corpus} has none of {', '.join(f'{name}.en' for name in TEST_SETS)}")
    search = f"beam {beam['beam_size']}, length penalty {beam['length_penalty']:g}"
    table = markdown_table(("test set", "sentences", "greedy", search, "the same as papers have it"), rows)
    return f"{table}\n\n{Path(beam['checkpoint']).name}; BLEU signature `{beam['signatures']['bleu']}`."


def main() -> None:
    """Parses the command line, trains, scores, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="default: multi30k under $TFM_CORPORA")
    parser.add_argument("--config", default="multi30k", help="a preset or a file; default: multi30k")
    parser.add_argument("--target", default="de", help="language to translate to; default: de")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-time", metavar="TIME", help="as of tfm train; default: the preset's number of updates")
    parser.add_argument("--run", type=Path, help="default: benchmarks/scratch/, named for all of these")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="K=V", help="for tfm train")
    options = parser.parse_args()
    corpus = corpus_folder(options.corpus)
    if corpus is None:
        raise BenchmarkError(
            "name the data with --corpus DIR; it is to hold train, valid and test sets, as .en and .de"
        )
    parts = [Path(options.config).stem, options.target, f"seed{options.seed}", options.max_time]
    run = options.run or HERE / "scratch" / "-".join(part for part in parts if part)
    flags = ["--config", options.config, "--seed", str(options.seed), "--run", str(run)]
    for flag, part, language in (
        ("--src", "train", "en"),
        ("--tgt", "train", options.target),
        ("--dev-src", "valid", "en"),
        ("--dev-tgt", "valid", options.target),
    ):
        flags += [flag, str(corpus / f"{part}.{language}")]
    if options.max_time:
        flags += ["--max-time", options.max_time]
    flags += [part for setting in options.settings for part in ("--set", setting)]

    budget = f", --max-time {options.max_time}" if options.max_time else ""
    changed = "".join(f", {setting}" for setting in options.settings)
    title = f"{corpus.name} en-{options.target}, {options.config}, seed {options.seed}{budget}{changed}"
    print(f"## {title}\n\n{machine()}", flush=True)
    note(f"* {train([*TFM, 'train', *flags], run)}")
    note(score(run, corpus, options.target))


if __name__ == "__main__":
    report_errors(main)
