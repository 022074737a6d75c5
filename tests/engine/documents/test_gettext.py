"""PO files that are filled in: only what is filled changes, and it is written as the file writes it."""

import io
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.po_files import Meant, needs_gettext, po_files
from helpers.written_files import Write
from hypothesis import HealthCheck, given, settings

from tfm.data.config import DataConfig
from tfm.data.formats.po import PoFile
from tfm.engine.documents import open_document
from tfm.engine.documents.gettext import COMMENT
from tfm.system.errors import UsageError

HEADER = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n'
)


def filled(path: Path, translate: Callable[[str], str] = str.upper, language: str = "") -> bytes:
    document = open_document(path, path.with_name("out.po"), DataConfig(tgt_language=language))
    document.fields.fill([translate(text) for text in document.fields.texts])
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def check(content: bytes, meant: list[Meant]) -> None:
    """Filled messages have translations and are fuzzy; all others are in the file as they were, to the byte."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.po"
        path.write_bytes(content)
        assert filled(path, lambda _: "") == content
        output = filled(path, lambda text: f"{text} Ü")
        (Path(folder) / "b.po").write_bytes(output)
        before, after = PoFile(path), PoFile(Path(folder) / "b.po")
    assert len(before.messages) == len(after.messages) == len(meant)
    for old, new, message in zip(before.messages, after.messages, meant, strict=True):
        is_open = not message.obsolete and ("fuzzy" in message.flags or not all(message.msgstr))
        sources = old.msgctxt, old.msgid, old.msgid_plural
        for one, other in zip(sources, (new.msgctxt, new.msgid, new.msgid_plural), strict=True):
            assert (one and before.text[one.start : one.end]) == (other and after.text[other.start : other.end])
        if not is_open:
            end = old.msgstr[-1].end
            assert before.text[old.start : end] == after.text[new.start : new.msgstr[-1].end]
            assert [one.text for one in old.comments] == [one.text for one in new.comments]
            continue
        assert new.flags == old.flags | {"fuzzy"} and not new.previous
        assert sum(comment.text == f"# {COMMENT}" for comment in new.comments) == 1
        for form, part in enumerate(new.msgstr):
            if "fuzzy" in message.flags or not message.msgstr[form]:
                assert "Ü" in part.text
            else:
                assert part.text == message.msgstr[form]


_PATIENT = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
MANY = settings(max_examples=150, deadline=None, suppress_health_check=_PATIENT)


@MANY
@given(po_files())
def test_only_what_is_filled_changes(made: tuple[bytes, list[Meant]]) -> None:
    check(*made)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@settings(MANY, max_examples=20_000)
@given(po_files())
def test_only_what_is_filled_changes_in_twenty_thousand_files(made: tuple[bytes, list[Meant]]) -> None:
    check(*made)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ('msgid "a b"\nmsgstr ""\n', f'# {COMMENT}\n#, fuzzy\nmsgid "a b"\nmsgstr "A B"\n'),
        ('#, c-format\nmsgid "a"\nmsgstr ""', f'# {COMMENT}\n#, fuzzy, c-format\nmsgid "a"\nmsgstr "A"'),
        ('#= c-format\nmsgid "a"\nmsgstr ""\n', f'# {COMMENT}\n#= c-format\n#, fuzzy\nmsgid "a"\nmsgstr "A"\n'),
        (
            '# by hand\n#. of a program\n#: a.c:1\n#, fuzzy\n#| msgid "c"\n#| "d"\nmsgid "a"\nmsgstr "c"\n',
            f'# by hand\n# {COMMENT}\n#. of a program\n#: a.c:1\n#, fuzzy\nmsgid "a"\nmsgstr "A"\n',
        ),
        (
            f'# {COMMENT}\n#, fuzzy\nmsgid "a"\nmsgstr "c"\n',
            f'# {COMMENT}\n#, fuzzy\nmsgid "a"\nmsgstr "A"\n',
        ),
        ('msgid "a"\nmsgstr\n""\n', f'# {COMMENT}\n#, fuzzy\nmsgid "a"\nmsgstr\n"A"\n'),
        ('msgid "a\\n"\n"b"\nmsgstr ""\n', f'# {COMMENT}\n#, fuzzy\nmsgid "a\\n"\n"b"\nmsgstr "A\\n"\n"B"\n'),
        (
            'msgid ""\n"a\\n"\n"b"\nmsgstr ""\n',
            f'# {COMMENT}\n#, fuzzy\nmsgid ""\n"a\\n"\n"b"\nmsgstr ""\n"A\\n"\n"B"\n',
        ),
        ('msgid "a\\nb"\nmsgstr ""\n', f'# {COMMENT}\n#, fuzzy\nmsgid "a\\nb"\nmsgstr "A\\nB"\n'),
        (
            'msgid "a"\nmsgid_plural "c"\nmsgstr[0] "x"\n',
            f'# {COMMENT}\n#, fuzzy\nmsgid "a"\nmsgid_plural "c"\nmsgstr[0] "x"\nmsgstr[1] "C"\n',
        ),
        (
            '#, fuzzy\nmsgid "a"\nmsgid_plural "c"\nmsgstr[0] "x"\nmsgstr[1] ""\n',
            f'# {COMMENT}\n#, fuzzy\nmsgid "a"\nmsgid_plural "c"\nmsgstr[0] "A"\nmsgstr[1] "C"\n',
        ),
        (
            'msgid "x" msgstr "y" msgid "a" msgstr ""\n',
            f'msgid "x" msgstr "y" \n# {COMMENT}\n\n#, fuzzy\nmsgid "a" msgstr "A"\n',
        ),
    ],
)
def test_an_entry_is_filled_as_it_is_written(write: Write, entry: str, expected: str, end: str) -> None:
    path = write("a.po", (HEADER + "\n" + entry).replace("\n", end).encode())
    assert filled(path) == (HEADER + "\n" + expected).replace("\n", end).encode()


def test_a_translation_that_the_charset_cannot_write_is_left(write: Write) -> None:
    latin = HEADER.replace("UTF-8", "ISO-8859-1") + '\nmsgid "a"\nmsgstr ""\n\nmsgid "b"\nmsgstr ""\n'
    path = write("a.po", latin.encode("latin-1"))
    document = open_document(path, path.with_name("out.po"), DataConfig())
    assert document.fields.fill(["ä", "日本"]) == 1
    stream = io.BytesIO()
    document.save(stream)
    assert 'msgid "a"\nmsgstr "\xe4"\n\nmsgid "b"\nmsgstr ""\n'.encode("latin-1") in stream.getvalue()


@pytest.mark.parametrize("charset", ["US-ASCII", "CHARSET"])
def test_a_charset_that_says_nothing_becomes_utf_8_where_it_has_to(write: Write, charset: str) -> None:
    path = write("a.po", HEADER.replace("UTF-8", charset) + '\nmsgid "a"\nmsgstr ""\n')
    assert f"charset={charset}".encode() in filled(path)
    assert b"charset=UTF-8" in filled(path, lambda _: "ä") and 'msgstr "ä"'.encode() in filled(path, lambda _: "ä")


TEMPLATE = (
    "# Title.\n#\n#, fuzzy\n" + 'msgid ""\nmsgstr ""\n"Language: \\n"\n"Content-Type: text/plain; charset=CHARSET\\n"\n'
    '"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n\n'
    'msgid "one file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
)


def test_a_template_is_filled_for_a_language(write: Write) -> None:
    path = write("a.pot", TEMPLATE)
    assert filled(path) == TEMPLATE.encode(), "no language, so no plural forms"
    russian = filled(path, str.upper, "ru").decode()
    assert russian.startswith('# Title.\n#\nmsgid ""\nmsgstr ""\n"Language: ru\\n"\n')
    assert "charset=UTF-8" in russian and "nplurals=3; plural=(n%10==1" in russian
    assert russian.endswith('msgstr[0] "%D FILES"\nmsgstr[1] "%D FILES"\nmsgstr[2] "%D FILES"\n')
    german = filled(path, str.upper, "de").decode()
    assert german.endswith('msgstr[0] "ONE FILE"\nmsgstr[1] "%D FILES"\n')
    japanese = filled(path, str.upper, "ja").decode()
    assert japanese.endswith('msgid_plural "%d files"\nmsgstr[0] "%D FILES"\n')
    with pytest.raises(UsageError, match="no plural forms are known for the language xx"):
        filled(path, str.upper, "xx")


def test_plural_forms_that_are_missing_come_from_the_language_of_the_header(write: Write) -> None:
    text = TEMPLATE.replace("Language: ", "Language: pl").replace("#, fuzzy\n", "").replace("CHARSET", "UTF-8")
    out = filled(write("a.po", text)).decode()
    assert "nplurals=3" in out and out.count("msgstr[") == 3


@needs_gettext
def test_msgfmt_accepts_a_filled_template(write: Write, tmp_path: Path) -> None:
    (tmp_path / "b.po").write_bytes(filled(write("a.pot", TEMPLATE), lambda text: text, "cs"))
    done = subprocess.run(["msgfmt", "-c", "--use-fuzzy", "-o", "/dev/null", "b.po"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0 and b"error" not in done.stderr, done.stderr


def test_a_paragraph_is_one_text_and_wrapped_again(write: Write) -> None:
    lines = [
        "This text was wrapped by its author, so that all of its",
        "lines have about one width, as help texts have.",
        "",
    ]
    body = "".join(f'"{line}\\n"\n' for line in [*lines, "  -h  shows this"])
    path = write("a.po", f'{HEADER}\nmsgid ""\n{body}msgstr ""\n')
    document = open_document(path, path.with_name("out.po"), DataConfig())
    assert document.fields.texts == [" ".join(lines[:2]), "-h  shows this"]
    assert (
        filled(path)
        .decode()
        .endswith(
            'msgstr ""\n"THIS TEXT WAS WRAPPED BY ITS AUTHOR, SO THAT ALL OF ITS\\n"\n'
            '"LINES HAVE ABOUT ONE WIDTH, AS HELP TEXTS HAVE.\\n"\n"\\n"\n"  -H  SHOWS THIS\\n"\n'
        )
    )
