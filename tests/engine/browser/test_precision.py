"""Weights in fewer bits: what is written is what is read, and 8 bits are as near as 8 bits can be."""

from typing import Any

import numpy as np
import pytest
import torch

from tfm.engine.browser.precision import rounded, stored


def test_rows_have_their_own_scale() -> None:
    matrix = torch.randn(20, 33, generator=torch.Generator().manual_seed(1)) * torch.logspace(-6, 3, 20)[:, None]
    matrix[7] = 0
    one = stored(matrix, "int8")
    steps, scales = np.frombuffer(one.content, "i1").reshape(20, 33), np.frombuffer(one.scales, "<f4")
    assert one.type == "int8" and np.abs(steps).max() == 127
    error = np.abs(steps * scales[:, None] - matrix.numpy())
    assert (error <= np.abs(matrix.numpy()).max(axis=1, keepdims=True) / 254 * 1.0001).all()
    assert not steps[7].any() and scales[7] == 0


@pytest.mark.parametrize(("weights", "type_"), [("int8", "float32"), ("float16", "float32"), ("float32", "float32")])
def test_vectors_are_never_rounded(weights: Any, type_: str) -> None:
    vector = torch.randn(9)
    one = stored(vector, weights)
    assert (one.type, one.content, one.scales) == (type_, vector.numpy().tobytes(), b"")


def test_what_half_precision_cannot_hold_is_float32() -> None:
    assert stored(torch.full((2, 2), 1e5), "float16").type == "float32"
    assert stored(torch.full((2, 2), 1e4), "float16").type == "float16"


def test_a_rounded_model_is_what_a_reader_has(make_model: Any) -> None:
    model, choices = (
        make_model(1),
        list[tuple[Any, float]]([("int8", 1 / 250), ("float16", 1 / 2000), ("float32", 0.0)]),
    )
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    for weights, most in choices:
        found: Any = rounded(model, weights)
        for name, parameter in found.named_parameters():
            error = (parameter - before[name]).abs().max()
            assert error <= most * before[name].abs().max(), name
        assert found.src_embedding.tokens is found.tgt_embedding.tokens or not model.config.tie_embeddings
    assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters()), (
        "a copy is rounded"
    )
