"""Documents: empty places are filled in and marked, and nothing else changes."""

import io
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polib
import pytest
from helpers.written_files import Write
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from tfm.data.config import DataConfig
from tfm.data.corpus import open_spec
from tfm.engine.documents import DOCUMENTS, is_document, open_document
from tfm.engine.documents.document import Document, Fields, Review
from tfm.engine.projection import Projection
from tfm.engine.translation import Translation
from tfm.system.errors import DataError, UsageError


def opened(path: Path, **sides: str) -> Document:
    suffix = ".po" if path.suffix == ".pot" else path.suffix
    config = replace(DataConfig(), **sides)
    return open_document(path, path.with_name(f"out{suffix}"), config)


def filled(path: Path, translate: Callable[[str], str] = str.upper, **sides: str) -> str:
    document = opened(path, **sides)
    document.fields.fill([translate(text) for text in document.fields.texts])
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue().decode()


# --- what is inside a field ---


def test_a_field_is_translated_line_by_line_and_keeps_its_white_space() -> None:
    fields, got = Fields(), list[str]()
    fields.add("  one\n\n two \n%s\n", lambda text: got.append(text) is None)
    fields.add("123 - %d", lambda text: got.append(text) is None)
    assert fields.texts == ["one", "two", "%s", "123 - %d"], "what has no letters is the translator's to keep"
    assert fields.fill(["eins", "zwei", "%s", "123 - %d"]) == 0
    assert got == ["  eins\n\n zwei \n%s\n", "123 - %d"]


def test_a_field_without_a_whole_translation_is_left() -> None:
    fields = Fields()
    fields.add("one\ntwo", lambda _: pytest.fail("half a translation"))
    fields.add("three", lambda _: False)
    assert fields.fill(["eins", "", "drei"]) == 2


# --- gettext ---

PO = r"""# Translators of the app.
# Copyright 2026
msgid ""
msgstr ""
"Project-Id-Version: app 1.0\n"
"PO-Revision-Date: 2026-01-01 10:00+0000\n"
"Last-Translator: A <a@example.org>\n"
"Language-Team: German\n"
"Language: de\n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

# of a translator
#. of a programmer
#: app.c:12
#, c-format
msgid "open %s\n"
msgstr ""

#: app.c:13
msgctxt "verb"
msgid "open"
msgstr "öffnen"

#: app.c:14
#, fuzzy
#| msgid "shut"
msgid "close"
msgstr "zu"

#: app.c:15
#, c-format
msgid "one file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

#~ msgid "old"
#~ msgstr "alt"
"""


def test_po_fills_what_is_empty_or_fuzzy_and_marks_it(write: Write, tmp_path: Path) -> None:
    path = write("app.po", PO)
    document = opened(path)
    assert document.fields.texts == ["open %s", "close", "one file", "%d files"]
    assert document.remark.endswith("app.po: 1 translated, 1 fuzzy, 2 empty, 1 obsolete")
    text = filled(
        path, lambda text: text.replace("open", "öffne").replace("file", "Datei").replace("close", "schließen")
    )
    out = tmp_path / "out.po"
    out.write_text(text, encoding="utf-8")
    messages = polib.pofile(str(out))
    found = {message.msgid: message for message in messages}
    assert found["open %s\n"].msgstr == "öffne %s\n" and found["close"].msgstr == "schließen"
    assert found["one file"].msgstr_plural == {0: "one Datei", 1: "%d Dateis"}
    for name in ("open %s\n", "close", "one file"):
        assert found[name].fuzzy and "machine translation, not reviewed" in found[name].tcomment
    assert not found["open"].fuzzy and found["open"].msgstr == "öffnen" and found["open"].msgctxt == "verb"
    assert found["close"].previous_msgid is None
    message = found["open %s\n"]
    assert (message.tcomment.splitlines()[0], message.comment) == ("of a translator", "of a programmer")
    assert message.occurrences == [("app.c", "12")] and "c-format" in message.flags
    assert [one.msgid for one in messages] == ["open %s\n", "open", "close", "one file", "old"]
    assert messages[-1].obsolete and messages.header == "Translators of the app.\nCopyright 2026"
    again = filled(out, lambda text: text)
    assert again.count("machine translation, not reviewed") == 3


