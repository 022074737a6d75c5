"""Translating 1,000 sentences, text to text, and one short sentence: tfm beside its peers, in turn, the same weights.

    tfm                   `Translator.translate`
    transformers          `MarianMTModel.generate`, batches of 64 sorted by length, the weights copied
    CTranslate2           the model that `tfm export` writes, float32 and int8, each at its fastest settings
    tfm with ..           the same export as a run of tfm: `Translator.translate`, with CTranslate2 behind it

MarianMTModel is post-norm: without --run a small post-norm model is trained first, for a few hundred steps. Whatever
cannot take part is skipped, and said.
"""

import argparse
import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import (
    HERE,
    KEEP_MEMORY,
    TFM,
    BenchmarkError,
    Contestant,
    Results,
    cores,
    figures,
    machine,
    markdown_table,
    measure,
    note,
    peak_megabytes,
    present,
    ratios,
    read_lines,
    report_errors,
    run_in_turn,
    run_watched,
    say,
    script,
    seconds_of,
    spread,
)
from corpora import Files, add_corpus_argument, find_corpus, head
from marian import why_not
from training import SIZES, VOCAB_SIZE

OURS = "tfm"
SEARCHES = ("greedy", "beam")
MAX_SEQ_LEN = 128


@dataclass(frozen=True)
class Task:
    """What all contestants are given.

    Attributes:
        run: A tfm run.
        folder: Where files go.
        sources, references: Two text files.
        sentences: Lines of each.
        sentence: A short one, for the latency.
        beam_size, length_penalty, repeats: See the command line.
    """

    run: Path
    folder: Path
    sources: Path
    references: Path
    sentences: int
    sentence: str
    beam_size: int
    length_penalty: float
    repeats: int

    def arguments(self, name: str, run: Path | None = None) -> list[object]:
        """The command line of a contestant; `run` is an export in the place of the run."""
        return [
            *("--run", run or self.run),
            *("--input", self.sources),
            *("--sentence", self.sentence),
            *("--output", self.output(name)),
            *("--beam-size", self.beam_size),
            *("--length-penalty", self.length_penalty),
            *("--repeats", self.repeats),
        ]

    def output(self, name: str) -> Path:
        """Where a contestant leaves its translations."""
        return self.folder / "outputs" / name.replace(" ", "-")


def train_model(files: Files, size: str, steps: int, folder: Path) -> Path:
    """A post-norm model trained for a few steps; the one of an earlier time if there is one.

    Returns:
        The run.
    """
    dev = head(files.dev, folder / "dev", lines=100)
    tree = {
        "data": {"src": [str(files.train[0])], "tgt": [str(files.train[1])], "dev_src": [str(dev[0])]}
        | {"dev_tgt": [str(dev[1])]},
        "tokenizer": {"vocab_size": VOCAB_SIZE},
        "model": {**SIZES[size], "max_seq_len": MAX_SEQ_LEN, "dropout": 0.1, "norm_order": "post"},
        "training": {
            "max_steps": steps,
            "learning_rate": 3e-3,
            "schedule": "trapezoid",
            "warmup_steps": min(200, steps),
            "validate_every": steps,
            "checkpoint_every": steps,
            "validation_sentences": 10,
        },
        # One limit for every sentence, as the peers have it: a model trained so briefly now and then goes on forever.
        "decoding": {"max_length_offset": MAX_SEQ_LEN},
    }
    run = folder / f"{files.name.replace(' ', '-')}-{size}-{steps}"
    config = folder / f"{run.name}.yaml"
    config.write_text(json.dumps(tree))  # JSON is YAML
    say(f"training a post-norm model for {steps:,} steps into {run}")
    run_watched([*TFM, "train", "--config", str(config), "--run", str(run)])
    return run


def describe(run: Path) -> dict[str, Any]:
    """What `model.json` of the best checkpoint says."""
    from tfm.engine.runs.directory import RunDirectory

    return json.loads((RunDirectory(run).find_model("best").checkpoint / "model.json").read_text())


