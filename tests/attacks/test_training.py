"""What a run may be put through: stops, other cadences and surroundings, races, numbers that are not finite."""

import random
import re
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
from helpers.forkserver import Ended, ForkServer, Job
from helpers.hooks import PLACES
from helpers.tiny_command import RUN, Settings, command, differences, fingerprint, unsound

from tfm.configs import merge
from tfm.engine.runs.checkpoint import checkpoint_step, read_state
from tfm.engine.runs.directory import RunDirectory

PARTS = 4


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """At scale an attack is divided, so that two processes have work."""
    if "part" in metafunc.fixturenames:
        metafunc.parametrize("part", range(PARTS if metafunc.config.getoption("--at-scale") else 1))


def train(server: ForkServer, folder: Path, corpus: Path, settings: Settings, **options: Any) -> Ended:
    """Trains the tiny run with other settings in a folder."""
    return server.run(*command(folder, corpus, settings), cwd=folder, **options)


@pytest.fixture(scope="module")
def steps(request: pytest.FixtureRequest) -> int:
    """Of the run that is stopped, raced for, and so on."""
    return 60 if request.config.getoption("--at-scale") else 20


@pytest.fixture(scope="module")
def settings(steps: int) -> Settings:
    """Of that run: it is saved three times and validated twice."""
    cadence = {"checkpoint_every": steps // 3, "validate_every": steps // 2, "keep_checkpoints": 1}
    return {"training": {"precision": "fp32", "max_steps": steps, **cadence}}


@pytest.fixture(scope="module")
def whole(
    server: ForkServer, corpus_files: Path, settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """The files of that run when nothing happens to it."""
    folder = tmp_path_factory.mktemp("whole")
    assert train(server, folder, corpus_files, settings).code == 0
    assert read_state(RunDirectory(folder / RUN).find_model("last").checkpoint)["progress"]["epoch"] >= 1
    return fingerprint(folder)


# --- stops ---


def test_stopped_after_any_step_it_goes_on_to_the_same_end(
    server: ForkServer,
    corpus_files: Path,
    tmp_path: Path,
    steps: int,
    settings: Settings,
    whole: dict[str, str],
    share: Any,
    tell: Any,
    part: int,
) -> None:
    """Once; after each update; and twice in an epoch."""
    plans = [*([step] for step in range(1, steps + 1)), *([step, 1] for step in range(1, steps, 7)), [1] * steps]
    plans = share([[7, 2]], plans[part::PARTS])
    for number, plan in enumerate(plans):
        folder = tmp_path / str(number)
        for updates in plan:
            stopped = train(server, folder, corpus_files, settings, before="helpers.hooks:stop_after", told=updates)
            assert stopped.code == 128 + signal.SIGTERM, (plan, stopped.said)
        assert train(server, folder, corpus_files, settings).code == 0
        found = differences(fingerprint(folder), whole)
        assert not found, f"stopped after so many updates: {plan}; {found} differ"
    tell(f"{sum(map(len, plans))} stops in {len(plans)} runs of {steps} steps: 0 differences")


# --- cadence and surroundings ---

CADENCES = [(log, save, keep) for log in (1, 3, 100) for save in (1, 7, 50, 10_000) for keep in (1, 5)]
LEARNED = ("model.safetensors", "ema.safetensors", "optimizer.safetensors")


def test_cadence_changes_no_weight_no_moment_and_no_figure(
    server: ForkServer,
    corpus_files: Path,
    tmp_path: Path,
    steps: int,
    settings: Settings,
    whole: dict[str, str],
    share: Any,
    tell: Any,
    part: int,
) -> None:
    """Of logging, saving and keeping. How often is logged changes the log of the training, not that of validations."""
    cadences = share([(1, 7, 5)], CADENCES[part::PARTS])
    validations = set[str]()
    for log, save, keep in cadences:
        cadence = {"log_every": log, "checkpoint_every": save, "keep_checkpoints": keep}
        folder = tmp_path / f"{log}-{save}-{keep}"
        assert train(server, folder, corpus_files, merge(settings, {"training": cadence})).code == 0
        found = fingerprint(folder)
        for name in LEARNED:
            path = f"checkpoints/step-{steps:06d}/{name}"
            assert found[path] == whole[path], (path, cadence)
        lines = (folder / RUN / "metrics.jsonl").read_text().splitlines(keepends=True)
        validations.add("".join(line for line in lines if '"validation"' in line))
        if log == 3:
            assert found["metrics.jsonl"] == whole["metrics.jsonl"], cadence
    assert len(validations) == 1
    tell(f"{len(cadences)} cadences of logging, saving and keeping: 0 differences")


SURROUNDINGS: list[tuple[str, dict[str, str]]] = [
    ("all at once, höher", {"PYTHONHASHSEED": "1", "LC_ALL": "C", "LANG": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu"}),
    ("a", {"PYTHONHASHSEED": "0"}),
    ("b", {"PYTHONHASHSEED": "4294967295"}),
    ("c", {"LC_ALL": "C.UTF-8", "LANG": "de_DE.UTF-8"}),
    ("d", {"LC_ALL": "POSIX"}),
    ("e", {"TZ": "America/St_Johns"}),
    ("/".join(["deep"] * 30), {}),
    ("-it's 100% $HOME;\n*", {}),
]


def test_surroundings_change_nothing(
    server: ForkServer,
    corpus_files: Path,
    tmp_path: Path,
    steps: int,
    settings: Settings,
    whole: dict[str, str],
    share: Any,
    tell: Any,
    part: int,
) -> None:
    """Seeds of hashes, languages, time zones, names of directories: with the installed command."""
    surroundings = share(SURROUNDINGS[:1], SURROUNDINGS[part::PARTS])
    for name, env in surroundings:
        folder = tmp_path / "runs" / name
        arguments = command(tmp_path / "here", corpus_files, settings)
        arguments[arguments.index(RUN)] = str(folder / RUN)
        ended = server.call("helpers.forkserver:installed", *arguments, cwd=tmp_path / "here", env=env).wait()
        assert ended.code == 0, (name, env, ended.said)
        found = set(differences(fingerprint(folder), whole)) - {"learning_curve.png"}  # it is not drawn when forked
        assert not found, (name, env, found)
    tell(f"{len(surroundings)} surroundings: 0 differences")


# --- races ---


def test_of_processes_that_start_at_once_in_one_directory_one_trains(
    server: ForkServer,
    corpus_files: Path,
    tmp_path: Path,
    steps: int,
    settings: Settings,
    whole: dict[str, str],
    share: Any,
    tell: Any,
    part: int,
) -> None:
    """Of every two races the first is for a new directory; its winner is killed, and the second is for what it left."""
    draw, slowest, refused = random.Random(part), 0.0, 0
    races = share(2, 52 // PARTS)
    for number in range(races):
        folder = tmp_path / str(number // 2)
        winner, seconds = _race(server, folder, command(folder, corpus_files, settings), share(2, draw.randint(2, 5)))
        slowest, refused = max(slowest, *seconds), refused + len(seconds)
        if number % 2 == 0:
            winner.ended(draw.random())
            winner.kill()
            assert winner.wait().code in (-signal.SIGKILL, 0)  # on a fast machine it has come to its end
            continue
        ended = winner.wait()
        assert ended.code == 0, ended.said
        assert not differences(fingerprint(folder), whole)
    assert slowest < share(20, 1)
    tell(f"{races} races, each won by one process; {refused} others ended with exit 5 within {slowest:.2f} s")


def _race(server: ForkServer, folder: Path, arguments: list[str], count: int) -> tuple[Job, list[float]]:
    """Lets processes begin at once; returns the one that trains, and after how many seconds each other one ended."""
    signs = folder / "signs"
    shutil.rmtree(signs, ignore_errors=True)
    signs.mkdir()
    told = [{name: str(signs / f"{name}-{i}") for name in ("ready", "refused")} for i in range(count)]
    common = {name: str(signs / name) for name in ("start", "train")}
    jobs = [server.start(*arguments, cwd=folder, before="helpers.hooks:race", told=one | common) for one in told]
    _wait_until(lambda: all(Path(one["ready"]).exists() for one in told))
    (signs / "start").touch()
    ended = dict[int, float]()

    def all_but_one_have_ended() -> bool:
        ended.update({i: time.monotonic() for i in range(count) if i not in ended and jobs[i].ended() is not None})
        return len(ended) >= count - 1

    _wait_until(all_but_one_have_ended)
    (winner,) = (job for i, job in enumerate(jobs) if i not in ended)
    for loser in (jobs[i].wait() for i in ended):
        assert loser.code == 5, loser
        assert loser.said.count("\n") == 1 and "is in use by another tfm process" in loser.said, loser
    (signs / "train").touch()
    return winner, [when - float(Path(told[i]["refused"]).read_text()) for i, when in ended.items()]


def _wait_until(true: Callable[[], bool]) -> None:
    last = time.monotonic() + 60
    while not true():
        assert time.monotonic() < last
        time.sleep(0.001)


# --- numbers that are not finite ---

POISONED: Settings = {
    "training": {
        "precision": "fp32",
        "max_steps": 24,
        "checkpoint_every": 4,
        "validate_every": 8,
        "keep_checkpoints": 10,
        "best_metric": "loss",
    }
}
OPTIMIZERS: dict[str, Settings] = {
    "adamw": {},
    "muon": {"optimizer": "muon"},
    "adamw, much decay": {"weight_decay": 0.1},
}
PASSING = ("loss", "gradient")
"""What is poisoned for one or two updates and then as before: these are skipped. All else does not heal."""


def test_a_number_that_is_not_finite_is_never_saved(
    server: ForkServer, corpus_files: Path, tmp_path: Path, share: Any, tell: Any, part: int
) -> None:
    skipped = stopped = 0
    attempts = share([4], range(part, 100, PARTS))
    clean: dict[str, dict[str, str]] = {}
    for number in attempts:
        draw = random.Random(number)
        name = sorted(OPTIMIZERS)[number % 3 if share(0, 1) else 0]
        settings = merge(POISONED, {"training": OPTIMIZERS[name]})
        if name not in clean:
            assert train(server, tmp_path / name, corpus_files, settings).code == 0
            clean[name] = fingerprint(tmp_path / name)
        told = {
            "place": PLACES[number % len(PLACES)],
            "value": draw.choice(("nan", "inf", "-inf")),
            "step": draw.randint(2, 24),
            "updates": draw.choice((1, 2, 99)) if PLACES[number % len(PLACES)] in PASSING else 1,
            "draw": number,
        }
        if _poison(server, tmp_path / str(number), corpus_files, settings, told, clean[name]):
            skipped += 1
        else:
            stopped += 1
    tell(f"{len(attempts)} numbers that are not finite: {skipped} times skipped, {stopped} times exit 6; none saved")


def _poison(
    server: ForkServer, folder: Path, corpus: Path, settings: Settings, told: dict[str, Any], clean: dict[str, str]
) -> bool:
    """Trains with such a number, sees what is saved, and goes on without; returns whether training came to its end."""
    ended = train(server, folder, corpus, settings, before="helpers.hooks:poison", told=told)
    what = f"{told}, {settings['training']}: exit {ended.code}, {ended.said}"
    saved = _check_all_is_finite(folder, what)
    assert ended.code in (0, 6) and "Traceback" not in ended.said, what
    if ended.code == 0:
        assert told["place"] in PASSING and min(told["updates"], 25 - told["step"]) < 3, what
        return True
    (line,) = (line for line in ended.said.splitlines() if "training diverged" in line)
    step = re.search(r"diverged at step (\d+)", line)
    assert step is not None, what
    assert told["step"] <= int(step[1]) <= told["step"] + POISONED["training"]["validate_every"], what
    assert (f"Last good checkpoint: step {saved[-1]}" in line) if saved else "Last good" not in line, what
    again = train(server, folder, corpus, settings)
    assert again.code == 0, (what, again.said)
    _check_all_is_finite(folder, what)
    if told["place"] not in PASSING:
        found = differences(fingerprint(folder), clean)
        assert not found, f"{what}; without the number, it did not come to what it would have been: {found}"
    return False


def _check_all_is_finite(folder: Path, what: str) -> list[int]:
    """Sees that all checkpoints are sound, and that all numbers in them are finite; returns their steps."""
    run = RunDirectory(folder / RUN)
    assert not unsound(folder), what
    for checkpoint in run.checkpoints():
        for path in checkpoint.glob("*.safetensors"):
            tensors = safetensors.torch.load(path.read_bytes())
            assert all(bool(tensor.isfinite().all()) for tensor in tensors.values()), (path, what)
        for path in checkpoint.glob("*.json"):
            numbers = re.findall(r"NaN|Infinity", path.read_text())
            assert not numbers, (path, what)
    if run.checkpoints():
        best = read_state(run.find_model("best").checkpoint)
        scores = [state["score"] for state in map(read_state, run.checkpoints()) if state["score"] is not None]
        assert best["score"] == (max(scores) if scores else None), what
    return [checkpoint_step(checkpoint) for checkpoint in run.checkpoints()]
