"""Is `tfm train --dry-run` right? What it says of time and memory, beside what the same command then takes.

Each corpus is first tried with --dry-run, then trained in the same directory with the same flags.
"""

import argparse
import re
import shutil
import time
from pathlib import Path

from common import TFM, BenchmarkError, machine, markdown_table, note, report_errors, run_watched, say

_TIME = re.compile(r"^time +about (.*) for ([\d,]+) updates", re.MULTILINE)
_MEMORY = re.compile(r"^memory +about ([\d.]+) GB", re.MULTILINE)
_UNITS = {"h": 3600, "min": 60, "s": 1}


def trials(corpora: Path, ladder: Path) -> dict[str, list[str]]:
    """The flags of each corpus by its name; lengths are cut so that all of it takes half an hour."""
    multi30k, docs = corpora / "multi30k", ladder / "python_docs_es-5k"
    return {
        "toy": ["--config", "toy"],
        "multi30k": [
            *("--config", "multi30k", "--max-steps", "700", "--src", f"{multi30k / 'train.en'}"),
            *("--tgt", f"{multi30k / 'train.de'}"),
            *("--dev-src", f"{multi30k / 'valid.en'}", "--dev-tgt", f"{multi30k / 'valid.de'}"),
        ],
        "python_docs_es-5k": [
            *("--max-steps", "400", "--src", f"{docs / 'train.src'}", "--tgt", f"{docs / 'train.tgt'}"),
            *("--dev-src", f"{docs / 'valid.src'}", "--dev-tgt", f"{docs / 'valid.tgt'}"),
        ],
    }


def seconds_of(words: str) -> float:
    """Of a duration as tfm says it, such as `3 h 20 min`."""
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([\d.]+) (h|min|s)", words))


def compare(name: str, flags: list[str], work: Path) -> list[str]:
    """A row of the table.

    Raises:
        BenchmarkError: A command failed, or said nothing of time and memory.
    """
    run = work / name
    shutil.rmtree(run, ignore_errors=True)
    command = [*TFM, "train", *flags, "--run", str(run)]
    say(f"{name}: dry run")
    start = time.monotonic()
    said, _ = run_watched([*command, "--dry-run"])
    trying = time.monotonic() - start
    expected, memory = _TIME.search(said), _MEMORY.search(said)
    if expected is None or memory is None:
        raise BenchmarkError(f"the dry run of {name} says nothing of time and memory: {said}")
    say(f"{name}: {expected[0]}; {memory[0]}; training")
    start = time.monotonic()
    _, peak = run_watched(command)
    minutes = (time.monotonic() - start) / 60
    told, gigabytes = seconds_of(expected[1]) / 60, float(memory[1])
    taken = None if peak is None else peak.total / 1e9
    return [
        name,
        expected[2],
        f"{trying:.0f} s",
        f"{told:.1f}",
        f"{minutes:.1f}",
        f"{told / minutes:.2f}",
        f"{gigabytes:.1f}",
        "not measured" if taken is None else f"{taken:.1f}",
        "" if taken is None else f"{gigabytes / taken:.2f}",
    ]


def main() -> None:
    """Compares the corpora named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--corpora", type=Path, required=True, help="as under $TFM_CORPORA")
    parser.add_argument("--ladder", type=Path, required=True, help="the --work of ladder.py build")
    parser.add_argument("--work", type=Path, required=True, help="where runs are made")
    parser.add_argument("--only", nargs="+", help="names of corpora; default: all")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    wanted = trials(options.corpora, options.ladder)
    if unknown := set(options.only or []) - wanted.keys():
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(wanted)}")
    note(machine())
    rows = [compare(name, flags, options.work) for name, flags in wanted.items() if name in (options.only or wanted)]
    header = ["corpus", "updates", "dry run takes", "minutes said", "minutes taken", "ratio"]
    note(markdown_table([*header, "GB said", "GB taken", "ratio"], rows))


if __name__ == "__main__":
    report_errors(main)
