"""How time and memory grow: with the corpus, the length of sentences, the batch, the model, the beam.

Synthetic sentences, one run for each point: this is about the shape of a curve, not about a rate. The corpus grows by
repeating a real or toy one with a number behind each sentence; the other parts train and translate sentences of number
words, each one piece, of one length.
"""

import argparse
import json
import math
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

from common import (
    HERE,
    TFM,
    BenchmarkError,
    Contestant,
    Memory,
    machine,
    markdown_table,
    measure,
    note,
    report_errors,
    run_watched,
    say,
    script,
    throughput,
)
from corpora import Files, Sides, add_corpus_argument, find_corpus, head, write_pairs
from train_tfm import records
from training import VOCAB_SIZE

WORDS = 2000
TINY = {"d_model": 128, "d_ff": 256, "num_heads": 4, "num_encoder_layers": 4, "num_decoder_layers": 4}
BASE_PAIRS = 29_000
TOKENS = 4096
LENGTH = 16
"""Pieces of a sentence, eos included, where the length is not what grows."""

FIRST_STEP = "first step after, s"
WITHOUT_MAPPED = "without mapped files, MB"

Row = dict[str, float]
"""The figures of one point, by the name of their column."""


@dataclass(frozen=True)
class Part:
    """One thing that grows.

    Attributes:
        axis: What it is.
        short, full: Its sizes, without and with --full.
        measure: The figures at one size.
    """

    axis: str
    short: Sequence[int]
    full: Sequence[int]
    measure: Callable[["Bench", int], Row]


