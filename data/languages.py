"""What Unicode's CLDR, as Babel has it, knows of a language by its code, such as `pt-BR` or `pt_BR`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from babel import Locale


def locale_of(code: str) -> "Locale | None":
    """The name and the plural forms of a language; None if it is not known."""
    from babel import Locale, UnknownLocaleError

    try:
        return Locale.parse(code.replace("-", "_"))
    except (UnknownLocaleError, ValueError):
        return None


def language_name(code: str) -> str:
    """The English name of a language, such as Portuguese (Brazil); its code if it is not known."""
    locale = locale_of(code)
    return (locale and locale.english_name) or code
