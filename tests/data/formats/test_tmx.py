"""Translation memories."""

import contextlib
from pathlib import Path

import pytest
from helpers.tables import pairs_of
from helpers.written_files import Write

from tfm.data.config import DataConfig
from tfm.system.errors import DataError


def tmx(*units: str, srclang: str = "en", encoding: str = "UTF-8") -> str:
    """A memory of units, each the XML of its variants."""
    body = "".join(f"<tu>{unit}</tu>\n" for unit in units)
    return (
        f'<?xml version="1.0" encoding="{encoding}"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'
        f'<tmx version="1.4"><header srclang="{srclang}" segtype="sentence"/>\n<body>{body}</body></tmx>'
    )


def variant(language: str, segment: str) -> str:
    """One language of a unit."""
    return f'<tuv xml:lang="{language}"><seg>{segment}</seg></tuv>'


HOUSE = variant("de", "Haus &amp; Hof") + variant("en", "house &amp; home")
MARKED = variant("de", 'Ein <bpt i="1">&lt;b></bpt>Wort<ept i="1">&lt;/b></ept><ph x="1"/>.') + variant(
    "en", "A <hi>word</hi>."
)


def test_the_header_says_which_language_is_the_source_and_markup_is_left_out(write: Write) -> None:
    assert pairs_of(write("a.tmx", tmx(HOUSE, MARKED))) == [
        ("house & home", "Haus & Hof"),
        ("A word.", "Ein Wort."),
    ]
    assert pairs_of(write("b.tmx", tmx(HOUSE, srclang="*all*"))) == [("Haus & Hof", "house & home")]


def test_languages_are_named_with_or_without_their_region(write: Write) -> None:
    path = write("a.tmx", tmx(variant("en-GB", "colour") + variant("DE_de", "Farbe") + variant("fr", "couleur")))
    assert pairs_of(path, DataConfig(src_language="fr", tgt_language="de")) == [("couleur", "Farbe")]
    assert pairs_of(path, DataConfig(src_column="en", tgt_column="fr")) == [("colour", "couleur")]
    with pytest.raises(DataError, match=r"a\.tmx: units in en-GB, DE_de, fr; name two of them: --src-language en"):
        pairs_of(path)
    with pytest.raises(DataError, match=r"no unit in en and es; it has DE_de, en-GB, fr"):
        pairs_of(path, DataConfig(src_language="en", tgt_language="es"))


def test_regional_forms_are_one_language_unless_there_is_no_other(write: Write) -> None:
    units = [variant("EN-US", "a") + variant("DE-DE", "b"), variant("en", "c") + variant("de-AT", "d")]
    assert pairs_of(write("a.tmx", tmx(*units, srclang="en-US"))) == [("a", "b"), ("c", "d")]
    british = variant("en-US", "color") + variant("en-GB", "colour")
    assert pairs_of(write("b.tmx", tmx(british))) == [("color", "colour")]


def test_entities_and_line_breaks_keep_words_apart(write: Write) -> None:
    unit = variant("en", "10&nbsp;km<ph>&lt;br/></ph>away &own;") + variant("de", "10 km<ut/>, weg")
    assert pairs_of(write("a.tmx", tmx(unit))) == [("10\u00a0km away &own;", "10 km, weg")]


def test_a_unit_without_one_language_is_an_empty_pair_and_several_variants_are_several(write: Write) -> None:
    several = variant("en", "car") + variant("de", "Auto") + variant("de", "Wagen")
    path = write("a.tmx", tmx(HOUSE, variant("en", "alone"), several))
    assert pairs_of(path) == [("house & home", "Haus & Hof"), ("", ""), ("car", "Auto"), ("car", "Wagen")]


@pytest.mark.parametrize("encoding", ["UTF-16", "ISO-8859-1"])
def test_the_encoding_that_a_file_declares_is_taken(write: Write, encoding: str) -> None:
    content = tmx(variant("en", "door") + variant("de", "Tür"), encoding=encoding).encode(encoding)
    assert pairs_of(write("a.tmx", content)) == [("door", "Tür")]


def test_neither_entities_nor_files_outside_are_opened(write: Write, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    entities = f'<!ENTITY own "text"><!ENTITY outside SYSTEM "{(tmp_path / "secret").as_uri()}">'
    assert pairs_of(write("a.tmx", with_entities(entities, "a&own;b&outside;c"))) == [("a&own;b&outside;c", "d")]


def test_an_entity_that_grows_without_end_does_no_harm(write: Write) -> None:
    bomb = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "boom"}">' for n in range(12))
    with contextlib.suppress(DataError):  # refused, or left out: this depends on the version of libxml2
        assert pairs_of(write("a.tmx", with_entities(bomb, "&e11;"))) == [("&e11;", "d")]


def with_entities(entities: str, segment: str) -> str:
    """A memory with entities of its own and one unit."""
    content = tmx(variant("en", segment) + variant("de", "d"))
    return content.replace('<!DOCTYPE tmx SYSTEM "tmx14.dtd">', f"<!DOCTYPE tmx [{entities}]>")


def test_what_is_not_xml_names_its_line(write: Write) -> None:
    with pytest.raises(DataError, match=r"torn\.tmx:4: not well-formed XML"):
        pairs_of(write("torn.tmx", tmx(HOUSE)[:150] + "\n"))
    with pytest.raises(DataError, match=r"other\.tmx:2: its outermost element is <html>, not <tmx>"):
        pairs_of(write("other.tmx", "\n<html/>"))
    assert pairs_of(write("empty.tmx", tmx())) == []
