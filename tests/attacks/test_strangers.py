"""Runs, vocabularies, configurations and glossaries that a stranger has changed: they work, or are refused in a line.

Whatever happens, no code of theirs runs, nothing is written, nobody waits, and memory stays free.
"""

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from helpers import mutations
from helpers.forkserver import Ended, ForkServer
from helpers.mutations import make_match
from helpers.stranger import TEXT

from .conftest import MODELS, Share, Tell, cache_in, training_of

TRIES, PARTS = 10_000, 2
"""Tries of each of five runs, here and in `test_models`, and how many tests they are divided among."""
COMMANDS = 500
CODES = (2, 3, 4, 6)
"""Exit codes of commands: what is changed can also be the settings, which data there were, and weights that diverge."""
MEGABYTES, SECONDS = 200, 5
"""That a try may take beyond the size of what it reads; seconds of the processor, as the machine may be busy."""
LINE, LINES = 600, 12
"""Characters of a line, which may name all settings of a section, and lines: each problem of settings has its own."""
Mutation = Callable[[Path, Random], str]


@dataclass(frozen=True)
class Kind:
    """A kind of change.

    Attributes:
        mutation: What makes it.
        share: How often it is made, of a hundred.
        matching: How often hashes are made to match, of one.
        doors: Uses of what was changed, see `helpers.stranger`.
        codes: Exit codes with which it may be refused.
    """

    mutation: Mutation
    share: int
    matching: float
    doors: tuple[str, ...]
    codes: tuple[int, ...] = (2, 4)


