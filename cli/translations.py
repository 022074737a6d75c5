"""Where the translations of `tfm translate` go: documents, files that an interrupt leaves half done, JSON, warnings."""

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.placeholders import Differences, in_short
from ..data.reading import count_lines
from ..seq2seq.decoding.config import CHUNK_TEXTS
from ..system.errors import Interrupted
from ..system.files import BinaryOutputFile, ResumedFile, json_line, sha256_bytes, sha256_file
from ..system.reporter import Console
from .lines import line_chunks, write_results

if TYPE_CHECKING:
    from ..engine.documents.document import Document
    from ..engine.translator import Translation

LONGEST = 500
"""Characters that are shown of the faults of one kind."""


class Faults:
    """What is wrong with translations: placeholders, numbers, terms, unknown text. Said when all is translated.

    Args:
        place: What a text is called, such as `line`.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._found: dict[str, list[str]] = {
            "with other placeholders than the source": [],
            "with other numbers than the source": [],
            "without a term of the glossary": [],
            "of text that the vocabulary does not know": [],
        }

    def note(self, translations: Sequence["Translation"], first: int, texts: Sequence[str] = ()) -> None:
        """Looks at translations.

        Args:
            first: Number of the text of the first one, counted from 0.
            texts: All texts, where they have no numbers that a person could find them by.
        """
        for number, one in enumerate(translations, start=first + 1):
            place = f"{self._place} {texts[number - 1][:40]!r}" if texts else f"{self._place} {number}"
            whats = (
                str(Differences(one.lost, one.added, one.glued)),
                str(one.numbers),
                in_short(one.missed, ", "),
                one.unknown and f"{in_short(one.unknown, ' ')} ({100 * one.unknown_share:.0f} % of it)",
            )
            for faults, what in zip(self._found.values(), whats, strict=True):
                if what:
                    faults.append(f"{place} {what}")

    def report(self, console: Console) -> None:
        """Warns of each kind of fault that was found."""
        for what, faults in self._found.items():
            if faults:
                many = f"{len(faults):,} translation{'' if len(faults) == 1 else 's'}"
                console.warn(f"{many} {what}: {in_short(faults, '; ', longest=LONGEST)}")


def translate_document(
    document: "Document", translate: Callable[[list[str], int], list["Translation"]], output: Path, console: Console
) -> None:
    """Fills in what is empty in a document, and writes it; after an interrupt as far as it was translated by then.

    Args:
        translate: From texts, and the number of the first of them, to translations.
    """
    texts, faults, outputs = document.fields.texts, Faults("text"), list[str]()
    interrupted: Interrupted | None = None
    with BinaryOutputFile(output) as stream:
        bar = console.progress("translating", len(texts), "text")
        try:
            for first in range(0, len(texts), CHUNK_TEXTS):
                found = translate(texts[first : first + CHUNK_TEXTS], first)
                faults.note(found, first, texts)
                outputs += [one.text for one in found]
                bar.update(len(outputs))
        except Interrupted as error:
            interrupted = error
        bar.close()
        left = document.fields.fill([*outputs, *[""] * (len(texts) - len(outputs))])
        document.save(stream)
    if interrupted is not None:
        kept = f"{len(outputs):,} of {len(texts):,} texts are done, and in {output}: give it as --input to go on"
        raise Interrupted(kept, interrupted.signal_number) from interrupted
    filled = len(document.fields) - left
    console.say(f"{output}: {filled:,} filled in by machine; review them")
    if left:
        why = "markup inside the text did not arrive, nothing came out, or the file's charset has no such letters"
        console.warn(f"{left:,} left as they were: {why}")
    faults.report(console)


def write_file(
    translate_chunk: Callable[[list[str], int], list[str]], source: Path, target: Path, work: str, console: Console
) -> int:
    """Translates a file into another one; goes on where the same work was interrupted.

    Returns how many lines were too long to be read whole.
    """
    total, file = count_lines(source), ResumedFile(target, work)
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
                chunks = line_chunks(None, source, console, done=finished, size=CHUNK_TEXTS)
                return write_results(translate_chunk, chunks, stream, console, done=finished, on_done=on_done)
    except Interrupted as error:
        kept = f"{finished:,} of {total:,} lines are done, and kept; the same command goes on"
        raise Interrupted(kept, error.signal_number) from error


def work_of(*parts: object) -> str:
    """Identifies what a file of translations is made from: by the content of files, and by the words for all else."""
    contents = (sha256_file(one) if isinstance(one, Path) and one.is_file() else str(one) for one in parts)
    return sha256_bytes("\n".join(contents).encode())


def as_json(text: str, translation: "Translation") -> str:
    def fields(one: "Translation") -> dict[str, Any]:
        numbers = {"score": one.score, "log_prob": one.log_prob, "confidence": one.confidence}
        return {"translation": one.text, **numbers, "tokens": list(one.tokens)}

    record = {"source": text, **fields(translation)}
    if len(translation.alternatives) > 1:
        record["alternatives"] = [fields(one) for one in translation.alternatives]
    names = ("lost", "added", "glued", "missed", "unknown", "unknown_share", "looped", "repaired", "constrained")
    record |= {name: value for name in names if (value := getattr(translation, name))}
    if translation.numbers:
        record["numbers"] = {"lost": translation.numbers.lost, "added": translation.numbers.added}
    return json_line(record)
