"""Swapped parts: each variant changes what it says and nothing else; the script trains, prints and draws."""

import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from helpers.tiny_run import Configure
from torch import Tensor, nn

from tfm.configs import load_config, parse_config
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.training.build import build_trainer, describe_model
from tfm.engine.training.prepare import prepare_data
from tfm.engine.translator import Translator
from tfm.engine.workers.ranks import Ranks
from tfm.seq2seq.decoding.config import DecodingConfig
from tfm.seq2seq.model.attention import MultiHeadAttention, attention_maps
from tfm.seq2seq.model.config import ModelConfig
from tfm.seq2seq.model.decoder_only import DecoderOnly
from tfm.seq2seq.model.encoder_decoder import Transformer
from tfm.seq2seq.training.progress import Progress
from tfm.system.reporter import Quiet

from .test_scripts import FOLDER

DOCS = FOLDER.parent / "docs"
SIZES: dict[str, Any] = {"d_model": 16, "d_ff": 24, "num_heads": 4, "dropout": 0.0, "norm_order": "pre"}
SRC = torch.tensor([[5, 6, 7, 8, 9], [9, 5, 5, 6, 7]])
TGT = torch.tensor([[2, 11, 12, 13], [2, 14, 11, 15]])
ORDER = [3, 1, 4, 0, 2]
Script = tuple[ModuleType, ModuleType]


@pytest.fixture(scope="module")
def script() -> Script:
    """swaps.py and parts.py as modules."""
    sys.path.insert(0, str(FOLDER))
    try:
        import parts  # pyright: ignore[reportMissingImports]
        import swaps  # pyright: ignore[reportMissingImports]
    finally:
        sys.path.remove(str(FOLDER))
    return swaps, parts


@pytest.fixture
def swapped(script: Script) -> Callable[..., Any]:
    """Makes a small model with the weights of all others, one part of it swapped."""

    def make(name: str, layers: int = 2) -> Any:
        swap = script[0].VARIANTS[name]
        torch.manual_seed(0)
        if swap in script[0].ENCODER_DECODER:
            config = ModelConfig(**SIZES, num_encoder_layers=layers, num_decoder_layers=layers)
            model = Transformer(config, src_vocab_size=20, tgt_vocab_size=20, shared_vocab=True)
        else:
            stacks: dict[str, Any] = {
                "architecture": "decoder_only",
                "num_encoder_layers": 0,
                "num_decoder_layers": layers,
            }
            model = DecoderOnly(ModelConfig(**SIZES, **stacks), vocab_size=20)
        swap(model)
        return model.eval()

    return make


def change(model: Any, src: Tensor = SRC, tgt: Tensor = TGT) -> Tensor:
    """By how much other tokens change each position's prediction."""
    with torch.no_grad():
        return (model(src, tgt) - model(SRC, TGT)).abs().amax(dim=-1)  # (B, T)


def with_other_last_token(ids: Tensor) -> Tensor:
    other = ids.clone()
    other[:, -1] = 17
    return other


def attend(attention: MultiHeadAttention, x: Tensor, num_heads: int, scale: float) -> Tensor:
    """Self-attention written out, head by head."""
    q, k, v = (linear(x).chunk(num_heads, dim=-1) for linear in (attention.q_proj, attention.k_proj, attention.v_proj))
    heads = [(a @ b.mT * scale).softmax(-1) @ c for a, b, c in zip(q, k, v, strict=True)]
    return attention.out_proj(torch.cat(heads, dim=-1))


@pytest.mark.parametrize(("name", "blind"), [("base", False), ("no_encoder_positions", True), ("no_positions", True)])
def test_without_positions_the_encoder_gives_a_permuted_output_for_a_permuted_input(
    swapped: Callable[..., Any], name: str, blind: bool
) -> None:
    model = swapped(name)
    with torch.no_grad():
        difference = (model.encode(SRC)[:, ORDER] - model.encode(SRC[:, ORDER])).abs().max()
    assert (difference < 1e-5) == blind
    assert (change(model, src=SRC[:, ORDER]).max() < 1e-5) == blind, "and the decoder takes it as a set"


