"""What a test arranges in a forked `tfm` before it begins: stops, kills, numbers that are not finite.

Each function is named to `ForkServer.call` as `before`, and receives what it is told.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import ptrace
from torch import Tensor

from tfm.engine.training import fit, train
from tfm.engine.training.run import Run
from tfm.seq2seq.training.update import Trainer
from tfm.system import files


def stop_after(updates: int) -> None:
    """Sends SIGTERM to this process after so many updates of its own."""
    update, made = Trainer.update, list[int]()

    def counted(self: Trainer, rate: float) -> Any:
        figures = update(self, rate)
        made.append(1)
        if len(made) == updates:
            os.kill(os.getpid(), signal.SIGTERM)
        return figures

    Trainer.update = counted


def race(told: dict[str, str]) -> None:
    """Waits at the lock of a run until others are there, too; who gets it waits before it trains.

    Args:
        told: Names of files: this process writes `ready` at the lock, and `refused` with the time when it is another's.
            It goes on when the test has written `start`, and trains when it has written `train`.
    """
    lock, begin = files._lock, vars(train)["fit"]

    def waiting(file: Any) -> None:
        Path(told["ready"]).touch()
        _wait_for(told["start"])
        try:
            lock(file)
        except OSError:
            Path(told["refused"]).write_text(str(time.monotonic()))
            raise

    def begin_later(run: Run, **settings: Any) -> None:
        _wait_for(told["train"])
        begin(run, **settings)

    files._lock = waiting
    pytest.MonkeyPatch().setattr(train, "fit", begin_later)  # for good: the process is its own


def _wait_for(path: str) -> None:
    while not Path(path).exists():
        time.sleep(0.0005)


def kill_saves(told: dict[str, Any]) -> None:
    """Makes the save of one step again and again, each time in a forked process and in a copy of the run.

    The first one comes to its end, in the folder `told["into"]` / 0; `calls.json` there says which system calls it
    made. Each of the others is killed before one of them, in the folder of its number, from 1. With `told["parts"]`
    that is every such call from `told["part"]` on, else those that `ptrace.telling` names. Then this process ends.
    """
    save = vars(fit)["save"]

    def killed(run: Run) -> None:
        if run.progress.step != told["step"]:
            save(run)
            return

        def kill_before(call: int) -> list[int]:
            copy = Path(told["into"]) / str(call)
            shutil.copytree(run.directory.path, copy / run.directory.path)

            def save_the_copy() -> None:
                os.chdir(copy)
                save(run)

            return ptrace.follow(save_the_copy, call)

        made = kill_before(0)
        (Path(told["into"]) / "0" / "calls.json").write_text(json.dumps(made))
        every = range(1 + told["part"], len(made) + 2, told["parts"]) if told["parts"] else ptrace.telling(made)
        for call in every:
            kill_before(call)
        os._exit(0)

    pytest.MonkeyPatch().setattr(fit, "save", killed)


def poison(told: dict[str, Any]) -> None:
    """Puts a number that is not finite into a training.

    Args:
        told: `place`, see `PLACES`; `value`; at which `step`, and in how many `updates` from there on; `draw` seeds
            the choice of a tensor and of a number in it.
    """
    place, value, first = told["place"], float(told["value"]), told["step"]
    update, score = Trainer.update, fit.score
    draw = random.Random(told["draw"])

    def poisoned_update(self: Trainer, rate: float) -> Any:
        if not first <= self.progress.step + 1 < first + told["updates"]:
            return update(self, rate)
        if place in ("loss", "gradient"):
            with _poisoned_loss(self, value, place == "gradient", draw):
                return update(self, rate)
        if place.endswith("before"):
            _poison_one(_tensors(self, place), value, draw)
            return update(self, rate)
        figures = update(self, rate)
        if place.endswith("after"):
            _poison_one(_tensors(self, place), value, draw)
        return figures

    def poisoned_score(run: Run) -> dict[str, Any]:
        result = score(run)
        key = place.removeprefix("validation ")
        return result | {key: value} if key != place and run.progress.step >= first else result

    Trainer.update, fit.score = poisoned_update, poisoned_score


PLACES = [
    "loss",
    "gradient",
    *(f"{what} {when}" for what in ("weight", "moment", "average") for when in ("before", "after")),
    "validation loss",
    "validation score",
]
"""Where `poison` can put a number: into all that an update takes and leaves, before and after it."""


@contextlib.contextmanager
def _poisoned_loss(trainer: Trainer, value: float, with_gradient: bool, draw: random.Random) -> Any:
    """Inside the block the loss is not finite, or a number of the gradient is not."""
    loss = trainer.loss

    def poisoned(model: Any, batch: Any) -> tuple[Tensor, int]:
        found, number = loss(model, batch)
        return found + (0 if with_gradient else value), number

    class Poisoned:
        """The group of processes, after whose addition a number of the gradient is not finite."""

        def __init__(self) -> None:
            self.group = trainer.group

        def all_reduce(self, tensor: Tensor) -> None:
            self.group.all_reduce(tensor)
            if with_gradient:
                tensor[draw.randrange(len(tensor) - 2)] = value

    group = trainer.group
    trainer.loss, trainer.group = poisoned, Poisoned()  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        trainer.loss, trainer.group = loss, group


def _tensors(trainer: Trainer, place: str) -> dict[str, Tensor]:
    if place.startswith("weight"):
        return dict(trainer.model.named_parameters())
    if place.startswith("moment"):
        return trainer.optimizer.tensors(trainer.model)
    assert trainer.average is not None
    return trainer.average.tensors()


@torch.no_grad()
def _poison_one(tensors: dict[str, Tensor], value: float, draw: random.Random) -> None:
    """Makes one number of one tensor another one, in place."""
    tensor = tensors[draw.choice(sorted(tensors))]
    tensor.view(-1)[draw.randrange(tensor.numel())] = value
