"""`tfm evaluate` scores what `tfm translate` gives; `tfm info` describes a run."""

import gzip
import json
import re
import shutil
from pathlib import Path

import pytest
import sacrebleu
from helpers.command import TINY_FLAGS, Tfm, error_of, records, write_lines

COLORS, ANIMALS = ["red", "green", "blue"], ["cat", "dog", "bird"]


def test_scores_are_those_of_the_translations(tfm: Tfm, corpus: Path, tiny_run: Path) -> None:
    flags = ["--run", tiny_run, "--src", "dev.en", "--tgt", "dev.de", "--beam-size", 1]
    metrics = [flag for name in ("bleu", "chrf", "ter", "exact", "wer") for flag in ("--metric", name)]
    done = tfm("evaluate", *flags, *metrics, "--json", "--output", "out.de")
    assert done.returncode == 0, error_of(done)
    result = json.loads(done.stdout)
    outputs = (corpus / "out.de").read_text(encoding="utf-8").splitlines()
    translated = tfm("translate", "--run", tiny_run, "--input", "dev.en", "--beam-size", 1).stdout.decode()
    assert outputs == translated.splitlines()
    references = (corpus / "dev.de").read_text(encoding="utf-8").splitlines()
    assert result["scores"]["bleu"] == sacrebleu.corpus_bleu(outputs, [references]).score
    assert "tok:13a" in result["signatures"]["bleu"]
    assert set(result["scores"]) == {"bleu", "chrf", "ter", "exact", "wer"}
    assert result["loss"] > 0
    found = result["faithfulness"]
    assert found["outputs"] == len(references) and found["unknown"] == result["unknown"]
    by_hand = tfm("evaluate", "--hyp", "out.de", *flags[2:6], "--json")  # of outputs alone nobody knows the vocabulary
    assert json.loads(by_hand.stdout)["faithfulness"] == found | {"unknown": None}
    told = tfm("evaluate", "--hyp", "out.de", *flags[2:6]).stdout.decode().splitlines()
    assert told[-2].startswith("kept: ") and told[-1].startswith("length: ")


def test_people_read_lines_with_signatures(tfm: Tfm, corpus: Path, tiny_run: Path) -> None:
    done = tfm("evaluate", "--run", tiny_run, "--src", "dev.en", "--tgt", "dev.de", "--examples", 2)
    assert done.returncode == 0
    assert "20 sentences, beam 5, length penalty 1.5" in done.stdout.decode()
    assert "bleu" in done.stdout.decode()
    assert error_of(done).count("reference") == 2