@dataclass(frozen=True)
class Bench:
    """Where files go, and what the points share.

    Attributes:
        work: A directory of its own.
        corpus: The corpus to repeat.
        steps: Of training, for each point.
        lines: Most sentences translated, for each point.
    """

    work: Path
    corpus: Files
    steps: int
    lines: int

    def configure(self, name: str, train: Sides, settings: dict[str, Any]) -> Path:
        """Writes the configuration of a run; `settings` are sections that differ from the usual."""
        dev = head(train, self.work / "dev", lines=4)
        data = {"src": train[0], "tgt": train[1], "dev_src": dev[0], "dev_tgt": dev[1]}
        usual: dict[str, dict[str, Any]] = {
            "data": {key: [str(path)] for key, path in data.items()},
            "model": {**TINY, "max_seq_len": 128},
            "training": {"max_tokens_per_batch": TOKENS, "log_every": 1, "validation_sentences": 1},
            # An output as long as its source, whatever a model so little trained would do.
            "decoding": {"max_length_factor": 1.0, "max_length_offset": 0},
        }
        tree = {section: {**values, **settings.get(section, {})} for section, values in usual.items()}
        config = self.work / f"{name}.yaml"
        config.write_text(json.dumps(tree))  # JSON is YAML
        return config

    def fresh(self, name: str) -> Path:
        """The directory of a run, which does not exist."""
        shutil.rmtree(self.work / name, ignore_errors=True)
        return self.work / name

    def vocabulary(self, name: str, sides: Sides, *flags: str) -> Path:
        """The vocabulary of a text, built once."""
        path = self.work / name
        if not path.exists():
            files = ["--src", str(sides[0]), "--tgt", str(sides[1])]
            run_watched([*TFM, "tokenize", *files, *flags, "--output", str(path)])
        return path

    def train(self, run: Path, config: Path, vocabulary: Path) -> Row:
        """Trains a run for a few steps; tokens a second, seconds to the first step, and what it takes of memory."""
        command = [*TFM, "train", "--config", str(config), "--tokenizer", str(vocabulary), "--run", str(run)]
        _, peak = run_watched([*command, "--max-steps", str(self.steps)])
        tokens = {record["step"]: record["tokens"] for record in records(run / "metrics.jsonl") if "tokens" in record}
        clock = [(record["seconds"], float(tokens[record["step"]])) for record in records(run / "timing.jsonl")]
        return {
            "target tokens/s": throughput(clock[len(clock) // 3 :], warmup=0),
            FIRST_STEP: clock[0][0],
            "training, MB": megabytes(peak),
            WITHOUT_MAPPED: math.nan if peak is None else peak.without_files / 1e6,
        }

    def train_on_numbers(self, name: str, length: int, tokens: int, model: dict[str, Any]) -> tuple[Path, Row]:
        """Trains a fresh run on sentences of one length; the run, and its figures."""
        pairs = max(WORDS, self.steps * tokens // length)
        sides = write_pairs(self.work / f"{name}-text", islice(number_words(length), pairs))
        words = write_pairs(self.work / "words", islice(number_words(LENGTH), WORDS))
        vocabulary = self.vocabulary("words-vocabulary", words, "--type", "word", "--vocab-size", str(WORDS + 200))
        settings = {
            "model": {"max_seq_len": length, **model},
            "training": {"max_tokens_per_batch": tokens},
        }
        run = self.fresh(name)
        row = self.train(run, self.configure(name, sides, settings), vocabulary)
        del row[FIRST_STEP], row[WITHOUT_MAPPED]
        return run, row

    def translate(self, run: Path, length: int, beam_size: int) -> Row:
        """Translates sentences of one length with a run; sentences a second, and peak memory."""
        lines = max(2, min(self.lines, self.lines * LENGTH // length))
        sources = islice((src for src, _ in number_words(length)), lines)
        path = self.work / "sources.txt"
        path.write_text("".join(f"{line}\n" for line in sources))
        arguments = ["--run", run, "--input", path, "--sentence", "w1", "--output", self.work / "outputs"]
        arguments += ["--beam-size", beam_size, "--length-penalty", 0.6, "--repeats", 1]
        done = measure(Contestant("tfm", script("decode_tfm.py", *arguments)))
        return {
            "greedy, sentences/s": done.figures["greedy_per_second"],
            "beam, sentences/s": done.figures["beam_per_second"],
            "translating, MB": megabytes(done.peak_memory),
        }


def megabytes(peak: Memory | None) -> float:
    """All of a peak memory; not a number where it was not measured."""
    return math.nan if peak is None else peak.total / 1e6


def number_words(length: int) -> Iterator[tuple[str, str]]:
    """Endless pairs of `length` pieces each, eos included; every word is one piece."""
    rng = random.Random(length)
    for i in count():
        words = [f"w{rng.randrange(WORDS)}" for _ in range(length - 1)]
        words[0] = f"w{i % WORDS}"  # so that all words occur
        yield " ".join(words), " ".join(reversed(words))


def corpus_point(bench: Bench, size: int) -> Row:
    """Tokenising into the cache, starting from the cache, and what both take of memory."""
    vocabulary = bench.vocabulary("corpus-vocabulary", bench.corpus.train, "--vocab-size", str(VOCAB_SIZE))
    name = f"corpus-{size}"
    sides = write_pairs(bench.work / f"{name}-text", repeated(bench.corpus.train, size))
    config, run = bench.configure(name, sides, {}), bench.fresh(name)
    command = script("cache_corpus.py", "--config", config, "--tokenizer", vocabulary, "--run", run)
    cached = measure(Contestant("tokenising", command))
    row = bench.train(run, config, vocabulary)
    for path in sides:
        path.unlink()
    shutil.rmtree(run)
    return {
        "tokenised and cached, s": cached.figures["build_seconds"],
        "cache opened, s": cached.figures["open_seconds"],
        FIRST_STEP: row[FIRST_STEP],
        "tokenising, MB": megabytes(cached.peak_memory),
        "training, MB": row["training, MB"],
        WITHOUT_MAPPED: row[WITHOUT_MAPPED],
    }


def repeated(sides: Sides, size: int) -> Iterator[tuple[str, str]]:
    """So many pairs: those of a corpus again and again, from the second time on with a number behind them."""
    done = 0
    for copy in count():
        with open(sides[0], encoding="utf-8") as src, open(sides[1], encoding="utf-8") as tgt:
            behind = f" {copy}" if copy else ""
            for s, t in islice(zip(src, tgt, strict=True), min(BASE_PAIRS, size - done)):
                yield s.rstrip("\n") + behind, t.rstrip("\n") + behind
                done += 1
        if done >= size:
            return


def length_point(bench: Bench, length: int) -> Row:
    """Training and translating sentences of one length."""
    run, row = bench.train_on_numbers(f"length-{length}", length, TOKENS, {})
    row["training, sentences/s"] = row["target tokens/s"] / length
    return row | bench.translate(run, length, beam_size=5)


def batch_point(bench: Bench, tokens: int) -> Row:
    """Training with batches of so many tokens."""
    return bench.train_on_numbers(f"batch-{tokens}", LENGTH, tokens, {})[1]


def model_point(bench: Bench, d_model: int) -> Row:
    """Training and translating with a model of a width; d_ff is twice that, a head 32 wide."""
    sizes = {"d_model": d_model, "d_ff": 2 * d_model, "num_heads": max(1, d_model // 32)}
    run, row = bench.train_on_numbers(f"model-{d_model}", LENGTH, TOKENS, sizes)
    return row | bench.translate(run, LENGTH, beam_size=5)


def beam_point(bench: Bench, beam_size: int) -> Row:
    """Translating with a beam."""
    run = bench.work / "beam"
    if not run.exists():
        bench.train_on_numbers(run.name, LENGTH, TOKENS, {})
    row = bench.translate(run, LENGTH, beam_size)
    del row["greedy, sentences/s"]
    return row


PARTS = {
    "corpus": Part("sentence pairs", (3_000, 29_000, 290_000), (29_000, 290_000, 2_900_000), corpus_point),
    "length": Part("pieces of a sentence", (10, 30, 100, 300), (10, 30, 100, 300, 1000), length_point),
    "batch": Part("tokens of a batch", (512, 2048, 8192), (512, 1024, 2048, 4096, 8192, 16384, 32768), batch_point),
    "model": Part("d_model", (64, 128, 256), (64, 128, 256, 512), model_point),
    "beam": Part("beam size", (1, 5, 10), (1, 2, 5, 10, 20), beam_point),
}


def table(part: Part, rows: dict[int, Row]) -> str:
    """The figures of one part."""
    columns = list(next(iter(rows.values())))
    lines = [(f"{size:,}", *(_figure(row[name]) for name in columns)) for size, row in rows.items()]
    return markdown_table((part.axis, *columns), lines)


def _figure(value: float) -> str:
    return "not measured" if math.isnan(value) else f"{value:,.{1 if value < 100 else 0}f}"


def draw(found: dict[str, dict[int, Row]], picture: Path) -> None:
    """One row of plots for each part: what takes seconds or is a rate on the left, memory on the right."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, grid = plt.subplots(len(found), 2, figsize=(11, 3.2 * len(found)), squeeze=False, layout="constrained")
    for axes, (name, rows) in zip(grid, found.items(), strict=True):
        for column in next(iter(rows.values())):
            axis = axes[int(column.endswith("MB"))]
            axis.plot(list(rows), [row[column] for row in rows.values()], marker="o", label=column)
        axes[0].set_yscale("log")
        axes[1].set_ylim(bottom=0, top=1.1 * axes[1].get_ylim()[1])
        for axis in axes:
            axis.set_xscale("log")
            axis.set_xticks(list(rows), labels=[f"{size:,}" for size in rows])
            axis.minorticks_off()
            axis.set_xlabel(PARTS[name].axis)
            axis.legend(fontsize="small")
    figure.savefig(picture, dpi=100)
    plt.close(figure)


def main() -> None:
    """Parses the command line, measures, prints, draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_corpus_argument(parser)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--full", action="store_true", help="all sizes: long, and GBs of disk and memory")
    parser.add_argument("--sizes", type=int, nargs="+", help="these sizes instead; with one part")
    parser.add_argument("--steps", type=int, default=12, help="of training, for each point; default: 12")
    parser.add_argument("--lines", type=int, default=200, help="to translate, for each point; default: 200")
    parser.add_argument("--picture", type=Path, help="default: growth.png where files go")
    parser.add_argument(
        "--work", type=Path, default=HERE / "scratch", help="where files go; default: benchmarks/scratch"
    )
    options = parser.parse_intermixed_args()
    names = options.parts or list(PARTS)
    if unknown := set(names) - set(PARTS):
        raise BenchmarkError(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if options.sizes and len(names) != 1:
        raise BenchmarkError("--sizes needs exactly one part")
    if options.steps < 4:
        raise BenchmarkError("--steps must be at least 4")

    print(f"## Growth\n\n{machine()}")
    note(f"* model {json.dumps(TINY)} where nothing else is said, {options.steps} steps of training a point")
    work = options.work / "tfm-growth"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    bench = Bench(work, find_corpus(options.corpus, options.work), options.steps, options.lines)
    found: dict[str, dict[int, Row]] = {}
    for name in names:
        part = PARTS[name]
        for size in options.sizes or (part.full if options.full else part.short):
            say(f"{name}: {size:,}")
            found.setdefault(name, {})[size] = part.measure(bench, size)
        note(table(part, found[name]))
    picture = options.picture or options.work / "growth.png"
    draw(found, picture)
    note(f"Drawn in {picture}.")


if __name__ == "__main__":
    report_errors(main)
