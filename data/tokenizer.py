"""Text to pieces and back: SentencePiece vocabularies, built by us and carried with the weights.

`decode(encode(x)) == clean(x)` for every string x and every unigram or BPE vocabulary (they fall back to bytes); for
`char` and `word` vocabularies wherever x has no unknown piece.
"""

import contextlib
import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from statistics import mean
from typing import IO, Any

import sentencepiece

from ..system.errors import DataError, EnvironmentFault, ModelError, OutOfMemory
from ..system.files import fault, free_space, json_bytes, sha256_bytes, staged_directory, write_file
from ..system.processes import Child
from ..system.untrusted import MAX_JSON_BYTES, check_fields, parse_object, read_plain
from .cleaning import clean
from .config import MAX_VOCAB_SIZE, MAX_VOCABULARY_BYTES, TokenizerConfig, VocabularyType
from .loops import count_letters
from .placeholders import EVERY_KIND, KINDS, SYMBOLS, Masked, Pair, PlaceholderCount, PlaceholderRule, mask
from .reservoir import Reservoir
from .vocabulary_trial import remember_vocabulary, try_vocabulary

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3
RESERVED_PIECES = [f"<reserved_{index:02d}>" for index in range(16)]
"""Control pieces, so no text is ever read as one of them. Where a corpus has placeholders, all but the first give way
to the symbols of `placeholders`."""
MASK_ID = 4
"""The first reserved piece: it stands where a token is hidden that a model has to guess."""
PLACEHOLDER_IDS = range(5, 4 + len(RESERVED_PIECES))
"""Ids of the symbols of `placeholders`, in a vocabulary that has them."""
FIRST_TEXT_ID = 4 + len(RESERVED_PIECES)
"""Ids from here on are pieces of text."""

NO_PLACEHOLDERS = PlaceholderRule({})

FORMAT_VERSION = 1
_DESCRIPTION = "tokenizer.json"
_MAX_SENTENCE_BYTES = 4192
"""SentencePiece leaves longer lines out of the training of a vocabulary; so do we, before it does."""

# SentencePiece writes a space as U+2581. So that a literal U+2581 survives, it is spelt as an escape character and `b`,
# and the escape character itself (a private-use one) as itself and `a`.
_SPACE_MARK, _ESCAPE = "\u2581", "\ue000"
_APART = "\ufdd0"
"""A noncharacter of Unicode, which no vocabulary has: no piece reaches over it."""


def _escape(text: str) -> str:
    if _SPACE_MARK not in text and _ESCAPE not in text:
        return text
    return text.replace(_ESCAPE, _ESCAPE + "a").replace(_SPACE_MARK, _ESCAPE + "b")


def _unescape(text: str) -> str:
    if _ESCAPE not in text:
        return text
    return text.replace(_ESCAPE + "b", _SPACE_MARK).replace(_ESCAPE + "a", _ESCAPE)


