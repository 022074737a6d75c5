"""Real files of translators: what nobody touched comes out byte for byte. Needs a folder of such files."""

import gettext
import io
import os
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from tfm.data.config import DataConfig
from tfm.data.corpus import open_spec
from tfm.engine.documents import open_document
from tfm.engine.documents.document import Document
from tfm.system.errors import DataError

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]


@pytest.fixture(scope="session")
def real_files() -> Path:
    """A folder that has a folder for each producer of files, such as `gettext` or `python-docs-es`."""
    folder = os.environ.get("TFM_FILES")
    if not folder:
        pytest.skip("needs real files: set TFM_FILES to a folder that has one for each producer of files")
    return Path(folder)


@dataclass(frozen=True)
class Reference:
    """What is known of a format without tfm.

    Attributes:
        output: The suffix of what tfm writes; that of the file if empty.
        accepts: Whether the format's own program finds no fault in a file.
        texts: The translations that this program finds in a file: those that have to be pairs, and all of them. White
            space does not count.
        pieces: Cuts a file into pieces that together are the file.
        is_open: Whether there is something to fill in a piece.
        program: Which has to be installed.
    """

    output: str
    accepts: Callable[[Path], bool]
    texts: Callable[[Path], tuple[set[str], set[str]]]
    pieces: Callable[[bytes], list[bytes]]
    is_open: Callable[[bytes], bool]
    program: str
    languages: Callable[[Path], DataConfig] = lambda path: DataConfig()


def _msgfmt_accepts(path: Path) -> bool:
    command = ["msgfmt", "--check-format", "--use-fuzzy", "-o", os.devnull, path]
    return subprocess.run(command, capture_output=True).returncode == 0


class _Catalog(gettext.GNUTranslations):
    """A compiled file. What names no charset is UTF-8, as msgfmt takes it."""

    def _parse(self, fp: Any) -> None:
        self._charset = "utf-8"
        super()._parse(fp)  # pyright: ignore[reportAttributeAccessIssue]


def _texts_of_msgfmt(path: Path) -> tuple[set[str], set[str]]:
    converted = subprocess.run(["msgconv", "--to-code=UTF-8", path], capture_output=True)
    source = path.read_bytes() if converted.returncode else converted.stdout  # it refuses charset=CHARSET
    compiled = subprocess.run(["msgfmt", "-o", "-", "-"], input=source, capture_output=True, check=True).stdout
    rule = b"\nPlural-Forms: nplurals=INTEGER; plural="  # of a template: Python refuses it
    compiled = compiled.replace(rule + b"EXPRESSION", rule + b"0000000000")
    catalog: dict[object, str] = vars(_Catalog(io.BytesIO(compiled)))["_catalog"]
    catalog.pop("", None)
    return {text for key, text in catalog.items() if isinstance(key, str)}, set(catalog.values())


_SYSTEM = re.compile(rb"%<PRI|%[-+ #0-9.]*I")
"""In a message that is another text on each system: it is not among the texts of a compiled file that Python reads."""
_EMPTY = re.compile(rb'^\s*msgstr(\[\d+\])?\s+""\s*(?=msgstr|#|$(?![\n\r]*\s*"))', re.MULTILINE)


def _is_open_message(piece: bytes) -> bool:
    is_header = re.search(rb'^msgid ""\s*msgstr', piece, re.MULTILINE)
    return bool(is_header or _EMPTY.search(piece) or re.search(rb"^#[,=].*\bfuzzy\b", piece, re.MULTILINE))


PO = Reference(
    output=".po",
    accepts=_msgfmt_accepts,
    texts=_texts_of_msgfmt,
    pieces=lambda raw: re.split(rb"(\n(?:[ \t\r]*\n)+)", raw),
    is_open=_is_open_message,
    program="msgfmt",
)


def _root(path: Path) -> Any:
    return etree.parse(str(path), etree.XMLParser(resolve_entities=False, huge_tree=True)).getroot()


def _lxml_accepts(path: Path) -> bool:
    try:
        return _root(path) is not None
    except etree.XMLSyntaxError:
        return False


_NOT_CONFIRMED = re.compile(r"new|initial|needs-.*|mt-.*|tm-.*|leveraged-mt|fuzzy.*|rejected.*")


def _texts_of_lxml(path: Path) -> tuple[set[str], set[str]]:
    """The targets of XLIFF 1.2 and 2 with nothing but text in them; where no tool has states of its own."""
    root, needed = _root(path), set[str]()
    has_own = any(name in path.read_bytes() for name in (b"sdl:seg", b"mq:status", b"m:confirmed", b"<seg-source"))
    for target in root.iter("{*}target"):
        part = target.getparent()
        texts = [" ".join(one.split()) for one in "".join(target.itertext()).split("\n")]
        states = [part.get("state", ""), target.get("state", ""), target.get("state-qualifier", "")]
        is_unit = etree.QName(part).localname in ("trans-unit", "segment") and not len(target)
        has_source = bool("".join(part.xpath("string(*[local-name()='source'])")).strip())
        final = part.get("approved") != "no" and not any(map(_NOT_CONFIRMED.fullmatch, states))
        if is_unit and final and has_source and len(texts) == 1 and texts[0] and not has_own:
            needed.add(texts[0])
    return needed, set()


