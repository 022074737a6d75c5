"""`tfm translate`: text in, translations out; one line in, one line out, always."""

import json
import sys
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from .options import BeamSize, Checkpoint, Debug, Device, Json, LengthPenalty, Run

if TYPE_CHECKING:
    from ..seq2seq.decoding import Sample, Translation
    from .console import Console
    from .lines import Chunk


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
    temperature: Annotated[float | None, typer.Option(metavar="T", help="Below 1 safer, above 1 wilder.")] = None,
    top_k: Annotated[int | None, typer.Option(metavar="K", help="Only the k likeliest pieces.")] = None,
    top_p: Annotated[float | None, typer.Option(metavar="P", help="Only the likeliest pieces that sum to p.")] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Same seed, same sample. [default: 0]")] = None,
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="What every translation begins with.")] = "",
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
    from ..data.errors import DataError, UsageError
    from ..data.files import OutputFile
    from ..data.reading import MAX_LINE_BYTES
    from ..seq2seq.interrupts import Interrupts
    from .console import Console
    from .libraries import importing
    from .runs import find_run

    console = Console()
    if text and input_:
        raise UsageError("give sentences as arguments or --input, not both")
    if n_best > 1 and not json_:
        raise UsageError("more than one translation per line needs --json: one line in is one line out")
    drawing = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    drawing = {name: value for name, value in drawing.items() if value is not None}
    _check_search_flags(sample, drawing, beam_size, n_best)
    sampling = _sampling(drawing, n_best) if sample else None
    directory = find_run(run, console)
    with Interrupts():
        with importing():
            from ..seq2seq.decoding import Translator
            from ..seq2seq.device import keep_freed_memory

        keep_freed_memory()
        chunks = _chunks(text, input_, console)
        translator = Translator.load(directory, checkpoint=checkpoint, device=device, warn=console.warn)
        search = translator.search(beam_size, length_penalty, n_best)
        if sampling is not None:
            search = replace(sampling, length_penalty=search.length_penalty)

        def translate_chunk(texts: list[str], first_line: int) -> list["Translation"]:
            return translator.translate(texts, search=search, prefixes=prefix, first_line=first_line)

        with nullcontext(sys.stdout) if output is None else OutputFile(output) as stream:
            too_long = _translate_lines(translate_chunk, chunks, stream, json_, console)
    if too_long:
        raise DataError(f"{too_long:,} lines were longer than {MAX_LINE_BYTES:,} bytes; their translations are empty")


def _chunks(text: list[str] | None, path: Path | None, console: "Console") -> Iterable["Chunk"]:
    from .lines import argument_lines, file_lines, stdin_lines

    if text:
        return argument_lines(text)
    return stdin_lines(console) if path is None else file_lines(path)


def _check_search_flags(sample: bool, drawing: dict[str, float], beam_size: int | None, n_best: int) -> None:
    """Refuses flags that contradict each other, before anything heavy is loaded.

    Args:
        sample: Whether to draw instead of searching.
        drawing: What was said of how to draw.
        beam_size, n_best: As given.
    """
    from ..data.errors import UsageError
    from ..seq2seq.decoding.config import check_n_best

    if drawing and not sample:
        raise UsageError(f"--{next(iter(drawing)).replace('_', '-')} takes effect only with --sample")
    if sample and beam_size is not None:
        raise UsageError("--sample draws and --beam-size searches; give one of them")
    if beam_size is not None:
        try:
            check_n_best(n_best, beam_size)
        except ValueError as error:
            message = f"--n-best {n_best} needs a --beam-size of at least {n_best}, but it is {beam_size}"
            raise UsageError(message) from error


def _sampling(drawing: dict[str, float], samples: int) -> "Sample":
    from ..data.errors import UsageError
    from ..seq2seq.decoding import Sample

    try:
        return replace(Sample(samples=samples), **drawing)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _translate_lines(
    translate_chunk: Callable[[list[str], int], list["Translation"]],
    chunks: Iterable["Chunk"],
    stream: IO[str],
    as_json: bool,
    console: "Console",
) -> int:
    """Translates chunk by chunk; returns how many lines were too long to be read whole."""
    line_number = bad_lines = too_long = 0
    for chunk in chunks:
        too_long += sum(raw is None for raw in chunk)
        texts = [(raw or b"").decode("utf-8", errors="replace") for raw in chunk]
        bad_lines += sum("\ufffd" in text and text.encode() != raw for raw, text in zip(chunk, texts, strict=True))
        translations = translate_chunk(texts, line_number)
        line_number += len(texts)
        for text, translation in zip(texts, translations, strict=True):
            stream.write((_as_json(text, translation) if as_json else translation.text) + "\n")
        stream.flush()
    if bad_lines:
        console.warn(f"{bad_lines:,} lines were not valid UTF-8; what could not be read became U+FFFD")
    return too_long


def _as_json(text: str, translation: "Translation") -> str:
    def fields(one: "Translation") -> dict[str, Any]:
        return {"translation": one.text, "score": one.score, "log_prob": one.log_prob, "tokens": list(one.tokens)}

    record = {"source": text, **fields(translation)}
    if len(translation.alternatives) > 1:
        record["alternatives"] = [fields(one) for one in translation.alternatives]
    return json.dumps(record, ensure_ascii=False)
