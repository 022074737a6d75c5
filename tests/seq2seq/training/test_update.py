"""One update: it overfits one batch, accumulates as if in one, clips, and stops when gradients go bad."""

from typing import Any

import pytest
import torch
from helpers.fixed_batches import PAIRS, FixedBatches, WholeBatches, batch, build_model, make_trainer, make_updates

from tfm.data.batching import training_rows
from tfm.data.tokenizer import BOS_ID, EOS_ID
from tfm.seq2seq.decoding.fast import FastTransformer
from tfm.seq2seq.decoding.greedy import Greedy
from tfm.seq2seq.decoding.search import Task
from tfm.seq2seq.model import Transformer
from tfm.seq2seq.training.batch import Batch, Packer
from tfm.seq2seq.training.schedule import learning_rate
from tfm.seq2seq.training.update import MAX_BAD_UPDATES, GradientBuffer, Totals, Trainer
from tfm.system.errors import OutOfMemory, TrainingDiverged


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_one_batch_is_learnt_by_heart(precision: torch.dtype) -> None:
    model = build_model()
    training = make_trainer(model, FixedBatches(batch(0, 1, 2, 3)), max_steps=200, dtype=precision)
    make_updates(training)
    model.eval()
    with torch.inference_mode():
        fast = FastTransformer(model)
        found = Greedy()(fast, fast.encode(batch(0, 1, 2, 3).src), Task([9] * 4, BOS_ID, EOS_ID))
    assert [hypothesis.ids for (hypothesis,) in found] == [tgt for _, tgt in PAIRS]
    assert all(hypothesis.log_prob > -0.1 for (hypothesis,) in found)


