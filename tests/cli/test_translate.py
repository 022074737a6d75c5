"""`tfm translate`: one line in, one line out, always."""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import TFM, Tfm, error_of, run_command, write_lines
from helpers.terminal import typed

from tfm.cli.translations import work_of

ODD_LINES = [
    "one two",
    "",
    "three\u2028four",
    "five\x0bsix\x0cseven",
    "\u0085 eight",
    "   ",
    "nine\r",
    "😀 <s> </s> ▁ \ue000",
    "ten " * 100,
    "last",
]


def test_arguments(tfm: Tfm, tiny_run: Path) -> None:
    done = tfm("translate", "--run", tiny_run, "one two three", "four")
    assert done.returncode == 0, error_of(done)
    assert len(done.stdout.decode().split("\n")) == 3


def test_every_line_is_answered_in_order(tfm: Tfm, tiny_run: Path) -> None:
    done = tfm("translate", "--run", tiny_run, "--beam-size", 2, stdin="\n".join(ODD_LINES).encode())
    assert done.returncode == 0, error_of(done)
    lines = done.stdout.decode().split("\n")
    assert len(lines) == len(ODD_LINES) + 1
    assert lines[-1] == ""
    for line, answer in zip(ODD_LINES, lines, strict=False):
        assert line.strip() or not answer, "a blank line has a blank answer"
    assert any(lines)


def test_a_file_gives_the_same_as_stdin_and_as_single_lines(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "in.txt", ODD_LINES)
    done = tfm("translate", "--run", tiny_run, "--input", "in.txt", "--output", "out.txt")
    assert done.returncode == 0, error_of(done)
    assert done.stdout == b""
    streamed = tfm("translate", "--run", tiny_run, stdin=(tmp_path / "in.txt").read_bytes())
    assert (tmp_path / "out.txt").read_bytes() == streamed.stdout
    alone = tfm("translate", "--run", tiny_run, "one two").stdout
    assert streamed.stdout.startswith(alone)


def test_pipes_are_utf8_whatever_the_environment_says(tfm: Tfm, tiny_run: Path) -> None:
    command = [str(TFM), "translate", "--run", str(tiny_run), "--json", "日本 „Tür“"]
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252", "LC_ALL": "C"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.decode("utf-8"))["source"] == "日本 „Tür“"


@pytest.mark.parametrize("name", ["app.mo", "page.html", "text.docx"])
def test_a_file_of_a_known_format_is_not_translated_line_by_line(
    tfm: Tfm, tiny_run: Path, tmp_path: Path, name: str
) -> None:
    write_lines(tmp_path / name, ['msgid "one"'])
    done = tfm("translate", "--run", tiny_run, "--input", name, "--output", "out.txt")
    assert done.returncode == 3
    assert f"{name} is not plain text: its lines are not sentences" in error_of(done)
    assert not (tmp_path / "out.txt").exists()