def transformers(task: Task, description: dict[str, Any]) -> list[Contestant]:
    """MarianMTModel, if it can represent the model."""
    if problem := why_not(description["model"], description["shared_vocab"]):
        note(f"transformers skipped: {problem}.")
        return []
    command = script("decode_marian.py", *task.arguments("transformers"))
    settings = "fp32, generate, batches of 64 sorted by length, memory kept"
    return present([Contestant("transformers", command, settings, KEEP_MEMORY, ("transformers",))])


def ctranslate2(task: Task, max_seq_len: int) -> list[Contestant]:
    """CTranslate2 in float32 and in int8, each with the settings that are fastest here; and tfm with it."""
    contestants: list[Contestant] = []
    for compute_type in ("float32", "int8"):
        model = task.folder / f"ctranslate2-{compute_type}"
        shutil.rmtree(model, ignore_errors=True)
        name = f"CTranslate2 {compute_type}"
        arguments = [*task.arguments(name), "--model", model, "--compute-type", compute_type]
        arguments += ["--max-length", max_seq_len]
        command = script("decode_ctranslate2.py", *arguments, "--find-best", cores())
        trial = Contestant(name, command, needs=("ctranslate2",))
        if not present([trial]) or not exported(task.run, model, compute_type):
            return []
        say(f"{name}: trying settings")
        best = measure(trial).figures["best"]
        words = "; ".join(f"{search} {best[search][0]} x {best[search][1]}, {best[search][2]}" for search in SEARCHES)
        settings = f"translators x threads, tokens a batch: {words}"
        command = script("decode_ctranslate2.py", *arguments, "--settings", json.dumps(best))
        contestants.append(Contestant(name, command, settings))
        ours = f"tfm with {name}"
        command = script("decode_tfm.py", *task.arguments(ours, model))
        contestants.append(Contestant(ours, command, "the export as a run, as it comes"))
    return contestants


