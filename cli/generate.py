"""`tfm generate`: a language model continues beginnings, or makes up texts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..engine.file_guard import READS_FILE, WRITES_FILE
from ..system.errors import DataError, UsageError
from ..system.files import json_line
from ..system.reporter import Console
from . import options
from .startup import importing

if TYPE_CHECKING:
    from ..engine.generator import Generation


def generate(
    beginning: Annotated[
        list[str] | None,
        typer.Argument(metavar="BEGINNING", help="Beginnings of texts; without any, lines come from --input or stdin."),
    ] = None,
    run: options.Run = None,
    checkpoint: options.Checkpoint = "best",
    input_: Annotated[
        Path | None,
        typer.Option(
            "--input", "-i", metavar="FILE", callback=options.or_stream, help="Text file, one beginning per line."
        ),
        READS_FILE,
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", callback=options.or_stream, help="File for the texts."),
        WRITES_FILE,
    ] = None,
    temperature: options.Temperature = None,
    top_k: options.TopK = None,
    top_p: options.TopP = None,
    seed: options.Seed = None,
    max_length: Annotated[
        int | None,
        typer.Option(metavar="N", min=2, help="Most pieces of a text. [default: as many as the model reads]"),
    ] = None,
    encoding: options.Encoding = None,
    json_: options.Json = False,
    device: options.Device = "auto",
) -> None:
    """Continue texts with a language model.

    One line comes out for each that goes in.

    tfm generate --run runs/toy-text "the old woman"

    An empty beginning leaves the whole text to the model:

    tfm generate --run runs/toy-text --seed 7 ""
    """
    from ..engine.runs.find import find_run
    from .lines import JSON_LINES, line_chunks, lines_too_long, output_or_stdout, refuse_other_output, write_results

    console = Console()
    if beginning and input_:
        raise UsageError("give beginnings as arguments or --input, not both")
    refuse_other_output(output, *(JSON_LINES if json_ else ()))
    drawing = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    directory = find_run(run, console)
    with importing():
        from ..engine.device import keep_freed_memory
        from ..engine.generator import Generator

    sample = options.make_sample(drawing)
    keep_freed_memory()
    known = options.checked_encoding(encoding)
    chunks = line_chunks(beginning, input_, console, encoding=known)
    generator = Generator.load(directory, checkpoint=checkpoint, device=device, warn=console.warn)
    as_they_were = 0

    def generate_chunk(texts: list[str], first_line: int) -> list[str]:
        nonlocal as_they_were
        found = generator.generate(texts, search=sample, max_pieces=max_length, first_line=first_line)
        for line, one in enumerate(found, start=first_line + 1):
            if one.problem:
                console.warn(f"line {line}: {one.problem}")
                as_they_were += 1
        return [_as_json(text, one) if json_ else one.text for text, one in zip(texts, found, strict=True)]

    with output_or_stdout(output) as stream:
        too_long = write_results(generate_chunk, chunks, stream, console, encoding=known)
    problems: list[str] = []
    if too_long:
        problems.append(f"{lines_too_long(too_long)}; nothing was read of them")
    if as_they_were:
        problems.append(f"beginnings that could not be continued, and are in the output unchanged: {as_they_were:,}")
    if problems:
        raise DataError("; ".join(problems))


def _as_json(beginning: str, one: "Generation") -> str:
    if one.problem:
        record = {"beginning": beginning, "text": one.text, "problem": one.problem}
    else:
        numbers = {"log_prob": one.log_prob, "tokens": list(one.tokens), "ended": one.ended}
        record = {"beginning": beginning, "text": one.text, **numbers}
    return json_line(record)
