"""Options of the commands that read text and models, and what their values mean."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..data.config import DataConfig
from ..engine.file_guard import (
    READS_CONFIG,
    READS_FILE,
    READS_FILE_OR_FOLDER,
    READS_RUN,
    READS_RUN_OR_ONLY_ONE,
    READS_SPEC,
    READS_SPEC_OR_RUN,
    READS_TOKENIZER,
    WRITES_AS_READ,
    WRITES_FILE,
    WRITES_RUN,
    Given,
    Place,
    Writes,
)
from ..system.errors import UsageError

if TYPE_CHECKING:
    from ..data.glossary import Glossary
    from ..seq2seq.decoding.sampling import Sample


def offered(what: str) -> Callable[[str], list[str]]:
    """What a shell is offered for an option: a function of `completion`, which is imported when a shell asks."""

    def complete(incomplete: str) -> list[str]:
        from . import completion

        return getattr(completion, what)(incomplete)

    return complete


def or_stream(path: Path | None) -> Path | None:
    """`-` is standard input or output, which are meant where no file is named."""
    return None if path == Path("-") else path


def _attention_places(path: Path, given: Given) -> Iterable[Place]:
    from .attention import attention_places

    return attention_places(path, given)


WRITES_ATTENTION = Writes(_attention_places)

# --- of several commands ---

Run = Annotated[
    Path | None,
    typer.Option(
        "--run",
        metavar="RUN",
        help="The run directory, or its name in runs/; may be left out if there is just one.",
        autocompletion=offered("run_names"),
    ),
    READS_RUN_OR_ONLY_ONE,
]
Checkpoint = Annotated[str, typer.Option("--checkpoint", metavar="NAME", help="best, last, or a step.")]
Device = Annotated[str, typer.Option("--device", metavar="NAME", help="auto, cpu, cuda or mps.")]
Src = Annotated[
    list[Path] | None,
    typer.Option("--src", metavar="FILE", help="Source text, one sentence per line; may be repeated."),
    READS_FILE,
]
Tgt = Annotated[
    list[Path] | None,
    typer.Option("--tgt", metavar="FILE", help="Target text, line by line the translations of --src."),
    READS_FILE,
]
Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        metavar="SPEC",
        help="Pairs in one file (.tsv .csv .jsonl .json .xlsx .ods .parquet .arrow .tmx .xlf .xliff .sdlxliff "
        ".mqxliff .mxliff .txlf .po .mo), a folder of such files, a folder written by save_to_disk, "
        "hf:NAME[/SUBSET][:SPLIT], or toy; may be repeated. FILE=3 takes each pair three times.",
    ),
    READS_SPEC,
]
Specs = Annotated[
    list[str] | None, typer.Argument(metavar="SPEC", help="Pairs, as in --data.", show_default=False), READS_SPEC
]
SrcColumn = Annotated[
    str | None,
    typer.Option(
        "--src-column",
        metavar="NAME",
        help="Column of the source in --data, or its number. [default: src]",
    ),
]
TgtColumn = Annotated[
    str | None,
    typer.Option(
        "--tgt-column",
        metavar="NAME",
        help="Column of the target in --data, or its number. [default: tgt]",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Encoding of text that is not UTF-8, such as cp1251; a byte-order mark counts more.",
    ),
]
SrcLanguage = Annotated[
    str | None,
    typer.Option(
        "--src-language",
        metavar="CODE",
        help="Language of the sources, such as en, where a file has several (.tmx .xlf).",
    ),
]
TgtLanguage = Annotated[
    str | None,
    typer.Option("--tgt-language", metavar="CODE", help="Language of the targets, such as pt-BR."),
]
BeamSize = Annotated[
    int | None,
    typer.Option(
        "--beam-size", metavar="N", min=1, max=1000, help="Hypotheses kept; 1 is greedy. [default: the run's]"
    ),
]
LengthPenalty = Annotated[
    float | None,
    typer.Option(
        "--length-penalty",
        metavar="A",
        min=0,
        max=10,
        help="Alpha of the GNMT length penalty. [default: the run's, usually 0.6]",
    ),
]
NoRepeatNgramSize = Annotated[
    int | None,
    typer.Option(
        "--no-repeat-ngram-size",
        metavar="N",
        min=0,
        help="N pieces in a row come at most once in a translation; 0: no such limit. [default: the run's]",
    ),
]
GlossaryFile = Annotated[
    Path | None,
    typer.Option(
        "--glossary",
        metavar="FILE",
        help="Lines of term<TAB>translation, or a .csv: where the source has a term, the output gets its translation.",
    ),
    READS_FILE,
]
Repair = Annotated[
    Literal["on", "off"] | None,
    typer.Option(
        "--repair",
        help="Search once more for outputs that lose placeholders or repeat themselves. [default: on; for repetitions "
        "off where the training targets repeat themselves, see tfm info]",
    ),
]
Temperature = Annotated[float | None, typer.Option(metavar="T", help="Below 1 safer, above 1 wilder.")]
TopK = Annotated[int | None, typer.Option(metavar="K", help="Only the k likeliest pieces.")]
TopP = Annotated[float | None, typer.Option(metavar="P", help="Only the likeliest pieces that sum to p.")]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Same seed, same sample. [default: 0]")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Sentences = Annotated[
    list[str] | None, typer.Argument(metavar="TEXT", help="Sentences; without any, lines come from --input or stdin.")
]
Translations = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="File for the translations."), WRITES_FILE
]

# --- of tfm translate ---

LinesOrDocuments = Annotated[
    Path | None,
    typer.Option(
        "--input",
        "-i",
        metavar="FILE|DIR",
        callback=or_stream,
        help="Text file, one sentence per line; or a document (.po .pot .xlf .xliff .sdlxliff .mqxliff .mxliff "
        ".txlf .tmx .srt .vtt .tsv .csv .jsonl), in which what is empty is filled in; or a folder of documents of one "
        "kind.",
    ),
    READS_FILE_OR_FOLDER,
]
TranslationsOrFolder = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE|DIR",
        callback=or_stream,
        help="File for the translations; a folder for a folder.",
    ),
    WRITES_AS_READ,
]
NBest = Annotated[int, typer.Option(metavar="N", min=1, help="Alternatives per line (with --json).")]
Sampling = Annotated[bool, typer.Option("--sample", help="Sample instead of searching for the best.")]
Prefix = Annotated[str, typer.Option(metavar="TEXT", help="What every translation begins with.")]
Review = Annotated[
    bool,
    typer.Option(
        "--review",
        help="In PO, XLIFF and TMX, note how good each translation probably is, and say which to read first. The run is"
        " calibrated before: tfm evaluate --calibrate.",
    ),
]
Attention = Annotated[
    Path | None,
    typer.Option(
        "--attention",
        metavar="FILE.jsonl",
        help="Write what the model looked at: JSON Lines, and a folder FILE with a heat map for each line.",
    ),
    WRITES_ATTENTION,
]

# --- of tfm train ---

Config = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="A preset's name, or a YAML file.", autocompletion=offered("presets")),
    READS_CONFIG,
]
DevSrc = Annotated[
    list[Path] | None, typer.Option(metavar="FILE", help="Source side of the validation set."), READS_FILE
]
DevTgt = Annotated[
    list[Path] | None, typer.Option(metavar="FILE", help="Target side of the validation set."), READS_FILE
]
Dev = Annotated[
    list[str] | None, typer.Option(metavar="SPEC", help="The validation set, in the notation of --data."), READS_SPEC
]
Text = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Text for a language model, one text per line; may be repeated."),
    READS_FILE,
]
DevText = Annotated[
    list[Path] | None, typer.Option(metavar="FILE", help="Validation text of a language model."), READS_FILE
]
Vocabulary = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="A directory made by tfm tokenize; without it, a vocabulary is built."),
    READS_TOKENIZER,
]
RunToTrain = Annotated[
    Path | None,
    typer.Option(  # typer 0.27 takes a metavar for the name if they differ by case alone
        "--run",
        metavar="RUN",
        help="The run directory. [default: runs/ and the name of the preset or the data]",
        autocompletion=offered("run_names"),
    ),
    WRITES_RUN,
]
InitFrom = Annotated[
    Path | None,
    typer.Option(
        metavar="RUN",
        help="Start from the best weights of this run (fine-tuning).",
        autocompletion=offered("run_names"),
    ),
    READS_RUN,
]
Replay = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SPEC|RUN",
        help="With --init-from: mix in old data, as in --data or those of a run, so that less is forgotten.",
    ),
    READS_SPEC_OR_RUN,
]
MaxSteps = Annotated[int | None, typer.Option(metavar="N", min=1, help="Updates in all, at most.")]
MaxTime = Annotated[str | None, typer.Option(metavar="TIME", help="Time in all, at most, such as 20m or 8h.")]
Until = Annotated[str | None, typer.Option(metavar="HH:MM", help="Time of day by which to end, such as 07:00.")]
FinishIn = Annotated[
    str | None,
    typer.Option(
        metavar="TIME|N",
        help="End a run in this time, such as 10m, or after N updates, while it is being trained in another window,"
        " too; its learning rate falls to zero until then.",
    ),
]
TrainingSeed = Annotated[int | None, typer.Option(metavar="N", min=0, help="Seed of weights, batch order, dropout.")]
TrainingDevice = Annotated[str | None, typer.Option(metavar="NAME", help="auto, cpu, cuda or mps.")]
Precision = Annotated[str | None, typer.Option(metavar="NAME", help="auto, fp32 or bf16.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Make a few updates, say what all of them would take, and stop.")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="K=V",
        help="Any other setting: section.key=value; may be repeated.",
        autocompletion=offered("settings"),
    ),
]

# --- what their values mean ---


def load_glossary(path: Path | None, encoding: str) -> "Glossary | None":
    """The terms of `--glossary`."""
    if path is None:
        return None
    from ..data.glossary import Glossary

    return Glossary.load(path, encoding)


def to_repair(given: Literal["on", "off"] | None) -> bool | None:
    """What `--repair` says; None where the run decides."""
    return None if given is None else given == "on"


def named_files(**given: list[Path] | None) -> dict[str, Any]:
    """The files that were named, as texts, by the name of their setting."""
    return {key: [str(path) for path in paths] for key, paths in given.items() if paths}


_SIDES = ("src_column", "tgt_column", "src_language", "tgt_language", "encoding")


def named_sides(*given: str | None) -> dict[str, str]:
    """What was given for `_SIDES`, in this order, by the name of its setting.

    Raises:
        UsageError: A language is none, or an encoding.
    """
    named = {key: name for key, name in zip(_SIDES, given, strict=True) if name is not None}
    data_settings(named)
    return named


def data_settings(sides: dict[str, str]) -> DataConfig:
    """How a file is to be read.

    Raises:
        UsageError: A language is none, or an encoding.
    """
    try:
        return replace(DataConfig(), **sides)
    except ValueError as error:
        raise UsageError(str(error)) from error


def checked_encoding(name: str | None) -> str:
    """What `--encoding` says.

    Raises:
        UsageError: There is none of this name.
    """
    return data_settings({} if name is None else {"encoding": name}).encoding


def make_sample(drawing: Mapping[str, float | None], samples: int = 1) -> "Sample":
    """What the flags that say how to sample ask for; None stands for one that is not given."""
    from ..seq2seq.decoding.sampling import Sample

    given: dict[str, Any] = {name: value for name, value in drawing.items() if value is not None}
    try:
        return replace(Sample(samples=samples), **given)
    except ValueError as error:
        raise UsageError(str(error)) from error
