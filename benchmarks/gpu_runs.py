"""The parts of gpu.py that run tfm's own commands: how soon Multi30k has 40 BLEU, what cores give, large presets."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from common import TFM, BenchmarkError, cores, output_of, read_lines, script
from corpora import Files, Sides, find_corpus, head, write_pairs
from gpu_records import COMPLAINT_LINES, Options, attempt, emit, run_part, skip
from quality import evaluate
from train_tfm import records

BLEU = 40.0
FORTY_SETTINGS = [
    "training.max_tokens_per_batch=4096",  # one batch in place of two halves: updates are bound by launches
    "training.grad_accum_steps=1",
    "training.max_steps=2200",
    "training.validate_every=550",
    "training.checkpoint_every=550",
    "training.keep_checkpoints=20",
    "training.log_every=10",
]
BASE_SETTINGS = ["training.log_every=10"]
WIDE_SEEDS = (1, 2, 3)
CORE_COUNTS = (16, 8, 4, 2, 1)
CORE_WARMUP, CORE_SECONDS = 1.5, 4.0
END_SECONDS = {"base_preset": 16, "wide": 75}
"""What is left of a part's time when training is over: for its last validation, and for what follows."""
FOREVER = 1_000_000
_VALIDATION = re.compile(r"step ([\d,]+): validation loss ([\d.]+).* BLEU ([\d.]+)")
_MOMENTS = {
    "building a": "vocabulary_begun",
    "validation data:": "vocabulary_built",
    "training data:": "text_tokenized",
}
"""What a line of `tfm train` begins with when something has happened, and what that is."""


def tiny_settings() -> list[str]:
    """Make any preset small enough to be trained in a second or two."""
    sizes = {"d_model": 16, "d_ff": 32, "num_heads": 2, "max_seq_len": 32}
    sizes |= {"num_encoder_layers": 1, "num_decoder_layers": 1}
    training = {"max_tokens_per_batch": 256, "max_steps": 20, "validate_every": 10, "checkpoint_every": 10}
    training |= {"log_every": 5, "validation_sentences": 4}
    settings = [f"model.{key}={value}" for key, value in sizes.items()]
    return [*settings, *(f"training.{key}={value}" for key, value in training.items()), "tokenizer.vocab_size=400"]


def set_flags(settings: Sequence[str]) -> list[str]:
    """Settings for a command line; the last of two for the same key counts."""
    last = {setting.partition("=")[0]: setting for setting in settings}
    return [part for setting in last.values() for part in ("--set", setting)]


def data_flags(train: Sides, dev: Sides) -> list[str]:
    """Files for a command line."""
    names = ("--src", "--tgt", "--dev-src", "--dev-tgt")
    return [part for name, path in zip(names, (*train, *dev), strict=True) for part in (name, str(path))]


def texts(options: Options) -> Files:
    """Multi30k if it is there, else the built-in toy language, of which little where all is tiny."""
    folder = None if options.corpora is None else options.corpora / "multi30k"
    if folder is not None and folder.is_dir():
        return find_corpus(folder, options.work)
    from tfm.data.toy import toy_pairs

    sizes = {"train": 1000, "dev": 30, "test": 40} if options.tiny else {"train": 29_000, "dev": 1000, "test": 1000}
    parts = [options.work / "toy" / part for part in sizes]
    written = (write_pairs(stem, toy_pairs(stem.name, size=sizes[stem.name])) for stem in parts)  # pyright: ignore[reportArgumentType]
    return Files("the toy language", *written)


@dataclass
class Course:
    """How a training went, by its own words and logs.

    Attributes:
        seconds: From its start to its end.
        moments: When it said what.
        validations: Step, seconds since its start, loss and BLEU of each.
        said: Its last lines.
    """

    seconds: float = 0.0
    moments: dict[str, float] = field(default_factory=dict)
    validations: list[dict[str, float]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)


def watch(command: Sequence[str], name: str) -> Course:
    """Runs `tfm train`, and prints each validation when it comes.

    Raises:
        BenchmarkError: It failed.
    """
    course, start = Course(), time.monotonic()
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            now = time.monotonic() - start
            course.said = [*course.said, line.rstrip()][-COMPLAINT_LINES:]
            for beginning, moment in _MOMENTS.items():
                if line.startswith(beginning):
                    course.moments.setdefault(moment, now)
            if found := _VALIDATION.search(line):
                step, loss, bleu = (float(number.replace(",", "")) for number in found.groups())
                course.validations.append({"step": step, "seconds": now, "loss": loss, "bleu": bleu})
                emit(f"{name}, validation", step=int(step), seconds=now, loss=loss, bleu=bleu)
    course.seconds = time.monotonic() - start
    if process.returncode:
        raise BenchmarkError(f"tfm train ended with {process.returncode}:\n" + "\n".join(course.said))
    return course


