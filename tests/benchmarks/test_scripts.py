"""The scripts that measure tfm run on minute settings, and say which peers are missing."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import sacrebleu
from helpers.command import write_lines

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"
PEERS = ("transformers", "ctranslate2")
SMAPS = Path("/proc/self/smaps_rollup")
BENCH_PYTHON = FOLDER.parent / ".venv-bench" / "bin" / "python"
with_peers = [
    pytest.mark.slow,
    pytest.mark.skipif(not BENCH_PYTHON.exists(), reason="needs the peers: make .venv-bench/installed"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that holds a small corpus, and a module that hides peers, installed or not."""
    folder = tmp_path_factory.mktemp("benchmarks")
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    src = [" ".join(words[(i + j * j) % 10] for j in range(1 + i % 7)) for i in range(60)]
    (folder / "corpus").mkdir()
    for part in ("train", "valid", "test2016"):
        write_lines(folder / "corpus" / f"{part}.en", src)
        write_lines(folder / "corpus" / f"{part}.de", [" ".join(reversed(line.split())) for line in src])
    (folder / "hidden").mkdir()
    hider = "import os, sys\nfor name in os.environ['HIDDEN'].split():\n    sys.modules[name] = None"
    write_lines(folder / "hidden" / "sitecustomize.py", [hider])
    return folder


