"""One measurement of growth.py: tokenising the corpus of a configuration into a run's cache, and opening that again."""

import argparse
import json
import time
from pathlib import Path


def main() -> None:
    """Builds the cache, opens it, prints the seconds of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True)
    options = parser.parse_args()

    from tfm.configs import load_config, parse_config
    from tfm.engine.runs.directory import RunDirectory
    from tfm.engine.training.prepare import prepare_data
    from tfm.system.reporter import Console

    settings = parse_config(load_config(str(options.config)))
    figures: dict[str, float] = {}
    for name in ("build_seconds", "open_seconds"):
        start = time.perf_counter()
        prepare_data(settings, RunDirectory(options.run), given_tokenizer=options.tokenizer, reporter=Console())
        figures[name] = time.perf_counter() - start
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
