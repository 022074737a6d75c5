"""`tfm export`: a run for other programs, or as a page for a browser."""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, cast
from zipfile import ZipFile

import typer

from ..engine.exportable import QUANTIZATIONS, WEIGHTS
from ..engine.file_guard import READS_DATA_OF_RUN, WRITES_FOLDER
from ..system.errors import UsageError
from ..system.files import BinaryOutputFile, OutputFile
from ..system.reporter import Console
from . import options
from .startup import importing
from .table import print_table

if TYPE_CHECKING:
    from ..data.corpus import Pair
    from ..engine.exportable import Weights
    from ..engine.runs.directory import RunDirectory
    from ..engine.runs.load import TrainedRun


@dataclass(frozen=True)
class ExportFormat:
    """What an export may be.

    Attributes:
        weights: How it may store them.
        makes, needs, cannot: What the list says of it.
    """

    weights: Sequence[str]
    makes: str
    needs: str
    cannot: str


FORMATS = {
    "ctranslate2": ExportFormat(
        QUANTIZATIONS, "a folder for CTranslate2, and a run for tfm", "pip install ctranslate2", "decoder-only models"
    ),
    "html": ExportFormat(WEIGHTS, "one page that translates by itself", "any browser", "glossaries"),
    "argos": ExportFormat(
        QUANTIZATIONS, "a package for Argos Translate, LibreTranslate", "pip install argostranslate", "placeholders"
    ),
}


@dataclass(frozen=True)
class _Export:
    """What is exported, and to where. `checkpoint` is best, last or a step."""

    run: "RunDirectory"
    checkpoint: str
    output: Path
    pairs: "list[Pair]"
    console: Console


def export(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PATH", help="The directory to make; of html and argos the file."),
        WRITES_FOLDER,
    ] = None,
    run: Annotated[options.Run, READS_DATA_OF_RUN] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="ctranslate2, for programs; html, a page for any browser; argos, for Argos Translate and"
            " LibreTranslate. Without it and without --output they are listed. [default: ctranslate2]",
        ),
    ] = None,
    quantization: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="How weights are stored: float32, float16, bfloat16, int16, int8, int8_float32, int8_float16"
            " or int8_bfloat16; of html int8, float16 or float32. [default: float32; of argos int8; of html int8, or"
            " float16 where int8 costs more than 0.3 BLEU]",
        ),
    ] = None,
    checkpoint: options.Checkpoint = "best",
    src_language: Annotated[
        str | None,
        typer.Option("--src-language", metavar="CODE", help="Of argos: the sources' language. [default: the run's]"),
    ] = None,
    tgt_language: Annotated[
        str | None,
        typer.Option("--tgt-language", metavar="CODE", help="Of argos: the targets' language. [default: the run's]"),
    ] = None,
    check: Annotated[
        int, typer.Option(metavar="N", min=0, help="Compare on at most this many validation sentences; 0 skips that.")
    ] = 500,
) -> None:
    """Write a run for CTranslate2, a browser or Argos Translate.

    tfm export --run runs/mine --output mine.ct2 --quantization int8

    tfm export --run runs/mine --output translator.html --format html

    tfm export --run runs/mine --output en-de.argosmodel --format argos
    """
    if format_ is None and output is None:
        _list_formats()
        return
    from ..engine.evaluation.reading import dev_pairs
    from ..engine.runs.directory import RunDirectory
    from ..engine.runs.find import find_run

    format_ = format_ or "ctranslate2"
    *names, last = FORMATS
    if format_ not in FORMATS:
        raise UsageError(f"format must be {', '.join(names)} or {last}, but is {format_!r}")
    if quantization not in (None, *FORMATS[format_].weights):
        raise UsageError(f"quantization must be one of {', '.join(FORMATS[format_].weights)}, but is {quantization!r}")
    if output is None:
        raise UsageError("say where to: --output PATH")
    if format_ != "argos" and (src_language or tgt_language):
        raise UsageError("--src-language and --tgt-language take effect only with --format argos")
    console = Console()
    directory = RunDirectory(find_run(run, console))

    console.say(f"exporting {directory}")
    pairs = dev_pairs(directory, check, console.say, "not compared with the run") if check else []
    chosen = _Export(directory, checkpoint, output, pairs, console)
    if format_ == "html":
        _to_html(chosen, cast("Weights | None", quantization))
    elif format_ == "argos":
        known = directory.languages
        _to_argos(chosen, (src_language or known[0], tgt_language or known[1]), quantization or "int8")
    else:
        _to_ctranslate2(chosen, quantization or "float32")
    print(output)


def _list_formats() -> None:
    """Prints what an export may be."""
    rows = [(name, one.makes, one.needs, one.cannot) for name, one in FORMATS.items()]
    print_table(rows, ["format", "what it makes", "what it needs", "what it cannot do"])


