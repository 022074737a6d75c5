"""A training, opened: all that it consists of in the process that leads it, in the order in which that is found out."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from ...configs import RunConfig
from ...seq2seq.decoding.config import DecodingConfig
from ...seq2seq.training.optimizer import MovingAverage
from ...seq2seq.training.progress import Progress
from ...seq2seq.training.update import Trainer
from ...system.errors import DirectoryInUse, UsageError
from ...system.interrupts import Interrupts
from ...system.reporter import Reporter
from ..device import keep_freed_memory, own_device, pick_device, processor_name
from ..runs.checkpoint import ModelDescription, Saved, objective_of, read_description
from ..runs.directory import RunDirectory, check_tokenizer
from ..runs.log import RunLog
from ..runs.weights import blank_model, load_moments, load_stored, load_weights, read_weights
from .build import COUNTED, StoreBatches, build_trainer, describe_model, fixed_parts
from .finish import Finishing, Request
from .plan import Plan
from .prepare import PreparedData, prepare_data
from .setup import Setup, check_device, in_todays_words, settle
from .validation import DevSet, Validator, build_validator


@dataclass
class Run:
    """A training under way: `saved` is the checkpoint that it goes on from, if there is one."""

    directory: RunDirectory
    settings: RunConfig
    data: PreparedData
    description: ModelDescription
    setup: Setup
    plan: Plan
    trainer: Trainer
    log: RunLog
    reporter: Reporter
    interrupts: Interrupts
    saved: Saved | None
    moved: str = ""
    """What to say if its directory has got another name."""

    def __post_init__(self) -> None:
        self.config, self.progress = self.trainer.config, self.trainer.progress
        self.ranks = self.setup.ranks
        self.device = next(self.trainer.model.parameters()).device

    @cached_property
    def validator(self) -> Validator:
        """Scores the model midway."""
        return self.build_validator(self.reporter, self.settings.decoding)

    def build_validator(self, reporter: Reporter, decoding: DecodingConfig) -> Validator:
        """What scores the model, translating as `decoding` says."""
        dev = DevSet(
            batches=StoreBatches(self.data.dev, self.config, self.device).all,
            pairs=self.data.dev_pairs,
            reporter=reporter,
            stop_requested=lambda: self.interrupts.received,
        )
        return build_validator(dev, self.config, self.description, self.data.tokenizer, decoding)

    @property
    def has_ended(self) -> bool:
        """Whether no update is left to make."""
        return self.progress.stopped_early or self.progress.step >= self.plan.limit

    @property
    def length_is_open(self) -> bool:
        """Whether its time limit has still to become a number of updates; a run that ends before that needs none."""
        return self.plan.pending and not self.has_ended

    @property
    def is_finished(self) -> bool:
        """Whether nothing at all is left to do."""
        at_end = self.progress.stopped_early or (not self.plan.pending and self.has_ended)
        return at_end and self.progress.validated_step == self.progress.step

    def environment(self) -> dict[str, Any]:
        """What bit-identical results depend on besides the code and the data."""
        device = self.device
        return {
            "tfm": metadata.version("tfm"),
            "torch": torch.__version__,
            "device": torch.cuda.get_device_name() if device.type == "cuda" else device.type,
            "processor": torch.backends.cpu.get_cpu_capability(),
            "cpu": processor_name(),
            **self.setup.environment(),
        }

    def begin(self, init_from: Path | None) -> None:
        """Takes its first weights: of its checkpoint, of another run, or those of the seed."""
        if self.saved is not None:
            self._restore(self.saved)
            if init_from is not None:
                self.reporter.say(f"{self.directory} has begun: its own weights count, not those of {init_from}")
            return
        if init_from is not None:
            self.initialise(RunDirectory(init_from))
        if self.config.ema_decay:
            self.trainer.average = MovingAverage(self.trainer.model, self.config.ema_decay)

    def _restore(self, saved: Saved) -> None:
        """Takes weights, moments and averages from a checkpoint."""
        checkpoint, model = saved.checkpoint, self.trainer.model
        check_tokenizer(self.data.tokenizer, read_description(checkpoint).tokenizer_sha256, self.directory.tokenizer)
        before, now = in_todays_words(saved.state.environment), self.environment()
        if changed := [name for name in before | now if before.get(name) != now.get(name)]:
            then, today = (", ".join(f"{name} {one.get(name, 'unknown')}" for name in changed) for one in (before, now))
            self.reporter.warn(
                f"this run was on {then} and continues on {today}:"
                " the result will be as good, but not bit for bit the same"
            )
        load_weights(model, checkpoint)
        load_moments(self.trainer.optimizer, model, checkpoint)
        if self.config.ema_decay:
            self.trainer.average = MovingAverage(model, self.config.ema_decay)
            averages = read_weights(model, checkpoint, "ema")
            self.trainer.average.restore({name: tensor.to(self.device) for name, tensor in averages.items()})

    def initialise(self, source: RunDirectory) -> None:
        """Takes the best weights of another run; UsageError if it has another model."""
        stored = source.find_model("best", warn=self.reporter.warn)
        theirs, ours = stored.description.model_config().without_dropout(), self.settings.model.without_dropout()
        if theirs != ours:
            name = next(name for name, value in asdict(theirs).items() if value != getattr(ours, name))
            raise UsageError(
                f"{source} is another model than this configuration has: its {name} is {getattr(theirs, name)}, not"
                f" {getattr(ours, name)}; see tfm info --run {source.quoted}"
            )
        check_tokenizer(self.data.tokenizer, stored.description.tokenizer_sha256, source.tokenizer)
        load_stored(self.trainer.model, stored)
        self.reporter.say(f"starting from the weights of {stored.checkpoint}")


@contextlib.contextmanager
def opened(
    settings: RunConfig,
    directory: RunDirectory,
    *,
    reporter: Reporter,
    interrupts: Interrupts,
    tokenizer: Path | None,
    init_from: Path | None,
    begun_at: float | None = None,
    request: Request | None = None,
    dry: bool = False,
) -> Iterator[Run]:
    """A run that is new, or goes on; its directory is locked inside the block. Makes what is missing in the directory.

    Each step needs the results of those before it, and cheap steps come before costly ones. What this machine lacks
    comes first. Then comes the lock, and refusals that need no text: of other settings, damaged checkpoints, another
    length. Then the text is read, which may take minutes. Then the machine is measured, for which the size of the
    vocabulary must be known.

    Args:
        begun_at: Monotonic time at which a time limit began; now if not given.
        request: The request to finish, if there is one; see `finish_in` of `train`.
        dry: Nothing will be trained: a run that has come to a checkpoint keeps the settings that it has.

    Raises:
        DirectoryInUse: Another process trains there. If there is a request, it has been told.
        TfmError: As in `train`.
    """
    begun_at = time.monotonic() if begun_at is None else begun_at
    device = pick_device(settings.training.device)
    check_device(settings.training, device)
    counted = COUNTED[objective_of(settings.model.architecture, settings.training)]
    log = RunLog(directory, settings.training, reporter, begun_at, counted=counted)
    keep_freed_memory()
    given = directory.starting_tokenizer(tokenizer, init_from)
    with _locked(directory, request):
        directory.remove_debris()  # of a process that was killed
        directory.refuse_other(settings)
        saved = directory.newest_saved(reporter.warn)
        finishing = _ask_to_finish(directory, request, saved)
        directory.forget_other_start(settings, given)
        plan = _planned(directory, settings, reporter, begun_at, saved)
        data = prepare_data(settings, directory, given_tokenizer=given, reporter=reporter, saved=saved)
        if saved is not None and not dry:  # its files may have other names by now, but hold what they did
            directory.write_configuration(settings)
        description = describe_model(settings, data.tokenizer, data.train.facts, data.languages)
        setup = settle(
            directory,
            settings.training,
            blank_model(description),
            device,
            saved,
            reporter,
            parts=fixed_parts(settings),
        )
        with _forgetting_request(finishing, reporter):
            trainer = build_trainer(
                settings.training,
                description,
                data.tokenizer,
                data.train,
                device=own_device(setup.device),
                dtype=setup.dtype,
                muon_dtype=setup.muon_dtype,
                parts=setup.division.parts,
                group=setup.ranks,
                progress=replace(saved.state.progress) if saved else Progress(),
            )
            yield Run(directory, settings, data, description, setup, plan, trainer, log, reporter, interrupts, saved)


def _planned(
    directory: RunDirectory, settings: RunConfig, reporter: Reporter, begun_at: float, saved: Saved | None
) -> Plan:
    """The plan of a run, begun where the run stands; the configuration of a new one is written."""
    plan = Plan(directory, settings.training, reporter, begun_at)
    if saved is None:
        plan.begin(0, None)
        directory.write_configuration(settings)  # from here on, a stopped run can be resumed
    else:
        plan.begin(saved.step, saved.state.max_steps, saved.state.progress.falling_since)
    return plan


def _ask_to_finish(directory: RunDirectory, request: Request | None, saved: Saved | None) -> Finishing:
    """Leaves the request to finish, if there is one; one of another day is forgotten."""
    finishing = Finishing(directory)
    finishing.forget_request()
    if request is not None:
        if saved is None:
            raise UsageError(
                f"{directory} has no checkpoint to go on from; --max-time or --max-steps says how long it trains"
            )
        finishing.ask(request)
    return finishing


@contextlib.contextmanager
def _forgetting_request(finishing: Finishing, reporter: Reporter) -> Iterator[None]:
    """After the block, forgets a request to finish; says so if it came too late to be decided."""
    try:
        yield
    finally:
        if (undecided := finishing.request()) is not None:
            reporter.warn(f"it was told to finish in {undecided}, too late to be decided: say --finish-in again")
        finishing.forget_request()


@contextlib.contextmanager
def _locked(directory: RunDirectory, request: Request | None) -> Iterator[None]:
    """Holds the directory inside the block; where another process does, that one is told to finish."""
    if request is not None and not directory.has_begun:
        raise UsageError(f"there is no run {directory} to finish; --max-time or --max-steps says how long one trains")
    try:
        lock = directory.lock()
    except DirectoryInUse:
        if request is not None:
            Finishing(directory).ask(request)
        raise
    with lock:
        yield
