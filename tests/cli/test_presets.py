"""`tfm presets`: what there is to choose from, and the settings themselves."""

import json
from pathlib import Path

from helpers.command import Tfm, error_of

from tfm.configs import load_config, preset_names


def test_the_list_fits_a_terminal_and_names_all(tfm: Tfm) -> None:
    done = tfm("presets")
    assert done.returncode == 0, error_of(done)
    title, *rows = done.stdout.decode().splitlines()
    assert title.split() == ["preset", "for", "on", "two", "cores", "result"]
    assert sorted(row.split()[0] for row in rows) == preset_names()
    assert max(map(len, rows)) <= 120
    told = json.loads(tfm("presets", "--json").stdout)
    assert [one["name"] for one in told] == [row.split()[0] for row in rows]


def test_the_settings_of_one_are_a_file_to_begin_with(tfm: Tfm, tmp_path: Path) -> None:
    done = tfm("presets", "multi30k")
    assert done.stdout.startswith(b"# Multi30k English-German")
    (tmp_path / "mine.yaml").write_bytes(done.stdout)
    assert load_config(str(tmp_path / "mine.yaml")) == load_config("multi30k")
    assert json.loads(tfm("presets", "multi30k", "--json").stdout) == load_config("multi30k")


def test_a_name_that_there_is_not(tfm: Tfm, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("model: {}")
    assert tfm("presets", "mine.yaml", "--json").returncode == 2
    done = tfm("presets", "multi30")
    assert done.returncode == 2
    assert "there is no preset 'multi30'; did you mean multi30k? Presets: base," in error_of(done)
