"""One contestant of training.py: the command `tfm train` itself, stopped after some seconds."""

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from common import TFM, measured, throughput

POLL_SECONDS = 0.2
INTERRUPTED = 143
"""Exit code of a tfm that saved and stopped on SIGTERM."""


def records(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a JSON Lines file, none if it is not there yet."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


def main() -> None:
    """Trains and prints target tokens per second, from the token counts and clocks of the run's own logs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prepared", type=Path, required=True, help="holds config.yaml and a run with its caches")
    parser.add_argument("--warmup", type=float, required=True, help="seconds left out")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="K=V")
    options = parser.parse_args()

    run = options.prepared / "timed"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(options.prepared / "run", run)
    command = [*TFM, "train", "--config", str(options.prepared / "config.yaml"), "--run", str(run)]
    command += [part for setting in options.settings for part in ("--set", setting)]
    process = subprocess.Popen(command)
    try:
        timing = wait(process, run, options.warmup, options.seconds)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)  # SIGINT is ignored where a shell runs this in the background
            process.wait()
    if process.returncode not in (0, INTERRUPTED):
        sys.exit(process.returncode)
    tokens = {record["step"]: record["tokens"] for record in records(run / "metrics.jsonl") if "tokens" in record}
    done = [(record["seconds"], tokens[record["step"]]) for record in timing]
    figures = {"tokens_per_second": throughput(done, options.warmup), "steps": timing[-1]["step"]}
    print(json.dumps({**figures, "setup": json.loads((run / "setup.json").read_text())}))


def wait(process: subprocess.Popen[bytes], run: Path, warmup: float, seconds: float) -> list[dict[str, Any]]:
    """The run's clock readings, once they span so many seconds or the process has ended."""
    while True:
        ended = process.poll() is not None
        timing = records(run / "timing.jsonl")
        clock = [(record["seconds"], 0.0) for record in timing]
        if ended or (clock and measured(clock, warmup, seconds)):
            return timing
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    main()
