"""`tfm translate` of a document: what is empty in it is filled in."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..engine.documents.document import Document
from ..seq2seq.decoding.config import CHUNK_TEXTS
from ..system.console import Console
from ..system.errors import Interrupted
from ..system.files import BinaryOutputFile
from .faults import Faults

if TYPE_CHECKING:
    from ..engine.translator import Translation


def translate_document(
    document: Document, translate: Callable[[list[str], int], list["Translation"]], output: Path, console: Console
) -> None:
    """Fills a document and writes it.

    Args:
        document: To fill.
        translate: From texts, and the number of the first of them, to translations.
        output: Where the document goes.
        console: Sees the progress, and hears what was left and what is wrong with placeholders and terms.

    Raises:
        EnvironmentFault: It cannot be written.
        Interrupted: A signal came; what had been translated by then is in the document.
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
        console.warn(f"{left:,} left as they were: markup inside the text did not arrive, or nothing came out")
    faults.report(console)
