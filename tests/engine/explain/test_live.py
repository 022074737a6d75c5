"""live.js and questions.js: what a page computes for a sentence is what `tfm explain` finds for it."""

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from helpers.explained import SMALL, layers_of, read_page, write_run
from helpers.javascript import needs_node
from helpers.live import live

from tfm.data.tokenizer import EOS_ID, Tokenizer
from tfm.engine.explain.explanation import explain
from tfm.engine.explain.page import page
from tfm.engine.explain.probes import head_off
from tfm.engine.explain.text import Focus
from tfm.engine.explain.trace import trace
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.runs.load import TrainedRun, load_run
from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.attention import attention_modules
from tfm.seq2seq.model.config import Activation, Architecture, NormOrder, Positions

pytestmark = needs_node
SENTENCE = "my sister finds two apples"
TOLERANCE = 1e-4
VARIANTS: list[dict[str, Any]] = [
    *({"architecture": one} for one in get_args(Architecture)),
    *({"architecture": one, "norm_order": "pre"} for one in get_args(Architecture)),
    *({"activation": one} for one in get_args(Activation)),
    *({"norm_order": one} for one in get_args(NormOrder)),
    *({"positions": one} for one in get_args(Positions)),
    *({"architecture": "decoder_only", "positions": one} for one in get_args(Positions)),
    {"architecture": "encoder_only", "positions": "rotary"},
    {"d_k": 4, "d_v": 7, "tie_embeddings": False, "output_bias": True},
    {"attention_bias": False, "feed_forward_output_bias": False, "scale_embeddings": False, "norm_eps": 1e-3},
    {"architecture": "decoder_only", "text_only": True},
]


def made(folder: Path, tokenizer: Tokenizer, **settings: Any) -> tuple[RunDirectory, TrainedRun]:
    """A run with random weights."""
    text_only = settings.pop("text_only", False)
    sizes = SMALL | layers_of(settings.get("architecture", "encoder_decoder")) | settings
    run = write_run(folder / "run", tokenizer, ModelConfig(**sizes), text_only=text_only)
    return RunDirectory(run), load_run(run, None, device="cpu")


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_all_is_what_tfm_explain_finds(tmp_path: Path, tokenizer: Tokenizer, variant: dict[str, Any]) -> None:
    run, loaded = made(tmp_path, tokenizer, **variant)
    data, arrays = read_page(page(explain(run, loaded, SENTENCE), Focus()))
    found = live(loaded, SENTENCE)
    assert "error" not in found, found
    assert found["arrays"].keys() - {"output_layer"} == arrays.keys()
    for name, expected in arrays.items():
        np.testing.assert_allclose(found["arrays"][name], expected, atol=TOLERANCE, rtol=TOLERANCE, err_msg=name)
    for name in ("text", "axes", "written", "output", "search", "steps", "greedy", "beam", "prefix"):  # not samples
        if name in found or data[name]:
            assert_alike(found.get(name, 0), data[name], name)
    assert_alike(found["heads_off"], data["heads_off"], "heads_off")
    assert [one["station"] for one in found["questions"]] == [one["station"] for one in data["questions"]]
    for ours, theirs in zip(found["questions"], data["questions"], strict=True):
        assert ours == theirs


