"""What `tfm evaluate` tells: the scores of a run, of files or of given translations, and the sentences to look at."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass
from itertools import compress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..data.formats.refused import refuse_known_format
from ..data.reading import read_lines
from ..engine.evaluation.faithfulness import faithfulness
from ..engine.evaluation.reading import TestSet
from ..engine.evaluation.scores import compare, score, sentence_chrf
from ..engine.runs.directory import RunDirectory
from ..system.errors import DataError
from ..system.files import OutputFile, json_line
from ..system.reporter import Console, counted
from .startup import importing

if TYPE_CHECKING:
    from ..engine.evaluation.test_set import TestResult

Evaluate = Callable[..., "TestResult"]
"""`evaluate_set` that still needs the run, the test set and `on_done`."""


@dataclass(frozen=True)
class Asked:
    """What was asked for, whatever is scored. `worst` is how many sentences are shown; `report` gets all of them."""

    test_set: TestSet
    metrics: Sequence[str]
    with_sources: bool
    worst: int
    report: Path | None
    as_json: bool
    console: Console

    def tell_sentences(
        self,
        order: Sequence[int],
        unranked: Sequence[int] = (),
        *,
        headline: Callable[[int], str],
        texts: Callable[[int], Sequence[tuple[str, str]]],
        record: Callable[[int], dict[str, Any]],
    ) -> None:
        """Shows the worst sentences, and writes all of them to the report.

        Args:
            order: Their rows in the test set, the worst first; `unranked` are further rows, for the report alone.
            headline, texts, record: What there is to say of a row beside its line and its source.
        """
        lines, sources = self.test_set.lines, self.test_set.sources
        for row in order[: self.worst]:
            source = [("source", sources[row])] if self.with_sources else []
            self.show(f"line {lines[row]:,}, {headline(row)}", [*source, *texts(row)])
        if self.report is not None:
            with OutputFile(self.report) as stream:
                for row in (*order, *unranked):
                    place = {"line": lines[row]} | ({"source": sources[row]} if self.with_sources else {})
                    stream.write(json_line(place | record(row)) + "\n")

    def show(self, headline: str, texts: Sequence[tuple[str, str]]) -> None:
        """One sentence for a person: a headline, then each text after its name, and an empty line."""
        width = max(len("reference"), *(len(name) for name, _ in texts))
        lines = [f"{name:<{width}}  {text}" for name, text in texts]
        self.console.say("\n".join([headline, *lines] if headline else lines) + "\n")


def score_run(asked: Asked, run: Path, evaluated: Evaluate, *, output: Path | None, examples: int) -> None:
    """Translates the test set, tells the scores, and shows `examples` sentences, evenly spaced.

    The file of translations has a line for each entry, blank where the entry was left out.
    """
    test_set = asked.test_set
    with nullcontext() if output is None else OutputFile(output) as stream:
        result = _with_progress(asked, run, evaluated)
        if stream is not None:
            lines = iter(result.outputs)
            stream.writelines((next(lines) if kept else "") + "\n" for kept in test_set.kept)

    def texts(row: int) -> list[tuple[str, str]]:
        return [("output", result.outputs[row]), ("reference", test_set.references[row][0])]

    def record(row: int) -> dict[str, Any]:
        forced = result.forced[row]
        return {
            "output": result.outputs[row],
            "references": test_set.references[row],
            "chrf": result.chrf[row],
            "confidence": result.confidences[row],
            "projected_chrf": None if (one := result.projections[row]) is None else asdict(one),
            "reference_log_prob": forced and forced.log_prob,
        }

    rows = range(len(test_set.sources))
    for row in rows[:: max(len(rows) // examples, 1)] if examples else ():
        asked.show("", [("source", test_set.sources[row]), *texts(row)])
    asked.tell_sentences(
        sorted(rows, key=lambda row: result.chrf[row]),
        headline=lambda row: f"chrF {result.chrf[row]:.1f}, confidence {result.confidences[row]:.2f}",
        texts=texts,
        record=record,
    )
    if asked.as_json:
        print(json.dumps(_as_dict(result), ensure_ascii=False))
    else:
        _print_result(result)


def compare_runs(asked: Asked, runs: Sequence[Path], evaluated: Evaluate) -> None:
    """Translates the test set with each of several runs, and compares the outputs."""
    for run in map(RunDirectory, runs):
        run.require("translator")
    _compare(asked, "run", runs, [_with_progress(asked, run, evaluated).outputs for run in runs])


def _with_progress(asked: Asked, run: Path, evaluated: Evaluate) -> "TestResult":
    sources = asked.test_set.sources
    asked.console.say(f"translating {len(sources):,} sentences with {run}")
    with closing(asked.console.progress("translating", len(sources), "sentence")) as bar:
        return evaluated(run, sources, asked.test_set.references, lines=asked.test_set.lines, on_done=bar.update)


def _print_result(result: "TestResult") -> None:
    from ..engine.evaluation.loss import in_figures

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
        print(f"loss   {result.loss:.4f}  (perplexity {in_figures(result.ppl, 3)}{some})")
    for one in result.scores:
        print(f"{one.name:<6} {one.value:.2f}  ({one.signature})")
    for group in result.groups if len(result.groups) > 1 else ():
        print(f"  {group}")
    if result.correlation is not None:
        print(f"confidence: its correlation with the chrF of the sentences is {result.correlation:.2f}")
    if (agreement := result.agreement) is not None:
        print(agreement)
    print(result.faithfulness)
    if result.both_ways is not None:
        print(result.both_ways)
    if (terms := result.terms).total:
        print(f"terms of the glossary: {terms.count:,} of {terms.total:,} kept ({terms.share:.2f} %)")
    counts = {
        "repeated themselves at first": result.looped,
        "searched for once more and replaced": result.repaired,
        "written anew for a term of the glossary": result.constrained,
    }
    for what, count in counts.items():
        if count:
            print(f"{count:,} of {sentences:,} outputs {what}")


def _as_dict(result: "TestResult") -> dict[str, Any]:
    names, faithful = ("looped", "repaired", "constrained", "numbers"), asdict(result.faithfulness)
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
        "by_length": [asdict(group) for group in result.groups],
        "confidence_correlation": result.correlation,
        "both_ways": result.both_ways and asdict(result.both_ways),
        "projection": None if (agreement := result.agreement) is None else asdict(agreement),
        "placeholders": {"kept": result.faithfulness.placeholders.count, "of": result.faithfulness.placeholders.total},
        "terms": {"kept": result.terms.count, "of": result.terms.total},
        **{name: getattr(result, name) for name in names},
        "unknown": result.faithfulness.unknown,
        "faithfulness": faithful,
    }


def score_files(asked: Asked, paths: Sequence[Path], encoding: str) -> None:
    """Tells the scores of files of outputs. A file has a line for each reference, or for each entry of the test set."""
    outputs = [_lines(path, asked.test_set.kept, encoding) for path in paths]
    if len(paths) > 1:
        _compare(asked, "hyp", paths, outputs)
        return
    found = [score(name, outputs[0], asked.test_set.references) for name in asked.metrics]
    scores = {one.name: {"values": [one.value], "signature": one.signature} for one in found}
    lines = [f"{one.name:<6} {one.value:.2f}  ({one.signature})" for one in found]
    more: dict[str, Any] = {}
    if asked.with_sources:
        measured = faithfulness(asked.test_set.sources, outputs[0], asked.test_set.references)
        lines.append(str(measured))
        more["faithfulness"] = asdict(measured)
    _tell_outputs(asked, "hyp", paths, outputs, scores, lines, more)


def _lines(path: Path, kept: Sequence[bool], encoding: str) -> list[str]:
    refuse_known_format(path, "--hyp takes outputs line by line")
    lines = [line or "" for line in read_lines(path, encoding=encoding)]
    if len(lines) == len(kept):
        return list(compress(lines, kept))
    if len(lines) != sum(kept):
        raise DataError(f"{path} has {counted(len(lines), 'line')}, but there are {counted(sum(kept), 'reference')}")
    return lines


def _compare(asked: Asked, kind: str, names: Sequence[Path], outputs: list[list[str]]) -> None:
    """Tells the scores of several outputs, and whether the others differ from the first.

    Their names are those of files or runs; `kind` is what they are called in JSON.
    """
    compared = [compare(name, outputs, asked.test_set.references) for name in asked.metrics]
    scores = {
        one.name: {"values": one.values, "margins": one.margins, "p_values": one.p_values, "signature": one.signature}
        for one in compared
    }
    lines: list[str] = []
    for one in compared:
        lines.append(f"{one.name}  ({one.signature})")
        for name, value, margin, p in zip(names, one.values, one.margins, [None, *one.p_values], strict=True):
            lines.append(f"  {value:6.2f} ± {margin:.2f}  {name}{_verdict(names[0], p)}")
    _tell_outputs(asked, kind, names, outputs, scores, lines)


def _tell_outputs(
    asked: Asked,
    kind: str,
    names: Sequence[Path],
    outputs: list[list[str]],
    scores: dict[str, Any],
    lines: Sequence[str],
    more: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Tells the sentences, the worst first or those in which the outputs differ most; then the scores."""
    references = asked.test_set.references
    if asked.worst or asked.report is not None:
        chrf = list(zip(*(sentence_chrf(one, references) for one in outputs), strict=True))
        alone = len(outputs) == 1
        asked.tell_sentences(
            sorted(range(len(chrf)), key=lambda row: chrf[row][0] if alone else min(chrf[row]) - max(chrf[row])),
            headline=lambda row: f"chrF {' and '.join(f'{value:.1f}' for value in chrf[row])}",
            texts=lambda row: [
                *((str(name), one[row]) for name, one in zip(names, outputs, strict=True)),
                ("reference", references[row][0]),
            ],
            record=lambda row: {
                "outputs": [one[row] for one in outputs],
                "references": references[row],
                "chrf": list(chrf[row]),
            },
        )
    if asked.as_json:
        print(json.dumps({kind: list(map(str, names)), "sentences": len(references), "scores": scores, **more}))
    else:
        print("\n".join([counted(len(references), "sentence"), *lines]))


