"""A rung of the ladder for a peer: MarianMTModel of transformers, trained for some minutes and scored like tfm.

The sizes are those that Araabi and Monz (2020) propose for 5,000 pairs, as far as they carry over: few layers, few
heads, narrow feed-forward layers, a small BPE vocabulary, much dropout, also of activations, and strong smoothing of
the labels. What the paper leaves to the user has the best settings known for a CPU (training.py): bf16 where the
processor computes it, fused AdamW, batches of similar lengths. The rate rises for `--warmup` updates and falls to zero
with the time, as in transformers' own Trainer, so that it is right for any number of minutes.
"""

import argparse
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from common import BenchmarkError, processor_flags, read_lines, report_errors, say
from ladder import looping_share
from marian import build_marian
from torch import Tensor
from torch.nn import functional as F
from train_marian import BOS_ID, EOS_ID, IGNORE, PAD_ID, pad

UNK_ID = 1
BEAM_SIZE = 5
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


def flags() -> argparse.ArgumentParser:
    """The flags of the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rung", type=Path, required=True, metavar="DIR", help="as ladder.py build wrote it")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="for all that the script writes")
    parser.add_argument("--minutes", type=float, required=True, help="of training")
    parser.add_argument("--set", dest="part", choices=("valid", "test"), default="valid", help="what to score")
    parser.add_argument("--vocab-size", type=int, default=5000)
    parser.add_argument("--d-model", type=int, default=512)
    parser.add_argument("--d-ff", type=int, default=512)
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=5, help="of each stack")
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--tokens", type=int, default=4096, help="of a batch")
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--warmup", type=int, default=200, help="updates")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--label-smoothing", type=float, default=0.6)
    return parser


def train_vocabulary(rung: Path, stem: Path, size: int) -> Any:
    """A joint BPE vocabulary of both sides of the training text."""
    sentencepiece.SentencePieceTrainer.train(
        input=",".join(str(rung / f"train.{side}") for side in ("src", "tgt")),
        model_prefix=str(stem),
        model_type="bpe",
        vocab_size=size,
        character_coverage=1.0,
        pad_id=PAD_ID,
        unk_id=UNK_ID,
        bos_id=BOS_ID,
        eos_id=EOS_ID,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_file=f"{stem}.model")


def print_figures(options: argparse.Namespace, outputs: list[str], updates: int) -> None:
    """Keeps the translations, and prints their scores as one JSON object."""
    from tfm.engine.evaluation.scores import score

    text = "".join(f"{line}\n" for line in outputs)
    (options.output / f"{options.part}.hyp").write_text(text, encoding="utf-8")
    references = [[line] for line in read_lines(options.rung / f"{options.part}.tgt")]
    scores = {name: score(name, outputs, references) for name in ("bleu", "chrf")}
    figures: dict[str, Any] = {name: round(found.value, 2) for name, found in scores.items()}
    signatures = sorted(found.signature for found in scores.values())
    print(json.dumps(figures | {"loops": looping_share(outputs), "updates": updates, "signatures": signatures}))


def main() -> None:
    """Trains, translates, prints the figures as one JSON object."""
    options = flags().parse_args()

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