@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="gettext is not installed")
def test_msgfmt_finds_nothing_wrong(write: Write, tmp_path: Path) -> None:
    out = tmp_path / "out.po"
    out.write_text(filled(write("app.po", PO), lambda text: text), encoding="utf-8")
    for flags in (["--check"], ["--check", "--use-fuzzy"]):
        done = subprocess.run(["msgfmt", *flags, "-o", "/dev/null", out], capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, done.stderr


def test_a_template_becomes_a_po_and_plurals_without_a_rule_stay_empty(write: Write) -> None:
    template = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=CHARSET\\n"\n\nmsgid "a word"\nmsgstr ""\n\n'
    template += 'msgid "one file"\nmsgid_plural "files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    path = write("app.pot", template)
    assert opened(path).fields.texts == ["a word"] and "no Plural-Forms" in opened(path).remark
    text = filled(path)
    assert "charset=UTF-8" in text and 'msgstr "A WORD"' in text and 'msgstr[0] ""' in text
    with pytest.raises(UsageError, match=r"must end in \.po"):
        open_document(path, Path("x.pot"), DataConfig())


@pytest.mark.parametrize(
    ("rule", "expected"), [("nplurals=1; plural=0;", 1), ("nplurals=3; plural=(n==1 ? 0 : n<5 ? 1 : 2);", 3)]
)
def test_every_plural_form_is_filled(write: Write, rule: str, expected: int) -> None:
    text = filled(write("app.po", PO.replace("nplurals=2; plural=(n != 1);", rule)), lambda text: text)
    forms = [line for line in text.splitlines() if line.startswith("msgstr[")]
    singular = 1 if expected > 1 else 0
    assert len(forms) == expected and sum("one file" in line for line in forms) == singular
    assert sum("%d files" in line for line in forms) == expected - singular


# --- XLIFF ---

XLIFF_1 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file original="a.txt" source-language="en" target-language="de" datatype="plaintext"><body>
    <trans-unit id="1"><source>A <g id="1">red <x id="2"/> ball</g>.</source><note>kept</note></trans-unit>
    <trans-unit id="2"><source>done</source><target state="final">fertig</target></trans-unit>
    <trans-unit id="3"><source>new</source><target state="new">new</target></trans-unit>
    <trans-unit id="4" translate="no"><source>name</source></trans-unit>
    <trans-unit id="5"><source>One. Two.</source>
      <seg-source><mrk mtype="seg" mid="1">One.</mrk> <mrk mtype="seg" mid="2">Two.</mrk></seg-source></trans-unit>
    <trans-unit id="6"><source>code <ph id="1">&lt;br&gt;</ph> end</source><target/></trans-unit>
  </body></file>
</xliff>
"""
XLIFF_2 = """<xliff version="2.0" srcLang="en" trgLang="de" xmlns="urn:oasis:names:tc:xliff:document:2.0">
  <file id="f"><unit id="1"><segment id="a"><source>a <pc id="1">house</pc></source></segment>
  <segment id="b" state="final"><source>done</source><target>fertig</target></segment></unit></file></xliff>
"""


def german(text: str) -> str:
    """Words in capitals; tags stay."""
    return "".join(part if part.startswith("<") else part.upper() for part in re.split(r"(<[^>]+>)", text))


def test_xliff_1_fills_units_and_keeps_inline_elements(write: Write) -> None:
    path = write("a.xlf", XLIFF_1)
    assert opened(path).fields.texts == ["A <t1>red <t2/> ball</t1>.", "new", "One.", "Two.", "code <t1/> end"]
    text = filled(path, german)
    root = etree.fromstring(text.encode())
    units = {unit.get("id"): unit for unit in root.iter("{*}trans-unit")}
    target = units["1"].find("{*}target")
    assert "".join(target.itertext()) == "A RED  BALL." and [etree.QName(e).localname for e in target.iter()][1:] == [
        "g",
        "x",
    ]
    assert (target.get("state"), target.get("state-qualifier")) == ("needs-review-translation", "mt-suggestion")
    assert [etree.QName(child).localname for child in units["1"]] == ["source", "target", "note"]
    assert units["2"].find("{*}target").text == "fertig" and units["2"].find("{*}target").get("state") == "final"
    assert units["3"].find("{*}target").text == "NEW"
    assert units["4"].find("{*}target") is None
    marks = units["5"].find("{*}target").findall("{*}mrk")
    assert [(mark.get("mid"), mark.text) for mark in marks] == [("1", "ONE."), ("2", "TWO.")]
    assert [etree.QName(child).localname for child in units["5"]] == ["source", "seg-source", "target"]
    code = units["6"].find("{*}target")
    assert code.find("{*}ph").text == "<br>" and code.text == "CODE " and code.find("{*}ph").tail == " END"
    assert opened(write("b.xlf", text)).fields.texts == opened(path).fields.texts  # by machine: may be filled again
    reviewed = text.replace("needs-review-translation", "final")
    assert opened(write("c.xlf", reviewed)).fields.texts == []


def test_xliff_2_fills_segments(write: Write) -> None:
    path = write("a.xliff", XLIFF_2)
    root = etree.fromstring(filled(path, german).encode())
    first, second = root.iter("{*}segment")
    assert first.get("state") == "translated" and first.get("subState") == "tfm:machine"
    assert "".join(first.find("{*}target").itertext()) == "A HOUSE"
    assert first.find("{*}target").find("{*}pc").get("id") == "1"
    assert second.get("state") == "final" and second.find("{*}target").text == "fertig"
    nameless = write("b.xliff", XLIFF_2.replace(' trgLang="de"', ""))
    with pytest.raises(DataError, match="--tgt-language"):
        opened(nameless)
    assert 'trgLang="fr"' in filled(nameless, german, tgt_language="fr")


XLIFF_SCHEMAS = Path("/usr/share/php/Symfony/Component/Translation/Resources/schemas")
"""Where Debian's php-symfony-translation has them."""


@pytest.mark.skipif(not XLIFF_SCHEMAS.is_dir(), reason="the schemas of XLIFF are not installed")
@pytest.mark.parametrize(
    ("content", "schema"), [(XLIFF_1, "xliff-core-1.2-strict.xsd"), (XLIFF_2, "xliff-core-2.0.xsd")]
)
def test_what_was_filled_in_is_valid_xliff(write: Write, content: str, schema: str) -> None:
    class Local(etree.Resolver):
        def resolve(self, url: str, pubid: str, context: object) -> object:
            del pubid
            return self.resolve_filename(str(XLIFF_SCHEMAS / Path(url).name), context)

    parser = etree.XMLParser()
    parser.resolvers.add(Local())
    valid = etree.XMLSchema(etree.parse(str(XLIFF_SCHEMAS / schema), parser))
    for text in (content, content.replace(' target-language="de"', "").replace(' trgLang="de"', "")):
        out = filled(write("a.xlf", text), german, src_column="en", tgt_column="de")
        assert "needs-review-translation" in out or "tfm:machine" in out
        valid.assertValid(etree.fromstring(out.encode()))


@pytest.mark.parametrize(
    "broken", ["A <t1>red ball</t1>.", "A </t1>red <t2/><t1> ball.", "A red ball.", "<t1><t1><t2/></t1>"]
)
def test_a_segment_whose_markup_did_not_arrive_is_left(write: Write, broken: str) -> None:
    document = opened(write("a.xlf", XLIFF_1))
    translations = [broken, *document.fields.texts[1:]]
    assert document.fields.fill(translations) == 1
    stream = io.BytesIO()
    document.save(stream)
    unit = next(etree.fromstring(stream.getvalue()).iter("{*}trans-unit"))
    assert not "".join(target.xpath("string()") for target in unit.findall("{*}target"))


def test_an_entity_outside_the_file_is_not_read(write: Write) -> None:
    secret = write("secret.txt", "SECRET")
    doctype = f'<!DOCTYPE xliff [<!ENTITY x SYSTEM "{secret.as_uri()}">]>'
    text = filled(write("a.xlf", XLIFF_1.replace("<xliff", f"{doctype}<xliff", 1).replace("done", "&x;")), german)
    assert "SECRET" not in text


# --- TMX ---

TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en" adminlang="en" segtype="sentence" datatype="plaintext" o-tmf="x"
  creationtool="x" creationtoolversion="1"/><body>
  <tu><tuv xml:lang="en"><seg>a dog</seg></tuv><tuv xml:lang="de"><seg>ein Hund</seg></tuv></tu>
  <tu><prop type="x">kept</prop><tuv xml:lang="en-GB"><seg>a <bpt i="1">[</bpt>cat<ept i="1">]</ept></seg></tuv></tu>
</body></tmx>
"""


def test_tmx_adds_the_variants_that_are_missing(write: Write) -> None:
    path = write("m.tmx", TMX)
    assert opened(path).fields.texts == ["a <t1>cat</t1>"]
    text = filled(path, german)
    first, second = etree.fromstring(text.encode()).iter("tu")
    assert len(first) == 2 and first[1][0].text == "ein Hund"
    variant = second[-1]
    assert variant.get("{http://www.w3.org/XML/1998/namespace}lang") == "de" and variant.get("creationid") == "MT!"
    assert "".join(variant.find("seg").itertext()) == "A [CAT]" and second[0].text == "kept"
    assert '<!DOCTYPE tmx SYSTEM "tmx14.dtd">' in text
    assert opened(write("fr.tmx", TMX), src_language="en", tgt_language="fr").fields.texts == [
        "a dog",
        "a <t1>cat</t1>",
    ]
    with pytest.raises(DataError, match="no unit in it and de; it has de, en, en-GB; name two"):
        opened(path, src_language="it", tgt_language="de")


# --- subtitles ---

SRT = """1
00:00:01,000 --> 00:00:02,500
The old woman gives
the child two apples.

2
00:00:03,000 --> 00:00:04,000
- Yes.
- No!

3
00:00:05,000 --> 00:00:06,000
♪ 1, 2, 3
"""


def test_subtitles_keep_numbers_and_times(write: Write) -> None:
    path = write("a.srt", SRT)
    assert opened(path).fields.texts == ["The old woman gives the child two apples.", "Yes.", "No!", "♪ 1, 2, 3"]
    lines = filled(path).splitlines()
    assert [line for line in lines if "-->" in line] == [line for line in SRT.splitlines() if "-->" in line]
    assert lines[2:4] == ["THE OLD WOMAN GIVES", "THE CHILD TWO APPLES."] and lines[7:9] == ["- YES.", "- NO!"]
    assert filled(path, lambda text: text) == SRT
    assert filled(path, lambda _: "x").splitlines()[2:4] == ["x", ""]


def test_the_lines_of_a_cue_are_joined_as_their_script_does(write: Write) -> None:
    path = write("a.srt", "1\n00:00:01,000 --> 00:00:02,500\n私は学校に\n行く。\n")
    assert opened(path).fields.texts == ["私は学校に行く。"]


def test_webvtt_keeps_settings_and_notes(write: Write) -> None:
    vtt = "WEBVTT\n\nNOTE a note\n\n00:01.000 --> 00:02.000 align:start\n<v Ann>hello\n"
    assert filled(write("a.vtt", vtt), german) == vtt.replace("hello", "HELLO")
    with pytest.raises(DataError, match="has no cue"):
        opened(write("b.vtt", "WEBVTT\n"))


# --- tables ---


def test_tsv_fills_the_second_column(write: Write) -> None:
    path = write("a.tsv", "a dog\tein Hund\tx\na cat\t\ty\n\nno tab\n")
    assert filled(path) == "a dog\tein Hund\tx\na cat\tA CAT\ty\n\nno tab\tNO TAB\n"
    assert filled(path, src_column="3", tgt_column="4").startswith("a dog\tein Hund\tx\tX\na cat\t\ty\tY\n")
    with pytest.raises(DataError, match=r"no columns 'en' and 'de' among 'a dog', 'ein Hund', 'x' .*number them"):
        opened(path, src_column="en", tgt_column="de")


def test_csv_fills_a_column_or_adds_it(write: Write) -> None:
    path = write("a.csv", 'id;source;target\n1;"a; b";\n2;two words;zwei\n')
    assert filled(path) == 'id;source;target\n1;"a; b";"A; B"\n2;two words;zwei\n'
    assert filled(path, src_column="source", tgt_column="French").splitlines()[0] == "id;source;target;French"
    assert filled(write("b.csv", "a dog,\na cat,Katze ist da\n")) == "a dog,A DOG\na cat,Katze ist da\n"
    with pytest.raises(DataError, match="no columns 'x' and 'target' among 'id', 'source', 'target'"):
        opened(path, src_column="x", tgt_column="target")


def test_jsonl_fills_a_field(write: Write) -> None:
    rows = [{"id": 1, "src": "a dog"}, {"src": "a", "tgt": "x"}, {"translation": {"src": "ü", "tgt": None}}]
    path = write("a.jsonl", "\n".join(json.dumps(row) for row in rows) + "\n\n")
    found = [json.loads(line) for line in filled(path).splitlines() if line]
    assert found == [{"id": 1, "src": "a dog", "tgt": "A DOG"}, rows[1], {"translation": {"src": "ü", "tgt": "Ü"}}]
    with pytest.raises(DataError, match=r"b\.jsonl:1: not a JSON object"):
        opened(write("b.jsonl", "[]\n"))


# --- all of them ---


def test_what_is_a_document_and_where_it_is_written() -> None:
    assert all(is_document(Path(f"x{suffix}")) for suffix in DOCUMENTS) and not is_document(Path("x.txt"))
    with pytest.raises(UsageError, match=r"name the file to write, --output FILE\.po"):
        open_document(Path("x.po"), None, DataConfig())
    with pytest.raises(UsageError, match=r"the --output must end in \.srt"):
        open_document(Path("x.srt"), Path("x.txt"), DataConfig())


# --- what people have written stays ---


def test_human_plural_forms_stay(write: Write) -> None:
    half = PO.replace('msgstr[0] ""', 'msgstr[0] "eine Datei"')
    assert opened(write("app.po", half)).fields.texts == ["open %s", "close", "%d files"]
    three = half.replace("nplurals=2; plural=(n != 1);", "nplurals=3; plural=(n==1 ? 0 : n<5 ? 1 : 2);")
    text = filled(write("b.po", three), lambda text: text)
    assert 'msgstr[0] "eine Datei"' in text and 'msgstr[2] "%d files"' in text


@pytest.mark.parametrize(
    "target",
    [
        '<target state="translated" state-qualifier="mt-suggestion">Haus</target>',
        '<target state="signed-off">Haus</target>',
        "<target>Haus</target>",
    ],
)
def test_targets_of_people_stay(write: Write, target: str) -> None:
    unit = f'<trans-unit id="9"><source>house</source>{target}</trans-unit>'
    text = XLIFF_1.replace("</body>", f"{unit}</body>")
    assert "house" not in opened(write("a.xlf", text)).fields.texts
    approved = unit.replace('id="9"', 'id="9" approved="yes"').replace(target, target.replace("translated", "new"))
    assert "house" not in opened(write("b.xlf", XLIFF_1.replace("</body>", f"{approved}</body>"))).fields.texts


def test_of_segments_only_the_empty_ones_are_filled(write: Write) -> None:
    target = '<target><mrk mtype="seg" mid="1">Eins.</mrk> <mrk mtype="seg" mid="2"/></target>'
    path = write("a.xlf", XLIFF_1.replace("</seg-source>", f"</seg-source>{target}"))
    assert "Two." in opened(path).fields.texts and "One." not in opened(path).fields.texts
    unit = list(etree.fromstring(filled(path, german).encode()).iter("{*}trans-unit"))[4]
    assert [mark.text for mark in unit.find("{*}target").findall("{*}mrk")] == ["Eins.", "TWO."]


def test_text_that_looks_like_one_of_our_tags_is_text(write: Write) -> None:
    text = XLIFF_1.replace("<source>new</source>", "<source>the &lt;t1/&gt; and <x id='1'/> tags</source>")
    document = opened(write("a.xlf", text))
    assert "the <t1/> and <t0_1/> tags" in document.fields.texts
    assert document.fields.fill(document.fields.texts) == 0


def test_protected_words_are_not_translated(write: Write) -> None:
    text = XLIFF_1.replace("<source>new</source>", '<source>our <mrk mtype="protected">Foo</mrk></source>')
    assert "our <t1/>" in opened(write("a.xlf", text)).fields.texts
    assert ">Foo</mrk>" in filled(write("b.xlf", text), german).partition('id="3"')[2]


def test_tags_around_a_whole_text_are_no_part_of_it(write: Write) -> None:
    unit = '<source> <g id="1"><bpt id="2">*</bpt>new<ept id="2">*</ept></g>\n</source>'
    document = opened(write("a.xlf", XLIFF_1.replace("<source>new</source>", unit)))
    assert document.fields.texts[1] == "new"
    document.fields.fill(list(map(str.upper, document.fields.texts)))
    stream = io.BytesIO()
    document.save(stream)
    assert b'> <g id="1"><bpt id="2">*</bpt>NEW<ept id="2">*</ept></g>\n</target>' in stream.getvalue()


def test_tags_at_the_ends_that_did_not_arrive_are_put_around_a_translation_without_them(write: Write) -> None:
    unit = '<source><x id="1"/> <g id="2">a</g> <x id="3"/>cat<x id="4"/>.</source>'
    path = write("a.xlf", XLIFF_1.replace("<source>new</source>", unit.replace(".", "")))
    document = opened(path)
    text, asked = document.fields.texts[1], list[str]()

    def translate(texts: list[str]) -> list[Translation]:
        asked.extend(texts)
        return [Translation(german(one)) for one in texts]

    assert text == "<t1/> <t2>a</t2> <t3/>cat<t4/>"
    outputs = [german(one) if "cat" not in one else "<t1/> A CAT" for one in document.fields.texts]
    assert list(document.fields.without_ends(outputs, translate)) == [1]
    assert asked == ["<t2>a</t2> <t3/>cat"] and outputs[1] == german(text)
    inline = opened(write("b.xlf", XLIFF_1.replace("<source>new", '<source><x id="1"/> new')))
    spaced = ["NEW" if "new" in one else one for one in inline.fields.texts]
    inline.fields.without_ends(spaced, translate)
    assert spaced[1] == "<t1/> NEW", "the space stays"
    assert document.fields.fill(outputs) == 0
    arrived = [german(one) for one in document.fields.texts]
    assert not document.fields.without_ends(arrived, lambda _: pytest.fail("all tags are there"))


def test_elements_with_text_are_nested_whatever_other_codes_do(write: Write) -> None:
    unit = '<source><bpt id="1">1</bpt>a <g id="5">b<ept id="1">2</ept> c</g> d</source>'
    for translation, left in (("<t1>a </t2>b</t1> c<t2> d", 1), ("<t2>a <t1>b</t2> c</t1> d", 0)):
        document = opened(write("a.xlf", XLIFF_1.replace("<source>new</source>", unit)))
        texts = document.fields.texts
        assert texts[1] == "<t1>a <t2>b</t1> c</t2> d"
        assert document.fields.fill([texts[0], translation, *texts[2:]]) == left


def test_codes_that_are_not_nested_need_not_be(write: Write) -> None:
    unit = '<source><bpt id="1"/>a<bpt id="2"/>red<ept id="1"/> cat<ept id="2"/></source>'
    document = opened(write("a.xlf", XLIFF_1.replace("<source>new</source>", unit)))
    assert document.fields.texts[1] == "<t1>a<t2>red</t1> cat</t2>"
    assert document.fields.fill(list(map(german, document.fields.texts))) == 0


def test_a_file_in_other_languages_is_refused(write: Write) -> None:
    with pytest.raises(DataError, match="from en to de, not from"):
        opened(write("a.xlf", XLIFF_1), src_language="fr", tgt_language="de")
    with pytest.raises(DataError, match="from en to de, not from de to en"):
        opened(write("a.xlf", XLIFF_1), src_language="de", tgt_language="en")
    assert "en to de; 1 of 2 units" in opened(write("a.tmx", TMX), src_language="en").remark


def test_an_empty_variant_of_a_region_is_filled(write: Write) -> None:
    empty = '<tuv xml:lang="de-AT"><prop type="y">z</prop><seg/></tuv></tu>'
    path = write("m.tmx", TMX.replace("</seg></tuv></tu>\n</body>", f"</seg></tuv>{empty}\n</body>"))
    variants = list(etree.fromstring(filled(path, german).encode()).iter("tu"))[1].findall("tuv")
    assert len(variants) == 2 and variants[1][0].text == "z" and "".join(variants[1][1].itertext()) == "A [CAT]"


def test_cues_without_a_blank_line_between_them(write: Write) -> None:
    text = "1\r\n00:00:01,000 --> 00:00:02,000\r\none\r\n2\r\n00:00:03,000 --> 00:00:04,000\r\ntwo\r\n"
    assert filled(write("a.srt", "\ufeff" + text)) == "\ufeff" + text.replace("one", "ONE").replace("two", "TWO")


def test_rows_that_are_not_filled_are_as_they_were(write: Write) -> None:
    rows = ['\ufeff"id", source,target\r\n', "1,  kept  ,x\r\n", '2,"a\r\nb",\r\n', '3,"two words",done']
    text = filled(write("a.csv", "".join(rows).encode()))
    assert text == "".join([*rows[:2], '2,"a\r\nb","A\r\nB"\r\n', rows[3]])
    lines = ['{"src": "a", "tgt": "b", "n": 1.10}\r\n', '{"src": "half \\ud83d", "tgt": ""}\r\n']
    found = filled(write("a.jsonl", "".join(lines).encode()))
    assert found.startswith(lines[0]) and json.loads(found.splitlines()[1])["tgt"] == "HALF \ud83d"
    tsv = filled(write("a.tsv", b"\xef\xbb\xbfone\t\r\ntwo\tzwei\r\n"))
    assert tsv == "\ufeffone\tONE\r\ntwo\tzwei\r\n"


@pytest.mark.parametrize(("suffix", "separator"), [("tsv", "\t"), ("csv", ",")])
def test_a_column_that_no_row_has(write: Write, suffix: str, separator: str) -> None:
    with pytest.raises(DataError, match="no columns '9' and '2' among 'a b', 'c d'"):
        opened(write(f"a.{suffix}", f"a b{separator}c d\n"), src_column="9", tgt_column="2")
    with pytest.raises(DataError, match="no row has a text in column 1"):
        opened(write(f"b.{suffix}", f"src{separator}tgt\n\u200b{separator}x\n"))


# Tables whose columns are not clear, and what the message lists.
UNCLEAR = {
    "unknown.csv": (
        "Forbidden,Domain,en-GB,de-DE\n,Shop,the cat,die Katze\n,Shop,the old woman,\nTRUE,,the dog,\n",
        "en-GB",
    ),
    "third.csv": ("en,de,note\ncat,Katze,x\ndog,,y\n", "note"),
    "numbers.csv": ("id,text\n1,a cat\n", "text"),
    "words.csv": ("Domain,English,German\nShop,the cat,\n", "English"),
    "unknown.tsv": ("Domain\tEnglish\tGerman\nShop\tthe cat\t\n", "English"),
    "numbers.tsv": ("1\tthe old cat\tdie alte Katze\n2\tthe dog\t\n", "the old cat"),
    "third.jsonl": ('{"note": "x", "en": "cat", "de": ""}\n', "note"),
}


@pytest.mark.parametrize("name", UNCLEAR)
def test_unclear_columns_are_refused_with_their_names_as_in_training(write: Write, name: str) -> None:
    content, listed = UNCLEAR[name]
    path = write(name, content)
    for read in (lambda: opened(path), lambda: list(open_spec(str(path), DataConfig()).pairs())):
        with pytest.raises(DataError, match=f"no columns 'src' and 'tgt' among .*'{listed}'.*; name both, or number"):
            read()


def test_columns_of_a_tsv_are_found_by_name_or_number_and_added(write: Write) -> None:
    path = write("a.tsv", 'id\tEN\tfr\n1\ta "dog"\t\n2\ta cat\tun chat\n')
    expected = 'id\tEN\tfr\n1\ta "dog"\tA "DOG"\n2\ta cat\tun chat\n'
    assert filled(path, src_column="en", tgt_column="fr") == expected
    assert filled(path, src_column="2", tgt_column="3") == expected
    assert filled(path, src_column="en", tgt_column="it") == expected.replace("fr", "fr\tit").replace(
        'A "DOG"', '\tA "DOG"'
    ).replace("un chat", "un chat\tA CAT")
    remark = opened(path, src_column="en", tgt_column="fr").remark
    assert "the first row taken for a header: 'id', 'EN', 'fr'; source in column 2" in remark
    assert filled(write("b.tsv", "source\na dog\n")) == "source\ttarget\na dog\tA DOG\n"


def test_a_target_with_nothing_but_invisible_characters_is_empty(write: Write) -> None:
    assert filled(write("a.tsv", "a dog\t\u200b\u00a0\n")) == "a dog\tA DOG\n"
    assert filled(write("a.csv", "src,tgt\na dog,\u00a0\n")) == "src,tgt\na dog,A DOG\n"
    assert '"A DOG"' in filled(write("a.jsonl", '{"src": "a dog", "tgt": "\u00a0"}\n'))


# --- what a reviewer is told ---

LOW, MIDDLE, HIGH = Projection(20.0, 5.0, 40.0), Projection(50.0, 30.0, 70.0), Projection(90.0, 70.0, 100.0)
PAIR = {"src_language": "en", "tgt_language": "de"}
WORST, OTHER = "projected chrF 20 (5 to 40), one of the worst tenth", "projected chrF 90 (70 to 100)"


def reviewed(path: Path, projections: list[Projection | None], **sides: str) -> str:
    """A document that is filled with its texts in capitals, and with what is projected of each."""
    document = opened(path, **sides)
    document.fields.fill([text.upper() for text in document.fields.texts], projections)
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue().decode()


def test_a_place_is_as_good_as_the_worst_of_its_texts_and_a_tenth_is_the_worst() -> None:
    fields, told = Fields(), dict[str, Review]()
    texts = ["one\ntwo", "three", "four", "five", "six", "123"]
    for text in texts:
        fields.add(text, lambda _, text=text: text != "five", lambda review, text=text: told.update({text: review}))
    projections = [HIGH, MIDDLE, HIGH, LOW, LOW, HIGH, None]
    assert fields.fill([text.upper() for text in fields.texts], projections) == 1
    assert told == {
        "one\ntwo": Review(MIDDLE, False),
        "three": Review(HIGH, False),
        "four": Review(LOW, True),
        "six": Review(HIGH, False),
    }, "nothing is told of what was left, nor of what nobody knows"
    assert fields.worst == [("four", Review(LOW, True))]


@pytest.mark.parametrize("places", [1, 10, 11, 95])
def test_the_worst_tenth_is_at_least_a_tenth(places: int) -> None:
    fields = Fields()
    for number in range(places):
        fields.add(f"text {number}", lambda _: True)  # of a format without notes
    order = [(7 * number) % places for number in range(places)]
    fields.fill(fields.texts, [Projection(float(one), 0.0, 100.0) for one in order])
    assert len(fields.worst) == -(-places // 10)
    assert [review.projection.value for _, review in fields.worst] == sorted(order)[: len(fields.worst)]


def test_po_has_it_in_its_comment_and_a_message_with_plurals_that_of_the_worst(write: Write, tmp_path: Path) -> None:
    path = write("app.po", PO)
    plain, noted = filled(path), reviewed(path, [HIGH, None, HIGH, LOW])
    assert noted.replace(f"; {WORST}", "").replace(f"; {OTHER}", "") == plain
    found = {one.msgid: one.tcomment.splitlines()[-1] for one in polib.pofile(noted) if one.fuzzy}
    assert found == {
        "open %s\n": f"machine translation, not reviewed; {OTHER}",
        "close": "machine translation, not reviewed",
        "one file": f"machine translation, not reviewed; {WORST}",
    }
    out = tmp_path / "noted.po"
    out.write_text(noted, encoding="utf-8")
    assert filled(out, str.upper) == plain, "what was said of an earlier translation goes"
    assert reviewed(out, [LOW, HIGH, HIGH, HIGH]).count("; projected") == 3


UNITS = """<xliff version="1.2"><file source-language="en" target-language="de"><body>
  <trans-unit id="1">
    <source>one</source>
  </trans-unit>
  <trans-unit id="2"><source>two</source><target state="new"></target><note>by hand</note></trans-unit>
  <trans-unit id="3"><source>three</source><target>drei</target></trans-unit>
</body></file></xliff>
"""
SEGMENTS = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="de"><file id="f">
  <unit id="1">
    <segment><source>one</source></segment>
    <segment><source>four</source></segment>
  </unit>
  <unit id="2"><notes><note>by hand</note></notes><segment><source>two</source></segment></unit>
  <unit id="3"><segment state="final"><source>three</source><target>drei</target></segment></unit>
</file></xliff>
"""
MEMORY = """<tmx version="1.4"><header srclang="en"/><body>
  <tu>
    <tuv xml:lang="en">
      <seg>one</seg>
    </tuv>
  </tu>
  <tu><tuv xml:lang="en"><seg>two</seg></tuv><tuv xml:lang="de"><note>by hand</note><seg></seg></tuv></tu>
  <tu><tuv xml:lang="en"><seg>three</seg></tuv><tuv xml:lang="de"><seg>drei</seg></tuv></tu>
</body></tmx>
"""


@pytest.mark.parametrize(
    ("name", "content", "projections", "notes"),
    [
        ("a.xlf", UNITS, [LOW, HIGH], [f'\n    <note from="tfm">{WORST}</note>', f'<note from="tfm">{OTHER}</note>']),
        (
            "a.xlf",
            SEGMENTS,
            [HIGH, LOW, HIGH],
            [
                f'<notes><note category="tfm">{WORST}</note></notes>\n    ',
                f'<note category="tfm">{OTHER}</note>',
            ],
        ),
        ("a.tmx", MEMORY, [LOW, HIGH], [f"\n      <note>tfm: {WORST}</note>", f"<note>tfm: {OTHER}</note>"]),
    ],
)
def test_xliff_and_tmx_have_it_in_a_note(
    write: Write, tmp_path: Path, name: str, content: str, projections: list[Projection | None], notes: list[str]
) -> None:
    path = write(name, content)
    plain, noted = filled(path, str.upper, **PAIR), reviewed(path, projections, **PAIR)
    assert all(noted.count(note) == 1 for note in notes), noted
    without = noted
    for note in notes:
        without = without.replace(note, "")
    assert without == plain and "by hand" in plain
    again = tmp_path / f"again{path.suffix}"
    again.write_text(noted, encoding="utf-8")
    assert reviewed(again, projections, **PAIR) == noted, "a note takes the place of the one before"
    assert filled(again, str.upper, **PAIR) == filled(write(f"plain{path.suffix}", plain), str.upper, **PAIR) == plain


def test_notes_are_where_the_schema_has_them(write: Write) -> None:
    found = etree.fromstring(reviewed(write("a.xlf", UNITS), [LOW, HIGH], **PAIR).encode())
    units = [[child.tag for child in unit] for unit in found.iter("trans-unit")]
    assert units == [["source", "target", "note"], ["source", "target", "note", "note"], ["source", "target"]]
    found = etree.fromstring(reviewed(write("b.xlf", SEGMENTS), [LOW, HIGH, HIGH], **PAIR).encode())
    units = [[etree.QName(child).localname for child in unit] for unit in found.iter("{*}unit")]
    assert units == [["notes", "segment", "segment"], ["notes", "segment"], ["segment"]]
    found = etree.fromstring(reviewed(write("a.tmx", MEMORY), [LOW, HIGH], **PAIR).encode())
    variants = [[child.tag for child in one] for one in found.iter("tuv") if "de" in one.attrib.values()]
    assert variants == [["note", "seg"], ["note", "note", "seg"], ["seg"]]
