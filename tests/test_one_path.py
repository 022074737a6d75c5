"""One path for a line: the figures of a validation are those of evaluation, translation, Python and the export.

Each kind of corpus that once took a way of its own is trained on for seconds. What the last validation says of the
validation set must be equal, to the last digit, to what each other door says of the same lines.
"""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from helpers.command import Tfm, records, run_command, write_lines
from helpers.tiny_run import TINY, Recorder

from tfm.configs import merge, parse_config
from tfm.engine import Translator
from tfm.engine.evaluation.test_set import evaluate_set
from tfm.engine.export.parity import compare
from tfm.engine.exported_searcher import load_ctranslate2
from tfm.engine.training.train import train
from tfm.seq2seq.decoding.config import CHUNK_TEXTS
from tfm.system.interrupts import Interrupts

Pair = tuple[str, str]
METRICS = ("bleu", "chrf", "exact")
NOUNS = {"cat": "Katze", "dog": "Hund", "child": "Kind", "woman": "Frau", "boy": "Junge", "man": "Mann"}
VERBS = {"sees": "sieht", "finds": "findet", "likes": "mag", "knows": "kennt"}
TIMES = {"once": 1, "twice": 2, "thrice": 3, "four": 4, "five": 5}


def sentences() -> Iterator[Pair]:
    """A hundred and more pairs of English and German."""
    for noun, name in NOUNS.items():
        for verb, form in VERBS.items():
            yield from ((f"{noun} {verb} {o}", f"{name} {form} {NOUNS[o]}") for o in NOUNS if o != noun)


def repeated() -> list[Pair]:
    """Right output says the same again and again."""
    words = ("jump", "walk", "run", "look", "sing", "turn")
    return [
        (f"{a} {b} {n}", " ".join([f"{a} {b}".upper()] * t)) for a in words for b in words for n, t in TIMES.items()
    ]


def tagged(before: str = "") -> list[Pair]:
    """A tag in the source says what to do: small letters or capitals."""
    pairs = list(sentences())
    return [(f"<low> {before}{s}", before + t.lower()) for s, t in pairs] + [
        (f"<up> {before}{s}", before + t.upper()) for s, t in pairs
    ]


def marked() -> list[Pair]:
    """Documents: placeholders are carried through."""
    marks = ["%s", "{name}", "<b>x</b>", ":func:`open`", "https://example.org/a"]
    return [(f"{s} {marks[i % 5]}.", f"{marks[i % 5]}: {t}.") for i, (s, t) in enumerate(sentences())]


def letterless() -> list[Pair]:
    """Lines without letters, some of them translated."""
    pairs = [(f"{i} {i + 1} {i * 7 % 50}", f"{i * 7 % 50} {i + 1} {i}") for i in range(60)]
    return [*sentences(), *pairs]


@dataclass(frozen=True)
class Language:
    """A corpus, and the settings with which it is learnt."""

    pairs: list[Pair]
    settings: dict[str, Any] = field(default_factory=dict)


LANGUAGES = {
    "repeated": Language(repeated(), {"tokenizer": {"type": "word"}}),
    "repeated, char": Language(repeated(), {"tokenizer": {"type": "char"}, "model": {"max_seq_len": 64}}),
    "tag in the source": Language(tagged()),
    "tag in the source, with symbols": Language(tagged("%s ")),
    "placeholders": Language(marked(), {"tokenizer": {"type": "unigram"}}),
    "letterless": Language(letterless(), {"tokenizer": {"type": "char"}}),
    "char": Language(list(sentences()), {"tokenizer": {"type": "char"}, "model": {"max_seq_len": 64}}),
    "word": Language(list(sentences()), {"tokenizer": {"type": "word"}}),
    "decoder-only": Language(
        list(sentences()), {"model": {"architecture": "decoder_only", "num_encoder_layers": 0, "num_decoder_layers": 2}}
    ),
}
SETTINGS: dict[str, Any] = {
    "model": {"d_model": 32, "d_ff": 64, "dropout": 0.0, "attention_dropout": 0.0, "max_seq_len": 48},
    "training": {
        "max_steps": 60,
        "max_tokens_per_batch": 512,
        "grad_accum_steps": 1,
        "precision": "fp32",
        "subword_dropout": 0.0,
        "ema_decay": 0.0,
        "validate_every": 60,
        "checkpoint_every": 60,
        "validation_sentences": 1000,
    },
}


