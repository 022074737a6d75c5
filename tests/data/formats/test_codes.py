"""Inline codes: pairs to learn from have them as tags where a translation has the same ones."""

import re
from pathlib import Path

import pytest
from helpers.tables import pairs_of
from helpers.written_files import Write
from hypothesis import given
from hypothesis import strategies as st

from tfm.data.config import DataConfig
from tfm.data.formats.codes import cut_ends, tag_pattern
from tfm.data.placeholders import PlaceholderCount, placeholders
from tfm.engine.documents import open_document

XLIFF = """<xliff version="1.2"><file source-language="en" target-language="de"><body>
<trans-unit id="1"><source>{source}</source>{target}</trans-unit></body></file></xliff>"""
TMX = """<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>{source}</seg></tuv>
<tuv xml:lang="de"><seg>{target}</seg></tuv></tu></body></tmx>"""


def learnt(write: Write, source: str, target: str, suffix: str = ".xlf") -> tuple[str, str]:
    """The pair that is learned from a segment and its translation."""
    pattern = TMX if suffix == ".tmx" else XLIFF.replace("{target}", "<target>{target}</target>")
    return pairs_of(write(f"a{suffix}", pattern.format(source=source, target=target)))[0]


@pytest.mark.parametrize(
    ("source", "target", "pair"),
    [
        (
            'Open the <g id="1">red</g> <x id="2"/> file.',
            'Die <x id="2"/> <g id="1">rote</g> Datei öffnen.',
            ("Open the <t1>red</t1> <t2/> file.", "Die <t2/> <t1>rote</t1> Datei öffnen."),
        ),
        (
            'a <bpt id="1">&lt;b></bpt>red<ept id="1">&lt;/b></ept> cat',
            'eine <bpt id="1">&lt;b></bpt>rote<ept id="1">&lt;/b></ept> Katze',
            ("a <t1>red</t1> cat", "eine <t1>rote</t1> Katze"),
        ),
        (
            'the <bx rid="1" id="4"/>old<ex rid="1" id="5"/> man',
            'der <bx rid="1" id="4"/>alte<ex rid="1" id="5"/> Mann',
            ("the <t1>old</t1> man", "der <t1>alte</t1> Mann"),
        ),
        ('<g id="1">All of it</g>', '<g id="1">Alles</g>', ("All of it", "Alles")),
        ('<g id="1">All</g> of it', "Alles", ("All of it", "Alles")),
        ('two<x id="1"/>lines', 'zwei<x id="2"/>Zeilen', ("two<t1/>lines", "zwei<t1/>Zeilen")),
        ('two<x id="1"/>lines', 'zwei<x id="1"/><x id="2"/>Zeilen', ("two lines", "zwei Zeilen")),
        ('<x id="1"/> has <x id="2"/>', '<x id="2"/> hat <x id="1"/>', ("<t1/> has <t2/>", "<t2/> hat <t1/>")),
        ('see &lt;t1> <x id="1"/> there', 'siehe <x id="1"/> dort', ("see <t1> <t0_1/> there", "siehe <t0_1/> dort")),
        (
            'our <mrk mtype="protected">Foo</mrk> file',
            'die Datei <mrk mtype="protected">Foo</mrk>',
            ("our <t1/> file", "die Datei <t1/>"),
        ),
    ],
)
def test_codes_are_tags_where_both_have_the_same(write: Write, source: str, target: str, pair: tuple[str, str]) -> None:
    assert learnt(write, source, target) == pair


@pytest.mark.parametrize(
    ("source", "target", "pair"),
    [
        (
            'a <bpt i="1" x="7">[</bpt>cat<ept i="1">]</ept>',
            'eine <bpt i="3" x="7">[</bpt>Katze<ept i="3">]</ept>',
            ("a <t1>cat</t1>", "eine <t1>Katze</t1>"),
        ),
        (
            'on <ph x="1">[a]</ph> or <ph x="2">[b]</ph>.',
            'auf <ph x="8">[b]</ph> oder <ph x="9">[a]</ph>.',
            ("on <t1/> or <t2/>.", "auf <t2/> oder <t1/>."),
        ),
        (
            'an <hi>old</hi> <it pos="begin">(</it>cat',
            'eine <hi>alte</hi> <it pos="begin">(</it>Katze',
            ("an <t1>old</t1> <t2/>cat", "eine <t1>alte</t1> <t2/>Katze"),
        ),
    ],
)
def test_codes_of_memories(write: Write, source: str, target: str, pair: tuple[str, str]) -> None:
    assert learnt(write, source, target, ".tmx") == pair