class Vocabulary:
    """One SentencePiece model.

    Args:
        model: The serialised model.

    Raises:
        ModelError: The bytes are not a SentencePiece model made by tfm.
    """

    def __init__(self, model: bytes) -> None:
        self.model = model
        try:
            self._processor: Any = sentencepiece.SentencePieceProcessor(model_proto=model)  # pyright: ignore[reportCallIssue]
            ids = [
                self._processor.pad_id(),
                self._processor.unk_id(),
                self._processor.bos_id(),
                self._processor.eos_id(),
            ]
        except (RuntimeError, TypeError) as error:
            raise ModelError(f"damaged SentencePiece model: {error}") from error
        if ids != [PAD_ID, UNK_ID, BOS_ID, EOS_ID]:
            raise ModelError(f"a SentencePiece model of tfm has pad, unk, bos, eos = 0, 1, 2, 3, but this has {ids}")

    def __len__(self) -> int:
        return self._processor.get_piece_size()

    @property
    def has_placeholders(self) -> bool:
        """Whether it has a piece for each symbol that stands for a placeholder."""
        return self.piece(PLACEHOLDER_IDS[0]) == SYMBOLS[0]

    def encode(self, text: str) -> list[int]:
        """Ids of a text, without bos and eos."""
        return self._processor.encode(_escape(clean(text)))

    def encode_inside(self, text: str) -> list[int]:
        """Ids of a text that follows another one without a space; none if pieces are whole words."""
        before = self.encode(_APART)
        return self.encode(_APART + text)[len(before) :]

    def encode_all(self, texts: Iterable[str]) -> list[list[int]]:
        """Ids of several texts at once."""
        return self._processor.encode([_escape(clean(text)) for text in texts], num_threads=1)

    def encode_as_pieces(self, text: str) -> list[str]:
        """The pieces of a text as strings; `▁` marks a space."""
        return self._processor.encode(_escape(clean(text)), out_type=str)

    def decode(self, ids: Iterable[int]) -> str:
        """Text of ids; control pieces vanish, unknown pieces become `⁇`."""
        return _unescape(self._processor.decode(list(ids))).strip(" ")

    def piece(self, piece_id: int) -> str:
        """The piece with this id."""
        return self._processor.id_to_piece(piece_id)

    def text(self, piece_id: int) -> str | None:
        """What a piece adds to a text, a space before it included; None if that depends on the pieces around it."""
        piece = self.piece(piece_id)
        if self.is_byte(piece_id):
            byte = int(piece[1:-1], 16)
            return chr(byte) if byte < 0x80 else None
        return "" if self._processor.is_control(piece_id) else _unescape(piece.replace(_SPACE_MARK, " "))

    def is_byte(self, piece_id: int) -> bool:
        """Whether a piece is one byte of the byte fallback."""
        return self._processor.is_byte(piece_id)

    @cached_property
    def texts(self) -> frozenset[str]:
        """The pieces of text, without the mark of a space."""
        ids = range(FIRST_TEXT_ID, len(self))
        return frozenset(_unescape(self.piece(i).removeprefix(_SPACE_MARK)) for i in ids if not self.is_byte(i))

    @cached_property
    def characters(self) -> frozenset[str]:
        """All that are in pieces of text; others are spelt as bytes, or unknown."""
        return frozenset(chain.from_iterable(self.texts))

    @cached_property
    def letters_per_piece(self) -> float:
        """Letters of a piece of text on average."""
        return max(mean(map(count_letters, self.texts)), 1.0)  # a vocabulary has a text, or it was refused

    def control_ids(self) -> list[int]:
        """Ids that no text contains: pad, bos, eos and the reserved pieces."""
        return [i for i in range(len(self)) if self._processor.is_control(i)]

    def forbidden_ids(self) -> list[int]:
        """Ids that are never to be generated: the control pieces but eos, and the unknown piece."""
        return sorted({*self.control_ids(), UNK_ID} - {EOS_ID})


