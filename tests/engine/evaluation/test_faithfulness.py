"""Faithfulness: shares counted by hand, and properties that hold of any texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.engine.evaluation.faithfulness import Kept, faithfulness, names

WORDS = st.lists(st.sampled_from(["12", "3.5", "Anna", "NATO", "the", "cat", "%s", "१२", "."]), min_size=1, max_size=12)
TEXTS = WORDS.map(" ".join)
SETS = st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6)


def test_what_must_come_through_is_what_source_and_reference_share() -> None:
    found = faithfulness(
        ["Anna has 12 cats and 3 dogs, says %s.", "At 17:45 NATO met in Berlin.", "One %2$d"],
        ["Anna hat १२ Katzen und 99 Hunde.", "NATO traf sich um 17.45 Uhr.", "Ein %2$d"],
        [["Anna hat 12 Katzen und drei Hunde, sagt %s."], ["Um 17.45 Uhr traf sich die NATO in Berlin."], ["Ein %2$d"]],
    )
    assert (found.numbers, found.invented) == (Kept(2, 2), 1)  # 3 is a word in the reference, 99 is nowhere
    assert found.names == Kept(1, 2)  # Anna begins a sentence; NATO is kept, Berlin lost
    assert found.placeholders == Kept(1, 2)


def test_lengths_loops_and_what_is_said_of_them() -> None:
    sources = ["a long sentence of many words", "two", "three", "four"]
    outputs = ["kurz", "zwei Wörter und noch sehr viele andere mehr", "Katze Katze Katze Katze", "vier"]
    references = [["ein langer Satz"], ["zwei"], ["drei Katzen und mehr"], ["vier"]]
    found = faithfulness(sources, outputs, references, unknown=2)
    assert (found.short, found.long, found.loops) == (1, 1, 1)
    assert found.length == pytest.approx(sum(len(one.replace(" ", "")) for one in outputs) / (13 + 4 + 17 + 4))
    lines = str(found).split("\n")
    assert lines[0] == "kept: no numbers, names or placeholders to keep; 0 numbers invented"
    assert lines[1].endswith("1 repeat themselves, 2 are of text that the vocabulary does not know") and len(lines) == 2


@given(SETS)
def test_references_are_faithful_to_themselves(pairs: list[tuple[str, str]]) -> None:
    sources, references = zip(*pairs, strict=True)
    found = faithfulness(sources, references, [[one] for one in references])
    assert found.length == pytest.approx(1) or not any(map(str.isalnum, "".join(references)))
    assert (found.invented, found.short, found.long) == (0, 0, 0)
    assert all(kept.count == kept.total for kept in (found.numbers, found.names, found.placeholders))
    nothing = faithfulness(sources, [""] * len(pairs), [[one] for one in references])
    assert all(kept.count == 0 for kept in (nothing.numbers, nothing.names, nothing.placeholders))
    assert nothing.numbers.total == found.numbers.total and nothing.length == 0


def test_names_in_several_scripts() -> None:
    assert names("The cat. Anna sees iPhone and Łódź, „Über Ök“") == ["iPhone", "Łódź", "Über", "Ök"]
    assert names("昨日 Appleの店で買った") == ["Apple"]
    assert names("Он видит Москву. NATO") == ["Москву", "NATO"]
