"""Lines in, lines out: from arguments, a file, a stream as it arrives or a terminal, in chunks; one line for each."""

import os
import queue
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO

from ..data.charset import Undecoded
from ..data.reading import (
    MAX_LINE_BYTES,
    Controls,
    as_text,
    decompressed,
    first_text,
    iter_raw_lines,
    open_bytes,
)
from ..system.errors import UsageError
from ..system.files import OutputFile
from ..system.reporter import Console, counted

CHUNK_LINES = 1000
"""Most lines translated together: enough for well-filled batches."""
_USUAL_BYTES = 2000
"""A line counts as one more for each of this many bytes, so that a chunk of long lines does not fill the memory."""
JSON_LINES = (".jsonl", ".ndjson", ".json")
"""How a file of `--json` may be named."""

Chunk = list[bytes | None]
"""Raw lines; None stands for one too long to be read whole."""


def line_chunks(
    arguments: list[str] | None,
    path: Path | None,
    console: Console,
    *,
    encoding: str,
    done: int = 0,
    size: int = CHUNK_LINES,
) -> Iterable[Chunk]:
    """The lines of a command: those of its arguments, else of a file, else of standard input.

    Args:
        encoding: Of a file or stream without a byte-order mark, if not UTF-8; else empty.
        done: Lines of the file that are passed over.
        size: Most lines of a file in a chunk; a long one counts as several.
    """
    if arguments:
        refuse_file_names(arguments, "for its lines give --input {name}")
        lines = (line for text in arguments for line in lines_of(text))
        return [[line.encode("utf-8", errors="surrogateescape") for line in lines]]
    return stdin_lines(console, encoding) if path is None else file_lines(path, encoding, done, size)


def lines_too_long(number: int) -> str:
    """How many lines were too long to be read, in words."""
    return f"{counted(number, 'line was', 'lines were')} longer than {MAX_LINE_BYTES:,} bytes"


def lines_of(text: str) -> list[str]:
    """The lines of an argument such as `"$(cat FILE)"`; an empty argument is one empty line."""
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def refuse_file_names(texts: Sequence[str], fix: str) -> None:
    """Refuses arguments that are all names of files: nobody wants those translated. `fix` says what to give instead."""
    if texts and all(map(_is_file_name, texts)):
        raise UsageError(f"{texts[0]} is a file: {fix.format(name=texts[0])}")


def _is_file_name(text: str) -> bool:
    path = Path(text)
    try:
        return bool(path.suffix or os.sep in text) and path.is_file()
    except OSError:  # too long for a name
        return False


def refuse_other_output(path: Path | None, *but: str) -> None:
    """Refuses an `--output` for lines that is named as a file of another format, but for these suffixes."""
    if path is not None:
        from ..data.formats.refused import refuse_other_output as refuse

        refuse(path, *but)


def output_or_stdout(path: Path | None) -> AbstractContextManager[IO[str]]:
    """Where results go: the file of `--output`, or standard output."""
    return nullcontext(sys.stdout) if path is None else OutputFile(path)


def write_results(
    work: Callable[[list[str], int], list[str]],
    chunks: Iterable[Chunk],
    stream: IO[str],
    console: Console,
    *,
    encoding: str,
    done: int = 0,
    on_done: Callable[[int], None] = lambda done: None,
) -> int:
    """Writes a line for each line, chunk by chunk; returns how many lines were too long to be read whole.

    Args:
        work: Gets lines and the number of the first of them, and gives as many lines.
        encoding: The encoding that the lines were in, if not UTF-8; else empty.
        done: Lines before the first of these; `on_done` hears how many have been written, these included.
    """
    decoder, line_number = LineDecoder(encoding, done), done
    for chunk in chunks:
        texts = decoder.decode(chunk)
        stream.writelines(line + "\n" for line in work(texts, line_number))
        stream.flush()
        line_number += len(texts)
        on_done(line_number)
    decoder.report(console)
    return decoder.too_long


class LineDecoder:
    """Raw lines to text. Those too long to be read whole become empty: `too_long` so far.

    Args:
        encoding: The encoding that the user named, from which they were brought into UTF-8.
        done: Lines of the text before these; None for lines of several texts.
    """

    def __init__(self, encoding: str, done: int | None = 0) -> None:
        self._encoding = encoding
        self.too_long = 0
        self._bad = Undecoded(done)
        self._controls = Controls("the input")

    def decode(self, chunk: Chunk) -> list[str]:
        """The text of lines; what is not UTF-8 becomes U+FFFD. DataError for what is no text."""
        texts: list[str] = []
        for raw in chunk:
            self.too_long += raw is None
            self._bad.add(raw)
            text = (raw or b"").decode("utf-8", errors="replace")
            self._controls.add(raw or b"")
            texts.append(text)
        self._controls.refuse_binary()
        return texts

    def report(self, console: Console) -> None:
        """Says how many lines were not UTF-8, and how many control characters there were."""
        if count := self._bad.count:
            lines = "1 line was" if count == 1 else f"{count:,} lines were"
            console.warn(
                f"{lines} not valid {self._encoding or 'UTF-8'}; what could not be read became U+FFFD;"
                f" {'name another --encoding' if self._encoding else self._bad.advice()}"
            )
        if found := self._controls.found:
            console.warn(f"{counted(found, 'control character')} in the input, read as spaces")


