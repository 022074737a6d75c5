"""Training into a run directory: begins a run, or goes on with the one that is there."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from ...configs import RunConfig
from ...seq2seq.training.schedule import length_matters_after, same_up_to
from ...system.errors import (
    DirectoryInUse,
    Interrupted,
    InterruptedAtOnce,
    OutOfMemory,
    TfmError,
    TrainingDiverged,
    UsageError,
)
from ...system.interrupts import Interrupts
from ...system.reporter import Reporter
from ..device import describe_precision
from ..exportable import why_not_exportable
from ..runs.checkpoint import COMMANDS, checkpoint_step, objective_of
from ..runs.directory import RunDirectory
from ..runs.verdict import verdict
from ..runs.weights import count_parameters, model_tensors
from ..workers.ranks import Ranks, joined, started_by_torchrun
from .build import learns_both_directions, subword_dropout
from .finish import parse_request
from .fit import fit, prune
from .run import Run, opened

FOLLOWER = f"{__package__}.follower"
"""The module that a leader starts in processes of their own."""


@dataclass(frozen=True)
class TrainingResult:
    """How a run ended.

    Attributes:
        best_step, best_score: Where validation scored highest.
        stopped_early: Validation had stopped improving.
        use: What to do with the model.
        verdict: How good it is and what would help, in lines for people.
        how_to_go_on: How to train further, if the run was finished already; else None.
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


def train(
    settings: RunConfig,
    *,
    run: str | Path,
    reporter: Reporter,
    interrupts: Interrupts,
    tokenizer: Path | None = None,
    init_from: Path | None = None,
    started: float | None = None,
    finish_in: str | None = None,
) -> TrainingResult | None:
    """Trains a model into a run directory, or continues the run that is there.

    Args:
        interrupts: Entered; asked for Ctrl-C and SIGTERM.
        tokenizer: A tokenizer directory, instead of building one.
        init_from: A run whose best weights to start from; it brings its tokenizer.
        started: Monotonic time at which the time limit began.
        finish_in: Lets the learning rate of the run that is there fall now, and ends it in this time (`10m`) or after
            this number of updates. If another process is training it, that one is told.

    Returns:
        How it ended; None in a process that torchrun started to help another one, or that told another one to finish.

    Raises:
        UsageError: The directory holds another run, or the settings ask for what is not possible.
        Interrupted: Stopped on request, after saving.
        TfmError: As its other subclasses say.
    """
    place = started_by_torchrun()
    if place is not None and place.rank > 0:
        return follow_leader(interrupts)
    if finish_in is not None and place is not None:
        raise UsageError("one process tells a run to finish: say --finish-in without torchrun")
    with contextlib.nullcontext() if place is None else _watched(place, interrupts):
        directory, request = RunDirectory(run), None if finish_in is None else parse_request(finish_in)
        try:
            with opened(
                settings,
                directory,
                reporter=reporter,
                interrupts=interrupts,
                tokenizer=tokenizer,
                init_from=init_from,
                begun_at=started,
                request=request,
            ) as run_under_way:
                return _lead(run_under_way, init_from)
        except DirectoryInUse:
            if request is None:
                raise
            reporter.say(f"{directory} is in use; the training that is under way there was told to finish in {request}")
            return None


def follow_leader(interrupts: Interrupts) -> None:
    """For a process that torchrun started beside the leader: trains along. It needs no settings and no files."""
    from .follower import follow

    place = started_by_torchrun()
    assert place is not None
    with _watched(place, interrupts), interrupts.held(), joined(place):  # to stop is the leader's to decide
        follow(place)


def _watched(place: Ranks, interrupts: Interrupts) -> contextlib.AbstractContextManager[None]:
    """Inside the block this process watches over the others that torchrun has started."""
    from ..workers.watch import watched

    return watched(place.rank, place.count, interrupts)


def _lead(run: Run, init_from: Path | None) -> TrainingResult:
    """Trains a run to its end, with the processes that share the work."""
    run.begin(init_from)
    if run.is_finished:
        run.ranks.send_home()
        # A kill may have come after the last save, before old checkpoints were removed or the curve was drawn.
        prune(run)
        run.log.draw_last_curve()
        return _result(run, _how_to_go_on(run))
    if run.directory.is_improved:
        raise UsageError(
            f"{run.directory} was improved after its training, and training on would begin at what it was before; start"
            f" a new run: --init-from {run.directory.quoted} --run NEW"
        )
    _announce(run)
    with joined(run.ranks, FOLLOWER):
        brief_followers(run)
        try:
            run.log.open(run.progress, run.plan.max_steps)
            try:
                with run.interrupts.held():
                    fit(run, validate_first=init_from is not None and run.saved is None)
            finally:
                run.log.close()
        except TrainingDiverged as error:  # followers diverge by themselves
            saved = run.directory.checkpoints()
            good = f". Last good checkpoint: step {checkpoint_step(saved[-1]):,}" if saved else ""
            raise TrainingDiverged(f"{error}{good}") from error
        except (InterruptedAtOnce, OutOfMemory):
            raise  # followers may be in the middle of an update
        except (TfmError, Interrupted):
            run.ranks.stop()
            raise
        run.ranks.stop()
    return _result(run)


