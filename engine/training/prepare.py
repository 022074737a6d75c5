"""From the configured text to what training reads: tokenizer, tokenised stores, validation pairs."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ...configs import RunConfig
from ...data.corpus import (
    Corpus,
    Pair,
    dev_corpus,
    dev_flags,
    first_pairs,
    mix,
    open_corpus,
    replay_corpus,
    usable_pairs,
)
from ...data.facts import sample_rows, swap_remark
from ...data.formats.format import Languages
from ...data.store import Limits, TokenStore, build_store, open_store
from ...data.tokenizer import Tokenizer
from ...data.vocabulary_training import VocabularySample, build_from_sample
from ...seq2seq.training.config import TrainingConfig
from ...system.errors import DataError, UsageError
from ...system.files import remove_tree, sha256_bytes
from ...system.reporter import Reporter, counted
from ..runs.checkpoint import Saved, has_vocabulary
from ..runs.directory import RunDirectory, load_or_copy
from .build import check_architecture, check_vocabulary

MAX_DEV_PAIRS = 20_000
"""Validation pairs beyond this number are left out, and said: the validation text is held in memory."""

FEW_PAIRS = 1_000
"""Of fewer, a translator learns phrases, but no language."""
FEW_DEV_PAIRS = 50
"""The scores of fewer say little about other sentences."""
MANY_EPOCHS = 1_000
MANY_IDENTICAL = 0.5
"""Share of pairs with the same text on both sides."""
MANY_COPIES = 0.3
"""Share of pairs that another pair repeats."""


@dataclass(frozen=True)
class PreparedData:
    """All that training reads.

    Attributes:
        identity: Changes whenever any of the text does.
        languages: Those that the settings name, else those that the training files do.
    """

    tokenizer: Tokenizer
    train: TokenStore
    dev: TokenStore
    dev_pairs: list[Pair]
    identity: str
    languages: Languages


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
        run: Its directory: `tokenizer/` and `cache/` are made in it, or found there from an earlier start.
        saved: Where the run stands, if it has been saved: with these data, and the tokenizer that is in it.

    Raises:
        DataError: Text that cannot be used, or is not that of the run.
        UsageError: Settings that contradict each other or what the run already holds.
    """
    check_architecture(settings)
    sample = VocabularySample(settings.tokenizer)
    has_tokenizer = given_tokenizer is not None or run.tokenizer.exists()
    train, dev, identity = read_corpora(settings, run.cache, reporter, None if has_tokenizer else sample)
    if saved is not None and saved.state.data != identity:
        raise DataError(
            f"the training or validation data changed since step {saved.step:,}; continuing would not be the same run."
            " Restore the files (moved ones may be named where they are now), or start a new --run (--init-from keeps"
            " what was learned)"
        )
    tokenizer = _known_tokenizer(run.tokenizer, given_tokenizer, saved, reporter)
    if tokenizer is None:
        tokenizer = _new_tokenizer(train, sample, reporter)
        tokenizer.save(run.tokenizer)
    check_vocabulary(settings, tokenizer)
    for remark in dev.remarks:
        reporter.say(remark)
    dev_pairs = usable_pairs(dev)
    if not dev_pairs:
        what = "text" if dev.text_only else "set"
        raise DataError(f"{dev.name} has no usable {dev.unit}; name a validation {what} with {dev_flags(dev)}")
    limits = _limits(settings)
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
    if saved is None:
        rows = (train_store[row] for row in sample_rows(len(train_store)))
        texts = [(tokenizer.src.decode(src.tolist()), tokenizer.tgt.decode(tgt.tolist())) for src, tgt in rows]
        if (remark := swap_remark(texts, dev_pairs)) is not None:
            reporter.warn(remark)
        for doubt in doubts(train_store, len(dev_pairs), settings.training):
            reporter.warn(doubt)
    (src, tgt), (known_src, known_tgt) = settings.data.languages, train.languages
    languages = src or known_src, tgt or known_tgt
    return PreparedData(tokenizer, train_store, dev_store, dev_pairs, identity, languages)


def _limits(settings: RunConfig) -> Limits:
    """Which pairs are short enough."""
    return Limits(settings.model.max_seq_len - 1, settings.data.max_length_ratio)


