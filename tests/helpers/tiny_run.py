"""A run small enough to train in a second, with dropout, smoothing, moving average and accumulation all on."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tfm.configs import RunConfig, merge, parse_config
from tfm.engine.training.train import TrainingResult, train
from tfm.system.interrupts import Interrupts

TINY: dict[str, Any] = {
    "tokenizer": {"vocab_size": 320, "type": "bpe"},  # subword dropout can divide what BPE has joined
    "model": {
        "d_model": 16,
        "d_ff": 32,
        "num_heads": 2,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
        "max_seq_len": 32,
        "dropout": 0.2,
        "attention_dropout": 0.1,
        "norm_order": "pre",
    },
    "training": {
        "max_steps": 24,
        "max_tokens_per_batch": 128,
        "grad_accum_steps": 2,
        "ranks": 1,
        "precision": "bf16",  # what is faster may be another one the next time
        "learning_rate": 0.01,
        "warmup_steps": 4,
        "subword_dropout": 0.1,
        "both_directions": True,
        "ema_decay": 0.9,
        "log_every": 3,
        "validate_every": 8,
        "checkpoint_every": 4,
        "keep_checkpoints": 100,
        "validation_sentences": 4,
    },
}


class Recorder:
    """A reporter that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.warned: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def warn(self, text: str) -> None:
        self.warned.append(text)

    def progress(self, description: str, total: int | None, unit: str, done: int = 0) -> "Recorder":
        del description, total, unit, done
        return self

    def update(self, done: int, note: str = "", total: int | None = None) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture(scope="session")
def pairs() -> list[tuple[str, str]]:
    """English and German number words: 150 pairs of many lengths."""
    english = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    german = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"]
    words = [[(i * 7 + j * j) % 10 for j in range(1 + i % 9)] for i in range(150)]
    return [(" ".join(english[w] for w in row), " ".join(german[w] for w in reversed(row))) for row in words]


@pytest.fixture(scope="session")
def corpus(pairs: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same as files; the `data` section that names them."""
    folder = tmp_path_factory.mktemp("corpus")
    for name, part in (("train", pairs[20:]), ("dev", pairs[:20])):
        for side, suffix in enumerate(("en", "de")):
            (folder / f"{name}.{suffix}").write_text("".join(pair[side] + "\n" for pair in part), encoding="utf-8")
    paths = {key: [str(folder / name)] for key, name in (("src", "train.en"), ("tgt", "train.de"))}
    return paths | {"dev_src": [str(folder / "dev.en")], "dev_tgt": [str(folder / "dev.de")]}


Configure = Callable[..., RunConfig]
TrainTiny = Callable[..., TrainingResult]


@pytest.fixture(scope="session")
def configure(corpus: dict[str, Any]) -> Configure:
    """Makes the tiny configuration, with other training settings by name."""

    def make(**training: Any) -> RunConfig:
        return parse_config(merge(TINY, {"data": corpus, "training": training}))

    return make


@pytest.fixture(scope="session")
def train_tiny(configure: Configure) -> TrainTiny:
    """Trains the tiny configuration into a directory."""

    def run(
        directory: Path,
        *,
        interrupts: Interrupts | None = None,
        reporter: Recorder | None = None,
        init_from: Path | None = None,
        tokenizer: Path | None = None,
        finish_in: str | None = None,
        **training: Any,
    ) -> TrainingResult:
        settings = configure(**training)
        result = train(
            settings,
            run=directory,
            reporter=reporter or Recorder(),
            interrupts=interrupts or Interrupts(),
            init_from=init_from,
            tokenizer=tokenizer,
            finish_in=finish_in,
        )
        assert result is not None
        return result

    return run


@pytest.fixture(scope="module", autouse=True)
def quick_picture() -> Iterator[None]:
    """A stand-in for the learning curve: hundreds of trainings would each draw for half a second.

    `test_curves` draws it, and so does each training of the installed command.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tfm.engine.runs.log.picture", lambda drawn: b"a picture")
        yield


@pytest.fixture
def recorder() -> Recorder:
    """A reporter that remembers what it was told."""
    return Recorder()