def brief_followers(run: Run) -> None:
    """For the leader: tells the other ranks all that they need to stand where this one does."""
    trainer = run.trainer
    if run.ranks.count > 1:
        from ..workers.handout import hand_out
        from .follower import Start

        start = Start(
            config=run.config,
            description=run.description,
            progress=run.progress,
            device=run.device.type,
            precision=run.setup.precision,
            muon_precision=run.setup.muon_precision,
            parts=run.setup.division.parts,
            weights={name: tensor.cpu() for name, tensor in model_tensors(trainer.model).items()},
            optimizer={n: t.cpu() for n, t in trainer.optimizer.tensors(trainer.model).items()},
        )
        run.ranks.broadcast(start.to_bytes())
        hand_out(run.ranks, [run.directory.tokenizer, run.data.train.directory])
    run.ranks.share_memory(trainer.gradients.flat.nbytes)


def _announce(run: Run) -> None:
    """Says what will be trained, and warns of what the user may not expect."""
    precision = describe_precision(run.setup.dtype, run.device)
    run.reporter.say(
        f"{count_parameters(run.trainer.model):,} parameters on {run.device} ({precision}, {run.setup.division});"
        f" {_length(run)}" + (f", continuing at step {run.progress.step:,}" if run.progress.step else "")
    )
    shares = run.config.grad_accum_steps * run.setup.division.parts
    if run.ranks.count > shares:
        run.reporter.warn(
            f"an update of this run has {shares} parts: of {run.ranks.count} processes some have nothing to do"
        )
    tokenizer, model = run.data.tokenizer, run.settings.model
    dropout = subword_dropout(tokenizer, run.config, model)
    if dropout and not any(side.has_effect for side in dropout):
        run.reporter.say(
            f"training.subword_dropout has no effect: no piece of this {tokenizer.type} vocabulary"
            " can be spelt by two others"
        )
    if run.config.both_directions and not learns_both_directions(run.config, tokenizer, run.description):
        run.reporter.say("training.both_directions has no effect: only a translator with one vocabulary learns from it")
    largest = max(run.description.src_vocab_size, run.description.tgt_vocab_size)
    if model.architecture == "encoder_decoder" and (reasons := why_not_exportable(model, vocab_size=largest)):
        run.reporter.say(f"tfm export will not be able to write this model: {'; '.join(reasons)}")


def _length(run: Run) -> str:
    """How long the run will be, as far as is known."""
    plan, config = run.plan, run.config
    if plan.pending:
        steps = f"as many steps as fit {config.max_time}"
    elif plan.max_steps is None:
        return (
            "as many steps as it takes until the validation loss stops falling"
            f" (patience: {config.patience} validations)"
        )
    else:
        steps = f"{plan.limit:,} steps"
    falls = run.progress.step > length_matters_after(config, plan.limit)
    if config.patience and not falls:
        return f"{steps} at most, fewer if the validation loss stops falling"
    return steps


def _how_to_go_on(run: Run) -> str:
    """How to train a finished run further."""
    step, config = run.progress.step, run.config
    planned = (run.saved.state.max_steps if run.saved else None) or step
    if run.progress.stopped_early:
        reason = "validation had stopped improving"
    elif run.plan.told_to_finish:
        reason = "it was told to finish here, or its time was short"
    elif run.progress.falling_since:
        reason = "its learning rate has fallen to its end"
    elif same_up_to(step, config, planned, 2 * step):
        limit = "--max-steps in place of its time limit" if config.max_time else "a higher --max-steps"
        return f"{limit} continues it"
    else:
        reason = f"its {config.schedule} schedule has come to its end"
    return f"{reason}; to train on, start a new run: --init-from {run.directory.quoted} --run NEW"


def _result(run: Run, how_to_go_on: str | None = None) -> TrainingResult:
    progress = run.progress
    return TrainingResult(
        step=progress.step,
        best_step=progress.best_step,
        best_score=progress.best_score,
        stopped_early=progress.stopped_early,
        use=_use(run),
        verdict=verdict(run.directory, run.settings, run.description.purpose, progress, run.plan.max_steps),
        how_to_go_on=how_to_go_on,
    )


def _use(run: Run) -> str:
    if objective_of(run.settings.model.architecture, run.config) == "masked_lm":
        return (
            "It is a beginning for vectors of sentences: tfm train --config multi30k-encoder --run NEW"
            f" --init-from {run.directory.quoted} .."
        )
    command = COMMANDS[run.description.purpose]
    return f"{command.split()[-1].capitalize()} with: {command} --run {run.directory.quoted}"
