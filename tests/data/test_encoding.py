"""Encoding by several processes: what one process makes, in its order, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfm.data import encoding
from tfm.data.corpus import Pair
from tfm.data.encoding import EncodedPairs, Rows, encode_pairs
from tfm.data.tokenizer import Tokenizer
from tfm.system.errors import EnvironmentFault

ODD = ["", " ", "a\nb\r\n", "\0", "\ud800 half", "\u2581\ue000", "\N{GRINNING FACE}", "x" * 5000, '"\\', "\u2028"]


def rows_of(chunks: EncodedPairs) -> list[tuple[Pair, list[int], list[int]]]:
    found: list[tuple[Pair, list[int], list[int]]] = []
    for pairs, src, tgt in chunks:
        src_rows, tgt_rows = (np.split(rows.ids, np.cumsum(rows.lengths)[:-1]) for rows in (src, tgt))
        assert len(pairs) == len(src) == len(tgt)
        found += [(p, s.tolist(), t.tolist()) for p, s, t in zip(pairs, src_rows, tgt_rows, strict=True)]
    return found


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two chunks of seven pairs are enough for children to be started."""
    monkeypatch.setattr(encoding, "CHUNK_PAIRS", 7)
    monkeypatch.setattr(encoding, "CHUNKS_ALONE", 2)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The children that have been started."""
    children: list[subprocess.Popen[bytes]] = []
    popen: Any = subprocess.Popen

    def start(*args: Any, **options: Any) -> Any:
        children.append(popen(*args, **options))
        return children[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    return children


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("kind", ["unigram", "word separate"])
@pytest.mark.parametrize("processes", [1, 2, 3])
def test_any_number_of_processes_makes_what_encode_makes(
    tokenizers: dict[str, Tokenizer],
    toy_sentences: list[Pair],
    started: list[subprocess.Popen[bytes]],
    kind: str,
    processes: int,
) -> None:
    pairs = toy_sentences[:90] + [(a, b) for a, b in zip(ODD, reversed(ODD), strict=True)]
    tokenizer = tokenizers[kind]
    found = rows_of(encode_pairs(pairs, tokenizer, processes=processes))
    assert found == [((s, t), tokenizer.src.encode(s), tokenizer.tgt.encode(t)) for s, t in pairs]
    assert len(started) == (processes if processes > 1 else 0)


def test_a_small_corpus_needs_no_process(
    tokenizer: Tokenizer, toy_sentences: list[Pair], started: list[subprocess.Popen[bytes]]
) -> None:
    assert len(rows_of(encode_pairs(toy_sentences, tokenizer, processes=4))) == len(toy_sentences)
    assert not started


def test_overlong_lines_make_small_chunks(
    monkeypatch: pytest.MonkeyPatch, tokenizer: Tokenizer, toy_sentences: list[Pair]
) -> None:
    monkeypatch.setattr(encoding, "CHUNK_CHARACTERS", 100)
    for pairs, _, _ in encode_pairs(toy_sentences, tokenizer, processes=1):
        assert sum(len(src) + len(tgt) for src, tgt in pairs[:-1]) < 100


@pytest.mark.usefixtures("small_chunks")
def test_the_stream_is_read_only_a_little_ahead(tokenizer: Tokenizer, toy_sentences: list[Pair]) -> None:
    read: list[Pair] = []
    endless = (read.append(pair) or pair for pair in cycle(toy_sentences))
    chunks = encode_pairs(endless, tokenizer, processes=2)
    for _ in range(20):
        next(chunks)
    assert len(read) <= (20 + 2 * 2 + 1) * 7
    chunks.close()


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("how", ["closed", "error in the corpus", "complete"])
def test_no_child_is_left(
    tokenizer: Tokenizer, toy_sentences: list[Pair], started: list[subprocess.Popen[bytes]], how: str
) -> None:
    def pairs() -> Iterator[Pair]:
        yield from toy_sentences
        if how == "error in the corpus":
            raise KeyboardInterrupt

    chunks = encode_pairs(pairs(), tokenizer, processes=2)
    next(chunks)
    if how == "closed":
        chunks.close()
    elif how == "complete":
        list(chunks)
    else:
        with pytest.raises(KeyboardInterrupt):
            list(chunks)
    assert [child.returncode is None for child in started] == [False, False]


@pytest.mark.usefixtures("small_chunks")
def test_a_killed_child_is_told(
    tokenizer: Tokenizer, toy_sentences: list[Pair], started: list[subprocess.Popen[bytes]]
) -> None:
    chunks = encode_pairs(cycle(toy_sentences), tokenizer, processes=2)
    next(chunks)
    started[1].kill()
    with pytest.raises(EnvironmentFault, match=r"a process that tokenizes ended with status -9 \(memory\?\)"):
        list(islice(chunks, 100_000))
    assert all(child.returncode is not None for child in started)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize(
    ("executable", "words"), [("/nowhere/python", "cannot start a process"), (sys.executable, "No module named")]
)
def test_a_child_that_does_not_start(
    monkeypatch: pytest.MonkeyPatch, tokenizer: Tokenizer, toy_sentences: list[Pair], executable: str, words: str
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    monkeypatch.setattr(encoding, "__package__", "tfm.nowhere")
    with pytest.raises(EnvironmentFault, match=words):
        list(encode_pairs(toy_sentences, tokenizer, processes=2))


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at /proc")
def test_children_end_with_a_killed_parent(tmp_path: Path, tokenizer: Tokenizer) -> None:
    tokenizer.save(tmp_path / "vocab")
    script = (
        "import itertools, subprocess; from pathlib import Path; from tfm.data import encoding\n"
        "from tfm.data.tokenizer import Tokenizer\n"
        "start = subprocess.Popen\n"
        "def popen(*args, **options):\n"
        "    child = start(*args, **options); print(child.pid, flush=True); return child\n"
        "subprocess.Popen = popen\n"
        "pairs = itertools.repeat(('a', 'b'))\n"
        f"for _ in encoding.encode_pairs(pairs, Tokenizer.load(Path({str(tmp_path / 'vocab')!r})), processes=2): pass\n"
    )
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{script}"]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    children = [int(parent.stdout.readline()) for _ in range(2)]
    assert all(map(_runs, children))
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 60
    while any(map(_runs, children)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_rows() -> None:
    lists = [[5, 6], [], [7], [8, 9, 10]]
    rows = Rows.of(lists)
    assert (rows.ids.tolist(), rows.lengths.tolist()) == ([5, 6, 7, 8, 9, 10], [2, 0, 1, 3])
    some = rows.where(np.array([True, False, False, True]))
    assert (some.ids.tolist(), some.lengths.tolist()) == ([5, 6, 8, 9, 10], [2, 3])
    for count in range(5):
        head, tail = rows.split(count)
        assert (len(head), len(tail)) == (count, 4 - count)
        again = Rows.joined([head, tail])
        assert (again.ids.tolist(), again.lengths.tolist()) == (rows.ids.tolist(), rows.lengths.tolist())
