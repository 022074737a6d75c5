"""The comparison of a run with its page: a right one agrees, a wrong one is found out."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from helpers.javascript import needs_node
from helpers.learned import made

from tfm.data.tokenizer import Tokenizer
from tfm.engine.browser.node import Engine, find_node, running
from tfm.engine.browser.pack import pack
from tfm.engine.browser.precision import rounded
from tfm.engine.export.html.compare import Comparison, table
from tfm.engine.export.html.quality import machine_of, quality
from tfm.engine.runs.load import TrainedRun
from tfm.system.errors import EnvironmentFault

pytestmark = needs_node


@pytest.fixture
def engine_of() -> Iterator[Any]:
    """Opens engines."""
    with ExitStack() as engines:

        def open_(run: TrainedRun, weights: Any = "float32") -> Engine:
            return engines.enter_context(running(pack(run, weights), str(find_node())))

        yield open_


@pytest.fixture(scope="module")
def run(tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> TrainedRun:
    """A run that translates a little."""
    return made(tokenizer, pairs, steps=50)


def test_a_page_agrees_with_its_run(run: TrainedRun, pairs: list[tuple[str, str]], engine_of: Any) -> None:
    done: list[int] = []
    exact, page = engine_of(run), engine_of(run, "int8")
    assert (exact.about["weights"], page.about["purpose"]) == ("float32", "translator")
    found = Comparison(machine_of(run), exact, page, pairs, done.append).agreements()
    assert done == list(range(1, Comparison.size(pairs) + 1))
    assert [(one.name, one.equal, one.compared) for one in found] == [
        ("greedy", len(pairs), len(pairs)),
        ("beam 4", len(pairs), len(pairs)),
    ]
    in_8_bits = machine_of(replace(run, model=rounded(run.model, "int8")))
    assert found[1].quality == pytest.approx(quality(machine_of(run), pairs))
    assert found[1].page_quality == pytest.approx(quality(in_8_bits, pairs), abs=0.5)
    assert f"{len(pairs)} of {len(pairs)} outputs (100.0 %)" in table(found, "int8")[0]


def test_a_wrong_page_is_found_out(run: TrainedRun, pairs: list[tuple[str, str]], engine_of: Any) -> None:
    wrong = replace(run, model=rounded(run.model, "float32"))
    wrong.model.decoder.layers[0].cross_attn.v_proj.weight.data.mul_(-1)  # pyright: ignore
    greedy, _ = Comparison(machine_of(run), engine_of(wrong), engine_of(wrong), pairs[:20]).agreements()
    assert greedy.share < 0.9


def test_language_models_and_sentence_encoders(
    tokenizer: Tokenizer, pairs: list[tuple[str, str]], engine_of: Any
) -> None:
    choices: Any
    for choices in ({"text_only": True, "architecture": "decoder_only"}, {"architecture": "encoder_only"}):
        run = made(tokenizer, pairs, steps=20 if "text_only" in choices else 0, **choices)
        [one] = Comparison(machine_of(run), engine_of(run), engine_of(run), pairs[:12]).agreements()
        assert (one.equal, one.compared) == (12, 12)
        assert one.page_quality == pytest.approx(one.quality, abs=1e-3)


def test_an_engine_that_fails_says_why(run: TrainedRun, engine_of: Any) -> None:
    engine: Engine = engine_of(run)
    with pytest.raises(EnvironmentFault, match="the engine in node failed"):
        engine.ask({"kind": "nonsense"})
    with pytest.raises(EnvironmentFault, match="needs node 20"), running(b"", "false"):
        pass
