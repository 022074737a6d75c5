"""A language of number words, a model of it that has learned little, and text that makes it better."""

import random
from pathlib import Path

from helpers.command import write_lines

WORDS = {
    "en": ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
    "de": ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"],
}
SIZES = {"train": 120, "dev": 40, "text": 240}
TRAINED = [
    *("--set", "training.ranks=1"),
    *("--set", "training.precision=fp32"),
    *("--set", "training.validate_every=30"),
    *("--set", "training.checkpoint_every=10"),
    *("--set", "training.warmup_steps=10"),
    *("--set", "training.ema_decay=0.5"),
    *("--set", "training.max_tokens_per_batch=256"),
    *("--set", "training.grad_accum_steps=1"),
    *("--set", "training.patience=0"),
    *("--set", "training.schedule=constant"),
    *("--set", "training.validation_sentences=3"),
    *("--set", "tokenizer.vocab_size=320"),
    *("--set", "model.dropout=0.0"),
]
"""How its models are trained."""
SIZE = [
    *("--set", "model.d_model=32"),
    *("--set", "model.d_ff=64"),
    *("--set", "model.num_heads=2"),
    *("--set", "model.num_encoder_layers=1"),
    *("--set", "model.num_decoder_layers=1"),
    *("--set", "model.max_seq_len=40"),
]
LITTLE = ["--max-steps", "20"]
"""So few updates that it translates badly."""
MORE = ["--set", "training.max_steps=120"]
"""Updates of the trainings that make it better."""
FILES = ["--src", "train.en", "--tgt", "train.de", "--dev-src", "dev.en", "--dev-tgt", "dev.de"]
TRAIN = ["train", *FILES, *TRAINED, *SIZE, *LITTLE, "--run", "r"]
IMPROVE = ["improve", "--run", "r", "--tgt-text", "text.de", *TRAINED, *MORE]


def write_language(folder: Path) -> None:
    """Writes train, dev and text, each in both languages, line by line translations."""
    drawn = random.Random(1)
    for name, size in SIZES.items():
        rows = [[drawn.randrange(10) for _ in range(2 + drawn.randrange(5))] for _ in range(size)]
        for language, words in WORDS.items():
            write_lines(folder / f"{name}.{language}", [" ".join(words[i] for i in row) for row in rows])
