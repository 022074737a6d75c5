"""docs/python.md: the names that `import tfm` has, and the examples in the docstrings of what the page lists."""

import doctest
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from helpers.command import write_lines
from helpers.small_run import PAIRS

import tfm
from tfm import engine
from tfm.system.reporter import Quiet

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
KEPT = Path(__file__).parents[1] / "keepsakes"
WITH_EXAMPLES = [
    *(f"tfm.engine.commands.{name}" for name in ("train", "translate", "evaluate")),
    *("tfm.engine.translator.Translator", "tfm.engine.translation.Translation", "tfm.engine.generator.Generator"),
    *("tfm.engine.embedder.Embedder", "tfm.engine.embedder.PieceEmbedder"),
    *("tfm.data.tokenizer.Tokenizer", "tfm.data.glossary.Glossary"),
    *("tfm.seq2seq.decoding.beam.Beam", "tfm.seq2seq.decoding.greedy.Greedy"),
    "tfm.seq2seq.decoding.sampling.Sample",
]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with `runs/mine`, which knows its 36 sentences by heart, and runs of the other two kinds."""
    folder = tmp_path_factory.mktemp("python")
    before = Path.cwd()
    os.chdir(folder)
    try:
        for side, language in enumerate(("en", "de")):
            write_lines(folder / f"train.{language}", [pair[side] for pair in PAIRS])
        tfm.train(
            config="toy",
            src="train.en",
            tgt="train.de",
            dev_src="train.en",
            dev_tgt="train.de",
            run="runs/mine",
            max_steps=200,
            settings={
                "model.d_model": 64,
                "model.d_ff": 128,
                "tokenizer.vocab_size": 360,
                "training.warmup_steps": 20,
                "training.learning_rate": 0.005,
                "training.validate_every": 200,
                "training.ranks": 1,
            },
            reporter=Quiet(),
        )
        for kind, name in (("text", "text"), ("encoder_only", "vectors")):
            shutil.copytree(KEPT / kind, folder / "runs" / name)
        yield folder
    finally:
        os.chdir(before)


def found(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_give_what_they_say(workplace: Path, name: str) -> None:
    del workplace
    given = {one: getattr(engine, one) for one in engine.__all__} | {"Path": Path, "Quiet": Quiet}
    given["translator"] = engine.Translator.load("runs/mine")
    tests = [test for test in doctest.DocTestFinder(recurse=True).find(found(name), name, globs=given) if test.examples]
    assert tests, "there is an example"
    for test in tests:
        said: list[str] = []
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append, clear_globs=False)
        assert not said, "".join(said)


def test_the_page_lists_all_that_has_an_example() -> None:
    listed = set(re.findall(r"autoclass:: (\S+)", PAGE))
    listed |= {f"tfm.engine.commands.{name}" for name in ("train", "translate", "evaluate")}
    assert set(WITH_EXAMPLES) <= listed
    assert {found(name).__name__ for name in WITH_EXAMPLES} >= set(engine.__all__) - {"Generation"}


def test_the_package_has_the_names_and_loads_no_torch() -> None:
    assert set(tfm.__all__) == {*engine.__all__, "__version__"} <= set(dir(tfm))
    assert tfm.Translator is engine.Translator
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", tfm.__version__)
    with pytest.raises(AttributeError, match="has no attribute 'Translater'"):
        _ = tfm.Translater  # pyright: ignore[reportAttributeAccessIssue]
    code = "import sys, tfm; tfm.__version__; tfm.train; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
