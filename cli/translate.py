"""`tfm translate`: text in, translations out; one line in, one line out, always."""

import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.config import DataConfig
from ..data.reading import MAX_LINE_BYTES
from ..engine.file_guard import READS_FILE_OR_FOLDER, WRITES_AS_READ, Place, Writes
from ..seq2seq.decoding.config import check_n_best
from ..system.errors import DataError, UsageError
from ..system.files import OutputFile, is_stream
from ..system.reporter import Console
from .options import (
    BeamSize,
    Checkpoint,
    Debug,
    Device,
    Encoding,
    GlossaryFile,
    Json,
    LengthPenalty,
    NoRepeatNgramSize,
    Repair,
    Run,
    Seed,
    SrcColumn,
    SrcLanguage,
    Temperature,
    TgtColumn,
    TgtLanguage,
    TopK,
    TopP,
    data_settings,
    make_sample,
    named_sides,
    to_repair,
)
from .startup import importing

if TYPE_CHECKING:
    from ..data.glossary import Glossary
    from ..engine.documents.document import Document
    from ..engine.translator import Translation, Translator
    from .attention import AttentionFile


def _load_glossary(path: Path | None, encoding: str) -> "Glossary | None":
    if path is None:
        return None
    from ..data.glossary import Glossary

    return Glossary.load(path, encoding)


def _attention_file(path: Path | None, translator: "Translator") -> "AbstractContextManager[AttentionFile | None]":
    """The file to write attention to, if it is wanted."""
    if path is None:
        return nullcontext()
    from .attention import attention_file

    return attention_file(path, translator)


def _attention_places(path: Path, given: Any) -> "Iterable[Place]":
    del given
    from .attention import attention_places

    return attention_places(path)