def _to_ctranslate2(chosen: _Export, quantization: str) -> None:
    with importing():
        from ..engine.export.directory import export_checkpoint

    stored = chosen.run.find_model(chosen.checkpoint, warn=chosen.console.warn)
    export_checkpoint(chosen.run, stored, chosen.output, quantization=quantization)
    checkpoint = stored.checkpoint
    del stored  # its file of weights
    size = sum(path.stat().st_size for path in chosen.output.rglob("*") if path.is_file())
    figures = f"{quantization}, {size / 1e6:,.1f} MB"
    chosen.console.say(f"exported {checkpoint} ({figures}); {chosen.output}/README.md shows how to use it")
    if chosen.pairs:
        _compare(chosen, checkpoint, chosen.output, quantization == "float32")


def _to_argos(chosen: _Export, languages: tuple[str, str], quantization: str) -> None:
    with importing():
        from ..engine.export.argos import write_package

    stored = chosen.run.find_model(chosen.checkpoint, warn=chosen.console.warn)
    with BinaryOutputFile(chosen.output) as stream:
        write_package(chosen.run, stored, stream, languages, quantization=quantization)
    checkpoint, size = stored.checkpoint, chosen.output.stat().st_size / 1e6
    chosen.console.say(
        f"exported {checkpoint} ({quantization}, {size:,.1f} MB); install it with argospm install {chosen.output}"
    )
    if chosen.pairs:
        with TemporaryDirectory(prefix="tfm-export-") as folder, ZipFile(chosen.output) as package:
            package.extractall(folder)
            (model,) = Path(folder).glob("*/model")
            _compare(chosen, checkpoint, model, quantization == "float32")


def _compare(chosen: _Export, checkpoint: Path, model: Path, exact: bool) -> None:
    """Translates with the run and with a directory of CTranslate2, and says how far they agree."""
    from ..engine.export.parity import ENOUGH, compare, searches, table
    from ..engine.exported_searcher import load_ctranslate2
    from ..engine.runs.checkpoint import checkpoint_step
    from ..engine.translator import Translator

    console = chosen.console
    try:
        export = load_ctranslate2(model, device="cpu")
    except (RuntimeError, ValueError) as error:
        console.say(f"not compared with the run: CTranslate2 cannot compute with it on this machine ({error})")
        return
    translator = Translator.load(chosen.run.path, checkpoint=str(checkpoint_step(checkpoint)), device="cpu")
    total = len(chosen.pairs) * len(searches(translator.decoding.beam_size, translator.decoding.length_penalty))
    with closing(console.progress("comparing with the run", total, "translation")) as bar:
        agreements = compare(translator, export, chosen.pairs, on_done=bar.update)
    console.say("\n".join(table(agreements)))
    # Under a limit on repetitions the two rank beams differently; see parity.
    judged = agreements[:1] if translator.decoding.no_repeat_ngram_size else agreements[:2]
    if exact and min(one.share for one in judged) < ENOUGH:
        console.warn(f"fewer than {100 * ENOUGH:g} % of the translations are those of the run; please report this")


def _to_html(chosen: _Export, quantization: "Weights | None") -> None:
    with importing():
        from ..engine.export.html.page import page
        from ..engine.export.html.quality import choose_weights
        from ..engine.runs.checkpoint import read_description
        from ..engine.runs.load import load_run

    described = [read_description(one) for one in chosen.run.checkpoints()[-1:]]  # none is refused by what loads it
    purpose = described[0].purpose if described else None
    loaded = load_run(chosen.run.path, purpose, checkpoint=chosen.checkpoint, device="cpu", warn=chosen.console.warn)
    with OutputFile(chosen.output) as stream:  # before anything takes long
        weights = quantization
        if weights is None:
            choice = choose_weights(loaded, chosen.pairs)
            chosen.console.say(choice.reason)
            weights = choice.weights
        content = page(loaded, weights, title=chosen.run.path.resolve().name)
        stream.write(content)
    size = len(content.encode()) / 1e6
    chosen.console.say(f"exported {loaded.checkpoint} ({weights}, {size:,.1f} MB); open {chosen.output} in a browser")
    if chosen.pairs:
        _compare_page(chosen, loaded, weights)


def _compare_page(chosen: _Export, loaded: "TrainedRun", weights: "Weights") -> None:
    """Does the same work with the run and with its page, and says how far they agree."""
    from ..engine.browser.node import find_node, running
    from ..engine.browser.pack import pack
    from ..engine.export.html.compare import ENOUGH, Comparison, table
    from ..engine.export.html.quality import machine_of

    console = chosen.console
    node = find_node()
    if node is None:
        console.say("not compared with the run: that needs node, a JavaScript engine, which is not here")
        return
    with ExitStack() as engines:
        bar = engines.enter_context(
            closing(console.progress("comparing with the run", Comparison.size(chosen.pairs), "text"))
        )
        exact = engines.enter_context(running(pack(loaded, "float32"), node))
        page = engines.enter_context(running(pack(loaded, weights), node))
        agreements = Comparison(machine_of(loaded), exact, page, chosen.pairs, bar.update).agreements()
    console.say("\n".join(table(agreements, weights)))
    if min(one.share for one in agreements) < ENOUGH:
        console.warn(f"fewer than {100 * ENOUGH:g} % of the outputs are those of the run; please report this")