def _languages_of_xliff(path: Path) -> DataConfig:
    """The first pair that is named for a unit, and German where none names its target."""
    units = list(_root(path).iter("{*}trans-unit", "{*}unit"))
    named = [(_around(one, "source-language", "srcLang"), _around(one, "target-language", "trgLang")) for one in units]
    src, tgt = next((pair for pair in named if pair[1]), (named[0][0] if named else "", "de"))
    try:
        return DataConfig(src_language=src, tgt_language=tgt)
    except ValueError:  # some files try what tools make of codes that are none
        return DataConfig()


def _around(element: Any, *names: str) -> str:
    return next((one.get(name) for one in element.iterancestors() for name in names if one.get(name)), "")


def _languages_of_tmx(path: Path) -> DataConfig:
    """The language of the first variant, and the first other one; German where there is none."""
    codes = [next(iter(one.xpath("@xml:lang | @lang")), "") for one in _root(path).iter("{*}tuv")]
    src = codes[0] if codes else "en"
    others = [code for code in codes if code[:2].lower() != src[:2].lower()]
    regions = [code for code in codes if code.lower() != src.lower()]
    return DataConfig(src_language=src, tgt_language=[*others, *regions, "de"][0])


_FILLED = re.compile(
    rb"""\s*<(?:\w+:)?target\b(?:[^>"']|"[^"]*"|'[^']*')*/>
    |\s*<(?:\w+:)?target\b(?:[^>"']|"[^"]*"|'[^']*')*>.*?</(?:\w+:)?target\s*>
    |\s*<tuv\b[^>]*\bcreationid="MT!".*?</tuv>
    |\s(?:state|subState|target-language|trgLang|conf|origin|origin-system|percent|text-match|struct-match|mq:status
          |m:confirmed|m:trans-origin)\s*=\s*(?:"[^"]*"|'[^']*')""",
    re.DOTALL | re.VERBOSE,
)
"""Targets, new variants, and the marks of tools."""


def _beside_what_is_filled(raw: bytes) -> list[bytes]:
    return _FILLED.split(raw.decode("utf-16").encode() if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else raw)


XLIFF = Reference(
    output="",
    accepts=_lxml_accepts,
    texts=_texts_of_lxml,
    pieces=lambda raw: [b"".join(_beside_what_is_filled(raw))],
    is_open=lambda piece: False,
    program="python3",
    languages=_languages_of_xliff,
)
TMX = replace(XLIFF, texts=lambda path: (set(), set()), languages=_languages_of_tmx)
REFERENCES = {
    ".po": PO,
    ".pot": PO,
    ".tmx": TMX,
    **dict.fromkeys((".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff", ".txlf"), XLIFF),
}
"""By suffix."""


def _saved(document: Document) -> bytes:
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def _faults(path: Path, output: Path, reference: Reference) -> set[str]:
    """What is wrong with what tfm makes of a file; `refused` if tfm and the format's program refuse it."""
    accepted = reference.accepts(path)
    config = reference.languages(path) if accepted else DataConfig()
    try:
        document = open_document(path, output, config)
    except DataError as error:  # a text in no known charset is none, whatever programs do with its bytes
        meant = any(reason in str(error) for reason in ("declares no charset", "has no message"))
        return {"refused by tfm alone" if accepted and not meant else "refused"}
    raw, faults = path.read_bytes(), set[str]()
    if _saved(document) != raw:
        faults.add("other bytes with nothing filled")
    document.fields.fill(document.fields.texts)
    output.write_bytes(_saved(document))
    before, after = reference.pieces(raw), reference.pieces(output.read_bytes())
    if len(before) != len(after) or any(
        one != other and not reference.is_open(one) for one, other in zip(before, after, strict=False)
    ):
        faults.add("other bytes beside what was filled")
    if accepted and not reference.accepts(output):
        faults.add("what was filled is not accepted")
    if accepted and path.suffix == (reference.output or path.suffix):
        needed, possible = ({" ".join(text.split()) for text in texts} for texts in reference.texts(path))
        found = {" ".join(tgt.split()) for _, tgt in open_spec(str(path), config).pairs() if tgt}
        if not needed <= found or (possible and not (found <= possible or _SYSTEM.search(raw))):
            faults.add("other pairs")
    return faults


@pytest.mark.parametrize(
    "reference", [pytest.param(PO, id="po"), pytest.param(XLIFF, id="xliff"), pytest.param(TMX, id="tmx")]
)
def test_only_what_is_filled_changes(
    real_files: Path, tmp_path: Path, reference: Reference, record_property: Callable[[str, object], None]
) -> None:
    """Each file: untouched; with each text filled with itself; and as pairs to train on."""
    if shutil.which(reference.program) is None:
        pytest.skip(f"{reference.program} is not installed")
    files = [path for path in sorted(real_files.rglob("*")) if REFERENCES.get(path.suffix) is reference]
    found: dict[str, Counter[str]] = defaultdict(Counter)
    wrong: list[str] = []
    for path in files:
        faults = _faults(path, tmp_path / f"out{reference.output or path.suffix}", reference)
        found[path.relative_to(real_files).parts[0]].update(faults or {"right"})
        wrong += [f"{path}: {fault}" for fault in sorted(faults - {"refused"})]
    for producer, counts in found.items():
        record_property("figure", f"{producer}: {', '.join(f'{count} {what}' for what, count in counts.items())}")
    if not files:
        pytest.skip("no file of this kind is there")
    assert not wrong, "\n".join(wrong)
