"""Training, translating and evaluating as functions, with the defaults, messages and refusals of the three commands."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.cleaning import check_texts
from ..data.glossary import Glossary
from ..system.errors import UsageError
from ..system.reporter import Console
from .evaluation.reading import read_test_set
from .runs.directory import RunDirectory
from .runs.find import find_run

if TYPE_CHECKING:
    from ..system.reporter import Reporter
    from .evaluation.test_set import TestResult
    from .training.train import TrainingResult
    from .translator import Translation

Named = str | Path
Files = Named | Sequence[Named]
"""One file or several."""


def train(
    *,
    src: Files = (),
    tgt: Files = (),
    data: Files = (),
    dev_src: Files = (),
    dev_tgt: Files = (),
    dev: Files = (),
    text: Files = (),
    dev_text: Files = (),
    config: str | None = None,
    run: Named | None = None,
    tokenizer: Named | None = None,
    init_from: Named | None = None,
    replay: Files = (),
    max_steps: int | None = None,
    max_time: str | None = None,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    reporter: "Reporter | None" = None,
) -> "TrainingResult":
    """Trains a model, or goes on with a run that was stopped; as `tfm train`.

    >>> result = train(src="train.en", tgt="train.de", run="runs/new", max_steps=2, reporter=Quiet())
    >>> result.step
    2

    Args:
        config: A preset's name, or a YAML file; else a preset for the data.
        run: The run directory; else one in `runs/`, named after the preset or the data.
        tokenizer: A directory made by `tfm tokenize`.
        init_from: A run to start from.
        replay: Old data, or runs whose data, to mix in.
        max_time: Such as `20m`.
        settings: Any others by their names, such as `{"training.learning_rate": 0.001}`.
        reporter: Hears what happens; the terminal if not given.

    Raises:
        TfmError: As its subclasses in `tfm.system.errors` say.
    """
    started = time.monotonic()
    from ..system.interrupts import Interrupts
    from .choose import directory_of_start, training_settings
    from .training.train import train as train_run

    given_tokenizer, source = _path(tokenizer), _path(init_from)
    files = {"src": src, "tgt": tgt, "data": data, "dev_src": dev_src, "dev_tgt": dev_tgt, "dev": dev}
    files |= {"text": text, "dev_text": dev_text, "replay": replay}
    reporter = Console() if reporter is None else reporter
    configuration = training_settings(
        config=config,
        run=_path(run),
        init_from=source,
        data={key: _names(value) for key, value in files.items()},
        training={"max_steps": max_steps, "max_time": max_time, "seed": seed},
        assignments=[f"{key}={json.dumps(value)}" for key, value in (settings or {}).items()],
        tokenizer=given_tokenizer,
        say=reporter.say,
    )
    directory = directory_of_start(
        configuration, config=config, run=_path(run), tokenizer=given_tokenizer, init_from=source
    )
    with Interrupts() as interrupts:
        result = train_run(
            configuration,
            run=directory.path,
            reporter=reporter,
            interrupts=interrupts,
            tokenizer=given_tokenizer,
            init_from=source,
            started=started,
        )
    if result is None:
        raise UsageError("under torchrun, train with the command: only its first process has a result")
    return result


def translate(
    texts: Sequence[str],
    *,
    run: Named | None = None,
    checkpoint: str = "best",
    beam_size: int | None = None,
    length_penalty: float | None = None,
    n_best: int = 1,
    glossary: Named | None = None,
    prefix: str = "",
    device: str = "auto",
) -> "list[Translation]":
    """Translates texts, one translation for each; as `tfm translate`.

    It loads the model at each call: whoever translates again and again keeps a `Translator`.

    >>> for translation in translate(["the cat sees the house.", "a dog likes two apples."], run="runs/mine"):
    ...     print(translation.text)
    die Katze sieht das Haus.
    ein Hund mag zwei Äpfel.

    Args:
        run: The run directory; may be left out if `runs/` holds exactly one.
        checkpoint: `best`, `last` or a step.
        beam_size, length_penalty: The run's if not given.
        n_best: Alternatives for each text.
        glossary: A file of terms and their translations.
        prefix: What every translation begins with.

    Raises:
        TypeError: One text came instead of several, or one of them is no string.
        TfmError: As its subclasses in `tfm.system.errors` say.
    """
    from .translator import Translator

    check_texts(texts)
    console = Console()
    terms = None if glossary is None else Glossary.load(Path(glossary))
    translator = Translator.load(find_run(_path(run), console), checkpoint=checkpoint, device=device, warn=console.warn)
    search = translator.search(beam_size, length_penalty, n_best)
    return translator.translate(texts, search=search, prefixes=prefix, glossary=terms)


def evaluate(
    *,
    src: Files = (),
    tgt: Files = (),
    data: Files = (),
    run: Named | None = None,
    checkpoint: str = "best",
    metrics: Sequence[str] = ("bleu", "chrf"),
    beam_size: int | None = None,
    length_penalty: float | None = None,
    glossary: Named | None = None,
    calibrate: bool = False,
    opposite: Named | None = None,
    device: str = "auto",
) -> "TestResult":
    """Translates a test set, as `translate` does, and scores it; as `tfm evaluate`.

    >>> result = evaluate(src="train.en", tgt="train.de", run="runs/mine", metrics=["bleu", "exact"])
    >>> [(score.name, round(score.value)) for score in result.scores]
    [('bleu', 100), ('exact', 100)]

    Args:
        src, tgt, data: The test set; several `tgt` of one `src` are several references of each line.
        run: The run directory; may be left out if `runs/` holds exactly one.
        metrics: Of bleu, chrf, ter, exact and wer.
        glossary: A file of terms and their translations.
        calibrate: Keep with the run how good these translations are, so that others are `projected`; without a test
            set, its validation set is taken.
        opposite: A run of the opposite direction, for `both_ways`.

    Raises:
        TfmError: As its subclasses in `tfm.system.errors` say.
    """
    from .evaluation.scores import check_metrics
    from .evaluation.test_set import evaluate_set, load_opposite
    from .translator import Translator

    check_metrics(metrics)
    console = Console()
    terms = None if glossary is None else Glossary.load(Path(glossary))
    directory = find_run(_path(run), console)
    sources, targets = ([Path(name) for name in _names(side)] for side in (src, tgt))
    test_set = read_test_set(sources, targets, _names(data), directory, {}, console, or_dev=calibrate)
    translator = Translator.load(directory, checkpoint=checkpoint, device=device, warn=console.warn)
    return evaluate_set(
        translator,
        test_set.sources,
        test_set.references,
        metrics=metrics,
        search=translator.search(beam_size, length_penalty),
        glossary=terms,
        calibration=RunDirectory(directory).calibration if calibrate else None,
        back=None if opposite is None else load_opposite(directory, Path(opposite), device, console.warn),
        lines=test_set.lines,
    )


def _names(files: Files) -> list[str]:
    several = [files] if isinstance(files, str | Path) else files
    names = [str(one) if isinstance(one, Path) else one for one in several]
    check_texts(names, "files")
    return names


def _path(name: Named | None) -> Path | None:
    return None if name is None else Path(name)
