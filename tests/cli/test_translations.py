"""Folders of documents, encodings and messages of ICU's format, by the command `tfm translate`."""

from pathlib import Path

import pytest
from helpers.command import Tfm, error_of
from helpers.written_files import Write

PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "one two"\nmsgstr ""\n'


def test_a_folder_is_translated_file_by_file(tfm: Tfm, tiny_run: Path, tmp_path: Path, write: Write) -> None:
    write("in/a.csv", "src,tgt\none two,\nthree,drei\n")
    write("in/deep/b.csv", "src,tgt\nfour,\n")
    write("in/bad.csv", b"src,tgt\n\xff,\n")
    write("in/empty.csv", "")
    write("in/header.csv", "src,tgt\r\n")
    write("in/README.md", "# one\n")
    write("out/a.csv", "old")
    done = tfm("translate", "--run", tiny_run, "--input", "in", "--output", "out", "--beam-size", 1)
    said = error_of(done)
    assert done.returncode == 3 and "1 of 5 files failed" in said and "in/bad.csv:2 byte 1: invalid UTF-8" in said
    written = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert written == {"a.csv", "deep/b.csv", "empty.csv", "header.csv"}
    lines = (tmp_path / "out" / "a.csv").read_bytes().split(b"\n")
    assert lines[0] == b"src,tgt" and lines[1].startswith(b"one two,") and lines[2] == b"three,drei"
    assert (tmp_path / "out" / "header.csv").read_bytes() == b"src,tgt\r\n"
    for name in ("a.csv", "deep/b.csv", "header.csv"):
        assert f"out/{name}: " in said
    alone = tfm("translate", "--run", tiny_run, "--input", "in/a.csv", "--output", "a.csv", "--beam-size", 1)
    assert alone.returncode == 0 and (tmp_path / "a.csv").read_bytes() == (tmp_path / "out" / "a.csv").read_bytes()


def test_a_link_to_what_is_read_is_not_written(tfm: Tfm, tiny_run: Path, tmp_path: Path, write: Write) -> None:
    path = write("in/a.csv", "src,tgt\na,\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.csv").symlink_to(path)
    done = tfm("translate", "--run", tiny_run, "--input", "in", "--output", "out")
    assert done.returncode == 2 and "out/a.csv leads to" in error_of(done)
    assert path.read_text(encoding="utf-8") == "src,tgt\na,\n"


def test_templates_in_a_folder_become_po(tfm: Tfm, tiny_run: Path, tmp_path: Path, write: Write) -> None:
    write("in/app.pot", PO)
    done = tfm("translate", "--run", tiny_run, "--input", "in", "--output", "out", "--beam-size", 1)
    assert done.returncode == 0 and (tmp_path / "out" / "app.po").is_file(), error_of(done)


