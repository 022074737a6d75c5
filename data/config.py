"""Settings of the corpus and of the tokenizer. Plain dataclasses: no torch, no file is touched."""

import math
import os
import re
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from .charset import encoding_named

VocabularyType = Literal["unigram", "bpe", "char", "word"]
MAX_VOCAB_SIZE = 1_000_000
MAX_VOCABULARY_BYTES = 16_000_000
"""Largest SentencePiece file."""
LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_@][A-Za-z0-9]{1,8})*")
"""The code of a language, such as `en`, `pt-BR` and `sr@latin`."""


@dataclass(frozen=True)
class DataConfig:
    """Where the sentence pairs, or the texts of a language model, come from and which of them are kept."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    src: list[str] = field(default_factory=list)
    """Source-side text files, one sentence per line."""
    tgt: list[str] = field(default_factory=list)
    """Target-side text files, line by line the translations of `src`."""
    dev_src: list[str] = field(default_factory=list)
    """Source side of the validation set."""
    dev_tgt: list[str] = field(default_factory=list)
    """Target side of the validation set."""
    data: list[str] = field(default_factory=list)
    """Pairs in one place: `toy`, a file of one of the `formats`, or `hf:NAME[/SUBSET][:SPLIT][@REVISION]`."""
    dev: list[str] = field(default_factory=list)
    """The validation set in the same notation."""
    text: list[str] = field(default_factory=list)
    """Text files for a language model, one text per line; `toy` is the toy language's English side."""
    dev_text: list[str] = field(default_factory=list)
    """Validation text of a language model."""
    replay: list[str] = field(default_factory=list)
    """Older pairs, in the notation of `data`, that are mixed in so that a model to start from forgets less of them."""
    replay_src: list[str] = field(default_factory=list)
    """Older pairs as text files: the source side."""
    replay_tgt: list[str] = field(default_factory=list)
    """Line by line the translations of `replay_src`."""
    replay_src_column: str | None = None
    """Column of the source in `replay`; as in `data` if not given."""
    replay_tgt_column: str | None = None
    """Column of the target in `replay`; as in `data` if not given."""
    src_column: str = "src"
    """Column or JSON field, by name or number from 1, that holds the source in `data`."""
    tgt_column: str = "tgt"
    """Column or JSON field, by name or number from 1, that holds the target in `data`."""
    src_language: str = ""
    """Language of the sources, such as `en` or `pt-BR` (BCP 47), for files that have several; empty if not named."""
    tgt_language: str = ""
    """Language of the targets; empty if not named."""
    encoding: str = ""
    """Encoding of the files of text, pairs and tables, such as cp1251, if it is not UTF-8. What a byte-order mark says
    counts more, and XML, PO, Parquet and Arrow say it themselves."""
    max_length_ratio: float = 9.0
    """A pair is dropped if one side has more than this many times the tokens of the other (plus 5)."""
    bad_lines: Literal["error", "skip"] = "error"
    """What to do with a line that is not in its encoding: stop, or drop the pair and count it."""

    def __post_init__(self) -> None:
        for key, names in list(vars(self).items()):
            if isinstance(names, list):  # of files: ~ is what a shell makes of it, which does not see these
                expanded = [os.path.expanduser(name) for name in names]  # noqa: PTH111, Path refuses unknown users
                object.__setattr__(self, key, expanded)
        problems: list[str] = []
        if not 1 <= self.max_length_ratio < math.inf:
            problems.append(f"max_length_ratio must be at least 1 and finite, but is {self.max_length_ratio}")
        for key in ("src_language", "tgt_language"):
            if (code := getattr(self, key)) and not LANGUAGE.fullmatch(code):
                problems.append(f"{key} must be the code of a language, such as en or pt-BR, but is {code!r:.60}")
        try:
            encoding_named(self.encoding or "utf-8")
        except ValueError as error:
            problems.append(str(error))
        if problems:
            raise ValueError("\n".join(problems))

    @property
    def languages(self) -> tuple[str, str]:
        """The languages of source and target, each empty if it is not named.

        Two columns whose names are codes of languages name these, too.
        """
        columns = self.src_column, self.tgt_column
        if columns == ("src", "tgt") or not all(map(LANGUAGE.fullmatch, columns)):
            columns = "", ""
        return self.src_language or columns[0], self.tgt_language or columns[1]


@dataclass(frozen=True)
class TokenizerConfig:
    """How text becomes pieces."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    vocab_size: int = 8000
    """Pieces wanted; reduced to what the corpus supports."""
    type: VocabularyType = "unigram"
    """SentencePiece algorithm. `word` takes the text as already split at spaces."""
    separate: bool = False
    """One vocabulary for each side instead of a joint one."""
    character_coverage: float = 1.0
    """Share of the corpus's characters that get a piece; the rest are spelt in bytes (unigram, bpe) or unknown."""
    placeholders: bool = True
    """Carry `%s`, `{name}`, `<b>`, URLs and the like through as they are, where a corpus has enough of them."""
    split_digits: bool = False
    """Each digit is a piece of its own (unigram, bpe)."""
    max_sentences: int = 1_000_000
    """At most this many lines, sampled evenly, are read to build a vocabulary."""

    def __post_init__(self) -> None:
        problems: list[str] = []
        if not 1 <= self.vocab_size <= MAX_VOCAB_SIZE:
            problems.append(f"vocab_size must be between 1 and {MAX_VOCAB_SIZE:,}, but is {self.vocab_size}")
        if not 0.98 <= self.character_coverage <= 1:
            problems.append(f"character_coverage must be between 0.98 and 1, but is {self.character_coverage}")
        if self.max_sentences < 1:
            problems.append(f"max_sentences must be at least 1, but is {self.max_sentences}")
        if problems:
            raise ValueError("\n".join(problems))
