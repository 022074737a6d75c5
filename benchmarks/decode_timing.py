"""How every contestant of decoding.py is timed: the same sentences, text to text, warm; then one sentence at a time."""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

Translate = Callable[[list[str], int], list[str]]
"""Texts and a beam size (1 is greedy search) to translations."""

PROCESS_STARTED = time.perf_counter()
"""Of the interpreter, nearly: the contestants import this module before anything heavy."""

WARMUP_LINES = 100


def decoding_arguments() -> argparse.ArgumentParser:
    """The command line that all contestants share."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--run", type=Path, required=True, help="the tfm run whose model it is")
    parser.add_argument("--input", type=Path, required=True, help="sentences, one a line")
    parser.add_argument("--sentence", required=True, help="a short one, for the latency")
    parser.add_argument("--output", type=Path, required=True, help="directory for greedy.txt and beam.txt")
    parser.add_argument("--beam-size", type=int, required=True)
    parser.add_argument("--length-penalty", type=float, required=True)
    parser.add_argument("--repeats", type=int, required=True, help="for the latency")
    return parser


def time_decoding(
    options: argparse.Namespace, translate: dict[str, Translate], translate_one: dict[str, Translate] | None = None
) -> None:
    """Times both searches and prints the figures.

    Args:
        options: From `decoding_arguments`.
        translate: `greedy` and `beam`: the engine at its best for many sentences.
        translate_one: The engine at its best for one sentence, if that is another.
    """
    figures = {"load_seconds": time.perf_counter() - PROCESS_STARTED}
    texts = options.input.read_text(encoding="utf-8").split("\n")[:-1]
    options.output.mkdir(parents=True, exist_ok=True)
    for search, beam_size in (("greedy", 1), ("beam", options.beam_size)):
        translate[search](texts[:WARMUP_LINES], beam_size)
        start = time.perf_counter()
        translations = translate[search](texts, beam_size)
        figures[f"{search}_per_second"] = len(texts) / (time.perf_counter() - start)
        (options.output / f"{search}.txt").write_text("".join(line + "\n" for line in translations), encoding="utf-8")
    for search, beam_size in (("greedy", 1), ("beam", options.beam_size)):
        one = (translate_one or translate)[search]
        figures[f"{search}_ms"] = 1000 * median_seconds(lambda: one([options.sentence], beam_size), options.repeats)  # noqa: B023
    print(json.dumps(figures))


def median_seconds(call: Callable[[], object], repeats: int) -> float:
    """The median time of a call, after a few calls that do not count."""
    for _ in range(max(1, repeats // 10)):
        call()
    times: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
