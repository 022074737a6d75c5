"""XLIFF 1.2 and 2: units without a target, and those that are said to be new or translated by machine."""

from copy import deepcopy
from pathlib import Path
from typing import IO, Any

from ..config import DataConfig
from ..errors import DataError
from ..formats.xliff import CODES
from ..formats.xml import children, local_name, parse_tree, write_tree
from .document import Fields
from .inline import Inline

_OPEN_STATES = frozenset({"new", "needs-translation", "initial"})
_BY_MACHINE = {"state": "needs-review-translation", "state-qualifier": "mt-suggestion"}
"""Attributes of a target of XLIFF 1.2 that nobody has looked at."""
_BY_MACHINE_2 = {"state": "translated", "subState": "tfm:machine"}
"""Attributes of a segment of XLIFF 2; a person makes of it `reviewed` or `final`."""


class XliffDocument:
    """Fills units, or the segments of a unit.

    Args:
        path: The file.
        config: `tgt_column` may name the target language of a file that does not.

    Raises:
        DataError: It cannot be read, has no units, or lacks its target language.
    """

    def __init__(self, path: Path, config: DataConfig) -> None:
        self._tree = parse_tree(path)
        self.fields = Fields()
        root = self._tree.getroot()
        units = list(root.iter("{*}trans-unit", "{*}unit"))
        if not units:
            raise DataError(f"{path}: no <trans-unit> (XLIFF 1.2) and no <unit> (XLIFF 2) in it")
        _name_language(path, root, config)
        parts = [part for unit in units if _is_translatable(unit) for part in children(unit, "segment") or [unit]]
        for part in parts:
            if children(part, "source") and _is_open(part):
                self._add(part)
        self.remark = f"{path}: {len(self.fields):,} of {len(parts):,} segments are empty, new or by machine"

    def _add(self, part: Any) -> None:
        segmented = children(part, "seg-source")
        marks = [one for one in segmented[0].iter() if local_name(one) == "mrk"] if segmented else []
        if marks:
            target = _target(part, segmented[0])
            for mark in marks:
                goes_to = next(one for one in target.iter() if one.get("mid") == mark.get("mid") and _is_mark(one))
                self._add_segment(part, mark, goes_to)
        else:
            self._add_segment(part, children(part, "source")[0], None)

    def _add_segment(self, part: Any, source: Any, goes_to: Any) -> None:
        inline = Inline(source, CODES)

        def put(text: str) -> bool:
            target = _target(part, None) if goes_to is None else goes_to
            if not inline.put(text, target):
                return False
            if local_name(part) == "segment":
                part.attrib.update(_BY_MACHINE_2)
            else:
                _target(part, None).attrib.update(_BY_MACHINE)
            return True

        self.fields.add(inline.text, put)

    def save(self, stream: IO[bytes]) -> None:
        """Writes the file."""
        write_tree(self._tree, stream)


def _name_language(path: Path, root: Any, config: DataConfig) -> None:
    """Sees to it that XLIFF 2 names the language of its targets, as it must."""
    if root.get("version", "").startswith("1") or root.get("trgLang"):
        return
    if config.tgt_column == "tgt":
        raise DataError(f"{path} does not name its target language (trgLang); name it: --tgt-column de")
    root.set("trgLang", config.tgt_column)


def _is_translatable(unit: Any) -> bool:
    said = (one.get("translate") for one in (unit, *unit.iterancestors()))
    return next((value for value in said if value), "yes") != "no"


def _is_mark(element: Any) -> bool:
    return local_name(element) == "mrk"


def _is_open(part: Any) -> bool:
    targets = children(part, "target")
    if not targets or not "".join(targets[0].itertext()).strip():
        return True
    target = targets[0]
    by_machine = target.get("state-qualifier") == "mt-suggestion" or part.get("subState") == _BY_MACHINE_2["subState"]
    reviewed = {target.get("state"), part.get("state")} & {"final", "signed-off", "reviewed"}
    return target.get("state", part.get("state")) in _OPEN_STATES or (by_machine and not reviewed)


def _target(part: Any, like: Any) -> Any:
    """The target of a unit; made where there is none.

    Args:
        part: A unit, or a segment.
        like: The segmented source, whose marks the target gets; None if it is not segmented.
    """
    found = children(part, "target")
    target = found[0] if found else None
    if target is None:
        before = (children(part, "seg-source") or children(part, "source"))[0]
        target = before.makeelement(before.tag.removesuffix(local_name(before)) + "target")
        target.tail = before.tail  # `addnext` takes the tail along
        before.addnext(target)
    if like is not None:
        target[:] = [deepcopy(one) for one in like]
        target.text = like.text
    return target
