"""A trained run as bytes: a header in JSON, then vocabularies and matrices, all compressed. `engine.js` reads them.

4 bytes   the length of the header, little-endian
header    what the model is and how it is used; where each part begins, counted from the end of the header
parts     SentencePiece files as they are; matrices row by row
"""

import gzip
import json
import struct
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cache
from importlib import metadata
from typing import Any, get_args

import regex
from torch import Tensor

from ...data.facts import CorpusFacts, Style
from ...data.placeholders import KINDS, SYMBOLS
from ...data.scripts import UNSPACED
from ...data.tokenizer import Tokenizer
from ...seq2seq.decoding.constrained import LONGER, MAX_ROWS, MORE_TOKENS, MOST_PENALTY, ROWS_OF_A_BANK
from ...seq2seq.decoding.phrases import Phrase
from ..exportable import Weights
from ..runs.checkpoint import ModelDescription
from ..runs.load import TrainedRun
from ..spelling import Speller
from ..translation import MARGIN
from ..translator import loop_size
from .precision import Stored, stored

FORMAT_VERSION = 1
_ALIGNED = 8
"""Each part begins at a multiple of this many bytes, as arrays of JavaScript must."""

Ranges = list[tuple[int, int]]
"""First and last number of each run of neighbours."""


class _Parts:
    """Bytes one after the other, and where each of them lies."""

    def __init__(self) -> None:
        self.content = bytearray()

    def add(self, part: bytes) -> dict[str, int]:
        self.content += bytes(-len(self.content) % _ALIGNED)
        self.content += part
        return {"offset": len(self.content) - len(part), "length": len(part)}


def pack(loaded: TrainedRun, weights: Weights) -> bytes:
    """The bytes of a run.

    Args:
        weights: How matrices are stored. Vectors are float32 always: they are small, and much depends on them.
    """
    parts, tokenizer = _Parts(), loaded.tokenizer
    first_name: dict[int, str] = {}
    tensors: dict[str, dict[str, Any]] = {}
    shared: dict[str, str] = {}
    for name, parameter in loaded.model.named_parameters(remove_duplicate=False):
        if id(parameter) in first_name:
            shared[name] = first_name[id(parameter)]
        elif parameter.dim():  # the temperature of a sentence encoder is for its training
            first_name[id(parameter)] = name
            tensors[name] = _placed(stored(parameter.detach(), weights), parameter, parts)
    vocabularies = [tokenizer.src.model] if tokenizer.joint else [tokenizer.src.model, tokenizer.tgt.model]
    header = {
        **_about(loaded.description, tokenizer),
        "weights": weights,
        "characters": characters(),
        "phrases": _phrases(tokenizer) if tokenizer.has_placeholders else None,
        "tensors": tensors,
        "shared": shared,
        "vocabularies": [parts.add(one) for one in vocabularies],
    }
    written = json.dumps(header, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    written += b" " * (-(4 + len(written)) % _ALIGNED)
    return gzip.compress(struct.pack("<I", len(written)) + written + bytes(parts.content), mtime=0)


def _placed(matrix: Stored, parameter: Tensor, parts: _Parts) -> dict[str, Any]:
    entry = {"type": matrix.type, "shape": list(parameter.shape), **parts.add(matrix.content)}
    return entry | {"scales": parts.add(matrix.scales)} if matrix.scales else entry


def _about(description: ModelDescription, tokenizer: Tokenizer) -> dict[str, Any]:
    """What the model is, and the rules of its corpus."""
    return {
        "format": FORMAT_VERSION,
        "tfm_version": metadata.version("tfm"),
        "purpose": description.purpose,
        "config": asdict(description.model_config()),
        "decoding": asdict(description.decoding_config()),
        "facts": facts_of(description.corpus_facts()),
        "loop_size": loop_size(tokenizer),
        "margin": MARGIN,
        "constrained": {
            "max_rows": MAX_ROWS,
            "rows_of_a_bank": ROWS_OF_A_BANK,
            "most_penalty": MOST_PENALTY,
            "longer": LONGER,
            "more_tokens": MORE_TOKENS,
        },
        "carried": _in_order(tokenizer.carried),
        "expected": _in_order(tokenizer.placeholders.expected),
        "forbidden": tokenizer.tgt.forbidden_ids(),
    }


def facts_of(facts: CorpusFacts) -> dict[str, Any]:
    """What the engine is told of a corpus."""
    return {
        "loops_are_faults": facts.loops_are_faults,
        "limit": facts.limit,
        "keeps_letterless": facts.keeps_letterless,
        "keeps_numbers": facts.keeps_numbers,
        "kept_styles": [style for style in get_args(Style) if facts.keeps(style)],
        "unusual_styles": list(facts.unusual_styles),
        "is_turkish": facts.is_turkish,
        "begins_with_capitals": facts.begins_with_capitals,
        "last_sign": facts.last_sign,
    }


def _in_order(kinds: Iterable[str]) -> list[str]:
    return sorted(kinds, key=KINDS.index)


@cache
def characters() -> dict[str, Any]:
    """Sets of characters that patterns of JavaScript have no name for; and the digits 0 of all scripts."""
    every = "".join(map(chr, (*range(0xD800), *range(0xE000, sys.maxunicode + 1))))

    def pattern(characters: str) -> str:
        runs = [match[0] for match in regex.finditer(f"(?:{characters})+", every)]
        return "[" + "".join(rf"\u{{{ord(run[0]):x}}}-\u{{{ord(run[-1]):x}}}" for run in runs) + "]"

    return {
        "unspaced": pattern(UNSPACED),
        "complex": pattern(r"\p{lb=SA}"),
        "joiner": pattern(r"[\p{InSC=Virama}\p{InSC=Invisible_Stacker}]"),
        "killer": pattern(r"\p{InSC=Pure_Killer}"),
        "zeros": [ord(one) for one in every if unicodedata.decimal(one, None) == 0],
    }


def _phrases(tokenizer: Tokenizer) -> dict[str, Any]:
    """How an output may write the symbol of a placeholder: for each symbol after a space, and glued to what is before.

    The sets of tokens that may stand around it are few and large, and are listed once.
    """
    speller, sets = Speller(tokenizer.tgt), list[frozenset[int]]()

    def number(tokens: frozenset[int] | None) -> int | None:
        if tokens is None:
            return None
        if tokens not in sets:
            sets.append(tokens)
        return sets.index(tokens)

    def spelt(phrase: Phrase | None) -> list[dict[str, Any]] | None:
        return phrase and [
            {"tokens": list(one.tokens), "after": number(one.after), "before": number(one.before)}
            for one in phrase.spellings
        ]

    symbols = [[spelt(speller.placeholder(symbol, glued=glued)) for glued in (False, True)] for symbol in SYMBOLS]
    return {"symbols": symbols, "sets": [_ranges(sorted(one)) for one in sets]}


def _ranges(numbers: Sequence[int]) -> Ranges:
    found: Ranges = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found