@pytest.mark.parametrize("name", ["no_decoder_positions", "no_positions"])
def test_without_positions_two_layers_of_a_decoder_know_the_order_from_the_mask(
    swapped: Callable[..., Any], name: str
) -> None:
    other = TGT[:, [0, 2, 1, 3]]
    assert change(swapped(name, layers=1), tgt=other)[:, -1].max() < 1e-5
    assert change(swapped(name, layers=2), tgt=other)[:, -1].min() > 1e-3
    assert change(swapped("base", layers=1), tgt=other)[:, -1].min() > 1e-3


@pytest.mark.parametrize(
    ("name", "num_heads", "scale"),
    [("base", 4, 1 / 2), ("no_scale", 4, 1), ("one_head", 1, 1 / 4), ("one_head_no_scale", 1, 1)],
)
def test_attention_is_that_of_the_formula(swapped: Callable[..., Any], name: str, num_heads: int, scale: float) -> None:
    model = swapped(name)
    with torch.no_grad(), attention_maps(model) as maps:
        model(SRC, TGT)
    assert {calls[0].size(1) for calls in maps.values()} == {num_heads} and len(maps) == 6
    assert all(torch.allclose(calls[0].sum(-1), torch.tensor(1.0)) for calls in maps.values())
    attention, x = model.encoder.layers[0].self_attn, torch.randn(2, 5, 16)
    with torch.no_grad():
        found = attention(x, x)
        torch.testing.assert_close(found, attend(attention, x, num_heads, scale))


@pytest.mark.parametrize(
    ("name", "residual", "norm"), [("base", 1, True), ("no_residual", 0, True), ("no_norm", 1, False)]
)
def test_a_layer_is_that_of_the_formula(swapped: Callable[..., Any], name: str, residual: float, norm: bool) -> None:
    model, x = swapped(name), torch.randn(2, 5, 16)
    layer = model.encoder.layers[1]

    def normalised(x: Tensor) -> Tensor:
        return nn.functional.layer_norm(x, (16,)) if norm else x  # fresh gains are 1, fresh biases 0

    with torch.no_grad():
        y = residual * x + attend(layer.self_attn, normalised(x), 4, 1 / 2)
        torch.testing.assert_close(layer(x, None), residual * y + layer.feed_forward(normalised(y)))
        torch.testing.assert_close(model.encoder.norm(x), normalised(x))
    norms = sum(isinstance(module, nn.LayerNorm) for module in model.modules())
    assert norms == (12 if norm else 0)
    assert change(model, tgt=with_other_last_token(TGT))[:, :-1].max() == 0


def test_dropout_is_kept_where_the_residual_is_not(script: Script) -> None:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {**SIZES, "dropout": 0.5, "num_encoder_layers": 1, "num_decoder_layers": 1}
    model: Any = Transformer(ModelConfig(**sizes), src_vocab_size=20, tgt_vocab_size=20, shared_vocab=True)
    script[0].no_residual(model)
    out = model.encoder.layers[0].feed_forward_residual.train()(torch.ones(50, 16), torch.ones_like)
    assert out.unique().tolist() == [0, 2]


def test_an_all_true_mask_lets_a_decoder_see_later_tokens(swapped: Callable[..., Any]) -> None:
    other = with_other_last_token(TGT)
    assert change(swapped("base"), tgt=other)[:, :-1].max() == 0
    assert change(swapped("all_true_mask"), tgt=other).min() > 1e-4
    assert change(swapped("all_true_mask"), src=SRC[:, ORDER]).min() > 1e-4, "and the source, too"


def test_without_cross_attention_the_source_changes_nothing(swapped: Callable[..., Any]) -> None:
    assert change(swapped("base"), src=SRC[:, ORDER]).min() > 1e-4
    model = swapped("no_cross_attention")
    assert change(model, src=SRC[:, ORDER]).max() == 0
    assert change(model, tgt=with_other_last_token(TGT))[:, :-1].max() == 0


