"""The package stands alone: with torch, and no text, settings or run, it trains and decodes all three architectures."""

import subprocess
import sys
import textwrap
from pathlib import Path

ALONE = """
    import importlib, pkgutil, sys, warnings

    ABSENT = {"tfm.data", "tfm.configs", "tfm.engine", "tfm.cli", "tfm.system.files", "tfm.system.reporter"}
    ABSENT |= {"numpy", "pydantic", "pyarrow", "datasets", "sentencepiece", "safetensors", "ruamel", "tqdm", "typer"}

    class Absent:
        def find_spec(self, name, path=None, target=None):
            if any(name == one or name.startswith(one + ".") for one in ABSENT):
                raise ModuleNotFoundError(f"{name} is absent here", name=name)

    sys.meta_path.insert(0, Absent())
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    import torch
    import tfm.seq2seq

    torch.set_num_threads(1)

    for module in pkgutil.walk_packages(tfm.seq2seq.__path__, "tfm.seq2seq."):
        importlib.import_module(module.name)

    from tfm.seq2seq.decoding.beam import Beam
    from tfm.seq2seq.decoding.fast import arrange
    from tfm.seq2seq.decoding.greedy import Greedy
    from tfm.seq2seq.decoding.search import Task
    from tfm.seq2seq.model import ModelConfig
    from tfm.seq2seq.model.build import build_model
    from tfm.seq2seq.model.masks import PAD_ID, pad
    from tfm.seq2seq.training.batch import Batch
    from tfm.seq2seq.training.config import TrainingConfig
    from tfm.seq2seq.training.contrastive import ContrastiveLoss
    from tfm.seq2seq.training.loss import NextTokenLoss
    from tfm.seq2seq.training.masking import MaskedTokenLoss, Masking
    from tfm.seq2seq.training.optimizer import MovingAverage, Optimizer
    from tfm.seq2seq.training.update import Trainer

    BOS, EOS, MASK, FIRST, VOCABULARY = 2, 3, 4, 5, 20
    SOURCES = [[5, 6], [7, 8, 9], [10], [11, 12, 13, 5]]
    TARGETS = [[9, 8, 7], [6], [13, 12], [11, 5]]
    ROWS = [([*src, EOS], [BOS, *tgt, EOS]) for src, tgt in zip(SOURCES, TARGETS)]

    class OneBatch:
        def num_batches(self, epoch):
            return 1

        def load_part(self, epoch, index, part, parts):
            return Batch.of(ROWS[part::parts])

    def train(loss, **choices):
        torch.manual_seed(0)
        config = ModelConfig(d_model=32, d_ff=64, num_heads=4, max_seq_len=16, dropout=0.0, **choices)
        model = build_model(config, src_vocab_size=VOCABULARY, tgt_vocab_size=VOCABULARY, shared_vocab=True)
        settings = TrainingConfig(optimizer="muon")
        trainer = Trainer(model, Optimizer(model, settings), MovingAverage(model, 0.9), settings, loss, OneBatch())
        first = last = None
        for step in range(100):
            trainer.progress.loss_sum = trainer.progress.loss_tokens = 0
            trainer.update(0.001)
            last = trainer.progress.mean_loss
            first = first or last
        print(f"{config.architecture}: {type(loss).__name__} from {first:.2f} to {last:.2f}")
        assert last < first / 2
        return model.eval()

    def decode(model):
        fast = arrange(model, [PAD_ID, BOS, MASK])
        src, task = pad([[*src, EOS] for src in SOURCES]), Task([8] * 4, BOS, EOS)
        for search in (Greedy(), Beam(3)):
            with torch.inference_mode():
                found = search(fast, fast.encode(src), task)
            assert [best.ids for best, *_ in found] == TARGETS, found

    two = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    decode(train(NextTokenLoss(0.0), **two, positions="rotary"))
    decode(train(NextTokenLoss(0.0), architecture="decoder_only", num_encoder_layers=0, num_decoder_layers=2))
    encoder = {"architecture": "encoder_only", "num_encoder_layers": 1, "num_decoder_layers": 0}
    train(MaskedTokenLoss(Masking(MASK, FIRST, VOCABULARY, EOS), 0.0), **encoder)
    model = train(ContrastiveLoss(), **encoder)
    with torch.inference_mode():
        sources, targets = (model.embed(pad([[*ids, EOS] for ids in side])) for side in (SOURCES, TARGETS))
    assert (sources @ targets.T).argmax(dim=1).tolist() == [0, 1, 2, 3]
    others = {name for name in sys.modules if name.startswith("tfm.") and not name.startswith("tfm.seq2seq")}
    assert others <= {"tfm.system", "tfm.system.errors"}, others
"""


def test_the_package_trains_and_decodes_with_torch_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(ALONE)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("from") == 4
