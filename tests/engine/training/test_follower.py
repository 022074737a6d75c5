"""What the leader hands to a follower arrives as it was sent, and is no pickle."""

from dataclasses import fields

import torch
from helpers.descriptions import describe

from tfm.engine.training.follower import Start, follow
from tfm.engine.workers.ranks import Ranks
from tfm.seq2seq.model.config import ModelConfig
from tfm.seq2seq.training.config import TrainingConfig
from tfm.seq2seq.training.progress import Progress

DESCRIPTION = describe(ModelConfig(d_model=4, d_ff=4, num_heads=1, num_encoder_layers=1, num_decoder_layers=1))


def start() -> Start:
    return Start(
        config=TrainingConfig(adam_betas=(0.8, 0.9), max_steps=None, max_time="1h"),
        description=DESCRIPTION,
        progress=Progress(step=5, best_score=1 / 3, loss_sum=0.1),
        device="cpu",
        precision="bf16",
        muon_precision="fp32",
        parts=3,
        weights={"matrix": torch.randn(3, 4).T, "scalar": torch.tensor(0.5)},
        optimizer={"exp_avg/matrix": torch.randn(4, 3), "step/matrix": torch.tensor(5.0)},
    )


def test_all_arrives_as_it_was_sent() -> None:
    sent = start()
    got = Start.from_bytes(sent.to_bytes())
    for field in fields(Start):
        ours, theirs = getattr(sent, field.name), getattr(got, field.name)
        if field.name in ("weights", "optimizer"):
            assert ours.keys() == theirs.keys()
            assert all(ours[name].equal(theirs[name]) for name in ours)
        else:
            assert ours == theirs


def test_a_finished_run_has_nothing_to_hand_out() -> None:
    follow(Ranks())  # alone, it hears of nothing
