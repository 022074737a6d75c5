"""What the benchmarks share: contestants run in turn, their memory, ratios with their spread, tables, the machine.

A contestant is a command of its own process: thread counts, malloc settings and memory are its own too. It prints one
JSON object of figures as the last line of its standard output. `run_in_turn` runs A B C, A B C, .. so that whatever
disturbs the machine disturbs all alike; ratios are taken within a round.
"""

import contextlib
import importlib.util
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
TFM = [sys.executable, "-m", "tfm.cli"]
"""The command, of the same environment as the script."""

KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str((1 << 31) - 1)}
"""Tells glibc, before a process starts, to keep freed memory. tfm tells it so itself."""

TELLING_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", *KEEP_MEMORY)
"""If set by whoever runs a script, all contestants inherit them: the report says so."""

POLL_SECONDS = 0.5
"""Between two looks at the memory of a contestant; each costs the machine a few milliseconds."""

DISTRIBUTIONS = ("tfm", "torch", "transformers", "ctranslate2", "sentencepiece", "sacrebleu", "numpy")


class BenchmarkError(Exception):
    """A contestant failed, or there is nothing to compare."""


@dataclass(frozen=True)
class Contestant:
    """One of the things compared.

    Attributes:
        name: Its name in tables.
        command: Prints the figures.
        settings: What is worth knowing about how it runs.
        environment: Variables of its process beside ours.
        needs: Modules without which it is skipped.
    """

    name: str
    command: Sequence[str | Path]
    settings: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()


def under(contestant: Contestant, environment: dict[str, str]) -> Contestant:
    """The same contestant with more variables in its environment."""
    return replace(contestant, environment=contestant.environment | environment)


class Memory(NamedTuple):
    """Physical memory in bytes, pages shared by several processes counted once (PSS).

    Attributes:
        total: All of it.
        without_files: Without pages of mapped files, which the kernel takes back when memory is short.
    """

    total: int
    without_files: int


@dataclass(frozen=True)
class Measurement:
    """What one process of a contestant gave.

    Attributes:
        figures: As it printed them.
        peak_memory: Of the process and its children together; None where /proc is not to be had.
    """

    figures: dict[str, Any]
    peak_memory: Memory | None


Results = dict[str, list[Measurement]]
"""The measurements of each contestant, one a round."""


def stream_lines(path: Path) -> Iterator[str]:
    """The lines of a text file, one by one.

    Raises:
        BenchmarkError: It is not UTF-8.
    """
    with open(path, encoding="utf-8", newline="\n") as file:
        try:
            for line in file:
                yield line.rstrip("\n")
        except UnicodeDecodeError as error:
            raise BenchmarkError(f"{path} is not UTF-8: {error}") from error


def read_lines(path: Path) -> list[str]:
    """All of them."""
    return list(stream_lines(path))


def say(text: str) -> None:
    """Something about the progress, to standard error."""
    print(text, file=sys.stderr, flush=True)


def script(name: str, *arguments: object) -> list[str]:
    """The command that runs one of the scripts of this folder."""
    return [sys.executable, str(HERE / name), *map(str, arguments)]


def present(contestants: Sequence[Contestant]) -> list[Contestant]:
    """The contestants whose modules are installed; says which are skipped."""
    found: list[Contestant] = []
    for contestant in contestants:
        missing = [module for module in contestant.needs if importlib.util.find_spec(module) is None]
        if missing:
            note(f"{contestant.name} skipped: {', '.join(missing)} not installed (see benchmarks/requirements.txt)")
        else:
            found.append(contestant)
    return found


def note(text: str) -> None:
    """A line of the report itself, to standard output."""
    print(f"{text}\n", flush=True)


def run_in_turn(contestants: Sequence[Contestant], rounds: int) -> Results:
    """Measures each contestant once a round, in the order given.

    Raises:
        BenchmarkError: One of them failed.
    """
    results: Results = {contestant.name: [] for contestant in contestants}
    for number in range(1, rounds + 1):
        for contestant in contestants:
            say(f"round {number} of {rounds}: {contestant.name}")
            results[contestant.name].append(measure(contestant))
    return results


def measure(contestant: Contestant) -> Measurement:
    """Runs a contestant once, watching its memory.

    Raises:
        BenchmarkError: It failed, or printed no figures.
    """
    output, peak = run_watched(list(map(str, contestant.command)), contestant.environment)
    try:
        return Measurement(json.loads(output.splitlines()[-1]), peak)
    except (ValueError, IndexError) as error:
        raise BenchmarkError(f"{contestant.name} printed no figures: {output[-500:]!r}") from error


def run_watched(command: list[str], environment: dict[str, str] | None = None) -> tuple[str, Memory | None]:
    """Runs a command to its end.

    Returns:
        Its standard output, and the greatest memory of its process tree, each of the two figures when it was greatest.

    Raises:
        BenchmarkError: It failed; with the end of what it wrote to standard error.
    """
    peak: Memory | None = None
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        env = {**os.environ, **(environment or {})}
        process = subprocess.Popen(command, stdout=stdout, stderr=stderr, env=env, start_new_session=True)
        try:
            while process.poll() is None:
                if now := tree_memory(process.pid):
                    peak = Memory(*map(max, now, peak or now))
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_SECONDS)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        stdout.seek(0)
        stderr.seek(0)
        if process.returncode:
            complaint = "\n".join(stderr.read().decode(errors="replace").splitlines()[-15:])
            raise BenchmarkError(f"{' '.join(command)} ended with {process.returncode}:\n{complaint}")
        return stdout.read().decode(), peak


