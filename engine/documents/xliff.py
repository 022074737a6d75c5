"""XLIFF 1.2 and 2: units without a target, and those that are said to be new or translated by machine."""

from copy import deepcopy
from pathlib import Path
from typing import IO, Any

from ...data.config import DataConfig
from ...data.formats.xliff import CODES, refuse_other_languages
from ...data.formats.xml import children, local_name, parse_tree, write_tree
from ...system.errors import DataError
from .document import Fields
from .inline import Inline

_OPEN_STATES = frozenset({"new", "needs-translation", "initial"})
_BY_MACHINE = {"state": "needs-review-translation", "state-qualifier": "mt-suggestion"}
"""Attributes of a target of XLIFF 1.2 that nobody has looked at."""
_BY_MACHINE_2 = {"state": "translated", "subState": "tfm:machine"}
"""Attributes of a segment of XLIFF 2; a person makes of it `reviewed` or `final`."""


class XliffDocument:
    """Fills units, or the segments of a unit. The settings name the target language if the file does not."""

    def __init__(self, path: Path, config: DataConfig) -> None:
        self._tree = parse_tree(path)
        self.fields = Fields()
        root = self._tree.getroot()
        units = list(root.iter("{*}trans-unit", "{*}unit"))
        if not units:
            raise DataError(f"{path}: no <trans-unit> (XLIFF 1.2) and no <unit> (XLIFF 2) in it")
        refuse_other_languages(path, units, config)
        _name_language(path, root, config)
        named = [root.get("trgLang"), *(file.get("target-language") for file in root.iter("{*}file"))]
        self.fields.language = next(filter(None, named), "")
        parts = [part for unit in units if _is_translatable(unit) for part in children(unit, "segment") or [unit]]
        for part in parts:
            if children(part, "source") and part.get("approved") != "yes":
                self._add(part)
        self.remark = f"{path}: {len(self.fields):,} segments are empty, new or by machine"

    def _add(self, part: Any) -> None:
        segmented = children(part, "seg-source")
        marks = {one.get("mid", ""): one for one in segmented[0].iter() if _is_mark(one)} if segmented else {}
        if not marks:
            if _is_open(part, children(part, "target")):
                self._add_text(part, Inline(children(part, "source")[0], CODES))
            return
        for name, mark in marks.items():
            there = [one for target in children(part, "target") for one in target.iter() if one.get("mid") == name]
            if not "".join("".join(one.itertext()) for one in there).strip() or _is_open(
                part, children(part, "target")
            ):
                self._add_mark(part, segmented[0], name, Inline(mark, CODES))

    def _add_text(self, part: Any, inline: Inline) -> None:
        def put(text: str) -> bool:
            new = _new_target(part)
            if not inline.put(text, new):
                return False
            old = children(part, "target")
            if old:
                new.attrib.update(old[0].attrib)
                new.tail = old[0].tail
                part.replace(old[0], new)
            else:
                _insert_target(part, new)
            _mark_as_by_machine(part, new)
            return True

        self.fields.add(inline.text, put)

    def _add_mark(self, part: Any, segmented: Any, name: str, inline: Inline) -> None:
        def put(text: str) -> bool:
            new = segmented.makeelement(segmented.tag)
            if not inline.put(text, new):
                return False
            target = _segmented_target(part, segmented)
            mark = next(one for one in target.iter() if _is_mark(one) and one.get("mid") == name)
            mark.text, mark[:] = new.text, list(new)
            _mark_as_by_machine(part, target)
            return True

        self.fields.add(inline.text, put)

    def save(self, stream: IO[bytes]) -> None:
        """Writes the file."""
        write_tree(self._tree, stream)


def _name_language(path: Path, root: Any, config: DataConfig) -> None:
    """Sees to it that the language of the targets is named, as it must be in XLIFF 2."""
    if root.get("version", "").startswith("1"):
        for file in root.iter("{*}file"):
            if not file.get("target-language") and config.languages[1]:
                file.set("target-language", config.languages[1])
    elif not root.get("trgLang"):
        if not config.languages[1]:
            raise DataError(f"{path} does not name its target language (trgLang); name it: --tgt-language de")
        root.set("trgLang", config.languages[1])


def _is_translatable(unit: Any) -> bool:
    said = (one.get("translate") for one in (unit, *unit.iterancestors()))
    return next((value for value in said if value), "yes") != "no"


def _is_mark(element: Any) -> bool:
    return local_name(element) == "mrk" and element.get("mtype") == "seg"


def _is_open(part: Any, targets: list[Any]) -> bool:
    """Whether a unit or segment is empty, new, or by machine and unreviewed."""
    if not targets or not "".join(targets[0].itertext()).strip():
        return True
    if local_name(part) == "segment":
        return part.get("state") in _OPEN_STATES or all(part.get(key) == v for key, v in _BY_MACHINE_2.items())
    target = targets[0]
    return target.get("state") in _OPEN_STATES or all(target.get(key) == v for key, v in _BY_MACHINE.items())


def _mark_as_by_machine(part: Any, target: Any) -> None:
    if local_name(part) == "segment":
        part.attrib.update(_BY_MACHINE_2)
    else:
        target.attrib.update(_BY_MACHINE)


def _new_target(part: Any) -> Any:
    source = children(part, "source")[0]
    return source.makeelement(source.tag.removesuffix("source") + "target")


def _insert_target(part: Any, target: Any) -> None:
    """Puts a target where it belongs, behind the source."""
    before = (children(part, "seg-source") or children(part, "source"))[0]
    target.tail = before.tail  # `addnext` takes the tail along
    before.addnext(target)


def _segmented_target(part: Any, segmented: Any) -> Any:
    """The target of a unit with a mark for each of its source's; those that were not there are empty."""
    target = next(iter(children(part, "target")), None)
    there = {one.get("mid"): one for one in target.iter() if _is_mark(one)} if target is not None else {}
    if target is not None and set(there) >= {one.get("mid") for one in segmented.iter() if _is_mark(one)}:
        return target
    new = _new_target(part)
    new.text, new[:] = segmented.text, [deepcopy(one) for one in segmented]
    for mark in [one for one in new.iter() if _is_mark(one)]:
        old = there.get(mark.get("mid"))
        mark.text, mark[:] = (None, []) if old is None else (old.text, list(old))
    if target is None:
        _insert_target(part, new)
    else:
        new.attrib.update(target.attrib)
        new.tail = target.tail
        part.replace(target, new)
    return new
