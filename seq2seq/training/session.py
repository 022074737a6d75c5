"""One session of a training run: data, model, optimizer and loop put together, from a start or a save to an end."""

import math
import shlex
import time
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from ...data.errors import EnvironmentFault, InterruptedAtOnce, TfmError, TrainingDiverged, UsageError
from ...data.files import LineLog, replace_file
from ..checkpoint import (
    FORMAT_VERSION,
    ModelDescription,
    damage,
    find_checkpoint,
    load_weights,
    model_tensors,
    prune_checkpoints,
    read_description,
    read_state,
    read_tensors,
    write_checkpoint,
)
from ..decoding.translator import check_tokenizer
from ..device import describe_precision, own_device, pick_device, processor_name
from ..export.limits import why_not_exportable
from ..model.config import ModelConfig
from ..run_directory import checkpoint_path, checkpoint_step, list_checkpoints
from .curve import learning_curve
from .follower import Start
from .interrupts import Interrupts
from .loop import Hooks, Progress, Trainer
from .optimizer import MovingAverage, Optimizer
from .plan import Plan
from .prepare import PreparedData, RunSettings, StoreBatches, subword_dropout
from .randomness import seed_torch
from .ranks import joined
from .reporter import Reporter
from .schedule import same_up_to
from .setup import Setup, in_todays_words
from .state import RunState, Saved
from .validation import Validator


@dataclass(frozen=True)
class TrainingResult:
    """How a run ended.

    Attributes:
        step: Its last step.
        best_step, best_score: Where validation scored highest.
        stopped_early: Validation had stopped improving.
        how_to_go_on: What would continue it, where nothing was left to do; None where something was done.
    """

    step: int
    best_step: int
    best_score: float | None
    stopped_early: bool
    how_to_go_on: str | None = None

    @property
    def already_finished(self) -> bool:
        """Nothing was left to do."""
        return self.how_to_go_on is not None


