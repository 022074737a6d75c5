"""The short set in one report: training, then decoding and latency. What `make bench` runs."""

import argparse
import subprocess
import sys
from pathlib import Path

from common import script

SCRIPTS = ("training.py", "decoding.py")


def main() -> None:
    """Runs the scripts one after the other; a failure of one does not keep the others from running."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, help="as for the scripts")
    parser.add_argument("--work", type=Path, help="as for the scripts")
    parser.add_argument("--rounds", type=int, default=2, help="as for the scripts; default: 2, to keep it short")
    parser.add_argument("--run", type=Path, help="as for decoding.py")
    options = parser.parse_args()
    failed: list[str] = []
    for name in SCRIPTS:
        given = {key: value for key, value in vars(options).items() if value is not None}
        if name != "decoding.py":
            given.pop("run", None)
        flags = [part for key, value in given.items() for part in (f"--{key}", value)]
        if subprocess.run(script(name, *flags), check=False).returncode:
            failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