@dataclass(frozen=True)
class Tokenizer:
    """The vocabularies of the two sides; with a joint vocabulary they are one and the same object.

    Attributes:
        placeholders: What their corpus does with each kind of placeholders.
    """

    src: Vocabulary
    tgt: Vocabulary
    type: str
    placeholders: PlaceholderRule = NO_PLACEHOLDERS

    @property
    def joint(self) -> bool:
        """Whether both sides share one vocabulary."""
        return self.src is self.tgt

    @property
    def has_placeholders(self) -> bool:
        """Whether placeholders are read and written as symbols."""
        return self.src.has_placeholders and self.tgt.has_placeholders

    @property
    def carried(self) -> frozenset[str]:
        """The kinds of placeholders that are carried through."""
        return self.placeholders.carried if self.has_placeholders else frozenset()

    def mask(self, text: str) -> Masked:
        """A cleaned text with symbols for the placeholders that are carried through."""
        return mask(text, self.carried)

    def mask_pair(self, src: str, tgt: str) -> Pair:
        """A pair as it is in training: the source as in translation, and the same symbols in the target."""
        if not self.has_placeholders:
            return src, tgt
        masked = self.mask(src)
        return masked.text, masked.mask(clean(tgt))

    def unknown(self, text: str) -> tuple[tuple[str, ...], float]:
        """What of a source the vocabulary does not know, each once, and the share of the characters that it is.

        Args:
            text: Masked. It is looked at character by character, for a word vocabulary word by word.
        """
        known = self.src.texts if self.type == "word" else self.src.characters
        units = text.split() if self.type == "word" else text.replace(" ", "")
        missing = [unit for unit in units if unit not in known and unit not in SYMBOLS]
        return tuple(dict.fromkeys(missing)), sum(map(len, missing)) / max(sum(map(len, units)), 1)

    @property
    def sha256(self) -> str:
        """Identifies the vocabularies and what has symbols in them; checkpoints refuse a tokenizer with another one."""
        models = self.src.model if self.joint else self.src.model + self.tgt.model
        carried = self.placeholders.carried if self.placeholders != EVERY_KIND else ()
        return sha256_bytes(models + " ".join(sorted(carried)).encode())

    def save(self, directory: Path) -> None:
        """Writes the tokenizer directory in one step. Its vocabularies are known to be harmless from then on.

        Raises:
            EnvironmentFault: It cannot be written.
        """
        with staged_directory(directory) as staged:
            for name, vocabulary in self._sides().items():
                lines = [f"{index}\t{vocabulary.piece(index)}\n" for index in range(len(vocabulary))]
                write_file(staged / f"{name}.vocab", "".join(lines).encode())
            for name, content in self.files().items():
                write_file(staged / name, content)
        for vocabulary in self._sides().values():
            remember_vocabulary(vocabulary.model)

    def _sides(self) -> dict[str, Vocabulary]:
        """Its vocabularies by the names of their files."""
        return {"tokenizer": self.src} if self.joint else {"src": self.src, "tgt": self.tgt}

    def files(self) -> dict[str, bytes]:
        """The files that `load` reads, by name: its vocabularies, and what they are."""
        models = {f"{name}.model": vocabulary.model for name, vocabulary in self._sides().items()}
        description = {
            "format": FORMAT_VERSION,
            "type": self.type,
            "joint": self.joint,
            "models": {name: sha256_bytes(model) for name, model in models.items()},
            "placeholders": {kind: list(pairs) for kind, pairs in self.placeholders.pairs.items()},
        }
        return {**models, _DESCRIPTION: json_bytes(description)}

    @classmethod
    def load(cls, directory: Path) -> "Tokenizer":
        """Reads a tokenizer directory, checking each model against its recorded hash, and trying one that is not known.

        Raises:
            ModelError: The directory is missing, incomplete, damaged, of a newer format, or would crash SentencePiece.
        """
        if not directory.is_dir():
            raise ModelError(f"{directory} is not a tokenizer directory; make one with tfm tokenize")
        description = _read_description(directory)
        vocabularies: dict[str, Vocabulary] = {}
        for side in ("tokenizer",) if description.joint else ("src", "tgt"):
            path = directory / f"{side}.model"
            model = read_plain(path, MAX_VOCABULARY_BYTES)
            if sha256_bytes(model) != description.models.get(path.name):
                raise ModelError(f"{path} is damaged (its sha256 is not the one in {_DESCRIPTION})")
            try_vocabulary(model, path)
            try:
                vocabularies[side] = Vocabulary(model)
            except ModelError as error:
                raise ModelError(f"{path}: {error}") from error
        shared = vocabularies.get("tokenizer")
        src, tgt = shared or vocabularies["src"], shared or vocabularies["tgt"]
        return cls(src, tgt, description.type, description.rule(src.has_placeholders and tgt.has_placeholders))


