"""The plural forms of a language, as gettext writes them: how many, and the rule that gives one to each number."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from gettext import c2py  # pyright: ignore[reportAttributeAccessIssue]
from typing import Any

from ...system.errors import UsageError
from ..placeholders import placeholders
from .po import header_value

_MANY = 1_000
"""The numbers up to this one show what a form is for; it stands for a great many things."""


@dataclass(frozen=True)
class Plurals:
    """Which form goes with which numbers.

    Attributes:
        count: How many forms there are; None if nobody says it.
        one: The form for one thing.
        many: That for a great many.
        one_alone: The form `one` goes with no other number.
    """

    count: int | None = None
    one: int = 0
    many: int = 1
    one_alone: bool = True

    @classmethod
    def of(cls, header: str) -> "Plurals":
        """The forms that a header names, else those of English without their count."""
        return cls.by_rule(header_value(header, "Plural-Forms"))

    @classmethod
    def by_rule(cls, rule: str) -> "Plurals":
        """The forms of a rule such as `nplurals=2; plural=(n != 1);`."""
        count, formula = re.search(r"nplurals\s*=\s*(\d+)", rule), re.search(r"plural\s*=\s*([^;]+)", rule)
        try:
            forms = None if formula is None else _forms(c2py(formula[1].strip()))
        except (ValueError, ArithmeticError, RecursionError):  # it is none
            forms = None
        if count is None or forms is None:
            return cls()
        return cls(int(count[1]), forms[1], forms[_MANY], forms.count(forms[1]) == 1)

    def is_singular(self, form: int, singular: str, plural: str) -> bool:
        """Whether a form translates the singular: the one for one thing, unless it has to show other numbers as well.

        Args:
            singular, plural: The source: `one file` shows no number, `%d file` does.
        """
        if form != self.one or form == self.many:
            return False
        return self.one_alone or sorted(placeholders(singular)) == sorted(placeholders(plural))


def rule_of(language: str) -> str:
    """The value of `Plural-Forms` for a language, such as `pt-BR`: that which its translators use, else CLDR's.

    Raises:
        UsageError: Unicode's CLDR does not know the language.
    """
    from babel import Locale, UnknownLocaleError
    from babel.messages.plurals import PLURALS
    from babel.plural import to_gettext

    subtags = language.replace("-", "_").split("_")
    for name in (f"{subtags[0].lower()}_{subtags[-1].upper()}", subtags[0].lower()):
        if name in PLURALS:
            return "nplurals={}; plural={};".format(*PLURALS[name])
    try:
        rule = Locale(subtags[0].lower()).plural_form
    except UnknownLocaleError as error:
        unknown = f"no plural forms are known for the language {language}; write the Plural-Forms into the header"
        raise UsageError(unknown) from error
    categories = _forms(rule)
    for count, formula in (PLURALS[name] for name in ("en", "fr", "ja")):  # CLDR's would say the same at length
        if len(set(categories)) == count == len(set(zip(categories, _forms(c2py(formula)), strict=True))):
            return f"nplurals={count}; plural={formula};"
    return to_gettext(rule)


def _forms(rule: Callable[[int], object]) -> list[Any]:
    """What a rule gives to each number."""
    return [rule(number) for number in range(_MANY + 1)]
