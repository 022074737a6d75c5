"""Child process that trains one SentencePiece model: options and lines come in on stdin, the model leaves on stdout.

In a process of its own because SentencePiece sees no Ctrl-C while it works, can abort the process on odd input, and
reports success on a full disk; as a child it can be killed at once, and the parent writes and checks the file itself.
One thread, because with several a unigram vocabulary depends on their number.
"""

import contextlib
import ctypes
import io
import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import IO

_PR_SET_PDEATHSIG = 1
"""From <linux/prctl.h>."""


def end_with_parent() -> None:
    """Lets the kernel kill this process when the one that started it dies, for whatever reason.

    SentencePiece reads no pipe while it works, so it would not notice. Only Linux has this; elsewhere a vocabulary is
    built to its end, and goes nowhere.
    """
    if not sys.platform.startswith("linux"):
        return
    parent = os.getppid()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it has died before the kernel was told
        os._exit(1)


def main(stdin: IO[bytes], stdout: IO[bytes]) -> None:
    """Reads a line of JSON options, then one sentence per line, and writes the model's bytes."""
    end_with_parent()
    import sentencepiece

    options = json.loads(stdin.readline())

    def sentences() -> Iterator[str]:
        for line in stdin:
            yield line.decode("utf-8").rstrip("\n")

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(  # pyright: ignore[reportAttributeAccessIssue]
            sentence_iterator=sentences(), model_writer=model, num_threads=1, minloglevel=2, **options
        )
    except RuntimeError as error:
        sys.exit(f"sentencepiece: {error}")
    stdout.write(model.getvalue())
    stdout.flush()


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