def exported(run: Path, output: Path, quantization: str) -> bool:
    """Whether `tfm export` wrote the model; says why not."""
    command = [*TFM, "export", "--run", str(run), "--output", str(output), "--check", "0"]
    command += ["--quantization", quantization]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        note(f"CTranslate2 skipped: tfm export: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    return done.returncode == 0


def throughput_table(contestants: Sequence[Contestant], results: Results) -> str:
    """Sentences per second, ratios to tfm taken round by round."""
    rows: list[list[str]] = []
    for contestant in contestants:
        row = [contestant.name, contestant.settings]
        for search in SEARCHES:
            speeds = figures(results, contestant.name, f"{search}_per_second")
            ours = figures(results, OURS, f"{search}_per_second")
            row += [spread(speeds, digits=0), "" if contestant.name == OURS else spread(ratios(ours, speeds))]
        rows.append([*row, peak_megabytes(results, contestant.name)])
    header = ["engine", "settings", "greedy, sentences/s", "tfm is faster by", "beam, sentences/s", "tfm is faster by"]
    return markdown_table([*header, "peak memory, MB"], rows)


def latency_table(contestants: Sequence[Contestant], results: Results) -> str:
    """Milliseconds for one sentence, and how long until the first could be translated."""
    rows: list[list[str]] = []
    for contestant in contestants:
        row = [contestant.name]
        for search in SEARCHES:
            times = figures(results, contestant.name, f"{search}_ms")
            ours = figures(results, OURS, f"{search}_ms")
            row += [spread(times, digits=1), "" if contestant.name == OURS else spread(ratios(ours, times))]
        rows.append([*row, spread(figures(results, contestant.name, "load_seconds"), digits=1)])
    header = ["engine", "greedy, ms", "tfm takes, times that", "beam, ms", "tfm takes, times that"]
    return markdown_table([*header, "import and load, s"], rows)


def output_table(contestants: Sequence[Contestant], task: Task) -> str:
    """BLEU of the outputs, how many are tfm's, and how long they are."""
    from sacrebleu import BLEU

    bleu, references = BLEU(), [read_lines(task.references)]
    rows: list[list[str]] = []
    for contestant in contestants:
        row = [contestant.name]
        for search in SEARCHES:
            ours = read_lines(task.output(OURS) / f"{search}.txt")
            outputs = read_lines(task.output(contestant.name) / f"{search}.txt")
            same = 100 * sum(a == b for a, b in zip(outputs, ours, strict=True)) / len(ours)
            words = sum(len(line.split()) for line in outputs) / len(outputs)
            row += [f"{bleu.corpus_score(outputs, references).score:.2f}", f"{same:.1f} %", f"{words:.1f}"]
        rows.append(row)
    header = ["engine"]
    for search in SEARCHES:
        header += [f"{search}, BLEU", "same as tfm's", "words a sentence"]
    return markdown_table(header, rows) + f"\n\nBLEU signature `{bleu.get_signature()}`."


def command_table(task: Task, repeats: int) -> str:
    """The whole command `tfm translate`, start-up included."""
    translate = [*TFM, "translate", "--run", str(task.run)]
    output = str(task.folder / "translated.txt")
    commands = {"one short sentence": [*translate, task.sentence]}
    for beam_size in (1, task.beam_size):
        files = ["--input", str(task.sources), "--output", output]
        commands[f"{task.sentences:,} lines, beam {beam_size}"] = [*translate, *files, "--beam-size", str(beam_size)]
    rows: list[tuple[str, str]] = []
    for name, command in commands.items():
        say(f"tfm translate, {name}")
        rows.append((name, spread([seconds_of(command) for _ in range(repeats)])))
    return markdown_table(("`tfm translate`, whole command", "seconds"), rows)


def build_task(options: argparse.Namespace) -> Task:
    """Corpus, model and sentences."""
    files = find_corpus(options.corpus, options.work)
    folder = options.work / "tfm-decoding"
    folder.mkdir(parents=True, exist_ok=True)
    run = options.run or train_model(files, options.size, options.steps, folder)
    test = head(files.test, folder / "test", options.lines)
    sources = read_lines(test[0])
    sentence = next((line for line in sources if len(line.split()) <= 10), sources[0])
    search = options.beam_size, options.length_penalty
    return Task(run, folder, *test, len(sources), sentence, *search, options.repeats)


def main() -> None:
    """Parses the command line, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_corpus_argument(parser)
    parser.add_argument("--run", type=Path, help="a trained tfm run; default: one is trained for --steps")
    parser.add_argument("--size", choices=SIZES, default="tiny", help="of the model to train; default: tiny")
    parser.add_argument("--steps", type=int, default=400, help="to train it for; default: 400")
    parser.add_argument("--lines", type=int, default=1000, help="of the test set; default: 1000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beam-size", type=int, default=5)
    parser.add_argument(
        "--length-penalty", type=float, default=0.6, help="each engine's own: tfm ((5+n)/6)^A, the others n^A"
    )
    parser.add_argument("--repeats", type=int, default=50, help="for the latency; default: 50")
    parser.add_argument("--commands", type=int, default=5, help="times that whole commands run; default: 5")
    parser.add_argument(
        "--work", type=Path, default=HERE / "scratch", help="where files go; default: benchmarks/scratch"
    )
    options = parser.parse_args()
    if options.rounds < 1:
        raise BenchmarkError("--rounds must be at least 1")

    note(f"## Decoding\n\n{machine()}")
    task = build_task(options)
    note(
        f"* {options.rounds} rounds in turn, {task.sentences:,} sentences, beam {options.beam_size}, length penalty"
        f" {options.length_penalty:g} by each engine's own formula; latency: median of {options.repeats}, warm"
    )
    description = describe(task.run)
    note(f"Model: {task.run.name}, {json.dumps(description['model'])}. Short sentence: “{task.sentence}”")
    max_seq_len = description["model"]["max_seq_len"]
    ours = Contestant(OURS, script("decode_tfm.py", *task.arguments(OURS)), "as it comes")
    contestants = [*transformers(task, description), *ctranslate2(task, max_seq_len), ours]
    results = run_in_turn(contestants, options.rounds)
    for table in (throughput_table(contestants, results), latency_table(contestants, results)):
        note(table)
    note(output_table(contestants, task))
    if options.commands:
        note(command_table(task, options.commands))


if __name__ == "__main__":
    report_errors(main)