def output_of(command: list[str]) -> str:
    """The standard output of a whole command.

    Raises:
        BenchmarkError: It failed.
    """
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.decode()[-500:]}")
    return done.stdout.decode()


def seconds_of(command: list[str]) -> float:
    """The wall-clock time of a whole command.

    Raises:
        BenchmarkError: It failed.
    """
    start = time.perf_counter()
    output_of(command)
    return time.perf_counter() - start


def tree_memory(pid: int) -> Memory | None:
    """What a process and its descendants take now."""
    sums, found, pending = {"Pss": 0, "Pss_File": 0}, False, [pid]
    while pending:
        process = Path("/proc") / str(pending.pop())
        try:
            for children in (process / "task").glob("*/children"):
                pending.extend(map(int, children.read_text().split()))
            for line in (process / "smaps_rollup").read_text().splitlines():
                name, _, rest = line.partition(":")
                if name in sums:
                    sums[name] += 1024 * int(rest.split()[0])
                    found = True
        except (OSError, ValueError):
            continue  # ended while we looked, or a system without these files
    return Memory(sums["Pss"], sums["Pss"] - sums["Pss_File"]) if found else None


def figures(results: Results, name: str, key: str) -> list[float]:
    """One figure of a contestant, round by round."""
    return [float(measurement.figures[key]) for measurement in results[name]]


def ratios(numerator: Sequence[float], denominator: Sequence[float]) -> list[float]:
    """Round by round."""
    return [a / b for a, b in zip(numerator, denominator, strict=True)]


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The median, and the least and the greatest value: `2.10 (2.05 .. 2.20)`."""
    middle = f"{statistics.median(values):,.{digits}f}"
    if len(values) == 1:
        return f"{middle} (one round)"
    return f"{middle} ({min(values):,.{digits}f} .. {max(values):,.{digits}f})"


def peak_megabytes(results: Results, name: str) -> str:
    """The greatest memory of all rounds, in MB."""
    peaks = [measurement.peak_memory for measurement in results[name]]
    return "not measured" if None in peaks else f"{max(peak.total for peak in peaks if peak) / 1e6:,.0f}"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table ready to paste."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def machine() -> str:
    """Date, commit, processor, memory, load, versions: what a figure means nothing without."""
    versions = {name: _version(name) for name in DISTRIBUTIONS}
    return "\n".join(
        (
            f"* date {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {_commit()}",
            f"* {_processor()}; {cores()} cores usable, {_memory()}; load when started {_load()}",
            f"* {platform.system()} {platform.release()}, Python {platform.python_version()}, "
            + ", ".join(f"{name} {version}" for name, version in versions.items() if version)
            + "".join(f"; {name}={os.environ[name]}" for name in TELLING_VARIABLES if name in os.environ),
        )
    )


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _commit() -> str:
    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    try:
        return (git("rev-parse", "--short=12", "HEAD") or "unknown") + (" with changes" if git("status", "-s") else "")
    except OSError:
        return "unknown"


def _processor() -> str:
    name = _of_processor("model name") or platform.processor() or platform.machine()
    fast = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if flag in processor_flags()]
    return name + (f" ({', '.join(fast)})" if fast else "")


def processor_flags() -> list[str]:
    """The instructions that Linux lists for the processor; none elsewhere."""
    return _of_processor("flags").split()


def _of_processor(key: str) -> str:
    information = Path("/proc/cpuinfo")
    if not information.exists():
        return ""
    fields = [line.partition(":") for line in information.read_text().splitlines()]
    return next((value.strip() for name, _, value in fields if name.strip() == key), "")


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB memory"
    except (ValueError, OSError, AttributeError):
        return "memory unknown"


def _load() -> str:
    return f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown"


def measured(records: Sequence[tuple[float, float]], warmup: float, seconds: float) -> bool:
    """Whether records of (seconds, work done so far) span warm-up and measurement, however slow a step is."""
    first, last = records[0][0], records[-1][0]
    steady = [record for record in records if record[0] >= first + warmup]
    return len(steady) > 1 and last >= first + warmup + seconds


def throughput(records: Sequence[tuple[float, float]], warmup: float) -> float:
    """Work per second, from (seconds, work done so far), leaving the first seconds out.

    Raises:
        BenchmarkError: Too few records after the warm-up.
    """
    start = next((record for record in records if record[0] >= records[0][0] + warmup), None)
    if start is None or records[-1][0] <= start[0]:
        raise BenchmarkError(f"{len(records)} records are too few to measure after {warmup:g} s of warm-up")
    return (records[-1][1] - start[1]) / (records[-1][0] - start[0])


def report_errors(main: Callable[[], None]) -> None:
    """Runs a script; what went wrong becomes one message and exit code 1. A contestant does not outlive it."""
    from tfm.system.errors import TfmError

    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        main()
    except (BenchmarkError, TfmError, OSError) as error:
        sys.exit(f"error: {error}")
    except ModuleNotFoundError as error:
        sys.exit(f"error: {error.name} is not installed (see benchmarks/requirements.txt)")
