"""A small tokenizer, a small random model, and a run directory made of them."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from helpers.descriptions import describe

from tfm.data.config import TokenizerConfig
from tfm.data.tokenizer import Tokenizer
from tfm.data.vocabulary_training import build_tokenizer
from tfm.engine.runs.checkpoint import ModelDescription
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.runs.weights import model_tensors, write_checkpoint
from tfm.seq2seq.decoding.config import DecodingConfig
from tfm.seq2seq.model.config import ModelConfig
from tfm.seq2seq.model.encoder_decoder import Transformer

SUBJECTS = {"the cat": "die Katze", "a dog": "ein Hund", "my sister": "meine Schwester", "the child": "das Kind"}
VERBS = {"sees": "sieht", "likes": "mag", "finds": "findet"}
OBJECTS = {"the house": "das Haus", "two apples": "zwei Äpfel", "a red ball": "einen roten Ball"}
PAIRS = [(f"{s} {v} {o}.", f"{SUBJECTS[s]} {VERBS[v]} {OBJECTS[o]}.") for s in SUBJECTS for v in VERBS for o in OBJECTS]
DECODING = DecodingConfig(beam_size=3, max_length_factor=1.0, max_length_offset=4)


@pytest.fixture(scope="session")
def pairs() -> list[tuple[str, str]]:
    """English and German sentences."""
    return PAIRS


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """A joint vocabulary of those sentences."""
    sources, targets = zip(*PAIRS, strict=True)
    return build_tokenizer(zip(sources, targets, strict=True), TokenizerConfig(vocab_size=360))


@pytest.fixture(scope="session")
def make_model(tokenizer: Tokenizer) -> Callable[[int], Transformer]:
    """Builds a random model from a seed; it prefers whole pieces to bytes, and ends its sentences now and then."""
    config = ModelConfig(
        d_model=16,
        d_ff=32,
        num_heads=2,
        num_encoder_layers=2,
        num_decoder_layers=2,
        max_seq_len=40,
        tie_embeddings=False,
        output_bias=True,
    )
    size = len(tokenizer.tgt)

    def make(seed: int) -> Transformer:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = Transformer(config, src_vocab_size=size, tgt_vocab_size=size, shared_vocab=True)
        with torch.no_grad():
            model.output_layer.weight.mul_(6)
            model.output_layer.bias[[tokenizer.tgt.is_byte(i) for i in range(size)]] = -8
            model.output_layer.bias[3] = 2
        return model.eval()

    return make


@pytest.fixture(scope="session")
def model(make_model: Callable[[int], Transformer]) -> Transformer:
    """One such model; read only."""
    return make_model(15)


@pytest.fixture(scope="session")
def describe_model(tokenizer: Tokenizer) -> Callable[[Transformer], ModelDescription]:
    """Writes the `model.json` of such a model."""

    def described(model: Transformer) -> ModelDescription:
        return describe(model.config, tokenizer, decoding=asdict(DECODING))

    return described


@pytest.fixture(scope="session")
def run_directory(
    tmp_path_factory: pytest.TempPathFactory,
    tokenizer: Tokenizer,
    make_model: Callable[[int], Transformer],
    describe_model: Callable[[Transformer], ModelDescription],
) -> Path:
    """A run with checkpoints at steps 10, 20 and 30, the second being the best; read only."""
    run = tmp_path_factory.mktemp("runs") / "small"
    tokenizer.save(run / "tokenizer")
    for step, score in {10: 1.5, 20: 3.5, 30: 2.5}.items():
        model = make_model(step)
        state = {
            "score": score,
            "max_steps": 30,
            "progress": {"step": step, "epoch": 1, "tokens": 100 * step, "stopped_early": False},
        }
        target = RunDirectory(run).checkpoint_path(step)
        write_checkpoint(
            target, tensors={"model": model_tensors(model)}, description=describe_model(model), state=state
        )
    return run
