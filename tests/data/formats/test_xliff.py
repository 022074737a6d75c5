"""XLIFF of both generations."""

import pytest
from helpers.tables import pairs_of
from helpers.written_files import Write

from tfm.data.config import DataConfig
from tfm.data.corpus import open_spec
from tfm.system.errors import DataError

OLD = """<?xml version="1.0"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="a" source-language="en" target-language="de-DE" datatype="plaintext"><header/><body><group>
<trans-unit id="1"><source>Open <g id="1">file</g><x id="2"/>.</source><target>Datei öffnen.</target>
  <alt-trans><source>Open.</source><target>Auf.</target></alt-trans></trans-unit>
<trans-unit id="2"><source>Close.</source></trans-unit></group>
<trans-unit id="3"><source>Save.</source><target state="needs-translation">Save.</target></trans-unit>
<trans-unit id="4"><source>One. Two.</source>
  <seg-source><mrk mtype="seg" mid="0">One.</mrk> <mrk mtype="seg" mid="1">Two.</mrk></seg-source>
  <target><mrk mtype="seg" mid="0">Eins.</mrk> <mrk mtype="seg" mid="1">Zwei.</mrk></target></trans-unit>
</body></file></xliff>"""
OLD_PAIRS = [("Open file.", "Datei öffnen."), ("", ""), ("", ""), ("One.", "Eins."), ("Two.", "Zwei.")]

NEW = """<?xml version="1.0"?>
<xliff version="2.0" srcLang="en" trgLang="de" xmlns="urn:oasis:names:tc:xliff:document:2.0"><file id="f">
<unit id="1"><segment state="translated"><source>Open <pc id="1">file</pc>.</source><target>Datei öffnen.</target>
</segment><ignorable><source> </source></ignorable>
<segment><source>Now.</source><target>Jetzt.</target></segment></unit>
<unit id="2"><segment state="initial"><source>Close.</source><target>Close.</target></segment></unit>
</file></xliff>"""


@pytest.mark.parametrize("name", ["a.xlf", "a.sdlxliff"])
def test_version_1_2(write: Write, name: str) -> None:
    assert pairs_of(write(name, OLD)) == OLD_PAIRS


def test_version_2(write: Write) -> None:
    assert pairs_of(write("a.xliff", NEW)) == [("Open file.", "Datei öffnen."), ("Now.", "Jetzt."), ("", "")]


def test_what_is_not_reviewed_or_has_no_partner_is_no_pair(write: Write) -> None:
    review = OLD.replace('state="needs-translation"', 'state="needs-review-translation"')
    assert pairs_of(write("a.xlf", review)) == OLD_PAIRS
    assert pairs_of(write("b.xlf", OLD.replace('id="1"><source>Open', 'id="1" approved="no"><source>Open')))[0] == (
        "",
        "",
    )
    partly = OLD.replace(' <mrk mtype="seg" mid="1">Zwei.</mrk>', "")
    assert pairs_of(write("c.xlf", partly))[-2:] == [("One.", "Eins."), ("", "")]


def test_several_languages_in_a_file_are_told(write: Write) -> None:
    other = OLD.replace("</file>", '</file><file source-language="en" target-language="fr"><body>').replace(
        "</xliff>", "<trans-unit><source>a</source><target>b</target></trans-unit></body></file></xliff>"
    )
    path = write("a.xlf", other)
    with pytest.raises(DataError, match=r"from en to de-DE, and further on from en to fr; name the languages"):
        pairs_of(path)
    assert pairs_of(path, DataConfig(tgt_language="fr")) == [("a", "b")]
    assert pairs_of(path, DataConfig(src_language="en", tgt_language="de")) == OLD_PAIRS
    (remark,) = open_spec(str(path), DataConfig(tgt_language="fr")).remarks
    assert (
        "en to fr; segments to learn from: 1 without a state" in remark and "5 from en to de-DE are left out" in remark
    )
    unnamed = OLD.replace(' target-language="de-DE"', "")
    assert pairs_of(write("b.xlf", unnamed), DataConfig(src_column="en", tgt_column="de")) == OLD_PAIRS


def test_languages_may_be_named_and_turned_round(write: Write) -> None:
    path = write("a.xlf", OLD)
    assert pairs_of(path, DataConfig(src_column="en", tgt_column="de")) == OLD_PAIRS
    assert pairs_of(path, DataConfig(src_language="de", tgt_language="en")) == [(tgt, src) for src, tgt in OLD_PAIRS]
    with pytest.raises(DataError, match=r"a\.xlf: from en to de-DE, not from en to fr"):
        pairs_of(path, DataConfig(src_language="en", tgt_language="fr"))


def test_a_file_without_units_has_no_pairs(write: Write) -> None:
    assert pairs_of(write("a.xlf", "<xliff/>")) == []
    with pytest.raises(DataError, match=r"b\.xlf:1: its outermost element is <tmx>, not <xliff>"):
        pairs_of(write("b.xlf", "<tmx/>"))
