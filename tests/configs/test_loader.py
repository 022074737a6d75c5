"""The loader: each mistake in a configuration is named with its line and, where there is one, its cure."""

import os
import random
import time
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.configs import load_config, merge, parse_config, preset_names, render_config
from tfm.configs.loader import RunConfig, config_files, parse_assignment
from tfm.engine.runs.directory import RunDirectory
from tfm.system.errors import UsageError

SECTIONS: dict[str, list[str]] = {
    section.name: [key.name for key in fields(section.default_factory)]  # pyright: ignore[reportArgumentType]
    for section in fields(RunConfig)
}
KEYS = [(section, key) for section, keys in SECTIONS.items() for key in keys]


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str | bytes], dict[str, Any]]:
    """Loads a file of this content."""

    def load(content: str | bytes) -> dict[str, Any]:
        path = tmp_path / "my.yaml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return load_config(str(path))

    return load


@pytest.fixture
def complaint(load: Callable[[str | bytes], dict[str, Any]], tmp_path: Path) -> Callable[[str | bytes], str]:
    """What the loader says about a file of this content, without the directory."""

    def complaint(content: str | bytes) -> str:
        with pytest.raises(UsageError) as error:
            load(content)
        return str(error.value).replace(f"{tmp_path}/", "")

    return complaint


Complaint = Callable[[str | bytes], str]


def problem(tree: dict[str, Any]) -> str:
    with pytest.raises(UsageError) as error:
        parse_config(tree)
    return str(error.value)


# Good files


def test_only_what_the_file_says(load: Callable[[str | bytes], dict[str, Any]]) -> None:
    assert load("model:\n  d_model: 64  # small\n") == {"model": {"d_model": 64}}
    assert load("# nothing\n") == {}


@pytest.mark.parametrize(
    "content",
    [
        "\ufeffmodel: {d_model: 64}\n",
        "model:\r\n  d_model: 64\r\n",
        "{model: {d_model: 64}}",
    ],
)
def test_spellings_of_one_setting(load: Callable[[str | bytes], dict[str, Any]], content: str) -> None:
    assert load(content) == {"model": {"d_model": 64}}


def test_numbers_with_exponents(load: Callable[[str | bytes], dict[str, Any]]) -> None:
    rates = [load(f"training: {{learning_rate: {rate}}}") for rate in ("0.001", "1e-3", "1.0e-3", "1E-3")]
    assert [parse_config(tree).training.learning_rate for tree in rates] == [0.001] * 4


# Unknown keys


def typos(word: str) -> list[str]:
    """Every deletion, doubling and swap of a letter, and replacement by a wrong one."""
    found: list[str] = []
    for place in range(len(word)):
        start, letter, end = word[:place], word[place], word[place + 1 :]
        found += [
            start + end,
            start + letter + letter + end,
            start + ("x" if letter != "x" else "y") + end,
        ]
        if end:
            found.append(start + end[0] + letter + end[1:])
    return found


def test_one_letter_wrong_gets_the_right_name() -> None:
    right = total = 0
    wrong: list[str] = []
    for section, key in KEYS:
        names = {name for _, name in KEYS}
        for typo in sorted(set(typos(key)) - names - {""}):
            if any(typo in typos(other) for other in names - {key}):
                continue  # as near to another key
            total += 1
            if f"unknown key '{section}.{typo}'; did you mean '{key}'?" in problem({section: {typo: 1}}):
                right += 1
            else:
                wrong.append(f"{typo} for {key}")
    assert total > 1500
    assert right / total >= 0.95, wrong


@pytest.mark.parametrize(
    ("typo", "section"),
    [("modle", "model"), ("traning", "training"), ("tokeniser", "tokenizer")],
)
def test_unknown_section(complaint: Complaint, typo: str, section: str) -> None:
    assert complaint(f"# mine\n{typo}:\n  x: 1\n") == f"my.yaml:2: unknown key '{typo}'; did you mean '{section}'?"