def read_corpora(
    settings: RunConfig, cache: Path, reporter: Reporter, sample: VocabularySample | None = None
) -> tuple[Corpus, Corpus, str]:
    """Training and validation corpus; without a configured validation set a part of the training data is held out.

    The validation corpus is in memory. With both comes their identity, which changes whenever any of the text does; the
    checkpoints of a run remember it.

    The training corpus is read three times at most. The first reading is for its identity and the number of its lines
    (`data.reading.survey`, which the choice of settings may have done before). The second one holds out, and fills the
    `sample` for the vocabulary; if nothing is held out, it is for the vocabulary alone. The third one is for the store.
    """
    train, dev = open_corpus(settings.data), dev_corpus(settings.data)
    for remark in (*train.remarks, *(dev.remarks if dev else ())):
        reporter.say(remark)
    if dev is None:
        from ...data.holdout import hold_out

        if settings.data.replay or settings.data.replay_src:  # the vocabulary is for old pairs, too
            sample = None
        train, dev = hold_out(train, seed=settings.training.seed, memo=cache, sample=sample)
        grouped = "" if train.text_only else ", grouped by source sentence"
        reporter.say(f"no validation set given: holding out 5 % of the {train.unit}s, at most 1,000{grouped}")
        for remark in dev.remarks:
            reporter.warn(remark)
    if (old := replay_corpus(settings.data)) is not None:
        train = mix(train, old, seed=settings.training.seed)
    dev = first_pairs(dev, MAX_DEV_PAIRS)
    return train, dev, sha256_bytes(f"{train.identity} {dev.identity} {_limits(settings)}".encode())


def _known_tokenizer(directory: Path, given: Path | None, saved: Saved | None, reporter: Reporter) -> Tokenizer | None:
    """The tokenizer that is given, or that of the run's directory; None if there is neither.

    What an earlier start left without a checkpoint gives way to what is given, which may be the same directory. Where
    the one of a run that goes on is lost or damaged, the copy in its checkpoint takes its place.
    """
    if saved is not None and has_vocabulary(saved.checkpoint):
        tokenizer, source = load_or_copy(directory, saved.checkpoint, reporter.warn)
        if source != directory:
            tokenizer.save(directory)
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
    return None


def _new_tokenizer(train: Corpus, sample: VocabularySample, reporter: Reporter) -> Tokenizer:
    """A tokenizer for the training corpus, which is read if the sample has nothing of it yet."""
    reporter.say(f"building a {sample.config.type} vocabulary from {train.name}")
    if sample.is_empty:
        sample.read(train.pairs())
    notes: list[str] = []
    tokenizer = build_from_sample(sample, notes=notes)
    for note in notes:
        reporter.say(note)
    return tokenizer


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
        with closing(reporter.progress(f"tokenizing {what}", None, corpus.unit)) as bar:
            store = build_store(directory, corpus, tokenizer, limits, dev_pairs=dev_pairs, on_read=bar.update)
    reporter.say(f"{what}: {store.report}")
    return store


def doubts(train: TokenStore, dev_pairs: int, training: TrainingConfig) -> list[str]:
    """Lines for people, none where all seems well."""
    unit, report = train.report.unit, train.report
    found: list[str] = []
    if len(train) < FEW_PAIRS and not report.text_only:
        found.append(
            f"{len(train):,} training {unit}s are very few: a translator learns their words and phrases from them,"
            " but hardly how to translate other sentences; some 5,000 make a difference"
        )
    if dev_pairs < FEW_DEV_PAIRS:
        found.append(
            f"the validation set has {counted(dev_pairs, unit)}: its scores say little, and which checkpoint is the"
            " best is left to chance; take some 200 or more"
        )
    if (identical := report.identical / report.kept) > MANY_IDENTICAL:
        found.append(f"{identical:.0%} of the training pairs have the same text on both sides; are the files right?")
    if (copies := report.copies / report.kept) > MANY_COPIES:
        found.append(f"{copies:.0%} of the training {unit}s are copies of others")
    return [*found, *_doubts_of_length(train, training)]


def _doubts_of_length(train: TokenStore, training: TrainingConfig) -> list[str]:
    """Counts an update as full; where only a time or a patience ends the training, nothing is known yet."""
    if training.max_steps is None:
        return []
    found: list[str] = []
    if training.max_steps <= training.warmup_steps:
        found.append(
            f"the learning rate does not come to its peak: training.warmup_steps is {training.warmup_steps:,}, and"
            f" there are {training.max_steps:,} updates in all"
        )
    tokens = train.report.tgt_tokens + len(train)  # each ends with eos
    epochs = training.max_steps * training.max_tokens_per_batch * training.grad_accum_steps / tokens
    if epochs > MANY_EPOCHS:
        found.append(
            f"{training.max_steps:,} updates show each {train.report.unit} about {round(epochs, -2):,.0f} times:"
            " the model will know them by heart; fewer updates are enough (--max-steps)"
        )
    return found
