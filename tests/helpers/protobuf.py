"""Messages of Google's protocol buffers, of which SentencePiece files are made: a writer of a few lines."""

import struct


def number(value: int) -> bytes:
    """A whole number, seven bits in each byte."""
    return bytes([value & 127 | 128]) + number(value >> 7) if value > 127 else bytes([value])


def block(field: int, content: bytes) -> bytes:
    """A field that holds a text or a message."""
    return number(field << 3 | 2) + number(len(content)) + content


def whole(field: int, value: int) -> bytes:
    """A field that holds a whole number; -1 is written as the largest one is."""
    return number(field << 3) + number(value % 2**64)


def piece(text: bytes, score: float = -1.0, type_: int = 1) -> bytes:
    """A piece of a vocabulary. Appended to a SentencePiece file, it is one more."""
    return block(1, block(1, text) + number(2 << 3 | 5) + struct.pack("<f", score) + whole(3, type_))
