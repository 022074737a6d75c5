"""`tfm train` from end to end, through the installed command."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.command import TFM, TINY_FLAGS, Tfm, error_of, records, write_lines

from tfm.cli.train import command_line
from tfm.data.tokenizer import Tokenizer
from tfm.engine.runs.directory import RunDirectory
from tfm.system.files import sha256_file

ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
"""As `run_command` has it: the number of threads is part of what bit for bit means."""
ANY_LENGTH = ["--set", "training.schedule=constant", "--set", "training.patience=0"]
FILES = ["--src", "train.en", "--tgt", "train.de", "--dev-src", "dev.en", "--dev-tgt", "dev.de"]


def weights(run: Path, step: int) -> str:
    return sha256_file(run / "checkpoints" / f"step-{step:06d}" / "model.safetensors")


def test_two_files_to_a_run_directory(tfm: Tfm, corpus: Path) -> None:
    done = tfm("train", *FILES, "--run", "r", "--max-steps", 12, "--seed", 5, *TINY_FLAGS)
    assert done.returncode == 0, error_of(done)
    assert done.stdout == b""
    run = corpus / "r"
    names = {path.name for path in run.iterdir()}
    assert {"config.yaml", "tokenizer", "metrics.jsonl", "timing.jsonl", "cache", "checkpoints"} <= names
    assert (run / "learning_curve.png").exists()
    train = [record for record in records(run / "metrics.jsonl") if record["kind"] == "train"]
    assert [record["step"] for record in train] == [5, 10]
    assert {"loss", "lr", "grad_norm", "tokens"} <= set(train[0])
    dev = [record for record in records(run / "metrics.jsonl") if record["kind"] == "validation"]
    assert [record["step"] for record in dev] == [10, 12]
    assert {"loss", "ppl", "bleu", "chrf", "signature"} <= set(dev[0])
    text = done.stderr.decode()
    assert "180 of 180 pairs kept" in text
    assert "reference" in text  # sample translations
    assert "tfm translate --run r" in text


def test_same_command_again_says_finished(tfm: Tfm, corpus: Path) -> None:
    command = ["train", *FILES, "--run", "r", "--max-steps", 6, *TINY_FLAGS]
    assert tfm(*command).returncode == 0
    before = weights(corpus / "r", 6)
    again = tfm(*command)
    assert again.returncode == 0
    assert "already finished at step 6; a higher --max-steps continues it" in error_of(again)
    assert weights(corpus / "r", 6) == before


def test_a_signal_saves_and_the_same_command_continues_bit_for_bit(tfm: Tfm, corpus: Path) -> None:
    steps = 200
    seldom = ["--set", "training.validate_every=100", "--set", "training.checkpoint_every=20"]
    flags = [*FILES, "--max-steps", str(steps), *TINY_FLAGS, *seldom]
    assert tfm("train", *flags, "--run", "whole").returncode == 0
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        run = corpus / str(code)
        command = [str(TFM), "train", *flags, "--run", str(code)]
        child = subprocess.Popen(command, cwd=corpus, stderr=subprocess.PIPE, env=ONE_THREAD)
        deadline = time.monotonic() + 120
        while not RunDirectory(run).checkpoints():
            assert time.monotonic() < deadline and child.poll() is None
            time.sleep(0.01)
        child.send_signal(number)
        _, stderr = child.communicate(timeout=60)
        assert child.returncode == code, stderr.decode()
        last = stderr.decode().splitlines()[-1]
        assert "stopped after step" in last
        assert "Run the same command to continue: tfm train" in last
        assert "Traceback" not in stderr.decode()
        assert tfm("train", *flags, "--run", code).returncode == 0
        assert weights(run, steps) == weights(corpus / "whole", steps)
        assert sha256_file(run / "metrics.jsonl") == sha256_file(corpus / "whole" / "metrics.jsonl")


def test_sigkill_loses_nothing_either(tfm: Tfm, corpus: Path) -> None:
    flags = [*FILES, "--max-steps", "120", *TINY_FLAGS]
    assert tfm("train", *flags, "--run", "whole").returncode == 0
    for kill in range(2):
        command = [str(TFM), "train", *flags, "--run", "r"]
        child = subprocess.Popen(command, cwd=corpus, stderr=subprocess.DEVNULL, env=ONE_THREAD)
        wanted = 15 * (kill + 1)
        while child.poll() is None and not list((corpus / "r").glob(f"checkpoints/step-{wanted:06d}")):
            time.sleep(0.005)
        child.kill()
        assert child.wait() == -signal.SIGKILL  # it had not ended before
    assert tfm("train", *flags, "--run", "r").returncode == 0
    assert weights(corpus / "r", 120) == weights(corpus / "whole", 120)


def test_another_configuration_in_the_directory_is_refused_by_name(tfm: Tfm, corpus: Path) -> None:
    assert tfm("train", *FILES, "--run", "r", "--max-steps", 4, *TINY_FLAGS).returncode == 0
    before = (corpus / "r" / "config.yaml").read_bytes()
    done = tfm("train", *FILES, "--run", "r", "--max-steps", 4, *TINY_FLAGS, "--set", "training.learning_rate=0.5")
    assert done.returncode == 2
    assert "training.learning_rate (was 0.003, now 0.5)" in error_of(done)
    assert (corpus / "r" / "config.yaml").read_bytes() == before


def test_a_first_start_that_failed_leaves_the_directory_free_and_is_no_run(tfm: Tfm, corpus: Path) -> None:
    (corpus / "runs" / "r").mkdir(parents=True)
    (corpus / "runs" / "r" / "mine.partial").write_text("an unfinished download")
    wrong = tfm("train", "--src", "train.en", "--tgt", "nowhere.de", "--run", "runs/r", *TINY_FLAGS)
    assert wrong.returncode == 3
    assert "there is no run in runs/ yet" in error_of(tfm("info"))
    assert (corpus / "runs" / "r" / "mine.partial").exists()
    assert tfm("train", *FILES, "--run", "runs/r", "--max-steps", 2, *TINY_FLAGS).returncode == 0
    assert tfm("info").returncode == 0


def test_a_run_goes_by_its_name_in_runs_where_only_that_is_there(tfm: Tfm, corpus: Path) -> None:
    assert tfm("train", *FILES, "--run", "runs/r", "--max-steps", 4, *TINY_FLAGS).returncode == 0
    assert tfm("train", "--run", "r", "--max-steps", 7).returncode == 0
    assert weights(corpus / "runs" / "r", 7)
    assert tfm("translate", "--run", "r", "one").returncode == 0
    other = tfm("train", *FILES, "--run", "new", "--init-from", "r", "--max-steps", 2)
    assert other.returncode == 0, error_of(other)
    assert not (corpus / "r").exists() and (corpus / "new").exists()
    itself = tfm("train", *FILES, "--run", "runs/r", "--init-from", "r", "--max-steps", 7, *TINY_FLAGS)
    assert (itself.returncode, "which --init-from reads" in error_of(itself)) == (2, True)
    held = corpus / "runs" / "r" / "metrics.jsonl"
    lost = tfm("translate", "--run", "r", "--output", held, "one")
    assert (lost.returncode, "which --run reads" in error_of(lost)) == (2, True)
    (corpus / "r").mkdir()
    assert "no valid checkpoint in r" in error_of(tfm("translate", "--run", "r", "one"))


def test_run_alone_continues_with_the_settings_it_was_made_with(tfm: Tfm, corpus: Path) -> None:
    assert tfm("train", *FILES, "--run", "r", "--max-steps", 4, *TINY_FLAGS).returncode == 0
    done = tfm("train", "--run", "r", "--max-steps", 7)
    assert done.returncode == 0, error_of(done)
    assert weights(corpus / "r", 7)


def test_a_dry_run_says_sizes_time_and_memory_and_leaves_its_vocabulary_to_the_run(tfm: Tfm, corpus: Path) -> None:
    done = tfm("train", *FILES, "--dry-run", *TINY_FLAGS, "--max-steps", 3)
    assert done.returncode == 0, error_of(done)
    said = done.stdout.decode()
    for words in ("parameters", "pieces", "steps", "epoch", "180 pairs", "process of 1 thread", " s for 3 updates"):
        assert words in said
    memory = re.search(r"about (\d+\.\d) GB at the most", said)
    assert memory is not None and 0.2 < float(memory[1]) < 2
    assert "180 pairs: preset pairs " in error_of(done)
    run = RunDirectory(corpus / "runs" / "train")
    assert not run.checkpoints() and not run.metrics.path.exists()
    assert sorted(path.name for path in run.path.iterdir() if path.name != ".lock") == [
        "cache",
        "config.yaml",
        "setup.json",
        "tokenizer",
    ]
    refused = tfm("info", "--run", "runs/train")
    assert refused.returncode == 4
    sha256 = Tokenizer.load(run.tokenizer).sha256
    done = tfm("train", *FILES, *TINY_FLAGS, "--max-steps", 3)
    assert "taking the vocabulary that an earlier start left in runs/train/tokenizer" in error_of(done)
    assert Tokenizer.load(run.tokenizer).sha256 == sha256


def test_a_dry_run_of_a_run_that_has_begun(tfm: Tfm, corpus: Path) -> None:
    command = ["train", *FILES, *TINY_FLAGS, *ANY_LENGTH, "--run", "r"]
    assert tfm(*command, "--max-steps", 4).returncode == 0
    before = (corpus / "r" / "config.yaml").read_bytes()
    done = tfm(*command, "--max-steps", 4, "--dry-run")
    assert "none: the run is finished, at step 4" in done.stdout.decode(), error_of(done)
    done = tfm(*command, "--max-steps", 9, "--dry-run")
    assert " for 5 updates" in done.stdout.decode()
    assert (corpus / "r" / "config.yaml").read_bytes() == before
    assert tfm(*command, "--dry-run", "--finish-in", 5).returncode == 2
    wider = tfm("train", *FILES, "--run", "new", "--init-from", "r", "--set", "model.d_model=32", "--dry-run")
    assert wider.returncode == 2 and "its d_model is 16, not 32; see tfm info" in error_of(wider)


@pytest.mark.parametrize(("ranks", "stops"), [(1, [2, 4]), (2, [4])])
def test_a_dry_run_changes_nothing_of_what_will_be_trained(
    tfm: Tfm, corpus: Path, ranks: int, stops: list[int]
) -> None:
    flags = [*FILES, *TINY_FLAGS, *ANY_LENGTH, "--set", f"training.ranks={ranks}"]
    for name in ("plain", "dry"):
        for steps in stops:
            command = ["train", *flags, "--max-steps", steps, "--run", name]
            if name == "dry":
                done = tfm(*command, "--dry-run")
                assert done.returncode == 0, error_of(done)
                assert ("goes on at step 2" in done.stdout.decode()) == (steps != stops[0])
            done = tfm(*command)
            assert done.returncode == 0, error_of(done)
    assert weights(corpus / "dry", 4) == weights(corpus / "plain", 4)


def test_a_training_that_is_under_way_is_told_to_finish(tfm: Tfm, corpus: Path) -> None:
    """Two processes; it would train for ever."""
    flags = ["--max-steps", 1_000_000, "--set", "training.ranks=2", "--run", "r", *FILES, *TINY_FLAGS]
    child = subprocess.Popen(
        [str(TFM), "train", *map(str, flags)], cwd=corpus, stderr=subprocess.PIPE, env=ONE_THREAD, text=True
    )
    try:
        deadline = time.monotonic() + 60
        while not RunDirectory(corpus / "r").checkpoints():
            assert time.monotonic() < deadline and child.poll() is None
            time.sleep(0.1)
        told = tfm("train", "--run", "r", "--finish-in", 5)
        assert told.returncode == 0, error_of(told)
        assert error_of(told).endswith("the training that is under way there was told to finish in 5 updates\n")
        _, said = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 0, said
    end = re.search(r"told to finish in 5 updates: the learning rate falls from now on, to 0 at step (\d+)", said)
    assert end is not None and f"finished at step {end[1]}" in said
    again = tfm("train", "--run", "r", "--finish-in", 5)
    assert "it was told to finish here" in error_of(again)


def test_a_run_is_told_to_finish_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for flags in (["--finish-in", "10m", "--run", "my r"], ["--run", "my r", "--finish-in=10m"]):
        monkeypatch.setattr(sys, "argv", ["tfm", "train", *flags])
        assert command_line() == ": tfm train --run 'my r'"


def test_a_run_that_finds_its_length_says_so_before_and_after(tfm: Tfm, corpus: Path) -> None:
    """Two processes; the rate is so high that the loss soon stops falling."""
    flags = [*FILES, *TINY_FLAGS, "--set", "training.patience=1", "--set", "training.schedule=trapezoid"]
    flags += ["--set", "training.learning_rate=1", "--set", "training.validate_every=2", "--set", "training.ranks=2"]
    flags += ["--set", "training.warmup_steps=1", "--set", "training.decay_fraction=0.5", "--run", "patient"]
    flags += ["--set", "training.max_steps=null"]
    done = tfm("train", *flags, "--dry-run")
    assert "training        no limit; ends by itself, patience: 1 validations" in done.stdout.decode()
    assert " for 1,000 updates; how many it takes, validation tells" in done.stdout.decode()
    done = tfm("train", *flags)
    said = error_of(done)
    assert done.returncode == 0, said
    assert "as many steps as it takes until the validation loss stops falling (patience: 1 validations)" in said
    end = re.search(r"the learning rate falls from now on, to 0 at step (\d+), where the run ends", said)
    assert end is not None
    assert f"finished at step {end[1]}" in said
    assert "its learning rate has fallen to its end" in error_of(tfm("train", *flags))


def test_a_dry_run_takes_the_vocabulary_that_a_start_would_take(tfm: Tfm, corpus: Path, tiny_run: Path) -> None:
    for name, size in (("runs/train", 300), ("given", 310)):
        done = tfm("tokenize", *FILES[:4], "--vocab-size", size, "--output", f"{name}/tokenizer")
        assert done.returncode == 0, error_of(done)
    size = len(Tokenizer.load(tiny_run / "tokenizer").src)
    saved = ["--tokenizer", "given/tokenizer", "--run", "saved", "--max-steps", 2]
    assert tfm("train", *FILES, *saved, *TINY_FLAGS, *ANY_LENGTH).returncode == 0
    for flags, words in [
        (["--run", "runs/train"], "vocabulary      300 pieces"),
        ([], "vocabulary      300 pieces"),
        (["--tokenizer", "given/tokenizer"], "vocabulary      310 pieces"),
        (["--run", "saved", "--max-steps", 3, *ANY_LENGTH], "vocabulary      310 pieces"),
        (["--run", "new", "--init-from", tiny_run], f"vocabulary      {size} pieces"),
    ]:
        done = tfm("train", *FILES, *flags, "--dry-run", *([] if "--init-from" in flags else TINY_FLAGS))
        assert done.returncode == 0, error_of(done)
        assert words in done.stdout.decode()


def test_commands_that_are_proposed_can_be_typed(tfm: Tfm, corpus: Path) -> None:
    done = tfm("tokenize", *FILES[:4], "--vocab-size", 300, "--output", "my vocabulary")
    assert "tfm train --tokenizer 'my vocabulary' .." in error_of(done)
    command = ["train", *FILES, "--tokenizer", "my vocabulary", "--run", "my run", "--max-steps", 2, *TINY_FLAGS]
    assert error_of(tfm(*command)).rstrip().endswith("Translate with: tfm translate --run 'my run'")
    assert "tfm train --run 'no run'" in error_of(tfm("translate", "--run", "no run"))


def test_without_a_dev_set_a_part_is_held_out_and_said(tfm: Tfm, corpus: Path) -> None:
    done = tfm("train", *FILES[:4], "--run", "r", "--max-steps", 2, *TINY_FLAGS)
    assert done.returncode == 0, error_of(done)
    assert "holding out 5 %" in error_of(done)


def test_two_files_alone_get_a_preset_and_a_vocabulary_that_they_support(tfm: Tfm, corpus: Path) -> None:
    flags = ["--max-steps", 2, "--run", "r", "--set", "training.validation_sentences=3"]
    done = tfm("train", "--src", "train.en", "--tgt", "train.de", *flags)
    assert done.returncode == 0, error_of(done)
    said = error_of(done)
    assert "180 pairs: preset pairs (made for 0 to 50,000); choose another with --config\n" in said
    assert re.search(r"vocabulary of 1,000 asked, the corpus supports (\d{3}): using \1\n", said)
    config = (corpus / "r" / "config.yaml").read_text()
    assert "d_model: 192" in config and "dropout: 0.1" in config  # two updates repeat no pair
    again = tfm("train", "--src", "train.en", "--tgt", "train.de", *flags)
    assert "already finished" in error_of(again)
    assert "preset" not in error_of(again)


def test_a_grown_corpus_neither_changes_the_preset_nor_the_data_of_a_run(tfm: Tfm, corpus: Path) -> None:
    for side in ("en", "de"):
        write_lines(corpus / f"long.{side}", [f"{i % 97} {i % 89}" for i in range(49_995)])
    files = ["--src", "long.en", "--tgt", "long.de", "--dev-src", "dev.en", "--dev-tgt", "dev.de"]
    flags = [*TINY_FLAGS, "--max-steps", 2, "--set", "training.max_tokens_per_batch=64"]
    assert tfm("train", *files, *flags).returncode == 0
    before = (corpus / "runs" / "long" / "config.yaml").read_bytes()
    for side in ("en", "de"):
        with open(corpus / f"long.{side}", "a", encoding="utf-8") as file:
            file.write("1 2\n" * 10)
    grown = tfm("train", *files, *flags)
    assert grown.returncode == 3
    assert "data changed since step 2" in error_of(grown)
    assert "preset" not in error_of(grown)
    assert (corpus / "runs" / "long" / "config.yaml").read_bytes() == before
    assert "50,005 pairs: preset pairs-100k " in error_of(tfm("train", *files, *flags, "--run", "new", "--dry-run"))


def test_moved_files_continue_a_run_and_others_change_nothing_in_it(tfm: Tfm, corpus: Path) -> None:
    command = ["train", "--run", "r", *TINY_FLAGS]
    assert tfm(*command, *FILES, "--max-steps", 2).returncode == 0
    for folder, text in (("moved", None), ("other", "other")):
        (corpus / folder).mkdir()
        for name in ("train.en", "train.de", "dev.en", "dev.de"):
            lines = (corpus / name).read_text(encoding="utf-8").splitlines()
            write_lines(corpus / folder / name, lines if text is None else [text] * len(lines))
    moved, other = ([f"{folder}/{item}" if "." in item else item for item in FILES] for folder in ("moved", "other"))
    done = tfm(*command, *moved, "--max-steps", 3)
    assert done.returncode == 0, error_of(done)
    assert "continuing at step 2" in error_of(done)
    assert "- moved/train.en" in (corpus / "r" / "config.yaml").read_text()
    before = {path: path.read_bytes() for path in (corpus / "r").rglob("*") if path.is_file()}
    refused = tfm(*command, *other, "--max-steps", 4)
    assert refused.returncode == 3
    assert "data changed since step 3" in error_of(refused)
    assert before == {path: path.read_bytes() for path in (corpus / "r").rglob("*") if path.is_file()}


def test_a_run_whose_files_have_gone_says_who_names_them_and_what_to_do(tfm: Tfm, corpus: Path) -> None:
    (corpus / "dev.de").rename(corpus / "dev:1.de")
    files = ["dev:1.de" if item == "dev.de" else item for item in FILES]
    assert tfm("train", "--run", "r", *TINY_FLAGS, *files, "--max-steps", 2).returncode == 0
    (corpus / "dev:1.de").rename(corpus / "away.txt")
    for flags in (["--max-steps", 3], ["--dry-run"]):
        done = tfm("train", "--run", "r", *flags)
        assert done.returncode == 3
        assert "cannot read dev:1.de: no such file" in error_of(done)
        assert "r/config.yaml names it: if the files of this run were moved" in error_of(done)
        assert "with --src, --tgt, --dev-src, --dev-tgt;" in error_of(done)
    mistyped = tfm("train", "--run", "r", "--set", "data.dev_tgt=[typo.de]")
    assert mistyped.returncode == 3
    assert "cannot read typo.de: no such file" in error_of(mistyped)
    assert "config.yaml" not in error_of(mistyped)


def test_a_vocabulary_built_into_the_run_outlives_a_start_that_fails(tfm: Tfm, corpus: Path) -> None:
    assert tfm("tokenize", *FILES[:4], "--vocab-size", 300, "--output", "r/tokenizer").returncode == 0
    with open(corpus / "train.en", "ab") as file:
        file.write(b"not \xff UTF-8\n")
    with open(corpus / "train.de", "ab") as file:
        file.write(b"x\n")
    command = ["train", *FILES, "--tokenizer", "r/tokenizer", "--run", "r", "--max-steps", 2, *TINY_FLAGS]
    failed = tfm(*command)
    assert failed.returncode == 3
    assert "--set data.bad_lines=skip" in error_of(failed)
    done = tfm(*command, "--set", "data.bad_lines=skip")
    assert done.returncode == 0, error_of(done)


def test_a_run_is_not_started_from_itself(tfm: Tfm, corpus: Path) -> None:
    assert tfm("train", *FILES, "--max-steps", 2, *TINY_FLAGS).returncode == 0
    done = tfm("train", *FILES, "--max-steps", 4, "--init-from", "runs/train")
    assert done.returncode == 2
    assert "--init-from runs/train needs another --run to train into" in error_of(done)


def test_a_held_out_set_is_the_same_at_the_next_start(tfm: Tfm, corpus: Path) -> None:
    command = ["train", *FILES[:4], "--run", "r", *TINY_FLAGS]
    assert tfm(*command, "--max-steps", 2).returncode == 0
    assert len(list((corpus / "r" / "cache").glob("held-out-*.json"))) == 1
    done = tfm(*command, "--max-steps", 4)  # would be refused with other data
    assert done.returncode == 0, error_of(done)


def test_json_lines_and_a_given_tokenizer(tfm: Tfm, corpus: Path, sentences: list[tuple[str, str]]) -> None:
    lines = [json.dumps({"translation": {"en": src, "de": tgt}}) for src, tgt in sentences]
    (corpus / "all.jsonl").write_text("\n".join(lines), encoding="utf-8")
    columns = ["--src-column", "en", "--tgt-column", "de"]
    assert tfm("tokenize", *FILES[:4], "--vocab-size", 300, "--output", "vocab").returncode == 0
    done = tfm("train", "--data", "all.jsonl", *columns, "--tokenizer", "vocab", "--max-steps", 2, *TINY_FLAGS)
    assert done.returncode == 0, error_of(done)
    assert (corpus / "runs" / "all" / "tokenizer" / "tokenizer.model").read_bytes() == (
        corpus / "vocab" / "tokenizer.model"
    ).read_bytes()


def test_a_translator_brings_a_memory_messages_and_a_table(
    tfm: Tfm, corpus: Path, sentences: list[tuple[str, str]]
) -> None:
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{src}</seg></tuv><tuv xml:lang="de-DE"><seg>{tgt}</seg></tuv></tu>'
        for src, tgt in sentences[:100]
    )
    memory = f'<tmx version="1.4"><header srclang="de-DE"/><body>{units}</body></tmx>'
    (corpus / "memory.tmx").write_text(memory, encoding="utf-8")
    messages = [f'msgid "{src}"\nmsgstr "{tgt}"\n' for src, tgt in sentences[100:120]]
    (corpus / "app.po").write_text("\n".join([*messages, 'msgid "missing"\nmsgstr ""\n']), encoding="utf-8")
    rows = [f"{src};{tgt}" for src, tgt in [("English", "German"), *sentences[120:150]]]
    write_lines(corpus / "table.csv", rows)
    data = ["--data", "memory.tmx", "--data", "app.po=2", "--data", "table.csv", "--dev", "table.csv"]
    languages = ["--src-language", "en", "--tgt-language", "de"]
    columns = ["--src-column", "en", "--tgt-column", "de"]
    refused = tfm("train", *data, *columns, "--max-steps", 2, *TINY_FLAGS)
    assert refused.returncode == 3
    assert "table.csv: no columns 'en' and 'de' among 'English', 'German' (below: " in error_of(refused)
    write_lines(corpus / "table.csv", ["en;de", *rows[1:]])
    done = tfm("train", *data, *languages, "--run", "r", "--max-steps", 2, *TINY_FLAGS)
    assert done.returncode == 0, error_of(done)
    assert "table.csv: fields between semicolons, the first row taken for a header: 'en', 'de'" in error_of(done)
    assert "training data: 170 of 172 pairs kept (dropped: 2 empty)" in error_of(done)
    score = tfm("evaluate", "--run", "r", "--data", "app.po", "--metric", "chrf")
    assert score.returncode == 0, error_of(score)
    assert "1 of 21 entries left out: no text on one side" in error_of(score)
    assert RunDirectory(corpus / "r").languages == ("en", "de")
    units = [
        f'<file source-language="en-US" target-language="{code}"><trans-unit><source>12 3</source></trans-unit></file>'
        for code in ("fr", "de")
    ]
    (corpus / "in.xlf").write_text(f"<xliff>{''.join(units)}</xliff>")
    translated = tfm("translate", "--run", "r", "--input", "in.xlf", "--output", "out.xlf")
    assert translated.returncode == 0, error_of(translated)
    assert "en-US to de; 1 of 1 segments to fill in: 1 empty" in error_of(translated)
    assert "1 from en-US to fr are left out" in error_of(translated)
    text = (corpus / "out.xlf").read_text()
    assert text.startswith(f"<xliff>{units[0]}") and text.count("<target ") == 1
    other = tfm("translate", "--run", "r", "--input", "in.xlf", "--output", "o.xlf", "--tgt-language", "es")
    assert other.returncode == 3
    assert "from en-US to fr and en-US to de, not from en to es; name the languages of the file" in error_of(other)


def test_init_from_takes_weights_tokenizer_and_sizes(tfm: Tfm, corpus: Path, tiny_run: Path) -> None:
    done = tfm("train", *FILES, "--run", "tuned", "--init-from", tiny_run, "--max-steps", 3)
    assert done.returncode == 0, error_of(done)
    assert "step 0: validation loss" in error_of(done)
    assert "d_model: 16" in (corpus / "tuned" / "config.yaml").read_text()


def test_init_from_may_change_dropout_and_nothing_else(tfm: Tfm, corpus: Path, tiny_run: Path) -> None:
    flags = [*FILES, "--init-from", tiny_run, "--max-steps", 2]
    assert tfm("train", *flags, "--run", "a", "--set", "model.dropout=0.3").returncode == 0
    changes = {"d_ff=64": "d_ff is 32, not 64", "positions=sinusoidal": "positions is rotary, not sinusoidal"}
    for change, said in changes.items():
        done = tfm("train", *flags, "--run", "b", "--set", f"model.{change}")
        assert done.returncode == 2
        assert f"is another model than this configuration has: its {said}" in error_of(done)


def test_max_steps_holds_beside_max_time(tfm: Tfm, corpus: Path) -> None:
    done = tfm("train", *FILES, "--run", "r", "--max-time", "5m", "--max-steps", 7, *TINY_FLAGS)
    assert done.returncode == 0, error_of(done)
    assert weights(corpus / "r", 7)


def test_max_time_becomes_a_number_of_steps_once(tfm: Tfm, corpus: Path) -> None:
    flags = [*FILES, "--run", "r", "--max-time", "4s", *TINY_FLAGS, "--set", "training.validate_every=100000"]
    start = time.monotonic()
    done = tfm("train", *flags)
    assert done.returncode == 0, error_of(done)
    assert time.monotonic() - start < 60
    plan = json.loads((corpus / "r" / "plan.json").read_text())
    assert plan["max_steps"] >= 61
    assert weights(corpus / "r", plan["max_steps"])
    assert "already finished" in error_of(tfm("train", *flags))
    longer = tfm("train", *("1h" if flag == "4s" else flag for flag in flags))
    assert longer.returncode == 2
    assert "planned for 4s" in error_of(longer)


def test_a_time_limit_cannot_reshape_a_schedule_under_way_and_leaves_the_run_as_it_is(tfm: Tfm, corpus: Path) -> None:
    flags = [*FILES, "--run", "r", *TINY_FLAGS]
    assert tfm("train", *flags, "--max-steps", 12).returncode == 0
    before = (corpus / "r" / "config.yaml").read_bytes()
    refused = tfm("train", "--run", "r", "--max-time", "1h")
    assert refused.returncode == 2
    assert "began without a time limit" in error_of(refused)
    assert (corpus / "r" / "config.yaml").read_bytes() == before
    assert "already finished" in error_of(tfm("train", "--run", "r"))


def test_a_time_limit_for_a_run_under_way(tfm: Tfm, corpus: Path) -> None:
    flags = [*FILES, "--run", "r", *TINY_FLAGS, "--set", "training.schedule=constant", "--set", "training.patience=0"]
    assert tfm("train", *flags, "--max-steps", 80).returncode == 0
    longer = tfm("train", *flags, "--max-time", "0.01s")
    assert longer.returncode == 0, error_of(longer)
    assert "finished at step 84" in error_of(longer)  # it is over before three updates were timed; one more is made


def test_modules_of_the_current_directory_are_not_imported(installed: Tfm, corpus: Path) -> None:
    for name in ("random", "json", "tokenize", "numpy"):
        write_lines(corpus / f"{name}.py", ["raise SystemExit('imported')"])
    parts = ["--set", "training.grad_accum_steps=2", "--set", "training.ranks=2"]
    done = installed("train", *FILES, "--run", "r", "--max-steps", 2, *TINY_FLAGS, *parts)
    assert done.returncode == 0, error_of(done)


def test_divergence_stops_with_exit_6_and_keeps_the_last_good_checkpoint(tfm: Tfm, corpus: Path) -> None:
    flags = [*FILES, "--run", "r", "--max-steps", "200", *TINY_FLAGS, "--precision", "fp32"]
    wild = ["--set", "training.learning_rate=1.0e+30", "--set", "training.warmup_steps=30"]
    done = tfm("train", *flags, *wild, "--set", "training.ema_decay=0")
    assert done.returncode == 6, error_of(done)
    assert "diverged at step" in error_of(done)
    assert "learning_rate=" in error_of(done)


def test_early_stopping(tfm: Tfm, corpus: Path) -> None:
    no_patience = ["--set", "training.patience=0"]
    flags = [*TINY_FLAGS, *no_patience, "--set", "training.early_stopping=2", "--set", "training.learning_rate=1.0e-9"]
    done = tfm("train", *FILES, "--run", "r", "--max-steps", 200, *flags)
    assert done.returncode == 0, error_of(done)
    # a score at 10, then two validations without a higher one; of equal ones the lowest loss is best
    assert "finished at step 30, best at step 30, as validation had stopped improving." in error_of(done)
    again = tfm("train", *FILES, "--run", "r", "--max-steps", 300, *flags)
    assert "validation had stopped improving" in error_of(again)


def test_a_full_disk_is_told_and_nothing_old_is_lost(tfm: Tfm, corpus: Path) -> None:
    assert tfm("train", *FILES, "--run", "r", "--max-steps", 5, *TINY_FLAGS).returncode == 0
    before = weights(corpus / "r", 5)
    limited = f"ulimit -f 40; exec {TFM} train {' '.join(FILES)} --run r --max-steps 30 {' '.join(TINY_FLAGS)}"
    done = subprocess.run(["bash", "-c", limited], cwd=corpus, capture_output=True, check=False)
    assert done.returncode == 5, done.stderr.decode()
    assert "cannot write" in error_of(done)
    assert weights(corpus / "r", 5) == before
    done = tfm("train", *FILES, "--run", "r", "--max-steps", 30, *TINY_FLAGS)
    assert done.returncode == 0, error_of(done)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_messages_that_nobody_can_read_do_not_end_it(tfm: Tfm, corpus: Path) -> None:
    command = [str(TFM), "train", *FILES, "--run", "r", "--max-steps", "20", *TINY_FLAGS]
    with open("/dev/full", "wb") as stderr:
        assert subprocess.run(command, cwd=corpus, stderr=stderr, env=ONE_THREAD, check=False).returncode == 0
    assert "already finished at step 20" in error_of(tfm(*command[1:]))


@pytest.mark.parametrize("stream", [">&-", "2>&-"])
def test_a_closed_stream_is_like_one_that_nobody_reads(tfm: Tfm, corpus: Path, stream: str) -> None:
    flags = " ".join([*FILES, "--run r --max-steps 5", *TINY_FLAGS])
    done = subprocess.run(
        ["bash", "-c", f"{TFM} train {flags} {stream}"], cwd=corpus, env=ONE_THREAD, capture_output=True, check=False
    )
    assert done.returncode == 0 and done.stdout == b""


def test_torchrun_is_not_left_out_of_a_command_to_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["tfm", "train", "--run", "my run"])
    assert command_line() == ": tfm train --run 'my run'"
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert command_line() == ""


def test_weights_that_are_no_numbers_are_never_saved(tfm: Tfm, corpus: Path) -> None:
    """The first rates are so high that the weights leave all bounds before a validation looks at them."""
    flags = [*FILES, "--run", "r", "--max-steps", 200, *TINY_FLAGS, "--precision", "fp32", "--set", "training.ranks=1"]
    wild = ["--set", "training.learning_rate=1.0e+38", "--set", "training.warmup_steps=1"]
    often = ["--set", "training.checkpoint_every=1", "--set", "training.max_grad_norm=0"]
    done = tfm("train", *flags, *wild, *often, "--set", "training.best_metric=loss")
    assert done.returncode == 6, error_of(done)
    told = tfm("info", "--run", "r", "--json")
    kept = json.loads(told.stdout)["checkpoints"] if told.returncode == 0 else []
    assert all(not one["best"] and one["score"] is None for one in kept)
    done = tfm("translate", "--run", "r", "one two")
    assert done.returncode == 4, error_of(done)


def test_a_run_with_links_in_it_writes_nothing_elsewhere(tfm: Tfm, corpus: Path) -> None:
    (corpus / "r").mkdir()
    (corpus / "elsewhere").mkdir()
    (corpus / "elsewhere" / "notes.partial").write_text("mine")
    for name in ("checkpoints", "cache"):
        (corpus / "r" / name).symlink_to(corpus / "elsewhere")
        done = tfm("train", *FILES, "--run", "r", "--max-steps", 2, *TINY_FLAGS)
        assert done.returncode == 4 and "is a symbolic link" in error_of(done)
        assert [path.name for path in (corpus / "elsewhere").iterdir()] == ["notes.partial"]
        (corpus / "r" / name).unlink()
