"""The presets that come with tfm."""

import subprocess
import sys
from dataclasses import fields, replace
from importlib import resources

import pytest

from tfm.configs import RunConfig, load_config, parse_config, preset_names
from tfm.configs import presets as described
from tfm.system.errors import UsageError

PRESETS = sorted(preset.name for preset in described.PRESETS)


def text_of(name: str) -> str:
    return (resources.files("tfm.configs") / f"{name}.yaml").read_text("utf-8")


def test_all_presets_are_described() -> None:
    assert preset_names() == PRESETS and len(set(PRESETS)) == len(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_preset_is_valid_and_says_what_it_is_for(name: str) -> None:
    tree = load_config(name)
    config = parse_config(tree)
    assert isinstance(config, RunConfig)
    assert text_of(name).startswith("# ")
    assert list(tree) == [section.name for section in fields(RunConfig) if section.name in tree], "sections in order"
    for section, values in tree.items():
        for key, value in values.items():
            made = getattr(getattr(config, section), key)
            assert (list(made) if isinstance(made, tuple) else made) == value


@pytest.mark.parametrize("name", PRESETS)
def test_preset_fits_a_screen(name: str) -> None:
    lines = text_of(name).splitlines()
    assert len(lines) <= 60 and max(map(len, lines)) <= 120


def test_base_is_the_model_of_the_paper() -> None:
    config = parse_config(load_config("base"))
    model, training = config.model, config.training
    assert (
        model.d_model,
        model.d_ff,
        model.num_heads,
        model.key_size,
        model.value_size,
    ) == (512, 2048, 8, 64, 64)
    assert (model.num_encoder_layers, model.num_decoder_layers, model.dropout) == (
        6,
        6,
        0.1,
    )
    assert training.learning_rate == pytest.approx((512 * 4000) ** -0.5, rel=1e-3)


def test_the_largest_preset_for_own_data_is_base_with_a_smaller_vocabulary() -> None:
    base, largest = (parse_config(load_config(name)) for name in ("base", "pairs-1m"))
    assert largest == replace(base, tokenizer=replace(base.tokenizer, vocab_size=32_000))


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("pairs-10k", "pairs-100k"), ("tyo", "toy"), ("multi30", "multi30k"), ("bas", "base")],
)
def test_missing_preset_offers_the_nearest(typed: str, meant: str) -> None:
    with pytest.raises(
        UsageError,
        match=f"there is no preset '{typed}'; did you mean {meant}[?] Presets: base, g2p, ",
    ):
        load_config(typed)


def test_missing_preset_without_a_near_one_lists_all() -> None:
    with pytest.raises(
        UsageError,
        match=r"there is no preset 'zzzz'\. Presets: base, .*, toy-text; or name a \.yaml file",
    ):
        load_config("zzzz")


def test_configurations_do_without_torch() -> None:
    code = "import sys, tfm.configs as c; c.parse_config(c.load_config('toy')); sys.exit('torch' in sys.modules)"
    subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"],
        check=True,
    )