def test_a_document_is_filled_in(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    write_lines(
        tmp_path / "app.po", ['msgid "one two three four five six"', 'msgstr ""', "", 'msgid "three"', 'msgstr "drei"']
    )
    write_lines(tmp_path / "terms.tsv", ["one\teins"])  # so that something comes out
    flags = ["--glossary", "terms.tsv", "--output", "out.po"]
    done = tfm("translate", "--run", tiny_run, "--input", "app.po", *flags)
    assert done.returncode == 0 and done.stdout == b"", error_of(done)
    text, said = (tmp_path / "out.po").read_text(), error_of(done)
    assert (
        "app.po: 1 translated, 0 fuzzy, 1 empty, 0 obsolete" in said
        and "out.po: 1 filled in by machine; review them" in said
    )
    assert "#, fuzzy" in text and 'msgstr "drei"' in text and text.count("machine translation, not reviewed") == 1


def test_a_column_is_filled_in(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "t.csv", ["id,english,german", "1,one two,eins zwei", '2,"three, four",'])
    write_lines(tmp_path / "terms.tsv", ["four\tvier"])  # so that the translation is not empty
    flags = ["--glossary", "terms.tsv", "--src-column", "english", "--tgt-column", "german"]
    done = tfm("translate", "--run", tiny_run, "--input", "t.csv", "--output", "out.csv", *flags)
    assert done.returncode == 0, error_of(done)
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[:2] == ["id,english,german", "1,one two,eins zwei"]
    assert lines[2].startswith('2,"three, four",') and "vier" in lines[2]


def test_terms_of_a_glossary_are_kept_and_scored(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "terms.tsv", ["two\tzehn zehn", "six\tsechs"])
    done = tfm("translate", "--run", tiny_run, "--glossary", "terms.tsv", "one two three", "one")
    assert done.returncode == 0 and "zehn zehn" in done.stdout.decode().splitlines()[0], error_of(done)
    write_lines(tmp_path / "test.tsv", ["one two\tzwei eins", "two two\tzwei zwei"])
    flags = ["--run", tiny_run, "--data", "test.tsv", "--glossary", "terms.tsv"]
    done = tfm("evaluate", *flags)
    assert "terms of the glossary: 3 of 3 kept (100.00 %)" in done.stdout.decode(), error_of(done)
    found = json.loads(tfm("evaluate", *flags, "--json").stdout)
    assert found["terms"] == {"kept": 3, "of": 3} and found["placeholders"] == {"kept": 0, "of": 0}


def test_placeholders_that_samples_lose_are_told(tfm: Tfm, tiny_run: Path) -> None:
    told = "1 translation with other placeholders than the source: line 1 lost %s"
    assert told in error_of(tfm("translate", "--run", tiny_run, "one %s two", "one")), "the corpus has none"
    done = tfm("translate", "--run", tiny_run, "--sample", "--json", "one %s two", "one")
    assert told in error_of(done)
    assert [json.loads(line).get("lost") for line in done.stdout.splitlines()] == [["%s"], None]


@pytest.mark.parametrize(("output", "content"), [("out.txt", bytes), ("out.txt.gz", gzip.decompress)])
def test_a_file_that_was_interrupted_goes_on(
    tfm: Tfm, tiny_run: Path, tmp_path: Path, output: str, content: Callable[[bytes], bytes]
) -> None:
    lines = [f"{word} {other} %" for word in ("one", "two", "three") for other in ("four", "five")] * 400
    write_lines(tmp_path / "in.txt", lines)
    command = [str(TFM), "translate", "--run", str(tiny_run), "--input", "in.txt", "--beam-size", "4"]
    partial = tmp_path / f"{output}.partial"
    for attempt in range(2):
        before, longer = partial.stat().st_size if partial.exists() else 0, set[int]()
        process = subprocess.Popen([*command, "--output", output], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        # The second chunk is written once the first one counts as done; an interrupt between the two loses a chunk.
        while process.poll() is None and len(longer) < 2:
            if partial.exists() and partial.stat().st_size > before:
                longer.add(partial.stat().st_size)
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130, said
        assert "of 2,400 lines are done, and kept; the same command goes on" in said and "error" not in said
        assert ("from line" in said) == bool(attempt)
    done_bytes = json.loads((tmp_path / f"{output}.work.partial").read_text())["bytes"]
    kept = partial.read_bytes()[:done_bytes].count(b"\n")
    done = tfm(*command[1:], "--output", output)
    assert done.returncode == 0 and f"from line {kept + 1:,} on" in error_of(done)
    assert f"from line {kept + 1:,} on, {len(lines) - kept:,} translations of text that" in error_of(done)
    whole = tfm(*command[1:])
    assert "warning: 2,400 translations of text that" in error_of(whole)
    assert content((tmp_path / output).read_bytes()) == whole.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", output]


def test_names_say_that_outputs_are_compressed(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "test.en", ["one two", "three"])
    write_lines(tmp_path / "test.de", ["zwei eins", "drei"])
    (tmp_path / "in.gz").write_bytes(gzip.compress((tmp_path / "test.en").read_bytes()))
    run, files = ["--run", tiny_run], ["--src", "test.en", "--tgt", "test.de"]
    usual = tfm("translate", *run, "--input", "test.en").stdout
    assert usual.count(b"\n") == 2
    for command, results in [
        (["translate", *run, "--input", "in.gz", "--output", "out.gz"], {"out.gz": usual}),
        (
            ["translate", *run, "--output", "out.gz", "--attention", "maps.jsonl.gz"],
            {"out.gz": b"\n", "maps.jsonl.gz": None},
        ),
        (
            ["evaluate", *run, *files, "-o", "out.gz", "--report", "each.jsonl.gz"],
            {"out.gz": usual, "each.jsonl.gz": None},
        ),
        (["data", *files, "--report", "faults.gz"], {"faults.gz": b""}),
    ]:
        done = tfm(*command, stdin=b"\n")
        assert done.returncode == 0, error_of(done)
        for name, content in results.items():
            found = gzip.decompress((tmp_path / name).read_bytes())
            assert found == content if content is not None else json.loads(found.splitlines()[0])
    assert (tmp_path / "maps").is_dir() and not list(tmp_path.glob("*.partial"))
    (tmp_path / "app.po").write_text('msgid "one"\nmsgstr ""\n', encoding="utf-8")
    done = tfm("translate", *run, "--input", "app.po", "--output", "out.po.gz")
    assert done.returncode == 2 and "the --output must end in .po" in error_of(done)


def test_other_work_does_not_go_on(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "in.txt", ["one", "two"])
    (tmp_path / "out.txt.partial").write_text("of something else\n")
    (tmp_path / "out.txt.work.partial").write_text("something else")
    done = tfm("translate", "--run", tiny_run, "--input", "in.txt", "--output", "out.txt")
    assert done.returncode == 0 and "from line" not in error_of(done)
    assert len((tmp_path / "out.txt").read_text().splitlines()) == 2


def test_json_lines_with_alternatives_and_scores(tfm: Tfm, tiny_run: Path) -> None:
    done = tfm("translate", "--run", tiny_run, "--json", "--n-best", 3, "--beam-size", 4, "one two", "three")
    assert done.returncode == 0, error_of(done)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["source"] for row in rows] == ["one two", "three"]
    for row in rows:
        scores = [one["score"] for one in row["alternatives"]]
        assert len(scores) == 3
        assert scores == sorted(scores, reverse=True)
        assert row["translation"] == row["alternatives"][0]["translation"]
        assert row["log_prob"] < 0


def test_a_beam_grows_to_the_alternatives_asked_for(tfm: Tfm, tiny_run: Path) -> None:
    done = tfm("translate", "--run", tiny_run, "--json", "--n-best", 8, "one two")
    assert done.returncode == 0, error_of(done)
    assert len(json.loads(done.stdout)["alternatives"]) == 8


def test_nothing_is_said_twice_where_that_is_asked_for(tfm: Tfm, tiny_run: Path) -> None:
    for flags in (["--beam-size", 1], []):
        done = tfm(
            "translate", "--run", tiny_run, *flags, "--no-repeat-ngram-size", 1, "--json", "--prefix", "und", "two"
        )
        assert done.returncode == 0, error_of(done)
        for line in done.stdout.splitlines():
            tokens = json.loads(line)["tokens"]
            assert len(set(tokens)) == len(tokens)
    done = tfm("translate", "--run", tiny_run, "--sample", "--no-repeat-ngram-size", 3, "one")
    assert done.returncode == 2
    assert "--sample draws and --no-repeat-ngram-size searches; give one of them" in error_of(done)


def test_every_translation_begins_with_the_prefix(tfm: Tfm, tiny_run: Path) -> None:
    for flags in (["--beam-size", 1], [], ["--sample", "--seed", 3]):
        done = tfm("translate", "--run", tiny_run, *flags, "--prefix", "un d", "one two", "", "three")
        assert done.returncode == 0, error_of(done)
        first, blank, last, _ = done.stdout.decode().split("\n")
        assert first.startswith("un d")
        assert not blank
        assert last.startswith("un d")


def test_sampling_repeats_with_its_seed(tfm: Tfm, tiny_run: Path) -> None:
    def sample(seed: int, *flags: object) -> bytes:
        return tfm("translate", "--run", tiny_run, "--sample", "--seed", seed, *flags, "one two three four").stdout

    assert sample(1) == sample(1)
    assert len({sample(seed, "--temperature", 1.5) for seed in range(4)}) > 1
    assert sample(3, "--top-k", 1) == sample(4, "--top-k", 1)


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["--n-best", "2", "x"], 2, "needs --json"),
        (["--json", "--n-best", "9", "--beam-size", "3", "x"], 2, "--beam-size of at least 9"),
        (["--sample", "--top-p", "0", "x"], 2, "top_p must be"),
        (["--temperature", "0.5", "x"], 2, "--temperature takes effect only with --sample"),
        (["--seed", "5", "x"], 2, "--seed takes effect only with --sample"),
        (["--sample", "--beam-size", "5", "x"], 2, "give one of them"),
        (["--prefix", "é" * 500, "x"], 3, "but this model writes at most"),
        (["--input", "missing.txt"], 3, "cannot read missing.txt: no such file"),
        (["--input", "in.txt", "x"], 2, "not both"),
        (["--input", "app.po"], 2, "name the file to write, --output FILE.po"),
        (["--input", "app.po", "--output", "x.txt"], 2, "the --output must end in .po"),
        (["--input", "app.po", "--output", "x.po", "--json"], 2, "--json and --prefix are for lines"),
        (["--input", "missing.po", "--output", "x.po"], 3, "cannot read missing.po: no such file"),
        (["--sample", "--glossary", "terms.tsv", "x"], 2, "--sample draws freely"),
        (["--glossary", "missing.tsv", "x"], 3, "cannot read missing.tsv"),
        (["--checkpoint", "7", "x"], 4, "no checkpoint '7'"),
        (["--device", "abacus", "x"], 2, "device must be"),
        (["--output", "no/such/folder/out.txt", "x"], 5, "cannot write"),
        (["--output", ".", "x"], 5, "is a directory"),
    ],
)
def test_wrong_use_is_one_line_and_the_documented_code(
    tfm: Tfm, tiny_run: Path, flags: list[str], code: int, words: str
) -> None:
    done = tfm("translate", "--run", tiny_run, *flags)
    assert done.returncode == code, error_of(done)
    assert words in error_of(done)
    assert done.stdout == b""


