"""Training throughput, target tokens a second (eos counted, padding not): tfm beside transformers, in turn.

The same model, the same tokenised corpus, the same machine, one after the other:

    transformers, as written      MarianMTModel, AdamW, fp32, random batches of so many sentences, nothing tuned
    transformers, best settings   fused AdamW, glibc told to keep memory, tfm's batches of similar lengths, and the
                                  fastest of fp32 and bf16 autocast, eager and sdpa attention
    tfm                           `tfm train`, choosing ranks, threads and precision as it does
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import (
    HERE,
    KEEP_MEMORY,
    BenchmarkError,
    Contestant,
    Results,
    figures,
    machine,
    markdown_table,
    note,
    peak_megabytes,
    present,
    ratios,
    report_errors,
    run_in_turn,
    script,
    spread,
    under,
)
from corpora import Files, add_corpus_argument, find_corpus, head

SIZES = {
    "minute": {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1},
    "tiny": {"d_model": 128, "d_ff": 256, "num_heads": 4, "num_encoder_layers": 4, "num_decoder_layers": 4},
    "small": {"d_model": 256, "d_ff": 1024, "num_heads": 4, "num_encoder_layers": 6, "num_decoder_layers": 6},
}
VOCAB_SIZE = 8000
LOG_EVERY = 5
"""Steps between two lines of tfm's log: its clock."""
EPOCHS_PLANNED = 3
MICRO_BATCHES = 2
"""An update of tfm consists of so many parts, which its ranks share; together they have the tokens of one batch."""
WRITTEN, BEST, OURS = "transformers, as written", "transformers, best settings", "tfm"


@dataclass(frozen=True)
class Prepared:
    """The tokenised corpus, for all contestants.

    Attributes:
        folder: Holds `config.yaml`, `run` (tfm's tokenizer and cache) and `pairs.npz` (the same ids, for the others).
        model: The fields of the ModelConfig, and `vocab_size`.
        tokens: The budget of a batch.
    """

    folder: Path
    model: dict[str, Any]
    tokens: int


def configuration(files: Files, size: str, tokens: int, work: Path) -> dict[str, dict[str, Any]]:
    """tfm's configuration of the model compared. Validation and checkpoints are kept out of the time measured."""
    dev = head(files.dev, work / "dev", lines=20)
    return {
        "data": {
            "src": [str(files.train[0])],
            "tgt": [str(files.train[1])],
            "dev_src": [str(dev[0])],
            "dev_tgt": [str(dev[1])],
        },
        "tokenizer": {"vocab_size": VOCAB_SIZE},
        "model": {**SIZES[size], "max_seq_len": 128, "dropout": 0.3, "norm_order": "post"},
        "training": {
            "max_steps": 1_000_000,
            "max_tokens_per_batch": tokens // MICRO_BATCHES,
            "grad_accum_steps": MICRO_BATCHES,
            "label_smoothing": 0.1,
            "log_every": LOG_EVERY,
            "validate_every": 1_000_000,
            "checkpoint_every": 1_000_000,
        },
    }


def prepare(files: Files, size: str, tokens: int, folder: Path) -> Prepared:
    """Builds the vocabulary, tokenises the corpus, plans tfm's batches and writes all of it down."""
    import shutil
    from dataclasses import asdict

    import numpy as np

    from tfm.configs import parse_config
    from tfm.data.batching import BatchSource
    from tfm.engine.runs.directory import RunDirectory
    from tfm.engine.training.prepare import prepare_data
    from tfm.system.reporter import Console

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tree = configuration(files, size, tokens, folder)
    (folder / "config.yaml").write_text(json.dumps(tree))  # JSON is YAML
    settings = parse_config(tree)
    data = prepare_data(settings, RunDirectory(folder / "run"), given_tokenizer=None, reporter=Console())
    source = BatchSource(data.train, max_tokens=tokens, seed=settings.training.seed)
    batches = [rows for epoch in range(EPOCHS_PLANNED) for rows in source.plan(epoch)]
    columns = {
        "src": [data.train[row][0] for row in range(len(data.train))],
        "tgt": [data.train[row][1] for row in range(len(data.train))],
        "batch": batches,
    }
    arrays: dict[str, Any] = {name: np.concatenate(rows).astype(np.int64) for name, rows in columns.items()}
    offsets: dict[str, Any] = {f"{name}_offsets": np.cumsum([0, *map(len, rows)]) for name, rows in columns.items()}
    np.savez(folder / "pairs.npz", **arrays, **offsets)
    vocab_size = len(data.tokenizer.tgt)
    note(f"Vocabulary of {vocab_size:,} pieces, {len(data.train):,} pairs, {len(arrays['tgt']):,} target pieces.")
    return Prepared(folder, asdict(settings.model) | {"vocab_size": vocab_size}, tokens)


