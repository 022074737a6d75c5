"""Child process that encodes chunks of text: models and texts come in on stdin, ids leave on stdout."""

import json
import sys
from typing import IO

from .encoding import encode_sides, read_frame, write_frame
from .placeholders import PlaceholderRule
from .tokenizer import Tokenizer, Vocabulary


def main(stdin: IO[bytes], stdout: IO[bytes]) -> None:
    """Reads a tokenizer (the source's model, the target's, empty if the same, and what becomes of placeholders), then
    answers chunks until stdin ends."""
    src = Vocabulary(read_frame(stdin) or b"")
    other = read_frame(stdin)
    rule = PlaceholderRule({kind: tuple(pairs) for kind, pairs in json.loads(read_frame(stdin) or b"{}").items()})
    tokenizer = Tokenizer(src, Vocabulary(other) if other else src, "", rule)
    while (chunk := read_frame(stdin)) is not None:
        for rows in encode_sides(tokenizer, json.loads(chunk)):
            write_frame(stdout, rows.ids.tobytes())
            write_frame(stdout, rows.lengths.tobytes())
        stdout.flush()


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