def pace(run: Path) -> dict[str, Any]:
    """Updates and tokens a second, the medians over the log, and the clock of the first line of it."""
    timing = records(run / "timing.jsonl")
    if not timing:
        return {}
    pairs = [(a, b) for a, b in pairwise(timing) if b["seconds"] > a["seconds"]]
    found: dict[str, Any] = {f"seconds_to_update_{timing[0]['step']}": timing[0]["seconds"]}
    if pairs:
        found["updates_per_second"] = median((b["step"] - a["step"]) / (b["seconds"] - a["seconds"]) for a, b in pairs)
        found["tokens_per_second"] = median(record["tokens_per_second"] for record in timing[1:])
    setup = json.loads((run / "setup.json").read_text(encoding="utf-8"))
    return found | {"updates": timing[-1]["step"], "precision": setup["precision"], "device": setup["device"]}


def seconds_to_40(options: Options) -> None:
    """Trains Multi30k from its text, then scores the test set in several ways at once."""
    files, run = texts(options), options.work / "forty"
    shutil.rmtree(run, ignore_errors=True)
    settings = [*FORTY_SETTINGS, *(tiny_settings() if options.tiny else [])]
    command = [*TFM, "train", "--config", "multi30k", "--run", str(run), "--device", options.device]
    command += [*data_flags(files.train, files.dev), *set_flags(settings)]
    course = Course()
    with attempt("training"):
        course = watch(command, "training")
        emit("training", corpus=files.name, seconds=course.seconds, **course.moments, **pace(run), detail=course.said)
    if not (run / "checkpoints").is_dir():
        skip("scores", "there is no checkpoint")
        return
    reached = next((one for one in course.validations if one["bleu"] >= BLEU), None)
    if reached is None:
        emit(f"{BLEU:g} BLEU in validation", reached="no")
    else:
        emit(f"{BLEU:g} BLEU in validation", reached="yes", seconds=reached["seconds"], step=int(reached["step"]))
    at_that_step = [] if reached is None else ["--checkpoint", str(int(reached["step"]))]
    searches = {
        "greedy": ["--beam-size", "1", "--device", options.device],
        "beam 5": ["--device", options.device],
        "greedy, on the CPU": ["--beam-size", "1", "--device", "cpu"],
    }
    if at_that_step:
        searches[f"beam 5, when {BLEU:g} was reached"] = ["--device", options.device, *at_that_step]
    with ThreadPoolExecutor() as pool:
        for name, flags in searches.items():
            pool.submit(scored, name, run, files.test, flags)
    with attempt("greedy outputs on both devices"):
        ours, theirs = (read_lines(outputs_of(run, name)) for name in ("greedy", "greedy, on the CPU"))
        same = sum(a == b for a, b in zip(ours, theirs, strict=True))
        emit("greedy outputs on both devices", equal_percent=100 * same / len(ours), sentences=len(ours))


def outputs_of(run: Path, name: str) -> Path:
    """Where translations of the test set go."""
    return run / f"test.{name.replace(' ', '-').replace(',', '')}.txt"


def scored(name: str, run: Path, test: Sides, flags: Sequence[str]) -> None:
    """BLEU of a test set, cased, 13a, by `tfm evaluate`."""
    what = f"{test[0].stem}, {name}"
    with attempt(what):
        found = evaluate(run, test, outputs_of(run, name), *flags)
        emit(what, bleu=found["scores"]["bleu"], checkpoint=Path(found["checkpoint"]).name)


