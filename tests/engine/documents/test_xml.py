"""XLIFF and TMX: bytes that were not filled stay, and what is filled is written in the manner of the file."""

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.written_files import Write
from helpers.written_xml import attributes, contents, texts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from tfm.data.config import DataConfig
from tfm.engine.documents import open_document
from tfm.engine.documents.document import Document
from tfm.engine.documents.xml import Manner, _with_attributes  # pyright: ignore[reportPrivateUsage]
from tfm.system.errors import DataError

Made = tuple[list[str], list[str | None]]
"""A file in pieces, and what each piece is when it is filled in; None where it stays."""


def opened(path: Path) -> Document:
    return open_document(path, path.with_name(f"out{path.suffix}"), DataConfig(src_language="en", tgt_language="de"))


def saved(document: Document) -> bytes:
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def filled(path: Path, translate: Callable[[str], str] = lambda text: text) -> bytes:
    document = opened(path)
    assert document.fields.fill([translate(text) for text in document.fields.texts]) == 0
    return saved(document)


# --- properties ---

FILE = '<file source-language="en" target-language="de">'
MARKED = ' state="needs-review-translation" state-qualifier="mt-suggestion"'


@st.composite
def xliff_files(draw: st.DrawFn) -> Made:
    """Units that have a translation, and units that have none; with what is between them."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    start = "<xliff version='1.2' xmlns:p=\"p\"><file source-language='en' target-language='de'><body>"
    pieces: list[str] = [start]
    after: list[str | None] = [None]
    for _ in range(draw(st.integers(0, 4))):
        between = draw(st.sampled_from(["", newline, newline + "    "]))
        source = f"{between}<source{draw(attributes())}>{draw(contents())}</source>"
        note = f"{between}<note{draw(attributes())}>{draw(texts())}</note>"
        pieces.append(f"{newline}<trans-unit{draw(attributes())}>{source}")
        after.append(None)
        if draw(st.booleans()):
            pieces.append(f"{between}<target{draw(attributes())}>x{draw(contents())}</target>")
            after.append(None)
        else:
            pieces.append("")
            after.append(f"{between}<target{MARKED}>%s</target>")
        pieces.append(f"{note}</trans-unit>")
        after.append(None)
    return [*pieces, f"{newline}</body></file></xliff>{newline}"], [*after, None]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(xliff_files(), st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_only_what_was_filled_differs(tmp_path: Path, made: Made, encoding: str) -> None:
    pieces, after = made
    declaration = '<?xml version="1.0"?>' if encoding != "utf-16" else "<?xml version='1.0' encoding='utf-16'?>"
    path = tmp_path / "a.xlf"
    content = (declaration + "".join(pieces)).encode(encoding)
    path.write_bytes(content)
    document = opened(path)
    assert saved(document) == content
    assert document.fields.fill(document.fields.texts) == 0
    out = saved(document)
    text, place = out.decode(encoding).removeprefix(declaration), 0
    for piece, new in zip(pieces, after, strict=True):
        if new is None or not new:
            assert text.startswith(piece, place)
            place += len(piece)
            continue
        start, end = new.split("%s")
        if text.startswith(start, place):  # a source without text gets no target
            place = text.index(end, place) + len(end)
    assert place == len(text)
    before, now = (list(etree.fromstring(one).iter("trans-unit")) for one in (content, out))
    for old, unit in zip(before, now, strict=True):
        if old.find("target") is None and unit.find("target") is not None:
            assert words(unit.find("target")) == words(unit.find("source"))
            assert [one.tag for one in unit.find("target").iter(etree.Element)][1:] == [
                one.tag for one in unit.find("source").iter(etree.Element)
            ][1:]
    path.write_bytes(out)
    assert saved(opened(path)) == out


def words(element: etree._Element) -> list[str]:
    """The words of an element of lxml's."""
    return "".join(element.xpath(".//text()")).split()


# --- bytes ---

XLIFF = (
    '\ufeff<?xml version="1.0"?>\r\n<!-- a > b -->\r\n<xliff version="1.2">\r\n'
    "  <file source-language='en'\r\n        target-language='de'><body>\r\n"
    "    <trans-unit id = '1' ><source>don&apos;t say &quot;x&quot; &#x2013; a > b</source>"
    "{}<note></note></trans-unit>\r\n"
    "  </body></file><?end?>\r\n</xliff>\r\n"
)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("", f"<target{MARKED}>DON&apos;T SAY &quot;X&quot; &#x2013; A > B</target>"),
        ("<target/>", f"<target{MARKED}>DON&apos;T SAY &quot;X&quot; &#x2013; A > B</target>"),
        ("<target  ></target >", f"<target{MARKED}  >DON&apos;T SAY &quot;X&quot; &#x2013; A > B</target >"),
        (
            "<target\r\n  xml:lang='de' state='new'>old</target>",
            "<target\r\n  xml:lang='de' state='needs-review-translation' state-qualifier='mt-suggestion'>"
            "DON&apos;T SAY &quot;X&quot; &#x2013; A > B</target>",
        ),
        ("<target >sag nicht</target>", "<target >sag nicht</target>"),
    ],
)
def test_what_is_filled_is_in_the_manner_of_the_file(write: Write, target: str, expected: str) -> None:
    path = write("a.xlf", XLIFF.format(target).encode())
    assert saved(opened(path)) == path.read_bytes()
    assert filled(path, str.upper).decode() == XLIFF.format(expected)