@pytest.mark.parametrize(
    ("source", "target", "pair"),
    [
        (
            "on <ph>[a]</ph> or <ph>[b]</ph>.",
            "auf <ph>[b]</ph> oder <ph>[a]</ph>.",
            ("on <t1/> or <t2/>.", "auf <t2/> oder <t1/>."),
        ),
        ('a <x id="1"/> b <x id="2"/> c', 'A <x id="2"/> B <x id="3"/> C', ("a <t1/> b <t2/> c", "A <t2/> B <t1/> C")),
        (
            'the <g id="1">red</g> one<g id="2"/>',
            '<g id="3"/>das <g id="4">rote</g>',
            ("the <t1>red</t1> one<t2/>", "<t2/>das <t1>rote</t1>"),
        ),
        (
            '<x id="START_LINK_1"/>Click<x id="CLOSE_LINK"/> <x id="PH"/>',
            '<x id="PH"/>: <x id="START_LINK_1"/>hier<x id="CLOSE_LINK"/>',
            ("<t1>Click</t1> <t2/>", "<t2/>: <t1>hier</t1>"),
        ),
        (
            'Open <x id="1"/> now',
            '<mrk mtype="seg" mid="0">Jetzt <x id="1"/> öffnen</mrk>',
            ("Open <t1/> now", "Jetzt <t1/> öffnen"),
        ),
        (
            'our <mrk mtype="protected">A</mrk>, <mrk mtype="protected">B</mrk>',
            'unser <mrk mtype="protected">B</mrk>, <mrk mtype="protected">A</mrk>',
            ("our <t1/>, <t2/>", "unser <t2/>, <t1/>"),
        ),
    ],
)
def test_which_code_is_which(write: Write, source: str, target: str, pair: tuple[str, str]) -> None:
    assert learnt(write, source, target) == pair


@pytest.mark.parametrize(
    ("source", "target", "pair"),
    [
        ('<g id="1">Alles</g>', 'Nun <g id="1">all of it</g>', ("Alles", "Nun all of it")),
        ('a <x id="1"/>&#10;b', 'A&#10;<x id="1"/> B', ("a \r", "A\r")),
        ('Read more <ph id="1">{1}</ph>', '<ph id="1">{1}</ph>', ("", "")),
        ('<g id="1">a</g> b', '<g id="1"/>a b', ("a b", "a b")),
    ],
)
def test_a_pair_has_no_tags_where_both_sides_would_have_others(
    write: Write, source: str, target: str, pair: tuple[str, str]
) -> None:
    assert learnt(write, source, target) == pair


def test_codes_do_not_change_which_line_ends_count(write: Write) -> None:
    for source, texts in (
        ('Click the\n<g id="1">red</g> button.', ["Click the <t1>red</t1> button."]),
        ('End.<x id="1"/>\nnow go', ["End.<t1/>", "now go"]),
    ):
        path = write(
            "b.xlf", XLIFF.format(source=source, target="").replace("<source>", '<source xml:space="preserve">')
        )
        assert open_document(path, path.with_name("c.xlf"), DataConfig()).fields.texts == texts


def test_what_is_learned_is_what_is_translated_and_the_tags_count_as_carried_through(
    write: Write, tmp_path: Path
) -> None:
    source, target = 'A <g id="1">red <x id="2"/> ball</g>.', 'Ein <g id="1">roter <x id="2"/> Ball</g>.'
    src, tgt = learnt(write, source, target)
    document = open_document(write("b.xlf", XLIFF.format(source=source, target="")), tmp_path / "out.xlf", DataConfig())
    assert document.fields.texts == [src] and document.fields.fill([tgt]) == 0
    count = PlaceholderCount()
    for _ in range(20):
        count.add(src, tgt)
    assert "tag" in count.rule().carried and placeholders(src) == ["<t1>", "<t2/>", "</t1>"]


@given(
    st.lists(st.sampled_from(["<t1>", "</t1>", "<t2/>", "<t3>", "</t3>", " ", "a", "b c"]), max_size=9), st.booleans()
)
def test_cutting_off_ends_loses_nothing_and_cuts_no_tag_from_its_other_half(pieces: list[str], alone: bool) -> None:
    text = "".join(pieces)
    before, inner, after = cut_ends(text, tag_pattern("t"), alone=alone)
    assert before + inner + after == text and not re.search("[abc]", before + after)
    opened, closed = re.findall(r"<t(\d)>", before), re.findall(r"</t(\d)>", after)
    assert opened == closed[::-1] and not re.search("</", before) and not re.search(r"<t\d>", after)
    assert alone or "/>" not in before + after
