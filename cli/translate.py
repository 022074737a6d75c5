"""`tfm translate`: text in, translations out; one line in, one line out, always."""

import json
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from .options import BeamSize, Checkpoint, Debug, Device, Json, LengthPenalty, Run

if TYPE_CHECKING:
    from ..seq2seq.decoding import Translation
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
    sampling = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    search = _search_options(sample, sampling, beam_size, length_penalty, n_best)
    directory = find_run(run, console)
    with Interrupts():
        with importing():
            from ..seq2seq.decoding import Translator
            from ..seq2seq.device import keep_freed_memory

        keep_freed_memory()
        chunks = _chunks(text, input_, console)
        translator = Translator.load(directory, checkpoint=checkpoint, device=device, warn=console.warn)
        if search["sampling"] is None and search["n_best"] > (beam_size or translator.decoding.beam_size):
            search["beam_size"] = search["n_best"]
        with nullcontext(sys.stdout) if output is None else OutputFile(output) as stream:
            too_long = _translate_lines(translator, chunks, stream, search, json_, console)
    if too_long:
        raise DataError(f"{too_long:,} lines were longer than {MAX_LINE_BYTES:,} bytes; their translations are empty")


def _chunks(text: list[str] | None, path: Path | None, console: "Console") -> Iterable["Chunk"]:
    from .lines import argument_lines, file_lines, stdin_lines

    if text:
        return argument_lines(text)
    return stdin_lines(console) if path is None else file_lines(path)


def _search_options(
    sample: bool, sampling: dict[str, Any], beam_size: int | None, length_penalty: float | None, n_best: int
) -> dict[str, Any]:
    """Checks the search flags before anything heavy is loaded."""
    from ..data.errors import UsageError

    given = {name: value for name, value in sampling.items() if value is not None}
    if given and not sample:
        raise UsageError(f"--{next(iter(given)).replace('_', '-')} takes effect only with --sample")
    if sample and beam_size is not None:
        raise UsageError("--sample draws and --beam-size searches; give one of them")
    if beam_size is not None and n_best > beam_size:
        raise UsageError(f"--n-best {n_best} needs a --beam-size of at least {n_best}, but it is {beam_size}")
    options: dict[str, Any] = {"beam_size": beam_size, "length_penalty": length_penalty, "n_best": n_best}
    options["sampling"] = None
    if sample:
        from ..seq2seq.decoding.sampling import Sampling

        try:
            options["sampling"] = Sampling(**given)
        except ValueError as error:
            raise UsageError(str(error)) from error
    return options


def _translate_lines(
    translator: Any,
    chunks: Iterable["Chunk"],
    stream: IO[str],
    search: dict[str, Any],
    as_json: bool,
    console: "Console",
) -> int:
    """Translates chunk by chunk; returns how many lines were too long to be read whole."""
    line_number = bad_lines = too_long = 0
    for chunk in chunks:
        too_long += sum(raw is None for raw in chunk)
        texts = [(raw or b"").decode("utf-8", errors="replace") for raw in chunk]
        bad_lines += sum("\ufffd" in text and text.encode() != raw for raw, text in zip(chunk, texts, strict=True))
        translations = translator.translate(texts, first_line=line_number, **search)
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
