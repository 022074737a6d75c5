"""`tfm translate`: text in, translations out; one line in, one line out, always."""

import shlex
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.config import DataConfig
from ..seq2seq.decoding.config import check_n_best
from ..system.errors import DataError, UsageError
from ..system.files import is_stream
from ..system.reporter import Console
from . import options
from .attention import attention_file, check_attention
from .startup import importing

if TYPE_CHECKING:
    from ..engine.documents.document import Document
    from ..engine.translator import Translator
    from ..seq2seq.decoding.sampling import Sample
    from ..seq2seq.decoding.search import Search
    from .lines import Chunk
    from .translations import LineWriter


def translate(
    text: options.Sentences = None,
    run: options.Run = None,
    checkpoint: options.Checkpoint = "best",
    input_: options.LinesOrDocuments = None,
    output: options.TranslationsOrFolder = None,
    src_column: options.SrcColumn = None,
    tgt_column: options.TgtColumn = None,
    src_language: options.SrcLanguage = None,
    tgt_language: options.TgtLanguage = None,
    encoding: options.Encoding = None,
    beam_size: options.BeamSize = None,
    length_penalty: options.LengthPenalty = None,
    no_repeat_ngram_size: options.NoRepeatNgramSize = None,
    n_best: options.NBest = 1,
    sample: options.Sampling = False,
    temperature: options.Temperature = None,
    top_k: options.TopK = None,
    top_p: options.TopP = None,
    seed: options.Seed = None,
    prefix: options.Prefix = "",
    glossary: options.GlossaryFile = None,
    repair: options.Repair = None,
    review: options.Review = False,
    attention: options.Attention = None,
    json_: options.Json = False,
    device: options.Device = "auto",
) -> None:
    """Translate sentences, a file, or standard input.

    tfm translate "the old woman gives the child two red apples"

    tfm translate --input test.en --output test.de

    cat test.en | tfm translate > test.de

    tfm translate --input app.po --output app.de.po

    tfm translate --input messages --output translated

    tfm translate --input app.po --output app.de.po --review
    """
    from ..engine.runs.find import find_run
    from .lines import JSON_LINES, line_chunks, lines_too_long, refuse_other_output
    from .translations import LineWriter, translate_document, translate_folder

    console = Console()
    if text and input_:
        raise UsageError("give sentences as arguments or --input, not both")
    drawing = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    searching: dict[str, Any] = {"beam_size": beam_size, "no_repeat_ngram_size": no_repeat_ngram_size}
    _check_search_flags(sample, drawing, searching, n_best, glossary, json_)
    sampling = options.make_sample(drawing, n_best) if sample else None
    settings = options.data_settings(options.named_sides(src_column, tgt_column, src_language, tgt_language, encoding))
    terms = options.load_glossary(glossary, settings.encoding)
    if attention:
        check_attention(attention)
    directory = find_run(run, console)
    settings = _with_languages_of(directory, settings) if input_ else settings
    if review:
        _check_review(input_, sample)
    in_place = _document(input_, output, settings, attention is not None, json_ or bool(prefix)) if input_ else None
    if in_place is None:
        refuse_other_output(output, *(JSON_LINES if json_ else ()))
    elif isinstance(in_place, list):
        _say_templates(in_place, input_, console)
    else:
        console.say(in_place.remark)
    with importing():
        from ..engine.device import keep_freed_memory
        from ..engine.translator import Translator

    keep_freed_memory()
    chunks = () if in_place is not None else line_chunks(text, input_, console, encoding=settings.encoding)
    translator = Translator.load(directory, checkpoint=checkpoint, device=device, warn=console.warn)
    searching |= {"length_penalty": length_penalty, "n_best": n_best}
    search = _search_of(translator, sampling, searching, directory, review=review)
    once_more = options.to_repair(repair)
    translated = partial(translator.translate, search=search, prefixes=prefix, glossary=terms, repair=once_more)
    if isinstance(in_place, list):
        translate_folder(in_place, settings, translated, console, review=review)
        return
    if in_place is not None:
        assert output is not None  # or it would not have been opened
        translate_document(in_place, translated, output, console, review=review)
        return
    assert translator.checkpoint is not None  # it was loaded from there
    manifest = translator.checkpoint / "manifest.json"
    # Resuming needs an input that can be read again, and no attention file: that of finished lines would be lost.
    work = None if attention else (manifest, input_, search, prefix, glossary, repair, json_, encoding)
    with nullcontext() if attention is None else attention_file(attention, translator) as maps:
        lines = LineWriter(translated, maps, as_records=json_)
        too_long = _translate_lines(lines, chunks, input_, output, work, console, settings.encoding)
    lines.faults.report(console)
    if too_long:
        raise DataError(f"{lines_too_long(too_long)}; their translations are empty")


