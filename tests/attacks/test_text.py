"""Attack: text as nobody should write it, read, trained on and translated. Nothing breaks, and nothing gets lost."""

import json
import random
import re
from pathlib import Path

import pytest
from helpers.forkserver import Ended, ForkServer
from helpers.odd_text import OddCorpus, odd_corpus, odd_file, odd_line

from tfm.data.cleaning import clean
from tfm.data.tokenizer import Tokenizer

from .conftest import TINY_AND_SAME, Share, Tell

CPU_SECONDS = 60
"""A process that computes for longer hangs: the kernel ends it. A line of 5,000 placeholders takes some 20."""
FLAGS = [*TINY_AND_SAME, "--max-steps", "2", "--set", "tokenizer.vocab_size=8000"]
PARTS = 4
"""An attack is divided into so many tests, so that two processes can share it."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def run(server: ForkServer, *arguments: object, cwd: Path, stdin: bytes = b"") -> Ended:
    """Runs `tfm` on odd text, and looks at what has to hold whatever the text is."""
    ended = server.run(*arguments, cwd=cwd, stdin=stdin, limits={"RLIMIT_CPU": CPU_SECONDS})
    assert ended.code in (0, 2, 3), ended
    assert "Traceback" not in ended.said and "this is a bug in tfm" not in ended.said, ended.said
    errors = [line for line in ended.said.splitlines() if line.startswith("tfm: error:")]
    assert len(errors) == (ended.code != 0), ended.said
    for stream in (ended.stdout, ended.stderr):
        assert not _CONTROL.search(stream.decode("utf-8")), stream
    return ended


def check_refusal(ended: Ended, names: list[str]) -> None:
    """A refusal names the file; exit code 2 is for names that say that a file is of another kind."""
    error = ended.said[ended.said.index("tfm: error:") :]
    assert any(name in error for name in names), error
    assert ended.code == 3 or "cannot tell the format" in error, error


def seeds(name: str, part: int, count: int) -> list[str]:
    """What the tries of a part are made of; with one of them a failure can be repeated."""
    return [f"{name} {number}" for number in range(part, count, PARTS)]


def summary(codes: list[int], what: str) -> str:
    """What came of tries."""
    return f"{len(codes):,} {what}: {codes.count(0):,} taken, {len(codes) - codes.count(0):,} refused in one line"


@pytest.mark.parametrize("part", range(PARTS))
def test_reading_and_vocabularies(server: ForkServer, tmp_path: Path, share: Share, tell: Tell, part: int) -> None:
    codes: list[int] = []
    for seed in seeds("read", part, share(8, 5_000)):
        rng = random.Random(seed)
        folder = tmp_path / seed
        folder.mkdir()
        corpus = odd_corpus(rng, folder)
        kind = rng.choice(["unigram", "unigram", "bpe", "char", "word"])
        size = rng.choice([24, 300, 8_000, 8_000, 8_000])
        flags = ["--type", kind, "--vocab-size", size, *rng.choice([[], ["--separate"]])]
        try:
            ended = run(server, "tokenize", *corpus.flags, *flags, "--output", "vocab", cwd=folder)
            if ended.code:
                check_vocabulary_refusal(ended, corpus.names)
            assert ended.code or not corpus.unequal
            if not ended.code and kind in ("unigram", "bpe"):
                check_round_trips(Tokenizer.load(folder / "vocab"), [text for pair in corpus.pairs for text in pair])
        except Exception as error:
            raise AssertionError(f"seed {seed!r}: {flags}, {folder}") from error
        codes.append(ended.code)
    tell(summary(codes, "corpora read"))


def check_vocabulary_refusal(ended: Ended, names: list[str]) -> None:
    """A vocabulary may be impossible, too; that is a matter of all files."""
    if "no usable line to build" not in ended.said and "vocabulary of this corpus needs" not in ended.said:
        check_refusal(ended, names)


def check_round_trips(tokenizer: Tokenizer, texts: list[str]) -> None:
    """What is encoded comes back as it was cleaned, whether the vocabulary was made of it or not."""
    for text in {text for text in texts if len(text) < 20_000}:
        for vocabulary in (tokenizer.src, tokenizer.tgt):
            assert vocabulary.decode(vocabulary.encode(text)) == clean(text), ascii(text)


@pytest.mark.parametrize("part", range(PARTS))
def test_training(server: ForkServer, tmp_path: Path, share: Share, tell: Tell, part: int) -> None:
    codes: list[int] = []
    for seed in seeds("train", part, share(4, 500)):
        rng = random.Random(seed)
        folder = tmp_path / seed
        folder.mkdir()
        corpus = odd_corpus(rng, folder)
        bad = ["--set", f"data.bad_lines={rng.choice(['skip', 'error'])}"]
        try:
            ended = run(server, "train", *corpus.flags, *FLAGS, *bad, "--run", "run", cwd=folder)
            if ended.code:
                check_vocabulary_refusal(ended, corpus.names)
            else:
                check_counts(folder / "run", corpus)
        except Exception as error:
            raise AssertionError(f"seed {seed!r}: {bad}, {folder}") from error
        codes.append(ended.code)
    tell(summary(codes, "corpora trained on"))


def check_counts(run: Path, corpus: OddCorpus) -> None:
    """Kept and dropped pairs are those that were read, and those are all there are."""
    reports = [json.loads(path.read_text())["report"] for path in run.glob("cache/*/report.json")]
    assert len(reports) == 2, reports
    for report in reports:
        left_out = report["empty"] + report["too_long"] + report["unequal"]
        assert report["kept"] + left_out == report["read"], report
    assert not corpus.unequal
    assert corpus.rows in (None, sum(report["read"] for report in reports)), (reports, corpus.rows)


@pytest.mark.parametrize("part", range(PARTS))
def test_translating(server: ForkServer, model: Path, tmp_path: Path, share: Share, tell: Tell, part: int) -> None:
    codes: list[int] = []
    for seed in seeds("translate", part, share(16, 5_000)):
        rng = random.Random(seed)
        file = odd_file(rng, [odd_line(rng, 20_000) for _ in range(rng.choice([0, 1, 3, 20]))])
        as_json = rng.random() < 0.3
        flags = ["--beam-size", rng.choice([1, 3]), *(["--json"] if as_json else [])]
        by_name = rng.random() < 0.5
        try:
            if by_name:
                (tmp_path / "in.txt").write_bytes(file.content)
                ended = run(server, "translate", "--run", model, *flags, "--input", "in.txt", cwd=tmp_path)
            else:
                ended = run(server, "translate", "--run", model, *flags, cwd=tmp_path, stdin=file.content)
            check_translation(ended, file.lines, as_json)
        except Exception as error:
            place = "by name" if by_name else "on stdin"
            raise AssertionError(f"seed {seed!r}: {flags}, {place}, {file.spoilt}") from error
        codes.append(ended.code)
    tell(summary(codes, "inputs translated"))


def check_translation(ended: Ended, lines: int | None, as_json: bool) -> None:
    """One line in is one line out, unless the input was refused."""
    whole = ended.code == 0 or "were longer than" in ended.said
    if not whole:
        check_refusal(ended, ["in.txt", "standard input", "the input"])
        return
    if lines is not None:
        assert ended.stdout.count(b"\n") == lines, (ended.stdout[-300:], lines)
    for line in ended.stdout.decode("utf-8").split("\n")[:-1] if as_json else ():
        assert {"source", "translation"} <= set(json.loads(line))
