"""What tools say of a segment: which are pairs, and which may be filled in."""

from pathlib import Path

import pytest
from helpers.tables import pairs_of
from helpers.written_files import Write

from tfm.data.config import DataConfig
from tfm.data.corpus import open_spec
from tfm.data.formats.states import State
from tfm.data.formats.xliff import KIND, segments_of
from tfm.data.formats.xml import XmlFile

BOTH, PAIR, OPEN, NEITHER = (True, True), (True, False), (False, True), (False, False)
NAMESPACES = (
    'xmlns:sdl="http://sdl.com/FileTypes/SdlXliff/1.0" xmlns:mq="MQXliff" xmlns:m="http://www.memsource.com/mxlf/2.0"'
)
TEXTS = "<source>a</source><target>b</target>"


def state(write: Write, unit: str) -> State:
    """The state of the one segment of a unit."""
    path = write("a.xlf", f"<xliff {NAMESPACES}><file>{unit}</file></xliff>")
    return next(one.state for element in XmlFile(path).elements(KIND) for one in segments_of(element))


def of_trados(attributes: str) -> str:
    marked = "<{0}><mrk mtype='seg' mid='7'>{1}</mrk></{0}>"
    texts = marked.format("seg-source", "a") + marked.format("target", "b")
    said = f"<sdl:seg-defs><sdl:seg id='7' {attributes}/></sdl:seg-defs>"
    return f"<trans-unit><source>a</source>{texts}{said}</trans-unit>"


def of_version_1(target: str, unit: str = "") -> str:
    return f"<trans-unit {unit}><source>a</source><target {target}>b</target></trans-unit>"


CASES = {
    of_trados('conf="Translated"'): ("Translated", PAIR),
    of_trados('conf="Translated" origin="mt"'): ("Translated (mt)", PAIR),
    of_trados('conf="ApprovedTranslation" origin="interactive"'): ("ApprovedTranslation", PAIR),
    of_trados('conf="ApprovedSignOff"'): ("ApprovedSignOff", PAIR),
    of_trados('conf="Draft" origin="interactive"'): ("Draft", NEITHER),
    of_trados('conf="Draft" origin="tm" percent="80"'): ("Draft", NEITHER),
    of_trados('conf="Draft" origin="mt" origin-system="x"'): ("Draft (mt)", OPEN),
    of_trados('conf="Draft" origin="nmt" locked="true"'): ("Draft (nmt)", NEITHER),
    of_trados('conf="RejectedTranslation"'): ("RejectedTranslation", NEITHER),
    of_trados('conf="RejectedSignOff"'): ("RejectedSignOff", NEITHER),
    of_trados('origin="source"'): ("not translated (source)", OPEN),
    of_trados(""): ("not translated", NEITHER),
    f'<trans-unit mq:status="ManuallyConfirmed">{TEXTS}</trans-unit>': ("ManuallyConfirmed", PAIR),
    f'<trans-unit mq:status="Reviewer1Confirmed">{TEXTS}</trans-unit>': ("Reviewer1Confirmed", PAIR),
    f'<trans-unit mq:status="Proofread">{TEXTS}</trans-unit>': ("Proofread", PAIR),
    f'<trans-unit mq:status="PartiallyEdited">{TEXTS}</trans-unit>': ("PartiallyEdited", NEITHER),
    f'<trans-unit mq:status="Pretranslated">{TEXTS}</trans-unit>': ("Pretranslated", NEITHER),
    f'<trans-unit mq:status="Rejected">{TEXTS}</trans-unit>': ("Rejected", NEITHER),
    f'<trans-unit mq:status="NotStarted">{TEXTS}</trans-unit>': ("NotStarted", OPEN),
    f'<trans-unit mq:status="MachineTranslated">{TEXTS}</trans-unit>': ("MachineTranslated", OPEN),
    f'<trans-unit mq:status="MachineTranslated" mq:locked="locked">{TEXTS}</trans-unit>': (
        "MachineTranslated",
        NEITHER,
    ),
    f'<trans-unit m:confirmed="1" m:trans-origin="mt">{TEXTS}</trans-unit>': ("confirmed", PAIR),
    f'<trans-unit m:confirmed="2">{TEXTS}</trans-unit>': ("confirmed", PAIR),
    f'<trans-unit m:confirmed="0" m:trans-origin="TM">{TEXTS}</trans-unit>': ("not confirmed", NEITHER),
    f'<trans-unit m:confirmed="0" m:trans-origin="mt">{TEXTS}</trans-unit>': ("not confirmed (mt)", OPEN),
    f'<trans-unit m:confirmed="0" m:trans-origin="mt" m:level-edited="true">{TEXTS}</trans-unit>': (
        "not confirmed",
        NEITHER,
    ),
    f'<trans-unit m:confirmed="0" m:trans-origin="mt" m:locked="true">{TEXTS}</trans-unit>': (
        "not confirmed (mt)",
        NEITHER,
    ),
    of_version_1(""): ("without a state", PAIR),
    of_version_1('state="final"'): ("final", PAIR),
    of_version_1('state="signed-off" state-qualifier="mt-suggestion"'): ("signed-off (mt-suggestion)", PAIR),
    of_version_1('state="translated"', 'approved="no"'): ("translated (not approved)", NEITHER),
    of_version_1('state="new"'): ("new", OPEN),
    of_version_1('state="new"', 'approved="yes"'): ("new (approved)", NEITHER),
    of_version_1('state="needs-translation"'): ("needs-translation", OPEN),
    of_version_1('state="needs-adaptation"'): ("needs-adaptation", NEITHER),
    of_version_1('state="needs-review-translation"'): ("needs-review-translation", NEITHER),
    of_version_1('state="needs-review-translation" state-qualifier="mt-suggestion"'): (
        "needs-review-translation (mt-suggestion)",
        OPEN,
    ),
    of_version_1('state-qualifier="leveraged-mt"'): ("without a state (leveraged-mt)", OPEN),
    of_version_1('state-qualifier="fuzzy-match"'): ("without a state (fuzzy-match)", NEITHER),
    of_version_1('state-qualifier="rejected-grammar"'): ("without a state (rejected-grammar)", NEITHER),
    of_version_1('state-qualifier="exact-match"'): ("without a state (exact-match)", PAIR),
    f"<unit><segment>{TEXTS}</segment></unit>": ("without a state", PAIR),
    f'<unit><segment state="initial">{TEXTS}</segment></unit>': ("initial", OPEN),
    f'<unit><segment state="translated">{TEXTS}</segment></unit>': ("translated", PAIR),
    f'<unit><segment state="translated" subState="tfm:machine">{TEXTS}</segment></unit>': (
        "translated (tfm:machine)",
        OPEN,
    ),
    f'<unit><segment state="translated" subState="x:MT">{TEXTS}</segment></unit>': ("translated (x:MT)", OPEN),
    f'<unit><segment state="final" subState="tfm:machine">{TEXTS}</segment></unit>': ("final (tfm:machine)", PAIR),
    "<trans-unit><source>a</source><target/></trans-unit>": ("empty", OPEN),
    '<trans-unit approved="yes"><source>a</source></trans-unit>': ("empty", NEITHER),
    '<trans-unit mq:status="NotStarted" mq:locked="locked"><source>a</source></trans-unit>': ("empty", NEITHER),
}