def test_single_sentences_the_worst_first(tfm: Tfm, corpus: Path, tiny_run: Path) -> None:
    flags = ["--src", "dev.en", "--tgt", "dev.de", "--beam-size", 1, "--worst", 2, "--report", "each.jsonl"]
    done = tfm("evaluate", "--run", tiny_run, *flags)
    assert done.returncode == 0 and error_of(done).count("confidence") == 2, error_of(done)
    rows = [json.loads(line) for line in (corpus / "each.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sorted(row["line"] for row in rows) == list(range(1, 21))
    assert [row["chrf"] for row in rows] == sorted(row["chrf"] for row in rows)
    assert all(0 <= row["confidence"] <= 1 for row in rows)
    sources = (corpus / "dev.en").read_text(encoding="utf-8").splitlines()
    assert all(row["source"] == sources[row["line"] - 1] for row in rows)
    line = tfm("translate", "--run", tiny_run, "--beam-size", 1, "--json", sources[3]).stdout
    (row,) = (row for row in rows if row["line"] == 4)
    assert json.loads(line)["confidence"] == pytest.approx(row["confidence"], abs=1e-6)
    assert row["references"] == [(corpus / "dev.de").read_text(encoding="utf-8").splitlines()[3]]


def test_several_references_in_a_tsv(tfm: Tfm, corpus: Path, tiny_run: Path) -> None:
    hypotheses = tfm("translate", "--run", tiny_run, "--input", "dev.en", "--beam-size", 1).stdout.decode().split("\n")
    write_lines(corpus / "refs.tsv", [f"something else\t{line}" for line in hypotheses[:-1]])
    flags = ["--src", "dev.en", "--tgt", "refs.tsv", "--beam-size", 1, "--metric", "exact", "--json"]
    done = tfm("evaluate", "--run", tiny_run, *flags)
    assert json.loads(done.stdout)["scores"]["exact"] == pytest.approx(100 * sum(map(bool, hypotheses)) / 20)


def test_wrong_use(tfm: Tfm, corpus: Path, tiny_run: Path) -> None:
    write_lines(corpus / "short.de", ["eins"])
    for arguments, code, words in [
        (["--src", "dev.en"], 2, "give a test set"),
        (["--src", "dev.en", "--tgt", "dev.de", "--metric", "blue"], 2, "metric must be one of"),
        (["--src", "dev.en", "--tgt", "short.de"], 3, "20 lines and short.de 1"),
        (["--src", "dev.xx", "--tgt", "dev.de"], 3, "no such file"),
    ]:
        done = tfm("evaluate", "--run", tiny_run, *arguments)
        assert done.returncode == code, error_of(done)
        assert words in error_of(done)


def test_outputs_that_are_there_are_scored_and_compared(tfm: Tfm, tmp_path: Path) -> None:
    references = [f"the {color} {animal} sees {n} men" for n, color in enumerate(COLORS * 10) for animal in ANIMALS]
    write_lines(tmp_path / "ref", references)
    write_lines(tmp_path / "good", [line.replace("green", "red") for line in references])
    write_lines(tmp_path / "bad", [line.replace("sees", "and") for line in references])
    alone = tfm("evaluate", "--hyp", "good", "--tgt", "ref", "--metric", "bleu", "--metric", "exact")
    assert alone.returncode == 0, error_of(alone)
    assert f"{len(references)} sentences" in alone.stdout.decode()
    assert "exact  66.67" in alone.stdout.decode()
    done = tfm("evaluate", "--hyp", "good", "--hyp", "bad", "--tgt", "ref", "--metric", "bleu")
    assert done.returncode == 0, error_of(done)
    assert "bad  differs from good (p = 0.001)" in done.stdout.decode()
    machine = tfm("evaluate", "--hyp", "good", "--hyp", "bad", "--tgt", "ref", "--metric", "bleu", "--json")
    same = tfm("evaluate", "--hyp", "good", "--hyp", "good", "--tgt", "ref", "--metric", "bleu")
    assert "good  no clear difference from good (p = 1.000)" in same.stdout.decode()
    bleu = json.loads(machine.stdout)["scores"]["bleu"]
    texts = [(tmp_path / name).read_text().splitlines() for name in ("good", "bad")]
    assert bleu["values"] == [sacrebleu.corpus_bleu(one, [references]).score for one in texts]
    assert bleu["p_values"][0] < 0.01


def test_outputs_of_messages_that_are_not_all_translated(tfm: Tfm, tmp_path: Path) -> None:
    messages = ['msgid "one two"\nmsgstr "eins zwei"\n', 'msgid "three"\nmsgstr ""\n', 'msgid "f"\nmsgstr "vier"\n']
    (tmp_path / "app.po").write_text("\n".join(messages))
    write_lines(tmp_path / "all", ["eins zwei", "something", "vier"])
    write_lines(tmp_path / "translated", ["eins zwei", "vier"])
    for name in ("all", "translated"):
        done = tfm("evaluate", "--hyp", name, "--data", "app.po", "--metric", "exact", "--json")
        assert done.returncode == 0, error_of(done)
        assert json.loads(done.stdout)["scores"]["exact"]["values"] == [100]
        assert "1 of 3 entries left out: no text on one side" in error_of(done)


def test_the_sentences_in_which_two_outputs_differ_most(tfm: Tfm, tmp_path: Path) -> None:
    write_lines(tmp_path / "src", ["un", "deux", "trois"])
    write_lines(tmp_path / "ref", ["the first line", "the second line", "the third line"])
    write_lines(tmp_path / "one", ["the first line", "a second line", "no line at all"])
    write_lines(tmp_path / "two", ["the first line", "quite wrong", "no line at all"])
    both = ["evaluate", "--hyp", "one", "--hyp", "two", "--src", "src", "--tgt", "ref", "--metric", "bleu"]
    done = tfm(*both, "--worst", 1, "--report", "each.jsonl")
    assert done.returncode == 0, error_of(done)
    shown = error_of(done)
    assert re.search(r"line 2, chrF \d+\.\d and \d+\.\d\n", shown)
    for name, text in [("source", "deux"), ("one", "a second line"), ("two", "quite wrong"), ("reference", "the sec")]:
        assert f"{name:<9}  {text}" in shown
    rows = records(tmp_path / "each.jsonl")
    assert [row["line"] for row in rows] == [2, 1, 3]
    assert rows[0]["source"] == "deux" and rows[0]["outputs"] == ["a second line", "quite wrong"]
    metric = sacrebleu.CHRF()
    expected = [metric.sentence_score(text, ["the second line"]).score for text in rows[0]["outputs"]]
    assert rows[0]["chrf"] == pytest.approx(expected)
    alone = tfm("evaluate", "--hyp", "one", "--tgt", "ref", "--worst", 1)
    assert "line 3, chrF" in error_of(alone) and "source" not in error_of(alone)


def test_given_translations_are_scored_without_translating(tfm: Tfm, corpus: Path, tiny_run: Path) -> None:
    lines = (corpus / "dev.de").read_text(encoding="utf-8").splitlines()
    write_lines(corpus / "long.de", [*lines[:-1], "eins zwei drei " * 40])
    command = ["evaluate", "--run", tiny_run, "--forced", "--src", "dev.en"]
    done = tfm(*command, "--tgt", "long.de", "--worst", 2, "--report", "each.jsonl")
    assert done.returncode == 0, error_of(done)
    assert "20 given translations; 1 longer than the model reads" in done.stdout.decode()
    assert error_of(done).count("log-probability") == 2
    rows = records(corpus / "each.jsonl")
    assert sorted(row["line"] for row in rows) == list(range(1, 21))
    confidences = [row["confidence"] for row in rows]
    assert confidences.pop() is None and confidences == sorted(confidences)
    known = rows[:-1]
    loss = -sum(row["log_prob"] for row in known) / sum(row["tokens"] for row in known)
    told = json.loads(tfm(*command, "--tgt", "long.de", "--json").stdout)
    assert told["loss"] == pytest.approx(loss) and (told["pairs"], told["scored"]) == (20, 19)
    whole = json.loads(tfm("evaluate", "--run", tiny_run, "--src", "dev.en", "--tgt", "dev.de", "--json").stdout)
    assert json.loads(tfm(*command, "--tgt", "dev.de", "--json").stdout)["loss"] == pytest.approx(whole["loss"])
    refused = tfm(*command, "--tgt", "dev.de", "--beam-size", 3)
    assert refused.returncode == 2
    assert "--forced translates nothing; it cannot be combined with --beam-size" in error_of(refused)


def test_lines_are_those_of_the_file(tfm: Tfm, tmp_path: Path, tiny_run: Path) -> None:
    """An entry without a source is left out."""
    write_lines(tmp_path / "gap.tsv", ["one\teins", "\tzwei", "three four\tvier drei"])
    named = ["--src-column", "src", "--tgt-column", "tgt"]
    for flags in (["--forced"], ["--beam-size", 1]):
        done = tfm("evaluate", "--run", tiny_run, "--data", "gap.tsv", *named, *flags, "--report", "each.jsonl")
        assert done.returncode == 0, error_of(done)
        assert sorted(row["line"] for row in records(tmp_path / "each.jsonl")) == [1, 3]


@pytest.fixture(scope="module")
def other_run(forked: Tfm, tmp_path_factory: pytest.TempPathFactory, sentences: list[tuple[str, str]]) -> Path:
    """Another run, with another vocabulary."""
    folder = tmp_path_factory.mktemp("other")
    write_lines(folder / "train.tsv", ["\t".join(pair) for pair in sentences[30:]])
    flags = [*TINY_FLAGS, "--set", "tokenizer.vocab_size=300", "--seed", 3]
    done = forked("train", "--data", "train.tsv", "--max-steps", 30, "--run", "other", *flags, cwd=folder)
    assert done.returncode == 0, done.stderr.decode()
    return folder / "other"


def test_two_runs_are_compared_as_two_files_of_outputs(tfm: Tfm, corpus: Path, tiny_run: Path, other_run: Path) -> None:
    flags = ["--src", "dev.en", "--tgt", "dev.de", "--metric", "bleu", "--metric", "chrf", "--worst", 1]
    runs = [tiny_run, other_run]
    for name, run in zip(("one", "other"), runs, strict=True):
        done = tfm("translate", "--run", run, "--input", "dev.en", "--output", name, "--beam-size", 2)
        assert done.returncode == 0, error_of(done)
    assert (corpus / "one").read_text() != (corpus / "other").read_text()
    by_run = ["evaluate", *(flag for run in runs for flag in ("--run", run)), *flags, "--beam-size", 2]
    done = tfm(*by_run, "--report", "runs.jsonl")
    files = tfm("evaluate", "--hyp", "one", "--hyp", "other", *flags, "--report", "files.jsonl")
    assert done.returncode == files.returncode == 0, error_of(done)
    renamed = re.sub(r"\bother\b", str(other_run), re.sub(r"\bone\b", str(tiny_run), files.stdout.decode()))
    assert done.stdout.decode() == renamed
    assert records(corpus / "runs.jsonl") == records(corpus / "files.jsonl")
    told = json.loads(tfm(*by_run, "--json").stdout)
    assert told["run"] == list(map(str, runs)) and len(told["scores"]["bleu"]["p_values"]) == 1
    for extra, words in [
        (["--output", "x"], "--run twice compares two runs; it cannot be combined with --output"),
        (["--examples", 1], "it cannot be combined with --examples"),
        (["--metric", "exact"], "--run twice compares by bleu, chrf, ter; there is no test for exact"),
    ]:
        refused = tfm("evaluate", "--run", tiny_run, "--run", other_run, *flags[:4], *extra)
        assert refused.returncode == 2 and words in error_of(refused)


def test_no_other_command_takes_two_runs(tfm: Tfm, tiny_run: Path) -> None:
    for command in ("translate", "check", "info"):
        refused = tfm(command, "--run", tiny_run, "--run", tiny_run)
        assert refused.returncode == 2
        assert f"tfm {command} takes one --run, but it is given 2 times" in error_of(refused)


def exact(tfm: Tfm, *arguments: object) -> tuple[float, int, str]:
    """The share of exact matches of `hyp`, in per cent; of how many; and what was said."""
    done = tfm("evaluate", "--hyp", "hyp", *arguments, "--metric", "exact", "--json")
    assert done.returncode == 0, error_of(done)
    told = json.loads(done.stdout)
    return told["scores"]["exact"]["values"][0], told["sentences"], error_of(done)


def test_what_is_blank_is_no_reference(tfm: Tfm, tmp_path: Path) -> None:
    write_lines(tmp_path / "src", ["a", "b", "c", "d"])
    write_lines(tmp_path / "hyp", ["", "two", "three", ""])
    write_lines(tmp_path / "refs.tsv", ["one\t", "\u200b\tzwei\ttwo", "three\t \t", "\t\t"])
    write_lines(tmp_path / "first", ["one", "", "three", ""])
    write_lines(tmp_path / "second", ["", "two", " ", "\u00a0"])
    (tmp_path / "refs.tsv.gz").write_bytes(gzip.compress((tmp_path / "refs.tsv").read_bytes()))
    for references in (["refs.tsv"], ["refs.tsv.gz"], ["first", "second"], ["second", "first"], ["first", "refs.tsv"]):
        tgt = [flag for one in references for flag in ("--tgt", one)]
        for src in (["--src", "src"], []):
            share, sentences, said = exact(tfm, *src, *tgt)
            assert (round(share, 2), sentences) == (66.67, 3), references
            assert "1 of 4 entries left out: no text on one side" in said
    write_lines(tmp_path / "blank", ["", " ", "", ""])
    done = tfm("evaluate", "--hyp", "hyp", "--src", "src", "--tgt", "blank")
    assert done.returncode == 3 and "no pair with a text on both sides" in error_of(done)


def test_several_files_of_references_of_one_source_or_one_test_set_after_the_other(tfm: Tfm, tmp_path: Path) -> None:
    write_lines(tmp_path / "src", ["a", "b"])
    write_lines(tmp_path / "hyp", ["one", "zwei"])
    write_lines(tmp_path / "first", ["one", "two"])
    write_lines(tmp_path / "second", ["eins", "zwei"])
    tgt = ["--tgt", "first", "--tgt", "second"]
    assert exact(tfm, "--src", "src", *tgt)[:2] == (100, 2)
    assert exact(tfm, *tgt)[:2] == (100, 2)
    write_lines(tmp_path / "hyp", ["one", "two", "one", "two"])
    assert exact(tfm, "--src", "src", "--src", "src", *tgt)[:2] == (50, 4)
    write_lines(tmp_path / "short", ["one"])
    for arguments, code, words in [
        (["--src", "src"] * 3 + tgt, 2, "--src names 3 files and --tgt 2; give one --tgt for each --src, or one"),
        (["--src", "src", "--tgt", "first", "--tgt", "short"], 3, "src has 2 lines and short 1"),
    ]:
        done = tfm("evaluate", "--hyp", "hyp", *arguments)
        assert done.returncode == code and words in error_of(done), error_of(done)


def test_lines_that_are_left_out_keep_their_place_in_the_output(tfm: Tfm, corpus: Path, tiny_run: Path) -> None:
    lines = (corpus / "dev.de").read_text(encoding="utf-8").splitlines()
    write_lines(corpus / "gap.de", [*lines[:3], "", *lines[4:]])
    flags = ["--run", tiny_run, "--src", "dev.en", "--beam-size", 1]
    for name in ("dev.de", "gap.de"):
        assert tfm("evaluate", *flags, "--tgt", name, "--output", f"out-{name}").returncode == 0
    whole, gap = ((corpus / f"out-{name}").read_text().split("\n") for name in ("dev.de", "gap.de"))
    assert gap == [*whole[:3], "", *whole[4:]]


def test_ter_of_a_script_without_spaces_counts_characters(tfm: Tfm, corpus: Path) -> None:
    write_lines(corpus / "thai", ["แมวนอนบนเสื่อ"] * 20)
    done = tfm("evaluate", "--hyp", "thai", "--tgt", "thai", "--metric", "ter", "--json")
    found = json.loads(done.stdout)
    found = found["scores"]["ter"]
    assert found["values"] == [0] and "unit:grapheme" in found["signature"]


def test_wrong_use_of_outputs(tfm: Tfm, tmp_path: Path) -> None:
    for name, count in (("ref", 3), ("short", 2), ("good", 3)):
        write_lines(tmp_path / name, ["one two three four"] * count)
    for arguments, code, words in [
        (["--hyp", "short", "--tgt", "ref"], 3, "short has 2 lines, but there are 3 references"),
        (["--hyp", "good", "--tgt", "ref", "--beam-size", 3], 2, "it cannot be combined with --beam-size"),
        (["--hyp", "good", "--tgt", "ref", "--device", "cpu"], 2, "it cannot be combined with --device"),
        (["--hyp", "good", "--hyp", "good", "--tgt", "ref", "--metric", "wer"], 2, "there is no test for wer"),
        (["--hyp", "good"], 2, "give the references: --tgt, or --data"),
        (["--hyp", "app.po", "--tgt", "ref"], 3, "app.po is not plain text: --hyp takes outputs line by line"),
    ]:
        done = tfm("evaluate", *arguments)
        assert done.returncode == code, error_of(done)
        assert words in error_of(done)


def test_info(tfm: Tfm, tiny_run: Path) -> None:
    done = tfm("info", "--run", tiny_run)
    assert done.returncode == 0, error_of(done)
    out = done.stdout.decode()
    for words in ("parameters", "d_model 16", "step 20: BLEU ", "best", "last", "\nverdict\n"):
        assert words in out
    assert "\33" not in out
    described = json.loads(tfm("info", "--run", tiny_run, "--json").stdout)
    assert described["model"]["d_model"] == 16
    assert described["training"]["step"] == 20
    assert described["computed"]["precision"] in ("float32", "bfloat16") and described["computed"]["parts"] == 1
    assert "GFLOP/s in fp32" in described["computed"]["layers"]
    assert sum(checkpoint["best"] for checkpoint in described["checkpoints"]) == 1


def test_info_of_nothing(tfm: Tfm, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = tfm("info", "--run", "empty")
    assert done.returncode == 4
    assert "no valid checkpoint in empty" in error_of(done)


def test_a_calibrated_run_projects_the_chrf_of_lines_and_of_a_test_set(
    tfm: Tfm, corpus: Path, calibrated_run: Path
) -> None:
    flags = ["--run", calibrated_run, "--src", "dev.en", "--tgt", "dev.de", "--report", "each.jsonl"]
    done = tfm("evaluate", *flags, "--json")
    assert done.returncode == 0, error_of(done)
    found = json.loads(done.stdout)["projection"]
    rows = {row["source"]: row for row in records(corpus / "each.jsonl")}
    inside = [row["projected_chrf"]["low"] <= row["chrf"] <= row["projected_chrf"]["high"] for row in rows.values()]
    assert found["sentences"] == 20 and found["covered"] == sum(inside) / 20
    text = " % are in their interval of 90 %, which is "
    assert text in tfm("evaluate", *flags).stdout.decode()
    lines = tfm("translate", "--run", calibrated_run, "--input", "dev.en", "--json").stdout.splitlines()
    for line in map(json.loads, lines):
        assert line["projected_chrf"] == pytest.approx(rows[line["source"]]["projected_chrf"], abs=0.11)
    for flag in (["--beam-size", 2], ["--sample"], ["--prefix", "eins"]):
        (line,) = tfm("translate", "--run", calibrated_run, *flag, "--json", "one two").stdout.splitlines()
        assert "projected_chrf" not in json.loads(line), "of another search nobody knows"
    other = json.loads(tfm("evaluate", *flags, "--beam-size", 2, "--json").stdout)
    assert other["projection"] is None


def test_a_run_is_calibrated_with_its_own_validation_set_or_with_another(
    tfm: Tfm, corpus: Path, tiny_run: Path
) -> None:
    run = corpus / "copy"
    shutil.copytree(tiny_run, run)
    few = tfm("evaluate", "--run", run, "--calibrate")
    assert few.returncode == 3 and "cannot read train.tsv" in error_of(few)
    assert "give a set with references: --src and --tgt, or --data" in error_of(few)
    shutil.copy(tiny_run.parent / "train.tsv", corpus)
    few = tfm("evaluate", "--run", run, "--calibrate")
    assert few.returncode == 3 and "at least 100 translations with references, and here are 9" in error_of(few)
    assert not (run / "calibration.json").exists()
    assert f"tfm evaluate --run {run} --calibrate" in tfm("info", "--run", run).stdout.decode()
    flags = ["--run", run, "--src", "train.en", "--tgt", "train.de"]
    done = tfm("evaluate", *flags, "--calibrate", "--json")
    assert done.returncode == 0 and "copy is calibrated" in error_of(done), error_of(done)
    found = json.loads(done.stdout)
    assert found["projection"]["sentences"] == 180 and 0.8 < found["projection"]["covered"] <= 1
    assert found["scores"] == json.loads(tfm("evaluate", *flags, "--json").stdout)["scores"]
    assert "by 180 pairs, for beam size 5" in json.loads(tfm("info", "--run", run, "--json").stdout)["calibration"]


def test_a_damaged_calibration_stops_no_translation(tfm: Tfm, corpus: Path, calibrated_run: Path) -> None:
    whole = tfm("translate", "--run", calibrated_run, "--json", "one two")
    path = calibrated_run / "calibration.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"pairs": 180', '"pairs": 181'), encoding="utf-8")
    done = tfm("translate", "--run", calibrated_run, "--json", "one two")
    assert done.returncode == 0 and "nothing is projected until it is made anew" in error_of(done)
    assert "damaged" in json.loads(tfm("info", "--run", calibrated_run, "--json").stdout)["calibration"]
    assert json.loads(whole.stdout).keys() - json.loads(done.stdout).keys() == {"projected_chrf"}
    done = tfm("evaluate", "--run", calibrated_run, "--src", "train.en", "--tgt", "train.de", "--calibrate")
    assert done.returncode == 0, error_of(done)
    assert tfm("translate", "--run", calibrated_run, "--json", "one two").stdout == whole.stdout


def test_a_run_of_the_opposite_direction_says_how_much_of_the_sources_arrives(
    tfm: Tfm, corpus: Path, tiny_run: Path
) -> None:
    flags = ["--run", tiny_run, "--src", "dev.en", "--tgt", "dev.de", "--opposite", tiny_run]
    told = tfm("evaluate", *flags).stdout.decode()
    assert "both ways, nats per piece: outputs " in told and " of 20 outputs say less of their source than the" in told
    found = json.loads(tfm("evaluate", *flags, "--json").stdout)["both_ways"]
    assert found["sentences"] == 20 and 0 <= found["less_said"] <= 20
    assert json.loads(tfm("evaluate", *flags[:-2], "--json").stdout)["both_ways"] is None
    done = tfm("evaluate", *flags, "--forced")
    assert done.returncode == 2 and "it cannot be combined with --opposite" in error_of(done)
