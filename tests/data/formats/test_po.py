"""PO files: read as gettext's own programs read them, and never written anew."""

import gettext
import io
import os
import random
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import polib
import pytest
from helpers.po_files import Meant, needs_gettext, po_files
from helpers.written_files import Write
from hypothesis import HealthCheck, given, settings

from tfm.data.formats.po import PoFile
from tfm.system.errors import DataError

HEADER = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
_PATIENT = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
MANY = settings(max_examples=200, deadline=None, suppress_health_check=_PATIENT)
ALL = settings(max_examples=20_000, deadline=None, suppress_health_check=_PATIENT)


def read(content: bytes) -> PoFile:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.po"
        path.write_bytes(content)
        return PoFile(path)


def check(content: bytes, meant: list[Meant]) -> None:
    """Each message means what it was made to mean, and the file is what it was."""
    file = read(content)
    assert file.replaced([], file.charset) == content
    assert [
        Meant(
            one.msgctxt and one.msgctxt.text,
            one.msgid.text,
            one.msgid_plural and one.msgid_plural.text,
            [part.text for part in one.msgstr],
            set(one.flags),
            one.obsolete,
        )
        for one in file.messages
    ] == meant


def check_by_msgfmt(content: bytes) -> None:
    """`msgfmt` finds the same translations, and as many messages in each state."""
    file = read(content)
    with tempfile.NamedTemporaryFile() as compiled:
        done = subprocess.run(
            ["msgfmt", "--statistics", "-o", compiled.name, "-"],
            input=content,
            capture_output=True,
            env={**os.environ, "LC_ALL": "C"},
        )
        assert done.returncode == 0, (done.stderr.decode(), content)
        catalog: dict[object, str] = vars(gettext.GNUTranslations(io.BytesIO(Path(compiled.name).read_bytes())))[
            "_catalog"
        ]
    catalog.pop("", None)
    expected: dict[object, str] = {}
    for message in file.messages:
        forms = [part.text for part in message.msgstr]
        if message.obsolete or "fuzzy" in message.flags or not forms[0]:  # it looks at the first form alone
            continue
        key = message.msgid.text if message.msgctxt is None else f"{message.msgctxt.text}\x04{message.msgid.text}"
        expected |= {(key, form): text for form, text in enumerate(forms)} if message.msgid_plural else {key: forms[0]}
    assert catalog == expected, content
    said = done.stderr.decode().strip().splitlines()[-1]
    counts = Counter(
        "obsolete"
        if one.obsolete
        else "empty"
        if not one.msgstr[0].text
        else one.state.replace("empty", "translated")
        if "fuzzy" not in one.flags
        else "fuzzy"
        for one in file.messages
    )
    for state, word in (("translated", "translated message"), ("fuzzy", "fuzzy"), ("empty", "untranslated")):
        found = re.search(rf"(\d+) {word}", said)
        assert counts[state] == int(found[1] if found else 0), (state, said, content)


@MANY
@given(po_files())
def test_files_are_read_as_they_are_meant(made: tuple[bytes, list[Meant]]) -> None:
    check(*made)


@needs_gettext
@settings(MANY, max_examples=100)
@given(po_files())
def test_files_are_read_as_msgfmt_reads_them(made: tuple[bytes, list[Meant]]) -> None:
    check_by_msgfmt(made[0])


@pytest.mark.slow
@pytest.mark.timeout(7200)
@needs_gettext
@ALL
@given(po_files())
def test_twenty_thousand_files(made: tuple[bytes, list[Meant]]) -> None:
    check(*made)
    check_by_msgfmt(made[0])


def test_escapes_are_bytes_of_the_charset(write: Write) -> None:
    latin = HEADER.replace("UTF-8", "ISO-8859-1") + 'msgid "\\344\\xE4"\nmsgstr "\\a\\033[1m\\101\\1019\\0no"\n'
    (message,) = PoFile(write("a.po", latin)).messages
    assert (message.msgid.text, message.msgstr[0].text) == ("ää", "\a\x1b[1mAA9")
    (message,) = PoFile(write("a.po", HEADER + 'msgid "\\303\\244\\377"\nmsgstr ""\n')).messages
    assert message.msgid.text == "ä\ufffd"


