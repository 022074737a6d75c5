"""What the peers on the ladder share: their flags, their vocabulary, and how their translations are scored."""

import argparse
import json
from pathlib import Path
from typing import Any

import sentencepiece
from common import read_lines
from ladder import looping_share
from train_marian import BOS_ID, EOS_ID, PAD_ID

UNK_ID = 1
BEAM_SIZE = 5


def peer_parser(description: str | None, **defaults: float) -> argparse.ArgumentParser:
    """The flags of every peer.

    Args:
        description: Of the script.
        defaults: Of the sizes and the rates that differ between peers.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rung", type=Path, required=True, metavar="DIR", help="as ladder.py build wrote it")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="for all that the script writes")
    parser.add_argument("--minutes", type=float, required=True, help="of training")
    parser.add_argument("--set", dest="part", choices=("valid", "test"), default="valid", help="what to score")
    parser.add_argument("--vocab-size", type=int, default=5000)
    parser.add_argument("--d-model", type=int)
    parser.add_argument("--d-ff", type=int)
    parser.add_argument("--heads", type=int)
    parser.add_argument("--layers", type=int, help="of each stack")
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--tokens", type=int, default=4096, help="of a batch")
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--warmup", type=int, help="updates")
    parser.add_argument("--seed", type=int, default=1)
    parser.set_defaults(**defaults)
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
