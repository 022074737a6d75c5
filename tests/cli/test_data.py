"""`tfm data`: what is wrong with a corpus, said, written down and left out."""

import json
import shlex
from pathlib import Path

from helpers.command import Tfm, error_of, write_lines

FILES = ["--src", "train.en", "--tgt", "train.de"]


def test_faults_are_shown_written_and_left_out(tfm: Tfm, corpus: Path) -> None:
    src, tgt = ((corpus / name).read_text().splitlines() for name in ("train.en", "train.de"))
    src[10:10] = ["a whole sentence", "x", "year 1999"]
    tgt[10:10] = ["a whole sentence", "", "Jahr 2024"]
    write_lines(corpus / "train.en", src)
    write_lines(corpus / "train.de", tgt)
    flags = ["--dev-src", "dev.en", "--dev-tgt", "dev.de", "--report", "faults.tsv", "--clean", "cleaned"]
    done = tfm("data", *FILES, *flags)
    assert done.returncode == 0, error_of(done)
    said = done.stdout.decode()
    assert "183 pairs" in said and "line 11\n    a whole sentence\n" in said and "line 12: target" in said
    rows = [line.split("\t") for line in (corpus / "faults.tsv").read_text().splitlines()]
    assert ["11", "identical", ""] in rows and ["12", "empty", "target"] in rows
    assert ["13", "numbers", "1999 | 2024"] in rows
    kept = [(corpus / "cleaned" / name).read_text().splitlines() for name in ("train.en", "train.de")]
    assert len(kept[0]) == len(kept[1]) == 183 - len({row[0] for row in rows if row[1] != "numbers"})
    assert "year 1999" in kept[0] and "a whole sentence" not in kept[0]
    found = json.loads(tfm("data", *FILES, *flags[:4], "--json").stdout)
    assert found["pairs"] == 183 and found["faults"]["identical"] == 1 and found["kept"] is None


def test_the_corpus_is_not_overwritten(tfm: Tfm, corpus: Path) -> None:
    before = (corpus / "train.en").read_bytes()
    done = tfm("data", *FILES, "--clean", ".")
    assert done.returncode == 2 and "--clean . would overwrite train.en, which --src reads" in error_of(done)
    assert (corpus / "train.en").read_bytes() == before


def test_a_corpus_has_to_be_named(tfm: Tfm) -> None:
    done = tfm("data")
    assert done.returncode == 2 and "name the corpus: --src and --tgt, or --data" in error_of(done)


def test_a_validation_set_with_its_sides_swapped_is_noticed(tfm: Tfm, corpus: Path) -> None:
    done = tfm("data", *FILES, "--dev-src", "dev.de", "--dev-tgt", "dev.en")
    assert error_of(done).count("the sides of the validation set seem to be swapped") == 1
    assert "swapped" not in error_of(tfm("data", *FILES, "--dev-src", "dev.en", "--dev-tgt", "dev.de"))
    assert (corpus / "dev.en").exists()


def test_files_are_named_without_a_flag_and_a_command_is_offered_where_columns_are_not_clear(
    tfm: Tfm, tmp_path: Path
) -> None:
    (tmp_path / "a b.csv").write_text("Domain,English,German\nShop,the cat sleeps,die Katze\n", encoding="utf-8")
    refused = tfm("data", "a b.csv", "--src-column", "en", "--json")
    assert refused.returncode == 3
    offered = error_of(refused).partition(", such as: tfm ")[2].strip()
    assert offered == "data --src-column 2 --tgt-column 3 'a b.csv' --json"
    done = tfm(*shlex.split(offered))
    assert done.returncode == 0 and json.loads(done.stdout)["pairs"] == 1, error_of(done)
    several = tfm("data", "--data", "a b.csv", "a b.csv", "--src-column", 2, "--tgt-column", 3, "--json")
    assert json.loads(several.stdout)["pairs"] == 2


def test_a_folder_with_a_file_that_fails_is_audited_and_ends_in_3(tfm: Tfm, tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "a.tsv").write_text("the cat\tdie Katze\n", encoding="utf-8")
    (tmp_path / "f" / "b.tsv").write_text("no tab\n", encoding="utf-8")
    done = tfm("data", "f")
    assert done.returncode == 3 and "f: 1 pairs" in done.stdout.decode()
    assert "f/a.tsv: 1 pairs" in error_of(done) and "f/b.tsv:1: no tab" in error_of(done)
    assert tfm("train", "f").returncode == 3


def test_what_is_not_translated_is_no_pair_with_a_blank_source(tfm: Tfm, tmp_path: Path) -> None:
    entry = 'msgid "{}"\nmsgstr "{}"\n\n'
    texts = [("", "Language: de\\n"), ("one cat", "eine Katze"), ("two cats", ""), ("a dog", ""), ("seven", "sieben")]
    (tmp_path / "a.po").write_text("".join(entry.format(*text) for text in texts), encoding="utf-8")
    done = tfm("data", "a.po")
    assert done.returncode == 0, error_of(done)
    shown, said = done.stdout.decode(), error_of(done)
    assert "untranslated       2  (50.00 %)  not translated, or not yet for good: left out" in shown
    assert "no fault found" in shown and "empty" not in shown and "line 1" not in shown
    assert "a.po to de: 2 translated, 0 fuzzy, 2 empty, 0 obsolete" in said
    kept = tfm("data", "a.po", "--clean", "clean", "--json")
    faults = json.loads(kept.stdout)["faults"]
    assert faults["untranslated"] == 2 and faults["empty"] == 0
    assert (tmp_path / "clean" / "clean.src").read_text(encoding="utf-8") == "one cat\nseven\n"
