"""Tokenizers: every text comes back, no text becomes a control piece, and the same corpus builds the same bytes."""

import errno
import io
import itertools
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data import sentencepiece_worker, vocabulary_training
from tfm.data.cleaning import clean
from tfm.data.config import TokenizerConfig, VocabularyType
from tfm.data.corpus import Pair
from tfm.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, RESERVED_PIECES, UNK_ID, Tokenizer, Vocabulary
from tfm.data.vocabulary_training import build_tokenizer
from tfm.system.errors import DataError, EnvironmentFault, ModelError, OutOfMemory
from tfm.system.files import json_bytes

Kind = Literal["unigram", "bpe", "char", "word"]
KINDS: tuple[Kind, ...] = ("unigram", "bpe", "char", "word")
SUBWORD = ["unigram", "unigram separate", "bpe", "bpe separate"]
TRAPS = ["\u2581", "\ue000", "\ue000a", "\ue000b", "\u2585", "\u2047", "\ufffd", "<s>", "</s>", "<unk>", "<pad>"]
TRAPS += ["\u06dd\u0661", "a\u180ea", "\U0001f3f4\U000e0067\U000e007f", "\U000e0067"]
TRAPS += ["<reserved_00>", "<0x41>", "<2de>", "👩\u200d🚀", "🇩🇪", "\ud800", "\udc00", "\x00", "\t", "▁the", "日本"]
ANY_CHARACTER = st.characters() | st.characters(categories=["Cs"])
ANY_TEXT = st.text(alphabet=ANY_CHARACTER) | st.lists(
    st.sampled_from([*TRAPS, "the", "man", " "]) | st.text(alphabet=ANY_CHARACTER, max_size=2), max_size=8
).map("".join)


def build(kind: Kind = "unigram", size: int = 400, count: int = 50, **more: Any) -> Tokenizer:
    """A tokenizer of a small corpus with an alphabet of its own on each side."""
    src = [f"the {'abcdefgh'[i % 8]}{i} cat sat on mat {i}" for i in range(count)]
    tgt = [f"die {'äöüßéèñç'[i % 8]}{i} Katze saß auf der Matte {i}" for i in range(count)]
    return build_tokenizer(zip(src, tgt, strict=True), TokenizerConfig(vocab_size=size, type=kind, **more))


def vocabularies(tokenizer: Tokenizer) -> list[Vocabulary]:
    return [tokenizer.src] if tokenizer.joint else [tokenizer.src, tokenizer.tgt]


# Text and ids


@settings(deadline=None, max_examples=300)
@given(ANY_TEXT)
def test_every_text_comes_back_cleaned(tokenizers: dict[str, Tokenizer], text: str) -> None:
    for name in SUBWORD:
        for vocabulary in vocabularies(tokenizers[name]):
            ids = vocabulary.encode(text)
            assert vocabulary.decode(ids) == clean(text)
            assert UNK_ID not in ids
            assert not set(ids) & set(vocabulary.control_ids())


@pytest.mark.parametrize("name", SUBWORD)
@pytest.mark.parametrize("trap", TRAPS)
def test_text_that_looks_like_a_piece_is_text(tokenizers: dict[str, Tokenizer], name: str, trap: str) -> None:
    for vocabulary in vocabularies(tokenizers[name]):
        for text in (trap, f"a{trap}b", f"the {trap} man", trap * 3):
            ids = vocabulary.encode(text)
            assert vocabulary.decode(ids) == clean(text)
            assert not set(ids) & {*vocabulary.control_ids(), UNK_ID}


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_char_and_word_give_back_what_they_know(
    tokenizers: dict[str, Tokenizer], toy_sentences: list[Pair], data: st.DataObject
) -> None:
    characters = sorted({character for src, _ in toy_sentences for character in src})
    text = data.draw(st.text(alphabet=st.sampled_from(characters)))
    for name in ("char", "char separate"):
        vocabulary = tokenizers[name].src
        assert vocabulary.decode(vocabulary.encode(text)) == clean(text)
    for name in ("word", "word separate"):
        vocabulary = tokenizers[name].src
        words = [piece.removeprefix("▁") for piece in map(vocabulary.piece, range(20, len(vocabulary)))]
        text = " ".join(data.draw(st.lists(st.sampled_from(words))))
        assert vocabulary.decode(vocabulary.encode(text)) == text


