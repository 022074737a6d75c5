"""The loop itself: it overfits one batch, accumulates as if in one, plans its length, stops when gradients go bad."""

import time
from types import SimpleNamespace
from typing import Any, Literal

import pytest
import torch

from tfm.data.batching import make_batch
from tfm.data.errors import Interrupted, InterruptedAtOnce, TrainingDiverged
from tfm.data.tokenizer import BOS_ID, EOS_ID
from tfm.seq2seq.decoding.fast import FastTransformer
from tfm.seq2seq.decoding.greedy import Greedy
from tfm.seq2seq.decoding.search import Task
from tfm.seq2seq.evaluation.loss import TensorBatch, to_tensors
from tfm.seq2seq.model import ModelConfig, Transformer
from tfm.seq2seq.training import loop
from tfm.seq2seq.training.config import TrainingConfig
from tfm.seq2seq.training.gradients import GradientBuffer
from tfm.seq2seq.training.loop import MAX_BAD_UPDATES, PLAN_STEP, Hooks, Progress, Trainer
from tfm.seq2seq.training.optimizer import Optimizer

PAIRS = [([5, 6, 7], [8, 9]), ([6, 5], [9, 8, 7, 9]), ([10, 11, 5], [7]), ([7, 7, 8, 5], [10, 11, 10])]


class FixedBatches:
    """The same batches in every epoch."""

    def __init__(self, *batches: TensorBatch) -> None:
        self.batches = batches

    def num_batches(self, epoch: int) -> int:
        del epoch
        return len(self.batches)

    def load_part(self, epoch: int, index: int, part: int, parts: int) -> TensorBatch | None:
        del epoch
        batch, rows = self.batches[index], slice(part, None, parts)
        if part >= len(batch.src):
            return None
        out = batch.tgt_out[rows]
        return TensorBatch(batch.src[rows], batch.tgt_in[rows], out, int((out != 0).sum()))


def batch(*rows: int) -> TensorBatch:
    return to_tensors(make_batch([PAIRS[row] for row in rows]), torch.device("cpu"))


def build_model(dropout: float = 0.0, norm_order: Literal["pre", "post"] = "pre") -> Transformer:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "d_model": 32,
        "d_ff": 32,
        "num_heads": 2,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
    }
    config = ModelConfig(**sizes, max_seq_len=12, dropout=dropout, norm_order=norm_order)
    return Transformer(config, src_vocab_size=12, tgt_vocab_size=12, shared_vocab=True)


def trainer(model: Transformer, batches: FixedBatches, hooks: Hooks | None = None, **settings: Any) -> Trainer:
    defaults: dict[str, Any] = {
        "learning_rate": 1e-2,
        "warmup_steps": 1,
        "schedule": "constant",
        "label_smoothing": 0.0,
    }
    merged: dict[str, Any] = defaults | {"validate_every": 10_000, "checkpoint_every": 10_000} | settings
    config = TrainingConfig(**merged)
    optimizer = Optimizer(model, config)
    return Trainer(
        model, optimizer, None, config, batches, max_steps=None if hooks and hooks.plan_steps else config.max_steps,
        hooks=hooks or Hooks(), progress=Progress(),
    )  # fmt: skip


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_one_batch_is_learnt_by_heart(precision: torch.dtype) -> None:
    model = build_model()
    training = trainer(model, FixedBatches(batch(0, 1, 2, 3)), max_steps=200, log_every=200)
    training.dtype = precision
    logged: list[dict[str, Any]] = []
    training.hooks.log = logged.append
    training.run()
    model.eval()
    with torch.inference_mode():
        fast = FastTransformer(model)
        found = Greedy()(fast, fast.encode(batch(0, 1, 2, 3).src), Task([9] * 4, BOS_ID, EOS_ID))
    assert [hypothesis.ids for (hypothesis,) in found] == [tgt for _, tgt in PAIRS]
    assert all(hypothesis.log_prob > -0.1 for (hypothesis,) in found)
    assert logged[0]["step"] == 200


