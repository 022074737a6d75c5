"""Messages of programs."""

from pathlib import Path

import polib
import pytest
from helpers.tables import pairs_of
from helpers.written_files import Write

from tfm.data.config import DataConfig
from tfm.data.corpus import open_spec
from tfm.system.errors import DataError

PO = r"""# a comment
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#: main.c:1
msgctxt "menu"
msgid "Open \"%s\"\n"
msgstr "»%s« öffnen\n"

#, fuzzy
msgid "Close"
msgstr "Auf"

msgid "Save"
msgstr ""

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d Datei"
msgstr[1] "%d Dateien"

#~ msgid "Gone"
#~ msgstr "Weg"
"""
PAIRS = [
    ('Open "%s"\n', "»%s« öffnen\n"),
    ("", ""),
    ("", ""),
    ("%d file", "%d Datei"),
    ("%d files", "%d Dateien"),
    ("", ""),
]


def test_what_is_translated_and_not_fuzzy_is_a_pair(write: Write) -> None:
    assert pairs_of(write("a.po", PO)) == PAIRS


def test_a_language_without_a_plural_has_the_plural_alone(write: Write) -> None:
    japanese = PO.replace("nplurals=2; plural=(n != 1)", "nplurals=1; plural=0").replace('msgstr[1] "%d Dateien"\n', "")
    assert ("%d files", "%d Datei") in pairs_of(write("ja.po", japanese))
    assert ("%d file", "%d Datei") not in pairs_of(write("ja.po", japanese))


def test_the_charset_that_a_file_declares_is_taken(write: Write) -> None:
    latin = PO.replace("UTF-8", "ISO-8859-1").encode("latin-1")
    assert pairs_of(write("a.po", latin)) == PAIRS


def test_compiled_messages(write: Write, tmp_path: Path) -> None:
    polib.pofile(str(write("a.po", PO))).save_as_mofile(str(tmp_path / "a.mo"))
    assert sorted(pairs_of(tmp_path / "a.mo")) == sorted(pair for pair in PAIRS if pair[0])


def test_plurals_go_by_the_rule_of_the_file(write: Write) -> None:
    latvian = PO.replace(
        "nplurals=2; plural=(n != 1)", "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2)"
    )
    latvian = latvian.replace('msgstr[1] "%d Dateien"', 'msgstr[1] "%d failu"\nmsgstr[2] "%d nulle"')
    assert ("%d files", "%d failu") in pairs_of(write("lv.po", latvian))
    arabic = PO.replace("nplurals=2; plural=(n != 1)", "nplurals=3; plural=(n==0 ? 0 : n==1 ? 1 : 2)")
    arabic = arabic.replace('msgstr[1] "%d Dateien"', 'msgstr[1] "one"\nmsgstr[2] "many"')
    assert {("%d file", "one"), ("%d files", "many")} <= set(pairs_of(write("ar.po", arabic)))


def test_a_mark_of_byte_order_and_line_ends_of_windows_do_no_harm(write: Write) -> None:
    assert pairs_of(write("a.po", b"\xef\xbb\xbf" + PO.replace("\n", "\r\n").encode())) == PAIRS


def test_a_file_of_a_header_alone_has_no_pairs(write: Write) -> None:
    corpus = open_spec(str(write("a.po", PO[: PO.index("#: main")])), DataConfig())
    assert list(corpus.pairs()) == [] and "0 translated, 0 fuzzy, 0 empty, 0 obsolete" in corpus.remarks[0]
    assert "2 translated, 1 fuzzy, 1 empty, 1 obsolete" in open_spec(str(write("b.po", PO)), DataConfig()).remarks[0]


def test_a_form_that_shows_other_numbers_than_one_is_paired_with_a_source_that_shows_them(write: Write) -> None:
    russian = PO.replace(
        "nplurals=2; plural=(n != 1)", "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10<5 ? 1 : 2)"
    )
    russian = russian.replace('msgstr[1] "%d Dateien"', 'msgstr[1] "%d few"\nmsgstr[2] "%d many"')
    assert ("%d file", "%d Datei") in pairs_of(write("a.po", russian))
    without_number = russian.replace('msgid "%d file"', 'msgid "one file"')
    assert [src for src, _ in pairs_of(write("b.po", without_number)) if "file" in src] == ["%d files"]


def test_damaged_files_are_named(write: Write) -> None:
    with pytest.raises(DataError, match=r"bad\.po:3: nonsense is no keyword of a PO file"):
        pairs_of(write("bad.po", 'msgid "a"\nmsgstr "b"\nnonsense\n'))
    with pytest.raises(DataError, match=r"open\.po:2: the string has no double quote at its end"):
        pairs_of(write("open.po", 'msgid "a"\nmsgstr "b\n'))
    with pytest.raises(DataError, match=r"wrong\.po:10: invalid UTF-8, which the file declares"):
        pairs_of(write("wrong.po", PO.encode("latin-1")))
    with pytest.raises(DataError, match=r"none\.po: it declares charset=FOO-9, which is none"):
        pairs_of(write("none.po", PO.replace("UTF-8", "FOO-9")))
    with pytest.raises(DataError, match=r"empty\.po has no message"):
        pairs_of(write("empty.po", ""))
    with pytest.raises(DataError, match=r"cannot read .*bad\.mo"):
        pairs_of(write("bad.mo", b"\xde\x12\x04\x95abc"))