@pytest.mark.parametrize("encoding", ["utf-16-le", "iso-8859-1", "windows-1251", "koi8-r", "shift_jis", "gbk"])
def test_the_encoding_stays(write: Write, encoding: str) -> None:
    word = "дом" if encoding in ("windows-1251", "koi8-r") else "house"
    done = f"<trans-unit><source>a</source><target>{word}</target></trans-unit>"
    units = f"<trans-unit><source>{word}</source></trans-unit>{done}"
    name = encoding.removesuffix("-le")
    text = f'<?xml version="1.0" encoding="{name}"?>\n<xliff>{FILE}{units}</file></xliff>'
    path = write("a.xlf", ("\ufeff" * (name == "utf-16") + text).encode(encoding))
    assert saved(opened(path)) == path.read_bytes()
    out = filled(path, lambda _: "Türöffner\u2603")
    known = [one if one.encode(encoding, "ignore") else f"&#{ord(one)};" for one in "Türöffner\u2603"]
    new = f"<target{MARKED}>{''.join(known)}</target>"
    expected = text.replace(f"{word}</source></", f"{word}</source>{new}</", 1)
    assert out.decode(encoding).removeprefix("\ufeff") == expected


def test_cdata_stays_cdata(write: Write) -> None:
    unit = "<trans-unit><source><![CDATA[a <b>dog</b> & cat]]></source></trans-unit>"
    path = write("a.xlf", f"<xliff><file>{unit}</file></xliff>")
    assert b"<![CDATA[ein <b>Hund</b> ]]]]><![CDATA[> & cat]]></target>" in filled(
        path, lambda text: text.replace("a <b>dog</b>", "ein <b>Hund</b> ]]>")
    )


def test_entities_of_the_file_stay(write: Write) -> None:
    doctype = '<!DOCTYPE xliff [<!ENTITY product "Foo"> <!ENTITY nbsp "&#160;">]>'
    unit = "<trans-unit><source>start&nbsp;&product; now</source></trans-unit>"
    path = write("a.xlf", f"{doctype}<xliff><file>{unit}</file></xliff>")
    assert opened(path).fields.texts == ["start\u00a0<t1/> now"]
    assert b">START&nbsp;&product; NOW</target>" in filled(path, lambda text: re.sub(r"\b[a-z]{3,}", up, text))


def up(word: re.Match[str]) -> str:
    return word[0].upper()


# --- line ends inside a text ---


def test_a_line_end_between_words_is_white_space(write: Write) -> None:
    units = (
        "<trans-unit>\r\n  <source>\r\n    the old woman\r\n    sees <x id='1'/>\r\n    it\r\n  </source>\r\n"
        "</trans-unit>",
        "<trans-unit><source>one&#10;two\nthree</source></trans-unit>",
        "<trans-unit xml:space='preserve'><source>one\nTwo\ngoes on</source></trans-unit>",
    )
    path = write("a.xlf", f"<xliff><file>{''.join(units)}</file></xliff>".encode())
    assert opened(path).fields.texts[:3] == ["the old woman sees <t1/> it", "one", "two three"]
    out = filled(path, lambda text: re.sub(r"\b[a-z]{2,}", up, text)).decode()
    assert f"  <target{MARKED}>\r\n    THE OLD WOMAN SEES <x id='1'/> IT\r\n  </target>\r\n</trans-unit>" in out
    assert ">ONE&#10;TWO THREE</target>" in out
    assert f"<target{MARKED}>ONE\nTwo GOES ON</target>" in out


def test_markup_comes_in_each_branch_of_a_message(write: Write) -> None:
    message = "{VAR, plural,\n   =0 {no <x id='1'/>}\n   other {many <x id='1'/>}\n }"
    path = write("a.xlf", f"<xliff><file><trans-unit><source>{message}</source></trans-unit></file></xliff>")
    document = opened(path)
    assert document.fields.texts == ["no <t1/>", "many <t2/>"]
    document.fields.language = "cs"
    assert document.fields.fill(["kein <t1/>", "viele <t2/>"]) == 0
    forms = " ".join(f"{form} {{viele <x id='1'/>}}" for form in ("few", "many", "one", "other"))
    written = f"{{VAR, plural, =0 {{kein <x id='1'/>}} {forms} }}"
    assert f">{written}</target>" in saved(document).decode()


