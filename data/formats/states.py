"""What translation tools say of a segment: whether a person stands behind its translation, or it waits for one.

Trados, memoQ and Phrase have attributes of their own in XLIFF 1.2; other tools (MateCat, Weblate, OmegaT, Okapi) use
those of the standard.
"""

import re
from dataclasses import dataclass, replace

from .xml import Element

BY_MACHINE_TMX = "MT!"
"""The name that tools write into a memory for a machine."""
OURS = "tfm"
_CREATED = {"changeid", "creationid", "creationtool"}
_TRADOS_FINAL = frozenset({"Translated", "ApprovedTranslation", "ApprovedSignOff"})
_TRADOS_MACHINE = frozenset({"mt", "nmt", "amt", "source", "not-translated"})
"""Origins of a text that nobody has written: machines, and copies of the source."""
_MEMOQ_FINAL = re.compile(r".*Confirmed|Proofread.*|Translated|Reviewed.*")
_MEMOQ_MACHINE = frozenset({"MachineTranslated", "NotStarted"})
_PHRASE_MACHINE = frozenset({"mt", "nt"})
_MACHINE = frozenset({"mt-suggestion", "leveraged-mt"})
_UNREVIEWED = re.compile(r"(mt|tm)-suggestion|leveraged-mt|fuzzy-match|rejected-.*")
"""Qualifiers of a state that nobody has confirmed."""
_CONFIRMED = frozenset({"translated", "final", "signed-off"})
_CONFIRMED_2 = frozenset({"reviewed", "final"})
_UNTRANSLATED = frozenset({"new", "initial", "needs-translation"})
_MACHINE_2 = re.compile(r".*:(machine|mt)\b.*", re.IGNORECASE)
"""Sub-states of XLIFF 2, which each tool names."""


@dataclass(frozen=True)
class State:
    """What is said of a translation.

    Attributes:
        name: As the tool calls it.
        is_final: It is a translation to learn from.
        is_open: It may be replaced: a machine made it and nobody has confirmed it, or it is none.
    """

    name: str
    is_final: bool
    is_open: bool


def state_of(unit: Element, part: Element, target: Element | None, mark: str | None, *, is_empty: bool) -> State:
    """The state of a translation in XLIFF.

    Args:
        part: The segment of the unit, or the unit.
        mark: The number of the sentence in the unit, where a tool has marked sentences.
        is_empty: There is no translation yet.
    """
    own = trados_segment(unit, mark)
    if own is not None:
        state, locked = _of_trados(own), own.get("locked") == "true"
    elif "mq:status" in part.attributes:
        state, locked = _of_memoq(part), part.get("mq:locked") == "locked"
    elif "m:confirmed" in part.attributes:
        state, locked = _of_phrase(part), part.get("m:locked") == "true"
    elif part.local_name == "segment":
        state, locked = _of_version_2(part), False
    else:
        state, locked = _of_version_1(part, target), part.get("approved") == "yes"
    if is_empty:
        return State("empty", False, not locked)
    return replace(state, is_open=state.is_open and not locked)


def trados_segment(unit: Element, mark: str | None) -> Element | None:
    """What Trados says of a sentence: `<sdl:seg>`."""
    return next((one for all_ in unit.children("seg-defs") for one in all_.elements if one.get("id") == mark), None)


def _of_trados(segment: Element) -> State:
    said, origin = segment.get("conf"), segment.get("origin")
    is_final, by_machine = said in _TRADOS_FINAL, origin in _TRADOS_MACHINE
    name = said or "not translated"
    is_told = by_machine and origin != "not-translated"
    return State(f"{name} ({origin})" if is_told else name, is_final, by_machine and not is_final)


def _of_memoq(unit: Element) -> State:
    said = unit.get("mq:status")
    return State(said or "no status", bool(_MEMOQ_FINAL.fullmatch(said)), said in _MEMOQ_MACHINE)


def _of_phrase(unit: Element) -> State:
    is_final, origin = unit.get("m:confirmed") not in ("", "0"), unit.get("m:trans-origin").lower()
    by_machine = origin in _PHRASE_MACHINE and unit.get("m:level-edited") != "true"
    name = "confirmed" if is_final else f"not confirmed ({origin})" if by_machine else "not confirmed"
    return State(name, is_final, by_machine and not is_final)


def _of_version_1(unit: Element, target: Element | None) -> State:
    approved = unit.get("approved")
    state, qualifier = ("", "") if target is None else (target.get("state"), target.get("state-qualifier"))
    waits = state in _UNTRANSLATED or state.startswith("needs-") or approved == "no"
    is_final = not waits and (state in _CONFIRMED or approved == "yes" or not _UNREVIEWED.fullmatch(qualifier))
    is_open = state in _UNTRANSLATED or (qualifier in _MACHINE and not is_final)
    details = ", ".join(filter(None, (qualifier, {"yes": "approved", "no": "not approved"}.get(approved))))
    return State(_named(state, details), is_final, is_open)


def _named(state: str, details: str) -> str:
    return f"{state or 'without a state'} ({details})" if details else state or "without a state"


def _of_version_2(segment: Element) -> State:
    state, more = segment.get("state"), segment.get("subState")
    by_machine = bool(_MACHINE_2.fullmatch(more)) and state not in _CONFIRMED_2
    untranslated = state in _UNTRANSLATED
    return State(_named(state, more), not by_machine and not untranslated, by_machine or untranslated)


def unfinished(unit: Element) -> str:
    """What Trados says of a unit of a memory that nobody has confirmed; empty for other units."""
    said = (one.whole_text.strip() for one in unit.children("prop") if one.get("type") == "x-ConfirmationLevel")
    return next((level for level in said if level not in _TRADOS_FINAL), "")


def is_by_machine(unit: Element, variant: Element) -> bool:
    """Whether a machine made a variant in a memory, and nobody has changed it since.

    Where no variant of a unit says who made it, what the unit says counts.
    """
    one = variant
    if not any(other.attributes.keys() & _CREATED for other in unit.children("tuv")):
        one = unit
    who = one.get("changeid") or one.get("creationid")
    return who == BY_MACHINE_TMX or (one.get("creationtool") == OURS and not one.get("changeid"))
