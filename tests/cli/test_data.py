"""`tfm data`: what is wrong with a corpus, said, written down and left out."""

import json
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