# --- the marks of tools ---

TRADOS = (
    '\ufeff<?xml version="1.0" encoding="utf-8"?>\r\n<xliff xmlns:sdl="http://sdl.com/FileTypes/SdlXliff/1.0">'
    '<file source-language="en-US" target-language="de-DE"><trans-unit id="a">'
    '<source>Hi. <g id="3">Old <x id="4"/></g></source>'
    '<seg-source><mrk mtype="seg" mid="1">Hi.</mrk> '
    '<g id="3"><mrk mtype="seg" mid="2">Old <x id="4"/></mrk></g></seg-source>{target}'
    '<sdl:seg-defs><sdl:seg id="1" conf="Translated" origin="interactive"/>'
    '<sdl:seg id="2"{said}><sdl:prev-origin/></sdl:seg></sdl:seg-defs></trans-unit>\r\n</file></xliff>'
)
FIRST = '<mrk mtype="seg" mid="1">Hallo.</mrk> '
BY_MACHINE = ' conf="Draft" origin="mt" origin-system="tfm"'


@pytest.mark.parametrize(
    ("target", "said", "now"),
    [
        (f'<target>{FIRST}<g id="3"><mrk mtype="seg" mid="2" /></g></target>', "", BY_MACHINE),
        (f'<target>{FIRST}<g id="3"><mrk mtype="seg" mid="2"></mrk></g></target>', "", BY_MACHINE),
        (f"<target>{FIRST}</target>", "", BY_MACHINE),
        (
            f'<target>{FIRST}<g id="3"><mrk mtype="seg" mid="2">alt <x id="4"/></mrk></g></target>',
            ' conf="Draft" origin="nmt" origin-system="other" percent="99"',
            BY_MACHINE,
        ),
    ],
)
def test_trados(write: Write, target: str, said: str, now: str) -> None:
    path = write("a.sdlxliff", TRADOS.format(target=target, said=said).encode())
    document = opened(path)
    assert document.fields.texts == ["Old <t1/>"] and saved(document) == path.read_bytes()
    new = f'<target>{FIRST}<g id="3"><mrk mtype="seg" mid="2">ALT <x id="4"/></mrk></g></target>'
    assert filled(path, lambda text: text.replace("Old", "ALT")).decode() == TRADOS.format(target=new, said=now)


def test_a_target_with_an_empty_mark_that_lacks_another(write: Write) -> None:
    path = write("a.sdlxliff", TRADOS.format(target='<target><mrk mtype="seg" mid="1"/></target>', said="").encode())
    new = FIRST.replace("Hallo", "Hi") + '<g id="3"><mrk mtype="seg" mid="2">Old <x id="4"/></mrk></g></target>'
    assert new in filled(path).decode()
    etree.fromstring(filled(path))


def test_trados_without_a_target(write: Write) -> None:
    path = write("a.sdlxliff", TRADOS.format(target="", said="").encode())
    out = filled(path).decode()
    new = FIRST.replace("Hallo", "Hi") + '<g id="3"><mrk mtype="seg" mid="2">Old <x id="4"/></mrk></g></target>'
    assert new in out and '<sdl:seg id="1" conf="Draft" origin="mt" origin-system="tfm"/>' in out


def test_memoq_and_phrase(write: Write) -> None:
    source = '<source xml:space="preserve">a</source>'
    units = (
        f'<trans-unit id="1" mq:status="NotStarted" mq:grammar="">{source}<target xml:space="preserve"></target>'
        "</trans-unit>",
        f'<trans-unit id="2" mq:status="ManuallyConfirmed">{source}<target>b</target></trans-unit>',
        f'<trans-unit id="3" m:confirmed="0" m:trans-origin="null">{source}<target/></trans-unit>',
        f'<trans-unit id="4" m:confirmed="0" m:locked="true">{source}<target/></trans-unit>',
    )
    path = write("a.mqxliff", f'<xliff xmlns:mq="MQXliff" xmlns:m="m">{FILE}{"".join(units)}</file></xliff>')
    expected = path.read_text().replace('mq:status="NotStarted"', 'mq:status="MachineTranslated"')
    expected = expected.replace('"preserve"></target>', '"preserve">a</target>')
    expected = expected.replace('m:trans-origin="null"', 'm:trans-origin="mt"').replace(
        "<target/>", "<target>a</target>", 1
    )
    assert filled(path).decode() == expected
    bare = f'<xliff xmlns:mq="MQXliff">{FILE}<trans-unit mq:status="NotStarted">{source}</trans-unit></file></xliff>'
    assert f'{source}<target xml:space="preserve">a</target>' in filled(write("b.mqxliff", bare)).decode()
    remark = opened(path).remark
    assert "2 of 4 segments to fill in: 2 empty; the others: 1 ManuallyConfirmed, 1 empty" in remark