def assert_alike(found: Any, expected: Any, name: str) -> None:
    """The same things, numbers up to the tolerance."""
    if isinstance(expected, dict):
        assert found.keys() >= expected.keys(), name
        for key, value in expected.items():
            assert_alike(found[key], value, f"{name}.{key}")
    elif name.endswith(".candidates"):  # equally likely ones may change places
        assert sum(one not in found for one in expected) <= 1 and len(found) == len(expected)
    elif isinstance(expected, list):
        assert len(found) == len(expected), name
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_alike(one, other, f"{name}[{i}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=TOLERANCE, rel=TOLERANCE), name
    else:
        assert found == expected, name


@pytest.mark.parametrize("architecture", get_args(Architecture))
def test_heads_that_are_off(tmp_path: Path, tokenizer: Tokenizer, architecture: Any) -> None:
    """As when the columns of the output projection are 0."""
    run, loaded = made(tmp_path, tokenizer, architecture=architecture)
    name = list(attention_modules(loaded.model))[-1]
    found = live(loaded, SENTENCE, {"off": [[name, 1]]})
    with torch.inference_mode(), head_off(attention_modules(loaded.model)[name], 1):
        data, arrays = read_page(page(explain(run, loaded, SENTENCE), Focus()))
    assert_alike(found["written"], data["written"], "written")
    for part in ("", "_residual"):
        np.testing.assert_allclose(found["arrays"][name + part], arrays[name + part], atol=TOLERANCE, rtol=TOLERANCE)


@pytest.mark.parametrize("architecture", get_args(Architecture))
def test_a_state_of_another_sentence(tmp_path: Path, tokenizer: Tokenizer, architecture: Any) -> None:
    """As when a hook of torch puts it there."""
    _, loaded = made(tmp_path, tokenizer, architecture=architecture)
    model: Any = loaded.model
    stack = "decoder" if architecture == "decoder_only" else "encoder"
    other = torch.tensor([[*tokenizer.src.encode("the cat sees a dog."), EOS_ID]])
    src = torch.tensor([[*tokenizer.src.encode(SENTENCE), EOS_ID]])
    patch = {"text": "the cat sees a dog.", "layer": 0, "from": 2, "to": 1}
    found = live(loaded, SENTENCE, {"patch": patch})
    tgt = torch.tensor([[2, *(one["id"] for one in found["written"][:-1])]])
    empty = torch.tensor([[]], dtype=torch.long)

    def run(ids: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return model.embed(ids) if architecture == "encoder_only" else model(ids, target)

    name = f"{stack}.layers.0.feed_forward_residual"
    with torch.inference_mode():
        state = trace(model, lambda: run(other, torch.tensor([[2]]) if architecture != "encoder_only" else empty))[name]
        layer = model.get_submodule(name)

        def put(module: Any, inputs: Any, output: torch.Tensor) -> torch.Tensor:
            output = output.clone()
            output[0, 1] = state[2]
            return output

        hook = layer.register_forward_hook(put)
        expected = run(src, tgt)[0]
        hook.remove()
        plain = run(src, tgt)[0]
    last = "sentence.vector" if architecture == "encoder_only" else "output_layer"
    np.testing.assert_allclose(found["arrays"][last].squeeze(), expected, atol=TOLERANCE, rtol=TOLERANCE)
    assert not np.allclose(plain, expected, atol=1e-2)
    assert found["left_out"] is None
    assert len(found["others"]) == other.size(1)


@pytest.mark.parametrize("text_only", [False, True])
@pytest.mark.parametrize("architecture", get_args(Architecture))
def test_pieces_that_are_left_out(tmp_path: Path, tokenizer: Tokenizer, architecture: Any, text_only: bool) -> None:
    if text_only and architecture != "decoder_only":
        return
    _, loaded = made(tmp_path, tokenizer, architecture=architecture, text_only=text_only)
    model: Any = loaded.model
    found = live(loaded, SENTENCE)["left_out"]
    ids = tokenizer.src.encode(SENTENCE)
    if architecture == "encoder_only":
        with torch.inference_mode():
            whole, *less = (model.embed(torch.tensor([[*one, EOS_ID]]))[0] for one in (ids, *without_each(ids)))
        np.testing.assert_allclose(found["cosines"], [float(whole @ one) for one in less], atol=TOLERANCE)
        return
    written = [one["id"] for one in live(loaded, SENTENCE)["written"][:-1]]

    def gains(src: list[int], tgt: list[int]) -> list[float]:
        with torch.no_grad():
            logits = model(torch.tensor([src], dtype=torch.long), torch.tensor([[2, *tgt]]))[0]
        logits[:, tokenizer.tgt.forbidden_ids()] = float("-inf")
        return logits.log_softmax(dim=-1).gather(1, torch.tensor([*tgt, EOS_ID])[:, None])[:, 0].tolist()

    whole = gains([] if text_only else [*ids, EOS_ID], written)
    if text_only:
        for i, row in enumerate(found["changes"]):
            rest = gains([], [*written[:i], *written[i + 1 :]])
            assert row[: i + 1] == [None] * (i + 1)
            np.testing.assert_allclose(row[i + 1 :], np.subtract(rest[i:], whole[i + 1 :]), atol=TOLERANCE)
        return
    for row, less in zip(found["changes"], without_each(ids), strict=True):
        np.testing.assert_allclose(row, np.subtract(gains([*less, EOS_ID], written), whole), atol=TOLERANCE)


def without_each(ids: list[int]) -> list[list[int]]:
    """The list without each of its members in turn."""
    return [[*ids[:i], *ids[i + 1 :]] for i in range(len(ids))]


def test_top_p_and_temperature_at_a_step(tmp_path: Path, tokenizer: Tokenizer) -> None:
    _, loaded = made(tmp_path, tokenizer)
    found = live(loaded, SENTENCE, restricted={"step": 1, "temperature": 0.7, "top_p": 0.8})
    logits = found["arrays"]["output_layer"][1].copy()
    logits[tokenizer.tgt.forbidden_ids()] = -np.inf
    shares = np.exp(logits / 0.7 - np.max(logits / 0.7))
    shares = np.sort(shares / shares.sum())[::-1]
    count = int((np.cumsum(shares) - shares < 0.8).sum())
    assert found["restricted"]["count"] == count
    expected = shares[:count] / shares[:count].sum()
    np.testing.assert_allclose([p for _, p in found["restricted"]["shares"]], expected[:21], atol=1e-5)


@pytest.mark.parametrize(
    ("text", "problem"), [(" ", "the text is blank"), ("cat " * 60, "this model reads at most 39"), ("two apples", "")]
)
def test_what_cannot_be_explained(tmp_path: Path, tokenizer: Tokenizer, text: str, problem: str) -> None:
    _, loaded = made(tmp_path, tokenizer)
    assert problem in live(loaded, text).get("error", "")
