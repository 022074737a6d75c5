"""Terms whose translations are given: `--glossary terms.tsv`."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from .cleaning import clean
from .errors import DataError
from .formats import refuse_known_format
from .reading import read_lines

_UNSPACED = r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
"""Letters of scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, Japanese and Chinese."""


class Glossary:
    """Terms of the source language and what they become.

    A term is found as a whole word or several, the longest first. One in small letters is found in capitals, too. A
    text that has the term several times needs the translation as often.

    Args:
        entries: Pairs of a term and its translation.
    """

    def __init__(self, entries: Sequence[tuple[str, str]]) -> None:
        self._exact = dict(entries)
        self._small = {term: translation for term, translation in entries if term == term.lower()}
        terms = sorted(self._exact, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_whole_words, terms)), re.IGNORECASE) if terms else None

    def __len__(self) -> int:
        return len(self._exact)

    @classmethod
    def load(cls, path: Path) -> "Glossary":
        """Reads lines of a term, a tab and its translation; blank lines and those that begin with `#` are comments.

        Raises:
            DataError: The file cannot be read, a line has not both, or a term has two translations.
        """
        if path.suffix.lower() != ".tsv":
            refuse_known_format(path, "a glossary has lines of term<TAB>translation")
        entries: dict[str, str] = {}
        lines: dict[str, int] = {}
        for number, line in enumerate(read_lines(path), start=1):
            if not line or not line.strip() or line.startswith("#"):
                continue
            term, tab, rest = line.partition("\t")
            term, translation = clean(term), clean(rest.partition("\t")[0])
            if not tab or not term or not translation:
                raise DataError(f"{path}:{number}: a line of a glossary is term<TAB>translation")
            if entries.setdefault(term, translation) != translation:
                raise DataError(f"{path}:{number}: {term!r} has another translation in line {lines[term]}; keep one")
            lines.setdefault(term, number)
        if not entries:
            raise DataError(f"{path} has no terms")
        return cls(list(entries.items()))

    def wanted(self, text: str) -> list[str]:
        """The translations of the terms in a text, in the order of the terms."""
        if self._pattern is None:
            return []
        found = (match[0] for match in self._pattern.finditer(text))
        translations = (self._exact.get(term) or self._small.get(term.lower()) for term in found)
        return [translation for translation in translations if translation]


def missed(wanted: Sequence[str], translation: str) -> tuple[str, ...]:
    """Of the translations of terms, those that a text lacks, each as often as it does. Letter case does not matter."""
    small = translation.lower()
    lacking = Counter(wanted) - Counter({term: small.count(term.lower()) for term in set(wanted)})
    return tuple(lacking.elements())


def _whole_words(term: str) -> str:
    before = "" if re.match(_UNSPACED, term[0]) or not term[0].isalnum() else r"(?<!\w)"
    after = "" if re.match(_UNSPACED, term[-1]) or not term[-1].isalnum() else r"(?!\w)"
    return before + re.escape(term) + after