def test_words_that_were_taken_out_are_no_text(write: Write) -> None:
    deleted = '<mrk mtype="x-sdl-deleted" sdl:revid="1">very </mrk>'
    unit = f"<trans-unit><source>a {deleted}old dog</source></trans-unit>"
    path = write("a.sdlxliff", f'<xliff xmlns:sdl="s">{FILE}{unit}</file></xliff>')
    assert opened(path).fields.texts == ["a old dog"]


# --- languages ---


def test_only_the_languages_of_the_run_are_filled(write: Write) -> None:
    files = [
        f'<file source-language="en"{target}><trans-unit><source>a</source></trans-unit></file>'
        for target in (' target-language="de"', ' target-language="fr"', "")
    ]
    path = write("a.xlf", f"<xliff>{''.join(files)}</xliff>")
    new = f"</source><target{MARKED}>a</target>"
    named = files[2].replace('"en"', '"en" target-language="de"')
    expected = files[0].replace("</source>", new) + files[1] + named.replace("</source>", new)
    assert filled(path).decode() == f"<xliff>{expected}</xliff>"
    assert "en to de; 2 of 2 segments to fill in: 2 empty; the others: none; 1 from en to fr" in opened(path).remark


def test_a_memory_of_many_languages(write: Write) -> None:
    variants = "\n  ".join(f'<tuv xml:lang="{code}"><seg>{code}</seg></tuv>' for code in ("en", "fr", "es"))
    path = write("a.tmx", f"<tmx><header/><body>\n<tu>\n  {variants}\n</tu>\n</body></tmx>")
    new = '\n  <tuv xml:lang="de" creationid="MT!" creationtool="tfm"><seg>en</seg></tuv>'
    assert filled(path).decode() == path.read_text().replace("\n</tu>", f"{new}\n</tu>")


def test_a_variant_is_laid_out_as_that_of_the_source(write: Write) -> None:
    unit = "<tu>\r\n    <note>n</note>\r\n    <tuv lang='en' >\r\n      <seg>a</seg>\r\n    </tuv>\r\n  </tu>"
    path = write("a.tmx", f"<tmx><body>\r\n  {unit}\r\n</body></tmx>".encode())
    new = '\r\n    <tuv lang="de" creationid="MT!" creationtool="tfm">\r\n      <seg>a</seg>\r\n    </tuv>\r\n  </tu>'
    assert filled(path).decode() == path.read_bytes().decode().replace("\r\n  </tu>", new)


# --- pieces ---


@pytest.mark.parametrize(
    ("tag", "set_", "expected"),
    [
        (b"<a>", {"x": "1"}, b'<a x="1">'),
        (b"<a />", {"x": "1"}, b'<a x="1" />'),
        (b"<a b='2'/>", {"x": "it's"}, b"<a b='2' x='it&apos;s'/>"),
        (b"<a x = '>'  y=\"x='1'\">", {"x": '"', "y": "a&<"}, b'<a x = \'"\'  y="a&amp;&lt;">'),
        (b"<a b='x' x='1'\n y='2'>", {"x": None, "z": None}, b"<a b='x'\n y='2'>"),
    ],
)
def test_attributes_are_set_in_a_tag(tag: bytes, set_: dict[str, str | None], expected: bytes) -> None:
    assert _with_attributes(tag, set_) == expected


def test_a_manner() -> None:
    assert Manner("a &gt; b", "\n").write("a > \"b\" & 'c' <") == "a &gt; \"b\" &amp; 'c' &lt;"
    assert Manner("&#34; &#xA0;&#39; > &#38;", "\n").write("\"' \u00a0 > &") == "&#34;&#39; &#xA0; > &#38;"
    assert Manner('<x id="&quot;&#233;"/>a', "\n").write('"é') == '"é'
    assert Manner("a", "\r\n").write("a\nb\x07\r") == "a\r\nb&#13;"
    assert Manner("a &#13;\r\nb", "\r\n").write("a\r\nb") == "a&#13;\r\nb"


def test_a_broken_file_names_its_line(write: Write) -> None:
    with pytest.raises(DataError, match=r"a\.xlf:2: not well-formed XML: mismatched tag"):
        opened(write("a.xlf", "<xliff><file>\n</xliff>"))
    with pytest.raises(DataError, match=r"b\.tmx:1: its outermost element is <xliff>, not <tmx>"):
        opened(write("b.tmx", "<xliff/>"))
    assert saved(opened(write("c.tmx", "<tmx ><body /></tmx>"))) == b"<tmx ><body /></tmx>"
