"""A rung of the ladder for a peer: JoeyNMT 2.3, trained for some minutes and scored like tfm.

Sizes are those of its recipe for IWSLT14 German-English, the smallest of real text that it comes with: 6 + 6 layers of
width 256, dropout 0.3, smoothing 0.1, post-norm. Its learning rate there waits for the validation score to stand still,
for which there is no time: here it rises for --warmup updates, then falls with the root of their number (AdamW).
Validations are few and short, for JoeyNMT searches without a cache. The training is killed when the minutes are over,
and the best checkpoint translates.

JoeyNMT needs an environment of its own: its path is `--python`.
"""

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

from common import BenchmarkError, read_lines, report_errors
from ladder_peer import BEAM_SIZE, peer_parser, print_figures, train_vocabulary

VALIDATED = 100
"""Validation sentences that it scores."""


def configuration(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """What JoeyNMT reads. JSON is YAML."""
    side = {
        "max_length": 250,
        "lowercase": False,
        "level": "bpe",
        "voc_file": str(folder / "vocabulary.txt"),
        "tokenizer_type": "sentencepiece",
        "tokenizer_cfg": {"model_file": str(folder / "bpe.model")},
    }
    stack = {
        "type": "transformer",
        "num_layers": options.layers,
        "num_heads": options.heads,
        "embeddings": {"embedding_dim": options.d_model, "scale": True, "dropout": 0.0},
        "hidden_size": options.d_model,
        "ff_size": options.d_ff,
        "dropout": options.dropout,
        "layer_norm": "post",
    }
    return {
        "name": options.rung.name,
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder / "model"),
        "use_cuda": False,
        "random_seed": options.seed,
        "data": {
            "train": str(folder / "train"),
            "dev": str(folder / "valid"),
            "dataset_type": "plain",
            "src": {"lang": "src", **side},
            "trg": {"lang": "tgt", **side},
        },
        "testing": {
            "beam_size": BEAM_SIZE,
            "beam_alpha": 1.0,
            "batch_size": 32,
            "batch_type": "sentence",
            "max_output_length": 250,
            "eval_metrics": ["bleu"],
        },
        "training": {
            "optimizer": "adamw",
            "adam_betas": [0.9, 0.98],
            "normalization": "tokens",
            "scheduling": "warmupinversesquareroot",
            "learning_rate": options.learning_rate,
            "learning_rate_min": 0.0,
            "learning_rate_warmup": options.warmup,
            "weight_decay": 1e-4,
            "clip_grad_norm": 1.0,
            "label_smoothing": 0.1,
            "batch_size": options.tokens,
            "batch_type": "token",
            "early_stopping_metric": "loss",
            "epochs": 1_000_000,
            "validation_freq": options.validate_every,
            "logging_freq": 50,
            "keep_best_ckpts": 1,
            "print_valid_sents": [0],
            "shuffle": True,
            "overwrite": True,
        },
        "model": {
            "initializer": "xavier_uniform",
            "bias_initializer": "zeros",
            "init_gain": 1.0,
            "embed_initializer": "xavier_uniform",
            "embed_init_gain": 1.0,
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": stack,
            "decoder": stack,
        },
    }


def prepare(options: argparse.Namespace) -> Path:
    """Writes text, vocabulary and configuration into the output folder; returns the configuration's path."""
    folder: Path = options.output.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = train_vocabulary(options.rung, folder / "bpe", options.vocab_size)
    pieces = [vocabulary.id_to_piece(number) for number in range(len(vocabulary)) if not vocabulary.is_control(number)]
    known = "".join(f"{piece}\n" for piece in pieces if piece != "<unk>")  # JoeyNMT has its own special symbols
    (folder / "vocabulary.txt").write_text(known, encoding="utf-8")
    for part, most in (("train", None), ("valid", VALIDATED)):
        for side in ("src", "tgt"):
            lines = read_lines(options.rung / f"{part}.{side}")[:most]
            (folder / f"{part}.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    path = folder / "config.yaml"
    path.write_text(json.dumps(configuration(options, folder), indent=1), encoding="utf-8")
    return path


def train(command: list[str], config: Path, minutes: float) -> None:
    """Trains until the minutes are over.

    Raises:
        BenchmarkError: It ended by itself.
    """
    with open(config.with_name("train.log"), "w", encoding="utf-8") as log:
        process = subprocess.Popen([*command, "train", str(config), "--skip-test"], stdout=log, stderr=log)
        try:
            process.wait(60 * minutes)
            raise BenchmarkError(f"JoeyNMT ended with {process.returncode}; see {log.name}")
        except subprocess.TimeoutExpired:
            pass
        finally:  # nothing goes on in the background, on cores that are measured next
            process.kill()
            process.wait()


def translate(command: list[str], config: Path, source: Path) -> list[str]:
    """Translates a file with the best checkpoint.

    Raises:
        BenchmarkError: There is none, or JoeyNMT failed.
    """
    if not (config.with_name("model") / "best.ckpt").exists():
        raise BenchmarkError("JoeyNMT came to no validation: there is no checkpoint")
    with open(source, encoding="utf-8") as text:
        ended = subprocess.run(
            [*command, "translate", str(config)],  # its --output-path ends with an error in 2.3
            stdin=text,
            capture_output=True,
            text=True,
            check=False,
        )
    if ended.returncode:
        reason = (ended.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        raise BenchmarkError(f"JoeyNMT could not translate: {reason}")
    outputs, sources = ended.stdout.splitlines(), read_lines(source)
    if len(outputs) != len(sources):
        raise BenchmarkError(f"JoeyNMT translated {len(outputs):,} of {len(sources):,} lines")
    return outputs


def updates(log: Path) -> int:
    """How many updates a log of a training tells of."""
    steps = [line.partition("Step:")[2].partition(",")[0] for line in read_lines(log) if "Step:" in line]
    return max((int(step) for step in steps if step.strip().isdigit()), default=0)


def main() -> None:
    """Trains, translates, prints the figures as one JSON object."""
    parser = peer_parser(__doc__, d_model=256, d_ff=1024, heads=4, layers=6, warmup=1000)
    parser.add_argument("--python", required=True, metavar="FILE", help="of an environment that has joeynmt")
    parser.add_argument("--validate-every", type=int, default=200, help="updates")
    options = parser.parse_args()

    config = prepare(options)
    command = [options.python, "-m", "joeynmt"]
    train(command, config, options.minutes)
    outputs = translate(command, config, options.rung / f"{options.part}.src")
    print_figures(options, outputs, updates(config.with_name("train.log")))


if __name__ == "__main__":
    report_errors(main)
