"""Folders of files of one kind."""

from pathlib import Path

import pytest
from helpers.tables import pairs_of
from helpers.written_files import Write

from tfm.data.config import DataConfig
from tfm.data.corpus import open_corpus, open_spec
from tfm.data.formats.folder import KINDS, files_below
from tfm.system.errors import DataError, UsageError

PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "{}"\nmsgstr "{}"\n'


def test_all_files_below_are_one_corpus_each_said_in_a_line(write: Write, tmp_path: Path) -> None:
    write("f/de/b.po", PO.format("two", "zwei"))
    write("f/de/deep/a.po", PO.format("three", "drei"))
    write("f/a.po", PO.format("one", "eins"))
    for other in ("f/README.md", "f/Makefile", "f/package.json", "f/a.mo", "f/.git/x.po", "f/.hidden.po"):
        write(other, "x")
    corpus = open_spec(str(tmp_path / "f"), DataConfig())
    assert [pair for pair in corpus.pairs() if any(pair)] == [("one", "eins"), ("two", "zwei"), ("three", "drei")]
    assert corpus.count() == len(list(corpus.pairs())) and corpus.incomplete and not corpus.failed
    folder = tmp_path / "f"
    said = [f"{folder / name}: 1 pairs" for name in ("a.po", "de/b.po", "de/deep/a.po")]
    assert [remark for remark in corpus.remarks if "pairs" in remark] == said


def test_a_change_in_any_file_is_another_corpus(write: Write, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(f"f/{name}.tsv", "one\teins\n")
    before = open_spec(str(tmp_path / "f"), DataConfig())
    identity = before.identity
    write("f/c.tsv", "one\teins\n")
    with pytest.raises(DataError, match="was replaced, moved or written to"):
        list(before.pairs())
    after = open_spec(str(tmp_path / "f"), DataConfig())
    assert after.identity != identity
    assert open_spec(str(tmp_path / "f"), DataConfig()).identity == after.identity


def test_a_file_that_fails_does_not_stop_the_others_and_is_kept_for_who_asks(write: Write, tmp_path: Path) -> None:
    write("f/a.csv", "src,tgt\none,eins\n")
    write("f/b.csv", "src,tgt\none\n")
    write("f/c.csv", b"src,tgt\none,\xff\n")
    write("f/d.csv", "src,tgt\n")
    write("f/e.csv", "")
    folder = str(tmp_path / "f")
    config = DataConfig(data=[folder])
    corpus = open_corpus(config, partly=True)
    assert list(corpus.pairs()) == [("one", "eins")]
    places = [problem.partition(": ")[0] for problem in corpus.failed]
    assert places == [f"{folder}/b.csv:2", f"{folder}/c.csv:2 byte 5"]
    with pytest.raises(DataError, match=r"(?s)b\.csv:2: .*c\.csv:2 .*2 of its files cannot be read") as refused:
        open_corpus(config)
    assert len(str(refused.value).splitlines()) == 3
    skipping = open_corpus(DataConfig(data=[folder], bad_lines="skip"))
    assert [pair for pair in skipping.pairs() if any(pair)] == [("one", "eins")]
    assert any(remark.startswith(f"left out: {folder}/b.csv") for remark in skipping.remarks)


def test_one_kind_at_a_time(write: Write, tmp_path: Path) -> None:
    write("f/a.xlf", "")
    write("f/b.sdlxliff", "")
    assert len(files_below(tmp_path / "f", KINDS)) == 2
    write("f/c.tmx", "")
    with pytest.raises(UsageError, match=r"several kinds, \.\w+ and \.\w+; name"):
        files_below(tmp_path / "f", KINDS)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="has no file that ends in"):
        pairs_of(tmp_path / "empty")


def test_compiled_messages_alone_are_read(write: Write, tmp_path: Path) -> None:
    write("f/a.json", '{"src": "one", "tgt": "eins"}\n')
    assert pairs_of(tmp_path / "f") == [("one", "eins")]


IN = 'msgid ""\nmsgstr "Language: {}\\nContent-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "one"\nmsgstr "{}"\n'


def test_messages_in_several_languages_are_no_corpus_unless_one_is_wanted(write: Write, tmp_path: Path) -> None:
    write("f/de.po", IN.format("de_AT", "eins"))
    write("f/fr.po", IN.format("fr", "un"))
    write("f/none.po", IN.format("", "une"))
    write("f/odd.po", IN.format("French (France)", "ung"))
    write("f/app.pot", IN.format("", ""))
    folder = str(tmp_path / "f")
    said = r"f has files of several target languages: de_AT \(de\.po\), fr \(fr\.po\); name the one to take: --tgt-lang"
    with pytest.raises(UsageError, match=said):
        open_spec(folder, DataConfig())
    corpus = open_corpus(DataConfig(data=[folder], src_language="en", tgt_language="fr"))
    assert list(corpus.pairs()) == [("one", "un"), ("one", "une"), ("one", "ung")] and corpus.languages == ("", "fr")
    assert f"{folder}/de.po: in de_AT, as its header says (Language); it is left out" in corpus.remarks
    with pytest.raises(DataError, match=r"(?s)de\.po: in de_AT, .*, not in es; name the .*--tgt-language de_AT"):
        open_spec(str(tmp_path / "f" / "de.po"), DataConfig(tgt_language="es"))
    assert pairs_of(tmp_path / "f" / "de.po", DataConfig(tgt_language="de")) == [("one", "eins")]
    write("f/de.po", IN.format("fr_CA", "un"))
    assert open_spec(folder, DataConfig()).languages == ("", "fr")


def test_regions_of_the_language_that_is_wanted_are_one_corpus(write: Write, tmp_path: Path) -> None:
    for code in ("pt_BR", "pt_PT"):
        write(f"f/{code}.po", IN.format(code, "um"))
    assert len(list(open_spec(str(tmp_path / "f"), DataConfig(tgt_language="pt")).pairs())) == 2
    with pytest.raises(UsageError, match=r"pt_BR .*, pt_PT "):
        open_spec(str(tmp_path / "f"), DataConfig())


def test_units_in_several_languages_are_no_corpus_unless_one_is_wanted(write: Write, tmp_path: Path) -> None:
    for code, text in (("de", "eins"), ("fr", "un")):
        write(
            f"f/{code}.xlf",
            f'<xliff version="1.2"><file source-language="en" target-language="{code}"><body><trans-unit id="1">'
            f"<source>one</source><target>{text}</target></trans-unit></body></file></xliff>",
        )
    with pytest.raises(UsageError, match=r"several target languages: de \(de\.xlf\), fr \(fr\.xlf\)"):
        open_spec(str(tmp_path / "f"), DataConfig())
    corpus = open_corpus(DataConfig(data=[str(tmp_path / "f")], tgt_language="fr"))
    assert list(corpus.pairs()) == [("one", "un")] and not corpus.failed
    assert f"{tmp_path}/f/de.xlf: from en to de; it is left out" in corpus.remarks
    with pytest.raises(DataError, match="no file has a pair"):
        open_spec(str(tmp_path / "f"), DataConfig(tgt_language="es"))
