"""The key-value cache: decoding step by step computes what one pass over the whole target computes."""

from collections import Counter
from typing import Any, Literal

import pytest
import torch
from torch import Tensor, nn

from tfm.seq2seq.decoding.beam import beam_search
from tfm.seq2seq.decoding.cache import DecoderCache, LayerKeysValues, decoding_step
from tfm.seq2seq.model.config import ModelConfig
from tfm.seq2seq.model.transformer import Transformer

V, BOS, EOS = 11, 2, 3
SRC = torch.tensor([[4, 5, 6, 7, 3], [8, 3, 0, 0, 0], [9, 10, 4, 3, 0]])


def random_model(**changes: Any) -> Transformer:
    sizes: dict[str, Any] = {"d_model": 12, "d_ff": 20, "num_heads": 2, "num_encoder_layers": 2, "max_seq_len": 16}
    torch.manual_seed(5)
    config = ModelConfig(**{**sizes, "num_decoder_layers": 3, "dropout": 0.3, **changes})
    model = Transformer(config, src_vocab_size=V, tgt_vocab_size=V, shared_vocab=True)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model.eval()


def random_targets(rows: int, length: int) -> Tensor:
    return torch.cat([torch.full((rows, 1), BOS), torch.randint(4, V, (rows, length - 1))], dim=1)


@torch.no_grad()
@pytest.mark.parametrize("norm_order", ["pre", "post"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@pytest.mark.parametrize("sizes", [{}, {"d_k": 5, "d_v": 3}])
def test_step_by_step_equals_one_teacher_forced_pass(
    norm_order: Literal["pre", "post"], positions: Literal["sinusoidal", "learned"], sizes: dict[str, int]
) -> None:
    model = random_model(norm_order=norm_order, positions=positions, **sizes)
    targets = random_targets(3, 9)
    cache, step = DecoderCache(model, SRC), decoding_step(model)
    stepwise = torch.stack([step(targets[:, i], i, cache) for i in range(9)], dim=1)
    torch.testing.assert_close(stepwise, model(SRC, targets), atol=1e-5, rtol=0)


@torch.no_grad()
def test_rows_selected_midway_go_on_with_their_own_sentence_and_past() -> None:
    model = random_model()
    targets, rows = random_targets(3, 6), torch.tensor([2, 0, 0, 2])
    cache, step = DecoderCache(model, SRC), decoding_step(model)
    for i in range(3):
        step(targets[:, i], i, cache)
    cache.reorder(rows, rows)
    stepwise = torch.stack([step(targets[rows, i], i, cache) for i in range(3, 6)], dim=1)
    torch.testing.assert_close(stepwise, model(SRC[rows], targets[rows])[:, 3:], atol=1e-5, rtol=0)


@torch.no_grad()
def test_rows_reordered_midway_exchange_their_past_alone() -> None:
    model = random_model()
    src = SRC[[0, 0, 2]]
    targets, rows = random_targets(3, 6), torch.tensor([1, 0, 2])
    cache, step = DecoderCache(model, src), decoding_step(model)
    for i in range(3):
        step(targets[:, i], i, cache)
    cache.reorder(rows)
    stepwise = torch.stack([step(targets[rows, i], i, cache) for i in range(3, 6)], dim=1)
    torch.testing.assert_close(stepwise, model(src, targets[rows])[:, 3:], atol=1e-5, rtol=0)


@torch.no_grad()
def test_reorder_moves_the_past_and_with_new_sentences_mask_and_memory() -> None:
    model = random_model(num_decoder_layers=1)
    cache = DecoderCache(model, SRC)
    decoding_step(model)(torch.tensor([4, 5, 6]), 0, cache)
    mask, memory, past = cache.src_mask, cache.layers[0].memory, cache.layers[0].past
    assert past is not None

    cache.reorder(torch.tensor([1, 2, 0]))
    assert cache.src_mask is mask
    assert cache.layers[0].memory is memory
    moved = cache.layers[0].past
    assert moved is not None
    assert all(torch.equal(now, before[[1, 2, 0]]) for now, before in zip(moved, past, strict=True))

    cache.reorder(torch.tensor([2, 2]), torch.tensor([2, 2]))
    selected = cache.layers[0].past
    assert selected is not None
    assert torch.equal(cache.src_mask, mask[[2, 2]])
    assert all(torch.equal(now, before[[2, 2]]) for now, before in zip(cache.layers[0].memory, memory, strict=True))
    assert all(torch.equal(now, before[[0, 0]]) for now, before in zip(selected, past, strict=True))


def test_a_layer_appends_one_position_at_a_time() -> None:
    layer = LayerKeysValues((torch.zeros(1, 2, 4, 3), torch.zeros(1, 2, 4, 5)))
    new = [(torch.randn(1, 2, 1, 3), torch.randn(1, 2, 1, 5)) for _ in range(3)]
    for count, keys_values in enumerate(new, start=1):
        all_keys, all_values = layer.append(keys_values)
        assert torch.equal(all_keys, torch.cat([keys for keys, _ in new[:count]], dim=2))
        assert torch.equal(all_values, torch.cat([values for _, values in new[:count]], dim=2))


@torch.no_grad()
def test_the_encoder_output_is_encoded_and_projected_once_per_sentence() -> None:
    model = random_model()
    calls: Counter[str] = Counter()
    rows: set[int] = set()

    def count(name: str) -> Any:
        def hook(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            calls[name] += 1
            rows.add(inputs[0].size(0))

        return hook

    once = [name for name, _ in model.named_modules() if name.endswith(("cross_attn.k_proj", "cross_attn.v_proj"))]
    once += [name for name, _ in model.named_modules() if name.startswith("encoder.") and name.endswith("out_proj")]
    for name in once:
        model.get_submodule(name).register_forward_hook(count(name))
    found = beam_search(
        decoding_step(model, [0, 1, 2]),
        DecoderCache(model, SRC),
        beam_size=4,
        length_penalty=0.6,
        max_lengths=[9, 7, 8],
        bos_id=BOS,
        eos_id=EOS,
        n_best=4,
    )
    assert max(len(hypothesis.ids) for sentence in found for hypothesis in sentence) > 2
    assert len(once) == 2 * 3 + 2
    assert calls == dict.fromkeys(once, 1)
    assert rows == {len(SRC)}


@torch.no_grad()
def test_forbidden_tokens_are_impossible_and_the_others_untouched() -> None:
    model = random_model()
    last = torch.tensor([BOS, BOS, BOS])
    free = decoding_step(model)(last, 0, DecoderCache(model, SRC))
    restricted = decoding_step(model, [0, 2, 2, 7])(last, 0, DecoderCache(model, SRC))
    assert restricted[:, [0, 2, 7]].isinf().all()
    kept = [i for i in range(V) if i not in (0, 2, 7)]
    assert torch.equal(restricted[:, kept], free[:, kept])