def cores_part(options: Options) -> None:
    """Training and decoding on some of the cores; a GPU that is there is hidden from them.

    All cores come first, alone; then the smaller numbers at once, each on cores of its own. So one core does not have
    the clock of a machine that is idle otherwise.
    """
    if not hasattr(os, "sched_setaffinity"):
        skip("cores", "this system binds no process to cores")
        return
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    files = texts(options)
    counts = [count for count in CORE_COUNTS if count <= cores()]
    if options.tiny:
        counts = counts[-1:]
    found: dict[int, dict[str, Any]] = {}
    prepared = prepare_cores(options, files)
    with attempt("training on cores"):
        found = on_each(trainer(prepared, options), counts, "training", "tokens_per_second")
    with attempt("decoding on cores"):
        decode_on_cores(options, files, counts)
    most = counts[0]
    division = found.get(most, {}).get("setup", {}).get("division", {})
    if most > 1 and (division.get("ranks"), division.get("threads")) != (most, 1):
        with attempt(f"training, {most} ranks of one thread"):
            ranked = [*trainer(prepared, options), "--set", f"training.ranks={most}"]
            report_cores(f"training, {most} ranks of one thread", last_figures(ranked))


def decode_on_cores(options: Options, files: Files, counts: Sequence[int]) -> None:
    """Greedy translations of the test set by the model of `seconds_to_40`."""
    run = options.work / "forty"
    if not (run / "checkpoints").is_dir():
        skip("decoding on cores", "seconds_to_40 left no checkpoint")
        return
    test = head(files.test, options.work / "cores-test", 1000)
    arguments: list[object] = ["--run", run, "--input", test[0], "--sentence", read_lines(test[0])[0]]
    arguments += ["--output", options.work / "cores-outputs", "--beam-size", 1, "--length-penalty", 1]
    on_each(script("decode_tfm.py", *arguments, "--repeats", 1), counts, "decoding", "greedy_per_second")


def trainer(prepared: Path, options: Options) -> list[str]:
    """The command that trains for some seconds and prints figures."""
    warmup, seconds = (0.2, 0.3) if options.tiny else (CORE_WARMUP, CORE_SECONDS)
    return script("train_tfm.py", "--prepared", prepared, "--warmup", warmup, "--seconds", seconds)


def prepare_cores(options: Options, files: Files) -> Path:
    """What train_tfm.py needs: a configuration, and a run with its vocabulary and tokenized text."""
    from tfm.configs import load_config, merge, parse_config
    from tfm.configs.loader import parse_assignment
    from tfm.engine.runs.directory import RunDirectory
    from tfm.engine.training.prepare import prepare_data
    from tfm.system.reporter import Console

    folder = options.work / "cores"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tree = load_config("multi30k")
    for assignment in tiny_settings() if options.tiny else []:
        tree = merge(tree, parse_assignment(assignment))
    data = {"src": [str(files.train[0])], "tgt": [str(files.train[1])]}
    data |= {"dev_src": [str(files.dev[0])], "dev_tgt": [str(files.dev[1])]}
    never = {"max_steps": FOREVER, "validate_every": FOREVER, "checkpoint_every": FOREVER}
    tree = merge(tree, {"data": data, "training": {**never, "log_every": 2, "device": "cpu"}})
    (folder / "config.yaml").write_text(json.dumps(tree), encoding="utf-8")  # JSON is YAML
    made = options.work / "forty"
    for part in ("tokenizer", "cache"):
        if (made / part).is_dir():
            shutil.copytree(made / part, folder / "run" / part)
    prepare_data(parse_config(tree), RunDirectory(folder / "run"), given_tokenizer=None, reporter=Console())
    return folder


def own_copy(prepared: Path, name: str) -> Path:
    """The same for a contestant that runs beside others."""
    copy = prepared.with_name(f"{prepared.name}-{name}")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(prepared, copy, ignore=shutil.ignore_patterns("timed"))
    return copy


def with_folder(command: Sequence[str], folder: Path, other: Path) -> list[str]:
    """The same command with another folder."""
    return [str(other) if part == str(folder) else part for part in command]


def counted(number: int) -> str:
    """`1 core`, `2 cores`."""
    return f"{number} core{'s' if number > 1 else ''}"


def usable() -> list[int]:
    """The numbers of the cores that this process may use."""
    return sorted(os.sched_getaffinity(0))


def on_cores(numbers: Sequence[int], command: Sequence[str]) -> dict[str, Any]:
    """The figures that a command prints when it has these cores alone; called by a thread of its own."""
    os.sched_setaffinity(0, numbers)  # of this thread, and so of what it starts
    return last_figures(command)


def last_figures(command: Sequence[str]) -> dict[str, Any]:
    """What the last line says that a command prints."""
    return json.loads(output_of(list(command)).splitlines()[-1])