def test_accumulated_batches_give_the_gradient_of_one_batch_of_all_their_tokens() -> None:
    """The loss is normalised by all the tokens, however unevenly they are spread over the batches."""
    whole, parts = build_model(), build_model()
    once = {"max_steps": 1, "max_grad_norm": 0.0}
    make_updates(make_trainer(whole, FixedBatches(batch(0, 1, 2, 3)), **once))
    make_updates(make_trainer(parts, FixedBatches(batch(0, 1), batch(2), batch(3)), grad_accum_steps=3, **once))
    for a, b in zip(whole.parameters(), parts.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_parts_give_the_gradient_of_the_whole_batch(norm_order: Any) -> None:
    """Six sentences in 1, 2, 4 and 8 parts, the last two of which are empty; dropout off, fp32."""
    rng = torch.Generator().manual_seed(3)
    lengths = [(9, 7), (8, 8), (3, 9), (9, 2), (5, 5), (7, 6)]
    words = lambda length: torch.randint(5, 12, (length,), generator=rng).tolist()  # noqa: E731
    whole = Batch.of(training_rows([(words(s), words(t)) for s, t in lengths]))
    gradients: list[torch.Tensor] = []
    for parts in (1, 2, 4, 8):
        model = build_model(norm_order=norm_order)
        settings = {"grad_accum_steps": 2, "max_steps": 1, "max_grad_norm": 0.0}
        training = make_trainer(model, FixedBatches(whole, batch(0, 1)), parts=parts, **settings)
        make_updates(training)
        assert training.progress.tokens == whole.num_tokens + batch(0, 1).num_tokens
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
    assert gradients[0].norm() > 0.1
    for gradient in gradients[1:]:
        torch.testing.assert_close(gradient, gradients[0], rtol=0, atol=1e-5)


def test_the_last_update_of_an_epoch_takes_the_batches_that_are_left() -> None:
    training = make_trainer(build_model(), FixedBatches(batch(0), batch(1), batch(2)), max_steps=4, grad_accum_steps=2)
    make_updates(training)
    assert (training.progress.epoch, training.progress.next_batch) == (1, 3)
    assert training.progress.tokens == 2 * sum(batch(i).num_tokens for i in range(3))


def test_the_next_batch_is_loaded_before_the_host_waits_and_each_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    class Recorded(FixedBatches):
        def load_part(self, epoch: int, index: int, part: int, parts: int) -> Batch | None:
            events.append(f"load {epoch}.{index}")
            return super().load_part(epoch, index, part, parts)

    waiting = GradientBuffer.normalise_and_clip

    def normalise(self: GradientBuffer, max_norm: float) -> Totals:
        events.append("wait")
        return waiting(self, max_norm)

    monkeypatch.setattr(GradientBuffer, "normalise_and_clip", normalise)
    make_updates(make_trainer(build_model(), Recorded(batch(0), batch(1), batch(2)), grad_accum_steps=2, max_steps=3))
    one_epoch = ["load 0.0", "load 0.1", "load 0.2", "wait", "load 1.0", "wait"]
    assert events == [*one_epoch, "load 1.1", "load 1.2", "wait"]


def test_gradients_are_clipped() -> None:
    model = build_model()
    training = make_trainer(model, FixedBatches(batch(0, 1, 2, 3)), max_steps=1, max_grad_norm=0.01)
    make_updates(training)
    norm = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm()
    assert norm.item() == pytest.approx(0.01, rel=1e-3)


def test_dropout_depends_on_the_step_alone() -> None:
    """Random numbers drawn elsewhere between two steps change nothing."""
    calm, disturbed = build_model(dropout=0.5), build_model(dropout=0.5)
    make_updates(make_trainer(calm, FixedBatches(batch(0, 1)), max_steps=6))
    noisy = make_trainer(disturbed, FixedBatches(batch(0, 1)), max_steps=6)
    for step in range(6):
        noisy.update(learning_rate(step + 1, noisy.config, 6))
        torch.rand(step)
    assert all(torch.equal(a, b) for a, b in zip(calm.parameters(), disturbed.parameters(), strict=True))


def no_number(model: Transformer, batch: Batch) -> tuple[torch.Tensor, int]:
    """A loss that is never finite."""
    return model(batch.src, batch.tgt_in).sum() * torch.nan, batch.num_tokens


def test_bad_gradients_are_skipped_and_then_end_the_run() -> None:
    model = build_model()
    poisoned = FixedBatches(batch(0, 1))
    training = make_trainer(model, poisoned, max_steps=50)
    good = training.loss

    def poisoned_loss(model: Transformer, batch: Batch) -> tuple[torch.Tensor, int]:
        loss, num_tokens = good(model, batch)
        step = training.progress.step
        bad = step in (3, 4) or step >= 6  # two bad updates, a good one, and then only bad ones
        return loss * (torch.nan if bad else 1), num_tokens

    training.loss = poisoned_loss
    norms = [training.update(0.001) for _ in range(6)]
    assert [number for number, norm in enumerate(norms) if norm is None] == [3, 4]
    with pytest.raises(TrainingDiverged, match="diverged at step 9"):
        make_updates(training)
    assert all(bool(parameter.isfinite().all()) for parameter in model.parameters())


def test_bad_updates_before_a_stop_count_after_it() -> None:
    training = make_trainer(build_model(), FixedBatches(batch(0, 1)), max_steps=50)
    training.progress.bad_updates = MAX_BAD_UPDATES - 1
    training.loss = no_number
    with pytest.raises(TrainingDiverged, match=r"diverged at step 1 .*a new --run with --set training.learning_rate"):
        make_updates(training)


def test_advice_on_divergence_names_the_rates_of_both_optimizers() -> None:
    training = make_trainer(build_model(), FixedBatches(batch(0)), optimizer="muon", muon_learning_rate=0.02)
    training.progress.bad_updates = MAX_BAD_UPDATES - 1
    training.loss = no_number
    with pytest.raises(TrainingDiverged, match=r"learning_rate=0.001 --set training.muon_learning_rate=0.002"):
        make_updates(training)


class Cramped:
    """A loss for which a batch of more sentences than `room` needs too much memory, before or after its gradients."""

    def __init__(self, training: Trainer, room: int, *, after_backward: bool) -> None:
        self._good, self._room, self._after = training.loss, room, after_backward
        self.sentences: list[int] = []

    def __call__(self, model: Transformer, batch: Batch) -> tuple[torch.Tensor, int]:
        loss, num_tokens = self._good(model, batch)
        if len(batch) > self._room:
            if self._after:
                loss.backward()  # what the one that fails has added does not count
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        self.sentences.append(len(batch))
        return loss, num_tokens


def packed(*rows: int) -> Batch:
    return Packer(60).pack(training_rows([PAIRS[row] for row in rows]))


@pytest.mark.parametrize("after_backward", [False, True])
@pytest.mark.parametrize("room", [1, 2, 3])
@pytest.mark.parametrize("second", [batch(0, 1, 2, 3), packed(0, 1, 2, 3)], ids=["padded", "packed"])
def test_a_batch_that_does_not_fit_is_computed_in_pieces_and_no_sentence_is_lost(
    room: int, after_backward: bool, second: Batch
) -> None:
    """Two batches in an update: the second does not fit, so that the first has to be computed anew."""
    gradients: list[torch.Tensor] = []
    for cramped in (False, True):
        model = build_model()
        settings = {"grad_accum_steps": 2, "max_steps": 2, "max_grad_norm": 0.0}
        training = make_trainer(model, WholeBatches(batch(0), second), **settings)
        if cramped:
            training.loss = Cramped(training, room, after_backward=after_backward)
        make_updates(training)
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
        assert training.progress.tokens == 2 * (batch(0).num_tokens + batch(0, 1, 2, 3).num_tokens)
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-6)
    assert isinstance(training.loss, Cramped)
    assert training.progress.divided == 2
    assert 0 < training.progress.fitting < second.positions
    assert max(training.loss.sentences) <= room


def test_what_did_not_fit_is_not_tried_again_in_later_updates() -> None:
    training = make_trainer(build_model(), FixedBatches(batch(0, 1, 2, 3)), max_steps=5)
    good, tried = training.loss, list[int]()

    def cramped(model: Transformer, batch: Batch) -> tuple[torch.Tensor, int]:
        tried.append(len(batch))
        if len(batch) > 2:
            raise MemoryError
        return good(model, batch)

    training.loss = cramped
    make_updates(training)
    assert tried == [4] + [2, 2] * 5


def test_a_sentence_that_does_not_fit_ends_the_run_with_advice() -> None:
    training = make_trainer(build_model(), FixedBatches(batch(0, 1)), max_steps=5)
    training.loss = Cramped(training, 0, after_backward=False)
    with pytest.raises(OutOfMemory, match=r"step 1: not enough memory for a single sentence of \d+ positions; end"):
        make_updates(training)


def test_with_dropout_pieces_have_masks_of_their_own_and_always_the_same() -> None:
    weights: list[list[torch.Tensor]] = []
    for _ in range(2):
        model = build_model(dropout=0.5)
        training = make_trainer(model, FixedBatches(batch(0, 1, 2, 3)), max_steps=3)
        training.loss = Cramped(training, 2, after_backward=True)
        make_updates(training)
        weights.append([parameter.detach() for parameter in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))
