"""`tfm translate --attention`: what the model looked at, as JSON Lines and as pictures."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..engine.file_guard import Place, file_places
from ..system.compression import compression_of
from ..system.errors import UsageError
from ..system.files import OutputFile, json_line, make_directory, replace_file

if TYPE_CHECKING:
    from ..engine.translator import Translation, Translator

DECIMALS = 5
"""Decimals of a share in the file."""
_PICTURE = "line-"
"""What the name of a picture begins with."""


def pictures_of(path: Path) -> Path:
    """The folder of pictures beside a file: its name without its suffix, and without `.gz`."""
    return (path if compression_of(path) is None else path.with_suffix("")).with_suffix("")


def attention_places(path: Path, given: Any) -> Iterator[Place]:
    """The files that are written: one of its own name, and pictures in a folder beside it."""
    del given
    yield from file_places(path)
    yield Place(pictures_of(path))
    yield Place(pictures_of(path), f"{_PICTURE}*")


class AttentionFile:
    """A file with a line for each translation, and beside it a folder with a picture for each."""

    def __init__(self, stream: IO[str], pictures: Path, translator: "Translator") -> None:
        self._stream, self._pictures, self._translator = stream, pictures, translator

    def add(self, texts: Sequence[str], found: "Sequence[Translation]", first_line: int) -> None:
        """Writes the attention of the translations of some texts; `first_line` counts from 0."""
        from ..engine.attention_maps import attention_map, heat_map

        for line, (text, translation) in enumerate(zip(texts, found, strict=True), start=first_line + 1):
            one = attention_map(self._translator, text, translation)
            record: dict[str, object] = {"line": line, "source": None, "output": None, "attention": None}
            if one is None:
                record["reason"] = "the text was split into parts, or copied" if text.strip() else "the text is blank"
            else:
                weights = {name: _rounded(shares.tolist()) for name, shares in one.weights.items()}
                record |= {"source": one.source, "output": one.output, "attention": weights}
                picture = heat_map(one, f"line {line}")
                replace_file(self._pictures / f"{_PICTURE}{line:06d}.svg", picture)
            self._stream.write(json_line(record) + "\n")


def _rounded(shares: list[list[list[float]]]) -> list[list[list[float]]]:
    return [[[round(share, DECIMALS) for share in row] for row in head] for head in shares]


@contextmanager
def attention_file(path: Path, translator: "Translator") -> Iterator[AttentionFile]:
    """The file to write attention to; UsageError for an export, which has none to show."""
    _ = translator.model
    pictures = pictures_of(path)
    make_directory(pictures)
    with OutputFile(path) as stream:
        yield AttentionFile(stream, pictures, translator)


def check_attention(path: Path) -> None:
    """Refuses a file without a suffix, as the folder of pictures would have the same name."""
    if not path.suffix:
        raise UsageError(f"--attention {path}: give the file a suffix, such as {path}.jsonl; {path}/ gets the pictures")