def test_the_literal_block_sees_later_tokens_through_its_second_attention(swapped: Callable[..., Any]) -> None:
    other = with_other_last_token(TGT)
    assert change(swapped("causal_block"), tgt=other)[:, :-1].max() == 0
    model = swapped("literal_block", layers=1)
    assert change(model, tgt=other).min() > 1e-4
    block, x = model.decoder.layers[0], torch.randn(1, 5, 16)
    causal, norm = torch.ones(5, 5, dtype=torch.bool).tril(), lambda x: nn.functional.layer_norm(x, (16,))
    with torch.no_grad():
        masked = torch.nn.functional.scaled_dot_product_attention(
            *(
                linear(norm(x)).unflatten(-1, (4, 4)).transpose(1, 2)
                for linear in (block.self_attn.q_proj, block.self_attn.k_proj, block.self_attn.v_proj)
            ),
            is_causal=True,
        )
        y = x + block.self_attn.out_proj(masked.transpose(1, 2).flatten(2))
        y = y + attend(block.second_attn, norm(y), 4, 1 / 2)
        torch.testing.assert_close(block(x, causal), y + block.feed_forward(norm(y)))


def test_the_literal_block_does_not_see_padding(swapped: Callable[..., Any]) -> None:
    model = swapped("literal_block")
    padded = torch.cat([TGT, torch.zeros(2, 3, dtype=torch.long)], dim=1)
    with torch.no_grad():
        torch.testing.assert_close(model(SRC, padded)[:, :4], model(SRC, TGT))


def test_a_swap_leaves_other_models_and_all_other_weights_as_they_are(
    swapped: Callable[..., Any], script: Script
) -> None:
    for ordinary, variants in (("base", "ENCODER_DECODER"), ("causal_block", "DECODER_ONLY")):
        before = swapped(ordinary)
        for swap in getattr(script[0], variants):
            weights = swapped(swap.__name__).state_dict()
            known = before.state_dict().keys() & weights.keys()
            assert len(known) > 20
            assert all(torch.equal(weights[name], before.state_dict()[name]) for name in known)
        with torch.no_grad():
            assert torch.equal(before(SRC, TGT), swapped(ordinary)(SRC, TGT))


