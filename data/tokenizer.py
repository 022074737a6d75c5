"""Text to pieces and back: SentencePiece vocabularies, built by us and carried with the weights.

`decode(encode(x)) == clean(x)` for every string x and every unigram or BPE vocabulary (they fall back to bytes); for
`char` and `word` vocabularies wherever x has no unknown piece.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from statistics import mean
from typing import Any

import sentencepiece

from ..system.errors import ModelError
from ..system.files import json_bytes, sha256_bytes, staged_directory, write_file
from ..system.untrusted import MAX_JSON_BYTES, check_fields, parse_object, read_plain
from . import Pair
from .cleaning import clean
from .config import MAX_VOCABULARY_BYTES, VocabularyType
from .facts import count_letters
from .placeholders import EVERY_KIND, KINDS, SYMBOLS, Masked, PlaceholderRule, mask
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

FORMAT_VERSION = 1
_DESCRIPTION = "tokenizer.json"

# SentencePiece writes a space as U+2581. So that a literal U+2581 survives, it is spelt as an escape character and `b`,
# and the escape character itself (a private-use one) as itself and `a`.
_SPACE_MARK, _ESCAPE = "\u2581", "\ue000"
_APART = "\ufdd0"
"""A noncharacter of Unicode, which no vocabulary has: no piece reaches over it."""


def escape(text: str) -> str:
    if _SPACE_MARK not in text and _ESCAPE not in text:
        return text
    return text.replace(_ESCAPE, _ESCAPE + "a").replace(_SPACE_MARK, _ESCAPE + "b")


def _unescape(text: str) -> str:
    if _ESCAPE not in text:
        return text
    return text.replace(_ESCAPE + "b", _SPACE_MARK).replace(_ESCAPE + "a", _ESCAPE)


class Vocabulary:
    """One SentencePiece model; ModelError for bytes that are none made by tfm."""

    def __init__(self, model: bytes) -> None:
        self.model = model
        self._pieces: dict[int, str] = {}
        try:
            self._processor: Any = sentencepiece.SentencePieceProcessor(model_proto=model)  # pyright: ignore[reportCallIssue]
            found = self._processor
            ids = [found.pad_id(), found.unk_id(), found.bos_id(), found.eos_id()]
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
        return self._processor.encode(escape(clean(text)))

    def encode_inside(self, text: str) -> list[int]:
        """Ids of a text that follows another one without a space; none if pieces are whole words."""
        before = self.encode(_APART)
        return self.encode(_APART + text)[len(before) :]

    def encode_all(self, texts: Iterable[str]) -> list[list[int]]:
        """Ids of several texts at once, which are clean."""
        return self._processor.encode([escape(text) for text in texts], num_threads=1)

    def encode_as_pieces(self, text: str) -> list[str]:
        """The pieces of a text as strings; `▁` marks a space."""
        return self._processor.encode(escape(clean(text)), out_type=str)

    def cost(self, text: str) -> tuple[int, int, float]:
        """What a text costs, less being better: pieces of unknown characters, pieces in all, and how rare they are."""
        ids = self.encode(text)
        unknown = sum(one == UNK_ID or self.is_byte(one) for one in ids)
        return unknown, len(ids), -sum(map(self._processor.get_score, ids))

    def decode(self, ids: Iterable[int]) -> str:
        """Text of ids; control pieces vanish, unknown pieces become `⁇`."""
        return _unescape(self._processor.decode(list(ids))).strip(" ")

    def piece(self, piece_id: int) -> str:
        """The piece with this id."""
        if (found := self._pieces.get(piece_id)) is None:  # SentencePiece takes longer
            found = self._pieces[piece_id] = self._processor.id_to_piece(piece_id)
        return found

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
    def words(self) -> frozenset[str]:
        """The pieces that are a whole word, of letters alone, or its beginning."""
        pieces = map(self.piece, range(FIRST_TEXT_ID, len(self)))
        return frozenset(piece[1:] for piece in pieces if piece.startswith(_SPACE_MARK) and piece[1:].isalpha())

    @cached_property
    def characters(self) -> frozenset[str]:
        """The characters in pieces of text; others are spelt as bytes, or unknown."""
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

    >>> from tfm.data.tokenizer import Tokenizer
    >>> tokenizer = Tokenizer.load(Path("runs/mine/tokenizer"))
    >>> tokenizer.src.decode(tokenizer.src.encode("the cat"))
    'the cat'
    """

    src: Vocabulary
    tgt: Vocabulary
    type: str
    placeholders: PlaceholderRule

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
        """A text, cleaned, with symbols for the placeholders that are carried through."""
        return mask(clean(text), self.carried)

    def mask_pair(self, src: str, tgt: str) -> Pair:
        """A pair as it is in training: the source as in translation, and the same symbols in the cleaned target."""
        masked = self.mask(src)
        return masked.text, masked.mask(clean(tgt))

    def unknown(self, text: str) -> tuple[tuple[str, ...], float]:
        """What of a masked source the vocabulary does not know, each once, and the share of the characters that it is.

        It is looked at character by character, for a word vocabulary word by word.
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
        """Writes the tokenizer directory in one step. Its vocabularies are known to be harmless from then on."""
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
        """What becomes of placeholders."""
        if self.placeholders is None:
            return EVERY_KIND if has_placeholders else PlaceholderRule({})
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
    """Whether something read from a file can be what `PlaceholderRule` has for a kind."""
    return isinstance(pairs, list) and len(pairs) == 2 and all(type(number) is int for number in pairs)
