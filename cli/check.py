"""`tfm check`: self-tests of a run."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from ..system.errors import ModelError
from ..system.reporter import Console, painted
from . import options
from .startup import importing

if TYPE_CHECKING:
    from ..data.corpus import Pair


def check(
    run: options.Run = None,
    checkpoint: options.Checkpoint = "best",
    src: options.Src = None,
    tgt: options.Tgt = None,
    data: options.Data = None,
    src_column: options.SrcColumn = None,
    tgt_column: options.TgtColumn = None,
    src_language: options.SrcLanguage = None,
    tgt_language: options.TgtLanguage = None,
    encoding: options.Encoding = None,
    device: options.Device = "auto",
    json_: options.Json = False,
) -> None:
    """Test whether a model does what a Transformer must.

    tfm check --run runs/mine

    No token sees a later one; padding changes nothing; what is kept from step to step gives what computing all anew
    gives; rows of attention sum to 1; the source is really used. It takes sentences of the validation set, or yours.
    One line is printed for each test; the exit code is 4 if one fails.
    """
    from ..engine.evaluation.reading import dev_pairs, read_test_set
    from ..engine.runs.directory import RunDirectory
    from ..engine.runs.find import find_run

    console = Console()
    directory = RunDirectory(find_run(run, console))
    with importing():
        from ..engine.evaluation.checks import SENTENCES, check_model
        from ..engine.runs.load import load_run

    loaded = load_run(directory.path, None, checkpoint=checkpoint, device=device, warn=console.warn)
    if src or tgt or data:
        named = options.named_sides(src_column, tgt_column, src_language, tgt_language, encoding)
        test_set = read_test_set(src or [], tgt or [], data or [], directory.path, named, console)
        targets = [references[0] for references in test_set.references]
        pairs: list[Pair] = list(zip(test_set.sources, targets, strict=True))
    else:
        pairs = dev_pairs(directory, SENTENCES, console.say, "checked with made-up sentences")
    checks = []
    for one in check_model(loaded.model, loaded.tokenizer, pairs):
        checks.append(one)
        if not json_:
            mark = {True: "ok", False: "FAILED", None: "-"}[one.passed]
            colour = {True: "green", False: "red", None: "yellow"}[one.passed]
            print(f"{painted(f'{mark:<8}', colour)}{one.name:<12}{one.found}", flush=True)
    if json_:
        print(json.dumps({"checkpoint": str(loaded.checkpoint), "checks": [asdict(one) for one in checks]}))
    failed = [one.name for one in checks if one.passed is False]
    if failed:
        raise ModelError(f"{loaded.checkpoint} fails {len(failed)} of {len(checks)} tests: {', '.join(failed)}")