@settings(deadline=None, max_examples=100)
@given(ANY_TEXT)
def test_char_and_word_never_produce_a_control_piece(tokenizers: dict[str, Tokenizer], text: str) -> None:
    for name in ("char", "word"):
        vocabulary = tokenizers[name].src
        assert not set(vocabulary.encode(text)) & set(vocabulary.control_ids())


@pytest.mark.parametrize("name", [*SUBWORD, "char", "word"])
def test_fixed_pieces(tokenizers: dict[str, Tokenizer], name: str) -> None:
    assert (PAD_ID, UNK_ID, BOS_ID, EOS_ID) == (0, 1, 2, 3)
    for vocabulary in vocabularies(tokenizers[name]):
        pieces = [vocabulary.piece(index) for index in range(20)]
        assert pieces == ["<pad>", "<unk>", "<s>", "</s>", *RESERVED_PIECES]
        assert vocabulary.control_ids() == [0, 2, 3, *range(4, 20)]


def test_control_pieces_vanish_and_unknown_ones_show(tokenizers: dict[str, Tokenizer]) -> None:
    vocabulary = tokenizers["word"].src
    ids = vocabulary.encode("the man")
    assert vocabulary.decode([BOS_ID, *ids, EOS_ID, 4, PAD_ID]) == vocabulary.decode(ids)
    assert "⁇" in vocabulary.decode(vocabulary.encode("the xylophone"))


def test_spaces_show_as_marks_and_bytes_are_told(tokenizer: Tokenizer) -> None:
    assert "".join(tokenizer.src.encode_as_pieces("the man")) == "▁the▁man"
    assert [tokenizer.src.is_byte(index) for index in (5, 20, 275, 276)] == [False, True, True, False]


# Size


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("separate", [False, True])
def test_size_too_large_is_reduced_and_said(kind: Kind, separate: bool) -> None:
    notes: list[str] = []
    src, tgt = ["a b c", "c b a"] * 5, ["x y", "y x z"] * 5
    config = TokenizerConfig(vocab_size=8000, type=kind, separate=separate)
    tokenizer = build_tokenizer(zip(src, tgt, strict=True), config, notes=notes)
    names = ["source vocabulary", "target vocabulary"] if separate else ["vocabulary"]
    assert notes == [
        f"{name} of 8,000 asked, the corpus supports {len(vocabulary)}: using {len(vocabulary)}"
        for name, vocabulary in zip(names, vocabularies(tokenizer), strict=True)
    ]


