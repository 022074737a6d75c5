"""Finding the run directory that a reading command means."""

from pathlib import Path

from ...system.errors import ModelError, UsageError
from ...system.reporter import Console
from .checkpoint import checkpoint_step
from .directory import RUNS, RunDirectory


def find_run(option: Path | None, console: Console) -> Path:
    """The run named by `--run`, or the only one in `runs/`."""
    if option is not None:
        named = RunDirectory(option)
        _refuse_part_of_run(named)
        if not named.path.is_dir():
            raise ModelError(f"there is no run {option}{_known()}; train one with tfm train --run {named.quoted}")
        return named.path
    if (run := only_run()) is not None:
        console.say(f"using the run {run}")
        return run
    if not (runs := list_runs()):
        raise UsageError("there is no run in runs/ yet; train one with tfm train, or name one that lies elsewhere")
    raise UsageError(f"runs/ holds several runs; name one with --run: {', '.join(map(str, runs))}")


def _refuse_part_of_run(named: RunDirectory) -> None:
    """Refuses a checkpoint or a file in a run, and names the run."""
    if named.checkpoints():
        return
    for around in map(RunDirectory, list(named.path.parents)[:2]):
        is_meant = named.path.exists() or around.path != Path()
        if is_meant and around.checkpoints():
            name, step = named.path.name, checkpoint_step(named.path)
            which = str(step) if step >= 0 else name if name in ("best", "last") else ""
            option = f" --checkpoint {which}" if which else ""
            raise ModelError(f"{named} is a part of the run {around}: give --run {around.quoted}{option}")


def list_runs(folder: Path | None = None) -> list[Path]:
    """The run directories in a folder, else in `runs/`, that hold a checkpoint; a start that failed is no run."""
    return sorted(run for run in (folder or RUNS).glob("*") if RunDirectory(run).checkpoints())


def only_run() -> Path | None:
    """The run that needs no name: the only one in `runs/`; None where there is none, or several."""
    runs = list_runs()
    return runs[0] if len(runs) == 1 else None


def _known() -> str:
    runs = list_runs()
    return f" (there are: {', '.join(map(str, runs))})" if runs else ""