def test_unknown_key_with_nothing_near_lists_what_there_is(
    complaint: Complaint,
) -> None:
    assert complaint("wings: 2\n") == f"my.yaml:1: unknown key 'wings'; known: {', '.join(SECTIONS)}"
    assert complaint("decoding:\n  wings: 2\n").endswith(f"known: {', '.join(SECTIONS['decoding'])}")


def test_key_in_the_wrong_section_is_sent_to_the_right_one() -> None:
    for section, key in KEYS:
        for elsewhere in set(SECTIONS) - {section}:
            assert f"did you mean '{section}.{key}'?" in problem({elsewhere: {key: 1}})
        if key not in SECTIONS:
            assert f"unknown key '{key}'; did you mean '{section}.{key}'?" in problem({key: 1})


def test_several_mistakes_are_named_at_once_with_their_lines(
    complaint: Complaint,
) -> None:
    said = complaint("training:\n  learing_rate: 1\n  warmup_steps: soon\nmodle:\n  x: 1\ntokenizer:\n  type: magic\n")
    assert sorted(said.splitlines()) == [
        "my.yaml:2: unknown key 'training.learing_rate'; did you mean 'learning_rate'?",
        "my.yaml:3: training.warmup_steps must be a valid integer, but is 'soon'",
        "my.yaml:4: unknown key 'modle'; did you mean 'model'?",
        "my.yaml:7: tokenizer.type must be 'unigram', 'bpe', 'char' or 'word', but is 'magic'",
    ]


# Values


def test_impossible_values_are_named_with_their_lines(complaint: Complaint) -> None:
    said = complaint("model:\n  dropout: 1\n  d_model: 0\n")
    assert said.splitlines() == [
        "my.yaml:3: d_model must be at least 1, but is 0",
        "my.yaml:2: dropout must be at least 0 and below 1, but is 1.0",
    ]


def test_heads_that_do_not_divide_the_width_offer_widths_that_do(
    complaint: Complaint,
) -> None:
    said = complaint("model:\n  d_model: 100\n  num_heads: 8\n")
    assert said == "my.yaml:2: d_model 100 is not divisible by num_heads 8 (try 96 or 104, or set d_k and d_v)"


@pytest.mark.parametrize("value", [".nan", ".inf", "-.inf", "1e400", "-1e400", "-1"])
@pytest.mark.parametrize(
    "key",
    [
        "training.learning_rate",
        "training.weight_decay",
        "training.max_grad_norm",
        "training.label_smoothing",
        "training.ema_decay",
        "training.subword_dropout",
        "training.adam_eps",
        "training.seed",
        "training.max_steps",
        "training.decay_fraction",
        "model.d_model",
        "model.dropout",
        "model.norm_eps",
        "tokenizer.vocab_size",
        "tokenizer.character_coverage",
        "data.max_length_ratio",
        "decoding.beam_size",
        "decoding.length_penalty",
        "decoding.max_length_factor",
    ],
)
def test_numbers_that_are_none_are_refused(complaint: Complaint, key: str, value: str) -> None:
    section, name = key.split(".")
    said = complaint(f"{section}:\n  {name}: {value}\n")
    assert said.startswith("my.yaml:2: ") and f"{name} must be" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("digits", ["9" * 30, "9" * 5000])
