"""Two text files, texts alone, and the toy language as a SPEC."""

import bz2
import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from helpers.written_files import Write
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.config import DataConfig
from tfm.data.corpus import dev_corpus, open_corpus, open_spec
from tfm.data.formats.text import TOY_SIZES, open_text
from tfm.data.holdout import hold_out
from tfm.data.toy import toy_pairs
from tfm.system.errors import DataError, UsageError


def test_two_files(write: Write) -> None:
    src, tgt = write("a.de", "eins\r\nzwei\n"), write("a.en", bz2.compress(b"one\ntwo"))
    corpus = open_corpus(DataConfig(src=[str(src)], tgt=[str(tgt)]))
    assert list(corpus.pairs()) == list(corpus.pairs()) == [("eins", "one"), ("zwei", "two")]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 30), st.sampled_from([-2, -1, 1, 2]), st.booleans())
def test_unequal_line_counts_are_refused_with_both_counts(lines: int, difference: int, final_newline: bool) -> None:
    other = max(0, lines + difference)
    if other == lines:
        return
    with TemporaryDirectory() as directory:
        src, tgt = Path(directory, "a.de"), Path(directory, "a.en")
        for path, count in ((src, lines), (tgt, other)):
            text = "".join(f"line {number}\n" for number in range(count))
            path.write_text(text if final_newline else text.removesuffix("\n"))
        corpus = open_corpus(DataConfig(src=[str(src)], tgt=[str(tgt)]))
        with pytest.raises(
            DataError,
            match=rf"a\.de has {lines} lines and .*a\.en {other}; .*match line by line",
        ):
            list(corpus.pairs())


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(("at", "count"), [(417, 1), (700, 40)])
def test_the_place_where_lines_slip_is_named(write: Write, side: int, at: int, count: int) -> None:
    sides = [list(texts) for texts in zip(*toy_pairs("train", size=1_000), strict=True)]
    del sides[side][at : at + count]
    src, tgt = (str(write(f"a.{i}", "\n".join(lines))) for i, lines in enumerate(sides))
    with pytest.raises(DataError, match=r"match line by line; the first line that slips .* near ([\d,]+)$") as raised:
        list(open_corpus(DataConfig(src=[src], tgt=[tgt])).pairs())
    assert abs(int(str(raised.value).rpartition(" ")[2].replace(",", "")) - at) < 12


def test_no_place_is_named_where_nothing_tells(write: Write) -> None:
    src, tgt = ([pair[side] for pair in toy_pairs("train", size=1_000)] for side in (0, 1))
    random.Random(1).shuffle(others := list(tgt))
    for lines in (tgt[:-7], others[:-7], ["x"] * 990):
        names = [str(write("a.en", "\n".join(src))), str(write("a.de", "\n".join(lines)))]
        with pytest.raises(DataError, match=r"the two files must match line by line$"):
            list(open_corpus(DataConfig(src=names[:1], tgt=names[1:])).pairs())


def test_a_byte_order_mark_is_left_out_and_told_once(write: Write) -> None:
    src, tgt = str(write("a.de", "\ufeffeins\nzwei\n")), str(write("a.en", "one\ntwo\n"))
    corpus = open_corpus(DataConfig(src=[src], tgt=[tgt]))
    assert list(corpus.pairs()) == [("eins", "one"), ("zwei", "two")]
    assert corpus.remarks == (f"{src}: the byte-order mark before its text is left out",)
    assert len(open_corpus(DataConfig(src=[src], tgt=[src])).remarks) == 1
    assert len(open_corpus(DataConfig(text=[src])).remarks) == 1
    pairs = str(write("pairs.tsv", "\ufeffeins\tone\n"))
    assert sum("byte-order mark" in one for one in open_corpus(DataConfig(data=[pairs])).remarks) == 1


def test_blank_lines_are_empty_pairs_and_keep_their_place(write: Write) -> None:
    src, tgt = write("a.de", "eins\n\ndrei\n"), write("a.en", "one\ntwo\n\n")
    corpus = open_corpus(DataConfig(src=[str(src)], tgt=[str(tgt)]))
    assert list(corpus.pairs()) == [("eins", "one"), ("", "two"), ("drei", "")]


def test_bad_lines_stop_or_are_skipped_on_both_sides(write: Write) -> None:
    src, tgt = (
        str(write("a.de", b"eins\nzw\xff\ndrei\n")),
        str(write("a.en", b"one\ntwo\n\xffthree\n")),
    )
    with pytest.raises(DataError, match=r"a\.de:2 byte 3: invalid UTF-8"):
        list(open_corpus(DataConfig(src=[src], tgt=[tgt])).pairs())
    skipping = open_corpus(DataConfig(src=[src], tgt=[tgt], bad_lines="skip"))
    assert list(skipping.pairs()) == [("eins", "one"), ("", ""), ("", "")]