def run_script(
    place: Path, name: str, *arguments: object, hidden: Sequence[str] = PEERS, python: str | Path = sys.executable
) -> str:
    """The standard output of a script, to which some peers are not installed."""
    path = os.pathsep.join(filter(None, [str(place / "hidden"), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "HIDDEN": " ".join(hidden)}
    environment.pop("TFM_CORPORA", None)
    command = [str(python), str(FOLDER / name), *map(str, arguments)]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_training_measures_tfm_and_says_who_is_missing(place: Path) -> None:
    flags = ("--corpus", place / "corpus", "--work", place, "--size", "minute", "--tokens", 64)
    report = run_script(place, "training.py", *flags, "--rounds", 1, "--seconds", 0.6)
    assert "transformers, as written skipped: transformers not installed" in report
    row = r"^\| tfm \| as `tfm train` chooses: (fp32|bf16), 1 x 1 \| [\d,]+ \(one round\) \|"
    assert re.search(row, report, re.MULTILINE), report


def test_decoding_measures_tfm_and_says_who_is_missing(place: Path) -> None:
    flags = ("--corpus", place / "corpus", "--work", place, "--size", "minute", "--steps", 3)
    report = run_script(place, "decoding.py", *flags, "--lines", 4, "--rounds", 1, "--repeats", 1, "--commands", 0)
    assert "transformers skipped: transformers not installed" in report
    assert "CTranslate2 float32 skipped: ctranslate2 not installed" in report
    assert re.search(r"^\| tfm \| as it comes \| [\d,.]+ \(one round\)", report, re.MULTILINE), report
    assert "BLEU signature" in report


@pytest.mark.slow
def test_decoding_has_ctranslate2_translate_the_same_model(place: Path) -> None:
    pytest.importorskip("ctranslate2")
    flags = ("--corpus", place / "corpus", "--work", place, "--size", "minute", "--steps", 150, "--lines", 4)
    flags = (*flags, "--rounds", 1, "--repeats", 1, "--commands", 0, "--beam-size", 2)
    report = run_script(place, "decoding.py", *flags, hidden=("transformers",))
    assert re.search(r"^\| CTranslate2 float32 \| translators x threads, .* greedy", report, re.MULTILINE), report
    outputs = re.search(r"^\| CTranslate2 float32 \| [\d.]+ \| ([\d.]+) % \|", report, re.MULTILINE)
    assert outputs is not None, report
    assert float(outputs[1]) == 100


class TestTransformers:
    """MarianMTModel in the environment of the peers."""

    pytestmark = with_peers

    def test_it_is_trained_beside_tfm(self, place: Path) -> None:
        flags = ("--corpus", place / "corpus", "--work", place, "--size", "minute", "--tokens", 64)
        flags = (*flags, "--rounds", 1, "--seconds", 2)
        report = run_script(place, "training.py", *flags, hidden=(), python=BENCH_PYTHON)
        for contestant in ("as written", "best"):
            row = rf"^\| transformers[^|]*{contestant}[^|]* \| [^|]* \| [\d,]+ \(one round\)"
            assert re.search(row, report, re.MULTILINE), report

    def test_it_translates_as_the_tfm_model_whose_weights_it_has(self, place: Path) -> None:
        flags = ("--corpus", place / "corpus", "--work", place, "--size", "minute", "--steps", 150, "--lines", 8)
        flags = (*flags, "--rounds", 1, "--repeats", 1, "--commands", 0, "--beam-size", 2)
        report = run_script(place, "decoding.py", *flags, hidden=("ctranslate2",), python=BENCH_PYTHON)
        same = re.search(r"^\| transformers \| [\d.]+ \| ([\d.]+) % \|", report, re.MULTILINE)
        assert same is not None, report
        assert float(same[1]) == 100

    def test_a_gpt2_is_trained_beside_a_language_model(self, place: Path) -> None:
        flags = ("--text", place / "corpus" / "train.en", "--dev-text", place / "corpus" / "valid.en")
        sizes = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_decoder_layers": 1, "max_seq_len": 24}
        settings = [part for key, value in sizes.items() for part in ("--set", f"model.{key}={value}")]
        settings += ["--set", "tokenizer.vocab_size=300", "--set", "training.ranks=1", "--set", "training.log_every=1"]
        settings += ["--max-steps", "6"]
        run = place / "language-model"
        train = [str(BENCH_PYTHON), "-m", "tfm.cli", "train", *map(str, flags), "--run", str(run), *settings]
        done = subprocess.run(train, cwd=place, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        flags = ("--run", run, "--learning-rate", 0.001, "--learning-rate", 0.01)
        report = run_script(place, "language_model.py", *flags, hidden=(), python=BENCH_PYTHON)
        assert "* 6 steps, vocabulary of " in report
        rows = re.findall(r"^\| ([^|]+) \| [\d,]+ \| [\d.]+ \| ([\d.]+) \| [\d.]+ \|", report, re.MULTILINE)
        assert [name for name, _ in rows] == ["tfm", "GPT-2, AdamW at 0.001", "GPT-2, AdamW at 0.01"]
        said = float(re.findall(r"perplexity ([\d.]+) per piece", done.stderr)[-1])
        assert float(rows[0][1]) == pytest.approx(said, rel=0.02), "in fp32, what training said in bf16"


def test_the_report_goes_on_after_a_failure_and_names_it(place: Path) -> None:
    command = [sys.executable, str(FOLDER / "report.py"), "--corpus", str(place / "hidden"), "--work", str(place)]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("there is no train.en in it") == 2
    assert "failed: training.py, decoding.py" in done.stderr


def test_profile_step_prints_operations(place: Path) -> None:
    flags = ("--size", "minute", "--tokens", 64, "--vocab-size", 50, "--lengths", 8, "--steps", 1, "--rows", 5)
    report = run_script(place, "profile_step.py", *flags)
    assert re.search(r"^\| `aten::\w+` \| ", report, re.MULTILINE), report
    assert "| sum |" in report
    assert re.search(
        r"^\* products of 64 x 16 and 16 x 50 .* bfloat16 [\d,]+ GFLOP/s, float32 [\d,]+", report, re.MULTILINE
    )


def kind_of_processor() -> str:
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return "AVX2" if " avx2 " in flags else "as it is"


@pytest.mark.slow
def test_processors_measures_a_kind_and_the_limit_of_a_step(place: Path) -> None:
    kind = kind_of_processor()
    flags = ("--corpus", place / "corpus", "--work", place, "--sizes", "minute", "--tokens", 64, "--rounds", 1)
    times = ("--seconds", 0.6, "--trial-seconds", 0.1, "--lines", 6, "--steps", 3)
    report = run_script(place, "processors.py", "--kinds", kind, *flags, *times)
    number, share = r"[\d,]+ \(one round\)", r"\d+ of \d+ ms \((\d+) %\), \d+ GFLOP/s"
    row = re.search(
        rf"^\| {kind} \| minute \| (fp32|bf16) \(\d+, \d+\) \|  \| {number} .* {share} \|", report, re.MULTILINE
    )
    assert row and 0 < int(row[2]) < 100, report
    assert re.search(rf"^\| {kind} \| {number} \|  \|  \| {number} \|", report, re.MULTILINE), report


def test_processors_tells_what_would_be_started_on_many_cores(place: Path) -> None:
    report = run_script(place, "processors.py", "--cores")
    row = next(line for line in report.splitlines() if line.startswith("| `multi30k` "))
    assert row.startswith("| `multi30k` | 2 x 2,048 | 1 x 1, 1 | 2 x 1, 1 | 4 x 1, 2 |")


def test_processors_refuses_a_kind_that_this_machine_is_not(place: Path) -> None:
    command = [sys.executable, FOLDER / "processors.py", "--kinds", "Z80"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "this processor cannot be Z80; it can be" in done.stderr


def test_growth_prints_and_draws(place: Path) -> None:
    picture = place / "growth.png"
    flags = ("--corpus", place / "corpus", "--work", place, "--steps", 4, "--lines", 2, "--picture", picture)
    report = run_script(place, "growth.py", "batch", "--sizes", 64, *flags)
    assert re.search(r"^\| 64 \| [\d,.]+ \| [\d,.]+ \|$", report, re.MULTILINE), report
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_quality_trains_times_and_scores_and_then_only_scores(place: Path) -> None:
    sizes = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1}
    settings = [*(f"model.{key}={value}" for key, value in sizes.items()), "tokenizer.vocab_size=300"]
    settings += ["training.max_steps=3", "training.validation_sentences=2", "training.warmup_steps=1"]
    flags = [part for setting in settings for part in ("--set", setting)]
    command = ("quality.py", "--corpus", place / "corpus", "--run", place / "quality", *flags)
    report = run_script(place, *command)
    assert re.search(r"^\* 3 updates; `tfm train` took 0 min \d+ s, [\d.]+ s an update$", report, re.MULTILINE), report
    row = re.search(r"^\| test2016 \| 60 \| [\d.]+ \| ([\d.]+) \| no references \|$", report, re.MULTILINE)
    assert row is not None, report
    assert "beam 5, length penalty 1.5" in report
    outputs = (place / "quality" / "test2016.out.de").read_text(encoding="utf-8").splitlines()
    references = (place / "corpus" / "test2016.de").read_text(encoding="utf-8").splitlines()
    assert float(row[1]) == round(sacrebleu.corpus_bleu(outputs, [references]).score, 2)
    assert "* 3 updates, made before" in run_script(place, *command)


def test_what_goes_wrong_is_one_line(place: Path) -> None:
    (place / "latin1.txt").write_bytes(b"gr\xfcn\n")
    write_lines(place / "one.txt", ["grün"])
    corpus = ("--corpus", place / "corpus")
    for command, words in [
        (("decoding.py", *corpus, "--run", "nowhere", "--work", place), "there is no run nowhere"),
        (("moses_bleu.py", "nowhere.txt", "one.txt"), "No such file or directory: 'nowhere.txt'"),
        (("moses_bleu.py", "latin1.txt", "one.txt"), "latin1.txt is not UTF-8"),
        (("moses_bleu.py", "one.txt", place / "corpus" / "valid.de"), "one.txt has 1 lines"),
        (("quality.py",), "name the data with --corpus"),
    ]:
        with pytest.raises(AssertionError) as failed:
            run_script(place, *command)
        said = str(failed.value)
        assert words in said and "Traceback" not in said, said


def test_lines_are_read_whether_or_not_the_last_one_is_ended(place: Path) -> None:
    scores: list[str] = []
    for ending in ("\n", ""):
        for name in ("out.txt", "ref.txt"):
            (place / name).write_text("ein kleiner Hund läuft hier\rherum\nund eine Katze schläft dort" + ending)
        scores.append(run_script(place, "moses_bleu.py", "out.txt", "ref.txt", "--plain"))
    assert scores[0] == scores[1]
    assert scores[0].startswith("100.00 ")


def test_moses_bleu_brings_outputs_into_the_form_of_the_references(place: Path) -> None:
    write_lines(place / "outputs", ["Ein „Hund“ läuft, und (er) bellt.", "Zwei Männer; 3 Frauen!"])
    write_lines(place / "plain", ['ein "hund" läuft, und (er) bellt.', "zwei männer; 3 frauen!"])
    write_lines(place / "published", ["ein &quot; hund &quot; läuft , und ( er ) bellt .", "zwei männer ; 3 frauen !"])
    for references in (["published"], ["plain", "--plain"]):
        report = run_script(place, "moses_bleu.py", place / "outputs", place / references[0], *references[1:])
        assert report.startswith("100.00 (nrefs:1|")
    write_lines(place / "plain", ["ein Hund", "zwei Männer"])
    assert float(run_script(place, "moses_bleu.py", place / "outputs", place / "plain").split()[0]) < 50


def test_a_missing_file_of_the_corpus_is_named(place: Path) -> None:
    command = [sys.executable, str(FOLDER / "training.py"), "--corpus", str(place / "hidden")]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "there is no train.en in it" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_ratio_is_taken_within_a_round_and_its_spread_shown() -> None:
    code = (
        "import json, common as c;"
        "m = c.Measurement;"
        "r = {'a': [m({'x': 4}, c.Memory(7, 6)), m({'x': 9}, c.Memory(8_000_000, 6))],"
        " 'b': [m({'x': 2}, None), m({'x': 3}, c.Memory(1, 1))]};"
        "a, b = (c.figures(r, name, 'x') for name in 'ab');"
        "print(json.dumps([c.ratios(a, b), c.spread(c.ratios(a, b)), *(c.peak_megabytes(r, name) for name in 'ab'),"
        " c.throughput([(1, 0), (2, 50), (3, 70), (4, 90)], warmup=1)]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=FOLDER, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[2, 3], "2.50 (2.00 .. 3.00)", "8", "not measured", 20]


@pytest.mark.skipif(not SMAPS.exists() or "Pss_File" not in SMAPS.read_text(), reason="needs Linux, not too old")
def test_the_memory_of_children_counts_and_mapped_files_apart(tmp_path: Path) -> None:
    mapped = tmp_path / "mapped"
    mapped.write_bytes(bytes(range(250)) * 400_000)
    hold = (
        "import mmap, time; x = bytearray(60_000_000);"
        f"f = open({str(mapped)!r}, 'rb'); m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ); sum(m[::4096]);"
        "time.sleep(1.2)"
    )
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hold!r}], check=True)"
    code = f"import sys, common as c; print(*c.run_watched([sys.executable, '-c', {child!r}])[1])"
    done = subprocess.run([sys.executable, "-c", code], cwd=FOLDER, capture_output=True, text=True, check=True)
    total, without_files = map(int, done.stdout.split())
    assert 60_000_000 < without_files < 100_000_000
    assert without_files + 100_000_000 <= total < 300_000_000


def test_serving_loads_a_server_and_loses_no_request(place: Path, run_directory: Path) -> None:
    flags = ("--run", f"en-de={run_directory}", "--input", place / "corpus" / "train.en", "--clients", 3)
    report = run_script(place, "serving.py", *flags, "--seconds", 0.5, "--requests", 7)
    assert re.search(r"^\| 1 \| [1-9][\d,]* \| ", report, re.MULTILINE), report
    assert re.search(r"^\| 3 \| [1-9][\d,]* \| ", report, re.MULTILINE), report
    assert "after 7 more requests" in report
