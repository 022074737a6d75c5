"""The leader of a run, the process that the user started: it begins or restores, announces, trains and saves."""

from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...configs import RunConfig
from ...seq2seq.decoding.config import DecodingConfig
from ...seq2seq.training.optimizer import MovingAverage
from ...seq2seq.training.progress import Progress
from ...seq2seq.training.schedule import length_matters_after, same_up_to
from ...seq2seq.training.update import diverged
from ...system.errors import (
    DiskFull,
    EnvironmentFault,
    Interrupted,
    InterruptedAtOnce,
    OutOfMemory,
    TfmError,
    TrainingDiverged,
    UsageError,
)
from ...system.files import free_space
from ...system.interrupts import Interrupts
from ...system.reporter import Quiet, Reporter
from ..device import describe_precision, own_device, pick_device, processor_name
from ..exportable import why_not_exportable
from ..runs.checkpoint import COMMANDS, ModelDescription, checkpoint_step, read_description, read_state
from ..runs.directory import RunDirectory, check_tokenizer
from ..runs.log import RunLog
from ..runs.state import RunState, Saved
from ..runs.verdict import verdict
from ..runs.weights import count_parameters, load_moments, load_weights, model_tensors, read_weights, write_checkpoint
from ..workers.ranks import joined
from .assemble import build_trainer
from .follower import Start
from .plan import Plan
from .prepare import PreparedData, StoreBatches, subword_dropout
from .purpose import COUNTED, masking, objective_of
from .rehearsal import Rehearsal, rehearse
from .session import Hooks, Session
from .setup import Setup, in_todays_words
from .validation import DevSet, MaskedTokenValidator, SentenceValidator, TextValidator, TranslationValidator, Validator


@dataclass(frozen=True)
class TrainingResult:
    """How a run ended.

    Attributes:
        step: Its last step.
        best_step, best_score: Where validation scored highest.
        stopped_early: Validation had stopped improving.
        use: What to do with the model.
        verdict: How good it is and what would help, in lines for people.
        how_to_go_on: What would continue it, where nothing was left to do; None where something was done.
    """

    step: int
    best_step: int
    best_score: float | None
    stopped_early: bool
    use: str
    verdict: list[str]
    how_to_go_on: str | None = None

    @property
    def already_finished(self) -> bool:
        """Nothing was left to do."""
        return self.how_to_go_on is not None