def file_lines(path: Path, encoding: str, done: int = 0, size: int = CHUNK_LINES) -> Iterator[Chunk]:
    """The lines of a file, as `line_chunks` gives them. It is opened now: an error comes before a model is loaded."""
    from ..data.formats.refused import refuse_known_format

    refuse_known_format(path)
    chunks = _file_chunks(path, encoding, done, size)
    first = next(chunks, [])
    return chain([first], chunks)


def _file_chunks(path: Path, encoding: str, done: int, size: int) -> Iterator[Chunk]:
    from ..data.formats.refused import refuse_known_text

    with open_bytes(path, encoding=encoding) as file:
        refuse_known_text(str(path), first_text(file))  # of a pipe, too, such as /dev/stdin
        chunk, weight = Chunk(), 0
        for line in islice(_whole_lines(file, str(path)), done, None):
            chunk.append(line)
            weight += _weight(line)
            if weight >= size:
                yield chunk
                chunk, weight = Chunk(), 0
        if chunk:
            yield chunk


def _weight(line: object) -> int:
    """How many lines of usual length a line counts as; the mark of the end of a stream counts as one."""
    return 1 + (len(line) // _USUAL_BYTES if isinstance(line, bytes) else 0)


def _whole_lines(file: IO[bytes], name: str) -> Iterator[bytes | None]:
    cut = False

    def on_cut() -> None:
        nonlocal cut
        cut = True

    for line in iter_raw_lines(file, name, on_cut=on_cut):
        yield None if cut else line
        cut = False


def stdin_lines(console: Console, encoding: str) -> Iterator[Chunk]:
    """Standard input: a prompt on a terminal, else whatever has arrived."""
    if sys.stdin is None:  # closed by the caller: tfm translate <&-
        return iter(())
    if sys.stdin.isatty():
        return _prompted_lines(sys.stdin.buffer, console)
    return arriving_lines(sys.stdin.buffer, encoding)


class _Waiting(queue.Queue[object]):
    """Lines that wait to be taken; its size is their weight."""

    def _init(self, maxsize: int) -> None:
        super()._init(maxsize)
        self._held = 0

    def _qsize(self) -> int:
        return self._held

    def _put(self, item: object) -> None:
        super()._put(item)
        self._held += _weight(item)

    def _get(self) -> object:
        item = super()._get()
        self._held -= _weight(item)
        return item


def arriving_lines(stream: IO[bytes], encoding: str) -> Iterator[Chunk]:
    """Chunks of a stream: waits for a line, then takes whatever else is there; never holds a line while idle."""
    from ..data.formats.refused import refuse_known_text

    end = object()
    arrived = _Waiting(maxsize=2 * CHUNK_LINES)

    def read() -> None:
        try:
            name = "standard input"
            with decompressed(name, stream) as content:
                text = as_text(name, content, encoding)
                refuse_known_text(name, first_text(text))
                for line in _whole_lines(text, name):
                    arrived.put(line)
            arrived.put(end)
        except Exception as error:  # belongs to whoever waits at the other end of the queue
            arrived.put(error)

    threading.Thread(target=read, daemon=True).start()
    item = arrived.get()
    while item is not end:
        chunk, weight = Chunk(), 0
        while isinstance(item, bytes | None):
            chunk.append(item)
            weight += _weight(item)
            if weight >= CHUNK_LINES or arrived.empty():
                break
            item = arrived.get()
        if chunk:
            yield chunk
        if isinstance(item, Exception):
            raise item
        if item is not end:
            item = arrived.get()


def _prompted_lines(stream: IO[bytes], console: Console) -> Iterator[Chunk]:
    console.say("type a sentence and press Enter; Ctrl-D ends")
    read = _edited_line if _can_edit() else partial(_typed_line, stream)
    while (line := read()) is not None:
        yield [line]
    print(file=sys.stderr)


def _can_edit() -> bool:
    """Whether a line can be edited, and earlier ones are found with the arrow keys: not where output goes elsewhere."""
    if sys.stdin is not sys.__stdin__ or not sys.stdout.isatty():
        return False
    try:
        import readline
    except ImportError:  # Windows, which edits lines itself
        return False
    readline.parse_and_bind("set disable-completion on")  # a tab is no name of a file
    sys.stdin.reconfigure(errors="surrogateescape")  # pyright: ignore[reportAttributeAccessIssue]
    return True


def _edited_line() -> bytes | None:
    try:
        return input("> ").encode(sys.stdin.encoding, errors="surrogateescape")
    except EOFError:
        return None


def _typed_line(stream: IO[bytes]) -> bytes | None:
    print("> ", end="", file=sys.stderr, flush=True)
    line = stream.readline()
    return line.removesuffix(b"\n").removesuffix(b"\r") if line else None