def test_which_run(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    none = tfm("translate", "x")
    assert none.returncode == 2
    assert "there is no run in runs/" in error_of(none)
    missing = tfm("translate", "--run", "nowhere", "x")
    assert missing.returncode == 4
    assert "there is no run nowhere" in error_of(missing)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a").symlink_to(tiny_run)
    only = tfm("translate", "one")
    assert only.returncode == 0
    assert "using the run runs/a" in error_of(only)
    (tmp_path / "runs" / "b").symlink_to(tiny_run)
    several = tfm("translate", "one")
    assert several.returncode == 2
    assert "runs/a, runs/b" in error_of(several)


def test_bytes_that_are_not_utf8_are_replaced_and_said(tfm: Tfm, tiny_run: Path) -> None:
    done = tfm("translate", "--run", tiny_run, stdin=b"one \xff two\nthree\n")
    assert done.returncode == 0
    assert "1 line was not valid UTF-8" in error_of(done)
    assert done.stdout.count(b"\n") == 2


def test_a_pipe_is_read_once_and_whole(tiny_run: Path, tmp_path: Path) -> None:
    script = f"{TFM} translate --run {tiny_run} --beam-size 1 --input <(printf 'one\\ntwo three\\n')"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b"\n") == 2
    into_a_file = subprocess.run(["bash", "-c", f"{script} --output out.txt"], cwd=tmp_path, timeout=60, check=False)
    assert into_a_file.returncode == 0 and (tmp_path / "out.txt").read_bytes() == done.stdout


