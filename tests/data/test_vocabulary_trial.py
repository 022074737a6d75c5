"""Trials of vocabularies: each unknown file is opened by another process first, once, and nothing bad gets through."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.protobuf import block

from tfm.data import vocabulary_trial
from tfm.data.config import TokenizerConfig
from tfm.data.tokenizer import Tokenizer
from tfm.data.vocabulary_training import build_tokenizer
from tfm.data.vocabulary_trial import try_vocabulary
from tfm.system.errors import ModelError

FILE = Path("run/tokenizer/tokenizer.model")
Started = list[list[str]]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """A vocabulary."""
    return build_tokenizer(
        zip(["the cat sat"] * 20, ["die Katze sass"] * 20, strict=True), TokenizerConfig(vocab_size=300)
    )


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory in which nothing is remembered yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """The commands of the processes that are started."""
    commands: Started = []

    class Watched(subprocess.Popen[bytes]):
        def __init__(self, command: list[str], **options: Any) -> None:
            commands.append(command)
            super().__init__(command, **options)

    monkeypatch.setattr(subprocess, "Popen", Watched)
    return commands


@pytest.fixture
def crashing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A place for the code of a child that is started instead."""
    script = tmp_path / "child.py"

    class Other(subprocess.Popen[bytes]):
        def __init__(self, command: list[str], **options: Any) -> None:
            super().__init__([command[0], str(script)], **options)

    monkeypatch.setattr(subprocess, "Popen", Other)
    return script


def test_an_unknown_vocabulary_is_tried_once(tokenizer: Tokenizer, started: Started, cache: Path) -> None:
    try_vocabulary(tokenizer.src.model, FILE)
    try_vocabulary(tokenizer.src.model, FILE)
    assert [command[:4] for command in started] == [[sys.executable, "-P", "-m", "tfm.data.vocabulary_trial_worker"]]
    assert [path.stat().st_size for path in (cache / "tfm" / "vocabularies").iterdir()] == [0]


def test_another_version_of_sentencepiece_tries_it_again(
    tokenizer: Tokenizer, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    try_vocabulary(tokenizer.src.model, FILE)
    monkeypatch.setattr("sentencepiece.__version__", "99")
    try_vocabulary(tokenizer.src.model, FILE)
    assert len(started) == 2


@pytest.mark.parametrize("place", ["a file", "nowhere", "no home"])
def test_without_a_cache_it_is_tried_each_time(
    tokenizer: Tokenizer, started: Started, cache: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    if place == "a file":
        cache.write_bytes(b"")
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which does not count
        monkeypatch.setattr(Path, "home", lambda: Path("/proc/nobody") if place == "nowhere" else _homeless())
    try_vocabulary(tokenizer.src.model, FILE)
    try_vocabulary(tokenizer.src.model, FILE)
    assert len(started) == 2


def _homeless() -> Path:
    raise RuntimeError("Could not determine home directory.")


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_cache_is_where_the_system_has_it(monkeypatch: pytest.MonkeyPatch, platform: str, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    mark = vocabulary_trial._mark(b"")
    place = {"linux": ".cache", "darwin": "Library/Caches", "win32": "AppData/Local"}[platform]
    assert mark is not None and mark.parent == tmp_path / place / "tfm" / "vocabularies"


def test_what_tfm_has_built_is_known_and_other_files_are_tried(
    tokenizer: Tokenizer, started: Started, cache: Path, tmp_path: Path
) -> None:
    tokenizer.save(tmp_path / "mine")
    assert Tokenizer.load(tmp_path / "mine").sha256 == tokenizer.sha256
    assert not started
    cache.rename(tmp_path / "cache of another machine")
    assert Tokenizer.load(tmp_path / "mine").sha256 == tokenizer.sha256
    assert len(started) == 1


def test_a_vocabulary_that_changes_characters_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(ModelError) as caught:
        try_vocabulary(tokenizer.src.model + block(3, block(2, b"\x00\x01\x00\x00" + b"\xff" * 256)), FILE)
    assert str(caught.value) == f"{FILE} is not a vocabulary that tfm wrote: it changes characters"


def test_what_is_refused_is_not_remembered(started: Started, cache: Path) -> None:
    for _ in range(2):
        with pytest.raises(ModelError, match="it is damaged"):
            try_vocabulary(b"garbage", FILE)
    assert len(started) == 2 and not cache.exists()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", r"crashes when it opens it \(signal 11\)"),
        ("import sys; sys.exit('x' * 5000)", f"tfm wrote: {'x' * 100}$"),
        ("raise SystemExit(3)", "tfm wrote: exit code 3$"),
        ("import sys; sys.stdin.buffer.read()\nwhile True: pass", "takes too long to open it$"),
    ],
)
def test_a_child_that_does_not_end_well_is_said_in_one_short_line(
    crashing: Path, monkeypatch: pytest.MonkeyPatch, code: str, words: str
) -> None:
    monkeypatch.setattr(vocabulary_trial, "MOST_SECONDS", 1.0)
    crashing.write_text(code)
    with pytest.raises(ModelError, match=words) as caught:
        try_vocabulary(b"x" * 100_000, FILE)  # more than a pipe holds
    assert len(str(caught.value)) < 200 and "\n" not in str(caught.value)