def test_messages_in_another_language_are_left_and_a_template_beside_them_is_said(
    tfm: Tfm, tiny_run: Path, tmp_path: Path, write: Write
) -> None:
    for code in ("de", "fr_CA"):
        write(f"in/{code}.po", PO.replace("Content", f"Language: {code}\\nContent"))
    write("in/app.pot", PO)
    write("in/none.po", PO.replace("Content", "Language: \\nContent"))
    command = ("translate", "--run", tiny_run, "--input", "in", "--output", "out", "--beam-size", 1)
    done = tfm(*command)
    assert done.returncode == 2 and "name the one to take: --tgt-language de" in error_of(done), error_of(done)
    done = tfm(*command, "--tgt-language", "fr")
    said = error_of(done)
    assert done.returncode == 3 and "1 of 3 files failed" in said, said
    assert "in/de.po: in de, as its header says (Language), not in fr; name the language of the file" in said
    assert "in/app.pot: a template; it is left" in said
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"fr_CA.po", "none.po"}
    alone = ("translate", "--run", tiny_run, "--input", "in/de.po", "--output", "de.po", "--beam-size", 1)
    done = tfm(*alone, "--tgt-language", "fr")
    assert done.returncode == 3 and "in/de.po: in de, " in error_of(done) and not (tmp_path / "de.po").exists()
    assert tfm(*alone).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--input", "in"], 2, "name another one to write its files to, --output DIR"),
        (["--input", "in", "--output", "in/a.csv"], 2, "would overwrite"),
        (["--input", "in", "--output", "in"], 2, "would overwrite"),
        (["--input", "in", "--output", "in/deep"], 2, "would overwrite"),
        (["--input", ".", "--output", "out"], 2, "would overwrite"),
        (["--input", "in", "--output", "file.csv"], 2, "name another one to write its files to"),
        (["--input", "mixed", "--output", "out"], 2, "files of several kinds, .csv and .tsv"),
        (["--input", "none", "--output", "out"], 2, "has no file that ends in"),
        (["--input", "in", "--output", "out", "--json"], 2, "--json and --prefix are for lines"),
        (["--input", "in/a.csv", "--output", "b.csv", "--encoding", "cp9999"], 2, "no encoding is called 'cp9999'"),
    ],
)
def test_what_cannot_be_done_with_a_folder(
    tfm: Tfm, tiny_run: Path, write: Write, arguments: list[str], code: int, words: str
) -> None:
    for name in ("in/a.csv", "mixed/a.csv", "mixed/b.tsv", "file.csv", "none/a.txt"):
        write(name, "src,tgt\na,\n")
    done = tfm("translate", "--run", tiny_run, *arguments)
    assert (done.returncode, words in error_of(done)) == (code, True), error_of(done)


def test_text_in_another_encoding(tfm: Tfm, tiny_run: Path, tmp_path: Path, write: Write) -> None:
    text = "один два три\nчетыре пять\n"
    path = write("in.txt", text.encode("cp1251"))
    write("plain.txt", text)
    plain = tfm("translate", "--run", tiny_run, "--input", "plain.txt")
    for flags in (["--input", "in.txt"], []):
        named = tfm("translate", "--run", tiny_run, "--encoding", "cp1251", *flags, stdin=path.read_bytes())
        assert named.stdout == plain.stdout and named.returncode == 0
    for content in (text.encode("utf-16"), "\ufeff".encode() + text.encode()):
        write("marked.txt", content)
        assert tfm("translate", "--run", tiny_run, "--input", "marked.txt").stdout == plain.stdout
    guessed = error_of(tfm("translate", "--run", tiny_run, "--input", "in.txt"))
    assert "2 lines were not valid UTF-8" in guessed
    assert "in cp1251 ('один два три')" in guessed and "--encoding" in guessed


@pytest.mark.parametrize("name", ["a.md", "a.html", "a.strings", "a.txt"])
def test_no_markup_is_translated_as_lines(tfm: Tfm, tiny_run: Path, write: Write, name: str) -> None:
    write(name, "<!DOCTYPE html>\n<p>one</p>\n" if name == "a.txt" else "one two\n")
    done = tfm("translate", "--run", tiny_run, "--input", name, "--output", "out.txt")
    assert done.returncode == 3 and "its lines are not sentences; take its texts out as XLIFF or PO" in error_of(done)


def test_no_markup_is_read_from_standard_input(tfm: Tfm, tiny_run: Path) -> None:
    done = tfm("translate", "--run", tiny_run, stdin=b'{\n  "title": "one"\n}\n')
    assert done.returncode == 3 and "standard input looks like JSON" in error_of(done)


def test_what_is_no_message_is_left_and_said(tfm: Tfm, tiny_run: Path, tmp_path: Path, write: Write) -> None:
    write("a.csv", 'src;tgt\n{n, plural, one {x};\n"{n, plural, other {one two}}";\n')
    done = tfm("translate", "--run", tiny_run, "--input", "a.csv", "--output", "b.csv", "--tgt-language", "pl")
    assert done.returncode == 0
    assert "1 left as they were: they look like messages in ICU's format, and are none" in error_of(done)
    lines = (tmp_path / "b.csv").read_text(encoding="utf-8").splitlines()
    assert lines[1] == "{n, plural, one {x};"
    if not lines[2].endswith(";"):  # a tiny run may have nothing to say
        assert all(f"{form} {{" in lines[2].partition(";")[2] for form in ("one", "few", "many", "other"))
