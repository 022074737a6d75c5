"""How the updates of a run are computed: precision, processes, threads, parts. Settled at its first start, then kept.

`setup.json` in the run directory remembers it, and is written before any step depends on it. If each start settled it
anew, a run that was stopped might go on in another precision, and not be, bit for bit, the one that was not stopped.
"""

from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

import torch
from torch import nn

from ...seq2seq.training.config import TrainingConfig
from ...system.errors import ModelError, OutOfMemory, UsageError
from ...system.files import read_sealed, replace_sealed
from ...system.reporter import Reporter, counted
from ..device import computes_bf16, describe_processor, physical_memory, processor_name
from ..runs.checkpoint import Saved
from ..runs.directory import RunDirectory
from ..runs.weights import count_parameters
from ..workers.ranks import Ranks, started_by_torchrun, using_threads
from .precision import DTYPES, Precision, Rates, layer_matrices, muon_matrices, time_layers, time_muon

_FEWEST_BYTES = 12
"""Bytes that a parameter takes at least: the weight, its gradient, one moment."""
SMALLEST_PART = 256
"""Tokens that a part has at least; below, a process spends more time on calls than on numbers."""
_SHARING = 50
"""What it costs to add up the gradients of several processes in shared memory, in tokens; twice that by sockets."""
_OVERHEAD = 5_000_000
"""What the calls around one matrix cost, in multiplications."""
_WAITING = 0.15
"""Share of a thread's time that one more thread costs it: threads wait for each other at every operation."""
_MEMORY = 800_000_000
"""Bytes that a process takes, besides those that grow with the model."""
_BYTES_A_PARAMETER = 26
"""Weight, gradient, two moments, the memory that is shared, and the copies that come and go."""
_GOOD_ENOUGH = 1.1
"""A division with fewer processes is preferred if it costs at most this many times the cheapest one."""


@dataclass(frozen=True)
class Division:
    """Who computes what of an update.

    Attributes:
        parts: Parts into which each batch is cut.
    """

    ranks: int
    threads: int
    parts: int

    def __str__(self) -> str:
        processes, threads = counted(self.ranks, "process", "processes"), counted(self.threads, "thread")
        return f"{processes} of {threads}" + (f", batches in {self.parts} parts" if self.parts > 1 else "")


def part_overhead(matrices: Counter[tuple[int, int]]) -> float:
    """What a part costs beside its tokens, in tokens: the calls, which are as many for a small part as for a large one.

    Args:
        matrices: How many matrices of each shape (in, out) a model has.
    """
    multiplications = sum(count * rows * columns for (rows, columns), count in matrices.items())
    return _OVERHEAD * matrices.total() / multiplications