RUN = ("translate", "translate", "info", "resume")
KINDS = [
    Kind(mutations.bytes_of_a_file, 18, 0.75, RUN),
    Kind(mutations.json_of_a_run, 28, 0.9, RUN),
    Kind(mutations.tensors_of_a_checkpoint, 22, 0.95, RUN),
    Kind(mutations.vocabulary, 10, 0.95, ("translate", "tokenize", "info")),
    Kind(mutations.configuration, 10, 0, ("configure", "info", "resume", "translate")),
    Kind(mutations.files, 8, 0, RUN),
    Kind(mutations.glossary, 4, 0, ("look up",), codes=(3,)),
]


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("model", ["translator", "separate", "decoder"])
def test_what_a_stranger_changed_works_or_is_refused_in_a_line(
    server: ForkServer,
    run_of: Callable[[str], Path],
    place: Path,
    share: Share,
    tell: Tell,
    model: str,
    part: int,
) -> None:
    base = run_of(model if share(0, 1) else "translator")
    tell(use_changed_runs(server, base, place, seeds(model, part, share(4, TRIES // PARTS))))


def seeds(model: str, part: int, count: int) -> list[str]:
    """Of so many tries."""
    return [f"{list(MODELS).index(model)} {part} {attempt}" for attempt in range(count)]


def use_changed_runs(server: ForkServer, base: Path, place: Path, tries: list[str]) -> str:
    """Uses changed copies of a run, one for each of these seeds, in processes that are watched; says how that ended."""
    codes, slowest = Counter[int](), 0.0
    for seed in tries:
        rng = Random(seed)
        kind = rng.choices(KINDS, [kind.share for kind in KINDS])[0]
        folder = place / "tries" / seed
        what = _change(base, folder, kind, rng)
        door = rng.choice(kind.doors)
        before = _everything(folder)
        ended = server.call("helpers.stranger:use", door, cwd=folder, env=cache_in(place)).wait(60)
        seconds, wrong = _judge(ended, folder, kind.codes)
        if _everything(folder) != before:
            wrong.append("it has changed files")
        assert not wrong, f"seed {seed!r}, {door}: {what}: {wrong}; exit {ended.code}: {ended.said[-1500:]}"
        codes[ended.code] += 1
        slowest = max(slowest, seconds)
        shutil.rmtree(folder)
    what = "changed runs, vocabularies and configurations"
    return f"{len(tries):,} {what}: {_summary(codes)}; the slowest took {slowest:.1f} s"


USES: dict[str, list[str]] = {
    "info": ["info", "--run", "run"],
    "translate": ["translate", "--run", "run", TEXT],
    "resume": ["train", "--run", "run", "--max-steps", "12"],
    "start from": ["train", "--run", "new", "--max-steps", "1", "--init-from", "run"],
    "evaluate": ["evaluate", "--run", "run", "--src", "dev.en", "--tgt", "dev.de"],
    "explain": ["explain", "--run", "run", "--output", "page.html", TEXT],
}
"""Commands that are given what was changed; those that train are told what the run was trained with, too."""


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("model", ["translator", "separate"])
def test_commands_that_are_given_what_a_stranger_changed(
    server: ForkServer,
    run_of: Callable[[str], Path],
    corpus_files: Path,
    place: Path,
    share: Share,
    tell: Tell,
    model: str,
    part: int,
) -> None:
    model = model if share(0, 1) else "translator"
    tries = share(1, COMMANDS // 2 // PARTS)
    base, codes = run_of(model), Counter[int]()
    for attempt in range(tries):
        seed = f"commands {model} {part} {attempt}"
        rng, folder = Random(seed), place / "tries" / seed
        kind = rng.choices(KINDS[:-1], [kind.share for kind in KINDS[:-1]])[0]
        what = _change(base, folder, kind, rng)
        shutil.copytree(corpus_files, folder, dirs_exist_ok=True)
        use = rng.choice(list(USES))
        arguments = USES[use] + (training_of(model) if USES[use][0] == "train" else [])
        before = _everything(folder / "outside")
        ended = server.run(*arguments, cwd=folder, env=cache_in(place), seconds=100)
        wrong = _wrong_lines(ended, CODES, quiet=USES[use][0] != "train")
        if _everything(folder / "outside") != before:
            wrong.append("it has changed what lies outside")
        assert not wrong, f"{seed}, {use}: {what}: {wrong}; exit {ended.code}: {ended.said[-1500:]}"
        codes[ended.code] += 1
        shutil.rmtree(folder)
    tell(f"{tries:,} commands on changed runs: {_summary(codes)}")


def _summary(codes: Counter[int]) -> str:
    """How tries ended, none of which did harm."""
    refused = [f"{codes[code]:,} refused with {code}" for code in sorted(codes) if code]
    return ", ".join([f"{codes[0]:,} worked", *refused, "0 did harm"])


def _change(base: Path, folder: Path, kind: Kind, rng: Random) -> str:
    """Makes a changed copy of a run, with something beside it that nobody is to touch; says what was changed."""
    (folder / "outside").mkdir(parents=True)
    (folder / "outside" / "file").write_text("as it was")
    run = folder / "run"
    mutations.copy(base, run)
    said = kind.mutation(run, rng)
    matching = rng.random() < kind.matching
    if matching:
        make_match(run)
    return said + (", hashes match" if matching else "")


def _everything(folder: Path) -> dict[str, tuple[int, ...]]:
    """What lies below a folder, by what changes when somebody writes there."""
    found: dict[str, tuple[int, ...]] = {}
    for parent, folders, names in os.walk(folder):
        for name in ["", *folders, *names]:
            path = os.path.join(parent, name)  # noqa: PTH118
            status = os.lstat(path)
            found[path] = (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino)
    return found


def _judge(ended: Ended, folder: Path, codes: tuple[int, ...]) -> tuple[float, list[str]]:
    """The seconds that a try took, and what is wrong with how it ended."""
    if ended.code < 0 or not ended.stdout:
        return 0.0, [f"signal {-ended.code}"]
    found = json.loads(ended.stdout.splitlines()[-1])
    wrong = [f"it did {one}" for one in found["did"]] + _wrong_lines(ended, codes)
    if found["seconds"] > SECONDS:
        wrong.append(f"it took {found['seconds']} s")
    if found["megabytes"] > MEGABYTES + _megabytes(folder):
        wrong.append(f"it took {found['megabytes']} MB")
    return found["seconds"], wrong


def _wrong_lines(ended: Ended, codes: tuple[int, ...], *, quiet: bool = True) -> list[str]:
    """What is wrong with an exit code and what was said; who is not quiet may say more."""
    lines = ended.said.splitlines()
    errors = [line for line in lines if line.startswith("tfm: error:")]
    wrong: list[str] = []
    if ended.code not in (0, *codes):
        wrong.append(f"exit code {ended.code}")
    if bool(errors) != bool(ended.code) or (ended.code != 2 and len(errors) > 1):
        wrong.append(f"{len(errors)} lines of errors")
    if (quiet and len(lines) > LINES) or any(len(line) > LINE for line in lines):
        wrong.append(f"{len(lines)} lines, the longest of {max(map(len, lines))} characters")
    return wrong


def _megabytes(folder: Path) -> float:
    """What the files below a folder hold; of those with holes what is there."""
    return (
        sum(path.lstat().st_blocks for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        * 512
        / 1e6
    )
