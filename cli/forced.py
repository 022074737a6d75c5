"""`tfm evaluate --forced`: how probable a model finds translations that are given."""

import json
from pathlib import Path

from ..engine.evaluation.reading import TestSet
from ..system.console import Console
from .sentences import show, write_report
from .startup import importing


def score_given(
    run: Path,
    test_set: TestSet,
    *,
    checkpoint: str,
    device: str,
    worst: int,
    report: Path | None,
    console: Console,
    as_json: bool,
) -> None:
    """Prints the loss of the pairs, and shows or writes what the model thinks of each, the least probable first.

    Args:
        run: The run directory.
        test_set: Sources and their translations, of which the first counts.
        checkpoint, device: As the flags have it.
        worst: So many pairs are shown.
        report: File for all of them.
        console: Shows the progress.
        as_json: Print JSON.
    """
    console.say(f"scoring {len(test_set.sources):,} pairs with {run}")
    with importing():
        from ..engine.device import keep_freed_memory
        from ..engine.evaluation.forced import force, set_loss
        from ..engine.evaluation.loss import in_figures
        from ..engine.translator import Translator

    keep_freed_memory()
    translator = Translator.load(run, checkpoint=checkpoint, device=device, warn=console.warn)
    sources, lines = test_set.sources, test_set.lines
    targets = [references[0] for references in test_set.references]
    bar = console.progress("scoring", len(sources), "pair")
    scores = force(translator, sources, targets, on_done=bar.update)
    bar.close()
    scored = [(row, score) for row, score in enumerate(scores) if score is not None]
    scored.sort(key=lambda item: item[1].confidence)
    for row, score in scored[:worst]:
        headline = f"line {lines[row]:,}, log-probability {score.log_prob:.1f}, confidence {score.confidence:.2f}"
        show(console, headline, [("source", sources[row]), ("given", targets[row])])
    numbered = [*scored, *((row, None) for row, score in enumerate(scores) if score is None)]
    write_report(
        report,
        (
            {
                "line": lines[row],
                "source": sources[row],
                "given": targets[row],
                "log_prob": score and score.log_prob,
                "tokens": score and score.tokens,
                "confidence": score and score.confidence,
            }
            for row, score in numbered
        ),
    )
    loss = set_loss(scores)
    if as_json:
        figures = {"loss": loss.loss, "ppl": loss.ppl} if scored else {"loss": None, "ppl": None}
        named = {"checkpoint": str(translator.checkpoint), "pairs": len(scores), "scored": len(scored)}
        print(json.dumps(named | figures))
        return
    left_out = len(scores) - len(scored)
    too_long = f"; {left_out:,} longer than the model reads" if left_out else ""
    print(f"{translator.checkpoint}, {len(scores):,} given translations{too_long}")
    if scored:
        print(f"loss   {loss.loss:.4f}  (perplexity {in_figures(loss.ppl, 3)}, {loss.num_tokens:,} pieces)")
