"""The tiny run as the command line trains it, in a folder of its own, and the hashes of all that it leaves."""

import json
from pathlib import Path
from typing import Any

from helpers.command import records
from helpers.tiny_run import TINY

from tfm.configs import merge
from tfm.engine.runs.directory import RunDirectory
from tfm.system.files import sha256_file

RUN = "run"
"""The run directory, in the folder in which the command is started: a copy of the folder goes on by itself."""
_CLOCKS = "timing.jsonl"
_NOT_COMPARED = {".lock", _CLOCKS}

Settings = dict[str, Any]


def command(folder: Path, corpus: Path, settings: Settings) -> list[str]:
    """The arguments of `tfm` that train the tiny run with other settings; started in `folder`.

    Args:
        folder: Receives a configuration; made if it is not there.
        corpus: The folder of the fixture `corpus_files`.
        settings: Sections of settings. Without a section `data` it trains on the pairs.
    """
    names = {"src": "train.en", "tgt": "train.de", "dev_src": "dev.en", "dev_tgt": "dev.de"}
    data = settings.get("data", names)
    found = {"data": {key: [str(corpus / name)] for key, name in data.items()}}
    folder.mkdir(parents=True, exist_ok=True)
    configuration = folder / "tiny.yaml"  # JSON is YAML
    configuration.write_text(json.dumps(merge(merge(TINY, settings), found)), encoding="utf-8")
    return ["train", "--run", RUN, "--config", str(configuration)]


def fingerprint(folder: Path) -> dict[str, str]:
    """Hashes of all files of the run in a folder, by name; of clocks the steps at which they were read."""
    run = folder / RUN
    names = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()} - _NOT_COMPARED
    hashes = {name: sha256_file(run / name) for name in sorted(names)}
    clocks = records(run / _CLOCKS) if (run / _CLOCKS).exists() else []
    return hashes | {_CLOCKS: str([record["step"] for record in clocks])}


def differences(found: dict[str, str], expected: dict[str, str]) -> list[str]:
    """The names of files that differ, or that only one of two runs has."""
    return sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))


def unsound(folder: Path) -> list[str]:
    """What is wrong with the checkpoints of the run in a folder."""
    return RunDirectory(folder / RUN).sound_checkpoints()[1]
