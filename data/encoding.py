"""Text to ids, many pairs at a time, on all cores: order and result are those of one process, whatever their number.

A large corpus goes in chunks to child processes that run this module, because cleaning is Python and Python computes on
one core. They end when their pipe does, however this process ends.
"""

import contextlib
import json
import struct
import sys
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from queue import SimpleQueue
from typing import IO

import numpy as np
import numpy.typing as npt

from ..system.cores import available_cores
from ..system.errors import EnvironmentFault
from ..system.processes import Child
from . import Pair
from .placeholders import PlaceholderRule
from .tokenizer import Tokenizer, Vocabulary

Ids = npt.NDArray[np.int32]

CHUNK_PAIRS, CHUNK_CHARACTERS = 4096, 4_000_000
"""A chunk ends at whichever comes first, so that overlong lines do not fill the memory."""

CHUNKS_ALONE = 24
"""A corpus of fewer chunks is encoded by this process: it would be done before the others had started."""

_FRAME = struct.Struct("<q")


@dataclass(frozen=True)
class Rows:
    """Rows of ids, one after the other, and the length of each row."""

    ids: Ids
    lengths: Ids

    def __len__(self) -> int:
        return len(self.lengths)

    @classmethod
    def of(cls, rows: Sequence[list[int]]) -> "Rows":
        lengths = np.fromiter(map(len, rows), np.int32, len(rows))
        return cls(np.fromiter(chain.from_iterable(rows), np.int32, int(lengths.sum())), lengths)

    @classmethod
    def joined(cls, parts: Sequence["Rows"]) -> "Rows":
        return cls(np.concatenate([part.ids for part in parts]), np.concatenate([part.lengths for part in parts]))

    def where(self, kept: npt.NDArray[np.bool_]) -> "Rows":
        """The rows marked True."""
        return self if kept.all() else Rows(self.ids[np.repeat(kept, self.lengths)], self.lengths[kept])

    def split(self, count: int) -> tuple["Rows", "Rows"]:
        """The first `count` rows, and the others."""
        cut = int(self.lengths[:count].sum())
        return Rows(self.ids[:cut], self.lengths[:count]), Rows(self.ids[cut:], self.lengths[count:])


Encoded = tuple[list[Pair], Rows, Rows]
"""A chunk of pairs with the ids of its sources and of its targets, row by row."""
EncodedPairs = Generator[Encoded, None, None]
"""Close it when done early: it may have children."""


def encode_pairs(pairs: Iterable[Pair], tokenizer: Tokenizer, *, processes: int | None = None) -> EncodedPairs:
    """Encodes a stream of raw pairs, in order.

    Args:
        processes: How many children to share a large corpus among; by default one for each core. With 1, none.
    """
    processes = available_cores() if processes is None else processes
    chunks = _chunks(pairs)
    first = list(islice(chunks, CHUNKS_ALONE)) if processes > 1 else []
    if processes > 1 and len(first) == CHUNKS_ALONE:
        yield from _encode_in_children(chain(first, chunks), tokenizer, processes)
        return
    for chunk in chain(first, chunks):
        yield (chunk, *encode_chunk(tokenizer, chunk))


def encode_chunk(tokenizer: Tokenizer, chunk: list[Pair]) -> tuple[Rows, Rows]:
    """Ids of the sources and of the targets of pairs, with symbols for the placeholders that are carried through."""
    masked = [tokenizer.mask_pair(src, tgt) for src, tgt in chunk]  # cleaned here, once
    src_ids = tokenizer.src.encode_all(src for src, _ in masked)
    return Rows.of(src_ids), Rows.of(tokenizer.tgt.encode_all(tgt for _, tgt in masked))


def _chunks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    chunk: list[Pair] = []
    characters = 0
    for pair in pairs:
        chunk.append(pair)
        characters += len(pair[0]) + len(pair[1])
        if len(chunk) == CHUNK_PAIRS or characters >= CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def _encode_in_children(chunks: Iterator[list[Pair]], tokenizer: Tokenizer, processes: int) -> Iterator[Encoded]:
    """One thread waits on each child; results are taken in the order of the chunks, two for each child ahead."""
    idle: SimpleQueue[_Encoder] = SimpleQueue()

    def encode(chunk: list[Pair]) -> Encoded:
        encoder = idle.get()
        try:
            return (chunk, *encoder.encode(chunk))
        finally:
            idle.put(encoder)

    with ThreadPoolExecutor(processes) as threads, contextlib.ExitStack() as children:
        for _ in range(processes):
            child = children.enter_context(Child(f"{__package__}.encoding", purpose="to tokenize in"))
            idle.put(_Encoder(child, tokenizer))
        children.callback(threads.shutdown, wait=False, cancel_futures=True)
        ahead: deque[Future[Encoded]] = deque()
        for chunk in chunks:
            ahead.append(threads.submit(encode, chunk))
            if len(ahead) > 2 * processes:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


class _Encoder:
    """A child that runs `main`. It is sent the tokenizer before its first texts."""

    def __init__(self, child: Child, tokenizer: Tokenizer) -> None:
        self._child = child
        self._before = [tokenizer.src.model, b"" if tokenizer.joint else tokenizer.tgt.model]
        self._before.append(json.dumps(dict(tokenizer.placeholders.pairs)).encode())

    def encode(self, chunk: list[Pair]) -> tuple[Rows, Rows]:
        stdin, stdout = self._child.stdin, self._child.stdout
        try:
            for frame in self._before:
                _write_frame(stdin, frame)
            self._before = []
            _write_frame(stdin, json.dumps(chunk).encode())
            stdin.flush()
            ids_and_lengths = [np.frombuffer(_read_frame(stdout), np.int32) for _ in range(4)]
        except (OSError, EOFError) as error:
            self._child.kill()
            ending = self._child.wait()
            said = f": {ending.last_line}" if ending.last_line else ""
            raise EnvironmentFault(
                f"a process that tokenizes ended with status {ending.status} (memory?){said}"
            ) from error
        return Rows(*ids_and_lengths[:2]), Rows(*ids_and_lengths[2:])


def _write_frame(stream: IO[bytes], content: bytes) -> None:
    """Writes bytes with their number before them."""
    stream.write(_FRAME.pack(len(content)))
    stream.write(content)


def _read_frame(stream: IO[bytes]) -> bytes:
    """Reads what `_write_frame` wrote.

    Raises:
        EOFError: The stream has ended before the end of it.
    """
    head = stream.read(_FRAME.size)
    if len(head) == _FRAME.size:
        size = _FRAME.unpack(head)[0]
        content = stream.read(size)
        if len(content) == size:
            return content
    raise EOFError


def main(stdin: IO[bytes], stdout: IO[bytes]) -> None:
    """The work of a child: reads a tokenizer (source model, target model, empty if it is the same, and what becomes of
    placeholders), then answers chunks of text with ids until stdin ends."""
    with contextlib.suppress(EOFError):
        src, other, counts = Vocabulary(_read_frame(stdin)), _read_frame(stdin), json.loads(_read_frame(stdin))
        rule = PlaceholderRule({kind: tuple(pairs) for kind, pairs in counts.items()})
        tokenizer = Tokenizer(src, Vocabulary(other) if other else src, "", rule)
        while True:
            for rows in encode_chunk(tokenizer, json.loads(_read_frame(stdin))):
                _write_frame(stdout, rows.ids.tobytes())
                _write_frame(stdout, rows.lengths.tobytes())
            stdout.flush()


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
