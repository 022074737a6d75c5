"""XML is read with its places, as lxml reads it, and within bounds."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from helpers.written_files import Write
from helpers.written_xml import trees
from hypothesis import HealthCheck, given, settings
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from tfm.data.formats.xml import Element, Kind, XmlFile, elements, lines_of, text_of
from tfm.system.errors import DataError

KIND = Kind("root", frozenset({"unit"}))
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "iso-8859-1", "windows-1251", "koi8-r", "shift_jis"]


def plain(element: Any) -> Any:
    """An element of lxml's as names, attributes and text."""
    text = [element.text or ""]
    for child in element:
        if isinstance(child.tag, str):
            text += [plain(child), child.tail or ""]
        else:
            text[-1:] = [text[-1] + (child.tail or "")] if isinstance(text[-1], str) else [text[-1], child.tail or ""]
    return element.xpath("name()"), sorted(dict(element.attrib).values()), joined(text)


def ours(element: Element) -> Any:
    """One of our elements in the same way. Instructions are elements of ours, and left out."""
    content = [one if isinstance(one, str) else ours(one) for one in element.content if not is_instruction(one)]
    values = sorted(value for name, value in element.attributes.items() if not name.startswith("xmlns"))
    return element.name, values, joined([one.replace("\r\n", "\n") if isinstance(one, str) else one for one in content])


def is_instruction(one: Any) -> bool:
    return isinstance(one, Element) and one.name == "?"


def joined(parts: list[Any]) -> list[Any]:
    """Texts beside each other as one; no empty ones."""
    found: list[Any] = []
    for one in parts:
        if isinstance(one, str) and found and isinstance(found[-1], str):
            found[-1] += one
        elif one != "":
            found.append(one)
    return [one for one in found if one != ""]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trees())
