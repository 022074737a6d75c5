"""Corpora: put together from the settings, one after another, under an identity that follows their content."""

from collections import Counter

import pytest
from helpers.tables import LANGUAGES
from helpers.written_files import Write

from tfm.data import corpus as corpus_module
from tfm.data.config import DataConfig
from tfm.data.corpus import Corpus, dev_corpus, mix, open_corpus, open_spec, replay_corpus
from tfm.system.errors import DataError, UsageError


def test_several_corpora_are_read_one_after_another(write: Write) -> None:
    src = [str(write("a.de", "eins\n")), str(write("b.de", "zwei\ndrei\n"))]
    tgt = [str(write("a.en", "one\n")), str(write("b.en", "two\nthree\n"))]
    corpus = open_corpus(DataConfig(src=src, tgt=tgt))
    assert list(corpus.pairs()) == [("eins", "one"), ("zwei", "two"), ("drei", "three")]
    assert " + " in corpus.name
    tables = [str(write("a.tsv", "vier\tfour\n")), str(write("b.tsv", "fünf\tfive\n"))]
    assert list(open_corpus(DataConfig(data=tables)).pairs()) == [
        ("vier", "four"),
        ("fünf", "five"),
    ]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (DataConfig(), "no training data"),
        (
            DataConfig(src=["a"], tgt=["b"], data=["toy"]),
            "either --src and --tgt, or --data, not both",
        ),
        (DataConfig(src=["a"]), "--src names 1 files and --tgt 0"),
        (DataConfig(data=["corpus.txt"]), "cannot tell the format of corpus.txt"),
        (DataConfig(data=["corpus"]), "for two text files use --src and --tgt"),
        (DataConfig(data=["hf:"]), "names no data set"),
    ],
)
def test_contradictory_settings(config: DataConfig, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_corpus(config)


def test_validation_set(write: Write) -> None:
    src, tgt = str(write("dev.de", "eins\n")), str(write("dev.en", "one\n"))
    assert dev_corpus(DataConfig(data=["toy"])) is None
    corpus = dev_corpus(DataConfig(dev_src=[src], dev_tgt=[tgt]))
    assert corpus is not None and list(corpus.pairs()) == [("eins", "one")]
    with pytest.raises(UsageError, match="--dev-src names 1 files and --dev-tgt 0"):
        dev_corpus(DataConfig(dev_src=[src]))
    with pytest.raises(UsageError, match="not both"):
        dev_corpus(DataConfig(dev_src=[src], dev_tgt=[tgt], dev=["toy"]))


def test_identity_follows_the_content(write: Write) -> None:
    src, tgt = write("a.de", "eins\n"), write("a.en", "one\n")

    def identity() -> str:
        return open_corpus(DataConfig(src=[str(src)], tgt=[str(tgt)])).identity

    first = identity()
    assert identity() == first
    write("a.en", "two\n")
    assert identity() != first
    write("a.en", "one\n")
    assert identity() == first


def test_identity_follows_order_and_columns(write: Write) -> None:
    a, b = str(write("a.tsv", "a\tb\n")), str(write("b.tsv", "c\td\n"))
    orders = [open_corpus(DataConfig(data=data)).identity for data in ([a, b], [b, a], [a])]
    assert len(set(orders)) == 3
    assert open_spec(a, DataConfig()).identity != open_spec(a, LANGUAGES).identity


def test_a_weight_gives_each_pair_so_many_times(write: Write) -> None:
    once, thrice = str(write("a.tsv", "a\tb\n")), str(write("b.tsv", "c\td\ne\tf\n"))
    corpus = open_corpus(DataConfig(data=[once, f"{thrice}=3"]))
    assert sorted(corpus.pairs()) == sorted([("a", "b")] + 3 * [("c", "d"), ("e", "f")])
    assert corpus.count() == 7
    assert corpus.name == f"{once} + {thrice} (3 times)"
    identities = {open_spec(spec, DataConfig()).identity for spec in (thrice, f"{thrice}=2", f"{thrice}=3")}
    assert len(identities) == 3
    assert open_spec(f"{thrice}=1", DataConfig()).identity == open_spec(thrice, DataConfig()).identity


@pytest.mark.parametrize("weight", ["0", "-1", "1,5", "", "x", "1001", "²"])
def test_a_weight_is_a_whole_number(write: Write, weight: str) -> None:
    with pytest.raises(UsageError, match="the weight after = must be a whole number from 1 to 1,000"):
        open_spec(f"{write('a.tsv', 'a b')}={weight}", DataConfig())


def test_a_file_with_a_sign_in_its_name_is_no_weight(write: Write) -> None:
    with pytest.raises(DataError, match=r"cannot read .*a=b\.tsv: no such file"):
        open_spec(str(write("c.tsv", "").with_name("a=b.tsv")), DataConfig())
    assert open_spec(str(write("x=3.tsv", "a\tb\n")), DataConfig()).count() == 1


@pytest.mark.parametrize("name", ["app.po", "memory.tmx", "a.xlf", "pairs.csv", "PAIRS.JSONL.gz"])
def test_a_file_of_pairs_is_never_taken_for_lines(write: Write, name: str) -> None:
    path, other = str(write(name, "a\n")), str(write("a.txt", "b\n"))
    for src, tgt in ((path, other), (other, path)):
        with pytest.raises(DataError, match="is not plain text: it holds both sides; give it to --data"):
            open_corpus(DataConfig(src=[src], tgt=[tgt]))
    with pytest.raises(DataError, match="is not plain text: a language model learns from plain text"):
        open_corpus(DataConfig(text=[path]))


@pytest.mark.parametrize("name", ["subtitles.srt", "a.pot", "a.xml", "a.json", "text.docx", "texts.zip"])
def test_a_file_without_pairs_is_not_said_to_have_them(write: Write, name: str) -> None:
    path = str(write(name, "a\n"))
    for config in (DataConfig(src=[path], tgt=[path]), DataConfig(text=[path])):
        with pytest.raises(DataError, match="is not plain text: its lines are not sentences; "):
            open_corpus(config)


def numbered(count: int, word: str) -> Corpus:
    return Corpus(word, f"identity of {word} {count}", lambda: iter([(f"{word} {n}", f"{n}") for n in range(count)]))


def test_a_third_of_a_mixture_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_module, "MIXED_IN", 50)
    new, old = numbered(12, "new"), numbered(400, "old")
    mixture = mix(new, old, seed=1)
    pairs = list(mixture.pairs())
    old_ones = [pair for pair in pairs if pair[0].startswith("old")]
    assert len(old_ones) == len(set(old_ones)) == 50 and Counter(pairs) == Counter(old_ones) + Counter(
        2 * list(new.pairs())
    )
    assert len(pairs) == mixture.count() == 50 + 2 * 12 and mixture.repeats
    assert list(mixture.pairs()) == pairs and mixture.identity == mix(new, old, seed=1).identity
    assert mixture.identity != mix(new, old, seed=2).identity and set(mix(new, old, seed=2).pairs()) != set(pairs)
    assert sum(int(pair[0].split()[1]) < 200 for pair in old_ones) in range(15, 36)


