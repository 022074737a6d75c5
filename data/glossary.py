"""Terms whose translations are given: `--glossary terms.tsv`."""

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..system.errors import DataError
from .cleaning import clean
from .formats import suffix_of
from .formats.refused import refuse_known_format
from .formats.tables import delimiter_said
from .placeholders import placeholder_spans
from .reading import bad_quotes, read_lines
from .words import find_terms, folded, with_plain_signs

_HEADERS = ({"source", "src", "term"}, {"target", "tgt", "translation"})
"""What the first two columns are called in a line that names them."""
_LANGUAGES = (
    "afrikaans albanian amharic arabic armenian basque bengali breton bulgarian burmese catalan chinese croatian "
    "czech danish dutch english esperanto estonian finnish french galician georgian german greek guarani hebrew "
    "hindi hungarian icelandic indonesian irish italian japanese khmer korean kurdish latin latvian lithuanian "
    "malay maltese mongolian nepali norwegian persian polish portuguese punjabi quechua romanian russian serbian "
    "slovak slovenian somali spanish swahili swedish tamil telugu thai turkish ukrainian urdu uzbek vietnamese "
    "welsh yoruba zulu"
)
"""Or they are called by two of these languages."""


class Glossary:
    """Terms of the source language and what they become.

    >>> from tfm.data.glossary import Glossary
    >>> terms = Glossary([("the cat", "ein Hund")])
    >>> translator.translate(["the cat sees the house."], glossary=terms)[0].text.startswith("ein Hund")
    True

    A term is found as a whole word or several (see `words`), the longest first, whichever apostrophe or hyphen it has,
    but not inside a placeholder or an address. One in small letters is found however it is capitalised, any other as it
    is and in capitals. A text that has the term several times needs the translation as often.
    """

    def __init__(self, entries: Sequence[tuple[str, str]]) -> None:
        self._entries: dict[str, dict[str, str]] = {}
        """Translations by term, by the folded term."""
        for term, translation in entries:
            term = with_plain_signs(clean(term))
            self._entries.setdefault(folded(term), {})[term] = clean(translation)
        self._longest = max(map(len, self._entries), default=0)

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    @classmethod
    def load(cls, path: Path, encoding: str = "") -> "Glossary":
        """Reads lines of a term, a tab and its translation, or a `.csv` with them between commas, semicolons or tabs.

        Further columns, blank lines and lines that begin with `#` are left out, and so is a first line that names the
        columns: `source`, `src` or `term`, and `target`, `tgt` or `translation`, or two languages, as
        `English` and `German`. A first line `sep=;` says what stands between the fields of a `.csv`.
        """
        is_csv = suffix_of(path) == ".csv"
        if not is_csv:
            refuse_known_format(path, "a glossary has lines of term<TAB>translation, or is a .csv", but=(".tsv",))
        entries: dict[str, str] = {}
        lines: dict[str, int] = {}
        for number, row in _rows(path, is_csv, encoding):
            term, translation = (*map(clean, row[:2]), "", "")[:2]
            if not lines and _is_header(term, translation):
                continue
            if not term or not translation:
                expected = "term,translation" if is_csv else "term<TAB>translation"
                raise DataError(f"{path}:{number}: a line of a glossary is {expected}")
            if entries.setdefault(term, translation) != translation:
                raise DataError(f"{path}:{number}: {term!r} has another translation in line {lines[term]}; keep one")
            lines.setdefault(term, number)
        if not entries:
            raise DataError(f"{path} has no terms")
        return cls(list(entries.items()))

    def wanted(self, text: str) -> list[str]:
        """The translations of the terms in a text, in the order of the terms."""
        text = clean(text)
        spans = placeholder_spans(text)  # of every kind: one that is text for the model has to stay whole, too
        found = find_terms(text, lambda part: self._translation(part) is not None, self._longest, outside=spans)
        return [translation for translation in map(self._translation, found) if translation]

    def _translation(self, part: str) -> str | None:
        """The translation of a term as it stands in a text; None if it is no term."""
        part = with_plain_signs(part)
        terms = self._entries.get(folded(part), {})
        fitting = (term for term in terms if part == term.upper() or term == term.lower())
        return terms.get(part if part in terms else next(fitting, ""))


def _is_header(source: str, target: str) -> bool:
    """Whether the first two fields of a first line name the columns."""
    names = source.casefold(), target.casefold()
    return (names[0] in _HEADERS[0] and names[1] in _HEADERS[1]) or (
        set(names) <= {*_LANGUAGES.split()} and names[0] != names[1]
    )


def _rows(path: Path, is_csv: bool, encoding: str) -> Iterator[tuple[int, list[str]]]:
    """Fields of lines that are no comment, and the numbers of the lines. Quotes mean something in a `.csv` alone."""
    lines = [
        "" if not line or line.startswith("#") else line.replace("\r", " ")
        for line in read_lines(path, encoding=encoding)
    ]
    delimiter, quoting = "\t", csv.QUOTE_NONE
    if is_csv and lines and (said := delimiter_said(lines[0])):
        lines[0], delimiter, quoting = "", said, csv.QUOTE_MINIMAL
    elif is_csv:  # what most lines have outside quotes
        plain = [re.sub('"[^"]*"', "", line) for line in lines]
        delimiter, quoting = max("\t;,", key=lambda one: sum(one in line for line in plain)), csv.QUOTE_MINIMAL
    rows = csv.reader(lines, delimiter=delimiter, quoting=quoting, skipinitialspace=True, strict=True)
    try:
        for row in rows:
            if any(map(str.strip, row)):
                yield rows.line_num, row
    except csv.Error as error:
        raise bad_quotes(path, rows.line_num, error) from error
