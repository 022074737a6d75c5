"""The models and batches of gpu.py: presets, tfm's own trainer, random pieces in lengths as text has them."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gpu_records import Options

from tfm.configs import RunConfig, load_config, merge, parse_config
from tfm.data.tokenizer import FIRST_TEXT_ID
from tfm.engine.device import computes_bf16, pick_device
from tfm.engine.runs.checkpoint import FORMAT_VERSION, ModelDescription
from tfm.engine.training.build import build_trainer
from tfm.seq2seq.training.batch import BatchProvider, Group
from tfm.seq2seq.training.optimizer import MovingAverage
from tfm.seq2seq.training.progress import Progress
from tfm.seq2seq.training.update import Trainer

TINY_LAYERS = {"d_model": 16, "d_ff": 32, "num_heads": 2, "max_seq_len": 32}
TINY_VOCABULARY = 300
TINY_SHARE = 64
"""By so much the tokens of a batch are divided where all is tiny."""
RATE = 1e-5
"""Learning rate of updates that are only timed."""


@dataclass(frozen=True)
class Case:
    """A model and its batches.

    Attributes:
        name: In the report.
        preset: Where its settings come from.
        tokens, batches: Positions of a batch, and batches of an update.
        mean_length, shape: Of targets in pieces; shape of the gamma distribution that their lengths have.
        pairs: That an epoch has.
    """

    name: str
    preset: str
    tokens: int
    batches: int
    mean_length: float
    shape: float
    pairs: int


MULTI30K = Case("multi30k, 2 x 2,048 tokens", "multi30k", 2048, 2, 14, 8, 29_000)
MULTI30K_WHOLE = Case("multi30k, 1 x 4,096 tokens", "multi30k", 4096, 1, 14, 8, 29_000)
MULTI30K_LARGE = Case("multi30k, 1 x 16,384 tokens", "multi30k", 16_384, 1, 14, 8, 29_000)
BASE = Case("base, 1 x 25,000 tokens", "pairs-1m", 25_000, 1, 27, 3, 30_000)
BASE_LARGE = Case("base, 4 x 25,000 tokens", "pairs-1m", 25_000, 4, 27, 3, 30_000)


class RandomPairs:
    """What tfm's batches read of a `TokenStore`: random ids of both sides.

    Args:
        case: How many, and how long.
        vocab_size: Ids are those of pieces of text.
        longest: Most pieces.
    """

    def __init__(self, case: Case, vocab_size: int, longest: int) -> None:
        rng = np.random.default_rng(1)
        lengths = rng.gamma(case.shape, case.mean_length / case.shape, case.pairs)
        sides = lengths * rng.lognormal(0, 0.15, case.pairs), lengths
        self.src_lengths, self.tgt_lengths = (side.round().clip(1, longest).astype(np.int32) for side in sides)
        ends = np.concatenate([self.src_lengths, self.tgt_lengths]).cumsum()
        self._ids = rng.integers(FIRST_TEXT_ID, vocab_size, int(ends[-1])).astype(np.int32)
        self._src_ends, self._tgt_ends = ends[: case.pairs], ends[case.pairs :]

    def __len__(self) -> int:
        return len(self.src_lengths)

    def __getitem__(self, row: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        src, tgt = int(self._src_ends[row]), int(self._tgt_ends[row])
        return self._ids[src - self.src_lengths[row] : src], self._ids[tgt - self.tgt_lengths[row] : tgt]


@dataclass(frozen=True)
class Bench:
    """A trainer, ready to be timed.

    Attributes:
        case: What it trains.
        settings: Of the run.
        trainer: tfm's own, on its device.
        pairs: Its data.
        description: Of its model.
        provider: Its batches, to take single ones.
        dtype: Precision of its activations.
    """

    case: Case
    settings: RunConfig
    trainer: Trainer
    pairs: RandomPairs
    description: ModelDescription
    provider: BatchProvider
    dtype: torch.dtype

    def batch(self, number: int = 0) -> Any:
        """One of its batches, on its device; after the last comes the first."""
        return self.provider.load_part(0, number % self.provider.num_batches(0), 0, 1)

    def update(self) -> None:
        """Makes one."""
        self.trainer.update(RATE)


def place(options: Options) -> torch.device:
    """Where it is computed. On a CPU, all that is tiny takes one thread: more would wait for each other."""
    device = pick_device(options.device)
    if device.type == "cpu" and options.tiny:
        torch.set_num_threads(1)
    return device


def precision(device: torch.device) -> torch.dtype:
    """What `tfm train` takes on a GPU; single on a CPU, where it would measure."""
    return torch.bfloat16 if computes_bf16(device) else torch.float32


def settings_of(case: Case, *, tiny: bool) -> RunConfig:
    """The preset with the batches of the case."""
    tokens = case.tokens // TINY_SHARE if tiny else case.tokens
    tree = merge(load_config(case.preset), {"training": {"max_tokens_per_batch": tokens}})
    tree = merge(tree, {"training": {"grad_accum_steps": case.batches}})
    if tiny:
        layers = {key: 1 for key in ("num_encoder_layers", "num_decoder_layers") if tree["model"][key]}
        tree = merge(tree, {"model": TINY_LAYERS | layers, "tokenizer": {"vocab_size": TINY_VOCABULARY}})
    return parse_config(tree)


def build_bench(case: Case, device: torch.device, *, tiny: bool, dtype: torch.dtype | None = None) -> Bench:
    """A trainer of random pairs, with the moving average of its preset."""
    settings, dtype = settings_of(case, tiny=tiny), dtype or precision(device)
    size = settings.tokenizer.vocab_size
    description = ModelDescription(
        format=FORMAT_VERSION,
        tfm_version=metadata.version("tfm"),
        model=asdict(settings.model),
        src_vocab_size=size,
        tgt_vocab_size=size,
        shared_vocab=True,
        tokenizer_sha256="",
        weights="model",
        decoding=asdict(settings.decoding),
    )
    pairs = RandomPairs(case, size, settings.model.max_seq_len - 1)
    tokenizer: Any = None  # only subword dropout asks for it
    store: Any = pairs
    trainer = build_trainer(
        settings.training,
        description,
        tokenizer,
        store,
        device=device,
        dtype=dtype,
        muon_dtype=dtype,
        parts=1,
        group=Group(),
        progress=Progress(),
    )
    if settings.training.ema_decay:
        trainer.average = MovingAverage(trainer.model, settings.training.ema_decay)
    return Bench(case, settings, trainer, pairs, description, trainer.provider, dtype)


def synchronize(device: torch.device) -> None:
    """Waits until the device has done all that it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def seconds_of_call(call: Callable[[], object], device: torch.device, repeats: int) -> float:
    """Of one of so many calls, the device's work included."""
    synchronize(device)
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    synchronize(device)
    return (time.perf_counter() - start) / repeats


