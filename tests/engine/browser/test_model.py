"""engine.js, model: every number is the model's, for every choice of the configuration."""

import base64
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from helpers.explained import SMALL, layers_of, write_run
from helpers.javascript import javascript, needs_node
from helpers.marks import pairwise

from tfm.data.tokenizer import BOS_ID, EOS_ID, Tokenizer
from tfm.engine.browser.pack import pack
from tfm.engine.runs.load import TrainedRun, load_run
from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.attention import attention_maps
from tfm.seq2seq.model.config import Activation, Architecture, NormOrder, Positions

pytestmark = needs_node
TOLERANCE = 1e-4
VARIANTS: list[dict[str, Any]] = [
    {"architecture": architecture, "norm_order": norm_order, "activation": activation, "positions": positions}
    for architecture in get_args(Architecture)
    for norm_order in get_args(NormOrder)
    for activation in get_args(Activation)
    for positions in get_args(Positions)
]
VARIANTS += [
    {"d_k": 4, "d_v": 7, "positions": "rotary"},
    {"d_model": 18, "d_ff": 13, "num_heads": 3},
    {"tie_embeddings": False, "output_bias": True},
    {"attention_bias": False, "feed_forward_output_bias": False, "scale_embeddings": False, "norm_eps": 1e-3},
    {"attention_output_bias": False, "architecture": "decoder_only"},
]
BODY = """
  const { header, tensors } = await engine.unpacked(Buffer.from(data.packed, "base64"));
  const model = new engine.Transformer(header, tensors), { src, tgt } = data;
  if (header.config.architecture === "encoder_only") return { vector: [...model.vector(src)] };
  const maps = {};
  model.look = (name, values, shape) => { if (name.endsWith(".weights")) maps[name] = { shape, values: [...values] }; };
  const all = model.forward(src, tgt).map((row) => [...row]);
  model.look = null;
  const state = model.begin(src), steps = [];
  state.reorder([0, 0]);
  for (const id of tgt) steps.push([...model.step([id, id], state)[1]].map((one) => Math.max(one, -1e9)));
  return { all, steps, maps };"""


@pytest.fixture
def made(tmp_path: Path, tokenizer: Tokenizer) -> Any:
    """Makes a run with a random model, and reads it."""

    def make(text_only: bool = False, **settings: Any) -> TrainedRun:
        sizes = SMALL | layers_of(settings.get("architecture", "encoder_decoder")) | settings
        run = write_run(tmp_path / "run", tokenizer, ModelConfig(**sizes), text_only=text_only)
        return load_run(run, None, device="cpu")

    return make


def in_javascript(loaded: TrainedRun, src: list[int], tgt: list[int], body: str = BODY, **data: Any) -> Any:
    packed = base64.b64encode(pack(loaded, "float32")).decode()
    return javascript(body, {"packed": packed, "src": src, "tgt": tgt, **data})


@pytest.mark.parametrize("variant", pairwise(VARIANTS), ids=lambda variant: "-".join(map(str, variant.values())))
def test_the_forward_pass(made: Any, tokenizer: Tokenizer, variant: dict[str, Any]) -> None:
    loaded = made(**variant)
    src, tgt = (
        [*tokenizer.src.encode("my sister finds two apples."), EOS_ID],
        [BOS_ID, *tokenizer.tgt.encode("das Kind")],
    )
    found = in_javascript(loaded, src, tgt)
    model: Any = loaded.model
    with torch.inference_mode():
        if variant.get("architecture") == "encoder_only":
            np.testing.assert_allclose(found["vector"], model.embed(torch.tensor([src]))[0], atol=TOLERANCE, rtol=0)
            return
        with attention_maps(model) as maps:
            logits = model(torch.tensor([src]), torch.tensor([tgt]))[0]
        np.testing.assert_allclose(found["all"], logits, atol=TOLERANCE, rtol=0)
        logits[:, tokenizer.tgt.forbidden_ids()] = float("-inf")
        expected = logits.log_softmax(dim=-1).clamp(min=-1e9)
        np.testing.assert_allclose(found["steps"], expected, atol=TOLERANCE, rtol=0)
    assert found["maps"].keys() == {f"{name}.weights" for name in maps}
    for name, [weights] in maps.items():
        one = found["maps"][f"{name}.weights"]
        values = np.array(one["values"]).reshape(one["shape"])
        np.testing.assert_allclose(values, weights[0], atol=TOLERANCE, rtol=0, err_msg=name)