@dataclass(frozen=True)
class _Description:
    """The content of `tokenizer.json`: what the vocabularies are, and the hash of each file."""

    format: int
    type: VocabularyType
    joint: bool
    models: dict[str, Any]
    placeholders: dict[str, Any] | None = None
    """For each kind the pairs that have it and those that carry it through; an earlier tfm did not count them."""

    def rule(self, has_placeholders: bool) -> PlaceholderRule:
        """What becomes of placeholders.

        Args:
            has_placeholders: The vocabularies have symbols for them.
        """
        if self.placeholders is None:
            return EVERY_KIND if has_placeholders else NO_PLACEHOLDERS
        return PlaceholderRule({kind: tuple(pairs) for kind, pairs in self.placeholders.items()})


def _read_description(directory: Path) -> _Description:
    path = directory / _DESCRIPTION
    written = read_plain(path, MAX_JSON_BYTES)
    content = parse_object(written, path)
    version = content.get("format")
    if type(version) is int and version != FORMAT_VERSION:
        raise ModelError(f"{directory} has tokenizer format {version}, this tfm reads {FORMAT_VERSION}; upgrade tfm")
    check_fields(content, _Description, path)
    counts = content.get("placeholders") or {}
    if not all(kind in KINDS and _is_count(pairs) for kind, pairs in counts.items()):
        raise ModelError(f"{path} is damaged: its counts of placeholders are none")
    if json_bytes(content) != written:
        raise ModelError(f"{path} is damaged: it is not as tfm writes it")
    try:
        return _Description(**content)
    except TypeError as error:
        raise ModelError(f"{path} is damaged: something is missing in it") from error


def _is_count(pairs: Any) -> bool:
    """Whether something is what `PlaceholderRule` has of a kind."""
    return isinstance(pairs, list) and len(pairs) == 2 and all(type(number) is int for number in pairs)


def build_tokenizer(
    src: Iterable[str], tgt: Iterable[str], config: TokenizerConfig, *, notes: list[str] | None = None
) -> Tokenizer:
    """Builds the vocabularies of a corpus.

    Args:
        src, tgt: Sentences of the two sides, raw; iterated once.
        config: Size, algorithm, joint or separate.
        notes: Receives a sentence about anything done otherwise than asked (a size reduced).

    Raises:
        DataError: No usable text, or more different characters in it than the vocabulary has room for.
        OutOfMemory: SentencePiece needs more memory than there is.
    """
    samples, rule = _sample(zip(src, tgt, strict=True), config)
    vocabularies = {name: _train(sample, config, name, bool(rule.carried)) for name, sample in samples.items()}
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


def _sample(pairs: Iterable[Pair], config: TokenizerConfig) -> tuple[dict[str, list[str]], PlaceholderRule]:
    """Sentences for each vocabulary as they are in training, and what becomes of placeholders in them."""
    size = config.max_sentences
    names = ["source vocabulary", "target vocabulary"] if config.separate else ["vocabulary"]
    samples = {name: Reservoir[tuple[Pair, int]](size, seed=size) for name in names}
    reservoirs = list(samples.values())
    count = PlaceholderCount()
    for src, tgt in pairs:
        pair = clean(src), clean(tgt)
        if config.placeholders:
            count.add(*pair)
        for side, reservoir in enumerate((reservoirs[0], reservoirs[-1])):
            if _is_usable(pair[side]):
                reservoir.add((pair, side))
    rule = count.rule()

    def masked(pair: Pair, side: int) -> str:
        source = mask(pair[0], rule.carried)
        return source.mask(pair[1]) if side else source.text

    return {name: [masked(*entry) for entry in reservoir.kept] for name, reservoir in samples.items()}, rule


def _is_usable(line: str) -> bool:
    """Whether SentencePiece would take a line."""
    return bool(line) and len(_escape(line).encode()) <= _MAX_SENTENCE_BYTES


def _options(config: TokenizerConfig, vocab_size: int, has_placeholders: bool) -> dict[str, Any]:
    subword = config.type in ("unigram", "bpe")
    return {
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


@contextlib.contextmanager
def _temporary_file(lines: Iterable[str]) -> Iterator[IO[bytes]]:
    """A file of these lines, open at its beginning, and gone after the block.

    Raises:
        EnvironmentFault: It cannot be written.
    """
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
    lines = chain([json.dumps(options)], map(_escape, sentences))
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