def test_huge_numbers_are_refused(complaint: Complaint, digits: str) -> None:
    assert complaint(f"tokenizer:\n  vocab_size: {digits}\n").startswith("my.yaml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "model:\n  d_model: wide\n",
            "my.yaml:2: model.d_model must be a valid integer",
        ),
        (
            "model:\n  d_model: 64.5\n",
            "my.yaml:2: model.d_model must be a valid integer",
        ),
        (
            "model:\n  d_model: [64]\n",
            "my.yaml:2: model.d_model must be a valid integer",
        ),
        ("model:\n  d_model:\n", "my.yaml:2: model.d_model must be a valid integer"),
        (
            "data:\n  src: a.txt\n",
            "my.yaml:2: data.src must be a valid list, but is 'a.txt'; write [a.txt]",
        ),
        (" \n", "my.yaml is empty: it has no settings"),
        (
            "data:\n  src:\n    - 5\n",
            "my.yaml:2: data.src.0 must be a valid string, but is 5",
        ),
        (
            "training:\n  adam_betas: [0.9]\n",
            "my.yaml:2: training.adam_betas.1 Field required",
        ),
        (
            "training:\n  seed: 2020-01-01\n",
            "my.yaml:2: training.seed must be a valid integer",
        ),
        (
            "training:\n  max_time: soon\n",
            "my.yaml:2: max_time: a duration is a number with a unit",
        ),
        ("model: 5\n", "my.yaml:1: model must be a section of settings, but is 5"),
        ("model:\n", "my.yaml:1: model must be a section of settings, but is None"),
        (
            "model: [d_model]\n",
            "my.yaml:1: model must be a section of settings, but is ['d_model']",
        ),
        ("1: 2\n", "my.yaml:1: unknown key '1'"),
    ],
)
def test_wrong_types(complaint: Complaint, content: str, message: str) -> None:
    assert complaint(content).startswith(message)


# YAML


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "model:\n\td_model: 3\n",
            "my.yaml:2:1: found character '\\t' that cannot start any token",
        ),
        (
            "model:\n  d_model: 3\n  d_model: 4\n",
            'my.yaml:3:3: found duplicate key "d_model"',
        ),
        ("model: {}\nmodel: {}\n", 'my.yaml:2:1: found duplicate key "model"'),
        ("a: b: c\n", "my.yaml:1:5: mapping values are not allowed here"),
        ("model: {d_model: 3\n", "my.yaml:2:1: expected ',' or '}'"),
        ("model: {}\n---\nmodel: {}\n", "my.yaml:2:1: but found another document"),
        (
            "a: !!python/object/apply:os.system [ls]\n",
            "my.yaml:1:4: could not determine a constructor",
        ),
        ("a: &x {}\nb: *x\n", "my.yaml: YAML aliases are not allowed"),
        ("a: &x {c: 1}\nb:\n  <<: *x\n", "my.yaml: YAML aliases are not allowed"),
        ("- model\n", "my.yaml: a configuration is a mapping of sections to settings"),
        ("text\n", "my.yaml: a configuration is a mapping of sections to settings"),
        ("5\n", "my.yaml: a configuration is a mapping of sections to settings"),
        ("a: \0\n", "my.yaml: not valid YAML: unacceptable character"),
        ("[" * 2000 + "]" * 2000, "my.yaml: nested too deeply for a configuration"),
        (b"model: \xff\n", "my.yaml is not UTF-8"),
        ("model: {}\n".encode("utf-16"), "my.yaml is not UTF-8"),
        ("#" * 64_001, "my.yaml is larger than such a file can be (64,000 bytes)"),
    ],
)
def test_files_that_are_no_configuration(complaint: Complaint, content: str | bytes, message: str) -> None:
    assert complaint(content).startswith(message)


def test_a_pipe_is_no_configuration_and_nobody_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "my.yaml")
    with pytest.raises(UsageError, match=r"my\.yaml is not a plain file"):
        load_config(str(tmp_path / "my.yaml"))
    (tmp_path / "mine.yaml").write_text("model: {dropout: 0.5}")
    (tmp_path / "link.yaml").symlink_to("mine.yaml")
    assert load_config(str(tmp_path / "link.yaml")) == {"model": {"dropout": 0.5}}


@pytest.mark.parametrize("text", ["? [a, b]\n: c\n", "model:\n  2026-01-01: 3\n", "model:\n  ? {a: b}\n  : 3\n"])
def test_what_is_no_name_is_refused(complaint: Complaint, text: str) -> None:
    assert "no name of a section or a setting" in complaint(text) or "unhashable" in complaint(text)


