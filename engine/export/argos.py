"""A run as a package for Argos Translate and LibreTranslate: a zip file with a CTranslate2 model and a vocabulary.

translate-en_de/
  metadata.json          from which language to which
  sentencepiece.model    the vocabulary, with our cleaning as its normalisation
  model/                 what CTranslate2 loads
  README.md              what Argos Translate does otherwise than tfm
"""

import io
import tempfile
import unicodedata
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from ...data.cleaning import clean
from ...data.languages import language_name
from ...data.tokenizer import Tokenizer, escape
from ...data.vocabulary_trial_worker import CHARACTER_MAP, NORMALIZATION, fields
from ...system.errors import ModelError, UsageError
from ...system.files import json_bytes, write_file
from ..runs.checkpoint import StoredModel
from ..runs.directory import RunDirectory
from .directory import find_exportable, write_model

ARGOS_VERSION = "1.9"
"""The earliest that takes such a package."""
LONGEST = 256
"""Pieces that Argos Translate writes at most: a learned table of positions must reach so far."""
_CHANGED = ("Cc", "Cf", "Zs", "Zl", "Zp")
"""Categories of characters that `clean` makes spaces or drops."""

_README = """# {source} to {target}

A translator for Argos Translate and LibreTranslate, written by tfm {version} (weights in {quantization}).

Install it with `argospm install FILE.argosmodel`. The vocabulary cleans a text as tfm does: Unicode NFC, one space for
white space and control characters, nothing for invisible ones. Otherwise than `tfm translate`, Argos Translate

* cuts a text into sentences with a model of its own, which it fetches when it is first used;
* searches with a beam of 4 and its own length penalty, and stops at 256 pieces;
* has no second search for outputs that lose a placeholder (`%s`, `<b>`) or repeat themselves, and reads placeholders as
  text;
* writes a space for each underscore, and for the characters U+2581 and U+E000 two others.
"""


def write_package(
    run: RunDirectory, stored: StoredModel, stream: IO[bytes], languages: tuple[str, str], *, quantization: str
) -> None:
    """Writes a checkpoint as a package.

    Args:
        languages: Codes of the source and the target, such as `pt-BR`.
        quantization: One of `QUANTIZATIONS`.

    Raises:
        ModelError: CTranslate2 or Argos Translate cannot hold it.
        UsageError: A language is missing, or none.
        EnvironmentFault: CTranslate2 is missing.
    """
    model, tokenizer = find_exportable(run, stored)
    if reason := _why_not(tokenizer, model.config.positions, model.config.max_seq_len):
        raise ModelError(f"{run} cannot be exported for Argos Translate: {reason}")
    codes = [code.replace("_", "-") for code in languages]
    names = [_name_of(code, flag) for code, flag in zip(codes, ("--src-language", "--tgt-language"), strict=True)]
    version = metadata.version("tfm")
    described = {
        "package_version": "1.0",
        "argos_version": ARGOS_VERSION,
        "type": "translate",
        "from_code": codes[0],
        "from_name": names[0],
        "to_code": codes[1],
        "to_name": names[1],
    }
    readme = _README.format(source=names[0], target=names[1], version=version, quantization=quantization)
    with tempfile.TemporaryDirectory(prefix="tfm-export-") as folder:
        directory = Path(folder)
        (directory / "model").mkdir()
        write_model(model, tokenizer, directory / "model", quantization)
        write_file(directory / "sentencepiece.model", cleaning_model(tokenizer.src.model))
        write_file(directory / "metadata.json", json_bytes(described))
        write_file(directory / "README.md", readme.encode())
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as package:
            for path in sorted(path for path in directory.rglob("*") if path.is_file()):
                package.write(path, Path(f"translate-{codes[0]}_{codes[1]}", path.relative_to(directory)))


def _why_not(tokenizer: Tokenizer, positions: str, max_seq_len: int) -> str:
    """Why Argos Translate cannot take a model that CTranslate2 can; empty if it can."""
    if tokenizer.type not in ("unigram", "bpe"):
        return f"it needs a SentencePiece vocabulary of pieces, and this one is of kind {tokenizer.type}"
    if not tokenizer.joint:
        return "it has one vocabulary for both sides, and this model has two (tokenizer.separate)"
    if positions == "learned" and max_seq_len < LONGEST:
        return f"it writes up to {LONGEST} pieces, and the learned positions of this model end at {max_seq_len}"
    return ""


def _name_of(code: str, flag: str) -> str:
    """The English name of a language."""
    if not code:
        raise UsageError(f"a package names its languages, and this run does not know them; add {flag} CODE")
    return language_name(code)


# --- cleaning, as SentencePiece does it ---


def cleaning_model(model: bytes) -> bytes:
    """A SentencePiece model that does to a text what `clean` and `escape` do before it reaches ours.

    The message of a protocol buffer that follows another one adds to it, so that nothing in ours need be parsed. Not
    done are marks in another order than Unicode's, marks on what is composed with another mark, and emoji's tags.
    """
    normalizer = _message(CHARACTER_MAP[0], _compiled()) + b"\x20\x01"  # then remove_extra_whitespaces
    return model + _message(NORMALIZATION[0], normalizer)


def _compiled() -> bytes:
    """The rules, as SentencePiece compiles them for a vocabulary that it trains."""
    import sentencepiece

    trained = io.BytesIO()
    with tempfile.TemporaryDirectory(prefix="tfm-export-") as folder:
        rules = Path(folder, "rules.tsv")
        write_file(rules, "".join(f"{_hex(one)}\t{_hex(other)}\n" for one, other in cleaning_rules()).encode())
        training: Any = sentencepiece.SentencePieceTrainer
        training.train(
            sentence_iterator=iter(["a b c"]),
            model_writer=trained,
            model_type="char",
            vocab_size=8,
            normalization_rule_tsv=str(rules),
            minloglevel=2,
        )
    (normalizer,) = (content for field, content in fields(trained.getvalue()) if field == NORMALIZATION)
    return next(content for field, content in fields(normalizer) if field == CHARACTER_MAP)


def cleaning_rules() -> Iterator[tuple[str, str]]:
    """What `clean` and `escape` put in the place of what."""
    for character in map(chr, (*range(1, 0xD800), *range(0xE000, 0x110000))):
        category = unicodedata.category(character)
        if category == "Cn":
            continue
        apart = unicodedata.normalize("NFD", character)
        to = character
        if category in _CHANGED or character != apart or escape(character) != character:
            to = escape(clean(f"\u4e2d{character}\u4e2d")[1:-1])  # beside what it does not combine with
        if to != character:
            yield character, to
        elif character != apart:
            once = "".join(chr(int(code, 16)) for code in unicodedata.decomposition(character).split())
            yield apart, character
            if once and once != apart:
                yield once, character


def _hex(text: str) -> str:
    return " ".join(f"{ord(character):X}" for character in text)


def _message(number: int, content: bytes) -> bytes:
    """A field of bytes of a protocol buffer."""
    size, length = len(content), bytearray()
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + content