def on_each(command: Sequence[str], counts: Sequence[int], what: str, figure: str) -> dict[int, dict[str, Any]]:
    """The figures of a command for each number of cores; the largest number runs alone, the others at once."""
    found: dict[int, dict[str, Any]] = {}
    for group in distinct(counts, usable()):
        with ThreadPoolExecutor() as pool:
            started = {
                count: pool.submit(on_cores, numbers, separate(command, count)) for count, numbers in group.items()
            }
            for count, one in started.items():
                with attempt(f"{what}, {counted(count)}"):
                    found[count] = one.result()
        for count in group.keys() & found.keys():
            report_cores(f"{what}, {counted(count)}", found[count])
    least = min(found, default=0)
    for count in sorted(found):
        if count != least:
            emit(f"{what}, {counted(count)} beside {least}", ratio=found[count][figure] / found[least][figure])
    return found


def separate(command: Sequence[str], count: int) -> list[str]:
    """The command with a folder of its own for what it trains."""
    if "--prepared" not in command:
        place = command.index("--output") + 1
        return with_folder(command, Path(command[place]), Path(f"{command[place]}-{count}"))
    prepared = Path(command[command.index("--prepared") + 1])
    return with_folder(command, prepared, own_copy(prepared, str(count)))


def distinct(counts: Sequence[int], numbers: Sequence[int]) -> Iterator[dict[int, list[int]]]:
    """Groups of numbers of cores that can run at once, each with cores of its own."""
    group: dict[int, list[int]] = {}
    free = list(numbers)
    for count in counts:
        if count > len(free):
            yield group
            group, free = {}, list(numbers)
        group[count], free = free[:count], free[count:]
    yield group


def report_cores(what: str, figures: dict[str, Any]) -> None:
    """Prints the figures of one number of cores."""
    division = figures.get("setup", {}).get("division")
    setup = {"ranks": "{ranks} x {threads}, {parts} parts".format(**division)} if division else {}
    shown = {key: value for key, value in figures.items() if key.endswith("per_second") and "beam" not in key}
    emit(what, **shown, **setup)


def base_preset(options: Options) -> None:
    """The preset for a million pairs, on Tatoeba, for the time that is left."""
    folder = None if options.corpora is None else options.corpora / "tatoeba_en_fr"
    if folder is not None and folder.is_dir():
        train, dev = ((folder / f"{part}.en", folder / f"{part}.fr") for part in ("train", "valid"))
        name = folder.name
    else:
        files = texts(options)
        train, dev, name = files.train, files.dev, files.name
    run = options.work / "pairs-1m"
    shutil.rmtree(run, ignore_errors=True)
    seconds = max(options.seconds - END_SECONDS["base_preset"], 10)
    command = [*TFM, "train", "--config", "pairs-1m", "--run", str(run), "--device", options.device]
    command += [*data_flags(train, dev), "--max-time", f"{seconds:.0f}s"]
    command += set_flags([*BASE_SETTINGS, *(tiny_settings() if options.tiny else [])])
    with attempt("pairs-1m"):
        course = watch(command, "pairs-1m")
        emit("pairs-1m", corpus=name, seconds=course.seconds, **course.moments, **pace(run), detail=course.said)


def wide(options: Options) -> None:
    """The best preset for Multi30k, all seeds at once on one device: each is bound by launches."""
    files = texts(options)
    seeds = WIDE_SEEDS[:1] if options.tiny else WIDE_SEEDS
    seconds = max(options.seconds - END_SECONDS["wide"], 10)

    def one(seed: int) -> None:
        run = options.work / f"wide-{seed}"
        shutil.rmtree(run, ignore_errors=True)
        command = [*TFM, "train", "--config", "multi30k-best", "--seed", str(seed), "--run", str(run)]
        command += ["--device", options.device, *data_flags(files.train, files.dev), "--max-time", f"{seconds:.0f}s"]
        command += set_flags(tiny_settings() if options.tiny else [])
        with attempt(f"seed {seed}"):
            course = watch(command, f"seed {seed}")
            emit(f"seed {seed}", corpus=files.name, seconds=course.seconds, **pace(run), detail=course.said)
            scored(f"seed {seed}, beam 5", run, files.test, ["--device", options.device])

    with ThreadPoolExecutor() as pool:
        list(pool.map(one, seeds))


if __name__ == "__main__":
    run_part({"seconds_to_40": seconds_to_40, "cores": cores_part, "base_preset": base_preset, "wide": wide})