def marian(
    name: str, prepared: Prepared, seconds: float, *, tuned: bool, precision: str = "fp32", attention: str = "default"
) -> Contestant:
    """A contestant of transformers.

    Args:
        name: Its name.
        prepared: What it trains on.
        seconds: How long, the first third left out.
        tuned: Whether its settings are those of somebody who has looked for them.
        precision, attention: Settings.
    """
    batches, optimizer = ("sorted", "fused") if tuned else ("shuffled", "default")
    settings = f"{precision}, attention {attention}, {batches} batches, AdamW {optimizer}"
    return Contestant(
        name,
        script(
            "train_marian.py",
            *("--pairs", prepared.folder / "pairs.npz"),
            *("--model", json.dumps(prepared.model)),
            *("--tokens", prepared.tokens),
            *("--batches", batches),
            *("--optimizer", optimizer),
            *("--precision", precision),
            *("--attention", attention),
            *("--warmup", seconds / 3),
            *("--seconds", seconds * 2 / 3),
        ),
        settings + (", memory kept" if tuned else ""),
        KEEP_MEMORY if tuned else {},
        ("transformers",),
    )


def best_marian(
    prepared: Prepared,
    seconds: float,
    trial_seconds: float,
    precisions: Sequence[str] = ("fp32", "bf16"),
    environment: dict[str, str] | None = None,
) -> Contestant:
    """The fastest of its variants, each tried once.

    Args:
        prepared: What it trains on.
        seconds: How long it trains as a contestant.
        trial_seconds: How long in a trial.
        precisions: To try.
        environment: Variables of its process.
    """

    def variant(name: str, seconds: float, precision: str, attention: str) -> Contestant:
        contestant = marian(name, prepared, seconds, tuned=True, precision=precision, attention=attention)
        return under(contestant, environment or {})

    trials = {
        f"{precision}, {attention}": variant(f"{precision}, {attention}", trial_seconds, precision, attention)
        for precision in precisions
        for attention in ("eager", "sdpa")
    }
    results = run_in_turn(list(trials.values()), rounds=1)
    speeds = {name: figures(results, name, "tokens_per_second")[0] for name in trials}
    rows = [(name, f"{speed:,.0f}") for name, speed in speeds.items()]
    note(f"Best settings of transformers, one trial each:\n\n{markdown_table(('settings', 'tokens/s'), rows)}")
    precision, attention = max(speeds, key=speeds.__getitem__).split(", ")
    return variant(BEST, seconds, precision, attention)


def tfm(prepared: Prepared, seconds: float, settings: Sequence[str]) -> Contestant:
    """`tfm train`."""
    flags = [part for setting in settings for part in ("--set", setting)]
    times = ("--warmup", seconds / 3, "--seconds", seconds * 2 / 3)
    command = script("train_tfm.py", "--prepared", prepared.folder, *times, *flags)
    return Contestant(OURS, command, ", ".join(["as `tfm train` chooses", *settings]))


def chosen(results: Results) -> str:
    """What `tfm train` chose: precision, processes and their threads."""
    setup = results[OURS][-1].figures["setup"]
    division = setup["division"]
    return f"{setup['precision']}, {division['ranks']} x {division['threads']}"


def report(contestants: Sequence[Contestant], results: Results) -> str:
    """The table of all contestants, ratios to tfm taken round by round."""
    speeds = {contestant.name: figures(results, contestant.name, "tokens_per_second") for contestant in contestants}
    rows = [
        (
            contestant.name,
            contestant.settings + (f": {chosen(results)}" if contestant.name == OURS else ""),
            spread(speeds[contestant.name], digits=0),
            "" if contestant.name == OURS else spread(ratios(speeds[OURS], speeds[contestant.name])),
            peak_megabytes(results, contestant.name),
        )
        for contestant in contestants
    ]
    return markdown_table(("contestant", "settings", "target tokens/s", "tfm is faster by", "peak memory, MB"), rows)


def main() -> None:
    """Parses the command line, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_corpus_argument(parser)
    parser.add_argument("--size", choices=SIZES, default="tiny", help="of the model; default: tiny")
    parser.add_argument("--tokens", type=int, default=4096, help="of a batch; default: 4096")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--seconds", type=float, default=18, help="of training a round, the first third left out; default: 18"
    )
    parser.add_argument("--trial-seconds", type=float, default=9, help="for each setting of transformers; default: 9")
    parser.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="K=V", help="for tfm train; may be repeated"
    )
    parser.add_argument(
        "--work", type=Path, default=HERE / "scratch", help="where files go; default: benchmarks/scratch"
    )
    options = parser.parse_args()
    if options.rounds < 1:
        raise BenchmarkError("--rounds must be at least 1")

    print(f"## Training throughput, model {options.size}\n\n{machine()}")
    note(
        f"* model {json.dumps(SIZES[options.size])}, post-norm, tied, dropout 0.3, label smoothing 0.1,"
        f" {options.tokens:,}-token batches\n"
        f"* {options.rounds} rounds in turn of {options.seconds:g} s each, the first third left out"
    )
    files = find_corpus(options.corpus, options.work)
    prepared = prepare(files, options.size, options.tokens, options.work / "tfm-training")
    contestants = present([marian(WRITTEN, prepared, options.seconds, tuned=False)])
    if contestants:
        contestants.append(best_marian(prepared, options.seconds, options.trial_seconds))
    contestants.append(tfm(prepared, options.seconds, options.settings))
    results = run_in_turn(contestants, options.rounds)
    note(report(contestants, results))


if __name__ == "__main__":
    report_errors(main)
