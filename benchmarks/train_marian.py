"""One contestant of training.py: MarianMTModel trained for some seconds, as a user writes it or as well as it goes."""

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import count
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from common import measured, throughput
from marian import build_marian
from torch import Tensor
from torch.nn import functional as F

BOS_ID, EOS_ID, PAD_ID, IGNORE = 2, 3, 0, -100


class Pairs:
    """The tokenised corpus as training.py left it, and tfm's own batches of it.

    Args:
        path: An .npz file: flat ids and offsets of both sides, rows and offsets of the batches of a few epochs.
    """

    def __init__(self, path: Path) -> None:
        with np.load(path) as arrays:
            self._arrays = {name: arrays[name] for name in arrays.files}

    def __len__(self) -> int:
        return len(self._arrays["src_offsets"]) - 1

    def row(self, side: str, number: int) -> list[int]:
        """The ids of one side of a pair."""
        return self._piece(side, number).tolist()

    def _piece(self, name: str, number: int) -> npt.NDArray[np.int64]:
        offsets = self._arrays[f"{name}_offsets"]
        return self._arrays[name][offsets[number] : offsets[number + 1]]

    def sorted_batches(self) -> Iterator[list[int]]:
        """Rows of similar length within a budget of tokens, as tfm divides a corpus."""
        while True:
            for number in range(len(self._arrays["batch_offsets"]) - 1):
                yield self._piece("batch", number).tolist()

    def shuffled_batches(self, tokens: int) -> Iterator[list[int]]:
        """Random rows, so many that a batch has about `tokens` target tokens."""
        size = max(1, round(tokens * len(self) / (len(self._arrays["tgt"]) + len(self))))
        for epoch in count():
            order = np.random.default_rng(epoch).permutation(len(self)).tolist()
            yield from (order[start : start + size] for start in range(0, len(order), size))


def collate(pairs: Pairs, rows: list[int]) -> tuple[dict[str, Tensor], Tensor]:
    """The model's arguments and the labels of a batch, padded to the longest of each side."""
    src = [[*pairs.row("src", row), EOS_ID] for row in rows]
    tgt = [pairs.row("tgt", row) for row in rows]
    input_ids = pad(src, PAD_ID)
    arguments = {
        "input_ids": input_ids,
        "attention_mask": (input_ids != PAD_ID).long(),
        "decoder_input_ids": pad([[BOS_ID, *row] for row in tgt], PAD_ID),
    }
    return arguments, pad([[*row, EOS_ID] for row in tgt], IGNORE)


def pad(rows: list[list[int]], value: int) -> Tensor:
    """Rows as one (B, longest) tensor."""
    longest = max(map(len, rows))
    return torch.tensor([row + [value] * (longest - len(row)) for row in rows])


def main() -> None:
    """Trains and prints target tokens per second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--model", type=json.loads, required=True, help="ModelConfig as JSON, with vocab_size")
    parser.add_argument("--batches", choices=("shuffled", "sorted"), required=True)
    parser.add_argument("--tokens", type=int, required=True, help="of a batch")
    parser.add_argument("--optimizer", choices=("default", "fused"), required=True)
    parser.add_argument("--precision", choices=("fp32", "bf16"), required=True)
    parser.add_argument("--attention", choices=("default", "eager", "sdpa"), required=True)
    parser.add_argument("--warmup", type=float, required=True, help="seconds left out")
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()

    torch.manual_seed(1)
    pairs = Pairs(options.pairs)
    batches = pairs.sorted_batches() if options.batches == "sorted" else pairs.shuffled_batches(options.tokens)
    attention = None if options.attention == "default" else options.attention
    model = build_marian(options.model, options.model["vocab_size"], attention).train()
    fused = True if options.optimizer == "fused" else None  # None is torch's default
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused)
    cast = torch.autocast("cpu", torch.bfloat16) if options.precision == "bf16" else nullcontext()
    records: list[tuple[float, float]] = []
    tokens = 0
    for rows in batches:
        arguments, labels = collate(pairs, rows)
        optimizer.zero_grad(set_to_none=True)
        with cast:
            logits = model(**arguments, use_cache=False).logits
            loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        tokens += int((labels != IGNORE).sum())
        records.append((time.perf_counter(), tokens))
        if measured(records, options.warmup, options.seconds):
            break
    print(json.dumps({"tokens_per_second": throughput(records, options.warmup), "steps": len(records)}))


if __name__ == "__main__":
    main()
