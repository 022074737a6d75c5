"""`tfm export`: a run as a directory for other programs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..engine.exportable import QUANTIZATIONS
from ..engine.file_guard import READS_DATA_OF_RUN, WRITES_FOLDER
from ..system.errors import UsageError
from ..system.reporter import Console
from .options import Checkpoint, Debug, Run
from .startup import importing

if TYPE_CHECKING:
    from ..data.corpus import Pair
    from ..engine.runs.directory import RunDirectory


def export(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="The directory to make."), WRITES_FOLDER
    ],
    run: Annotated[Run, READS_DATA_OF_RUN] = None,
    format_: Annotated[str, typer.Option("--format", metavar="NAME", help="ctranslate2.")] = "ctranslate2",
    quantization: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How weights are stored: float32, float16, bfloat16, int16, int8, int8_float32, int8_float16"
            " or int8_bfloat16.",
        ),
    ] = "float32",
    checkpoint: Checkpoint = "best",
    check: Annotated[
        int, typer.Option(metavar="N", min=0, help="Compare on at most so many validation sentences; 0 skips that.")
    ] = 500,
    debug: Debug = False,
) -> None:
    """Write a run for CTranslate2, which translates with it faster and without tfm.

    tfm export --run runs/mine --output mine.ct2 --quantization int8
    """
    del debug
    from ..engine.evaluation.reading import dev_pairs
    from ..engine.runs.directory import RunDirectory
    from ..engine.runs.find import find_run

    if format_ != "ctranslate2":
        raise UsageError(f"format must be ctranslate2, but is {format_!r}")
    if quantization not in QUANTIZATIONS:
        raise UsageError(f"quantization must be one of {', '.join(QUANTIZATIONS)}, but is {quantization!r}")
    console = Console()
    directory = RunDirectory(find_run(run, console))

    console.say(f"exporting {directory}")
    with importing():
        from ..engine.export.directory import export_checkpoint

    stored = directory.find_model(checkpoint, warn=console.warn)
    export_checkpoint(directory, stored, output, quantization=quantization)
    source = stored.checkpoint
    del stored  # its file of weights
    size = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
    console.say(f"exported {source} ({quantization}, {size / 1e6:,.1f} MB); {output}/README.md shows how to use it")
    if check and (pairs := dev_pairs(directory, check, console.say, "not compared with the run")):
        _compare(directory, source, output, pairs, quantization == "float32", console)
    print(output)


def _compare(
    run: "RunDirectory", checkpoint: Path, output: Path, pairs: "list[Pair]", exact: bool, console: Console
) -> None:
    """Translates with the run and with its export, and says how far they agree."""
    from ..engine.export.parity import ENOUGH, compare, load_export, searches, table
    from ..engine.runs.checkpoint import checkpoint_step
    from ..engine.translator import Translator

    try:
        export = load_export(output)
    except (RuntimeError, ValueError) as error:
        console.say(f"not compared with the run: CTranslate2 cannot compute with it on this machine ({error})")
        return
    translator = Translator.load(run.path, checkpoint=str(checkpoint_step(checkpoint)), device="cpu")
    total = len(pairs) * len(searches(translator.decoding.beam_size, translator.decoding.length_penalty))
    bar = console.progress("comparing with the run", total, "translation")
    agreements = compare(translator, export, pairs, on_done=bar.update)
    bar.close()
    console.say("\n".join(table(agreements)))
    # Under a limit on repetitions the two rank beams differently; see parity.
    judged = agreements[:1] if translator.decoding.no_repeat_ngram_size else agreements[:2]
    if exact and min(one.share for one in judged) < ENOUGH:
        console.warn(f"fewer than {100 * ENOUGH:g} % of the translations are those of the run; please report this")