def test_a_mixture_of_more_new_pairs_than_old_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_module, "MIXED_IN", 50)
    new, old = numbered(100, "new"), numbered(30, "old")
    assert list(mix(new, old, seed=1).pairs()) == [*new.pairs(), *old.pairs()]


def test_older_pairs_go_with_pairs_only(write: Write) -> None:
    path, lines = str(write("old.tsv", "a\tb\n")), str(write("old.txt", "a\n"))
    assert replay_corpus(DataConfig()) is None
    both = replay_corpus(DataConfig(replay=[path], replay_src=[lines], replay_tgt=[lines]))
    assert both is not None and both.count() == 2
    with pytest.raises(UsageError, match="text alone"):
        replay_corpus(DataConfig(text=["x.txt"], replay=[path]))


def test_older_tables_may_call_their_columns_otherwise(write: Write) -> None:
    path = str(write("old.csv", "english,german\none,eins\n"))
    config = DataConfig(replay=[path], replay_src_column="english", replay_tgt_column="german", src_column="en")
    old = replay_corpus(config)
    assert old is not None and list(old.pairs()) == [("one", "eins")]


def test_the_languages_of_several_files_are_those_that_they_share(write: Write) -> None:
    def memory(name: str, src: str, tgt: str) -> str:
        unit = f'<tu><tuv xml:lang="{src}"><seg>a</seg></tuv><tuv xml:lang="{tgt}"><seg>b</seg></tuv></tu>'
        return str(write(name, f"<tmx><body>{unit}</body></tmx>"))

    first, table = memory("a.tmx", "en-US", "de"), str(write("a.tsv", "a\tb\n"))
    assert open_corpus(DataConfig(data=["toy"])).languages == ("en", "de")
    assert open_corpus(DataConfig(data=[first, table])).languages == ("en", "de")
    assert open_corpus(DataConfig(data=[first, memory("b.tmx", "en", "fr")])).languages == ("en", "")
    assert open_corpus(DataConfig(data=[table])).languages == ("", "")