def small_sizes() -> Iterator[Any]:
    """All kinds, at a size that is just too small; one kind also at the others. `make test-slow` has them all."""
    for kind, separate, size in itertools.product(KINDS, (False, True), (1, 19, 25)):
        if kind == "word" and size > 20:
            continue  # a word vocabulary can be that small
        quick = size == (19 if kind == "word" else 25) or (kind == "bpe" and not separate)
        yield pytest.param(kind, separate, size, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize(("kind", "separate", "size"), list(small_sizes()))
def test_size_too_small_names_the_least_that_works(kind: Kind, separate: bool, size: int) -> None:
    with pytest.raises(DataError, match=f"the size asked is {size}; use tfm tokenize --vocab-size") as error:
        build(kind, size, separate=separate)
    named = re.search(r"--vocab-size (\d+) or tfm train --set tokenizer\.vocab_size=\1, or more", str(error.value))
    assert named is not None
    least = int(named[1])
    assert max(map(len, vocabularies(build(kind, least, separate=separate)))) == least
    with pytest.raises(DataError, match=f"--vocab-size {least} or tfm train"):
        build(kind, least - 1, separate=separate)


def test_exact_size_is_met_without_a_note() -> None:
    notes: list[str] = []
    tokenizer = build_tokenizer(
        zip(["ab ba abba"] * 9, ["abab"] * 9, strict=True), TokenizerConfig(vocab_size=282), notes=notes
    )
    assert (len(tokenizer.src), notes) == (282, [])


@pytest.mark.parametrize("sentences", [[], ["", " \t", "\u200b"], ["x" * 5000]])
@pytest.mark.parametrize("separate", [False, True])
def test_no_usable_line(sentences: list[str], separate: bool) -> None:
    with pytest.raises(DataError, match=r"no usable line to build the .*vocabulary from"):
        build_tokenizer(zip(sentences, sentences, strict=True), TokenizerConfig(separate=separate))


# Determinism and sampling


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_same_corpus_same_bytes(kind: Kind) -> None:
    first, second = build(kind), build(kind)
    assert first.src.model == second.src.model
    assert first.sha256 == second.sha256


def test_model_knows_no_path(tokenizer: Tokenizer) -> None:
    assert not re.search(rb"(/[a-z]+){2}", tokenizer.src.model)
    for path in (Path.cwd(), Path.home(), Path(vocabulary_training.__file__).parent):
        assert str(path).encode() not in tokenizer.src.model


def reservoir(lines: list[str], size: int) -> list[str]:
    sample = vocabulary_training.VocabularySample(TokenizerConfig(max_sentences=size))
    for line in lines:
        sample.add((line, ""))
    return sample.sentences()[0]["vocabulary"]


def test_sample_is_bounded_even_and_repeatable() -> None:
    lines = [f"line {number}" for number in range(20_000)]
    sample = reservoir(lines, 1000)
    assert len(sample) == len(set(sample)) == 1000
    assert sample == reservoir(lines, 1000)
    numbers = [int(line.split()[1]) for line in sample]
    for quarter in range(4):
        share = sum(quarter * 5000 <= number < (quarter + 1) * 5000 for number in numbers)
        assert 200 < share < 300


def test_only_the_sample_reaches_the_vocabulary() -> None:
    src = ["common words here"] * 5000 + ["ŋ"]
    tokenizer = build_tokenizer(zip(src, src, strict=True), TokenizerConfig(vocab_size=300, max_sentences=3))
    assert "▁ŋ" not in [tokenizer.src.piece(index) for index in range(len(tokenizer.src))]


def test_sentences_are_read_once_and_one_by_one() -> None:
    consumed = 0

    def sentences() -> Iterator[str]:
        nonlocal consumed
        for number in range(100):
            consumed += 1
            yield f"a b {number}"

    build_tokenizer(zip(sentences(), sentences(), strict=True), TokenizerConfig(vocab_size=300))
    assert consumed == 200


# The child process


def test_interruption_kills_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    children: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen[bytes]):
        def communicate(self, *_: Any, **__: Any) -> Any:
            children.append(self)
            raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        build()
    for child in children:
        assert child.returncode == -9
        assert child.stdout is not None and child.stdout.closed


def test_a_full_temporary_directory_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Full(io.BytesIO):
        def writelines(self, lines: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self) -> None:
            raise OSError(errno.ENOSPC, "what Python says when it tries once more")

    monkeypatch.setattr("tempfile.TemporaryFile", Full)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(EnvironmentFault, match=rf"cannot write {tmp_path}: No space left on device, .* MB free"):
        build_tokenizer(zip(["a b"] * 20, ["b a"] * 20, strict=True), TokenizerConfig(vocab_size=300))


def test_child_that_dies_silently_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(EnvironmentFault, match=r"cannot write .* ended with exit code 1, without a word; .* MB free"):
        build()


@pytest.mark.parametrize("last_words", ["kill -9 $$", "echo 'std::bad_alloc' >&2; exit 1"])
def test_child_without_memory_is_told_with_what_needs_less(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, last_words: str
) -> None:
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\n{last_words}\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    with pytest.raises(
        OutOfMemory, match=r"the process that builds a vocabulary .*tokenizer\.max_sentences="
    ) as caught:
        build()
    assert "\n" not in str(caught.value)


# Save and load