def test_a_backslash_joins_lines_and_may_be_half_of_a_character(write: Write) -> None:
    (message,) = PoFile(write("a.po", HEADER + '# c:\\\r\nmsgid "no"\nmsgid "a\\\r\nb"\nmsgstr "c"\n')).messages
    assert message.msgid.text == "ab" and message.comments[0].text.startswith("# c:\\")
    japanese = (HEADER.replace("UTF-8", "Shift_JIS") + 'msgid "a"\nmsgstr "表"\n').encode("shift_jis")
    assert b"\\" in japanese[-5:]
    file = PoFile(write("b.po", japanese))
    assert file.messages[0].msgstr[0].text == "表"
    part = file.messages[0].msgstr[0]
    assert file.replaced([(part.start, part.end, 'msgstr "能"')], file.charset) == japanese.replace(
        "表".encode("shift_jis"), "能".encode("shift_jis")
    )


def test_flags_states_and_domains(write: Write) -> None:
    text = HEADER + '#= fuzzy, c-format\nmsgid "a"\nmsgstr "b"\n#, fuzzy\nmsgid "c"\nmsgstr ""\n'
    text += '#~ msgid "d"\n#~ msgstr "e"\n\ndomain "x"\nmsgid ""\nmsgstr "Language: fr\\n"\nmsgid "f"\nmsgstr "g"\n'
    file = PoFile(write("a.po", text))
    assert [one.state for one in file.messages] == ["fuzzy", "empty", "obsolete", "translated"]
    assert file.counts() == "1 translated, 1 fuzzy, 1 empty, 1 obsolete"
    assert [one.domain for one in file.messages] == ["messages"] * 3 + ["x"] and file.headers.keys() == {
        "messages",
        "x",
    }


CHARSETS = [
    (HEADER, "ä", True),
    (HEADER.replace("UTF-8", "CHARSET"), "ä", True),
    ("", "ä", True),
    (HEADER.replace("UTF-8", "cp1252"), "ä", True),
    (HEADER.replace("UTF-8", "US-ASCII"), "a", True),
    (HEADER.replace("UTF-8", "US-ASCII"), "ä", False),
]


@pytest.mark.parametrize(("header", "text", "readable"), CHARSETS)
def test_a_file_is_read_in_the_charset_that_it_names_else_in_utf_8(
    write: Write, header: str, text: str, readable: bool
) -> None:
    entry = f'{header}msgid "a"\nmsgstr "{text}"\n'
    path = write("a.po", entry.encode("cp1252" if "cp1252" in header else "utf-8"))
    if readable:
        assert PoFile(path).messages[0].msgstr[0].text == text
    else:
        with pytest.raises(DataError, match=r"a\.po:5: invalid US-ASCII, which the file declares"):
            PoFile(path)
    assert PoFile(write("b.po", b"\xef\xbb\xbf" + entry.encode())).messages[0].msgstr[0].text == text


def test_a_byte_that_the_charset_has_not_may_stand_in_a_comment(write: Write) -> None:
    content = HEADER.encode() + b'# \xe4\nmsgid "a"\nmsgstr ""\n'
    file = PoFile(write("a.po", content))
    part = file.messages[0].msgstr[0]
    assert file.replaced([(part.start, part.end, 'msgstr "ä"')], "utf-8") == content[:-3] + '"ä"\n'.encode()


FAULTS = [
    ('msgid "a"\n', 2, "the end of the file is where msgstr should be"),
    ('msgid "a"\n# c\nmsgstr "b"\n', 2, "'# c' is where msgstr should be"),
    ('#| msgid "a"\n#, fuzzy\nmsgid "a"\nmsgstr "b"\n', 2, "'#, fuzzy' is where msgid should be"),
    ('msgid "a"\nmsgstr[0] "b"\n', 2, "'[' is where string should be"),
    ('msgid "a"\nmsgid_plural "b"\nmsgstr[1] "c"\n', 3, r"msgstr\[0\] should be here"),
    ('msgid "a\\q"\nmsgstr "b"\n', 1, "q is no escape"),
    ('msgid "a\\x"\nmsgstr "b"\n', 1, "x is no escape"),
    ('msgid "a\\004"\nmsgstr "b"\n', 1, r"U\+0004"),
    ('msgid "a\nmsgstr "b"\n', 1, "no double quote at its end"),
    ('#~ msgid "a"\nmsgstr "b"\n', 2, "begins with #~, and another does not"),
    ('Msgid "a"\nmsgstr "b"\n', 1, "Msgid is no keyword"),
    ('msgid "a"\nmsgstr "b";\n', 2, "';' is outside a string"),
    ('domain "d" "e"\nmsgid "a"\nmsgstr "b"\n', 1, '"e"\' is where msgid should be'),
]