def _search_of(
    translator: "Translator", sampling: "Sample | None", searching: dict[str, Any], directory: Path, *, review: bool
) -> "Search":
    """The run's own search, changed by what is given; or `sampling`, which draws.

    Raises:
        UsageError: There is to be a review, and the run is not calibrated for this search.
    """
    search = translator.search(**searching)
    if sampling is not None:
        search = replace(sampling, length_penalty=search.length_penalty)
    if review and (translator.calibration is None or not translator.calibration.holds_for(search)):
        raise UsageError(
            f"--review needs to know how good the translations of {translator.checkpoint} are, found by this search;"
            f" calibrate it: tfm evaluate --run {shlex.quote(str(directory))} --calibrate"
        )
    return search


def _translate_lines(
    lines: "LineWriter",
    chunks: "Iterable[Chunk]",
    input_: Path | None,
    output: Path | None,
    work: tuple[object, ...] | None,
    console: Console,
    encoding: str,
) -> int:
    """Translates lines into a file or to standard output; returns how many were too long to be read whole.

    From a file into a file it goes on where the same `work` was interrupted; None does not go on.
    """
    from .lines import output_or_stdout, write_results
    from .translations import work_of, write_file

    if work and input_ is not None and input_.is_file() and output is not None and not is_stream(output):
        return write_file(lines, input_, output, work_of(*work), console, encoding)
    with output_or_stdout(output) as stream:
        return write_results(lines, chunks, stream, console, encoding=encoding)


def _check_search_flags(
    sample: bool,
    drawing: dict[str, float | None],
    searching: dict[str, int | None],
    n_best: int,
    glossary: Path | None,
    as_json: bool,
) -> None:
    """Refuses flags of sampling and searching that contradict each other, before anything heavy is loaded."""
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


def _check_review(path: Path | None, sample: bool) -> None:
    """Refuses a review of what is drawn, and of a file without a place for notes."""
    from ..data.formats import suffix_of
    from ..data.formats.folder import files_below
    from ..engine.documents import KINDS, WITH_NOTES, is_document

    if sample:
        raise UsageError("--sample draws, and nobody knows how good what it draws is; leave --review out")
    paths = [] if path is None else list(files_below(path, KINDS)) if path.is_dir() else [path]
    if not paths or not all(map(is_document, paths)):
        raise UsageError("--review is for a document, --input FILE; of lines --json says the projected_chrf")
    if suffix_of(paths[0]) not in WITH_NOTES:
        raise UsageError(f"{paths[0]} has no place for notes; --review is for {', '.join(sorted(WITH_NOTES))}")


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
    return documents_below(path, output, settings) if path.is_dir() else open_document(path, output, settings)


def _say_templates(files: "list[tuple[Path, Path]]", folder: Path | None, console: Console) -> None:
    """Says which templates of messages in a folder are not translated, as there are messages beside them."""
    from ..engine.documents import templates_beside

    for path in templates_beside(folder, files) if folder else ():
        console.say(f"{path}: a template; it is left, and the .po files beside it are translated")


def _with_languages_of(run: Path, settings: DataConfig) -> DataConfig:
    """Settings with the languages of a run where none are named; that of the sources without its region."""
    from ..engine.runs.directory import RunDirectory

    (src, tgt), known = settings.languages, RunDirectory(run).languages
    src, tgt = src or known[0].replace("_", "-").partition("-")[0], tgt or known[1]
    return replace(settings, src_language=src, tgt_language=tgt)
