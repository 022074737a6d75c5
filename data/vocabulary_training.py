"""Building the vocabularies of a corpus: a sample of its lines, and SentencePiece in a process of its own."""

import contextlib
import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any

from ..system.errors import DataError, EnvironmentFault, OutOfMemory
from ..system.files import fault, free_space
from ..system.processes import Child
from . import Pair
from .cleaning import clean
from .config import MAX_VOCAB_SIZE, TokenizerConfig
from .corpus import Reservoir
from .placeholders import SYMBOLS, PlaceholderCount, PlaceholderRule, mask
from .tokenizer import BOS_ID, EOS_ID, FIRST_TEXT_ID, PAD_ID, RESERVED_PIECES, UNK_ID, Tokenizer, Vocabulary, escape

_MAX_SENTENCE_BYTES = 4192
"""SentencePiece leaves longer lines out of the training of a vocabulary; so do we, before it does."""


class VocabularySample:
    """Sentences of a corpus to build vocabularies from, and a count of what its pairs do with placeholders."""

    def __init__(self, config: TokenizerConfig) -> None:
        self.config = config
        names = ["source vocabulary", "target vocabulary"] if config.separate else ["vocabulary"]
        size = config.max_sentences
        self._sentences = {name: Reservoir[tuple[Pair, int]](size, seed=size) for name in names}
        self._count = PlaceholderCount()

    def add(self, pair: Pair) -> None:
        """Takes the next pair of the corpus, cleaned."""
        if self.config.placeholders:
            self._count.add(*pair)
        reservoirs = list(self._sentences.values())
        for side, reservoir in enumerate((reservoirs[0], reservoirs[-1])):
            if pair[side] and len(escape(pair[side]).encode()) <= _MAX_SENTENCE_BYTES:
                reservoir.add((pair, side))

    def read(self, pairs: Iterable[Pair]) -> None:
        """Takes a whole corpus, which is cleaned here."""
        for src, tgt in pairs:
            self.add((clean(src), clean(tgt)))

    def leave_out(self, pairs: list[Pair]) -> None:
        """Takes pairs out again, cleaned. A pair that was added several times stands here as often."""
        left_out = set(pairs)
        for reservoir in self._sentences.values():
            reservoir.kept = [entry for entry in reservoir.kept if entry[0] not in left_out]
        if self.config.placeholders:
            for pair in pairs:
                self._count.add(*pair, times=-1)

    @property
    def is_empty(self) -> bool:
        """Whether no sentence has been taken."""
        return not any(reservoir.kept for reservoir in self._sentences.values())

    def sentences(self) -> tuple[dict[str, list[str]], PlaceholderRule]:
        """Sentences for each vocabulary as they are in training, and what becomes of placeholders in them."""
        rule = self._count.rule()

        def masked(pair: Pair, side: int) -> str:
            source = mask(pair[0], rule.carried)
            return source.mask(pair[1]) if side else source.text

        sentences = {name: [masked(*entry) for entry in reservoir.kept] for name, reservoir in self._sentences.items()}
        return sentences, rule


def build_tokenizer(pairs: Iterable[Pair], config: TokenizerConfig, *, notes: list[str] | None = None) -> Tokenizer:
    """Builds the vocabularies of a corpus, which is read once; otherwise as `build_from_sample`."""
    sample = VocabularySample(config)
    sample.read(pairs)
    return build_from_sample(sample, notes=notes)


def build_from_sample(sample: VocabularySample, *, notes: list[str] | None = None) -> Tokenizer:
    """Builds the vocabularies of a corpus that has been read.

    Args:
        notes: Receives a sentence about anything done otherwise than asked, such as a smaller size.

    Raises:
        DataError: No usable text, or more different characters in it than the vocabulary has room for.
        OutOfMemory: SentencePiece needs more memory than there is.
    """
    config, (sentences, rule) = sample.config, sample.sentences()
    vocabularies = {name: _train(of, config, name, bool(rule.carried)) for name, of in sentences.items()}
    if rule.pairs and notes is not None:
        notes.append(_said(rule))
    for name, vocabulary in vocabularies.items():
        size = len(vocabulary)
        if size < config.vocab_size and notes is not None:
            notes.append(f"{name} of {config.vocab_size:,} asked, the corpus supports {size:,}: using {size:,}")
    largest = max(map(len, vocabularies.values()))
    if largest > config.vocab_size:
        raise DataError(
            f"a {config.type} vocabulary of this corpus needs at least {largest:,} pieces, but the size asked is"
            f" {config.vocab_size:,}; use tfm tokenize --vocab-size {largest} or tfm train --set"
            f" tokenizer.vocab_size={largest}, or more"
        )
    built = list(vocabularies.values())
    return Tokenizer(built[0], built[-1], config.type, rule)