@pytest.mark.parametrize("name", ["unigram", "bpe separate", "char", "word separate"])
def test_save_and_load(tmp_path: Path, tokenizers: dict[str, Tokenizer], name: str) -> None:
    tokenizer = tokenizers[name]
    tokenizer.save(tmp_path / "t")
    loaded = Tokenizer.load(tmp_path / "t")
    assert (loaded.sha256, loaded.joint, loaded.type) == (tokenizer.sha256, tokenizer.joint, tokenizer.type)
    assert loaded.tgt.encode("die alte Frau") == tokenizer.tgt.encode("die alte Frau")
    files = {path.name for path in (tmp_path / "t").iterdir()}
    sides = ("tokenizer",) if tokenizer.joint else ("src", "tgt")
    assert files == {"tokenizer.json"} | {f"{side}{suffix}" for side in sides for suffix in (".model", ".vocab")}


def test_vocabulary_list_is_readable(tmp_path: Path, tokenizer: Tokenizer) -> None:
    tokenizer.save(tmp_path / "t")
    lines = (tmp_path / "t" / "tokenizer.vocab").read_text("utf-8").split("\n")
    assert lines[:2] == ["0\t<pad>", "1\t<unk>"]
    assert len(lines) == len(tokenizer.src) + 1


@pytest.mark.parametrize("place", [0, 100, -1])
def test_damaged_byte_is_noticed(tmp_path: Path, tokenizer: Tokenizer, place: int) -> None:
    tokenizer.save(tmp_path / "t")
    path = tmp_path / "t" / "tokenizer.model"
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"tokenizer\.model is damaged"):
        Tokenizer.load(tmp_path / "t")


@pytest.mark.parametrize("name", ["src.model", "tgt.model", "tokenizer.json"])
def test_missing_file_is_named(tmp_path: Path, tokenizers: dict[str, Tokenizer], name: str) -> None:
    tokenizers["bpe separate"].save(tmp_path / "t")
    (tmp_path / "t" / name).unlink()
    with pytest.raises(ModelError, match=f"cannot read .*{re.escape(name)}: No such file"):
        Tokenizer.load(tmp_path / "t")


def test_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="not a tokenizer directory; make one with tfm tokenize"):
        Tokenizer.load(tmp_path / "t")


def test_newer_format_asks_for_an_upgrade(tmp_path: Path, tokenizer: Tokenizer) -> None:
    tokenizer.save(tmp_path / "t")
    path = tmp_path / "t" / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2}))
    with pytest.raises(ModelError, match="has tokenizer format 2, this tfm reads 1; upgrade tfm"):
        Tokenizer.load(tmp_path / "t")


@pytest.mark.parametrize(
    "changes",
    [{"type": "x" * 5000}, {"type": "\x1b[2J"}, {"joint": 1}, {"models": [["a", "b"]]}, {"x": 1}, {"format": True}],
)
def test_a_description_of_other_types_is_refused(tmp_path: Path, tokenizer: Tokenizer, changes: dict[str, Any]) -> None:
    tokenizer.save(tmp_path / "t")
    path = tmp_path / "t" / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(ModelError, match=r"tokenizer\.json (is damaged|has an unknown key)"):
        Tokenizer.load(tmp_path / "t")


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", "null", '{"format": 1}', '{"format": 1, "models": 3}', "\0"])
def test_damaged_description(tmp_path: Path, tokenizer: Tokenizer, content: str) -> None:
    tokenizer.save(tmp_path / "t")
    (tmp_path / "t" / "tokenizer.json").write_text(content)
    with pytest.raises(ModelError, match=r"tokenizer\.json is damaged"):
        Tokenizer.load(tmp_path / "t")


def test_absurdly_large_file_is_not_read(tmp_path: Path, tokenizer: Tokenizer) -> None:
    tokenizer.save(tmp_path / "t")
    with open(tmp_path / "t" / "tokenizer.model", "ab") as file:
        file.truncate(10**10)
    with pytest.raises(ModelError, match="larger than such a file can be"):
        Tokenizer.load(tmp_path / "t")


@pytest.mark.parametrize("model", [b"", b"garbage", b"\0" * 100])
def test_foreign_bytes_are_no_vocabulary(model: bytes) -> None:
    with pytest.raises(ModelError):
        Vocabulary(model)


