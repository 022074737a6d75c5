"""Where the translations of `tfm translate` go: documents, files that an interrupt leaves half done, JSON, warnings."""

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..data.config import DataConfig
from ..data.placeholders import Differences, in_short
from ..data.reading import count_lines
from ..seq2seq.decoding.config import CHUNK_TEXTS
from ..system.errors import DataError, Interrupted
from ..system.files import BinaryOutputFile, ResumedFile, json_line, make_directory, sha256_bytes, sha256_file
from ..system.reporter import Console, counted
from .lines import line_chunks, write_results

if TYPE_CHECKING:
    from ..engine.documents.document import Document
    from ..engine.translator import Translation
    from .attention import AttentionFile

LONGEST = 500
"""A message shows this many characters of one fault."""


class Faults:
    """What is wrong with translations: placeholders, numbers, terms, unknown text. Said when all is translated.

    `place` is what a text is called, such as `line`.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._first: int | None = None
        """The number of the first text that was looked at: after an interrupt it is not 0."""
        self._found: dict[str, list[str]] = {
            "with other placeholders than the source": [],
            "with other numbers than the source": [],
            "without a term of the glossary": [],
            "of text that the vocabulary does not know": [],
            "of words read as others, for a slip of typing": [],
        }

    def note(self, translations: Sequence["Translation"], first: int, texts: Sequence[str] = ()) -> None:
        """Looks at translations; the first is of the text with the number `first`, counted from 0.

        All `texts` are given where they have no numbers that a person could find them by.
        """
        if self._first is None:
            self._first = first
        for number, one in enumerate(translations, start=first + 1):
            place = f"{self._place} {texts[number - 1][:40]!r}" if texts else f"{self._place} {number}"
            whats = (
                str(Differences(one.lost, one.added, one.glued)),
                str(one.numbers),
                in_short(one.missed, ", "),
                one.unknown and f"{in_short(one.unknown, ' ')} ({100 * one.unknown_share:.0f} % of it)",
                in_short([f"{written} as {read}" for written, read in one.slips], ", "),
            )
            for faults, what in zip(self._found.values(), whats, strict=True):
                if what:
                    faults.append(f"{place} {what}")

    def report(self, console: Console) -> None:
        """Warns of each kind of fault that was found."""
        for what, faults in self._found.items():
            if faults:
                many = counted(len(faults), "translation")
                if self._first:
                    many = f"from {self._place} {self._first + 1:,} on, {many}"
                console.warn(f"{many} {what}: {in_short(faults, '; ', longest=LONGEST)}")


Translate = Callable[..., list["Translation"]]
"""`Translator.translate` that still needs the texts, and the number of the first of them."""


def translate_document(
    document: "Document", translate: Translate, output: Path, console: Console, *, review: bool = False
) -> None:
    """Fills in what is empty in a document, and writes it; after an interrupt as far as it was translated by then.

    `review` notes in it how good each translation probably is, and says which are the worst.
    """
    texts, found, outputs = document.fields.texts, list["Translation"](), list[str]()
    interrupted: Interrupted | None = None
    with BinaryOutputFile(output) as stream:
        try:
            with closing(console.progress("translating", len(texts), "text")) as bar:
                for first in range(0, len(texts), CHUNK_TEXTS):
                    found += translate(texts[first : first + CHUNK_TEXTS], first_line=first)
                    outputs += [one.text for one in found[first:]]
                    bar.update(len(found))
                for place, one in document.fields.without_ends(outputs, partial(translate, first_line=0)).items():
                    found[place] = one
        except Interrupted as error:
            interrupted = error
        rest = len(texts) - len(outputs)
        projections = [*(one.projected for one in found), *[None] * rest] if review else []
        left = document.fields.fill([*outputs, *[""] * rest], projections)
        document.save(stream)
    if interrupted is not None:
        kept = f"{len(found):,} of {len(texts):,} texts are done, and in {output}: give it as --input to go on"
        raise Interrupted(kept, interrupted.signal_number) from interrupted
    console.say(f"{output}: {len(document.fields) - left:,} filled in by machine; review them")
    if worst := document.fields.worst:
        shown = in_short([f"{text[:40]!r}: {said.projection}" for text, said in worst], "; ", longest=LONGEST)
        console.say(f"read these first, the worst tenth, {len(worst):,} in all: {shown}")
    if left:
        console.warn(
            f"{left:,} left as they were: nothing came out, markup inside the text did not arrive, or the file's"
            " encoding has not all the characters"
        )
    if unread := document.fields.unread:
        console.warn(
            f"{unread:,} left as they were: they look like messages in ICU's format, and are none, or have a choice"
        )
    faults = Faults("text")
    faults.note(found, 0, texts)
    faults.report(console)


def translate_folder(
    files: Sequence[tuple[Path, Path]],
    settings: DataConfig,
    translate: Translate,
    console: Console,
    *,
    review: bool = False,
) -> None:
    """Translates documents, one after the other; one that fails does not stop the others.

    Args:
        files: Each with the file to write. One that is there is replaced.

    Raises:
        DataError: Some could not be read.
    """
    from ..engine.documents import open_document

    failed = 0
    for number, (path, output) in enumerate(files):
        make_directory(output.parent)
        try:
            if not path.stat().st_size:
                with BinaryOutputFile(output):
                    pass
                console.say(f"{path}: empty")
                continue
            document = open_document(path, output, settings)
            console.say(document.remark)
            translate_document(document, translate, output, console, review=review)
        except DataError as error:
            failed += 1
            console.warn(f"{error}; it is left out")
        except Interrupted as error:
            kept = f"{number:,} of {len(files):,} files are done; of {path} {error}"
            raise Interrupted(kept, error.signal_number) from error
    if failed:
        raise DataError(f"{failed:,} of {len(files):,} files failed, as said above; the others are translated")


class LineWriter:
    """From lines to the lines of the output. Notes what is wrong with translations; adds their attention to maps."""

    def __init__(
        self, translate: Callable[..., list["Translation"]], maps: "AttentionFile | None", *, as_records: bool
    ) -> None:
        self._translate, self._maps, self._as_records = translate, maps, as_records
        self.faults = Faults("line")

    def __call__(self, texts: list[str], first_line: int) -> list[str]:
        found = self._translate(texts, first_line=first_line)
        self.faults.note(found, first_line)
        if self._maps is not None:
            self._maps.add(texts, found, first_line)
        if not self._as_records:
            return [one.text for one in found]
        return [json_line({"source": text, **one.to_dict()}) for text, one in zip(texts, found, strict=True)]


def write_file(
    translate_chunk: Callable[[list[str], int], list[str]],
    source: Path,
    target: Path,
    work: str,
    console: Console,
    encoding: str,
) -> int:
    """Translates a file into another one; goes on where the same work was interrupted.

    Returns how many lines were too long to be read whole.
    """
    total, file = count_lines(source, encoding), ResumedFile(target, work)
    finished = 0

    def on_done(done: int) -> None:
        nonlocal finished
        file.save()
        finished = done
        bar.update(done)

    try:
        with file as stream:
            finished = file.done
            begun = f", from line {finished + 1:,} on" if finished else ""
            console.say(f"{source} to {target}: {total:,} lines{begun}")
            with closing(console.progress("translating", total, "line", finished)) as bar:
                chunks = line_chunks(None, source, console, done=finished, size=CHUNK_TEXTS, encoding=encoding)
                return write_results(
                    translate_chunk, chunks, stream, console, done=finished, on_done=on_done, encoding=encoding
                )
    except Interrupted as error:
        kept = f"{finished:,} of {total:,} lines are done, and kept; the same command goes on"
        raise Interrupted(kept, error.signal_number) from error


def work_of(*parts: object) -> str:
    """Identifies what a file of translations is made from: by the content of files, and by the words for all else."""
    contents = (sha256_file(one) if isinstance(one, Path) and one.is_file() else str(one) for one in parts)
    return sha256_bytes("\n".join(contents).encode())
