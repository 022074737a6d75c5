"""The manner of a PO file's strings, beside what gettext's `msgcat` writes."""

import random
import subprocess
from pathlib import Path

import pytest
from helpers.po_files import needs_gettext

from tfm.data.formats.po import PoFile
from tfm.engine.documents.lines import Rules
from tfm.engine.documents.po_strings import Manner

HEADER = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
WORDS = [
    "text",
    "of",
    "many",
    "words",
    "(in",
    "brackets)",
    "«quoted»",
    "--all",
    "and/or",
    '\\"so\\"',
    "1.5",
    "x.y",
    "end.\\n",
]
WORDS += [
    "漢字かな",
    "а",
    "é\u0301",
    "%s",
    "%d%%",
    "e-mail",
    "long" * 12,
    "\\\\",
    "\\t",
    "`:ref:`a.b`,",
    "?!",
    "—",
    "…",
]


def made(count: int) -> str:
    rng = random.Random(1)
    entries = (f'msgid "{n} {_text(rng)}"\nmsgstr "{n} {_text(rng)}"\n' for n in range(count))
    return HEADER + "\n".join(entries)


def _text(rng: random.Random) -> str:
    text = " ".join(rng.choices(WORDS, k=rng.choice([1, 5, 20, 60])))
    return text.removesuffix("\\n")


def by_msgcat(folder: Path, *flags: str) -> PoFile:
    path = folder / "a.po"
    path.write_text(made(120), encoding="utf-8")
    done = subprocess.run(["msgcat", *flags, "-o", folder / "b.po", path], capture_output=True)
    assert done.returncode == 0, done.stderr
    return PoFile(folder / "b.po")


@needs_gettext
@pytest.mark.parametrize(
    ("flags", "width"), [([], 79), (["--width=60"], 60), (["--no-wrap"], None), (["--width=100", "--indent"], 100)]
)
def test_strings_are_written_as_msgcat_writes_them(tmp_path: Path, flags: list[str], width: int | None) -> None:
    file = by_msgcat(tmp_path, *flags)
    manner = Manner.of(file)
    assert manner.width == width or width is None
    same = [
        manner.for_part(file, part, [one.msgid]).written("msgstr", part.text, "\n") == file.text[part.start : part.end]
        for one in file.messages
        for part in one.msgstr
    ]
    assert sum(same) >= 0.95 * len(same), f"{sum(same)} of {len(same)}"


def test_a_manner_is_recognised_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.po"
    long = "words that go on and on, " * 8

    def manner(entry: str) -> Manner:
        path.write_text(HEADER + entry, encoding="utf-8")
        return Manner.of(PoFile(path))

    assert manner('msgid "a"\nmsgstr ""\n') == Manner()
    assert manner(f'msgid "{long}"\nmsgstr ""\n').width is None
    assert not manner('msgid "a\\nb"\nmsgstr ""\n').splits
    assert not manner('msgid "a\\n"\n"b"\nmsgstr ""\n').empty_first
    unlike = manner('msgid ""\n"a\\n"\n"b"\nmsgstr "c\\nd"\n')
    assert not unlike.splits and not unlike.like_source
    rules: list[Rules] = ["today", "before 0.22"]
    for rule in rules:
        text = Manner(width=40, rules=rule).written("msgid", "see :class:`some.module.that.has.a.long.name` " * 9, "\n")
        assert manner(f'{text}\nmsgstr ""\n').rules == rule
