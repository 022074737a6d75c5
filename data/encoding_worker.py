"""Child process that encodes chunks of text: models and texts come in on stdin, ids leave on stdout."""

import json
import sys
from typing import IO

from .encoding import encode_sides, read_frame, write_frame
from .tokenizer import Vocabulary


def main(stdin: IO[bytes], stdout: IO[bytes]) -> None:
    """Reads the source's and the target's model (empty if the same), then answers chunks until stdin ends."""
    src = Vocabulary(read_frame(stdin) or b"")
    other = read_frame(stdin)
    vocabularies = src, Vocabulary(other) if other else src
    while (chunk := read_frame(stdin)) is not None:
        for rows in encode_sides(vocabularies, json.loads(chunk)):
            write_frame(stdout, rows.ids.tobytes())
            write_frame(stdout, rows.lengths.tobytes())
        stdout.flush()


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