class Leader:
    """Everything of a run in one process.

    Args:
        run: The run directory, locked.
        settings: The configuration.
        prepared: Vocabulary and data.
        description: Of the model.
        setup: What it is computed with.
        plan: How many steps the run has.
        reporter, interrupts: As in `train.train`.
        saved: Where the run stands, if it has come to a checkpoint.
    """

    def __init__(
        self,
        run: RunDirectory,
        settings: RunConfig,
        prepared: PreparedData,
        description: ModelDescription,
        setup: Setup,
        plan: Plan,
        reporter: Reporter,
        interrupts: Interrupts,
        saved: Saved | None,
    ) -> None:
        self.run, self.settings, self.config = run, settings, settings.training
        self.prepared, self.description, self.setup, self.plan = prepared, description, setup, plan
        self.reporter, self.interrupts, self.saved = reporter, interrupts, saved
        self.device, self.ranks = own_device(pick_device(self.config.device).type), setup.ranks
        self.trainer = build_trainer(
            self.config,
            description,
            prepared.tokenizer,
            prepared.train,
            device=self.device,
            dtype=setup.dtype,
            muon_dtype=setup.muon_dtype,
            parts=setup.division.parts,
            group=self.ranks,
            progress=replace(saved.state.progress) if saved else Progress(),
        )
        self.model: Any = self.trainer.model
        self.progress = self.trainer.progress
        self.objective = objective_of(settings.model.architecture, self.config)
        self._moved: str | None = None  # what to say of that
        self.log = RunLog(run, self.config, reporter, plan.started, counted=COUNTED[self.objective])

    def train(self, init_from: Path | None) -> TrainingResult:
        """Trains to the end.

        Args:
            init_from: A run whose best weights a new one starts from.
        """
        if self.saved is not None:
            self._restore(self.saved)
            if init_from is not None:
                self.reporter.say(f"{self.run} has begun: its own weights count, not those of {init_from}")
        else:
            if init_from is not None:
                self._initialise(RunDirectory(init_from))
            if self.config.ema_decay:
                self.trainer.average = MovingAverage(self.model, self.config.ema_decay)
        if self.is_at_end:
            self.ranks.send_home()
            self._prune()  # a kill may have come between the last save and this, or the picture
            self.log.draw_last_curve()
            return self._result(self._how_to_go_on())
        self._announce()
        with joined(self.ranks):
            self._brief_others()
            try:
                self._run_session(validate_first=init_from is not None and self.saved is None)
            except (TrainingDiverged, InterruptedAtOnce, OutOfMemory):
                raise  # followers diverge by themselves; in the other cases they may be in the middle of an update
            except (TfmError, Interrupted):
                self.ranks.stop()
                raise
            self.ranks.stop()
        return self._result()

    def rehearse(self, init_from: Path | None) -> Rehearsal:
        """Makes a few updates and a validation, to see what they take, instead of training. Leaves nothing on disk.

        A model that has learned nothing goes on writing until it is stopped; what it translates here is as long as the
        references are, on average.
        """
        if init_from is not None and self.saved is None:
            self._initialise(RunDirectory(init_from))
        report = self.prepared.dev.report
        ratio = report.tgt_tokens / report.src_tokens if report.src_tokens else 1.0
        decoding = replace(self.settings.decoding, max_length_factor=min(max(ratio, 0.01), 100), max_length_offset=1)
        validator = self._validator(Quiet(), decoding)
        with joined(self.ranks):
            self._brief_others()
            step = self.progress.step
            found = rehearse(self.trainer, self.plan.learning_rate, self.ranks, lambda: validator(self.model, step))
            self.ranks.stop()  # not after Ctrl-C: they may be in the middle of an update
            return found

    @property
    def batches_per_epoch(self) -> int:
        """Of the training data."""
        return StoreBatches(self.prepared.train, self.config, self.device).num_batches(0)

    # --- before ---

    def _restore(self, saved: Saved) -> None:
        """Takes weights and moments from a checkpoint."""
        checkpoint = saved.checkpoint
        description = read_description(checkpoint)
        check_tokenizer(self.prepared.tokenizer, description.tokenizer_sha256, self.run.tokenizer)
        before, now = in_todays_words(saved.state.environment), self._environment()
        if before != now:
            changed = [name for name in before | now if before.get(name) != now.get(name)]
            then, today = (_words({name: one.get(name, "unknown") for name in changed}) for one in (before, now))
            self.reporter.warn(
                f"this run was on {then} and continues on {today}:"
                " the result will be as good, but not bit for bit the same"
            )
        load_weights(self.model, checkpoint, "model")
        load_moments(self.trainer.optimizer, self.model, checkpoint)
        if self.config.ema_decay:
            self.trainer.average = MovingAverage(self.model, self.config.ema_decay)
            averages = read_weights(self.model, checkpoint, "ema")
            self.trainer.average.restore({name: tensor.to(self.device) for name, tensor in averages.items()})

    def _initialise(self, source: RunDirectory) -> None:
        """Takes the best weights of another run."""
        checkpoint = source.find_checkpoint("best", warn=self.reporter.warn)
        description = read_description(checkpoint)
        theirs, ours = description.model_config().without_dropout(), self.settings.model.without_dropout()
        if theirs != ours:
            name = next(name for name, value in asdict(theirs).items() if value != getattr(ours, name))
            raise UsageError(
                f"{source} is another model than this configuration has: its {name} is {getattr(theirs, name)}, not"
                f" {getattr(ours, name)}; see tfm info --run {source.quoted}"
            )
        check_tokenizer(self.prepared.tokenizer, description.tokenizer_sha256, source.tokenizer)
        load_weights(self.model, checkpoint, description.weights)
        self.reporter.say(f"starting from the weights of {checkpoint}")

    @property
    def is_at_end(self) -> bool:
        """Whether nothing is left to do."""
        progress = self.progress
        at_end = progress.stopped_early or (not self.plan.pending and progress.step >= self.plan.limit)
        return at_end and progress.validated_step == progress.step

    def _how_to_go_on(self) -> str:
        """What would continue a finished run."""
        step, config = self.progress.step, self.config
        planned = (self.saved.state.max_steps if self.saved else None) or step
        if self.progress.stopped_early:
            reason = "validation had stopped improving"
        elif self.plan.told_to_finish:
            reason = "it was told to finish here, or its time was short"
        elif self.progress.falling_since:
            reason = "its learning rate has fallen to its end"
        elif same_up_to(step, config, planned, 2 * step):
            limit = "--max-steps in place of its time limit" if config.max_time else "a higher --max-steps"
            return f"{limit} continues it"
        else:
            reason = f"its {config.schedule} schedule has come to its end"
        return f"{reason}; to train on, start a new run: --init-from {self.run.quoted} --run NEW"

    def _announce(self) -> None:
        """Says what will be trained, and warns of what the user may not expect."""
        precision = describe_precision(self.setup.dtype, self.device)
        steps = self._length()
        parameters = f"{count_parameters(self.model):,} parameters"
        self.reporter.say(
            f"{parameters} on {self.device} ({precision}, {self.setup.division}); {steps}"
            + (f", continuing at step {self.progress.step:,}" if self.progress.step else "")
        )
        shares = self.config.grad_accum_steps * self.setup.division.parts
        if self.ranks.count > shares:
            self.reporter.warn(
                f"an update of this run has {shares} parts: of {self.ranks.count} processes some have nothing to do"
            )
        dropout = subword_dropout(self.prepared.tokenizer, self.config, self.settings.model)
        if dropout and not any(side.has_effect for side in dropout):
            self.reporter.warn(
                f"training.subword_dropout has no effect: no piece of this {self.prepared.tokenizer.type} vocabulary"
                " can be spelt by two others"
            )
        largest = max(self.description.src_vocab_size, self.description.tgt_vocab_size)
        exportable = self.settings.model.architecture == "encoder_decoder"
        if exportable and (reasons := why_not_exportable(self.settings.model, vocab_size=largest)):
            self.reporter.say(f"tfm export will not be able to write this model: {'; '.join(reasons)}")

    def _length(self) -> str:
        """How long the run will be, as far as is known."""
        if self.plan.pending:
            steps = f"as many steps as fit {self.config.max_time}"
        elif self.plan.max_steps is None:
            return (
                "as many steps as it takes until the validation loss stops falling"
                f" (patience: {self.config.patience} validations)"
            )
        else:
            steps = f"{self.plan.limit:,} steps"
        falls = self.progress.step > length_matters_after(self.config, self.plan.limit)
        if self.config.patience and not falls:
            return f"{steps} at most, fewer if the validation loss stops falling"
        return steps

    def _brief_others(self) -> None:
        """Tells the other ranks all that they need to train along."""
        self.ranks.hand_out(self._start().to_bytes() if self.ranks.count > 1 else b"")
        self.ranks.share_memory(self.trainer.gradients.flat.nbytes)

    def _start(self) -> Start:
        """What the other ranks need to stand where this one does."""
        return Start(
            config=self.config,
            description=self.description,
            progress=self.progress,
            device=self.device.type,
            precision=self.setup.precision,
            muon_precision=self.setup.muon_precision,
            parts=self.setup.division.parts,
            tokenizer=self.run.tokenizer,
            train_store=self.prepared.train.directory,
            weights={name: tensor.cpu() for name, tensor in model_tensors(self.model).items()},
            optimizer={n: t.cpu() for n, t in self.trainer.optimizer.tensors(self.model).items()},
        )

    # --- during ---

    def _run_session(self, *, validate_first: bool) -> None:
        validator = self._validator(self.reporter, self.settings.decoding)
        hooks = Hooks(
            validate=lambda: validator(self.model, self.progress.step),
            save=self._save,
            say=self.reporter.say,
            warn=self.reporter.warn,
            log=lambda record: self.log.record(record, self.progress),
            after_update=lambda: self.log.after_update(
                self.progress, self.plan.max_steps, self.plan.phase(self.progress.step)
            ),
            look_around=self._follow_directory,
            moved=lambda: self._moved,
            stop_requested=lambda: self.interrupts.received,
        )
        session = Session(self.trainer, self.plan, hooks, self.ranks)
        self.log.open(self.progress, self.plan.max_steps)
        try:
            with self.interrupts.held():
                if validate_first:
                    session.validate_and_save()
                session.run()
        except TrainingDiverged as error:
            saved = self.run.checkpoints()
            good = f". Last good checkpoint: step {checkpoint_step(saved[-1]):,}" if saved else ""
            raise TrainingDiverged(f"{error}{good}") from error
        finally:
            self.log.close()

    def _follow_directory(self) -> None:
        """Takes note where somebody has moved the run directory."""
        before = self.run.quoted
        if self.run.follow():
            now = self.run.quoted
            self._moved = f"{before} was moved to {now}; go on there: the same command with --run {now}"

    def _validator(self, reporter: Reporter, decoding: DecodingConfig) -> Validator:
        """What scores the model midway."""
        dev = DevSet(
            batches=StoreBatches(self.prepared.dev, self.config, self.device).all,
            pairs=self.prepared.dev_pairs,
            reporter=reporter,
            stop_requested=lambda: self.interrupts.received,
        )
        tokenizer = self.prepared.tokenizer
        match self.description.purpose:
            case "translator":
                facts = self.description.corpus_facts()
                return TranslationValidator(
                    dev, tokenizer=tokenizer, decoding=decoding, facts=facts, config=self.config
                )
            case "language model":
                return TextValidator(dev, tokenizer=tokenizer, max_pieces=self.settings.model.max_seq_len - 1)
            case "sentence encoder" if self.objective == "masked_lm":
                return MaskedTokenValidator(dev, masking=masking(self.description))
            case "sentence encoder":
                return SentenceValidator(dev, config=self.config)

    def _save(self) -> None:
        """Writes a checkpoint of where training stands, and removes old ones.

        Raises:
            EnvironmentFault: It cannot be written. Says which checkpoint is safe.
        """
        state = RunState(self.progress, self.plan.max_steps, self.prepared.identity, self._environment()).as_json()
        target = self.run.checkpoint_path(self.progress.step)
        if target.is_dir() and not self.run.examine(target) and read_state(target) == state:
            return  # a stop right after a save: what is there is what would be written
        tensors = {"model": model_tensors(self.model), "optimizer": self.trainer.optimizer.tensors(self.model)}
        if self.trainer.average is not None:
            tensors["ema"] = self.trainer.average.tensors()
        self._refuse_broken(tensors)
        try:
            self.log.sync()
            write_checkpoint(
                target,
                tensors=tensors,
                description=self.description,
                state=state,
                vocabulary=self.prepared.tokenizer.files(),
            )
        except EnvironmentFault as error:
            raise EnvironmentFault(self._not_saved(target, tensors, error)) from error
        self.run.verified(target)
        self._prune()

    def _not_saved(self, target: Path, tensors: dict[str, dict[str, Tensor]], error: EnvironmentFault) -> str:
        """Why a checkpoint could not be written, and what a start goes on from now."""
        reason = str(error)
        if isinstance(error, DiskFull):
            needed = sum(tensor.nbytes for group in tensors.values() for tensor in group.values())
            sizes = f"needs {needed / 1e6:.1f} MB, {free_space(target)}"
            reason = f"no space left on the disk of {target.parent} ({sizes})"
        safe = self.run.newest_known_sound()
        goes_on = f"{safe.name} is safe, and the same command goes on from there" if safe else "None was saved before"
        return f"cannot save {target.name}: {reason}. {goes_on}"

    def _prune(self) -> None:
        """Removes the checkpoints that are not kept, and says which of them were damaged."""
        for reason in self.run.prune(keep=self.config.keep_checkpoints):
            self.reporter.warn(f"removed a checkpoint, as a newer one is sound: {reason}")

    def _refuse_broken(self, tensors: dict[str, dict[str, Tensor]]) -> None:
        """Refuses to save what no training can go on from.

        Raises:
            TrainingDiverged: A weight, a moment or an average is not a finite number.
        """
        for name, group in tensors.items():
            for key, tensor in group.items():
                if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
                    raise diverged(f"step {self.progress.step:,}", f"{key} ({name}) is not finite", self.config)

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

    # --- after ---

    def _result(self, how_to_go_on: str | None = None) -> TrainingResult:
        progress = self.progress
        return TrainingResult(
            step=progress.step,
            best_step=progress.best_step,
            best_score=progress.best_score,
            stopped_early=progress.stopped_early,
            use=self._use(),
            verdict=verdict(self.run.metrics.records(), self.config, progress, self.plan.max_steps),
            how_to_go_on=how_to_go_on,
        )

    def _use(self) -> str:
        if self.objective == "masked_lm":
            return (
                "It is a beginning for vectors of sentences: tfm train --config multi30k-encoder --run NEW"
                f" --init-from {self.run.quoted} .."
            )
        command = COMMANDS[self.description.purpose]
        return f"{command.split()[-1].capitalize()} with: {command} --run {self.run.quoted}"


def _words(environment: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in environment.items())
