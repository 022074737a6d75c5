"""`tfm translate --attention`: what the model looked at, as JSON Lines and as pictures."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from ..seq2seq.decoding import Translation, Translator

DECIMALS = 5
"""Of a share in the file."""


class AttentionFile:
    """A file with a line for each translation, and beside it a folder with a picture for each.

    Args:
        stream: The file.
        pictures: The folder.
        translator: Has the model.
    """

    def __init__(self, stream: IO[str], pictures: Path, translator: "Translator") -> None:
        self._stream, self._pictures, self._translator = stream, pictures, translator

    def add(self, texts: Sequence[str], found: "Sequence[Translation]", first_line: int) -> None:
        """Writes the attention of some translations.

        Args:
            texts: Their sources.
            found: The translations.
            first_line: Number of the first one, counted from 0.
        """
        from ..data.files import json_line, replace_file
        from ..seq2seq.explain.maps import attention_map, heat_map

        for line, (text, translation) in enumerate(zip(texts, found, strict=True), start=first_line + 1):
            one = attention_map(self._translator, text, translation)
            record: dict[str, object] = {"line": line, "source": None, "output": None, "attention": None}
            if one is None:
                record["reason"] = "the text was split into parts" if text.strip() else "the text is blank"
            else:
                weights = {name: _rounded(shares.tolist()) for name, shares in one.weights.items()}
                record |= {"source": one.source, "output": one.output, "attention": weights}
                picture = heat_map(one, f"line {line}")
                replace_file(self._pictures / f"line-{line:06d}.svg", picture)
            self._stream.write(json_line(record) + "\n")


def _rounded(shares: list[list[list[float]]]) -> list[list[list[float]]]:
    return [[[round(share, DECIMALS) for share in row] for row in head] for head in shares]


@contextmanager
def attention_file(path: Path | None, translator: "Translator") -> Iterator[AttentionFile | None]:
    """The file to write attention to, if it is wanted.

    Args:
        path: Its name; the folder of pictures has the same name without its suffix.
        translator: Has the model.
    """
    if path is None:
        yield None
        return
    from ..data.files import OutputFile, make_directory

    pictures = path.with_suffix("")
    make_directory(pictures)
    with OutputFile(path) as stream:
        yield AttentionFile(stream, pictures, translator)


def check_attention(path: Path | None, others: Sequence[Path | None], *, of_document: bool) -> None:
    """Refuses a file without a suffix, a file that the command reads or writes otherwise, and documents.

    Args:
        path: The file.
        others: Other files of the command.
        of_document: What is translated is a document, not lines.

    Raises:
        UsageError: It is one of these.
    """
    from ..data.errors import UsageError

    if path is None:
        return
    if not path.suffix:
        raise UsageError(f"--attention {path}: give the file a suffix, such as {path}.jsonl; {path}/ gets the pictures")
    for other in others:
        if other is not None and other.resolve() in (path.resolve(), path.with_suffix("").resolve()):
            raise UsageError(f"--attention {path} and {other} are in each other's way; give it another name")
    if of_document:
        raise UsageError("--attention is for lines, not for a document that is translated in place")