def test_what_is_said_of_a_configuration_is_short(complaint: Complaint) -> None:
    said = complaint("".join(f"key{number}: 1\n" for number in range(4000))).splitlines()
    assert len(said) == 11 and said[-1] == "and 3,990 more problems"
    assert max(map(len, complaint(f"training:\n  max_steps: {'x' * 50_000}\n").splitlines())) < 200


def test_bomb_of_aliases_is_refused_unexpanded(complaint: Complaint) -> None:
    levels = "".join(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 30))
    assert "aliases are not allowed" in complaint(f"a0: &a0 [x]\n{levels}")


@settings(deadline=None, max_examples=200)
@given(st.text(max_size=60) | st.text(alphabet="model:{}[]&*!|>-?#%@'\" \n\t,0.", max_size=60))
def test_any_text_is_a_configuration_or_a_usage_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(text.encode())
    try:
        assert isinstance(load_config(str(path)), dict)
    except UsageError as error:
        assert "any.yaml" in str(error)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*none\.yaml: No such file or directory"):
        load_config(str(tmp_path / "none.yaml"))
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(UsageError, match=r"cannot read .*folder\.yaml: Is a directory"):
        load_config(str(tmp_path / "folder.yaml"))


# --set


@pytest.mark.parametrize(
    ("assignment", "tree"),
    [
        ("training.seed=3", {"training": {"seed": 3}}),
        (" training.seed =3", {"training": {"seed": 3}}),
        ("training.max_time=20m", {"training": {"max_time": "20m"}}),
        ("training.max_time=null", {"training": {"max_time": None}}),
        (
            "training.adam_betas=[0.9, 0.999]",
            {"training": {"adam_betas": [0.9, 0.999]}},
        ),
        ("data.src=[a=b.txt]", {"data": {"src": ["a=b.txt"]}}),
        ("model.scale_embeddings=false", {"model": {"scale_embeddings": False}}),
    ],
)
def test_assignments(assignment: str, tree: dict[str, Any]) -> None:
    assert parse_assignment(assignment) == tree