def _said(rule: PlaceholderRule) -> str:
    """What becomes of each kind of placeholders, in a line for people."""
    kinds = (
        ("carried through as they are", [kind for kind in rule.pairs if kind in rule.carried]),
        ("text for the model to learn", [kind for kind in rule.pairs if kind not in rule.carried]),
    )
    names = {kind: f"{kind} ({carried:,} of {pairs:,} pairs keep it)" for kind, (pairs, carried) in rule.pairs.items()}
    return "placeholders " + "; ".join(f"{what}: {', '.join(names[kind] for kind in of)}" for what, of in kinds if of)


def _train(sample: list[str], config: TokenizerConfig, name: str, has_placeholders: bool) -> Vocabulary:
    """Trains a model of the size asked for or, where the corpus does not allow that size, of the nearest it allows."""
    if not sample:
        raise DataError(f"no usable line to build the {name} from")
    # A char vocabulary takes what there is below this size; the others need room for the fixed pieces to start with.
    size = MAX_VOCAB_SIZE if config.type == "char" else max(config.vocab_size, FIRST_TEXT_ID + 1)
    model, error = _run_worker(sample, _options(config, size, has_placeholders))
    if nearest := re.search(r"(?:size too high.*value <=|smaller than required_chars\. \d+ vs) (\d+)", error):
        model, error = _run_worker(sample, _options(config, int(nearest[1]), has_placeholders))
    if not model:
        raise DataError(f"SentencePiece could not build the {name}: {error.strip() or 'no reason given'}")
    return Vocabulary(model)


def _options(config: TokenizerConfig, vocab_size: int, has_placeholders: bool) -> dict[str, Any]:
    subword = config.type in ("unigram", "bpe")
    return (
        {
            "model_type": config.type,
            "vocab_size": vocab_size,
            "hard_vocab_limit": subword,  # char and word take what there is
            "byte_fallback": subword,
            "character_coverage": config.character_coverage,
            "normalization_rule_name": "identity",
            "remove_extra_whitespaces": False,
            "add_dummy_prefix": True,
            "pad_id": PAD_ID,
            "unk_id": UNK_ID,
            "bos_id": BOS_ID,
            "eos_id": EOS_ID,
            "pad_piece": "<pad>",
            "unk_piece": "<unk>",
            "bos_piece": "<s>",
            "eos_piece": "</s>",
            "unk_surface": " \u2047",
            "control_symbols": RESERVED_PIECES[:1] if has_placeholders else RESERVED_PIECES,
            "user_defined_symbols": SYMBOLS if has_placeholders else [],
        }
        | ({"split_digits": True} if config.split_digits and subword else {})
    )


@contextlib.contextmanager
def _temporary_file(lines: Iterable[str]) -> Iterator[IO[bytes]]:
    """A file of these lines, open at its beginning, and gone after the block."""
    with contextlib.ExitStack() as stack:
        try:
            file = tempfile.TemporaryFile()  # noqa: SIM115
            stack.callback(_close, file)
            file.writelines(line.encode() + b"\n" for line in lines)
            file.seek(0)
        except OSError as error:
            raise fault("write", Path(tempfile.gettempdir()), error) from error
        yield file


def _close(file: IO[bytes]) -> None:
    """Closes a file that is not needed any more, even if not all could be written to it."""
    with contextlib.suppress(OSError):
        file.close()


def _run_worker(sentences: list[str], options: dict[str, Any]) -> tuple[bytes, str]:
    """Runs the training child over the sentences; returns the model and what it complained of."""
    lines = chain([json.dumps(options)], map(escape, sentences))
    with (
        _temporary_file(lines) as stdin,
        Child(f"{__package__}.sentencepiece_worker", purpose="to build a vocabulary in", stdin=stdin) as child,
    ):
        model, ending = child.output(), child.wait()
    # A system without memory kills by signal 9.
    if ending.status == -9 or any(sign in ending.complaints for sign in ("bad_alloc", "MemoryError")):
        raise OutOfMemory(
            f"the process that builds a vocabulary {ending}; fewer lines need less memory: tfm train --set"
            f" tokenizer.max_sentences={max(len(sentences) // 4, 1)}"
        )
    if ending.status > 0 and not ending.last_line:  # what it complained of could not be written down
        folder = Path(tempfile.gettempdir())
        raise EnvironmentFault(
            f"cannot write {folder}: the process that builds a vocabulary {ending}, without a word;"
            f" {free_space(folder)}"
        )
    if not ending.status:
        return model, ""
    return b"", ending.last_line or f"its process ended with {ending.status}"