@pytest.mark.parametrize("unit", CASES)
def test_states(write: Write, unit: str) -> None:
    name, (is_final, is_open) = CASES[unit]
    assert state(write, unit) == State(name, is_final, is_open)


def test_what_is_not_final_is_no_pair_and_counted(write: Write) -> None:
    units = "".join(unit for unit in CASES if unit.startswith("<trans-unit"))
    path = write("a.xlf", f"<xliff {NAMESPACES}><file source-language='en' target-language='de'>{units}</file></xliff>")
    pairs = pairs_of(path)
    assert pairs.count(("a", "b")) == sum(CASES[unit][1][0] for unit in CASES if unit.startswith("<trans-unit"))
    corpus = open_spec(str(path), DataConfig())
    assert corpus.count() == len(pairs) == units.count("<trans-unit")
    assert corpus.languages == ("en", "de")
    (remark,) = corpus.remarks
    assert "en to de; segments to learn from: 2 confirmed, " in remark
    learnt, left_out = remark.split("; left out: ")
    assert "1 Translated (mt)" in learnt and "1 Draft (mt)" in left_out and "1 MachineTranslated" not in learnt


@pytest.mark.parametrize(
    ("unit", "variant", "by_machine"),
    [
        ("", "", False),
        ("", 'creationid="MT!"', True),
        ("", 'creationid="MT!" changeid="anna"', False),
        ("", 'creationid="anna"', False),
        ("", 'creationtool="tfm"', True),
        ("", 'creationid="x" creationtool="tfm" changeid="anna"', False),
        ('creationid="MT!"', "", True),
        ('creationid="MT!"', 'creationid="anna"', False),
        ('creationid="MT!" changeid="anna"', "", False),
        ('creationtool="OmegaT"', 'changeid="MT!"', True),
    ],
)
def test_memories(tmp_path: Path, unit: str, variant: str, by_machine: bool) -> None:
    variants = f'<tuv xml:lang="en"><seg>a</seg></tuv><tuv xml:lang="de" {variant}><seg>b</seg></tuv>'
    path = tmp_path / "a.tmx"
    path.write_text(f"<tmx><header/><body><tu {unit}>{variants}</tu></body></tmx>")
    assert pairs_of(path) == [("", "") if by_machine else ("a", "b")]
    (remark,) = open_spec(str(path), DataConfig()).remarks
    assert remark.endswith("units to learn from: 0; left out: 1 by machine") == by_machine


def test_memories_of_trados(write: Write) -> None:
    variants = '<tuv xml:lang="en"><seg>a</seg></tuv><tuv xml:lang="de"><seg>b</seg></tuv>'
    levels = "Translated", "Draft", "ApprovedSignOff", "RejectedTranslation"
    units = (f'<tu><prop type="x-ConfirmationLevel">{level}</prop>{variants}</tu>' for level in levels)
    path = write("a.tmx", f"<tmx><body>{''.join(units)}</body></tmx>")
    assert pairs_of(path) == [("a", "b"), ("", ""), ("a", "b"), ("", "")]
    (remark,) = open_spec(str(path), DataConfig()).remarks
    assert remark.endswith("units to learn from: 2; left out: 1 Draft, 1 RejectedTranslation")
