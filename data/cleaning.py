"""The cleaning that every line passes before SentencePiece, in training and in translation alike.

SentencePiece itself then runs with identity normalisation, so that `decode(encode(x)) == clean(x)` for every string.
"""

import re
import unicodedata

_KEPT_FORMAT_CHARACTERS = "\u200c\u200d"
"""Zero-width non-joiner and joiner: they change what a Persian word, an Indic conjunct or an emoji is."""

_UNPRINTABLE = re.compile(r"[^ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u058f\u05d0-\u05ea\u0620-\u06d5\u4e00-\u9fff]")
_REPLACEMENT = "\ufffd"


def clean(text: str) -> str:
    """Normalises one line of text.

    * lone surrogates (half characters that JSON or a command line can carry) become U+FFFD;
    * Unicode NFC: `e` + combining acute becomes `é`;
    * every white-space or control character, U+2028, U+2029, U+0085, VT and FF included, becomes a space;
    * invisible format characters (zero-width space, soft hyphen, byte-order and direction marks) are dropped, except
      the two joiners that carry meaning;
    * runs of spaces become one, and none is left at either end.

    Idempotent: `clean(clean(x)) == clean(x)`.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if _UNPRINTABLE.search(text):
        text = "".join(_clean_character(character) for character in text)
        # Dropping a character can bring a base letter and its accent together.
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.split())


def _clean_character(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cf":
        return character if character in _KEPT_FORMAT_CHARACTERS else ""
    if category in ("Cc", "Zs", "Zl", "Zp"):
        return " "
    return _REPLACEMENT if category == "Cs" else character
