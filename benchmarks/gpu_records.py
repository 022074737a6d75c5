"""What the parts of gpu.py share: their command line, and the records that they print as they go, one JSON line each.

A part may be killed at any time: what it has printed by then is kept. A record is `{"what": .., "figures": {..}}`, with
`detail` beside it if there is more than a table can show, or `{"what": .., "error": ..}`, or `{"what": ..,
"skipped": ..}`.
"""

import argparse
import json
import math
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPORT = "gpu.json"
COMPLAINT_LINES = 6
"""Of an error, from its end."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """What a part is told.

    Attributes:
        output: Folder of the report, which holds what earlier parts have measured.
        work: Folder for everything else.
        corpora: Holds `multi30k` and `tatoeba_en_fr`; None for generated text.
        device: As `tfm train --device`.
        tiny: Sizes that a CPU computes in seconds.
        seconds: How long the part may take.
    """

    output: Path
    work: Path
    corpora: Path | None
    device: str
    tiny: bool
    seconds: float

    def flags(self) -> list[str]:
        """The same for a command line."""
        given = {"output": self.output, "work": self.work, "corpora": self.corpora, "device": self.device}
        given["seconds"] = self.seconds
        flags = [part for name, value in given.items() if value is not None for part in (f"--{name}", str(value))]
        return [*flags, "--tiny"] if self.tiny else flags


def emit(what: str, *, detail: Any = None, **figures: Any) -> None:
    """Prints what was measured."""
    record = {"what": what, "figures": {name: _rounded(value) for name, value in figures.items()}}
    print(json.dumps(record if detail is None else record | {"detail": detail}), flush=True)


def skip(what: str, why: str) -> None:
    """Prints why something was not measured."""
    print(json.dumps({"what": what, "skipped": why}), flush=True)


@contextmanager
def attempt(what: str) -> Iterator[None]:
    """Lets nothing that fails inside it end what comes after it: prints the end of the error."""
    try:
        yield
    except ModuleNotFoundError as error:
        skip(what, f"{error.name} is not installed")
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        last = str(error).strip().splitlines()[-COMPLAINT_LINES:]
        print(json.dumps({"what": what, "error": "\n".join([type(error).__name__, *last])}), flush=True)


def _rounded(value: Any) -> Any:
    """Six figures are enough; what JSON has no number for becomes a word."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else str(value)


def parse_records(text: str) -> list[Record]:
    """The records among the lines that a part has printed; the last line may be cut off, and libraries print, too."""
    records: list[Record] = []
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and "what" in record:
            records.append(record)
    return records


def known(options: Options, part: str, what: str, figure: str) -> Any | None:
    """A figure of an earlier part; None if it was not measured."""
    report = options.output / REPORT
    if not report.is_file():
        return None
    for one in json.loads(report.read_text(encoding="utf-8"))["parts"]:
        if one["name"] == part:
            for record in one["records"]:
                if record["what"] == what and figure in record.get("figures", {}):
                    return record["figures"][figure]
    return None


def run_part(parts: Mapping[str, Callable[[Options], None]]) -> None:
    """Runs the part that the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=parts)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--corpora", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--seconds", type=float, required=True)
    given = vars(parser.parse_args())
    parts[given.pop("part")](Options(**given))