def test_foreign_model_is_no_vocabulary() -> None:
    model = io.BytesIO()
    train: Callable[..., None] = sentencepiece.SentencePieceTrainer.train  # pyright: ignore[reportAttributeAccessIssue]
    train(sentence_iterator=iter(["a b c d"] * 9), model_writer=model, vocab_size=9, model_type="bpe", minloglevel=2)
    with pytest.raises(ModelError, match="pad, unk, bos, eos = 0, 1, 2, 3, but this has"):
        Vocabulary(model.getvalue())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ends a child with its parent")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_sentencepiece_does_not_outlive_the_process_that_started_it(tmp_path: Path, how: signal.Signals) -> None:
    """The parent holds a child that never ends by itself, as SentencePiece does not for hours on a large corpus."""
    (tmp_path / "forever.py").write_text(
        "import time\nfrom tfm.data.sentencepiece_worker import end_with_parent\n"
        "end_with_parent()\nprint('ready', flush=True)\ntime.sleep(600)\n"
    )
    parent = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup has it ignored\n"
        "child = subprocess.Popen([sys.executable, sys.argv[1]], stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\nprint(child.pid, flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent, str(tmp_path / "forever.py")], stdout=subprocess.PIPE
    ) as started:
        assert started.stdout is not None
        child = int(started.stdout.readline())
        started.send_signal(how)
        started.wait()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{child}/stat").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break  # dead, and nobody has asked how it died
        time.sleep(0.05)
    else:
        assert not Path(f"/proc/{child}").exists()


def test_the_worker_asks_to_end_with_its_parent() -> None:
    source = Path(sentencepiece_worker.__file__).read_text(encoding="utf-8")
    assert source.index("    end_with_parent()") < source.index("    import sentencepiece")


@given(st.sampled_from(["the cat", "cat's", "9", "é猫"]), st.sampled_from(["unigram", "bpe"]))
@settings(max_examples=20, deadline=None)
def test_a_text_inside_another_has_no_space_before_it(text: str, kind: VocabularyType) -> None:
    vocabulary = build_tokenizer(
        zip(["the cat", "cat's"] * 20, ["9 é"] * 40, strict=True), TokenizerConfig(vocab_size=300, type=kind)
    ).tgt
    inside = vocabulary.encode_inside(text)
    assert vocabulary.decode([*vocabulary.encode("x"), *inside]) == "x" + text
    written = "".join(vocabulary.text(i) or "" for i in inside)
    assert written == "".join(character for character in text if character.isascii() or character == "é")


def test_what_pieces_write() -> None:
    vocabulary = build_tokenizer(zip(["the cat"] * 40, ["9 é"] * 40, strict=True), TokenizerConfig(vocab_size=300)).tgt
    assert "".join(map(str, map(vocabulary.text, vocabulary.encode("the 9#")))) == " the 9#"
    assert vocabulary.text(BOS_ID) == "" and vocabulary.text(vocabulary.encode_inside("猫")[0]) is None


@pytest.mark.parametrize("counts", [{"tag": "ab"}, {"tag": [1]}, {"tag": [1, None]}, {"none": [1, 1]}])
def test_counts_of_placeholders_that_are_none_are_refused(tmp_path: Path, counts: dict[str, Any]) -> None:
    lines = ["a b c", "b c a"] * 20
    build_tokenizer(zip(lines, lines, strict=True), TokenizerConfig(vocab_size=300)).save(tmp_path / "tokenizer")
    path = tmp_path / "tokenizer" / "tokenizer.json"
    path.write_bytes(json_bytes(json.loads(path.read_text()) | {"placeholders": counts}))
    with pytest.raises(ModelError, match="counts of placeholders"):
        Tokenizer.load(tmp_path / "tokenizer")


@settings(deadline=None, max_examples=20)
@given(st.lists(st.sampled_from("0123456789"), min_size=1, max_size=12).map("".join))
def test_digits_may_be_pieces_of_their_own(number: str) -> None:
    pairs = [(f"word {i} and {i * 37}", f"Wort {i} und {i * 37}") for i in range(300)]
    tokenizer = build_tokenizer(pairs, TokenizerConfig(vocab_size=350, split_digits=True))
    pieces = tokenizer.src.encode_as_pieces(f"word {number}")
    assert [one for one in pieces if any(map(str.isdecimal, one))] == list(number)
