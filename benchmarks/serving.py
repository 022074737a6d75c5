"""`tfm serve` under load: how long requests take, alone and with others beside them, and whether its memory grows.

Each client asks for one sentence after the other, as fast as it gets answers. The clients are threads of this process.

    python benchmarks/serving.py --run en-de=runs/mine --input test.en --clients 64 --seconds 60
"""

import argparse
import contextlib
import itertools
import json
import math
import re
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from common import TFM, BenchmarkError, machine, markdown_table, read_lines, report_errors, say

_LISTENING = re.compile(r"listening on (http://\S+)")
_PATIENCE = 120.0
"""Seconds that a client waits for an answer."""


@contextlib.contextmanager
def serving(run: str) -> Iterator[tuple[str, int]]:
    """A server: its address and the number of its process."""
    command = [*TFM, "serve", "--run", run, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        while not (address := _LISTENING.search(said)):
            if not (line := process.stderr.readline()):
                raise BenchmarkError(f"tfm serve ended:\n{said}")
            said += line
        try:
            yield address[1], process.pid
        finally:
            process.terminate()


def ask(url: str, text: str, languages: tuple[str, str]) -> float:
    """Has a text translated. Returns the seconds that it took.

    Raises:
        BenchmarkError: There was no translation.
    """
    body = json.dumps({"q": text, "source": languages[0], "target": languages[1]}).encode()
    request = urllib.request.Request(f"{url}translate", body, {"content-type": "application/json"})
    start = time.perf_counter()
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
            found = json.load(answer)
    except (OSError, ValueError) as error:
        raise BenchmarkError(f"no answer: {error}") from error
    if not isinstance(found.get("translatedText"), str):
        raise BenchmarkError(f"no translation: {found}")
    return time.perf_counter() - start


def load(
    url: str, texts: Sequence[str], languages: tuple[str, str], clients: int, seconds: float, requests: float = math.inf
) -> tuple[list[float], float]:
    """Lets clients ask for so long, or until they have asked so often.

    Returns:
        The seconds of each request, and of all together.
    """
    numbers, start = itertools.count(), time.perf_counter()

    def client() -> list[float]:
        times: list[float] = []
        for number in numbers:  # the clients share them
            if time.perf_counter() - start >= seconds or number >= requests:
                break
            times.append(ask(url, texts[number % len(texts)], languages))
        return times

    with ThreadPoolExecutor(clients) as pool:
        waiting = [pool.submit(client) for _ in range(clients)]
        times = [one for each in waiting for one in each.result()]
    return times, time.perf_counter() - start


def resident(pid: int) -> float:
    """Megabytes of memory that a process has."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1000


def row(clients: int, times: Sequence[float], seconds: float) -> tuple[str, ...]:
    """Figures of one load."""
    ordered = sorted(times)
    p50, p99 = (1000 * ordered[min(int(len(ordered) * share), len(ordered) - 1)] for share in (0.5, 0.99))
    return f"{clients}", f"{len(times):,}", f"{len(times) / seconds:,.1f}", f"{p50:,.0f}", f"{p99:,.0f}"


def main() -> None:
    """Parses the command line, loads the server, prints tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True, metavar="SRC-TGT=RUN", help="as of tfm serve")
    parser.add_argument("--input", type=Path, required=True, metavar="FILE", help="sentences")
    parser.add_argument("--clients", type=int, default=64, metavar="N", help="at once; default: 64")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each load; default: 60")
    parser.add_argument(
        "--requests", type=int, default=0, metavar="N", help="then so many more, and memory; default: 0"
    )
    given = parser.parse_args()
    codes = given.run.partition("=")[0].split("-")
    if len(codes) != 2:
        raise BenchmarkError(f"--run {given.run}: the languages are needed, such as en-de={given.run}")
    languages = codes[0], codes[1]
    texts = read_lines(given.input)
    with serving(given.run) as (url, pid):
        load(url, texts, languages, 4, 2.0)
        rows: list[tuple[str, ...]] = []
        for clients in (1, given.clients):
            say(f"{clients} clients for {given.seconds:g} s")
            rows.append(row(clients, *load(url, texts, languages, clients, given.seconds)))
        before = resident(pid)
        if given.requests:
            say(f"{given.requests:,} requests")
            load(url, texts, languages, given.clients, math.inf, given.requests)
        after = resident(pid)
    print(f"## A server\n\n{machine()}\n")
    print(markdown_table(("clients", "requests, all answered", "a second", "p50, ms", "p99, ms"), rows))
    if given.requests:
        print(f"\nMemory after these {before:,.0f} MB, after {given.requests:,} more requests {after:,.0f} MB.")


if __name__ == "__main__":
    report_errors(main)
