"""`tfm translate`: text in, translations out; one line in, one line out, always."""

import sys
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..engine.guard import READS_FILE, WRITES_FILE
from .attention import WRITES_ATTENTION
from .options import (
    BeamSize,
    Checkpoint,
    Debug,
    Device,
    GlossaryFile,
    Json,
    LengthPenalty,
    NoRepeatNgramSize,
    Repair,
    Run,
    Seed,
    SrcColumn,
    Temperature,
    TgtColumn,
    TopK,
    TopP,
)

if TYPE_CHECKING:
    from ..engine.translator import Translation
    from ..system.console import Console


def translate(
    text: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Sentences; without any, lines come from --input or stdin."),
    ] = None,
    run: Run = None,
    checkpoint: Checkpoint = "best",
    input_: Annotated[
        Path | None,
        typer.Option(
            "--input",
            "-i",
            metavar="FILE",
            help="Text file, one sentence per line; or a document (.po .pot .xlf .xliff .tmx .srt .vtt .tsv .csv "
            ".jsonl), in which what is empty is filled in.",
        ),
        READS_FILE,
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File for the translations."), WRITES_FILE
    ] = None,
    src_column: SrcColumn = None,
    tgt_column: TgtColumn = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    no_repeat_ngram_size: NoRepeatNgramSize = None,
    n_best: Annotated[int, typer.Option(metavar="N", min=1, help="Alternatives per line (with --json).")] = 1,
    sample: Annotated[bool, typer.Option("--sample", help="Sample instead of searching for the best.")] = False,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = None,
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="What every translation begins with.")] = "",
    glossary: GlossaryFile = None,
    repair: Repair = None,
    attention: Annotated[
        Path | None,
        typer.Option(
            "--attention",
            metavar="FILE.jsonl",
            help="Write what the model looked at: JSON Lines, and a folder FILE with a heat map for each line.",
        ),
        WRITES_ATTENTION,
    ] = None,
    json_: Json = False,
    device: Device = "auto",
    debug: Debug = False,
) -> None:
    """Translate sentences, a file, or standard input.

    tfm translate "the old woman gives the child two red apples"

    tfm translate --input test.en --output test.de

    cat test.en | tfm translate > test.de

    tfm translate --input app.po --output app.de.po
    """
    del debug
    from ..data.glossary import Glossary
    from ..data.reading import MAX_LINE_BYTES
    from ..engine.documents import is_document, open_document
    from ..engine.runs.find import find_run
    from ..system.console import Console
    from ..system.errors import DataError, UsageError
    from ..system.files import OutputFile, is_stream
    from .attention import attention_file, check_attention
    from .documents import translate_document
    from .faults import Faults
    from .lines import line_chunks, write_results
    from .options import data_settings, to_repair
    from .sampling import make_sample
    from .startup import importing

    console = Console()
    if text and input_:
        raise UsageError("give sentences as arguments or --input, not both")
    if n_best > 1 and not json_:
        raise UsageError("more than one translation per line needs --json: one line in is one line out")
    drawing = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    drawing = {name: value for name, value in drawing.items() if value is not None}
    searching = {"beam_size": beam_size, "no_repeat_ngram_size": no_repeat_ngram_size}
    _check_search_flags(sample, drawing, searching, n_best, glossary)
    sampling = make_sample(drawing, n_best) if sample else None
    terms = Glossary.load(glossary) if glossary else None
    once_more = to_repair(repair)
    document = None
    check_attention(attention, of_document=input_ is not None and is_document(input_))
    if input_ and is_document(input_):
        if json_ or prefix:
            raise UsageError(f"{input_} is translated in place; --json and --prefix are for lines")
        document = open_document(input_, output, data_settings(src_column, tgt_column))
        console.say(document.remark)
    directory = find_run(run, console)
    faults = Faults()
    with importing():
        from ..engine.device import keep_freed_memory
        from ..engine.translator import Translator

    keep_freed_memory()
    chunks = line_chunks(text, input_, console) if document is None else ()
    translator = Translator.load(directory, checkpoint=checkpoint, device=device, warn=console.warn)
    search = translator.search(beam_size, length_penalty, n_best, no_repeat_ngram_size)
    if sampling is not None:
        search = replace(sampling, length_penalty=search.length_penalty)

    def translations(texts: list[str], first_line: int) -> "list[Translation]":
        return translator.translate(
            texts, search=search, prefixes=prefix, first_line=first_line, glossary=terms, repair=once_more
        )

    if document is not None:
        assert output is not None  # or it would not have been opened
        translate_document(document, translations, output, console)
        return

    def translate_chunk(texts: list[str], first_line: int) -> list[str]:
        found = translations(texts, first_line)
        faults.note(found, first_line)
        if maps is not None:
            maps.add(texts, found, first_line)
        return [_as_json(text, one) if json_ else one.text for text, one in zip(texts, found, strict=True)]

    with attention_file(attention, translator) as maps:
        # A pipe can be read only once; the attention of lines done before an interrupt would be lost.
        if input_ is not None and input_.is_file() and output is not None and not is_stream(output) and maps is None:
            assert translator.checkpoint is not None  # it was loaded from there
            work = _work_of(translator.checkpoint / "manifest.json", input_, search, prefix, glossary, repair, json_)
            too_long = _write_file(translate_chunk, input_, output, work, console)
        else:
            with nullcontext(sys.stdout) if output is None else OutputFile(output) as stream:
                too_long = write_results(translate_chunk, chunks, stream, console)
    faults.report(console)
    if too_long:
        raise DataError(f"{too_long:,} lines were longer than {MAX_LINE_BYTES:,} bytes; their translations are empty")


