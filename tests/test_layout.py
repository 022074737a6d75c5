"""Tests mirror the folders: each test module has the module of its name, or is listed here with the reason."""

from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent

WITHOUT_A_MODULE = {
    "test_demo": "the whole, by `make demo`",
    "test_guards": "docs/reliability.md",
    "test_keepsakes": "runs of an earlier tfm",
    "test_layout": "the tests themselves, and an import contract",
    "test_architectures": "presets trained to their end",
    "test_one_path": "all that scores or translates a line, beside one another",
    "test_packaging": "the wheel",
    "test_readme": "README.md",
    "test_real_corpora": "the whole, on real text",
    "test_real_files": "engine/documents and data/formats, on real files",
    "test_sources": "docs/sources.md",
    "benchmarks/test_documents": "the documents in benchmarks/",
    "benchmarks/test_scripts": "all scripts alike",
    "cli/test_bad_input": "all commands alike",
    "cli/test_evaluate_and_info": "two commands, on one run",
    "cli/test_help": "all commands alike",
    "cli/test_file_guard": "engine/file_guard, by all commands",
    "cli/test_installed": "all commands alike",
    "cli/test_commands": "engine/commands, beside the commands",
    "engine/documents/test_documents": "the package engine/documents",
    "data/test_toy": "the package data/toy",
    "data/test_toy_recogniser": "a helper of the tests",
    "docs/test_python": "docs/python.md and package/, the names of the whole",
    "docs/test_site": "the site that docs/conf.py makes of the pages",
    "docs/test_tour": "docs/pages, the links of docs/tour.md",
    "docs/test_tutorial": "docs/tutorial.md",
    "engine/export/html/test_browser": "the page in Chromium",
    "engine/browser/test_machines": "engine.js, its machines",
    "engine/browser/test_model": "engine.js, its model",
    "engine/browser/test_text": "engine.js, its text",
    "engine/browser/test_vocabulary": "engine.js, its vocabulary",
    "engine/explain/test_browser": "the page in Chromium",
    "engine/explain/test_live": "live.js and questions.js",
    "engine/test_faithful": "the Translator: placeholders and glossaries",
    "engine/test_wings": "the packages explain, export, improve and serve, which may be missing",
    "engine/training/test_advice": "prepare: what it warns of",
    "engine/evaluation/test_segments": "evaluation/scores, sentence by sentence",
    "engine/evaluation/test_significance": "evaluation/scores, of several sets of outputs",
    "engine/training/test_decoder_runs": "train, of one architecture",
    "engine/training/test_encoder_runs": "train, of one architecture",
    "engine/training/test_resume": "train: the promise of exact resuming",
    "seq2seq/decoding/test_repeats": "forbid_repeats, and no_repeat_ngram_size in all searches",
    "seq2seq/test_alone": "the package seq2seq",
    "system/test_console": "reporter: what is printed",
    "engine/test_threads": "device: batches on all cores",
    "engine/workers/test_shared": "ranks: the memory that they share",
    "seq2seq/training/test_adamw": "optimizer: AdamW beside torch's",
    "engine/training/test_division": "setup: processes and parts",
}
"""Test modules whose name is no module's, and what they test instead."""


def test_each_test_module_has_its_module_or_says_why_not() -> None:
    strangers = {
        str(path.relative_to(TESTS).with_suffix(""))
        for path in TESTS.rglob("test_*.py")
        if path.parent.name != "attacks"  # which are made on the whole
        and not (ROOT / path.relative_to(TESTS)).with_name(path.name.removeprefix("test_")).exists()
    }
    assert strangers == set(WITHOUT_A_MODULE)


def test_each_test_module_says_what_it_tests() -> None:
    for path in TESTS.rglob("test_*.py"):
        assert path.read_text(encoding="utf-8").startswith('"""'), path
