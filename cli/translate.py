"""`tfm translate`: text in, translations out; one line in, one line out, always."""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from .options import BeamSize, Checkpoint, Debug, Device, Json, LengthPenalty, Run

if TYPE_CHECKING:
    from ..seq2seq.decoding import Translation
    from .console import Console

_CHUNK_LINES = 1000
"""Most lines translated together; enough for well-filled batches, little enough to show progress."""


def translate(
    text: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Sentences; without any, lines come from --input or stdin."),
    ] = None,
    run: Run = None,
    checkpoint: Checkpoint = "best",
    input_: Annotated[
        Path | None, typer.Option("--input", "-i", metavar="FILE", help="Text file, one sentence per line.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File for the translations.")
    ] = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    n_best: Annotated[int, typer.Option(metavar="N", min=1, help="Alternatives per line (with --json).")] = 1,
    sample: Annotated[bool, typer.Option("--sample", help="Sample instead of searching for the best.")] = False,
    temperature: Annotated[float, typer.Option(metavar="T", help="Sampling: below 1 safer, above 1 wilder.")] = 1.0,
    top_k: Annotated[int, typer.Option(metavar="K", help="Sampling: only the k likeliest pieces; 0 for all.")] = 0,
    top_p: Annotated[float, typer.Option(metavar="P", help="Sampling: only the likeliest pieces that sum to p.")] = 1.0,
    seed: Annotated[int, typer.Option(metavar="N", help="Sampling: same seed, same output.")] = 0,
    json_: Json = False,
    device: Device = "auto",
    debug: Debug = False,
) -> None:
    """Translate sentences, a file, or standard input.

    tfm translate "the old woman gives the child two red apples"

    tfm translate --input test.en --output test.de

    cat test.en | tfm translate > test.de
    """
    del debug
    from ..data.errors import UsageError
    from ..data.files import OutputFile
    from ..seq2seq.training.interrupts import Interrupts
    from .console import Console
    from .runs import find_run

    console = Console()
    if text and input_:
        raise UsageError("give sentences as arguments or --input, not both")
    if n_best > 1 and not json_:
        raise UsageError("more than one translation per line needs --json: one line in is one line out")
    if not sample and {temperature, top_p} != {1.0}:
        raise UsageError("--temperature and --top-p take effect only with --sample")
    search = _search_options(sample, temperature, top_k, top_p, seed, beam_size, length_penalty, n_best)
    directory = find_run(run, console)
    with Interrupts():
        from ..seq2seq.decoding import Translator

        source = _input_lines(text, input_)
        translator = Translator.load(directory, checkpoint=checkpoint, device=device, warn=console.warn)
        if not text and input_ is None and sys.stdin.isatty():
            source = _prompt_lines(console)
        if search["sampling"] is None and search["n_best"] > (beam_size or translator.decoding.beam_size):
            search["beam_size"] = search["n_best"]
        if output is None:
            _translate_lines(translator, source, sys.stdout, search, json_, console)
        else:
            with OutputFile(output) as stream:
                _translate_lines(translator, source, stream, search, json_, console)


def _search_options(
    sample: bool,
    temperature: float,
    top_k: int,
    top_p: float,
    seed: int,
    beam_size: int | None,
    length_penalty: float | None,
    n_best: int,
) -> dict[str, Any]:
    """Checks the search flags before anything heavy is loaded."""
    from ..data.errors import UsageError

    if beam_size is not None and not sample and n_best > beam_size:
        raise UsageError(f"--n-best {n_best} needs a --beam-size of at least {n_best}, but it is {beam_size}")
    options: dict[str, Any] = {"beam_size": beam_size, "length_penalty": length_penalty, "n_best": n_best}
    options["sampling"] = None
    if sample:
        from ..seq2seq.decoding.sampling import Sampling

        try:
            options["sampling"] = Sampling(temperature, top_k, top_p, seed)
        except ValueError as error:
            raise UsageError(str(error)) from error
    return options


def _translate_lines(
    translator: Any,
    chunks: Iterable[list[bytes]],
    stream: IO[str],
    search: dict[str, Any],
    as_json: bool,
    console: "Console",
) -> None:
    line_number = bad_lines = 0
    for chunk in chunks:
        texts = [raw.decode("utf-8", errors="replace") for raw in chunk]
        bad_lines += sum(
            b"\xef\xbf\xbd" not in raw and "\ufffd" in text for raw, text in zip(chunk, texts, strict=True)
        )
        translations = translator.translate(texts, first_line=line_number, **search)
        line_number += len(texts)
        for text, translation in zip(texts, translations, strict=True):
            stream.write((_as_json(text, translation) if as_json else translation.text) + "\n")
        stream.flush()
    if bad_lines:
        console.warn(f"{bad_lines:,} lines were not valid UTF-8; what could not be read became U+FFFD")


def _as_json(text: str, translation: "Translation") -> str:
    def fields(one: "Translation") -> dict[str, Any]:
        return {"translation": one.text, "score": one.score, "log_prob": one.log_prob, "tokens": list(one.tokens)}

    record = {"source": text, **fields(translation)}
    if len(translation.alternatives) > 1:
        record["alternatives"] = [fields(one) for one in translation.alternatives]
    return json.dumps(record, ensure_ascii=False)


def _input_lines(text: list[str] | None, path: Path | None) -> Iterator[list[bytes]]:
    """Chunks of raw lines: the arguments, a file (opened now, so that a wrong name is told at once), or stdin."""
    if text:
        return iter([[one.replace("\n", " ").encode("utf-8", errors="surrogateescape") for one in text]])
    if path is not None:
        from ..data.reading import open_bytes

        with open_bytes(path):
            return _file_lines(path)
    return _arriving_lines(sys.stdin.buffer)


def _file_lines(path: Path) -> Iterator[list[bytes]]:
    from itertools import islice

    from ..data.reading import iter_raw_lines, open_bytes

    with open_bytes(path) as file:
        lines = iter_raw_lines(file)
        while chunk := list(islice(lines, _CHUNK_LINES)):
            yield chunk


def _arriving_lines(stream: IO[bytes]) -> Iterator[list[bytes]]:
    """Chunks of what has arrived on a stream: waits for a line, then takes whatever else is already there."""
    import queue
    import threading

    from ..data.reading import iter_raw_lines

    arrived: queue.Queue[bytes | None] = queue.Queue(maxsize=2 * _CHUNK_LINES)

    def read() -> None:
        for line in iter_raw_lines(stream):
            arrived.put(line)
        arrived.put(None)

    threading.Thread(target=read, daemon=True).start()
    while (line := arrived.get()) is not None:
        chunk = [line]
        while len(chunk) < _CHUNK_LINES and not arrived.empty():
            following = arrived.get()
            if following is None:
                yield chunk
                return
            chunk.append(following)
        yield chunk


def _prompt_lines(console: "Console") -> Iterator[list[bytes]]:
    console.say("type a sentence and press Enter; Ctrl-D ends")
    while True:
        print("> ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.buffer.readline()
        if not line:
            print(file=sys.stderr)
            return
        yield [line.removesuffix(b"\n").removesuffix(b"\r")]