def _work_of(*parts: object) -> str:
    """Identifies what a file of translations is made from: the content of files, and the words for all else."""
    from ..system.files import sha256_bytes, sha256_file

    contents = (sha256_file(one) if isinstance(one, Path) and one.is_file() else str(one) for one in parts)
    return sha256_bytes("\n".join(contents).encode())


def _write_file(
    translate_chunk: Callable[[list[str], int], list[str]], source: Path, target: Path, work: str, console: "Console"
) -> int:
    """Translates a file into another one; goes on where the same work was interrupted.

    Returns:
        How many lines were too long to be read whole.
    """
    from ..data.reading import count_lines
    from ..seq2seq.decoding.config import CHUNK_TEXTS
    from ..system.errors import Interrupted
    from ..system.files import ResumedFile
    from .lines import line_chunks, write_results

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


def _check_search_flags(
    sample: bool,
    drawing: dict[str, float],
    searching: dict[str, int | None],
    n_best: int,
    glossary: Path | None,
) -> None:
    """Refuses flags that contradict each other, before anything heavy is loaded.

    Args:
        sample: Whether to draw instead of searching.
        drawing: What was said of how to draw.
        searching: What was said of how to search; None where nothing was.
        n_best, glossary: As given.
    """
    from ..seq2seq.decoding.config import check_n_best
    from ..system.errors import UsageError

    if drawing and not sample:
        raise UsageError(f"--{next(iter(drawing)).replace('_', '-')} takes effect only with --sample")
    asked = [name for name, value in searching.items() if value is not None]
    if sample and glossary:
        raise UsageError("--sample draws freely, so it cannot keep the terms of a --glossary; leave one of them out")
    if sample and asked:
        raise UsageError(f"--sample draws and --{asked[0].replace('_', '-')} searches; give one of them")
    beam_size = searching["beam_size"]
    if beam_size is not None:
        try:
            check_n_best(n_best, beam_size)
        except ValueError as error:
            message = f"--n-best {n_best} needs a --beam-size of at least {n_best}, but it is {beam_size}"
            raise UsageError(message) from error


def _as_json(text: str, translation: "Translation") -> str:
    from ..system.files import json_line

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