def _verdict(first: Path, p: float | None) -> str:
    differs = "" if p is None else "differs" if p < 0.05 else "no clear difference"
    return f"  {differs} from {first} (p = {p:.3f})" if differs else ""


def score_given(asked: Asked, run: Path, *, checkpoint: str, device: str) -> None:
    """Tells how probable a run finds the first reference of each source: the loss, and the least probable pairs."""
    sources, console = asked.test_set.sources, asked.console
    targets = [references[0] for references in asked.test_set.references]
    console.say(f"scoring {len(sources):,} pairs with {run}")
    with importing():
        from ..engine.device import keep_freed_memory
        from ..engine.evaluation.loss import force, in_figures, set_loss
        from ..engine.translator import Translator

    keep_freed_memory()
    translator = Translator.load(run, checkpoint=checkpoint, device=device, warn=console.warn)
    with closing(console.progress("scoring", len(sources), "pair")) as bar:
        scores = force(translator, sources, targets, on_done=bar.update)
    scored = {row: one for row, one in enumerate(scores) if one is not None}

    def record(row: int) -> dict[str, Any]:
        names = ("log_prob", "tokens", "confidence")
        return {"given": targets[row], **{name: getattr(scores[row], name, None) for name in names}}

    asked.tell_sentences(
        sorted(scored, key=lambda row: scored[row].confidence),
        [row for row, one in enumerate(scores) if one is None],
        headline=lambda row: f"log-probability {scored[row].log_prob:.1f}, confidence {scored[row].confidence:.2f}",
        texts=lambda row: [("given", targets[row])],
        record=record,
    )
    loss = set_loss(scores)
    if asked.as_json:
        figures = {"loss": loss.loss, "ppl": loss.ppl} if scored else {"loss": None, "ppl": None}
        named = {"checkpoint": str(translator.checkpoint), "pairs": len(scores), "scored": len(scored)}
        print(json.dumps(named | figures))
        return
    left_out = len(scores) - len(scored)
    too_long = f"; {left_out:,} longer than the model reads" if left_out else ""
    print(f"{translator.checkpoint}, {len(scores):,} given translations{too_long}")
    if scored:
        print(f"loss   {loss.loss:.4f}  (perplexity {in_figures(loss.ppl, 3)}, {loss.num_tokens:,} pieces)")