def test_what_identifies_the_work_is_what_the_weights_hold(tmp_path: Path) -> None:
    manifest, source = tmp_path / "manifest.json", tmp_path / "in.txt"
    source.write_text("one")
    found: set[str] = set()
    for weights in ("first", "second"):  # a run trained anew, to the same step
        manifest.write_text(weights)
        found.add(work_of(manifest, source, None))
    assert len(found) == 2 and work_of(manifest, source, None) in found


def test_a_closed_stdin_is_an_empty_one(tiny_run: Path) -> None:
    done = subprocess.run(["bash", "-c", f"{TFM} translate --run {tiny_run} <&-"], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b""), error_of(done)


def test_utf16_on_stdin_is_read_by_its_mark(tfm: Tfm, tiny_run: Path) -> None:
    done = tfm("translate", "--run", tiny_run, stdin="one two\n".encode("utf-16"))
    assert done.returncode == 0, error_of(done)
    assert done.stdout == tfm("translate", "--run", tiny_run, stdin=b"one two\n").stdout
    without = tfm("translate", "--run", tiny_run, stdin="one two\n".encode("utf-16-le"))
    assert without.returncode == 3
    assert "standard input looks like UTF-16 without a byte-order mark" in error_of(without)


def test_a_line_too_long_to_read_keeps_its_place_and_is_told(tfm: Tfm, tiny_run: Path) -> None:
    done = tfm("translate", "--run", tiny_run, "--beam-size", 1, stdin=b"one\n" + b"x" * 1_200_000 + b"\ntwo\n")
    assert done.returncode == 3
    assert "1 line was longer than 1,000,000 bytes" in error_of(done)
    lines = done.stdout.split(b"\n")
    assert len(lines) == 4
    assert lines[1] == b""


