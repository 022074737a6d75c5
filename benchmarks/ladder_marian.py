"""A rung of the ladder for a peer: MarianMTModel of transformers, trained for some minutes and scored like tfm.

The sizes are those that Araabi and Monz (2020) propose for 5,000 pairs, as far as they carry over: few layers, few
heads, narrow feed-forward layers, a small BPE vocabulary, much dropout, also of activations, and strong smoothing of
the labels. What the paper leaves to the user has the best settings known for a CPU (training.py): bf16 where the
processor computes it, fused AdamW, batches of similar lengths. The rate rises for `--warmup` updates and falls to zero
with the time, as in transformers' own Trainer, so that it is right for any number of minutes.
"""

import argparse
import random
import time
from collections.abc import Iterator
from typing import Any

import torch
from common import BenchmarkError, processor_flags, read_lines, report_errors, say
from ladder_peer import BEAM_SIZE, UNK_ID, peer_parser, print_figures, train_vocabulary
from marian import build_marian
from torch import Tensor
from torch.nn import functional as F
from train_marian import BOS_ID, EOS_ID, IGNORE, PAD_ID, pad

MAX_LENGTH = 256
"""Positions; longer pairs are left out of training, longer sources are cut."""
BF16_INSTRUCTIONS = {"amx_bf16", "avx512_bf16"}
"""A processor that has neither computes bf16 some ten times slower than fp32."""
Pair = tuple[list[int], list[int]]


def epochs(pairs: list[Pair], tokens: int, seed: int) -> Iterator[list[Pair]]:
    """Batches of similar lengths in random order, without end; each side has at most `tokens` pieces with padding."""
    draw = random.Random(seed)
    while True:
        order = sorted(pairs, key=lambda pair: (max(map(len, pair)), draw.random()))
        batches: list[list[Pair]] = [[]]
        for pair in order:
            if batches[-1] and (len(batches[-1]) + 1) * (max(map(len, pair)) + 1) > tokens:
                batches.append([])
            batches[-1].append(pair)
        draw.shuffle(batches)
        yield from batches


def loss_of(model: Any, batch: list[Pair], label_smoothing: float, bf16: bool) -> Tensor:
    """Mean over the target pieces."""
    input_ids = pad([[*src, EOS_ID] for src, _ in batch], PAD_ID)
    labels = pad([[*tgt, EOS_ID] for _, tgt in batch], IGNORE)
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        logits = model(
            input_ids=input_ids,
            attention_mask=(input_ids != PAD_ID).long(),
            decoder_input_ids=pad([[BOS_ID, *tgt] for _, tgt in batch], PAD_ID),
            use_cache=False,
        ).logits
        return F.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE, label_smoothing=label_smoothing
        )


def train(model: Any, pairs: list[Pair], options: argparse.Namespace) -> int:
    """Trains until the minutes are over; returns the number of updates."""
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=options.learning_rate, betas=(0.9, 0.98), weight_decay=1e-4, fused=True
    )
    model.train()
    bf16 = not BF16_INSTRUCTIONS.isdisjoint(processor_flags())
    start, step = time.monotonic(), 0
    for batch in epochs(pairs, options.tokens, options.seed):
        passed = (time.monotonic() - start) / (60 * options.minutes)
        if passed >= 1:
            break
        step += 1
        for group in optimizer.param_groups:
            group["lr"] = options.learning_rate * min(step / options.warmup, 1) * (1 - passed)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model, batch, options.label_smoothing, bf16)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0:
            say(f"step {step}, {100 * passed:.0f} % of the time, loss {loss.item():.3f}")
    return step


@torch.inference_mode()
def translate(model: Any, vocabulary: Any, texts: list[str]) -> list[str]:
    """With a beam of 5, in batches of similar lengths."""
    model.eval()
    rows = [[*vocabulary.encode(text)[: MAX_LENGTH - 1], EOS_ID] for text in texts]
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
    found: dict[int, str] = {}
    for start in range(0, len(order), 32):
        chosen = order[start : start + 32]
        input_ids = pad([rows[i] for i in chosen], PAD_ID)
        outputs = model.generate(
            input_ids=input_ids,
            attention_mask=(input_ids != PAD_ID).long(),
            num_beams=BEAM_SIZE,
            do_sample=False,
            max_length=min(2 * input_ids.size(1) + 20, MAX_LENGTH),
            suppress_tokens=[PAD_ID, UNK_ID, BOS_ID],
        )
        for i, ids in zip(chosen, outputs.tolist(), strict=True):
            found[i] = vocabulary.decode([piece for piece in ids if piece not in (PAD_ID, BOS_ID, EOS_ID)])
    return [found[i] for i in range(len(rows))]


def main() -> None:
    """Trains, translates, prints the figures as one JSON object."""
    parser = peer_parser(__doc__, d_model=512, d_ff=512, heads=2, layers=5, warmup=200)
    parser.add_argument("--label-smoothing", type=float, default=0.6)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    options.output.mkdir(parents=True, exist_ok=True)
    vocabulary = train_vocabulary(options.rung, options.output / "bpe", options.vocab_size)
    sides = [vocabulary.encode(read_lines(options.rung / f"train.{side}")) for side in ("src", "tgt")]
    pairs = [pair for pair in zip(*sides, strict=True) if max(map(len, pair)) < MAX_LENGTH]
    if not pairs or options.minutes <= 0:
        raise BenchmarkError("there is nothing to train on, or no time for it")
    model = build_marian(
        {
            "d_model": options.d_model,
            "d_ff": options.d_ff,
            "num_heads": options.heads,
            "num_encoder_layers": options.layers,
            "num_decoder_layers": options.layers,
            "max_seq_len": MAX_LENGTH,
            "activation": "relu",
            "dropout": options.dropout,
            "attention_dropout": 0.0,
            "feed_forward_dropout": options.dropout,
            "scale_embeddings": True,
        },
        options.vocab_size,
    )
    updates = train(model, pairs, options)
    outputs = translate(model, vocabulary, read_lines(options.rung / f"{options.part}.src"))
    print_figures(options, outputs, updates)


if __name__ == "__main__":
    report_errors(main)
