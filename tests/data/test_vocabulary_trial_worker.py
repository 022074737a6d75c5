"""What the child that tries a vocabulary refuses, and what it may take of the machine."""

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.protobuf import block, number, piece, whole

from tfm.data import vocabulary_trial_worker
from tfm.data.config import TokenizerConfig
from tfm.data.vocabulary_training import build_tokenizer
from tfm.data.vocabulary_trial_worker import Refused, check, fields, use

WORDS = [f"the {'abcdefgh'[i % 8]}{i} cat sat on mat {i} %s <b>" for i in range(50)]


@pytest.fixture(scope="module")
def model() -> bytes:
    """A SentencePiece file."""
    return build_tokenizer(zip(WORDS, WORDS, strict=True), TokenizerConfig(vocab_size=300, type="bpe")).src.model


@pytest.mark.parametrize("type_", ["unigram", "bpe", "char", "word"])
@pytest.mark.parametrize("long", ["", "y" * 4190, "日" * 1390])
def test_what_tfm_builds_is_harmless(type_: str, long: str) -> None:
    if type_ in ("char", "word") or not long:
        config = TokenizerConfig(vocab_size=400, type=type_)  # pyright: ignore[reportArgumentType]
        built = build_tokenizer(zip([*WORDS, long], [*WORDS, long], strict=True), config).src.model
        check(built)


def test_fields_are_those_that_were_written() -> None:
    message = whole(1, 0) + whole(2, 300) + block(3, b"abc") + block(2000, b"") + whole(4, -1)
    message += number(5 << 3 | 5) + b"1234" + number(6 << 3 | 1) + b"12345678"
    assert list(fields(message)) == [
        ((1, 0), 0),
        ((2, 0), 300),
        ((3, 2), b"abc"),
        ((2000, 2), b""),
        ((4, 0), 2**64 - 1),
        ((5, 5), b"1234"),
        ((6, 1), b"12345678"),
    ]


@pytest.mark.parametrize(
    ("addition", "words"),
    [
        (block(3, block(2, b"charsmap")), "it changes characters"),
        (block(3, block(6, b"a\tb")), "it changes characters"),
        (block(5, b""), "unknown field 5"),
        (whole(1, 3), "unknown field 1"),
        (piece(b""), "a piece has 0 bytes"),
        (piece(b"a" * 4201), "a piece has 4,201 bytes"),
        (piece(b"\xff"), "a piece is not UTF-8"),
        (piece(b"zz", float("nan")), "impossible score"),
        (piece(b"zz", float("inf")), "impossible score"),
        (piece(b"zz", -1e30), "impossible score"),
        (piece(b"zz", 0, 5), "unknown type 5"),
        (piece(b"zz", 0, 6), "unknown type 6"),
        (piece(b"zz", 0, 2**32 + 1), "unknown type"),
        (block(1, block(4, b"")), "a piece has an unknown field"),
        (block(2, whole(3, 9)), "unknown type 9"),
        (block(2, block(44, b"x" * 5000)), "one of its settings has 5,000 bytes"),
        (b"\x0a", "it is damaged"),
        (b"\x0a\xff", "it is damaged"),
        (b"\x0a\x7fabc", "it ends too early"),
        (b"\x0b", "it is damaged"),
        (b"\xff" * 20, "it is damaged"),
    ],
)
def test_what_tfm_does_not_write_is_refused(model: bytes, addition: bytes, words: str) -> None:
    with pytest.raises(Refused, match=words):
        check(model + addition)


def test_sentencepiece_has_its_say(model: bytes) -> None:
    use(model)
    check(model + piece(b"twice") * 2)
    with pytest.raises(RuntimeError, match="already defined"):
        use(model + piece(b"twice") * 2)


def test_a_refusal_is_a_line_on_stderr(model: bytes) -> None:
    done = run(vocabulary_trial_worker.__file__, model + piece(b""))
    assert (done.returncode, done.stderr) == (1, b"a piece has 0 bytes\n")
    assert run(vocabulary_trial_worker.__file__, model).returncode == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="not every system has these limits")
@pytest.mark.parametrize(
    ("harm", "status"),
    [
        ("bytearray(2_000_000_000)", 1),
        ("[0 for _ in iter(int, 1)]", -9),
        ("open(sys.argv[1], 'wb').write(bytes(100_000))", 1),
        ("import ctypes; ctypes.string_at(0)", -11),
    ],
)
def test_a_trial_has_limits(tmp_path: Path, harm: str, status: int) -> None:
    code = (
        "import resource, sys\nimport tfm.data.vocabulary_trial_worker as worker\n"
        "worker.LIMITS['RLIMIT_CPU'] = 1\nworker.check = print\n"
        f"def use(model):\n    {harm}\nworker.use = use\nworker.main(sys.stdin.buffer)\n"
    )
    (tmp_path / "child.py").write_text(code)
    done = run(str(tmp_path / "child.py"), b"", str(tmp_path / "harm"))
    assert done.returncode == status, done.stderr
    assert not list(tmp_path.glob("core*"))


def run(script: str, model: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Runs the worker as a program."""
    name = ["-m", "tfm.data.vocabulary_trial_worker"] if script == vocabulary_trial_worker.__file__ else [script]
    return subprocess.run(
        [sys.executable, "-P", *name, *arguments], input=model, capture_output=True, check=False, timeout=60
    )