@pytest.mark.parametrize("assignment", ["", "x", "=", "seed=3", "training.seed", "training=3"])
def test_assignments_of_another_form(assignment: str) -> None:
    with pytest.raises(UsageError, match=r"--set takes section\.key=value, such as .*, not "):
        parse_assignment(assignment)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("training.sed=3", "unknown key 'training.sed'; did you mean 'seed'?"),
        ("trainin.seed=3", "unknown key 'trainin'; did you mean 'training'?"),
        (
            "model.learning_rate=3",
            "unknown key 'model.learning_rate'; did you mean 'training.learning_rate'?",
        ),
        ("training.seed=soon", "training.seed must be a valid integer"),
        ("training.seed=[", "expected the node content"),
        ("training.seed=a: b", "mapping values are not allowed here"),
    ],
)
def test_assignments_that_are_wrong(assignment: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_assignment(assignment)
    assert str(error.value).startswith(f"--set {assignment}") and message in str(error.value)


def test_assignments_are_judged_with_the_settings_they_change() -> None:
    """100 is no multiple of the default number of heads, but it is one of the preset's."""
    tree = merge(load_config("toy"), parse_assignment("model.d_model=100"))
    assert parse_config(tree).model.d_model == 100
    with pytest.raises(UsageError, match="d_model 102 is not divisible by num_heads 4"):
        parse_config(merge(load_config("toy"), parse_assignment("model.d_model=102")))


# Merging and rendering


def test_a_file_extends_a_preset_or_another_file(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("extends: multi30k\nmodel: {d_ff: 99}\ntraining: {warmup_steps: 7}\n")
    (tmp_path / "mine.yaml").write_text("model:\n  dropout: 0.25\nextends: base.yaml\n")
    expected = merge(load_config("multi30k"), {"model": {"d_ff": 99, "dropout": 0.25}, "training": {"warmup_steps": 7}})
    assert load_config(str(tmp_path / "mine.yaml")) == expected
    own = load_config(str(tmp_path / "mine.yaml"), presets=False)
    assert own == {"model": {"d_ff": 99, "dropout": 0.25}, "training": {"warmup_steps": 7}}
    assert config_files(str(tmp_path / "mine.yaml")) == [tmp_path / "mine.yaml", tmp_path / "base.yaml"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("extends: pair", "my.yaml: extends: there is no preset"),
        ("extends: [pairs]", "my.yaml: extends names one preset or one YAML file, but is ['pairs']"),
        ("extends: my.yaml", "my.yaml: extends my.yaml, which extends it in turn"),
        ("extends: ../{folder}/my.yaml", "which extends it in turn"),
        ("extends: nowhere.yaml", "nowhere.yaml"),
        ("extends: pairs\nmodel: {d_mode: 3}", "my.yaml:2: unknown key 'model.d_mode'"),
    ],
)
def test_what_cannot_be_extended(complaint: Complaint, tmp_path: Path, content: str, message: str) -> None:
    assert message in complaint(content.replace("{folder}", tmp_path.name))


def test_the_file_of_a_run_extends_nothing(tmp_path: Path) -> None:
    """It may be a stranger's."""
    (tmp_path / "config.yaml").write_text("extends: toy\n")
    with pytest.raises(UsageError, match="unknown key 'extends'"):
        RunDirectory(tmp_path).settings()


def test_merge() -> None:
    base = {"model": {"d_model": 64, "d_ff": 128}, "data": {"src": ["a"]}}
    over = {
        "model": {"d_ff": 256},
        "data": {"src": ["b", "c"]},
        "training": {"seed": 2},
    }
    merged = merge(base, over)
    assert merged == {
        "model": {"d_model": 64, "d_ff": 256},
        "data": {"src": ["b", "c"]},
        "training": {"seed": 2},
    }
    assert base == {"model": {"d_model": 64, "d_ff": 128}, "data": {"src": ["a"]}}, "the base is not changed"


@pytest.mark.parametrize("name", [*preset_names(), None])
def test_rendered_configuration_is_read_back(load: Callable[[str | bytes], dict[str, Any]], name: str | None) -> None:
    config = parse_config(load_config(name) if name else {})
    text = render_config(config)
    assert parse_config(load(text)) == config
    assert list(load(text)) == list(SECTIONS)
    assert all(list(load(text)[section]) == keys for section, keys in SECTIONS.items())


@settings(deadline=None, max_examples=60)
@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc", "Co", "Cn"])),
    st.floats(0, 1, exclude_max=True),
    st.floats(0, 1e6, exclude_min=True),
)
def test_odd_values_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, path: str, share: float, rate: float
) -> None:
    config = parse_config(
        {
            "data": {"src": [path, "no", "1e3", "~"]},
            "model": {"dropout": share},
            "training": {"learning_rate": rate},
        }
    )
    written = tmp_path_factory.getbasetemp() / "odd.yaml"
    written.write_text(render_config(config), "utf-8")
    assert asdict(parse_config(load_config(str(written)))) == asdict(config)


@pytest.mark.parametrize("value", ["'10'", "true", "'true'", "10.5", "1_0x", "１２"])
def test_a_number_is_a_number(value: str) -> None:
    with pytest.raises(UsageError, match="max_steps must be a valid integer"):
        parse_assignment(f"training.max_steps={value}")


@pytest.mark.parametrize("value", ["1", "'true'", "0", "yes"])
def test_a_switch_is_true_or_false(value: str) -> None:
    with pytest.raises(UsageError, match="must be a valid boolean"):
        parse_assignment(f"model.tie_embeddings={value}")


