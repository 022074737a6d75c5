"""What cannot be exported, and that it is known without the extra."""

import subprocess
import sys
from dataclasses import replace
from itertools import product
from typing import get_args

from tfm.engine.exportable import QUANTIZATIONS, why_not_exportable
from tfm.seq2seq.model.config import Activation, ModelConfig, NormOrder, Positions


def test_every_choice_of_a_model_can_be_exported() -> None:
    for norm_order, activation, positions in product(get_args(NormOrder), get_args(Activation), get_args(Positions)):
        config = replace(ModelConfig(), norm_order=norm_order, activation=activation, positions=positions)
        assert why_not_exportable(config) == []
    assert why_not_exportable(ModelConfig(d_k=5, d_v=77), vocab_size=1_000_000) == []


def test_what_the_file_format_cannot_write_is_refused() -> None:
    heads = why_not_exportable(ModelConfig(num_heads=32_768, d_k=1, d_v=1))
    assert heads == ["num_heads is 32,768, and CTranslate2 takes at most 32,767"]
    wide = why_not_exportable(ModelConfig(d_model=1024, d_ff=2**20))
    assert wide == ["the feed-forward network would be a matrix of 4.0 GiB, and CTranslate2 takes less than 4"]
    assert why_not_exportable(ModelConfig(d_model=1024, d_ff=2**20 - 1)) == []
    assert "vocabulary" in why_not_exportable(ModelConfig(d_model=2048), vocab_size=2**19)[0]
    assert "queries" in why_not_exportable(ModelConfig(d_v=2**20))[0]
    assert "positions" in why_not_exportable(ModelConfig(d_model=2**15, d_k=1, d_v=1, max_seq_len=2**15))[0]


def test_the_quantizations_are_those_of_ctranslate2() -> None:
    from ctranslate2.specs.model_spec import ACCEPTED_MODEL_TYPES

    assert sorted(QUANTIZATIONS) == sorted(ACCEPTED_MODEL_TYPES)


def test_knowing_takes_neither_torch_nor_the_extra() -> None:
    code = "import sys, tfm.engine.exportable; print(*sys.modules, sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "ctranslate2"} & set(loaded)