@pytest.fixture(scope="module", params=list(LANGUAGES))
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trained run, and its validation set in two files."""
    language, folder = LANGUAGES[request.param], tmp_path_factory.mktemp("one_path")
    held_out = language.pairs[::7]
    rest = [pair for pair in language.pairs if pair not in held_out]
    names = {"src": (rest, 0), "tgt": (rest, 1), "dev_src": (held_out, 0), "dev_tgt": (held_out, 1)}
    files = {key: write_lines(folder / key, [pair[side] for pair in part]) for key, (part, side) in names.items()}
    data = {"data": {key: [str(path)] for key, path in files.items()}}
    settings = parse_config(merge(merge(merge(TINY, SETTINGS), language.settings), data))
    train(settings, run=folder / "run", reporter=Recorder(), interrupts=Interrupts())
    return folder


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def validated(folder: Path) -> dict[str, float]:
    """The figures of the last validation."""
    (*_, last) = [one for one in records(folder / "run" / "metrics.jsonl") if "bleu" in one]
    return {name: last[name] for name in ("loss", *METRICS)}


def test_validation_equals_evaluation_and_python(trained: Path) -> None:
    expected = validated(trained)
    sources, references = lines(trained / "dev_src"), [[one] for one in lines(trained / "dev_tgt")]
    translator = Translator.load(trained / "run", checkpoint="last")
    result = evaluate_set(translator, sources, references, metrics=METRICS, search=translator.search(1))
    assert {"loss": result.loss, **{one.name: one.value for one in result.scores}} == expected
    outputs: list[str] = []
    for start in range(0, len(sources), CHUNK_TEXTS):
        found = translator.translate(sources[start : start + CHUNK_TEXTS], beam_size=1)
        outputs += [one.text for one in found]
    assert outputs == result.outputs
    assert [translator.translate([one], beam_size=1)[0].text for one in sources] == outputs, "nor alone"


def test_validation_equals_the_commands(trained: Path, forked: Tfm) -> None:
    expected = validated(trained)
    given, wanted, hyp = trained / "dev_src", trained / "dev_tgt", trained / "hyp"
    of_run = ("--run", trained / "run", "--checkpoint", "last", "--beam-size", "1")
    asked = ("--json", *(part for name in METRICS for part in ("--metric", name)))
    done = forked("evaluate", *of_run, "--src", given, "--tgt", wanted, *asked, cwd=trained)
    told = json.loads(done.stdout)
    assert {"loss": told["loss"], **told["scores"]} == expected
    assert forked("translate", *of_run, "--input", given, "--output", hyp, cwd=trained).returncode == 0
    piped = forked("translate", *of_run, stdin=given.read_bytes(), cwd=trained)
    assert piped.stdout == hyp.read_bytes()
    told = json.loads(forked("evaluate", "--hyp", hyp, "--src", given, "--tgt", wanted, *asked, cwd=trained).stdout)
    assert {name: one["values"][0] for name, one in told["scores"].items()} == {
        name: expected[name] for name in METRICS
    }


def test_a_document_is_translated_as_its_lines_are(trained: Path, forked: Tfm) -> None:
    of_run = ("--run", trained / "run", "--checkpoint", "last", "--beam-size", "1")
    given, table, filled = trained / "dev_src", trained / "table.csv", trained / "filled.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("source", "target"), *((one, "") for one in lines(given))])
    done = forked("translate", *of_run, "--input", table, "--output", filled, cwd=trained)
    assert done.returncode == 0, done.stderr.decode()
    piped = forked("translate", *of_run, stdin=given.read_bytes(), cwd=trained).stdout.decode().splitlines()
    with filled.open(encoding="utf-8", newline="") as file:
        assert [row[1] for row in csv.reader(file)][1:] == piped


def test_the_export_is_compared_with_what_the_user_gets(trained: Path, forked: Tfm) -> None:
    pytest.importorskip("ctranslate2")
    translator = Translator.load(trained / "run", checkpoint="last")
    if translator.model.config.architecture != "encoder_decoder":
        pytest.skip("CTranslate2 takes no such model as a translator")
    done = forked(
        "export", "--run", trained / "run", "--checkpoint", "last", "--output", trained / "export", cwd=trained
    )
    if done.returncode:
        pytest.skip(done.stderr.decode().splitlines()[-1])
    pairs = list(zip(lines(trained / "dev_src"), lines(trained / "dev_tgt"), strict=True))
    greedy = compare(translator, load_ctranslate2(trained / "export", device="cpu"), pairs)[0]
    assert greedy.bleu == validated(trained)["bleu"]


def test_each_language_takes_the_way_that_it_is_there_for(trained: Path, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.params["trained"]
    translator = Translator.load(trained / "run", checkpoint="last")
    carried = {"placeholders": {"printf"}, "tag in the source, with symbols": {"printf"}}.get(name, set())
    assert translator.facts.loops_are_faults == ("repeated" not in name)
    assert translator.facts.keeps_letterless == (name != "letterless")
    assert translator.tokenizer.carried >= carried and bool(translator.tokenizer.carried) == bool(carried)
    assert ("tag" in translator.tokenizer.placeholders.expected) == (not name.startswith("tag"))


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_multi30k(corpora: Path, tmp_path: Path) -> None:
    folder = corpora / "multi30k"
    dev = ("--dev-src", folder / "valid.en", "--dev-tgt", folder / "valid.de")
    training = ("--src", folder / "train.en", "--tgt", folder / "train.de", *dev, "--run", tmp_path / "run")
    done = run_command("train", "--config", "multi30k", *training, "--max-steps", "400", timeout=3600, cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    (*_, last) = [one for one in records(tmp_path / "run" / "metrics.jsonl") if "bleu" in one]
    translator = Translator.load(tmp_path / "run", checkpoint="last")
    sources, references = lines(folder / "valid.en"), [[one] for one in lines(folder / "valid.de")]
    evaluated = evaluate_set(translator, sources, references, metrics=METRICS, search=translator.search(1))
    assert {one.name: one.value for one in evaluated.scores} == {name: last[name] for name in METRICS}
    assert evaluated.loss == last["loss"]