WRITES_ATTENTION = Writes(_attention_places)


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
            metavar="FILE|DIR",
            help="Text file, one sentence per line; or a document (.po .pot .xlf .xliff .sdlxliff .mqxliff .mxliff "
            ".txlf .tmx .srt .vtt .tsv .csv .jsonl), in which what is empty is filled in; or a folder of documents of "
            "one kind.",
        ),
        READS_FILE_OR_FOLDER,
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE|DIR", help="File for the translations; a folder for a folder."),
        WRITES_AS_READ,
    ] = None,
    src_column: SrcColumn = None,
    tgt_column: TgtColumn = None,
    src_language: SrcLanguage = None,
    tgt_language: TgtLanguage = None,
    encoding: Encoding = None,
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

    tfm translate --input messages --output translated
    """
    del debug
    from ..engine.runs.find import find_run
    from .lines import line_chunks, write_results
    from .translations import Faults, as_json, translate_document, translate_folder, work_of, write_file

    console = Console()
    if text and input_:
        raise UsageError("give sentences as arguments or --input, not both")
    drawing = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    searching = {"beam_size": beam_size, "no_repeat_ngram_size": no_repeat_ngram_size}
    _check_search_flags(sample, drawing, searching, n_best, glossary, json_)
    sampling = make_sample(drawing, n_best) if sample else None
    settings = data_settings(named_sides(src_column, tgt_column, src_language, tgt_language, encoding))
    terms = _load_glossary(glossary, settings.encoding)
    if attention:
        from .attention import check_attention

        check_attention(attention)
    directory = find_run(run, console)
    settings = _with_languages_of(directory, settings) if input_ else settings
    in_place = _document(input_, output, settings, attention is not None, json_ or bool(prefix)) if input_ else None
    if in_place is not None and not isinstance(in_place, list):
        console.say(in_place.remark)
    with importing():
        from ..engine.device import keep_freed_memory
        from ..engine.translator import Translator

    keep_freed_memory()
    chunks = () if in_place is not None else line_chunks(text, input_, console, encoding=settings.encoding)
    translator = Translator.load(directory, checkpoint=checkpoint, device=device, warn=console.warn)
    search = translator.search(beam_size, length_penalty, n_best, no_repeat_ngram_size)
    if sampling is not None:
        search = replace(sampling, length_penalty=search.length_penalty)

    def translations(texts: list[str], first_line: int) -> "list[Translation]":
        return translator.translate(
            texts, search=search, prefixes=prefix, first_line=first_line, glossary=terms, repair=to_repair(repair)
        )

    if isinstance(in_place, list):
        translate_folder(in_place, settings, translations, console)
        return
    if in_place is not None:
        assert output is not None  # or it would not have been opened
        translate_document(in_place, translations, output, console)
        return

    faults = Faults("line")

    def translate_chunk(texts: list[str], first_line: int) -> list[str]:
        found = translations(texts, first_line)
        faults.note(found, first_line)
        if maps is not None:
            maps.add(texts, found, first_line)
        return [as_json(text, one) if json_ else one.text for text, one in zip(texts, found, strict=True)]

    with _attention_file(attention, translator) as maps:
        # Resuming needs an input that can be read again, and no attention file: that of finished lines would be lost.
        if input_ is not None and input_.is_file() and output is not None and not is_stream(output) and maps is None:
            assert translator.checkpoint is not None  # it was loaded from there
            work = work_of(
                translator.checkpoint / "manifest.json", input_, search, prefix, glossary, repair, json_, encoding
            )
            too_long = write_file(translate_chunk, input_, output, work, console, settings.encoding)
        else:
            with nullcontext(sys.stdout) if output is None else OutputFile(output) as stream:
                too_long = write_results(translate_chunk, chunks, stream, console, encoding=settings.encoding)
    faults.report(console)
    if too_long:
        raise DataError(f"{too_long:,} lines were longer than {MAX_LINE_BYTES:,} bytes; their translations are empty")


def _check_search_flags(
    sample: bool,
    drawing: dict[str, float | None],
    searching: dict[str, int | None],
    n_best: int,
    glossary: Path | None,
    as_json: bool,
) -> None:
    """Refuses flags that contradict each other, before anything heavy is loaded.

    Args:
        drawing, searching: Flags that say how to sample, and how to search; None where not given.
    """
    if n_best > 1 and not as_json:
        raise UsageError("more than one translation per line needs --json: one line in is one line out")
    drawn = [name.replace("_", "-") for name, value in drawing.items() if value is not None]
    asked = [name.replace("_", "-") for name, value in searching.items() if value is not None]
    if drawn and not sample:
        raise UsageError(f"--{drawn[0]} takes effect only with --sample")
    if sample and glossary:
        raise UsageError("--sample draws freely, so it cannot keep the terms of a --glossary; leave one of them out")
    if sample and asked:
        raise UsageError(f"--sample draws and --{asked[0]} searches; give one of them")
    if (beam_size := searching["beam_size"]) is not None:
        try:
            check_n_best(n_best, beam_size)
        except ValueError as error:
            message = f"--n-best {n_best} needs a --beam-size of at least {n_best}, but it is {beam_size}"
            raise UsageError(message) from error


def _document(
    path: Path, output: Path | None, settings: DataConfig, with_attention: bool, as_lines: bool
) -> "Document | list[tuple[Path, Path]] | None":
    """The document in a file; of a folder its documents and the files to write; None if the file has lines.

    Flags that are for lines are refused for a document.
    """
    from ..engine.documents import documents_below, is_document, open_document

    if not path.is_dir() and not is_document(path):
        return None
    if with_attention:
        raise UsageError("--attention is for lines, not for a document that is translated in place")
    if as_lines:
        raise UsageError(f"{path} is translated in place; --json and --prefix are for lines")
    return documents_below(path, output) if path.is_dir() else open_document(path, output, settings)


def _with_languages_of(run: Path, settings: DataConfig) -> DataConfig:
    """Settings in which languages that nobody names are those of a run. Its sources may come from any region."""
    from ..engine.runs.directory import RunDirectory

    (src, tgt), known = settings.languages, RunDirectory(run).languages
    src, tgt = src or known[0].replace("_", "-").partition("-")[0], tgt or known[1]
    return replace(settings, src_language=src, tgt_language=tgt)