def test_a_text_alone(made: Any, tokenizer: Tokenizer) -> None:
    loaded, tgt = made(text_only=True, architecture="decoder_only"), [BOS_ID, *tokenizer.tgt.encode("das Kind")]
    found = in_javascript(loaded, [], tgt)
    model: Any = loaded.model
    with torch.inference_mode():
        logits = model(torch.empty(1, 0, dtype=torch.long), torch.tensor([tgt]))[0]
    np.testing.assert_allclose(found["all"], logits, atol=TOLERANCE, rtol=0)


def test_what_looks_on_may_change_what_is_computed(made: Any, tokenizer: Tokenizer) -> None:
    """A head that is switched off is one whose columns of the output projection are 0."""
    loaded = made()
    src, tgt = [*tokenizer.src.encode("the cat sees a red ball."), EOS_ID], [BOS_ID, *tokenizer.tgt.encode("das Kind")]
    body = """
      const { header, tensors } = await engine.unpacked(Buffer.from(data.packed, "base64"));
      const model = new engine.Transformer(header, tensors);
      model.look = (name, values, [rows, heads, size]) => {
        if (name !== "decoder.layers.1.cross_attn.heads") return;
        for (let row = 0; row < rows; row++) values.fill(0, (row * heads + 1) * size, (row * heads + 2) * size);
      };
      return model.forward(data.src, data.tgt).map((row) => [...row]);"""
    found = in_javascript(loaded, src, tgt, body)
    model: Any = loaded.model
    with torch.inference_mode():
        projection = model.decoder.layers[1].cross_attn.out_proj
        projection.weight[:, projection.in_features // 2 :] = 0
        np.testing.assert_allclose(found, model(torch.tensor([src]), torch.tensor([tgt]))[0], atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("sizes", [(8, 12, 1), (13, 20, 3), (4, 4, 17), (70, 8, 40), (7, 6, 2), (3, 8, 2)], ids=str)
def test_webassembly_multiplies_as_javascript_does(sizes: tuple[int, int, int]) -> None:
    outputs, inputs, rows = sizes
    body = """
      const [outputs, inputs, rows] = data;
      const numbers = (n) => Float32Array.from({ length: n }, (_, i) => Math.sin(i * i + 1));
      const matrix = { shape: [outputs, inputs], values: numbers(outputs * inputs) };
      const plain = { weight: matrix.values, bias: numbers(outputs), outputs, inputs }, x = numbers(rows * inputs);
      const slow = engine.linear(plain, x, rows);
      new engine.Multiplier([matrix]);
      const fast = engine.linear({ ...plain, weight: matrix.values, at: matrix.at }, x, rows);
      return { slow: [...slow], fast: [...fast], isUsed: Boolean(matrix.at) };"""
    found = javascript(body, list(sizes))
    assert found["isUsed"] == (inputs % 4 == 0 and outputs >= 4)
    weight = np.sin(np.arange(outputs * inputs, dtype=np.float64) ** 2 + 1).reshape(outputs, inputs)
    x, bias = np.sin(np.arange(rows * inputs) ** 2 + 1.0).reshape(rows, inputs), np.sin(np.arange(outputs) ** 2 + 1.0)
    for name in ("slow", "fast"):
        np.testing.assert_allclose(np.array(found[name]).reshape(rows, outputs), x @ weight.T + bias, atol=1e-4)


def test_a_browser_without_webassembly_does_as_well(made: Any, tokenizer: Tokenizer) -> None:
    loaded = made()
    src, tgt = [*tokenizer.src.encode("the cat sees a red ball."), EOS_ID], [BOS_ID]
    body = """
      const { header, tensors } = await engine.unpacked(Buffer.from(data.packed, "base64"));
      const { WebAssembly } = globalThis;
      globalThis.WebAssembly = undefined;
      const found = [...new engine.Transformer(header, tensors).forward(data.src, data.tgt)[0]];
      globalThis.WebAssembly = WebAssembly; // node itself needs it at some time
      return found;"""
    model: Any = loaded.model
    with torch.inference_mode():
        logits = model(torch.tensor([src]), torch.tensor([tgt]))[0, 0]
    np.testing.assert_allclose(in_javascript(loaded, src, tgt, body), logits, atol=TOLERANCE, rtol=0)


def test_the_error_function() -> None:
    numbers = np.linspace(-7, 7, 999)
    expected = torch.special.erf(torch.tensor(numbers))
    np.testing.assert_allclose(javascript("return data.map(engine.erf)", numbers.tolist()), expected, atol=1e-8)
