"""Child process that opens one SentencePiece file from stdin, within limits, and exits with 0 if that is harmless.

First it reads the file itself and compares it with what tfm writes, since some files crash SentencePiece only when it
meets a certain text: those with a table that changes characters, which tfm never makes, or with endless pieces. Then
SentencePiece reads it, and encodes and decodes.
"""

import contextlib
import struct
import sys
from collections.abc import Iterator
from typing import IO, Any

from .sentencepiece_worker import end_with_parent

LIMITS = {
    "RLIMIT_AS": 1_000_000_000,
    "RLIMIT_STACK": 1_000_000,
    "RLIMIT_CPU": 10,
    "RLIMIT_FSIZE": 10_000,
    "RLIMIT_CORE": 0,
}
"""Limits of the process: bytes of memory and of stack, seconds, and bytes that it may write to its stderr."""

_LONGEST = 4_200
"""Bytes of a piece or another text: a line of which a vocabulary is built is no longer (see `tokenizer`)."""
_LARGEST_SCORE = 1e7
_UNKNOWN, _BYTE = 2, 6
_TYPES = {1, _UNKNOWN, 3, 4, _BYTE}
"""Of pieces: text, unknown, control, user-defined, byte. SentencePiece has another one that tfm never writes."""
_MODEL_TYPES = {1, 2, 3, 4}
_BYTES = {f"<0x{byte:02X}>".encode() for byte in range(256)}
_TEXTS = ["", "a", "the old woman gives the child two red apples", "日本語 \u2047 \U0001f469", "\ue000a\x00\x7f" * 50]
_PIECES_ENCODED = 500
"""At most this many pieces are encoded as texts."""

# A file is a message of Google's protocol buffers: fields, each with a number and a kind. A field of kind _BLOCK has a
# length, and is a text or a message itself.
_VARINT, _EIGHT_BYTES, _BLOCK, _FOUR_BYTES = 0, 1, 2, 5
_PIECE, _TRAINING, NORMALIZATION = (1, _BLOCK), (2, _BLOCK), (3, _BLOCK)
_TEXT, _SCORE, _TYPE = (1, _BLOCK), (2, _FOUR_BYTES), (3, _VARINT)
_MODEL_TYPE = (3, _VARINT)
CHARACTER_MAP, _RULES = (2, _BLOCK), (6, _BLOCK)


class Refused(Exception):
    """The file is not one that tfm wrote; says why."""


def fields(message: bytes) -> Iterator[tuple[tuple[int, int], Any]]:
    """The fields of a message: number and kind of each, and what it holds, a whole number or bytes."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
        else:
            if kind == _BLOCK:
                size, at = _varint(message, at)
            elif kind in (_FOUR_BYTES, _EIGHT_BYTES):
                size = 4 if kind == _FOUR_BYTES else 8
            else:
                raise Refused("it is damaged")
            value, at = message[at : at + size], at + size
        if at > len(message):
            raise Refused("it ends too early")
        yield (tag >> 3, kind), value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A whole number, seven bits of it in each byte, and where it ends."""
    if at < len(message) and message[at] < 128:  # nearly always
        return message[at], at + 1
    number = 0
    for shift, byte in enumerate(message[at : at + 10]):
        number |= (byte & 127) << 7 * shift
        if byte < 128:
            return number, at + shift + 1
    raise Refused("it is damaged")


def check(model: bytes) -> None:
    """Compares a SentencePiece file with what tfm writes, without SentencePiece."""
    for field, value in fields(model):
        if field == _PIECE:
            _check_piece(value)
        elif field == _TRAINING:
            _check_training(value)
        elif field == NORMALIZATION:
            if any(value and field in (CHARACTER_MAP, _RULES) for field, value in fields(value)):
                raise Refused("it changes characters")
        else:
            raise Refused(f"it has an unknown field {field[0]}")


def _check_piece(piece: bytes) -> None:
    text, type_ = b"", 1
    for field, value in fields(piece):
        if field == _TEXT:
            text = value
        elif field == _SCORE:
            if not abs(struct.unpack("<f", value)[0]) <= _LARGEST_SCORE:  # which is also false of what is no number
                raise Refused("a piece has an impossible score")
        elif field == _TYPE:
            type_ = value
        else:
            raise Refused("a piece has an unknown field")
    if type_ not in _TYPES or (type_ == _BYTE and text not in _BYTES):
        raise Refused(f"a piece has an unknown type {type_}")
    if not 0 < len(text) <= _LONGEST:
        raise Refused(f"a piece has {len(text):,} bytes")
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise Refused("a piece is not UTF-8") from error


def _check_training(options: bytes) -> None:
    """How the vocabulary was made, which also says how it is to be used."""
    for field, value in fields(options):
        if field == _MODEL_TYPE and value not in _MODEL_TYPES:
            raise Refused(f"it has an unknown type {value}")
        if isinstance(value, bytes) and len(value) > _LONGEST:
            raise Refused(f"one of its settings has {len(value):,} bytes")


def use(model: bytes) -> None:
    """Uses a vocabulary in SentencePiece as tfm will use it."""
    import sentencepiece

    processor: Any = sentencepiece.SentencePieceProcessor(model_proto=model)  # pyright: ignore[reportCallIssue]
    ids = [processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id()]
    ids += range(processor.get_piece_size())
    processor.decode(ids)
    for id_ in ids:
        _ = processor.is_control(id_), processor.is_byte(id_)
    pieces = [processor.id_to_piece(id_) for id_ in ids]
    for text in (*_TEXTS, *pieces[:: len(pieces) // _PIECES_ENCODED + 1]):
        processor.decode(processor.encode(text))


def main(stdin: IO[bytes]) -> None:
    """Opens the file on stdin."""
    end_with_parent()
    model = stdin.read()
    _limit()
    try:
        check(model)
        use(model)
    except (Refused, RuntimeError, MemoryError) as error:
        sys.exit(str(error) or "it needs too much memory")


def _limit() -> None:
    """Takes less of the machine from now on. A system without such limits, or with lower ones, stays as it is."""
    with contextlib.suppress(ImportError):
        import resource

        for name, most in LIMITS.items():
            with contextlib.suppress(AttributeError, ValueError, OSError):
                resource.setrlimit(getattr(resource, name), (most, most))


if __name__ == "__main__":
    main(sys.stdin.buffer)
