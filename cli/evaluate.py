"""`tfm evaluate`: translates a test set and scores it."""

import json
from contextlib import nullcontext
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import (
    BeamSize,
    Checkpoint,
    Data,
    Debug,
    Device,
    GlossaryFile,
    Json,
    LengthPenalty,
    NoRepeatNgramSize,
    Run,
    Src,
    SrcColumn,
    TgtColumn,
    named_columns,
)

if TYPE_CHECKING:
    from ..data.corpus import Corpus
    from .console import Console


def evaluate(
    run: Run = None,
    src: Src = None,
    tgt: Annotated[
        list[Path] | None,
        typer.Option(
            "--tgt", metavar="FILE", help="References, line by line; in a .tsv, several per line, separated by tabs."
        ),
    ] = None,
    data: Data = None,
    src_column: SrcColumn = None,
    tgt_column: TgtColumn = None,
    hyp: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Outputs to score instead of those of a run; a second file is compared with the first."
        ),
    ] = None,
    checkpoint: Checkpoint = "best",
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    no_repeat_ngram_size: NoRepeatNgramSize = None,
    glossary: GlossaryFile = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="bleu, chrf, ter, exact or wer; may be repeated. [default: bleu and chrf]"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File for the translations.")
    ] = None,
    examples: Annotated[int, typer.Option(metavar="N", min=0, help="Show so many sentences, evenly spaced.")] = 0,
    device: Device = "auto",
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Score a run on a test set, or outputs that you have.

    tfm evaluate --run runs/mine --src test.en --tgt test.de --metric bleu --metric chrf

    tfm evaluate --hyp one.de --hyp other.de --tgt test.de
    """
    del debug
    from ..data.errors import UsageError
    from ..data.files import OutputFile
    from ..data.glossary import Glossary
    from ..seq2seq.evaluation.scores import METRICS
    from .console import Console
    from .libraries import importing
    from .outputs import score_outputs
    from .runs import find_run

    metrics = metric or ["bleu", "chrf"]
    for name in metrics:
        if name not in METRICS:
            raise UsageError(f"metric must be one of {', '.join(METRICS)}, but is {name!r}")
    console = Console()
    named = named_columns(src_column, tgt_column)
    if hyp:
        making = {
            "--run": run,
            "--beam-size": beam_size,
            "--length-penalty": length_penalty,
            "--glossary": glossary,
            "--output": output,
        }
        given = [flag for flag, value in making.items() if value is not None]
        if given:
            raise UsageError(f"--hyp scores outputs that are there already; it cannot be combined with {given[0]}")
        if not tgt and not data:
            raise UsageError("give the references: --tgt, or --data")
        corpus = _test_set(src or tgt or [], tgt or [], data or [], None, named)  # the sources do not matter
        _, references, kept = _sides(corpus, tgt or [], console)
        score_outputs(hyp, references, metrics, kept=kept, as_json=json_)
        return
    terms = Glossary.load(glossary) if glossary else None
    directory = find_run(run, console)
    corpus = _test_set(src or [], tgt or [], data or [], directory, named)
    sources, references, _ = _sides(corpus, tgt or [], console)
    with nullcontext() if output is None else OutputFile(output) as stream:
        with importing():
            from ..seq2seq.device import keep_freed_memory
            from ..seq2seq.evaluation.test_set import evaluate_set

        keep_freed_memory()
        bar = console.progress("translating", len(sources), "sentence")
        result = evaluate_set(
            directory,
            sources,
            references,
            metrics=metrics,
            checkpoint=checkpoint,
            beam_size=beam_size,
            length_penalty=length_penalty,
            no_repeat_ngram_size=no_repeat_ngram_size,
            glossary=terms,
            device=device,
            warn=console.warn,
            on_done=bar.update,
        )
        bar.close()
        if stream is not None:
            stream.writelines(line + "\n" for line in result.outputs)
    for i in range(0, len(sources), max(len(sources) // examples, 1)) if examples else ():
        console.say(f"source     {sources[i]}\noutput     {result.outputs[i]}\nreference  {references[i][0]}\n")
    if json_:
        print(json.dumps(_as_dict(result), ensure_ascii=False))
    else:
        _print_result(result)


def _print_result(result: Any) -> None:
    """For a person."""
    sentences = len(result.outputs)
    once = f", {result.no_repeat_ngram_size} pieces in a row at most once" if result.no_repeat_ngram_size else ""
    print(
        f"{result.checkpoint}, {sentences:,} sentences, beam {result.beam_size},"
        f" length penalty {result.length_penalty}{once}"
    )
    if result.loss_sentences:
        some = (
            "" if result.loss_sentences == sentences else f", of the {result.loss_sentences:,} that fit the model whole"
        )
        print(f"loss   {result.loss:.4f}  (perplexity {result.ppl:.3f}{some})")
    for one in result.scores:
        print(f"{one.name:<6} {one.value:.2f}  ({one.signature})")
    for name, kept in (("placeholders", result.placeholders), ("terms of the glossary", result.terms)):
        if kept.total:
            print(f"{name}: {kept.count:,} of {kept.total:,} kept ({kept.share:.2f} %)")


def _as_dict(result: Any) -> dict[str, Any]:
    return {
        "checkpoint": str(result.checkpoint),
        "sentences": len(result.outputs),
        "beam_size": result.beam_size,
        "length_penalty": result.length_penalty,
        "no_repeat_ngram_size": result.no_repeat_ngram_size,
        "loss": result.loss if result.loss_sentences else None,
        "ppl": result.ppl if result.loss_sentences else None,
        "loss_sentences": result.loss_sentences,
        "scores": {one.name: one.value for one in result.scores},
        "signatures": {one.name: one.signature for one in result.scores},
        "placeholders": {"kept": result.placeholders.count, "of": result.placeholders.total},
        "terms": {"kept": result.terms.count, "of": result.terms.total},
    }


def _test_set(src: list[Path], tgt: list[Path], data: list[str], run: Path | None, columns: dict[str, str]) -> "Corpus":
    """The pairs to translate and to compare with. What is not in `columns` is called as in the run's training data."""
    from dataclasses import replace

    from ..data.config import DataConfig
    from ..data.corpus import join_corpora, open_corpus, open_spec
    from ..data.errors import UsageError
    from ..seq2seq.runs.directory import RunDirectory

    directory = None if run is None else RunDirectory(run)
    config = directory.configuration().data if directory is not None and directory.has_begun else DataConfig()
    config = replace(config, src=[str(one) for one in src], tgt=[str(one) for one in tgt], data=[], text=[], **columns)
    if data and not (src or tgt):
        return join_corpora([open_spec(spec, config, "test") for spec in data])
    if src and tgt and not data:
        return open_corpus(config)
    raise UsageError("give a test set: --src and --tgt, or --data")


def _sides(corpus: "Corpus", tgt: list[Path], console: "Console") -> tuple[list[str], list[list[str]], list[bool]]:
    """Sources, for each its references, and for each entry of the test set whether it is among them.

    Of files of pairs, entries without a text on both sides are left out: there is nothing to compare with.
    """
    from ..data.errors import DataError

    for remark in corpus.remarks:
        console.say(remark)
    separator = "\t" if tgt and all(".tsv" in one.suffixes for one in tgt) else None
    pairs = list(corpus.pairs())
    kept = [bool(tgt or (s.strip() and t.strip())) for s, t in pairs]
    missing = len(pairs) - sum(kept)
    if missing == len(pairs):
        raise DataError(f"{corpus.name}: no pair with a text on both sides")
    if missing:
        console.say(f"{missing:,} of {len(pairs):,} entries left out: no text on one side")
    wanted = list(compress(pairs, kept))
    return [s for s, _ in wanted], [t.split(separator) if separator else [t] for _, t in wanted], kept
