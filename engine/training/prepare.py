"""From the configured text to what training reads: tokenizer, tokenised stores, validation pairs."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from ...configs import RunConfig
from ...data.batching import BatchSource
from ...data.cleaning import clean
from ...data.corpus import Corpus, Pair, dev_corpus, first_pairs, mix, open_corpus, replay_corpus
from ...data.holdout import hold_out
from ...data.sides import sample_rows, swap_remark
from ...data.store import Limits, TokenStore, build_store, open_store
from ...data.subword_dropout import SubwordDropout
from ...data.tokenizer import Tokenizer, build_tokenizer
from ...seq2seq.model.config import ModelConfig
from ...seq2seq.training.batch import Batch
from ...seq2seq.training.config import TrainingConfig
from ...system.errors import DataError, ModelError, UsageError
from ...system.files import remove_tree, sha256_bytes
from ...system.reporter import Reporter
from ..runs.checkpoint import has_vocabulary
from ..runs.directory import RunDirectory
from ..runs.state import Saved
from .advice import doubts
from .purpose import check_machine, check_vocabulary

MAX_DEV_PAIRS = 20_000
"""Validation pairs beyond this number are left out, and said: the validation text is held in memory."""


@dataclass(frozen=True)
class PreparedData:
    """All that training reads.

    Attributes:
        tokenizer: Built, given, or the run's own.
        train, dev: Tokenised pairs.
        dev_pairs: The validation set as text.
        identity: Changes whenever any of the text does.
    """

    tokenizer: Tokenizer
    train: TokenStore
    dev: TokenStore
    dev_pairs: list[Pair]
    identity: str


def prepare_data(
    settings: RunConfig,
    run: RunDirectory,
    *,
    given_tokenizer: Path | None,
    reporter: Reporter,
    saved: Saved | None = None,
) -> PreparedData:
    """Reads the corpora, builds what is missing in the run, and reports what was kept and dropped.

    Args:
        settings: The run's configuration.
        run: Its directory: `tokenizer/` and `cache/` are made in it, or found there from an earlier start.
        given_tokenizer: A tokenizer directory to use instead of building one.
        reporter: Hears what is done.
        saved: Where the run stands, if it has been saved: with these data, and the tokenizer that is in it.

    Raises:
        DataError: Text that cannot be used, or is not that of the run.
        UsageError: Settings that contradict each other or what the run already holds.
    """
    check_machine(settings)
    train, whole_dev = open_corpora(settings, run.cache, reporter)
    dev = first_pairs(whole_dev, MAX_DEV_PAIRS)
    limits = Limits(settings.model.max_seq_len - 1, settings.data.max_length_ratio)
    identity = sha256_bytes(f"{train.identity} {dev.identity} {limits}".encode())
    if saved is not None and saved.state.data != identity:
        raise DataError(
            f"the training or validation data changed since step {saved.step:,}; continuing would not be the same run."
            " Restore the files (moved ones may be named where they are now), or start a new --run (--init-from keeps"
            " what was learned)"
        )
    tokenizer = _tokenizer(settings, train, run.tokenizer, given_tokenizer, saved, reporter)
    check_vocabulary(settings, tokenizer)
    if dev.identity != whole_dev.identity:
        reporter.say(f"{dev.name}: only the first {MAX_DEV_PAIRS:,} {dev.unit}s are used")
    dev_pairs = _dev_pairs(dev)
    dev_key = f"{dev.identity} {tokenizer.sha256} {limits}"
    dev_store = _store(run.cache, dev_key, dev, tokenizer, limits, frozenset(), "validation data", reporter)
    train_key = f"{train.identity} {dev_key}"  # what it says of pairs that are in both depends on both
    train_store = _store(
        run.cache, train_key, train, tokenizer, limits, frozenset(dev_pairs), "training data", reporter
    )
    leaked = train_store.report.in_dev_set
    if leaked:
        reporter.warn(
            f"{leaked:,} training {train.unit}s are also in the validation set:"
            " its scores will look better than they should"
        )
    if saved is None and not train.text_only:
        sample = (train_store[row] for row in sample_rows(len(train_store)))
        texts = [(tokenizer.src.decode(src.tolist()), tokenizer.tgt.decode(tgt.tolist())) for src, tgt in sample]
        if (remark := swap_remark(texts, dev_pairs)) is not None:
            reporter.warn(remark)
    if saved is None:
        for doubt in doubts(train_store, len(dev_pairs), settings.training):
            reporter.warn(doubt)
    return PreparedData(tokenizer, train_store, dev_store, dev_pairs, identity)


def open_corpora(settings: RunConfig, cache: Path, reporter: Reporter) -> tuple[Corpus, Corpus]:
    """Training and validation corpus; without a configured validation set a part of the training data is held out."""
    train, dev = open_corpus(settings.data), dev_corpus(settings.data)
    for remark in (*train.remarks, *(dev.remarks if dev else ())):
        reporter.say(remark)
    if dev is None:
        train, dev = hold_out(train, seed=settings.training.seed, memo=cache)
        grouped = "" if train.text_only else ", grouped by source sentence"
        reporter.say(f"no validation set given: holding out 5 % of the {train.unit}s, at most 1,000{grouped}")
        for remark in dev.remarks:
            reporter.warn(remark)
    old = replay_corpus(settings.data)
    return (train if old is None else mix(train, old, seed=settings.training.seed)), dev


def _tokenizer(
    settings: RunConfig, train: Corpus, directory: Path, given: Path | None, saved: Saved | None, reporter: Reporter
) -> Tokenizer:
    """The one that is given, the one that is in the run's directory, or a new one.

    What an earlier start left without a checkpoint gives way to what is given, which may be the same directory. Where
    the one of a run that goes on is lost or damaged, the copy in its checkpoint takes its place.
    """
    if saved is not None:
        _restore(directory, saved.checkpoint, reporter)
    if given is not None:
        tokenizer = Tokenizer.load(given)
        if directory.exists() and Tokenizer.load(directory).sha256 != tokenizer.sha256:
            if saved is not None:
                raise UsageError(f"{directory} holds another tokenizer than {given}; use a new --run")
            remove_tree(directory)
        if not directory.exists():
            tokenizer.save(directory)
        return tokenizer
    if directory.exists():
        if saved is None:
            reporter.say(f"taking the vocabulary that an earlier start left in {directory}")
        return Tokenizer.load(directory)
    reporter.say(f"building a {settings.tokenizer.type} vocabulary from {train.name}")
    notes: list[str] = []
    sides = (pair[0] for pair in train.pairs()), (pair[1] for pair in train.pairs())
    tokenizer = build_tokenizer(*sides, settings.tokenizer, notes=notes)
    for note in notes:
        reporter.say(note)
    tokenizer.save(directory)
    return tokenizer


def _restore(directory: Path, checkpoint: Path, reporter: Reporter) -> None:
    """Puts a tokenizer that is lost or damaged back, if the checkpoint has a copy of it."""
    try:
        Tokenizer.load(directory)
    except ModelError as error:
        if not has_vocabulary(checkpoint):
            return
        reporter.warn(f"{error}; taking the copy in {checkpoint.name}")
        Tokenizer.load(checkpoint).save(directory)


def _dev_pairs(dev: Corpus) -> list[Pair]:
    pairs = [(src, tgt) for src, tgt in dev.pairs() if (dev.text_only or clean(src)) and clean(tgt)]
    if not pairs and dev.text_only:
        raise DataError(f"{dev.name} has no usable text; name a validation text with --dev-text")
    if not pairs:
        raise DataError(f"{dev.name} has no usable pair; name a validation set with --dev-src and --dev-tgt, or --dev")
    return pairs


def _store(
    cache: Path,
    key: str,
    corpus: Corpus,
    tokenizer: Tokenizer,
    limits: Limits,
    dev_pairs: frozenset[Pair],
    what: str,
    reporter: Reporter,
) -> TokenStore:
    """Opens the tokenised corpus if the cache holds it under this key, else builds it there."""
    directory = cache / sha256_bytes(key.encode())[:16]
    store = open_store(directory)
    if store is None:
        bar = reporter.progress(f"tokenizing {what}", None, corpus.unit)
        try:
            store = build_store(directory, corpus, tokenizer, limits, dev_pairs=dev_pairs, on_read=bar.update)
        finally:
            bar.close()
    reporter.say(f"{what}: {store.report}")
    return store


def subword_dropout(
    tokenizer: Tokenizer, training: TrainingConfig, model: ModelConfig
) -> tuple[SubwordDropout, SubwordDropout] | None:
    """The configured subword dropout of both sides, or None."""
    if not training.subword_dropout:
        return None
    src = SubwordDropout(tokenizer.src, training.subword_dropout, model.max_seq_len - 1)
    tgt = SubwordDropout(tokenizer.tgt, training.subword_dropout, model.max_seq_len - 1)
    return src, tgt


class StoreBatches:
    """A `BatchProvider` over a token store.

    Args:
        store: Tokenised pairs.
        config: Budget and seed.
        device: Where batches go.
        subword_dropout: From `subword_dropout`, for training.
    """

    def __init__(
        self,
        store: TokenStore,
        config: TrainingConfig,
        device: torch.device,
        subword_dropout: tuple[SubwordDropout, SubwordDropout] | None = None,
    ) -> None:
        self._source = BatchSource(
            store,
            max_tokens=config.max_tokens_per_batch,
            seed=config.seed,
            group=config.grad_accum_steps,
            subword_dropout=subword_dropout,
        )
        self._device = device

    def num_batches(self, epoch: int) -> int:
        """How many batches an epoch has."""
        return len(self._source.plan(epoch))

    def load_part(self, epoch: int, index: int, part: int, parts: int) -> Batch | None:
        """One of so many parts of a batch, on the device; None if it has too few sentences for that."""
        rows = self._source.rows(epoch, index, part, parts)
        return Batch.of(rows, device=self._device) if rows else None

    def all(self) -> Iterator[Batch]:
        """Every batch of one epoch."""
        for index in range(self.num_batches(0)):
            yield Batch.of(self._source.rows(0, index), device=self._device)
