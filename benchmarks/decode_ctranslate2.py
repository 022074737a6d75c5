"""One contestant of decoding.py: the model that `tfm export` wrote, in CTranslate2.

With --find-best it tries numbers of translators, threads and tokens a batch, and prints the fastest of them.
"""

import json
import time
from pathlib import Path
from typing import Any

from decode_timing import Translate, decoding_arguments, median_seconds, time_decoding

BATCH_TOKENS = (1024, 2048, 4096)

Settings = tuple[int, int, int]
"""Translators at once, threads of each, tokens of a batch."""


class Engine:
    """Loads a model once for each number of translators and threads.

    Args:
        model: The exported directory.
        run: The tfm run, for its vocabulary.
        compute_type: `float32` or `int8`.
        length_penalty: CTranslate2's own: score / n ** it.
        max_length: Most pieces of an output.
    """

    def __init__(self, model: Path, run: Path, compute_type: str, length_penalty: float, max_length: int) -> None:
        from tfm.data.tokenizer import Tokenizer

        self._model, self._compute_type = model, compute_type
        self._length_penalty, self._max_length = length_penalty, max_length
        self._tokenizer = Tokenizer.load(run / "tokenizer")
        tgt = self._tokenizer.tgt
        self._ids = {tgt.piece(i): i for i in range(len(tgt))}
        self._translators: dict[tuple[int, int], Any] = {}

    def prepare(self, inter_threads: int, intra_threads: int) -> Any:
        """The translator of so many workers and threads."""
        import ctranslate2  # pyright: ignore[reportMissingImports]

        if (inter_threads, intra_threads) not in self._translators:
            self._translators[inter_threads, intra_threads] = ctranslate2.Translator(
                str(self._model),
                device="cpu",
                compute_type=self._compute_type,
                inter_threads=inter_threads,
                intra_threads=intra_threads,
            )
        return self._translators[inter_threads, intra_threads]

    def forget(self) -> None:
        """Unloads everything."""
        self._translators.clear()

    def at(self, settings: Settings) -> Translate:
        """Text to text with these settings."""
        translator, max_batch_size = self.prepare(*settings[:2]), settings[2]

        def translate(texts: list[str], beam_size: int) -> list[str]:
            results = translator.translate_batch(
                [self._tokenizer.src.encode_as_pieces(text) for text in texts],
                beam_size=beam_size,
                length_penalty=self._length_penalty,
                max_decoding_length=self._max_length,
                max_batch_size=max_batch_size,
                batch_type="tokens",
            )
            pieces = (result.hypotheses[0] for result in results)
            return [self._tokenizer.tgt.decode(self._ids[piece] for piece in row) for row in pieces]

        return translate


def find_best(engine: Engine, texts: list[str], sentence: str, beam_size: int, cores: int) -> dict[str, Any]:
    """The fastest settings of each search, for many sentences and for one, and what was tried."""
    seconds: dict[str, dict[Settings, float]] = {}
    threads = sorted({(1, cores), (cores, 1)})
    for inter, intra in threads:
        for tokens in BATCH_TOKENS:
            translate = engine.at((inter, intra, tokens))
            for search, size in (("greedy", 1), ("beam", beam_size)):
                translate(texts[:64], size)
                start = time.perf_counter()
                translate(texts, size)
                seconds.setdefault(search, {})[inter, intra, tokens] = time.perf_counter() - start
        engine.forget()
    for intra in sorted({1, cores}):
        settings = (1, intra, BATCH_TOKENS[0])
        translate = engine.at(settings)
        for search, size in (("greedy", 1), ("beam", beam_size)):
            latency = median_seconds(lambda: translate([sentence], size), repeats=10)  # noqa: B023
            seconds.setdefault(f"{search}_one", {})[settings] = latency
        engine.forget()
    best = {name: min(tried, key=tried.__getitem__) for name, tried in seconds.items()}
    return {"best": best, "tried": {name: list(tried.items()) for name, tried in seconds.items()}}


def main() -> None:
    """Loads, translates, prints the figures."""
    parser = decoding_arguments()
    parser.add_argument("--model", type=Path, required=True, help="what tfm export wrote")
    parser.add_argument("--compute-type", required=True)
    parser.add_argument("--max-length", type=int, required=True)
    parser.add_argument("--find-best", type=int, metavar="CORES", help="try settings for so many cores")
    parser.add_argument("--settings", type=json.loads, help="what --find-best found best")
    options = parser.parse_args()
    engine = Engine(options.model, options.run, options.compute_type, options.length_penalty, options.max_length)
    if options.find_best:
        texts = options.input.read_text(encoding="utf-8").split("\n")[:-1]
        print(json.dumps(find_best(engine, texts, options.sentence, options.beam_size, options.find_best)))
        return
    many = {search: engine.at(tuple(options.settings[search])) for search in ("greedy", "beam")}
    one = {search: engine.at(tuple(options.settings[f"{search}_one"])) for search in ("greedy", "beam")}
    time_decoding(options, many, one)


if __name__ == "__main__":
    main()
