"""What training reads, subword dropout included."""

import builtins
import io
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.tiny_run import Configure, Recorder

from tfm.configs import RunConfig, render_config
from tfm.data.config import DataConfig, TokenizerConfig
from tfm.data.corpus import Corpus, open_corpus
from tfm.data.store import Limits, build_store
from tfm.data.tokenizer import Tokenizer
from tfm.data.toy import toy_pairs
from tfm.data.vocabulary_training import build_tokenizer
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.training import prepare
from tfm.engine.training.build import StoreBatches, subword_dropout
from tfm.engine.training.prepare import prepare_data
from tfm.engine.training.train import train
from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.training.config import TrainingConfig
from tfm.system.interrupts import Interrupts
from tfm.system.reporter import Quiet


def test_subword_dropout_makes_no_sentence_longer_than_the_model_reads(
    pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    tokenizer = build_tokenizer(pairs, TokenizerConfig(vocab_size=320, type="bpe"))
    longest = max(len(tokenizer.src.encode(text)) for pair in pairs for text in pair)
    model, training = ModelConfig(max_seq_len=longest + 1), TrainingConfig(subword_dropout=0.9)
    store = build_store(tmp_path, Corpus("pairs", "1", lambda: iter(pairs)), tokenizer, Limits(longest, 9.0))
    dropout = subword_dropout(tokenizer, training, model)
    batches = list(StoreBatches(store, training, torch.device("cpu"), dropout).all())
    widths = [tensor.size(1) for batch in batches for tensor in (batch.src, batch.tgt_in, batch.tgt_out)]
    assert max(widths) == longest + 1
    assert sum(batch.num_tokens for batch in batches) > 1.2 * (store.report.tgt_tokens + len(store))


@pytest.mark.parametrize(("kind", "warned"), [("char", True), ("bpe", False)])
def test_subword_dropout_without_effect_is_said(configure: Configure, tmp_path: Path, kind: str, warned: bool) -> None:
    settings = configure(max_steps=1)
    settings = replace(settings, tokenizer=replace(settings.tokenizer, type=kind))
    reporter = Recorder()
    train(settings, run=tmp_path / "run", reporter=reporter, interrupts=Interrupts())
    assert any("subword_dropout has no effect" in line for line in reporter.said) == warned


def test_training_data_that_are_also_validation_data_are_said(configure: Configure, tmp_path: Path) -> None:
    settings = configure(max_steps=1)
    same = replace(settings, data=replace(settings.data, dev_src=settings.data.src, dev_tgt=settings.data.tgt))
    reporter = Recorder()
    train(same, run=tmp_path, reporter=reporter, interrupts=Interrupts())
    assert any("training pairs are also in the validation set" in warning for warning in reporter.warned)


def test_of_a_large_validation_set_the_first_pairs_are_used(
    configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, reporters = configure(), (Recorder(), Recorder())
    whole = prepare_data(settings, RunDirectory(tmp_path / "whole"), given_tokenizer=None, reporter=reporters[0])
    monkeypatch.setattr(prepare, "MAX_DEV_PAIRS", 12)
    first = prepare_data(settings, RunDirectory(tmp_path / "first"), given_tokenizer=None, reporter=reporters[1])
    assert len(first.dev) == 12 < len(whole.dev)
    assert first.dev_pairs == whole.dev_pairs[:12]
    assert first.identity != whole.identity
    said = [any("only the first 12 pairs are used" in text for text in reporter.said) for reporter in reporters]
    assert said == [False, True]


def test_a_vocabulary_of_an_earlier_start_is_said_or_gives_way_to_the_one_that_is_named(
    configure: Configure, pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    settings = configure(max_steps=1)
    text = render_config(settings)
    named = build_tokenizer(pairs, TokenizerConfig(vocab_size=340, type="bpe"))
    named.save(tmp_path / "named")
    for given in (None, tmp_path / "named"):
        run, reporter = tmp_path / f"run-{given is None}", Recorder()
        run.mkdir()
        (run / "config.yaml").write_text(text)
        earlier = build_tokenizer(pairs, TokenizerConfig(vocab_size=300, type="bpe"))
        earlier.save(run / "tokenizer")
        train(settings, run=run, tokenizer=given, reporter=reporter, interrupts=Interrupts())
        assert Tokenizer.load(run / "tokenizer").sha256 == (named if given else earlier).sha256
        assert any("that an earlier start left" in said for said in reporter.said) == (given is None)


def test_a_vocabulary_that_was_built_into_the_run_may_be_named(
    configure: Configure, pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    """As by `tfm tokenize --output RUN/tokenizer` and then `tfm train --tokenizer RUN/tokenizer --run RUN`."""
    settings = configure(max_steps=1)
    built = build_tokenizer(pairs, TokenizerConfig(vocab_size=340, type="bpe"))
    built.save(tmp_path / "tokenizer")
    train(
        settings,
        run=tmp_path,
        tokenizer=tmp_path / "tokenizer",
        reporter=Recorder(),
        interrupts=Interrupts(),
    )
    assert Tokenizer.load(tmp_path / "tokenizer").sha256 == built.sha256


def test_swapped_sides_of_the_validation_set_are_said_at_the_start(configure: Configure, tmp_path: Path) -> None:
    right = configure(max_steps=1)
    data = replace(right.data, dev_src=right.data.dev_tgt, dev_tgt=right.data.dev_src)
    for settings, said in ((right, 0), (replace(right, data=data), 1)):
        reporter = Recorder()
        prepare_data(settings, RunDirectory(tmp_path / str(said)), given_tokenizer=None, reporter=reporter)
        assert sum("seem to be swapped" in line for line in reporter.warned) == said


@pytest.mark.parametrize("held_out", [False, True])
def test_the_corpus_is_read_once_for_each_reason(
    held_out: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    src, tgt = tmp_path / "big.en", tmp_path / "big.de"
    for path, side in ((src, 0), (tgt, 1)):
        path.write_text("".join(f"{pair[side]}\n" for pair in toy_pairs("train", size=4_000)))
        (tmp_path / f"dev{path.suffix}").write_text("".join(f"{pair[side]}\n" for pair in toy_pairs("dev", size=50)))
    data = DataConfig(src=[str(src)], tgt=[str(tgt)])
    if not held_out:
        data = replace(data, dev_src=[str(tmp_path / "dev.en")], dev_tgt=[str(tmp_path / "dev.de")])
    settings = RunConfig(data=data, tokenizer=TokenizerConfig(vocab_size=400, type="bpe"))
    read = bytes_read_of((src, tgt), monkeypatch)

    def times_read() -> set[int]:
        return {round(read.pop(path, 0) / path.stat().st_size) for path in (src, tgt)}

    open_corpus(data).count()  # as the choice of settings does
    assert times_read() == {1}  # for the hash and the count
    prepare_data(settings, RunDirectory(tmp_path / "run"), given_tokenizer=None, reporter=Quiet())
    assert times_read() == {2}  # for the vocabulary, and in the same reading to hold out; for the store
    prepare_data(settings, RunDirectory(tmp_path / "run"), given_tokenizer=None, reporter=Quiet())
    assert times_read() == {0}  # all of it is remembered
    for path in (src, tgt):
        path.write_text(path.read_text() + "one more\n")
    assert open_corpus(data).count() == 4_001 and times_read() == {1}


def bytes_read_of(paths: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch) -> Counter[Path]:
    """How many bytes of some files are read from now on."""
    read, open_ = Counter[Path](), builtins.open

    class Counting(io.FileIO):
        def readinto(self, buffer: Any, /) -> int | None:
            size = super().readinto(buffer)
            read[Path(str(self.name))] += size or 0
            return size

    def counting(file: Any, mode: str = "r", buffering: int = -1, **rest: Any) -> Any:
        if file not in paths or mode != "rb":
            return open_(file, mode, buffering, **rest)
        raw = Counting(file, "rb")
        return raw if buffering == 0 else io.BufferedReader(raw)

    monkeypatch.setattr(builtins, "open", counting)
    return read
