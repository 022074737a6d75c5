"""Real files of translators: what nobody touched comes out byte for byte. Needs a folder of such files."""

import gettext
import io
import os
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

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
        output: The suffix of what tfm writes.
        accepts: Whether the format's own program finds no fault in a file.
        texts: The translations that this program finds in a file: those that have to be pairs, and all of them.
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


def _msgfmt_accepts(path: Path) -> bool:
    command = ["msgfmt", "--check-format", "--use-fuzzy", "-o", os.devnull, path]
    return subprocess.run(command, capture_output=True).returncode == 0


def _texts_of_msgfmt(path: Path) -> tuple[set[str], set[str]]:
    converted = subprocess.run(["msgconv", "--to-code=UTF-8", path], capture_output=True)
    source = path.read_bytes() if converted.returncode else converted.stdout  # it refuses charset=CHARSET
    compiled = subprocess.run(["msgfmt", "-o", "-", "-"], input=source, capture_output=True, check=True).stdout
    rule = b"nplurals=INTEGER; plural="  # of a template: Python refuses it
    compiled = compiled.replace(rule + b"EXPRESSION", rule + b"0000000000")
    catalog: dict[object, str] = vars(gettext.GNUTranslations(io.BytesIO(compiled)))["_catalog"]
    catalog.pop("", None)
    texts = {key: text.replace("plural=0000000000", "plural=EXPRESSION") for key, text in catalog.items()}
    return {text for key, text in texts.items() if isinstance(key, str)}, set(texts.values())


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
REFERENCES = {".po": PO, ".pot": PO}
"""By suffix."""


def _saved(document: Document) -> bytes:
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def _faults(path: Path, output: Path, reference: Reference) -> set[str]:
    """What is wrong with what tfm makes of a file; `refused` if tfm and the format's program refuse it."""
    accepted = reference.accepts(path)
    try:
        document = open_document(path, output, DataConfig())
    except DataError as error:  # a text in no known charset is none, whatever programs do with its bytes
        return {"refused by tfm alone" if accepted and "declares no charset" not in str(error) else "refused"}
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
    if accepted and path.suffix == reference.output:
        needed, possible = reference.texts(path)
        found = {tgt for _, tgt in open_spec(str(path), DataConfig()).pairs() if tgt}
        if not needed <= found or not (found <= possible or _SYSTEM.search(raw)):
            faults.add("other pairs")
    return faults


@pytest.mark.parametrize("reference", [pytest.param(PO, id="po")])
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
        faults = _faults(path, tmp_path / f"out{reference.output}", reference)
        found[path.relative_to(real_files).parts[0]].update(faults or {"right"})
        wrong += [f"{path}: {fault}" for fault in sorted(faults - {"refused"})]
    for producer, counts in found.items():
        record_property("figure", f"{producer}: {', '.join(f'{count} {what}' for what, count in counts.items())}")
    assert files
    assert not wrong, "\n".join(wrong)