def test_long_text_is_never_cut_silently(tfm: Tfm, tiny_run: Path) -> None:
    done = tfm("translate", "--run", tiny_run, "--beam-size", 1, "one two three four five six seven " * 30)
    assert done.returncode == 0
    assert "translated in parts" in error_of(done)


def test_a_closed_pipe_is_silent(tiny_run: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "in.txt", ["one two three"] * 5000)
    script = f"{TFM} translate --run {tiny_run} --beam-size 1 --input in.txt 2> err | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 141
    assert done.stdout.count(b"\n") == 1
    assert (tmp_path / "err").read_text() == ""


def test_a_line_is_answered_while_the_stream_stays_open(tiny_run: Path) -> None:
    with subprocess.Popen(
        [str(TFM), "translate", "--run", str(tiny_run)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for line in (b"one\n", b"\n", b"two three\n"):
            start = time.monotonic()
            child.stdin.write(line)
            child.stdin.flush()
            assert child.stdout.readline().endswith(b"\n")
            assert time.monotonic() - start < 60
        child.stdin.close()
        assert child.wait(timeout=60) == 0


def test_a_terminal_gets_a_prompt(tiny_run: Path) -> None:
    import pty

    master, slave = pty.openpty()
    with subprocess.Popen(
        [str(TFM), "translate", "--run", str(tiny_run), "--beam-size", "1"],
        stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as child:  # fmt: skip
        os.close(slave)
        os.write(master, b"one two\n\x04")
        out, err = child.communicate(timeout=120)
        os.close(master)
    assert b"Ctrl-D ends" in err
    assert err.count(b"> ") == 2
    assert out.count(b"\n") == 1


def test_a_terminal_edits_lines_and_remembers_them(tiny_run: Path, tmp_path: Path) -> None:
    """Arrow left, then a letter in the midst; arrow up brings the line back."""
    keys = b"one to\x1b[Dw\r" + b"\x1b[A three\r" + b"\x04"
    shown = typed(["translate", "--run", tiny_run, "--beam-size", "1"], tmp_path, keys, {"TERM": "xterm"}, after="> ")
    alone = run_command("translate", "--run", tiny_run, "--beam-size", "1", "one two", "one two three", cwd=tmp_path)
    for line in alone.stdout.decode().splitlines():
        assert line in shown.splitlines()
    assert "\33[A" not in shown and shown.endswith("\n")


def test_a_full_disk_is_told(tfm: Tfm, tiny_run: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{TFM} translate --run {tiny_run} one > /dev/full"], capture_output=True, check=False
    )
    assert done.returncode == 5
    assert "No space left" in error_of(done)


def test_what_the_vocabulary_does_not_know_and_other_numbers_are_told(tfm: Tfm, tiny_run: Path) -> None:
    done = tfm("translate", "--run", tiny_run, "--json", "one two", "one \u2603 42 two")
    known, unknown = (json.loads(line) for line in done.stdout.splitlines())
    assert "unknown" not in known and "numbers" not in known
    assert unknown["unknown"] == ["\u2603", "4", "2"] and unknown["unknown_share"] == 3 / 9
    assert unknown["numbers"]["lost"] == ["42"]
    told = error_of(done)
    assert "1 translation with other numbers than the source: line 2 lost 42" in told
    assert "1 translation of text that the vocabulary does not know: line 2 \u2603 4 2 (33 % of it)" in told
    assert unknown["confidence"] < known["confidence"]


def test_a_line_without_letters_stays_as_it_is(tfm: Tfm, tiny_run: Path) -> None:
    given = ["1987", "?", " 12:30  - \u20ac5", "one"]
    done = tfm("translate", "--run", tiny_run, "--json", stdin="".join(f"{one}\n" for one in given).encode())
    found = [json.loads(line)["translation"] for line in done.stdout.splitlines()]
    assert found[:3] == given[:3] and found[3] != "one"


def test_repair_says_otherwise(tfm: Tfm, tiny_run: Path) -> None:
    told = tfm("info", "--run", tiny_run).stdout.decode()
    assert re.search(r"repair +of loops on \(0\.00 % of the training targets .*\); of lost placeholders none", told)
    assert tfm("translate", "--run", tiny_run, "--repair", "off", "one two").returncode == 0
    assert tfm("translate", "--run", tiny_run, "--repair", "maybe", "one two").returncode == 2


def test_a_reviewer_is_told_what_to_read_first(
    tfm: Tfm, installed: Tfm, calibrated_run: Path, tiny_run: Path, tmp_path: Path
) -> None:
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "one two", "two one"]
    write_lines(tmp_path / "app.po", [line for word in words for line in (f'msgid "{word}"', 'msgstr ""', "")])
    write_lines(tmp_path / "terms.tsv", ["one\teins", "two\tzwei", *(f"{word}\tWort" for word in words[2:10])])
    flags = ["--input", "app.po", "--glossary", "terms.tsv", "--output"]  # so that something comes out
    done = installed("translate", "--run", calibrated_run, *flags, "noted.po", "--review")
    assert done.returncode == 0, error_of(done)
    assert tfm("translate", "--run", tiny_run, *flags, "plain.po").returncode == 0
    noted, plain = (tmp_path / name for name in ("noted.po", "plain.po"))
    note = r"; projected chrF (\d+) \(\d+ to \d+\)(, one of the worst tenth)?"
    said = re.findall(rf'^# machine translation, not reviewed{note}\n.*\nmsgid "(.*)"', noted.read_text(), re.MULTILINE)
    assert re.sub(note, "", noted.read_text()) == plain.read_text()
    worst = {word: int(value) for value, mark, word in said if mark}
    assert len(said) == 12 and len(worst) == 2
    assert max(worst.values()) <= min(int(value) for value, mark, _ in said if not mark)
    (line,) = (line for line in error_of(done).splitlines() if "read these first" in line)
    assert "the worst tenth, 2 in all: " in line and all(f"'{word}': projected chrF" in line for word in worst)


def test_what_cannot_be_reviewed_is_refused(tfm: Tfm, calibrated_run: Path, tiny_run: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "app.po", ['msgid "one"', 'msgstr ""'])
    write_lines(tmp_path / "a.tsv", ["source\ttarget", "one\t"])
    write_lines(tmp_path / "a.txt", ["one"])
    po = ["--input", "app.po", "--output", "out.po"]
    for run, flags, said in (
        (tiny_run, po, f"calibrate it: tfm evaluate --run {tiny_run} --calibrate"),
        (calibrated_run, [*po, "--beam-size", 2], "found by this search; calibrate it"),
        (calibrated_run, [*po, "--sample"], "leave --review out"),
        (calibrated_run, ["--input", "a.tsv", "--output", "out.tsv"], "a.tsv has no place for notes"),
        (calibrated_run, ["--input", "a.txt"], "of lines --json says the projected_chrf"),
        (calibrated_run, ["one"], "of lines --json says the projected_chrf"),
    ):
        done = tfm("translate", "--run", run, *flags, "--review")
        assert done.returncode == 2 and said in error_of(done), error_of(done)
    assert not list(tmp_path.glob("out.*"))
    (tmp_path / "in").mkdir()
    shutil.copy(tmp_path / "app.po", tmp_path / "in")
    done = tfm("translate", "--run", calibrated_run, "--input", "in", "--output", "out", "--review")
    assert done.returncode == 0, error_of(done)
