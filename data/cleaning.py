"""The cleaning that every line passes before SentencePiece, in training and in translation alike.

SentencePiece itself then runs with identity normalisation, so that `decode(encode(x)) == clean(x)` for every string.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence, Set

_UNPRINTABLE = re.compile(r"[^ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u058f\u05d0-\u05ea\u0620-\u06d5\u4e00-\u9fff]")
_REPLACEMENT = "\ufffd"

_TAGS = "\U000e0020-\U000e007e"
_END_OF_TAGS = "\U000e007f"
_EMOJI = "[\u2600-\u27bf\U0001f000-\U0001faff][\ufe0f\U0001f3fb-\U0001f3ff]?"
_INVISIBLE = (
    "\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
    f"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001{_TAGS}{_END_OF_TAGS}"
)
"""Format characters (category Cf) that show nothing (Default_Ignorable_Code_Point), but for those that `clean` keeps.
They are written out, so that every Python, whatever its Unicode, cleans a text alike."""
_DROPPED = re.compile(f"({_EMOJI}[{_TAGS}]+{_END_OF_TAGS})|[{_INVISIBLE}]")


def clean(text: str) -> str:
    """Normalises one line of text.

    * lone surrogates (half characters that JSON or a command line can carry) become U+FFFD;
    * Unicode NFC: `e` + combining acute becomes `é`;
    * every white-space or control character, U+2028, U+2029, U+0085, VT and FF included, becomes a space;
    * format characters that show nothing are dropped: zero-width space, soft hyphen, byte-order and direction marks,
      word joiner, language tags and the like. Four kinds carry meaning and stay: the zero-width joiner and non-joiner,
      the Mongolian vowel separator, and the tags of an emoji, such as those that make a black flag Scotland's;
    * format characters that show stay: the Arabic end of ayah and number signs, for example;
    * runs of spaces become one, and none is left at either end.

    Idempotent: `clean(clean(x)) == clean(x)`.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if _UNPRINTABLE.search(text):
        text = _DROPPED.sub(lambda found: found[1] or "", text)
        text = "".join(_clean_character(character) for character in text)
        # Dropping a character can bring a base letter and its accent together.
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.split())


def _clean_character(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Cc", "Zs", "Zl", "Zp"):
        return " "
    return _REPLACEMENT if category == "Cs" else character


def edges(text: str) -> tuple[str, str, str]:
    """White space before a text, the text, white space behind it."""
    inner = text.strip()
    before, _, after = text.partition(inner) if inner else (text, "", "")
    return before, inner, after


def check_texts(texts: Sequence[object], name: str = "texts") -> None:
    """Refuses what is no sequence of strings: one text, an iterator, a set, empty cells of a table (None, nan).

    The TypeError names the first by its position from 0.
    """
    if isinstance(texts, str):  # it is a sequence of strings, too: of its letters
        raise TypeError(f"give a list of texts, not one text: [{texts[:20]!r}{' ..' if len(texts) > 20 else ''}]")
    if isinstance(texts, bytes | Mapping | Set) or not hasattr(texts, "__len__"):
        raise TypeError(f"{name} must be a list of strings, not of type {type(texts).__name__}")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            found = "None" if text is None else f"of type {type(text).__name__}"
            raise TypeError(f"{name}[{position}] is {found}, not a string")