def test_counting_does_not_tokenise_or_decode(write: Write) -> None:
    path = str(write("latin1.txt", "zw\u00f6lf\n".encode("latin-1")))
    assert open_corpus(DataConfig(src=[path], tgt=[path])).count() == 1


def test_each_line_is_a_text(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("one\n\ntwo three\n", encoding="utf-8")
    opened = open_text(str(tmp_path / "t.txt"), "train", DataConfig())
    assert list(opened.pairs()) == [("", "one"), ("", ""), ("", "two three")]
    assert opened.quick_count is not None and opened.quick_count() == 3


def test_bad_lines_are_refused_or_skipped(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes(b"one\n\xff\n")
    with pytest.raises(DataError, match=r"t.txt:2 byte 1: invalid UTF-8"):
        list(open_text(str(tmp_path / "t.txt"), "train", DataConfig()).pairs())
    assert list(open_text(str(tmp_path / "t.txt"), "train", DataConfig(bad_lines="skip")).pairs())[1] == ("", "")


def test_toy_is_the_english_side() -> None:
    opened = open_text("toy", "dev", DataConfig())
    assert [text for _, text in opened.pairs()] == [english for english, _ in toy_pairs("dev", size=500)]


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        open_text(str(tmp_path / "no.txt"), "train", DataConfig())


def test_corpora_of_texts_are_joined_and_held_out_by_their_text(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text("".join(f"{name} {i % 50}\n" for i in range(100)), encoding="utf-8")
    corpus = open_corpus(DataConfig(text=[str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]))
    assert corpus.text_only and corpus.count() == 200
    rest, held = hold_out(corpus, seed=1)
    assert rest.text_only and held.text_only
    train, dev = {text for _, text in rest.pairs()}, {text for _, text in held.pairs()}
    assert dev and not train & dev
    assert len(train) + len(dev) == 100


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (DataConfig(text=["toy"], data=["toy"]), "give either --text, for a language model, or pairs"),
        (DataConfig(text=["toy"], dev=["toy"]), "the validation set of a language model is text"),
        (DataConfig(data=["toy"], dev_text=["toy"]), "--dev-text goes with --text"),
    ],
)
def test_text_and_pairs_are_not_mixed(config: DataConfig, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        open_corpus(config)
        dev_corpus(config)


@pytest.mark.parametrize("split", TOY_SIZES)
def test_toy(split: str) -> None:
    assert sum(1 for _ in open_spec("toy", DataConfig(), split).pairs()) == TOY_SIZES[split]


def test_a_test_set_in_sgml_is_read_segment_by_segment(write: Write) -> None:
    segments = ["the cat &amp; the <b>dog</b>", "a &lt;b&gt;\nin two lines", "", "&#233;t\u00e9 & more"]
    for name, root in (("src.en.sgm", "srcset"), ("ref.de.SGML", "refset")):
        body = "\n".join(f'<seg id="{number}">{text}</seg>' for number, text in enumerate(segments, start=1))
        write(name, f'<{root} setid="x" srclang="any">\n<doc docid="a">\n<hl>\n{body}\n</hl></doc>\n</{root}>\n')
    paths = [str(write("src.en.sgm", "").with_name(name)) for name in ("ref.de.SGML", "ref.de.SGML")]
    corpus = open_corpus(DataConfig(src=paths[:1], tgt=paths[1:]))
    texts = ["the cat & the dog", "a <b> in two lines", "", "\u00e9t\u00e9 & more"]
    assert list(corpus.pairs()) == [(text, text) for text in texts] and corpus.count() == 4
    with pytest.raises(DataError, match="has no <seg>: it is no test set"):
        list(open_corpus(DataConfig(src=[str(write("a.sgm", "text\n"))], tgt=paths[:1])).pairs())
    with pytest.raises(DataError, match=r"src\.en\.sgm has 0 lines|has no <seg>"):
        list(open_corpus(DataConfig(src=[str(write("src.en.sgm", "<srcset></srcset>"))], tgt=paths[:1])).pairs())


@pytest.mark.parametrize("encoding", ["cp1251", "utf-16-le"])
def test_both_sides_are_in_the_encoding_that_is_named(write: Write, encoding: str) -> None:
    paths = [str(write(name, text.encode(encoding))) for name, text in (("a", "кот\nдом\n"), ("b", "cat\nhouse\n"))]
    config = DataConfig(src=paths[:1], tgt=paths[1:], encoding=encoding)
    corpus = open_corpus(config)
    assert list(corpus.pairs()) == [("кот", "cat"), ("дом", "house")] and corpus.count() == 2
    other = open_corpus(DataConfig(src=paths[:1], tgt=paths[1:], encoding="latin-1"))
    assert other.identity != corpus.identity, "another encoding is another text"