class Session:
    """The leader's side of a run: model and optimizer, the loop, and what it calls out to.

    Args:
        settings: The configuration.
        run: The run directory, locked.
        prepared: Vocabulary and data.
        description: Of the model.
        reporter, interrupts: As in `run.train`.
        plan: How many steps the run has.
        setup: What it is computed with.
    """

    def __init__(
        self,
        settings: RunSettings,
        run: Path,
        prepared: PreparedData,
        description: ModelDescription,
        reporter: Reporter,
        interrupts: Interrupts,
        plan: Plan,
        setup: Setup,
    ) -> None:
        self.setup, self.ranks = setup, setup.ranks
        self.settings, self.config = settings, settings.training
        self.run, self.prepared, self.reporter, self.interrupts = run, prepared, reporter, interrupts
        self.metrics, self.timing = LineLog(run / "metrics.jsonl"), LineLog(run / "timing.jsonl")
        self.device = own_device(pick_device(self.config.device).type)
        self.subword_dropout = subword_dropout(prepared.tokenizer, self.config, settings.model)
        self.description = description
        seed_torch(self.config.seed, "weights")
        self.model = self.description.build().to(self.device)
        self.optimizer = Optimizer(self.model, self.config, ranks=self.ranks, dtype=setup.muon_dtype)
        self.average: MovingAverage | None = None
        self.plan = plan
        self.progress = Progress()
        self.validate_first = False

    def run_to_end(
        self, max_steps: int | None, *, saved: Saved | None = None, init_from: Path | None = None
    ) -> TrainingResult:
        """Goes on from what is saved, or begins, with random weights or those of another run.

        Args:
            max_steps: Updates in all, or None while a time limit is still to be turned into a number.
            saved: Where the run stands, if it has begun.
            init_from: A run whose best weights a new one starts from.
        """
        if saved is not None:
            self._resume(saved)
            if init_from is not None:
                self.reporter.say(f"{self.run} has begun: its own weights count, not those of {init_from}")
        elif init_from is not None:
            self._initialise(init_from)
        if self.config.ema_decay and self.average is None:
            self.average = MovingAverage(self.model, self.config.ema_decay)
        progress = self.progress
        self.validate_first = init_from is not None and progress.step == 0 and progress.validated_step < 0
        at_end = progress.stopped_early or (max_steps is not None and progress.step >= max_steps)
        if at_end and progress.validated_step == progress.step:
            self.ranks.send_home()
            return self._result(self._how_to_go_on(saved.state.max_steps if saved else None))
        self.metrics.keep(lambda record: _happened(record, progress))
        self.timing.keep(lambda record: _happened(record, progress))
        self._announce(max_steps)
        with joined(self.ranks):
            self.ranks.hand_out(self._start())
            try:
                self._loop(max_steps)
            except (TrainingDiverged, InterruptedAtOnce):  # the others have seen the one, and cannot hear of the other
                raise
            except TfmError:
                self.ranks.stop()
                raise
            self.ranks.stop()
        return self._result()

    def _result(self, how_to_go_on: str | None = None) -> TrainingResult:
        progress = self.progress
        best = progress.best_step, progress.best_score
        return TrainingResult(progress.step, *best, progress.stopped_early, how_to_go_on)

    def _how_to_go_on(self, planned: int | None) -> str:
        """What would continue a finished run that was planned for so many steps."""
        step = self.progress.step
        if self.progress.stopped_early:
            reason = "validation had stopped improving"
        elif same_up_to(step, self.config, planned or step, 2 * step):
            limit = "--max-steps in place of its time limit" if self.config.max_time else "a higher --max-steps"
            return f"{limit} continues it"
        else:
            reason = f"its {self.config.schedule} schedule has come to its end"
        return f"{reason}; to train on, start a new run: --init-from {shlex.quote(str(self.run))} --run NEW"

    def _resume(self, saved: Saved) -> None:
        checkpoint, state = saved.checkpoint, saved.state
        description = read_description(checkpoint)
        check_tokenizer(self.prepared.tokenizer, description.tokenizer_sha256, self.run / "tokenizer")
        before, now = in_todays_words(state.environment), self._environment()
        if before != now:
            self.reporter.warn(
                f"this run was on {_words(before)} and continues on {_words(now)}:"
                " the result will be as good, but not bit for bit the same"
            )
        load_weights(self.model, checkpoint, "model")
        self.optimizer.restore(self.model, read_tensors(checkpoint, "optimizer"))
        if self.config.ema_decay:
            self.average = MovingAverage(self.model, self.config.ema_decay)
            self.average.restore({k: v.to(self.device) for k, v in read_tensors(checkpoint, "ema").items()})
        self.progress = state.progress

    def _initialise(self, source: Path) -> None:
        checkpoint = find_checkpoint(source, "best", warn=self.reporter.warn)
        description = read_description(checkpoint)
        if _without_dropout(ModelConfig(**description.model)) != _without_dropout(self.settings.model):
            quoted = shlex.quote(str(source))
            raise UsageError(f"{source} is a model of other sizes than this configuration; see tfm info --run {quoted}")
        check_tokenizer(self.prepared.tokenizer, description.tokenizer_sha256, source / "tokenizer")
        load_weights(self.model, checkpoint, description.weights)
        self.reporter.say(f"starting from the weights of {checkpoint}")

    def _plan_steps(self, progress: Progress, seconds_per_step: float) -> int:
        before = time.monotonic()
        self.trainer.try_validation()
        return self.plan.decide(progress.step, seconds_per_step, time.monotonic() - before)

    def _announce(self, max_steps: int | None) -> None:
        precision = describe_precision(self.setup.dtype, self.device)
        steps = f"{max_steps:,} steps" if max_steps else f"as many steps as fit {self.config.max_time}"
        self.reporter.say(
            f"{self.model.num_parameters():,} parameters on {self.device} ({precision}, {self.setup.division}); {steps}"
            + (f", continuing at step {self.progress.step:,}" if self.progress.step else "")
        )
        shares = self.config.grad_accum_steps * self.setup.division.parts
        if self.ranks.count > shares:
            self.reporter.warn(
                f"an update of this run has {shares} parts: of {self.ranks.count} processes some have nothing to do"
            )
        if self.subword_dropout and not any(side.has_effect for side in self.subword_dropout):
            self.reporter.warn(
                f"training.subword_dropout has no effect: no piece of this {self.prepared.tokenizer.type} vocabulary"
                " can be spelt by two others"
            )
        largest = max(self.description.src_vocab_size, self.description.tgt_vocab_size)
        if reasons := why_not_exportable(self.settings.model, vocab_size=largest):
            self.reporter.say(f"tfm export will not be able to write this model: {'; '.join(reasons)}")

    def _start(self) -> Start:
        """What the other ranks need to stand where this one does."""
        return Start(
            config=self.config,
            device=self.device.type,
            dtype=self.setup.dtype,
            muon_dtype=self.setup.muon_dtype,
            parts=self.setup.division.parts,
            description=self.description,
            train_store=self.prepared.train.directory,
            subword_dropout=self.subword_dropout,
            weights={name: tensor.cpu() for name, tensor in model_tensors(self.model).items()},
            optimizer={n: t.cpu() for n, t in self.optimizer.tensors(self.model).items()},
            progress=self.progress,
        )

    def _loop(self, max_steps: int | None) -> None:
        dev = StoreBatches(self.prepared.dev, self.config, self.device)
        validator = Validator(
            tokenizer=self.prepared.tokenizer,
            decoding=self.settings.decoding,
            config=self.config,
            batches=dev.all,
            pairs=self.prepared.dev_pairs,
            reporter=self.reporter,
            stop_requested=lambda: self.interrupts.received,
        )
        self.bar = self.reporter.progress("training", max_steps, "step", done=self.progress.step)
        self.last_tick = (time.monotonic(), self.progress.tokens)
        hooks = Hooks(
            validate=lambda progress: validator(self.model, progress.step),
            save=self._save,
            log=self._log,
            on_step=self._on_step,
            stop_requested=lambda: self.interrupts.received,
            plan_steps=self._plan_steps if self.config.max_time else None,
        )
        batches = StoreBatches(self.prepared.train, self.config, self.device, self.subword_dropout)
        self.trainer = Trainer(
            model=self.model,
            optimizer=self.optimizer,
            average=self.average,
            config=self.config,
            batches=batches,
            dtype=self.setup.dtype,
            progress=self.progress,
            max_steps=max_steps,
            hooks=hooks,
            ranks=self.ranks,
            parts=self.setup.division.parts,
        )
        try:
            with self.interrupts.held():
                if self.validate_first:
                    self.trainer.validate_and_save()
                self.trainer.run()
        except TrainingDiverged as error:
            saved = list_checkpoints(self.run)
            good = f". Last good checkpoint: step {checkpoint_step(saved[-1]):,}" if saved else ""
            raise TrainingDiverged(f"{error}{good}") from error
        finally:
            self.bar.close()
            try:
                self._draw_curve()
            except EnvironmentFault as error:  # the run does not hang on it, nor may it hide why the run ends
                self.reporter.warn(str(error))

    def _on_step(self, progress: Progress, max_steps: int | None) -> None:
        now, (then, tokens) = time.monotonic(), self.last_tick
        speed = (progress.tokens - tokens) / max(now - then, 1e-9)
        loss = progress.loss_sum / progress.loss_tokens if progress.loss_tokens else None
        note = f"{speed:,.0f} tok/s" + (f", loss {loss:.3f}" if loss is not None else "")
        self.bar.update(progress.step, note, total=max_steps)
        if progress.step % self.config.log_every == 0:
            seconds = round(now - self.plan.started, 3)
            self.timing.append({"step": progress.step, "seconds": seconds, "tokens_per_second": round(speed, 1)})
            self.last_tick = (now, progress.tokens)

    def _log(self, record: dict[str, Any]) -> None:
        self.metrics.append(record)
        if record["kind"] == "validation":
            self._draw_curve()
            self.last_tick = (time.monotonic(), self.progress.tokens)

    def _draw_curve(self) -> None:
        records = self.metrics.records()
        if records:
            replace_file(self.run / "learning_curve.png", learning_curve(records, self.config))

    def _save(self, progress: Progress) -> None:
        state = RunState(progress, self.trainer.max_steps, self.prepared.identity, self._environment()).as_json()
        saved = checkpoint_path(self.run, progress.step)
        if saved.is_dir() and not damage(saved) and read_state(saved) == state:
            return  # a stop right after a save: what is there is what would be written
        tensors = {"model": model_tensors(self.model), "optimizer": self.optimizer.tensors(self.model)}
        if self.average is not None:
            tensors["ema"] = self.average.tensors()
        for log in (self.metrics, self.timing):  # a checkpoint never outlives what was logged before it
            log.sync()
        write_checkpoint(self.run, progress.step, tensors=tensors, description=self.description, state=state)
        prune_checkpoints(self.run, keep=self.config.keep_checkpoints)

    def _environment(self) -> dict[str, Any]:
        """What bit-identical results depend on besides the code and the data."""
        return {
            "tfm": metadata.version("tfm"),
            "torch": torch.__version__,
            "device": torch.cuda.get_device_name() if self.device.type == "cuda" else self.device.type,
            "processor": torch.backends.cpu.get_cpu_capability(),
            "cpu": processor_name(),
            **self.setup.environment(),
        }


def _happened(record: dict[str, Any], progress: Progress) -> bool:
    """Whether what a log says has been, as of a checkpoint; what was logged after it will be again."""
    step = record.get("step", math.inf)
    return step <= (progress.validated_step if record.get("kind") == "validation" else progress.step)


def _without_dropout(config: ModelConfig) -> ModelConfig:
    return replace(config, dropout=0.0, attention_dropout=0.0, feed_forward_dropout=0.0)


def _words(environment: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in environment.items())


def describe_model(settings: RunSettings, prepared: PreparedData) -> ModelDescription:
    """What `model.json` says of the model of a run."""
    tokenizer = prepared.tokenizer
    return ModelDescription(
        format=FORMAT_VERSION,
        tfm_version=metadata.version("tfm"),
        model=asdict(settings.model),
        src_vocab_size=len(tokenizer.src),
        tgt_vocab_size=len(tokenizer.tgt),
        shared_vocab=tokenizer.joint,
        tokenizer_sha256=tokenizer.sha256,
        weights="ema" if settings.training.ema_decay else "model",
        decoding=asdict(settings.decoding),
    )