def in_turn(
    calls: dict[str, Callable[[], object]], device: torch.device, *, rounds: int, seconds: float
) -> dict[str, list[float]]:
    """Milliseconds of each call, round by round: A B, A B, ..

    Args:
        calls: By name; each is made a few times before it counts.
        device: Where they compute.
        rounds: At least one.
        seconds: About so long a round of each takes.
    """
    repeats: dict[str, int] = {}
    for name, call in calls.items():
        for _ in range(2):
            call()
        repeats[name] = max(1, min(1000, round(seconds / max(seconds_of_call(call, device, 2), 1e-6))))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(1000 * seconds_of_call(call, device, repeats[name]))
    return times


def flops_per_token(bench: Bench) -> float:
    """Of one update, for each target token: 6 N and attention.

    N counts the matrices that a token meets: a source token those of the encoder and the keys and values that the
    decoder makes of it, a target token the decoder's others and the output layer. Looking embeddings up is none. The
    two products of attention are counted whole, masks or not: 12 T S d for T queries of S keys.
    """
    config = bench.settings.model
    of_source = of_target = 0
    for name, parameter in bench.trainer.model.named_parameters():
        if ".layers." in name and parameter.dim() == 2:
            is_source = name.startswith("encoder.") or ".cross_attn.k_proj" in name or ".cross_attn.v_proj" in name
            of_source += parameter.numel() if is_source else 0
            of_target += 0 if is_source else parameter.numel()
    of_target += bench.settings.tokenizer.vocab_size * config.d_model
    src, tgt = (lengths.astype(np.float64) + 1 for lengths in (bench.pairs.src_lengths, bench.pairs.tgt_lengths))
    width = config.num_heads * (config.key_size + config.value_size) / 2
    attention = config.num_encoder_layers * (src * src).sum()
    attention += config.num_decoder_layers * (tgt * tgt + tgt * src).sum()
    total = 6 * (of_source * src.sum() + of_target * tgt.sum()) + 12 * width * attention
    return float(total / tgt.sum())