@pytest.mark.parametrize(("text", "line", "said"), FAULTS)
def test_a_fault_is_named_with_its_line(write: Write, text: str, line: int, said: str) -> None:
    with pytest.raises(
        DataError, match=rf"a\.po:{line + 3}: .*{re.escape(said) if said[0] in chr(39) + ';' else said}"
    ):
        PoFile(write("a.po", HEADER + text))


@needs_gettext
@pytest.mark.parametrize(("text", "line", "said"), FAULTS)
def test_msgfmt_finds_the_same_faults(write: Write, text: str, line: int, said: str) -> None:
    done = subprocess.run(["msgfmt", "-o", os.devnull, write("a.po", HEADER + text)], capture_output=True)
    assert done.returncode == 1


WHOLE = (
    '# c\n#. x\n#: a:1\n#, fuzzy\n#| msgid "p"\n#| "q"\nmsgctxt "c"\nmsgid "a\\n"\n"b"\nmsgstr ""\n"c\\n"\n"d"\n\n'
    'msgid "e"\nmsgid_plural "f"\nmsgstr[0] "g"\nmsgstr[1] "h"\n\n#~ msgid "i"\n#~ msgstr ""\n#~ "j"\n\n'
    '#, fuzzy\n#~| msgid "k"\n#~ msgid "l"\n#~ msgstr "m"\n'
)
ADDED = ['"', "#", "\\", "\n", "msgid", "msgstr", "[0]", "~", "|", " ", "x", "1", "#~ ", "# y\n", '"z"', 'domain "d"\n']
NO_SYNTAX = (
    "duplicate",
    "first definition",
    "begin with",
    "end with",
    "fatal error",
    "warning",
    "domain",
    "will not work",
)


@needs_gettext
@pytest.mark.parametrize("count", [60, pytest.param(3_000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])])
def test_msgfmt_refuses_the_same_damaged_files(write: Write, count: int) -> None:
    rng = random.Random(count)
    for _ in range(count):
        text = WHOLE
        for _ in range(rng.choice([1, 1, 2])):
            place = rng.randrange(len(text))
            end, new = (place, rng.choice(ADDED)) if rng.random() < 0.5 else (place + rng.choice([1, 3]), "")
            text = text[:place] + new + text[end:]
        path = write("a.po", HEADER + text)
        command, english = ["msgfmt", "-o", os.devnull, path], {**os.environ, "LC_ALL": "C"}
        said = subprocess.run(command, capture_output=True, env=english).stderr.decode(errors="replace")
        faults = [line for line in said.splitlines() if line and not any(words in line for words in NO_SYNTAX)]
        try:
            PoFile(path)
        except DataError as error:
            assert faults, (error, text)
        else:
            assert not faults, (faults, text)


def test_what_polib_writes_is_read_as_polib_reads_it(tmp_path: Path) -> None:
    made = polib.POFile(wrapwidth=40)
    made.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    for number in range(20):
        text = f'{number} "quoted" \\ text\n\twith lines, which are long enough to be wrapped\n'
        made.append(polib.POEntry(msgid=text, msgstr=text.upper(), msgctxt="c" * (number % 2), tcomment="x\ny"))
    made.save(str(tmp_path / "a.po"))
    read_back = polib.pofile(str(tmp_path / "a.po"))
    assert [(one.msgid, one.msgstr) for one in read_back] == [
        (one.msgid.text, one.msgstr[0].text) for one in PoFile(tmp_path / "a.po").messages
    ]