def test_a_whole_number_will_do_for_a_share() -> None:
    assert parse_assignment("model.dropout=0") == {"model": {"dropout": 0}}


@pytest.mark.parametrize(
    "text",
    ["[" * 30_000, "a: " + "[" * 30_000 + "]" * 30_000, "{a: " * 10_000, "- " * 30_000, "? " * 30_000, "a: " * 20_000],
    ids=lambda text: text[:6],
)
def test_deep_nesting_is_refused_at_once(tmp_path: Path, text: str) -> None:
    (tmp_path / "deep.yaml").write_text(text)
    began = time.monotonic()
    with pytest.raises(UsageError):
        load_config(str(tmp_path / "deep.yaml"))
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("num_encoder_layers=100000", "num_encoder_layers must be at most 1000"),
        ("max_seq_len=10000000", "max_seq_len must be at most 100000"),
        ("d_model=100000000", "d_model must be at most 10000000"),
    ],
)
def test_absurd_sizes_are_refused(setting: str, words: str) -> None:
    key, _, value = setting.partition("=")
    with pytest.raises(UsageError, match=words):
        parse_config({"model": {key: int(value)}})


def one_edit(name: str, draw: random.Random) -> str:
    """A letter left out, doubled, changed, or two exchanged."""
    i = draw.randrange(len(name))
    j = min(i, len(name) - 2)
    kinds = [
        name[:i] + name[i + 1 :],
        name[:i] + name[i] + name[i:],
        name[:i] + draw.choice("abcdefghijklmnopqrstuvwxyz_") + name[i + 1 :],
        name[:j] + name[j + 1] + name[j] + name[j + 2 :],
    ]
    return draw.choice(kinds)


def test_of_two_thousand_misspelt_keys_the_right_one_is_named_for_95_percent() -> None:
    draw, right, count = random.Random(1), 0, 0
    sections = {field.name: field.default_factory for field in fields(RunConfig)}
    known = {f"{name}.{key.name}" for name, section in sections.items() for key in fields(section)}  # pyright: ignore[reportArgumentType]
    while count < 2_000:
        section, _, key = draw.choice(sorted(known)).partition(".")
        typo = one_edit(key, draw)
        if any(one.partition(".")[2] == typo for one in known):
            continue
        count += 1
        with pytest.raises(UsageError) as caught:
            parse_assignment(f"{section}.{typo}=1")
        right += f"did you mean '{key}'?" in str(caught.value) or f"did you mean '{section}.{key}'?" in str(
            caught.value
        )
    assert right >= 0.95 * count, right / count


def test_a_name_that_is_not_utf8_is_named() -> None:
    with pytest.raises(UsageError, match=r"^dir/a\udcff\.en is not UTF-8; a file or folder of this name"):
        parse_config({"data": {"src": ["ä", "dir/a\udcff.en"], "tgt": ["b", "c"]}})


def test_a_setting_that_was_taken_out_may_stand_in_a_file_where_it_did_nothing(tmp_path: Path) -> None:
    old = tmp_path / "old.yaml"
    old.write_text("training:\n  variation: 0.0\n  seed: 3\n", encoding="utf-8")
    assert parse_config(load_config(str(old))).training.seed == 3
    old.write_text("training:\n  variation: 0.1\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"unknown key 'training\.variation'"):
        parse_config(load_config(str(old)))


@pytest.mark.parametrize(("section", "key"), KEYS)
def test_a_long_value_is_not_said_whole(load: Callable[[str | bytes], dict[str, Any]], section: str, key: str) -> None:
    for value in ("x" * 3_000, f"[{'y' * 3_000}]", f"{{{'z' * 3_000}: 1}}"):
        try:
            load(f"{section}:\n  {key}: {value}\n")
        except UsageError as error:
            assert max(map(len, str(error).splitlines())) < 1_000, (section, key, value[:5])