def test_accumulated_batches_give_the_gradient_of_one_batch_of_all_their_tokens() -> None:
    """The loss is normalised by all the tokens, however unevenly they are spread over the batches."""
    whole, parts = build_model(), build_model()
    once = {"max_steps": 1, "max_grad_norm": 0.0}
    trainer(whole, FixedBatches(batch(0, 1, 2, 3)), **once).run()
    trainer(parts, FixedBatches(batch(0, 1), batch(2), batch(3)), grad_accum_steps=3, **once).run()
    for a, b in zip(whole.parameters(), parts.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_parts_give_the_gradient_of_the_whole_batch(norm_order: Any) -> None:
    """Six sentences in 1, 2, 4 and 8 parts, the last two of which are empty; dropout off, fp32."""
    rng = torch.Generator().manual_seed(3)
    lengths = [(9, 7), (8, 8), (3, 9), (9, 2), (5, 5), (7, 6)]
    words = lambda length: torch.randint(5, 12, (length,), generator=rng).tolist()  # noqa: E731
    whole = to_tensors(make_batch([(words(s), words(t)) for s, t in lengths]), torch.device("cpu"))
    gradients: list[torch.Tensor] = []
    for parts in (1, 2, 4, 8):
        model = build_model(norm_order=norm_order)
        training = trainer(model, FixedBatches(whole, batch(0, 1)), grad_accum_steps=2, max_steps=1, max_grad_norm=0.0)
        training.parts = parts
        training.run()
        assert training.progress.tokens == whole.num_tokens + batch(0, 1).num_tokens
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
    assert gradients[0].norm() > 0.1
    for gradient in gradients[1:]:
        torch.testing.assert_close(gradient, gradients[0], rtol=0, atol=1e-5)


def test_the_last_update_of_an_epoch_takes_the_batches_that_are_left() -> None:
    training = trainer(build_model(), FixedBatches(batch(0), batch(1), batch(2)), max_steps=4, grad_accum_steps=2)
    training.run()
    assert (training.progress.epoch, training.progress.next_batch) == (1, 3)
    assert training.progress.tokens == 2 * sum(batch(i).num_tokens for i in range(3))


def test_the_next_batch_is_loaded_before_the_host_waits_and_each_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    class Recorded(FixedBatches):
        def load_part(self, epoch: int, index: int, part: int, parts: int) -> TensorBatch | None:
            events.append(f"load {epoch}.{index}")
            return super().load_part(epoch, index, part, parts)

    waiting = GradientBuffer.normalise

    def normalise(self: GradientBuffer, max_norm: float) -> tuple[float, int, float]:
        events.append("wait")
        return waiting(self, max_norm)

    monkeypatch.setattr(GradientBuffer, "normalise", normalise)
    trainer(build_model(), Recorded(batch(0), batch(1), batch(2)), grad_accum_steps=2, max_steps=3).run()
    one_epoch = ["load 0.0", "load 0.1", "load 0.2", "wait", "load 1.0", "wait"]
    assert events == [*one_epoch, "load 1.1", "wait"]


def test_gradients_are_clipped() -> None:
    model = build_model()
    training = trainer(model, FixedBatches(batch(0, 1, 2, 3)), max_steps=1, max_grad_norm=0.01)
    training.run()
    norm = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm()
    assert norm.item() == pytest.approx(0.01, rel=1e-3)


def test_dropout_depends_on_the_step_alone() -> None:
    """Random numbers drawn elsewhere between two steps change nothing."""
    calm, disturbed = build_model(dropout=0.5), build_model(dropout=0.5)
    trainer(calm, FixedBatches(batch(0, 1)), max_steps=6).run()
    noisy = trainer(disturbed, FixedBatches(batch(0, 1)), max_steps=6)

    def disturb(progress: Progress, max_steps: int | None) -> None:
        del max_steps
        torch.rand(progress.step)

    noisy.hooks.on_step = disturb
    noisy.run()
    assert all(torch.equal(a, b) for a, b in zip(calm.parameters(), disturbed.parameters(), strict=True))


def test_bad_gradients_are_skipped_and_then_end_the_run() -> None:
    model = build_model()
    poisoned = FixedBatches(batch(0, 1))
    training = trainer(model, poisoned, max_steps=50)
    clean_loss = training._loss

    def poison(progress: Progress, max_steps: int | None) -> None:
        del max_steps
        bad = progress.step in (3, 4) or progress.step >= 6  # two bad updates, a good one, and then only bad ones
        training._loss = (lambda batch: clean_loss(batch) * torch.nan) if bad else clean_loss

    training.hooks.on_step = poison
    with pytest.raises(TrainingDiverged, match="diverged at step 9"):
        training.run()
    assert all(bool(parameter.isfinite().all()) for parameter in model.parameters())


def test_a_time_limit_is_turned_into_steps_once_and_nothing_is_saved_before() -> None:
    seen: list[tuple[int, float]] = []
    saved: list[int] = []

    def plan(progress: Progress, seconds: float) -> int:
        seen.append((progress.step, seconds))
        return PLAN_STEP + 5

    hooks = Hooks(plan_steps=plan, save=lambda progress: saved.append(progress.step))
    training = trainer(build_model(), FixedBatches(batch(0)), hooks, max_time="1h", checkpoint_every=10)
    training.run()
    assert [step for step, _ in seen] == [PLAN_STEP]
    assert 0 < seen[0][1] < 1
    assert training.progress.step == PLAN_STEP + 5
    assert saved == [PLAN_STEP, PLAN_STEP + 5]


def test_bad_updates_before_a_stop_count_after_it() -> None:
    training = trainer(build_model(), FixedBatches(batch(0, 1)), max_steps=50)
    training.progress.bad_updates = MAX_BAD_UPDATES - 1
    clean_loss = training._loss
    training._loss = lambda batch: clean_loss(batch) * torch.nan
    with pytest.raises(TrainingDiverged, match=r"diverged at step 1 .*a new --run with --set training.learning_rate"):
        training.run()


def test_advice_on_divergence_names_the_rates_of_both_optimizers() -> None:
    training = trainer(build_model(), FixedBatches(batch(0)), optimizer="muon", muon_learning_rate=0.02)
    training.progress.bad_updates = MAX_BAD_UPDATES - 1
    training._loss = lambda batch: training.model(batch.src, batch.tgt_in).sum() * torch.nan
    with pytest.raises(TrainingDiverged, match=r"learning_rate=0.001 --set training.muon_learning_rate=0.002"):
        training.run()


def test_a_validation_left_at_once_saves_nothing() -> None:
    """A second Ctrl-C may come while averages and weights are being exchanged."""
    saved: list[int] = []

    def leave(progress: Progress) -> None:
        raise InterruptedAtOnce("interrupted")

    hooks = Hooks(validate=leave, save=lambda progress: saved.append(progress.step))
    training = trainer(build_model(), FixedBatches(batch(0)), hooks, validate_every=2, max_steps=4)
    with pytest.raises(InterruptedAtOnce):
        training.run()
    assert saved == []


def test_a_pause_is_not_counted_as_part_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A laptop is closed for a while."""
    seen: list[float] = []
    pause, pauses = 1000.0, list[float]()  # seconds
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + sum(pauses)))
    hooks = Hooks(plan_steps=lambda progress, seconds: seen.append(seconds) or progress.step + 1)
    hooks.on_step = lambda progress, max_steps: pauses.append(pause) if progress.step == 50 else None
    training = trainer(build_model(), FixedBatches(batch(0)), hooks, max_time="1h", validate_every=1000)
    training.run()
    assert len(pauses) == 1 and seen[0] < pause / PLAN_STEP


def test_nothing_is_the_best_that_may_not_be_saved() -> None:
    """A run goes on at step 15 with a time limit: until that is a number of steps it saves nothing."""
    saved: list[int] = []
    hooks = Hooks(plan_steps=lambda progress, seconds: 15 + PLAN_STEP + 10, save=lambda p: saved.append(p.step))
    hooks.validate = lambda progress: {"score": -progress.step}  # the earliest is the best
    training = trainer(build_model(), FixedBatches(batch(0)), hooks, max_time="1h", max_steps=1000, validate_every=10)
    training.progress.step = 15
    training.run()
    assert training.progress.best_step in saved


def test_a_run_under_way_is_timed_before_its_length_is_planned() -> None:
    """It goes on with a time limit from step 100, say."""
    hooks = Hooks(plan_steps=lambda progress, seconds: progress.step + 5)
    training = trainer(build_model(), FixedBatches(batch(0)), hooks, max_time="1h", max_steps=1000)
    training.progress.step = 100
    training.run()
    assert training.progress.step == 100 + PLAN_STEP + 5


@pytest.mark.parametrize(("looks", "saved"), [(30, False), (PLAN_STEP + 2, True)])
def test_stopped_before_its_length_is_known_it_says_what_is_lost(looks: int, saved: bool) -> None:
    hooks = Hooks(plan_steps=lambda progress, seconds: 100)
    training = trainer(build_model(), FixedBatches(batch(0)), hooks, max_time="1h", max_steps=1000)
    hooks.stop_requested = lambda: 2 if training.progress.step == looks else None
    with pytest.raises(Interrupted, match=f"stopped after step {looks}") as caught:
        training.run()
    assert ("not saved" in str(caught.value)) == (not saved)