def affordable_ranks(memory: int | None, parameters: int) -> int | None:
    """How many processes half of a machine's memory (bytes; None: unknown) has room for; None for any number."""
    return None if memory is None else max(memory // 2 // (_MEMORY + _BYTES_A_PARAMETER * parameters), 1)


def divide(
    cores: int,
    *,
    batches: int,
    tokens: int,
    overhead: float,
    most_ranks: int | None = None,
    ranks: int | None = None,
    parts: int | None = None,
) -> Division:
    """The division that is about as fast as any, with the fewest processes, then the fewest parts.

    An update takes as long as the rank with most parts, which computes one after the other, each with all its threads.
    What costs how much was measured on two cores (benchmarks/journal.md); for more it is an estimate.

    Args:
        cores: Threads to give away.
        batches: Batches of an update.
        tokens: Most tokens of a batch.
    """

    def cost(division: tuple[int, int]) -> float:
        ranks, parts = division
        threads = max(cores // ranks, 1)
        most = -(-batches * parts // ranks)  # of one rank, rounded up
        each = tokens / parts * (1 + _WAITING * (threads - 1)) / threads + overhead
        return most * each + (_SHARING if ranks > 1 else 0)

    counts = range(1, min(cores, most_ranks or cores) + 1) if ranks is None else [ranks]
    cuts = range(1, max(tokens // SMALLEST_PART, 1) + 1) if parts is None else [parts]
    candidates = list(product(counts, cuts))
    least = min(map(cost, candidates))
    chosen_ranks, chosen_parts = min(each for each in candidates if cost(each) <= _GOOD_ENOUGH * least)
    return Division(chosen_ranks, max(cores // chosen_ranks, 1), chosen_parts)


@dataclass(frozen=True)
class Setup:
    """What a run is computed with.

    Attributes:
        device: For which it was settled: `cpu`, `cuda` or `mps`.
        processor: On which it was settled.
        rates: GFLOP/s that were measured to choose precisions, by what was multiplied; none where nothing was.
    """

    precision: Precision
    muon_precision: Precision
    division: Division
    device: str
    processor: str
    rates: dict[str, Rates] = field(default_factory=dict)

    @property
    def dtype(self) -> torch.dtype:
        """The type of activations."""
        return DTYPES[self.precision]

    @property
    def muon_dtype(self) -> torch.dtype:
        """The type in which Muon multiplies matrices."""
        return DTYPES[self.muon_precision]

    @cached_property
    def ranks(self) -> Ranks:
        """This process among the processes of the run: one object, which has the memory that they share."""
        return started_by_torchrun() or Ranks(0, self.division.ranks, self.division.threads)

    def environment(self) -> dict[str, Any]:
        """What a checkpoint says of it."""
        precisions = {"precision": self.dtype, "muon_precision": self.muon_dtype}
        names = {key: str(dtype).removeprefix("torch.") for key, dtype in precisions.items()}
        return asdict(self.division) | names

    def as_json(self) -> dict[str, Any]:
        """The content of `setup.json`."""
        rates = {name: rates._asdict() for name, rates in self.rates.items()}
        return asdict(self) | {"rates": rates}


def read_setup(run: RunDirectory) -> Setup | None:
    """The setup that a run keeps; None if it keeps none, or it is damaged."""
    try:
        content = read_sealed(run.setup)
        rates = {name: Rates(**rates) for name, rates in content.pop("rates").items()}
        setup = Setup(division=Division(**content.pop("division")), rates=rates, **content)
        known = {setup.precision, setup.muon_precision} <= DTYPES.keys()
        return setup if known and min(asdict(setup.division).values()) >= 1 else None
    except (ModelError, ValueError, KeyError, TypeError, AttributeError):
        return None


def describe_setup(run: RunDirectory, environment: dict[str, Any]) -> dict[str, Any]:
    """What a run is computed with, and why, for people."""
    described = dict(environment)
    if (setup := read_setup(run)) is not None:
        described |= {name: _words(rates) for name, rates in setup.rates.items()} | {"settled on": setup.processor}
    return described


def settle(
    run: RunDirectory,
    config: TrainingConfig,
    model: nn.Module,
    device: torch.device,
    saved: Saved | None,
    reporter: Reporter,
    *,
    parts: int | None = None,
) -> Setup:
    """The setup of a start: what the run keeps, else what serves this machine, which the run keeps from now on.

    Precision and ranks that are configured have the last word. Where this machine has too few cores or too little
    memory for the processes that the run keeps, it gets others. On another kind of device all is settled anew.

    Args:
        model: Only its sizes matter; it may be without weights.
        parts: Cut each batch into exactly this many.

    Raises:
        UsageError: The configuration asks for what the device cannot do.
        OutOfMemory: The model is too large for this machine.
    """
    if device.type == "cpu":
        check_memory(count_parameters(model))
    kept = _kept(run, saved, device)
    division = divide_update(config, model, device, kept.division if kept else None, parts=parts)
    if config.precision != "auto":
        setup = Setup(config.precision, config.precision, division, device.type, describe_processor())
    elif kept is not None:
        setup = replace(kept, division=division)
    else:
        setup = _fastest(config, model, device, division, reporter)
    if kept is None or not run.setup.exists():
        replace_sealed(run.setup, (kept or setup).as_json())
    return setup


def check_device(config: TrainingConfig, device: torch.device) -> None:
    """Refuses what the device cannot do.

    Raises:
        UsageError: Several ranks or bf16, where there is none.
    """
    if device.type != "cpu" and (config.ranks or 1) > 1 and started_by_torchrun() is None:
        raise UsageError(f"training.ranks divides the cores of a CPU; for several {device.type} devices use torchrun")
    if config.precision == "bf16" and device.type == "cuda" and not computes_bf16(device):
        raise UsageError("this GPU does not compute bf16; use --precision fp32")


def check_memory(parameters: int) -> None:
    """Refuses a model that this machine cannot train, before anything is computed with it.

    Raises:
        OutOfMemory: Its parameters, gradients and moments do not fit into memory.
    """
    memory, needed = physical_memory(), _FEWEST_BYTES * parameters
    if memory is not None and needed > memory:
        raise OutOfMemory(
            f"a model of {parameters:,} parameters needs {needed / 1e9:,.1f} GB of memory at least, and this machine"
            f" has {memory / 1e9:,.1f} GB: take a smaller model.d_model or tokenizer.vocab_size"
        )


def _kept(run: RunDirectory, saved: Saved | None, device: torch.device) -> Setup | None:
    """What the run keeps, if it is for this kind of device and, where there is no checkpoint, for this processor."""
    setup = read_setup(run)
    if setup is None and saved is not None:
        setup = _of_environment(saved.state.environment)
    if setup is None or setup.device != device.type:
        return None
    return setup if saved is not None or setup.processor == describe_processor() else None


def _of_environment(environment: dict[str, Any]) -> Setup | None:
    """The setup that a checkpoint was made with, for runs of an earlier tfm, which keep none."""
    known = in_todays_words(environment)
    precisions: dict[str, Precision] = {"bfloat16": "bf16", "float32": "fp32"}
    if not known.keys() >= {"threads", "device", "processor"} or known["precision"] not in precisions:
        return None  # no tfm wrote that
    return Setup(
        precisions[known["precision"]],
        precisions[known["muon_precision"]],
        Division(known["ranks"], known["threads"], known["parts"]),
        known["device"] if known["device"] in ("cpu", "mps") else "cuda",  # a GPU is called by its own name
        f"{known['cpu']} ({known['processor']})",
    )


def in_todays_words(environment: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint says it was computed with; what an earlier tfm did not say is as it was then."""
    then = {"ranks": 1, "parts": 1, "muon_precision": environment.get("precision"), "cpu": processor_name()}
    return then | environment


def divide_update(
    config: TrainingConfig,
    model: nn.Module,
    device: torch.device,
    kept: Division | None = None,
    *,
    parts: int | None = None,
) -> Division:
    """The division that is kept, if this machine has the cores and the memory and no other is asked for; or a new one.

    Args:
        kept: The division of the run, if it has one.
        parts: Of each batch; if not given, those that the run has, else as many as serve.
    """
    threads, torchrun = torch.get_num_threads(), started_by_torchrun()
    parts = parts or (kept.parts if kept else None)
    if device.type != "cpu":  # it computes large batches best: they are cut only so far that every rank has something
        count = torchrun.count if torchrun else 1
        return Division(count, threads, parts or -(-count // config.grad_accum_steps))
    ranks = torchrun.count if torchrun else config.ranks
    most_ranks = affordable_ranks(physical_memory(), count_parameters(model))
    if kept and not torchrun and kept.ranks * kept.threads <= threads:
        affordable = most_ranks is None or kept.ranks <= most_ranks
        if ranks == kept.ranks or (ranks is None and affordable):
            return kept
    return divide(
        threads * (torchrun.count if torchrun else 1),
        batches=config.grad_accum_steps,
        tokens=config.max_tokens_per_batch,
        overhead=part_overhead(layer_matrices(model)),
        most_ranks=most_ranks,
        ranks=ranks,
        parts=parts,
    )


def _fastest(
    config: TrainingConfig, model: nn.Module, device: torch.device, division: Division, reporter: Reporter
) -> Setup:
    """Times both precisions, on a CPU with the threads of one process, and says what came of it in one line."""
    if device.type != "cpu":
        precision: Precision = "bf16" if computes_bf16(device) else "fp32"
        return Setup(precision, precision, division, device.type, describe_processor())
    with using_threads(division.threads):
        layers = time_layers(layer_matrices(model), config.max_tokens_per_batch // division.parts)
        muon = time_muon(muon_matrices(model)) if config.optimizer == "muon" else layers
    said = f"this processor multiplies the model's matrices at {_words(layers)}: taking {layers.faster}"
    if muon.faster != layers.faster:
        said += f"; in Muon's iterations at {_words(muon)}: taking {muon.faster}"
    reporter.say(said)
    rates = {"layers": layers} | ({"muon": muon} if config.optimizer == "muon" else {})
    return Setup(layers.faster, muon.faster, division, device.type, describe_processor(), rates)


def _words(rates: Rates) -> str:
    return f"{rates.fp32:.3g} GFLOP/s in fp32 and {rates.bf16:.3g} in bf16"
