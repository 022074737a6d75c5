"""What is packed: every weight once, the vocabularies as they are, and the characters that JavaScript cannot name."""

import gzip
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import regex

from tfm.engine.browser.pack import characters, pack
from tfm.engine.runs.load import TrainedRun, load_run


@pytest.fixture(scope="module")
def loaded(run_directory: Path) -> TrainedRun:
    """A run."""
    return load_run(run_directory, None, device="cpu")


def read(packed: bytes) -> tuple[dict[str, Any], bytes]:
    content = gzip.decompress(packed)
    (length,) = struct.unpack("<I", content[:4])
    return json.loads(content[4 : 4 + length]), content[4 + length :]


def test_every_weight_is_there_once(loaded: TrainedRun) -> None:
    header, parts = read(pack(loaded, "float32"))
    named = dict(loaded.model.named_parameters(remove_duplicate=False))
    assert header["tensors"].keys() | header["shared"].keys() == named.keys()
    for name, parameter in named.items():
        entry = header["tensors"][header["shared"].get(name, name)]
        values = np.frombuffer(parts, "<f4", entry["length"] // 4, entry["offset"]).reshape(entry["shape"])
        np.testing.assert_array_equal(values, parameter.detach().numpy())
        assert entry["offset"] % 8 == 0
    [vocabulary] = header["vocabularies"]
    assert parts[vocabulary["offset"] :][: vocabulary["length"]] == loaded.tokenizer.src.model


def test_fewer_bits_are_fewer_bytes_and_the_same_run_is_the_same_file(loaded: TrainedRun) -> None:
    sizes = [len(pack(loaded, weights)) for weights in ("int8", "float16", "float32")]
    assert sizes == sorted(sizes)
    assert pack(loaded, "int8") == pack(loaded, "int8")


def test_the_header_says_how_the_run_translates(loaded: TrainedRun) -> None:
    header, _ = read(pack(loaded, "int8"))
    facts = loaded.description.corpus_facts()
    assert header["purpose"] == "translator" and header["weights"] == "int8"
    assert header["decoding"] == loaded.description.decoding
    assert header["facts"]["loops_are_faults"] == facts.loops_are_faults
    assert header["forbidden"] == loaded.tokenizer.tgt.forbidden_ids()
    assert header["phrases"] is None, "this vocabulary has no symbols"


def test_characters_are_written_as_ranges() -> None:
    found = characters()
    for character, name in (("ก", "complex"), ("漢", "unspaced"), ("\u094d", "joiner"), ("\u0e3a", "killer")):
        ranges = regex.findall(r"\\u\{([0-9a-f]+)\}-\\u\{([0-9a-f]+)\}", found[name])
        assert any(int(first, 16) <= ord(character) <= int(last, 16) for first, last in ranges), (character, name)
        assert not any(int(first, 16) <= ord("a") <= int(last, 16) for first, last in ranges)
    assert {ord("0"), ord("٠"), ord("०")} < set(found["zeros"])