def test_what_is_read_is_what_lxml_reads(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.xml"
    path.write_bytes(content.encode())
    file = XmlFile(path)
    found = file.elements(KIND)
    expected = list(etree.fromstring(content.encode(), etree.XMLParser(resolve_entities=False)).iter("{*}unit"))
    assert [ours(one) for one in found] == [plain(one) for one in expected]
    assert [ours(one) for one in elements(path, KIND)] == [ours(one) for one in found]
    places = [(one.start, file.inner_start(one), one.stop, file.end(one)) for one in found]
    for one, (start, inner, stop, end) in zip(found, places, strict=True):
        assert start < inner <= stop <= end
        assert file.outer(one).startswith(b"<" + one.name.encode()) and file.outer(one).endswith(b">")
        whole = etree.fromstring(b'<w xmlns:p="p">' + file.outer(one) + b"</w>")  # what stands there is the element
        assert plain(whole[0])[2] == ours(one)[2]
        assert not file.inner(one) or file.outer(one).count(file.inner(one)) >= 1


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_encodings(write: Write, encoding: str) -> None:
    word = {"windows-1251": "дом", "koi8-r": "дом", "shift_jis": "家屋"}.get(encoding, "Tür")
    name = "utf-8" if encoding == "utf-8-sig" else encoding.removesuffix("-be")
    content = f'<?xml version="1.0" encoding="{name}"?>\n<root><unit>{word}</unit></root>'
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    path = write("a.xml", (mark + content).encode(encoding))
    (unit,) = XmlFile(path).elements(KIND)
    assert unit.content == [word]
    assert [one.start for one in elements(path, KIND)] == [unit.start]


def test_an_encoding_that_is_none_or_not_the_true_one(write: Write) -> None:
    text = '<?xml version="1.0" encoding="{}"?>\n<root>\n<unit>T\u00fcr</unit></root>'
    for name in ("utf-9", "rot13", "zlib"):
        with pytest.raises(DataError, match=rf"a\.xml:1: it declares encoding={name}, which is none"):
            XmlFile(write("a.xml", text.format(name).encode()))
    with pytest.raises(DataError, match=r"b\.xml:\d: not ascii, which the file declares"):
        XmlFile(write("b.xml", text.format("us-ascii").encode()))
    with pytest.raises(DataError, match=r"c\.xml:3: not well-formed XML"):
        XmlFile(write("c.xml", text.format("utf-8").encode("latin-1"))).elements(KIND)
    (unit,) = XmlFile(write("d.xml", text.format("utf-16").encode())).elements(KIND)
    assert unit.content == ["T\u00fcr"]


@pytest.mark.parametrize(
    ("torn", "line"), [("<root>\n<unit>\n</root>", 3), ("<root>\n<unit a=1/>", 2), ("<root>\n\n&nbsp;", 3), ("", 1)]
)
def test_what_is_not_well_formed_names_its_line(write: Write, torn: str, line: int) -> None:
    path = write("a.xml", torn)
    with pytest.raises(DataError, match=rf"a\.xml:{line}: not well-formed XML"):
        list(elements(path, KIND))


def test_entities_are_not_expanded(write: Write, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("SECRET")
    own = f'<!ENTITY own "text"><!ENTITY outside SYSTEM "{(tmp_path / "secret").as_uri()}">'
    path = write("a.xml", f"<!DOCTYPE root [{own}]><root><unit>a&own;b&outside;&lt;</unit></root>")
    (unit,) = XmlFile(path).elements(KIND)
    assert text_of(unit, frozenset()) == "a&own;b&outside;<"


@pytest.mark.parametrize("place", ["<unit>&e20;</unit>", '<unit a="&e20;"/>'])
def test_an_entity_that_grows_without_end_does_no_harm(write: Write, place: str) -> None:
    bomb = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "boom"}">' for n in range(21))
    path = write("a.xml", f"<!DOCTYPE root [{bomb}]><root>{place}</root>")
    if "a=" in place:
        with pytest.raises(DataError, match=r"a\.xml:1: not well-formed XML: limit on input amplification"):
            list(elements(path, KIND))
    else:
        assert [text_of(one, frozenset()) for one in XmlFile(path).elements(KIND)] == ["&e20;"]


def test_depth_and_size_are_bounded(write: Write) -> None:
    deep = "<unit>" * 300 + "</unit>" * 300
    with pytest.raises(DataError, match=r"a\.xml:1: more than 256 elements in each other"):
        list(elements(write("a.xml", f"<root>{deep}</root>"), KIND))
    child = f'<b a="{"x" * 992}"/>'
    for number, large in enumerate((f"<unit>{child * 12_000}</unit>", f'<unit a="{"x" * 12_000_000}"/>')):
        with pytest.raises(DataError, match=r"more than 10,000,000 bytes"):
            list(elements(write(f"{number}.xml", f"<root>{large}</root>"), KIND))


def test_memory_is_bounded(write: Write) -> None:
    path = write("a.xml", f"<root>{'<unit><a><b>text</b></a>more</unit>' * 100_000}</root>")
    list(elements(write("b.xml", "<root/>"), KIND))
    tracemalloc.start()
    try:
        count = sum(1 for _ in elements(path, KIND))
        assert count == 100_000 and tracemalloc.get_traced_memory()[1] < 2_500_000 < path.stat().st_size
    finally:
        tracemalloc.stop()


def test_line_ends_inside_a_text(write: Write) -> None:
    units = [
        "<unit>\n  one\n    two  three\n</unit>",
        "<unit> one&#10;two&#13;\nthree\nfour </unit>",
        '<unit xml:space="preserve">one\n Two.\nthree\n  four\n\nfive\n5</unit>',
        '<unit xml:space="preserve"><b xml:space="default">one\ntwo</b></unit>',
        "<unit><![CDATA[one\ntwo]]></unit>",
        "<unit>\n  </unit>",
    ]
    file = XmlFile(write("a.xml", f"<root>{''.join(units)}</root>"))
    texts = [text_of(one, frozenset()) for one in file.elements(KIND)]
    assert texts[:3] == ["\n  one two  three\n", " one\r\ntwo\r\nthree four ", "one\n Two.\nthree four\n\nfive\n5"]
    assert texts[4:] == ["one two", "\n  "]


def test_a_reference_at_the_end_of_a_block(write: Write) -> None:
    for before in range(65_516, 65_530):
        path = write("a.xml", f"<root>{' ' * before}<unit>a&#10;b\nc</unit></root>")
        (unit,) = XmlFile(path).elements(KIND)
        assert text_of(unit, frozenset()) == "a\r\nb c"


def test_lines_that_count_are_pairs_if_both_sides_have_as_many() -> None:
    assert lines_of("a\nb", "c\n\nd") == [("a", "c"), ("b", "d")]
    assert lines_of("a\nb", "c d") == [("a\nb", "c d")]
    assert lines_of("a", " ") == [("", "")] and lines_of("\n", "\n") == [("", "")]
