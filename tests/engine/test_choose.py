"""Which preset a corpus gets, and that a run keeps the one it has."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from helpers.command import write_lines

from tfm.configs import RunConfig, load_config, parse_config, render_config
from tfm.configs.recipe import recipe
from tfm.data.config import DataConfig
from tfm.data.corpus import open_corpus
from tfm.data.size import measure
from tfm.engine.choose import PRESETS_BY_SIZE, default_run, training_settings
from tfm.engine.runs.directory import RunDirectory
from tfm.system.errors import UsageError


class Chooser:
    """`training_settings` over two files of so many lines, and what it said."""

    def __init__(self, folder: Path) -> None:
        self.files = {"src": [str(folder / "t.en")], "tgt": [str(folder / "t.de")]}
        self.said: list[str] = []

    def write(self, pairs: int) -> None:
        for (path,) in self.files.values():
            Path(path).write_bytes(b"a\n" * pairs)

    def __call__(self, *assignments: str, pairs: int | None = None, **options: Any) -> RunConfig:
        if pairs is not None:
            self.write(pairs)
        given = {"config": None, "run": None, "init_from": None, "data": self.files, "training": {}, **options}
        return training_settings(**given, assignments=list(assignments), say=self.said.append)


@pytest.fixture
def choose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Chooser:
    monkeypatch.chdir(tmp_path)
    return Chooser(tmp_path)


def start_run(directory: Path, settings: RunConfig, *, checkpoint: bool = True) -> None:
    """The directory as `tfm train` leaves it."""
    (directory / "checkpoints" / ("step-000010" if checkpoint else "")).mkdir(parents=True)
    (directory / "config.yaml").write_text(render_config(settings))


@pytest.mark.parametrize("key", ["device=cpu", "ranks=2", "precision=fp32", "max_steps=900", "log_every=7"])
def test_the_machine_the_length_and_the_cadence_may_change_under_way(choose: Chooser, tmp_path: Path, key: str) -> None:
    start_run(tmp_path / "run", choose(pairs=20))
    changed = choose(f"training.{key}")
    RunDirectory(tmp_path / "run").refuse_other(changed)
    with pytest.raises(UsageError, match=r"training\.seed"):
        RunDirectory(tmp_path / "run").refuse_other(choose(f"training.{key}", "training.seed=9"))


def without_data(settings: RunConfig) -> tuple[object, ...]:
    return settings.tokenizer, settings.model, settings.training, settings.decoding


@pytest.mark.parametrize("where", ["flag", "assignment", "file"])
def test_a_time_replaces_the_number_of_steps(choose: Chooser, where: str, tmp_path: Path) -> None:
    match where:
        case "flag":
            settings = choose(pairs=20, training={"max_time": "8h"})
        case "assignment":
            settings = choose("training.max_time=8h", pairs=20)
        case _:
            (tmp_path / "mine.yaml").write_text("training:\n  max_time: 8h\n")
            settings = choose(pairs=20, config="mine.yaml")
    assert settings.training.max_time == "8h"
    assert settings.training.max_steps is None
    (tmp_path / "steps.yaml").write_text("training:\n  schedule: trapezoid\n  max_steps: 9\n")
    patient = choose("training.patience=3", pairs=20, config="steps.yaml").training
    assert (patient.patience, patient.max_steps, patient.max_time) == (3, None, None)
    assert choose("training.patience=5", pairs=20).training.max_steps == 400, "the recipe's cap stays"
    start_run(tmp_path / "capped", choose("training.patience=3", "training.max_steps=70", pairs=20))
    again = training_settings(
        config=None,
        run=tmp_path / "capped",
        init_from=None,
        data={},
        training={},
        assignments=["training.patience=3"],
    )
    assert again.training.max_steps == 70, "a run keeps its cap"
    both = choose("training.max_time=8h", "training.max_steps=70", pairs=20)
    assert (both.training.max_time, both.training.max_steps) == ("8h", 70)


def test_a_number_of_steps_replaces_the_time_of_a_file(choose: Chooser, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("training:\n  max_time: 8h\n")
    settings = choose(pairs=20, config="mine.yaml", training={"max_steps": 70})
    assert (settings.training.max_time, settings.training.max_steps) == (None, 70)


@pytest.mark.parametrize(
    ("pairs", "preset", "made_for"),
    [
        (50_000, "pairs-100k", "50,000 to 300,000"),
        (299_999, "pairs-100k", "50,000 to 300,000"),
        (300_000, "pairs-1m", "300,000 and more"),
    ],
)
def test_the_number_of_pairs_chooses_the_preset(choose: Chooser, pairs: int, preset: str, made_for: str) -> None:
    settings = choose(pairs=pairs)
    assert choose.said == [f"{pairs:,} pairs: preset {preset} (made for {made_for}); choose another with --config"]
    assert without_data(settings) == without_data(parse_config(load_config(preset)))
    assert settings.data.src == choose.files["src"]


@pytest.mark.parametrize("pairs", [0, 500, 10_000, 49_999])
def test_a_small_corpus_has_its_settings_chosen_and_said_one_by_one(choose: Chooser, pairs: int) -> None:
    settings = choose(pairs=pairs)
    first, *reasons = choose.said
    assert first == f"{pairs:,} pairs: preset pairs (made for 0 to 50,000); choose another with --config"
    choices = recipe(measure(open_corpus(settings.data)))
    assert reasons == [f"  {choice.reason}" for choice in choices]
    assert all(getattr(getattr(settings, choice.section), choice.key) == choice.value for choice in choices)
    chosen = {(choice.section, choice.key) for choice in choices}
    for section, values in load_config("pairs").items():
        for key, value in values.items():
            assert (section, key) in chosen or getattr(getattr(settings, section), key) == value


def test_only_what_is_used_of_a_recipe_is_said(choose: Chooser, tmp_path: Path) -> None:
    assert choose("model.dropout=0.15", pairs=500).model.dropout == 0.15
    assert [line.split()[0] for line in choose.said[1:]] == ["vocabulary", "batches", "at", "both", "subword"]
    choose.said.clear()
    choose(training={"max_time": "8h"}, tokenizer=Path("vocabulary"))
    assert [line.split()[0] for line in choose.said[1:]] == ["dropout", "batches", "both", "subword"]
    choose.said.clear()
    start_run(tmp_path / "source", choose("tokenizer.vocab_size=777", "model.d_model=64", config="toy"))
    settings = choose(init_from=tmp_path / "source")
    assert (settings.tokenizer.vocab_size, settings.model.d_model) == (777, 64)
    assert len(choose.said) == 1 and choose.said[0].startswith("500 pairs to train on with: ")


@pytest.mark.parametrize(
    ("assignment", "max_time", "both"),
    [
        ("training.seed=2", None, True),
        ("training.seed=2", "20m", True),
        ("training.seed=2", "19m", False),
        ("tokenizer.separate=true", None, False),
        ("model.architecture=encoder_only", None, False),
        ("training.both_directions=false", None, False),
    ],
)
def test_both_directions_are_learned_where_they_can_be_and_there_is_time(
    choose: Chooser, assignment: str, max_time: str | None, both: bool
) -> None:
    choices = [assignment, *(["model.num_decoder_layers=0"] if "encoder_only" in assignment else [])]
    settings = choose(*choices, pairs=500, training={"max_time": max_time})
    assert settings.training.both_directions == both
    assert any(line.lstrip().startswith("both directions") for line in choose.said) == both


def test_a_time_that_cannot_be_read_is_refused_in_its_own_words(choose: Chooser) -> None:
    with pytest.raises(UsageError, match="max_time"):
        choose(pairs=500, training={"max_time": "soon"})


def test_training_on_changes_little(choose: Chooser, tmp_path: Path) -> None:
    source = choose("decoding.length_penalty=1.5", "training.learning_rate=0.004", config="toy", training={"seed": 3})
    start_run(tmp_path / "source", source)
    settings = choose(init_from=tmp_path / "source", pairs=400)
    assert settings.model == source.model and settings.decoding.length_penalty == 1.5
    training = settings.training
    assert training.learning_rate == pytest.approx(0.0004) and training.max_steps == 300 and training.patience == 3
    assert training.seed == 3 and training.max_time is None and training.optimizer == source.training.optimizer
    assert choose(init_from=tmp_path / "source", pairs=20_000).training.max_steps == 2_050
    longer = choose("training.learning_rate=0.001", init_from=tmp_path / "source", training={"max_steps": 9})
    assert (longer.training.max_steps, longer.training.learning_rate) == (9, 0.001)


def test_a_warm_up_that_nobody_asked_for_gives_way_to_few_updates(choose: Chooser, tmp_path: Path) -> None:
    short = choose(config="toy", data={}, training={"max_steps": 60}).training
    assert (short.max_steps, short.warmup_steps) == (60, 15)
    assert choose.said == ["  warm-up of 15 updates, not 100: there are 60 in all"]
    assert choose(pairs=20, training={"max_steps": 40}).training.warmup_steps == 10
    (tmp_path / "bare.yaml").write_text("training:\n  max_steps: 200\n")
    assert choose(config="bare.yaml").training.warmup_steps == 50
    choose.said.clear()
    assert choose("training.warmup_steps=80", config="toy", training={"max_steps": 60}).training.warmup_steps == 80
    (tmp_path / "own.yaml").write_text("training:\n  max_steps: 60\n  warmup_steps: 70\n")
    assert choose(config="own.yaml").training.warmup_steps == 70
    assert choose(config="toy", training={"max_steps": 300}).training.warmup_steps == 100
    assert choose.said == []


def test_a_run_keeps_its_warm_up_when_it_becomes_longer(choose: Chooser, tmp_path: Path) -> None:
    start_run(tmp_path / "run", choose(config="toy", data={}, training={"max_steps": 60}))
    for config in ("toy", None):
        longer = choose(config=config, data={}, run=tmp_path / "run", training={"max_steps": 900})
        assert (longer.training.max_steps, longer.training.warmup_steps) == (900, 15)
        RunDirectory(tmp_path / "run").refuse_other(longer)
    with pytest.raises(UsageError, match=r"training.warmup_steps \(was 15, now 40\)"):
        RunDirectory(tmp_path / "run").refuse_other(
            choose("training.warmup_steps=40", config="toy", data={}, run=tmp_path / "run")
        )


def test_a_warm_up_that_nobody_asked_for_gives_way_to_a_time(choose: Chooser, tmp_path: Path) -> None:
    start_run(tmp_path / "source", choose(config="toy", data={}))
    timed = {"init_from": tmp_path / "source", "training": {"max_time": "3m"}}
    assert choose(pairs=400, **timed).training.warmup_steps == 20, "a trapezoid can wait"
    choose.said.clear()
    assert choose("training.schedule=cosine", "training.patience=0", **timed).training.warmup_steps == 60
    assert choose.said[-1] == "  warm-up of 60 updates, not 20: so many are timed to see what fits 3m"
    own = choose("training.schedule=cosine", "training.patience=0", "training.warmup_steps=30", **timed)
    assert own.training.warmup_steps == 30


def test_replay_takes_files_or_the_data_of_a_run(choose: Chooser, tmp_path: Path) -> None:
    source = tmp_path / "source"
    start_run(source, choose(config="toy", data={}))
    choose.write(30)
    data = {**choose.files, "replay": ["old.tsv", str(source)]}
    settings = choose(init_from=source, data=data)
    assert settings.data.replay == ["old.tsv", "toy"]
    start_run(tmp_path / "own", choose())
    settings = choose(init_from=source, data={**choose.files, "replay": [str(tmp_path / "own")]})
    assert [*settings.data.replay_src, *settings.data.replay_tgt] == [*choose.files["src"], *choose.files["tgt"]]
    named = {"data": ["old.csv"], "src_column": "english", "tgt_column": "german"}
    start_run(tmp_path / "table", parse_config({"data": named}))
    table = str(tmp_path / "table")
    mixed = choose(init_from=source, data={**choose.files, "replay": [table]}).data
    assert (mixed.replay, mixed.replay_src_column, mixed.replay_tgt_column) == (["old.csv"], "english", "german")
    assert (mixed.src_column, mixed.tgt_column) == ("src", "tgt")
    with pytest.raises(UsageError, match="columns of different names"):
        choose(init_from=source, data={**choose.files, "replay": [table, "other.csv"]})
    with pytest.raises(UsageError, match=r"--replay mixes in .* goes with --init-from"):
        choose(data=data)


def test_dropout_follows_from_the_number_of_updates_that_is_asked_for(choose: Chooser) -> None:
    choose.write(10_000)  # of one letter: tiny, so that 9 updates show each pair five times
    assert choose(training={"max_steps": 9}).model.dropout == 0.1
    assert choose().model.dropout == 0.3


def test_a_preset_that_is_named_stays_as_it_is(choose: Chooser) -> None:
    settings = choose(config="pairs", pairs=20)
    assert without_data(settings) == without_data(parse_config(load_config("pairs")))
    assert choose.said == []


def test_larger_corpora_get_larger_models() -> None:
    sizes = [parse_config(load_config(name)) for _, name in sorted(PRESETS_BY_SIZE)]
    for smaller, larger in pairwise(sizes):
        assert smaller.tokenizer.vocab_size <= larger.tokenizer.vocab_size
        assert (smaller.model.d_model, smaller.model.num_encoder_layers, smaller.training.max_steps) < (
            larger.model.d_model,
            larger.model.num_encoder_layers,
            larger.training.max_steps,
        )


def test_a_configuration_named_is_taken_and_nothing_counted(choose: Chooser) -> None:
    settings = choose(config="multi30k")  # there are no files
    assert without_data(settings) == without_data(parse_config(load_config("multi30k")))
    assert choose.said == []


def test_flags_and_assignments_lie_over_the_preset(choose: Chooser) -> None:
    settings = choose("model.dropout=0.05", "tokenizer.vocab_size=99", pairs=20, training={"max_steps": 7})
    assert (settings.model.dropout, settings.tokenizer.vocab_size, settings.training.max_steps) == (0.05, 99, 7)
    assert settings.model.num_encoder_layers == 4


def test_each_layer_lies_over_those_below_it(choose: Chooser, tmp_path: Path) -> None:
    choose.write(500)
    base = parse_config(load_config("pairs"))
    measured = choose()
    assert measured.tokenizer.vocab_size != base.tokenizer.vocab_size, "the recipe over the base"
    toy = parse_config(load_config("toy")).data
    own = choose(config="toy").data
    assert toy.data and toy.dev and (own.data, own.dev, own.src) == ([], [], choose.files["src"]), "data over the base"
    start_run(tmp_path / "source", choose("model.d_model=64", "model.dropout=0.45", config="toy", data={}))
    onward = {"init_from": tmp_path / "source", "config": "multi30k"}
    sized, preset = choose(**onward), parse_config(load_config("multi30k"))
    assert (sized.model.d_model, sized.model.dropout) == (64, preset.model.dropout), "sizes over the base"
    timed = choose(training={"max_time": "8h"}).training
    assert measured.training.max_steps and timed.max_steps is None, "one length over the recipe"
    both = choose("training.max_steps=70", training={"max_time": "8h"}).training
    assert (both.max_steps, both.max_time) == (70, "8h"), "flags over one length"
    assert choose("model.d_model=96", **onward).model.d_model == 96, "flags over sizes"
    assert choose("training.seed=5", training={"seed": 4}).training.seed == 5, "--set over other flags"


def test_a_table_is_counted_with_the_columns_named(tmp_path: Path, choose: Chooser) -> None:
    write_lines(tmp_path / "t.csv", ["a,b,c", *["1,2,3"] * 12_000])
    choose("data.src_column=a", "data.tgt_column=c", data={"data": [str(tmp_path / "t.csv")]})
    assert choose.said[0].startswith("12,000 pairs: preset pairs ")


@pytest.mark.parametrize("named", [True, False])
def test_a_run_keeps_its_preset_when_the_corpus_has_grown(tmp_path: Path, choose: Chooser, named: bool) -> None:
    directory = tmp_path / ("r" if named else "runs/t")
    run = directory if named else None
    before = choose("model.d_ff=64", pairs=9_999, run=run)
    start_run(directory, before)
    choose.said.clear()
    assert choose("model.d_ff=64", pairs=60_000, run=run) == before
    assert choose.said == []
    RunDirectory(directory).refuse_other(choose("model.d_ff=64", run=run, training={"max_steps": 9}))
    with pytest.raises(UsageError, match=r"differs in model.d_ff \(was 64, now 96\); name a new --run"):
        RunDirectory(directory).refuse_other(choose("model.d_ff=96", run=run))
    with pytest.raises(UsageError, match=r"differs in data.bad_lines .*; tokenizer.vocab_size .*; name a new --run"):
        RunDirectory(directory).refuse_other(choose("data.bad_lines=skip", "tokenizer.vocab_size=9", run=run))


def test_a_run_without_a_checkpoint_chooses_anew(tmp_path: Path, choose: Chooser) -> None:
    start_run(tmp_path / "r", choose(pairs=20), checkpoint=False)
    assert choose(pairs=60_000, run=tmp_path / "r").model.num_encoder_layers == 4


def test_validation_data_alone_are_not_enough(choose: Chooser) -> None:
    choose.write(3)
    with pytest.raises(UsageError, match="no training data"):
        choose(data={"dev_src": choose.files["src"], "dev_tgt": choose.files["tgt"]})


def test_files_may_have_other_names_by_now(choose: Chooser, tmp_path: Path) -> None:
    """What they hold is compared when they are read."""
    settings = choose(pairs=20)
    start_run(tmp_path / "run", settings)
    files = {side: [f"elsewhere/{side}"] for side in choose.files}
    RunDirectory(tmp_path / "run").refuse_other(choose(run=tmp_path / "run", data=files))


def test_what_a_first_save_left_is_no_checkpoint(choose: Chooser, tmp_path: Path) -> None:
    start_run(tmp_path / "run", choose(pairs=20), checkpoint=False)
    (tmp_path / "run" / "checkpoints" / "step-000250.partial").mkdir(parents=True)
    RunDirectory(tmp_path / "run").refuse_other(choose("model.d_ff=96"))
    assert not RunDirectory(tmp_path / "run").checkpoints()
    (tmp_path / "run" / "checkpoints" / "step-000250").mkdir()
    assert RunDirectory(tmp_path / "run").checkpoints()


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ({"src": ["texts/mine.tok.en.gz"]}, "mine"),
        ({"src": ["texts/me@home:1.en"]}, "me@home:1"),
        ({"data": ["pairs.tsv"]}, "pairs"),
        ({"data": ["hf:owner/books"]}, "books"),
        ({"data": ["hf:owner/books/de-en:train[:1000]@main"]}, "de-en"),
        ({"data": ["hf:./texts/mine:train"]}, "mine"),
        ({"data": ["toy"]}, "toy"),
        ({"data": [".."]}, "run"),
    ],
)
def test_a_run_is_named_after_its_first_data(data: dict[str, list[str]], name: str) -> None:
    assert default_run(None, DataConfig(**{"data": [], **data})) == Path("runs") / name


def test_no_data_at_all_is_said(choose: Chooser) -> None:
    with pytest.raises(UsageError, match="nothing to train on: give --src and --tgt, --data or --text"):
        default_run(None, choose("data.data=[]", data={}).data)


def test_a_sentence_encoder_goes_on_by_the_preset_of_one_with_its_own_sizes(choose: Chooser, tmp_path: Path) -> None:
    source = choose(pairs=20, config="toy-encoder")
    start_run(tmp_path / "encoder", source)
    settings = choose(init_from=tmp_path / "encoder", pairs=20)
    assert choose.said == [
        "the model to start from is a sentence encoder: preset multi30k-encoder; choose another with --config"
    ]
    assert settings.model.without_dropout() == source.model.without_dropout()
    assert settings.tokenizer == source.tokenizer
    assert settings.training.best_metric == "retrieval"
