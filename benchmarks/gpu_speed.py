"""The parts of gpu.py that time updates: tfm's own, a profile, CUDA graphs, torch.compile, and a peer beside them."""

import gc
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from common import ratios, spread
from gpu_models import (
    BASE,
    BASE_LARGE,
    MULTI30K,
    MULTI30K_LARGE,
    MULTI30K_WHOLE,
    RATE,
    Bench,
    Case,
    build_bench,
    flops_per_token,
    in_turn,
    place,
    synchronize,
)
from gpu_records import Options, attempt, emit, known, run_part
from marian import build_marian
from torch import Tensor
from torch.nn import functional as F

from tfm.engine.training.build import StoreBatches
from tfm.seq2seq.model.masks import PAD_ID
from tfm.seq2seq.training.loss import training_loss
from tfm.seq2seq.training.update import Trainer

PEAK_TFLOPS = 790.0
"""Of an H100 or H200 in bf16, dense, as measured products reach it."""
WARMUP_UPDATES = 5
UPDATE_SECONDS = 4.0
"""That updates of one case are timed for, at least."""
TINY_SECONDS = 0.2
ROUND_SECONDS = 0.4
ROUNDS = 3
SPEED_CASES = (MULTI30K_WHOLE, BASE, MULTI30K, BASE_LARGE, MULTI30K_LARGE)
PROFILED = (MULTI30K_WHOLE, BASE)
ROWS = 15
"""Of each list of a profile."""


@dataclass(frozen=True)
class Speed:
    """How fast updates are made."""

    tokens_per_second: float
    updates_per_second: float
    milliseconds: float


def speed(options: Options) -> None:
    """Tokens a second of each case, then where the time of an update goes."""
    device = place(options)
    for case in SPEED_CASES:
        with attempt(case.name):
            free()
            if device.type == "cuda":
                torch.cuda.reset_peak_memory_stats()
            bench = build_bench(case, device, tiny=options.tiny)
            found = time_updates(bench, device, TINY_SECONDS if options.tiny else UPDATE_SECONDS)
            flops = flops_per_token(bench)
            emit(
                case.name,
                **asdict(found),
                **shares(found.tokens_per_second * flops / 1e12, options),
                megaflops_per_token=flops / 1e6,
                **memory(device),
                batches_in_pieces=bench.trainer.progress.divided,
                **padding(bench),
                precision=str(bench.dtype).removeprefix("torch."),
            )
    for case in PROFILED:
        free()
        with attempt(f"stages of an update, {case.name}"):
            bench = build_bench(case, device, tiny=options.tiny)
            emit(f"stages of an update, {case.name}", **stages(bench, device))
        with attempt(f"profile of an update, {case.name}"):
            profile(build_bench(case, device, tiny=options.tiny), device)


def free() -> None:
    """Gives memory back that the case before had."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def memory(device: torch.device) -> dict[str, float]:
    """The largest that the device has had to give."""
    return {"peak_gigabytes": torch.cuda.max_memory_allocated() / 1e9} if device.type == "cuda" else {}


def shares(tflops: float, options: Options) -> dict[str, float]:
    """Of the peak that is named, and of the product that was measured."""
    found = {"tflops": tflops, "percent_of_790": 100 * tflops / PEAK_TFLOPS}
    measured = known(options, "machine", "product", "tflops")
    return found | ({"percent_of_product": 100 * tflops / measured} if measured else {})


def padding(bench: Bench) -> dict[str, float]:
    """Share of the positions of an epoch that hold no token, and how many shapes its batches have."""
    batches = [bench.batch(number) for number in range(bench.provider.num_batches(0))]
    real = sum(int((batch.src != PAD_ID).sum()) + batch.num_tokens for batch in batches)
    shapes = {batch.shape for batch in batches}
    return {
        "padding_percent": 100 - 100 * real / sum(batch.positions for batch in batches),
        "shapes": len(shapes),
    }


def time_updates(bench: Bench, device: torch.device, seconds: float) -> Speed:
    """tfm's own updates, making of batches included, once all shapes of an epoch have been met."""
    progress = bench.trainer.progress
    for _ in range(WARMUP_UPDATES):
        bench.update()
    while progress.epoch == 0 and device.type == "cuda":
        bench.update()
    synchronize(device)
    start, tokens, step = time.perf_counter(), progress.tokens, progress.step
    while time.perf_counter() - start < seconds:
        bench.update()
    synchronize(device)
    passed, updates = time.perf_counter() - start, progress.step - step
    return Speed((progress.tokens - tokens) / passed, updates / passed, 1000 * passed / updates)


