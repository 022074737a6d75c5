"""Attacks: small shares of each in `make test`; all of one by `make attack-kills`, `make attack-disk`, and so on."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.command import TINY_FLAGS
from helpers.forkserver import ForkServer
from helpers.mutations import GLOSSARY

PAIRS = ["--src", "train.en", "--tgt", "train.de", "--dev-src", "dev.en", "--dev-tgt", "dev.de"]
"""The data of a training in the folder `corpus_files`."""
TINY_AND_SAME = [*TINY_FLAGS, "--precision", "fp32", "--set", "training.ranks=1"]
"""Makes a preset small enough for a test, and its results the same on every machine."""
DECODER = ["model.architecture=decoder_only", "model.num_encoder_layers=0", "training.best_metric=chrf"]
ENCODER = ["model.architecture=encoder_only", "model.num_decoder_layers=0", "training.best_metric=retrieval"]
SEPARATE = ["tokenizer.separate=true", "model.tie_embeddings=false"]
MODELS: dict[str, tuple[list[str], list[str]]] = {
    "translator": (PAIRS, ["tokenizer.type=bpe", "training.ema_decay=0.9"]),
    "separate": (PAIRS, [*SEPARATE, "model.norm_order=pre", "training.keep_checkpoints=3"]),
    "decoder": (PAIRS, [*DECODER, "model.positions=learned", "model.activation=swiglu"]),
    "language model": (["--text", "train.en", "--dev-text", "dev.en"], [*DECODER, "training.best_metric=loss"]),
    "encoder": (PAIRS, [*ENCODER, "tokenizer.type=unigram"]),
}
"""Runs that are changed: what each is trained on, and its settings."""

Tell = Callable[[str], None]
Share = Callable[[int, int], int]


@pytest.fixture
def share(request: pytest.FixtureRequest) -> Share:
    """Of two numbers, a few and all: how often a test is to try."""
    at_scale = request.config.getoption("--at-scale")
    return lambda few, all_: all_ if at_scale else few


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Tell:
    """Says what was measured, in a line at the end of the tests."""
    return lambda figure: record_property("figure", figure)


@pytest.fixture(scope="session")
def corpus_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train.en, train.de, dev.en and dev.de: number words and their translations, reversed."""
    english = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    german = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"]
    rows = [[(i * 7 + j * j) % 10 for j in range(1 + i % 9)] for i in range(150)]
    folder = tmp_path_factory.mktemp("corpus")
    for name, part in (("train", rows[20:]), ("dev", rows[:20])):
        sources = "".join(" ".join(english[w] for w in row) + "\n" for row in part)
        targets = "".join(" ".join(german[w] for w in reversed(row)) + "\n" for row in part)
        (folder / f"{name}.en").write_text(sources, encoding="utf-8")
        (folder / f"{name}.de").write_text(targets, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def model(server: ForkServer, corpus_files: Path) -> Path:
    """A trained model."""
    ended = server.run("train", *PAIRS, *TINY_AND_SAME, "--max-steps", 20, "--run", "model", cwd=corpus_files)
    assert ended.code == 0, ended.said
    return corpus_files / "model"


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder in memory, if there is such a file system."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def run_of(server: ForkServer, corpus_files: Path, place: Path) -> Callable[[str], Path]:
    """Trains a run of a model when it is first asked for. Its vocabulary is known to be harmless from then on."""
    made: dict[str, Path] = {}

    def make(model: str) -> Path:
        if model not in made:
            run = place / "bases" / model
            command = ["train", "--run", run, "--max-steps", 10, *training_of(model)]
            done = server.run(*command, cwd=corpus_files, env=cache_in(place))
            assert done.code == 0, done.said
            (run / GLOSSARY).write_text("one\teins\ntwo\tzwei\nthree four\tdrei vier\n")
            shutil.rmtree(run / "cache")
            made[model] = run
        return made[model]

    return make


def training_of(model: str) -> list[str]:
    """Data and settings of a model, as flags of `tfm train`."""
    data, settings = MODELS[model]
    flags = [part for setting in ("training.keep_checkpoints=1", *settings) for part in ("--set", setting)]
    return [*data, "--config", "base", *TINY_AND_SAME, *flags]


def cache_in(place: Path) -> dict[str, str]:
    """The environment of commands that remember harmless vocabularies there."""
    return {"XDG_CACHE_HOME": str(place / "cache")}
