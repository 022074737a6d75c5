"""Child process that trains one SentencePiece model: options and lines come in on stdin, the model leaves on stdout.

In a process of its own because SentencePiece sees no Ctrl-C while it works, can abort the process on odd input, and
reports success on a full disk; as a child it can be killed at once, and the parent writes and checks the file itself.
One thread, because with several a unigram vocabulary depends on their number.
"""

import io
import json
import sys
from collections.abc import Iterator
from typing import IO


def main(stdin: IO[bytes], stdout: IO[bytes]) -> None:
    """Reads a line of JSON options, then one sentence per line, and writes the model's bytes."""
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