def stages(bench: Bench, device: torch.device) -> dict[str, float]:
    """Milliseconds of each stage of an update with one micro-batch, the device's work waited for after each."""
    trainer, model = bench.trainer, bench.trainer.model.train()
    totals: defaultdict[str, float] = defaultdict(float)
    bench.batch()
    for _ in range(WARMUP_UPDATES):
        bench.update()

    def stage(name: str, call: Callable[[], Any]) -> Any:
        synchronize(device)
        start = time.perf_counter()
        result = call()
        synchronize(device)
        totals[name] += time.perf_counter() - start
        return result

    times = 10
    for index in range(times):
        batch = stage("batch", lambda index=index: bench.batch(index))
        trainer.gradients.clear()
        loss, _ = stage("plain_forward", lambda batch=batch: trainer.loss(model, batch))
        stage("plain_backward", loss.backward)
        del loss  # a graph is not recorded while another pass is alive
        trainer.gradients.clear()
        if trainer.graphs is not None:
            trainer.graphs.ready(batch)
        loss, count = stage("passes", lambda batch=batch: trainer.backward(batch))
        trainer.gradients.count(loss, count)
        stage("norm_and_clip", lambda: trainer.gradients.normalise_and_clip(trainer.config.max_grad_norm))
        stage("plain_optimizer", lambda: trainer.optimizer.step(RATE))
        if trainer.graphs is not None:
            trainer.graphs.step(trainer.optimizer, RATE)
            stage("optimizer", lambda: trainer.graphs and trainer.graphs.step(trainer.optimizer, RATE))
        if trainer.average is not None:
            stage("average", lambda: trainer.average and trainer.average.update(1000))
    return {f"{name}_ms": 1000 * total / times for name, total in totals.items()}


def profile(bench: Bench, device: torch.device) -> None:
    """One update under torch.profiler: kernels, operations, launches, and how long the device was busy."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    activities += [torch.profiler.ProfilerActivity.CUDA] if device.type == "cuda" else []
    for _ in range(WARMUP_UPDATES):
        bench.update()
    plain = time_updates(bench, device, TINY_SECONDS).milliseconds
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1)
    with torch.profiler.profile(activities=activities, schedule=schedule) as profiler:
        for _ in range(2):
            bench.update()
            synchronize(device)
            profiler.step()
    events = [event for event in profiler.events() or () if not event.name.startswith("ProfilerStep")]
    kernels = [event for event in events if str(event.device_type).endswith("CUDA")]
    calls = Counter(event.name for event in events if event.name.startswith(("cuda", "cuLaunch")))
    busy = covered((event.time_range.start, event.time_range.end) for event in kernels) / 1000
    launches = sum(count for name, count in calls.items() if "Launch" in name)
    emit(
        f"profile of an update, {bench.case.name}",
        milliseconds_unprofiled=plain,
        kernels=len(kernels),
        launches=launches,
        waits=sum(count for name, count in calls.items() if "Synchronize" in name),
        busy_ms=busy,
        busy_percent=100 * busy / plain,
        detail={
            "kernels": longest(kernels),
            "operations": operations(profiler),
            "runtime_calls": dict(calls.most_common(ROWS)),
        },
    )


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """How much of time the spans cover; where they overlap it counts once."""
    total, end = 0.0, float("-inf")
    for start, stop in sorted(spans):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total


def longest(kernels: Sequence[Any]) -> list[dict[str, Any]]:
    """The kernels that take most of the time, all calls of one name together."""
    times: Counter[str] = Counter()
    calls = Counter(kernel.name for kernel in kernels)
    for kernel in kernels:
        times[kernel.name] += kernel.time_range.elapsed_us()
    return [{"name": name[:160], "us": us, "calls": calls[name]} for name, us in times.most_common(ROWS)]


def operations(profiler: Any) -> list[dict[str, Any]]:
    """The operations that keep the processor longest."""
    events = [event for event in profiler.key_averages() if not event.key.startswith("ProfilerStep")]
    events.sort(key=lambda event: -event.self_cpu_time_total)
    return [{"name": event.key[:160], "us": event.self_cpu_time_total, "calls": event.count} for event in events[:ROWS]]


def graphs(options: Options) -> None:
    """The passes over a batch and the optimizer's step as tfm replays them, beside the plain ones."""
    device = place(options)
    for case in PROFILED:
        with attempt(f"graphs, {case.name}"):
            free()
            bench = build_bench(case, device, tiny=options.tiny)
            trainer, batch = bench.trainer, bench.batch()
            bench.update()

            def plain(trainer: Trainer = trainer, batch: Any = batch) -> Tensor:
                loss, _ = trainer.loss(trainer.model, batch)
                loss.backward()
                return loss.detach()

            passes: dict[str, Callable[[], Any]] = {
                "plain": plain,
                "graph": lambda t=trainer, b=batch: t.backward(b)[0],
            }
            if trainer.graphs is not None:
                trainer.graphs.ready(batch)
            losses: dict[str, float] = {}
            for name, call in passes.items():
                torch.manual_seed(1)
                losses[name] = call().item()
            emit(f"loss of a graph, {case.name}", **losses)
            beside(f"passes over a batch, {case.name}", passes, device, options)
            steps: dict[str, Callable[[], object]] = {"plain": lambda t=trainer: t.optimizer.step(RATE)}
            if trainer.graphs is not None:
                steps["graph"] = lambda t=trainer: t.graphs and t.graphs.step(t.optimizer, RATE)
            beside(f"optimizer, {case.name}", steps, device, options)