class TestBench:
    """On a tiny corpus, with models of tiny presets."""

    @pytest.fixture
    def bench(self, script: Script, configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        settings = configure(max_steps=4, subword_dropout=0.0, both_directions=False, grad_accum_steps=1)
        monkeypatch.setattr(script[1], "preset", lambda _: settings)
        prepared = prepare_data(settings, RunDirectory(tmp_path / "run"), given_tokenizer=None, reporter=Quiet())
        return script[1].Bench(prepared, steps=4, sentences=6)

    def test_the_base_is_what_tfm_trains(self, script: Script, bench: Any) -> None:
        ours, settings = bench.trainer("base", 3), script[1].preset("base")
        theirs = build_trainer(
            ours.config,
            describe_model(settings, bench.prepared.tokenizer, bench.prepared.train.facts),
            bench.prepared.tokenizer,
            bench.prepared.train,
            device=torch.device("cpu"),
            dtype=torch.float32,
            muon_dtype=torch.float32,
            parts=1,
            group=Ranks(0, 1, 1),
            progress=Progress(),
        )
        for trainer in (ours, theirs):
            for _ in range(3):
                trainer.update(0.01)
        pairs = zip(ours.model.parameters(), theirs.model.parameters(), strict=True)
        assert all(torch.equal(one, other) for one, other in pairs)

    def test_greedy_translations_of_the_base_are_those_of_tfm(self, script: Script, bench: Any) -> None:
        trainer = bench.trainer("base", 1)
        for _ in range(30):
            trainer.update(0.01)
        model, sources = trainer.model.eval(), [src for src, _ in bench.prepared.dev_pairs]
        limits = DecodingConfig(max_length_factor=2.0, max_length_offset=10)
        translator = Translator(model, bench.prepared.tokenizer, limits)
        expected = [one.text for one in translator.translate(sources, beam_size=1, repair=False)]
        assert len(set(expected)) > 1
        assert script[1].translate(model, bench.prepared.tokenizer, sources) == expected

    def test_the_script_trains_what_is_missing_and_draws(
        self,
        script: Script,
        bench: Any,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        del bench  # it has made the presets tiny
        command = "parts.py --only base all_true_mask --steps 2 --sentences 2 --output"
        monkeypatch.setattr(sys, "argv", [*command.split(), str(tmp_path)])
        script[1].main()
        report = capsys.readouterr()
        for name in ("base", "all_true_mask"):
            assert f"{name}, seed 1" in report.err
            row = rf"^\| `{name}` \| 1 \| (\d+\.\d\d \| ){{2}}(\d+\.\d \| ){{2}}"
            assert re.search(row, report.out, re.MULTILINE), report.out
        lines = (tmp_path / "parts.jsonl").read_text(encoding="utf-8")
        assert len(lines.splitlines()) == 2 * (2 + 1)
        assert [path.name for path in tmp_path.glob("*.svg")] == ["parts-sight.svg"]
        picture = (tmp_path / "parts-sight.svg").read_bytes()
        script[1].main()
        assert capsys.readouterr() == (report.out, ""), "from the file, without training"
        assert (tmp_path / "parts.jsonl").read_text(encoding="utf-8") == lines
        assert (tmp_path / "parts-sight.svg").read_bytes() == picture

    def test_a_run_says_its_curve_and_its_end(self, bench: Any) -> None:
        *points, end = bench.run("all_true_mask", 2)
        assert [point["step"] for point in points] == [1, 2, 3, 4]
        assert all(math.isfinite(point[key]) for point in points for key in ("train_loss", "dev_loss"))
        assert (end["updates"], end["sentences"]) == (4, 6)
        assert 0 <= end["exact"] <= 100 and 0 <= end["empty"] <= 6
        assert {record["variant"] for record in (*points, end)} == {"all_true_mask"}


def test_the_ordinary_models_are_the_presets(script: Script) -> None:
    for name, swap in script[0].VARIANTS.items():
        expected = "toy" if swap in script[0].ENCODER_DECODER else "toy-decoder"
        assert script[1].preset(name) == parse_config(load_config(expected))
    toy, other = script[1].preset("base"), script[1].preset("causal_block")
    assert (toy.data, toy.tokenizer, toy.training) == (other.data, other.tokenizer, other.training), "they share data"


def test_means_and_spreads_are_those_of_the_seeds(script: Script) -> None:
    records = [
        {"variant": "base", "seed": seed, "steps": 9, **rest}
        for seed, rest in [
            (1, {"step": 5, "train_loss": 3.0, "dev_loss": 4.0}),
            (1, {"step": 9, "train_loss": 1.0, "dev_loss": 2.0}),
            (1, {"end": True, "exact": 50.0, "bleu": 60.0}),
            (2, {"step": 9, "train_loss": 1.5, "dev_loss": 2.0}),
            (2, {"end": True, "exact": 60.0, "bleu": 65.0}),
        ]
    ]
    (row,) = script[1].rows(records)
    assert row == ("`base`", "1, 2", "1.25 (1.00 .. 1.50)", "2.00", "55.0 (50.0 .. 60.0)", "62.5 (60.0 .. 65.0)")


class TestDocument:
    """docs/parts.md shows what is in docs/parts.jsonl."""

    def test_the_figures_are_those_of_the_file(self, script: Script) -> None:
        text = (DOCS / "parts.md").read_text(encoding="utf-8")
        lines = [json.loads(line) for line in (DOCS / "parts.jsonl").read_text(encoding="utf-8").splitlines()]
        rows = list(script[1].rows(lines))
        assert len(rows) == len(script[0].VARIANTS)
        for name, seeds, *figures in rows:
            row = next(line for line in text.splitlines() if line.startswith(f"| {name} | {seeds} |"))
            assert all(f"| {cell} |" in row for cell in figures), row

    def test_each_picture_is_shown_and_has_a_background(self, script: Script) -> None:
        text = (DOCS / "parts.md").read_text(encoding="utf-8")
        for name in script[0].TOGETHER:
            assert f"(parts-{name}.svg)" in text
            assert f"fill: {script[1].PAPER}" in (DOCS / f"parts-{name}.svg").read_text(encoding="utf-8")
