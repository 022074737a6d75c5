"""Everything that is to be measured when a GPU is at hand, unattended and within minutes.

The most telling parts come first. Each is a process with a limit of its own; one that fails, or is killed at its limit,
does not end the others, and what it had printed is kept. `gpu.json` in --output is written anew after each part,
`table.md` at the end.

    machine         the card, versions, speed of a large product, of a copy and of a launch
    correct         the device beside the CPU: logits, loss, gradients; a run stopped and resumed; the tests for CUDA
    seconds_to_40   Multi30k from its text to 40 BLEU; greedy outputs of the trained model on both devices
    speed           tokens/s and share of the peak, tfm's own updates; a profile of one
    graphs          CUDA graphs of the passes over a batch and of the optimizer's step, beside the plain ones
    peer            MarianMTModel of transformers, in turn with tfm
    compiled        torch.compile of the loss, beside the plain one
    cores           training and decoding on 1, 2, 4, .. cores of the CPU
    base_preset     the preset pairs-1m on Tatoeba for what time is left
    wide            multi30k-best, three seeds; only if it is named: --parts wide --minutes 11

--tiny does all of it at sizes that a CPU computes in a minute or two, on generated text.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from common import HERE, BenchmarkError, machine, markdown_table, report_errors, say, script
from gpu_records import COMPLAINT_LINES, REPORT, Options, Record, parse_records

RESERVE = 4.0
"""Seconds at the end of the time for ending a part and writing the table."""
FEWEST_SECONDS = 8.0
"""With less than this a part is not begun."""
GRACE = 2.0
"""Seconds that a process has to end after SIGTERM."""
TINY_PATIENCE = 3
"""So many times its limit a part has where all is tiny: that tries the script, maybe on a machine with other work."""
ALWAYS_NAMED = ("wide",)
"""Parts that run only if --parts names them."""


@dataclass(frozen=True)
class Part:
    """One of the processes.

    Attributes:
        name: In the report.
        command: Given its seconds, the command line of what prints records, see gpu_records.py.
        seconds: Its limit.
    """

    name: str
    command: Callable[[float], Sequence[str]]
    seconds: float


@dataclass
class Outcome:
    """How a part went.

    Attributes:
        name: Of the part.
        state: `done`, `failed`, `over its limit` or `no time left`.
        seconds: That it took.
        records: What it printed.
        complaint: The end of what it wrote to standard error, if it failed.
    """

    name: str
    state: str
    seconds: float = 0.0
    records: list[Record] = field(default_factory=list)
    complaint: str = ""


SCRIPTS = {
    "machine": ("gpu_checks.py", 25),
    "correct": ("gpu_checks.py", 65),
    "seconds_to_40": ("gpu_runs.py", 128),
    "speed": ("gpu_speed.py", 80),
    "peer": ("gpu_speed.py", 60),
    "graphs": ("gpu_speed.py", 20),
    "compiled": ("gpu_speed.py", 60),
    "cores": ("gpu_runs.py", 85),
    "base_preset": ("gpu_runs.py", 60),
    "wide": ("gpu_runs.py", 660),
}
"""Of each part the script and the limit in seconds, in the order in which they run."""


def run_part(part: Part, seconds: float, folder: Path) -> Outcome:
    """Runs a part, and ends it and all that it has started when its time is over.

    Args:
        part: The part.
        seconds: Its time.
        folder: Where what it prints goes, as it is printed.
    """
    printed, complaints = folder / f"{part.name}.jsonl", folder / f"{part.name}.log"
    start = time.monotonic()
    with open(printed, "wb") as stdout, open(complaints, "wb") as stderr:
        process = subprocess.Popen(
            list(part.command(seconds)), stdout=stdout, stderr=stderr, stdin=subprocess.DEVNULL, start_new_session=True
        )
        try:
            process.wait(seconds)
            state = "failed" if process.returncode else "done"
        except subprocess.TimeoutExpired:
            state = "over its limit"
        finally:
            end(process)
    outcome = Outcome(part.name, state, time.monotonic() - start)
    outcome.records = parse_records(printed.read_text(encoding="utf-8", errors="replace"))
    if state != "done":
        lines = complaints.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        outcome.complaint = "\n".join(lines[-COMPLAINT_LINES:])
    return outcome


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process, and those that it has left in its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run_all(parts: Sequence[Part], minutes: float, output: Path, begun: float) -> list[Outcome]:
    """Runs one part after the other; the report is written anew after each.

    Args:
        parts: In order.
        minutes: For all of them.
        output: Folder of the report.
        begun: Monotonic time from which the minutes count.
    """
    outcomes: list[Outcome] = []
    about = machine()
    for part in parts:
        left = begun + 60 * minutes - RESERVE - time.monotonic()
        if left < min(FEWEST_SECONDS, part.seconds):
            outcomes.append(Outcome(part.name, "no time left"))
        else:
            say(f"{part.name}: at most {min(part.seconds, left):.0f} s")
            try:
                outcomes.append(run_part(part, min(part.seconds, left), output))
            except OSError as error:
                outcomes.append(Outcome(part.name, "failed", complaint=str(error)))
            say(f"{part.name}: {outcomes[-1].state} after {outcomes[-1].seconds:.0f} s")
        write_report(output, about, outcomes)
    return outcomes


def write_report(output: Path, about: str, outcomes: Sequence[Outcome]) -> None:
    """Puts a new report in the place of the old one, at once."""
    content = {"machine": about, "parts": [vars(outcome) for outcome in outcomes]}
    unfinished = output / f"{REPORT}.partial"
    unfinished.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    os.replace(unfinished, output / REPORT)


def table(outcomes: Sequence[Outcome]) -> str:
    """All records but their details, and how each part went."""
    rows: list[tuple[str, str, str]] = []
    for outcome in outcomes:
        complaint = f": {outcome.complaint}" if outcome.complaint else ""
        rows.append((f"**{outcome.name}**", f"{outcome.seconds:.0f} s", _cell(outcome.state + complaint)))
        rows += [(outcome.name, _cell(record["what"]), _cell(_words(record))) for record in outcome.records]
    return markdown_table(("part", "what", "figures"), rows)


def _words(record: Record) -> str:
    for kind in ("skipped", "error"):
        if kind in record:
            return f"{kind}: {record[kind]}"
    return ", ".join(f"{name} {_shown(value)}" for name, value in record.get("figures", {}).items())


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}" if 0.1 <= abs(value) < 1e7 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _cell(text: str) -> str:
    return " / ".join(text.replace("|", "\\|").splitlines())


def chosen_parts(names: str | None, options: Options) -> list[Part]:
    """The parts that are asked for, in their order.

    Raises:
        BenchmarkError: There is no such part.
    """
    wanted = set(names.split(",")) if names else set(SCRIPTS) - set(ALWAYS_NAMED)
    if unknown := sorted(wanted - SCRIPTS.keys()):
        raise BenchmarkError(f"there is no part {', '.join(unknown)}; there are {', '.join(SCRIPTS)}")
    parts: list[Part] = []
    for name, (file, limit) in SCRIPTS.items():
        if name in wanted:
            seconds = min(limit * (TINY_PATIENCE if options.tiny else 1), options.seconds)
            parts.append(Part(name, partial(_command, file, name, options), seconds))
    return parts


def _command(file: str, name: str, options: Options, seconds: float) -> list[str]:
    return script(file, name, *replace(options, seconds=seconds).flags())


def corpora_folder(given: Path | None, tiny: bool) -> Path | None:
    """The folder named, or the one of the environment; None for generated text."""
    if tiny:
        return None
    if given is not None and not given.is_dir():
        raise BenchmarkError(f"there is no folder {given}")
    named = os.environ.get("TFM_CORPORA")
    return given.resolve() if given is not None else Path(named).resolve() if named else None


def main() -> None:
    """Parses the command line, runs the parts, prints the table."""
    begun = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    scratch = HERE / "scratch"
    parser.add_argument("--output", type=Path, default=scratch / "gpu-report", metavar="DIR", help="for the report")
    parser.add_argument("--work", type=Path, default=scratch / "gpu", metavar="DIR", help="for runs and other files")
    parser.add_argument("--corpora", type=Path, metavar="DIR", help="holds multi30k and more; default: $TFM_CORPORA")
    parser.add_argument("--device", default="auto", help="as of tfm train; default: auto")
    parser.add_argument("--minutes", type=float, default=9.0, help="for everything; default: 9")
    parser.add_argument("--parts", metavar="A,B", help="default: all but wide")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes and generated text, to try the script")
    given = parser.parse_args()
    options = Options(
        output=given.output.resolve(),
        work=given.work.resolve(),
        corpora=corpora_folder(given.corpora, given.tiny),
        device=given.device,
        tiny=given.tiny,
        seconds=60 * given.minutes - RESERVE,
    )
    parts = chosen_parts(given.parts, options)
    for folder in (options.output, options.work):
        folder.mkdir(parents=True, exist_ok=True)
    outcomes = run_all(parts, given.minutes, options.output, begun)
    report = f"## With a GPU\n\n{machine()}\n\n{table(outcomes)}\n"
    (options.output / "table.md").write_text(report, encoding="utf-8")
    print(report)


if __name__ == "__main__":
    report_errors(main)