def beside(what: str, calls: dict[str, Callable[[], object]], device: torch.device, options: Options) -> None:
    """Times calls in turn; prints milliseconds of each, and by how much the others are faster than the first."""
    seconds = TINY_SECONDS if options.tiny else ROUND_SECONDS
    times = in_turn(calls, device, rounds=1 if options.tiny else ROUNDS, seconds=seconds)
    first, *others = times
    figures = {f"{name}_ms": sorted(rounds)[len(rounds) // 2] for name, rounds in times.items()}
    faster = {f"{name}_is_faster_by": spread(ratios(times[first], times[name])) for name in others}
    emit(what, **figures, **faster)


def peer(options: Options) -> None:
    """MarianMTModel with the same sizes and the same sentences, in turn with tfm, both without cuDNN's attention.

    It takes seconds for each new shape: with it the peer meets no more than some batches in the time of this part.
    """
    device = place(options)
    torch.backends.cuda.enable_cudnn_sdp(False)
    for case in (BASE, MULTI30K_WHOLE):
        with attempt(f"transformers, {case.name}"):
            free()
            bench = build_bench(case, device, tiny=options.tiny)
            update, tokens = marian_update(bench, device), bench.trainer.progress
            counted = {"tfm": 0, "transformers": 0}

            def ours(bench: Bench = bench, counted: dict[str, int] = counted, progress: Any = tokens) -> None:
                before = progress.tokens
                bench.update()
                counted["tfm"] += progress.tokens - before

            def theirs(update: Callable[[], int] = update, counted: dict[str, int] = counted) -> None:
                counted["transformers"] += update()

            epoch = bench.provider.num_batches(0) // bench.settings.training.grad_accum_steps
            speeds = speeds_in_turn({"tfm": ours, "transformers": theirs}, counted, device, options, epoch)
            figures = {f"{name}_tokens_per_second": sorted(each)[len(each) // 2] for name, each in speeds.items()}
            faster = spread(ratios(speeds["tfm"], speeds["transformers"]))
            emit(f"transformers, {case.name}", **figures, tfm_is_faster_by=faster, **memory(device))


def speeds_in_turn(
    calls: dict[str, Callable[[], None]], counted: dict[str, int], device: torch.device, options: Options, warmup: int
) -> dict[str, list[float]]:
    """Tokens a second of each, round by round.

    Args:
        counted: What each has counted so far.
        warmup: Updates that each makes first: an epoch's, so that each has met all shapes.
    """
    seconds = TINY_SECONDS if options.tiny else 2.0
    speeds: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(WARMUP_UPDATES if options.tiny else warmup):
            call()
    for _ in range(1 if options.tiny else ROUNDS):
        for name, call in calls.items():
            synchronize(device)
            start, before = time.perf_counter(), counted[name]
            while time.perf_counter() - start < seconds:
                call()
            synchronize(device)
            speeds[name].append((counted[name] - before) / (time.perf_counter() - start))
    return speeds


def marian_update(bench: Bench, device: torch.device) -> Callable[[], int]:
    """An update of MarianMTModel: bf16 by autocast, sdpa, fused AdamW; returns its target tokens.

    Its batches are filled up with padding, each to its longest row.

    Its layers are post-norm with sinusoids whatever the preset says: the sizes are the same.
    """
    settings = bench.settings
    sizes = asdict(settings.model)
    model = build_marian(sizes, settings.tokenizer.vocab_size, "sdpa").to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, fused=True)
    batches = settings.training.grad_accum_steps
    store: Any = bench.pairs
    padded = StoreBatches(store, settings.training, device)
    index = 0

    def update() -> int:
        nonlocal index
        tokens = 0
        optimizer.zero_grad(set_to_none=True)
        for _ in range(batches):
            batch = padded.load_part(0, index % padded.num_batches(0), 0, 1)
            assert batch is not None
            index += 1
            with torch.autocast(device.type, torch.bfloat16, enabled=bench.dtype == torch.bfloat16):
                logits = model(
                    input_ids=batch.src,
                    attention_mask=(batch.src != PAD_ID).long(),
                    decoder_input_ids=batch.tgt_in,
                    use_cache=False,
                ).logits
                smoothing = settings.training.label_smoothing
                loss = F.cross_entropy(
                    logits.flatten(0, 1), batch.tgt_out.flatten(), ignore_index=PAD_ID, label_smoothing=smoothing
                )
            loss.backward()
            tokens += batch.num_tokens
        optimizer.step()
        return tokens

    return update


def compiled(options: Options) -> None:
    """torch.compile of loss and backward pass, beside the plain ones; on a CPU only traced, which takes seconds."""
    device = place(options)
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(options.work / "inductor"))
    modes: dict[str, dict[str, Any]] = {"default": {}, "reduce-overhead": {"mode": "reduce-overhead"}}
    if device.type != "cuda":
        modes = {"traced": {"backend": "eager"}}
    variants: list[tuple[Case, str]] = [(case, mode) for case in PROFILED for mode in modes]
    for case, mode in variants[:1] if options.tiny else variants:
        with attempt(f"torch.compile {mode}, {case.name}"):
            free()
            torch.compiler.reset()
            bench = build_bench(case, device, tiny=options.tiny)
            smoothing, dtype = bench.settings.training.label_smoothing, bench.dtype

            def loss_of(
                model: Any, src: Tensor, tgt_in: Tensor, tgt_out: Tensor, packing: Any, given: Any = (smoothing, dtype)
            ) -> Tensor:
                label_smoothing, precision = given
                hidden = model.hidden_states(src, tgt_in, precision, packing)
                return training_loss(hidden, model.output_layer, tgt_out, label_smoothing)

            model, batch = bench.trainer.model.train(), bench.batch()
            faster = torch.compile(loss_of, dynamic=False, **modes[mode])

            given = model, batch.src, batch.tgt_in, batch.tgt_out, batch.packing

            def step(loss: Callable[..., Tensor], given: Any = given) -> None:
                loss(*given).backward()

            start = time.perf_counter()
            step(faster)
            synchronize(device)
            emit(f"torch.compile {mode}, {case.name}, first call", seconds=time.perf_counter() - start)
            calls = {"plain": lambda step=step: step(loss_of), "compiled": lambda step=step, f=faster: step(f)}
            beside(f"torch.compile {mode}, {case.name}", calls, device, options)


if __name__ == "__main__":
    run_part({"speed": speed, "graphs": graphs, "peer": peer, "compiled": compiled})
