"""What a corpus shows: whether repetition is a fault, and what becomes of lines without letters."""

from hypothesis import given
from hypothesis import strategies as st

from tfm.data.facts import CorpusFacts, look_at
from tfm.data.placeholders import KINDS

LOOP, PLAIN = ("jump thrice", "JUMP JUMP JUMP"), ("jump", "JUMP")


def test_repetition_is_right_where_targets_repeat_themselves() -> None:
    facts = look_at([PLAIN] * 999 + [LOOP], KINDS)
    assert (facts.pairs, facts.loops) == (1000, 1) and facts.loops_are_faults
    facts = look_at([PLAIN] * 998 + [LOOP] * 2, KINDS)
    assert not facts.loops_are_faults and facts.remark == "off (0.20 % of the training targets repeat themselves)"
    assert CorpusFacts().loops_are_faults, "of an older checkpoint nothing is known"


def test_a_line_without_letters_is_its_own_translation_unless_the_corpus_shows_otherwise() -> None:
    kept, changed = ("12:30 %s", "12:30 %s"), ("1 2 3", "3 2 1")
    assert look_at([kept] * 18 + [changed] * 2, KINDS).keeps_letterless
    assert not look_at([kept] * 17 + [changed] * 3, KINDS).keeps_letterless
    assert look_at([changed] * 19, KINDS).keeps_letterless, "too few to show it"
    assert look_at([("", "a text")] * 30, KINDS) == CorpusFacts(pairs=30)
    assert look_at([("%s", "%s")] * 30, {"tag"}).letterless == 0


def test_the_limit_of_a_loop_is_what_hardly_any_target_reaches() -> None:
    def said(times: int) -> tuple[str, str]:
        return "a text", " and ".join(["of the house"] * times)

    thrice = ("a text", "of the house not of the house but of the house")
    assert look_at([PLAIN] * 999 + [thrice], KINDS).limit == 3
    assert look_at([PLAIN] * 998 + [thrice] * 2, KINDS).limit == 4
    assert look_at([PLAIN] * 90 + [said(9)] * 10, KINDS).limit > 9, "no limit"


def test_other_numbers_are_a_fault_unless_the_corpus_spells_them() -> None:
    kept, spelt = ("3 cats", "3 chats"), ("3 cats", "trois chats")
    assert look_at([kept] * 10 + [spelt] * 10, KINDS).keeps_numbers
    assert not look_at([kept] * 9 + [spelt] * 11, KINDS).keeps_numbers
    assert look_at([spelt] * 19, KINDS).keeps_numbers, "too few to show it"


@given(st.lists(st.tuples(st.sampled_from(["a", "1", "?", "%s"]), st.sampled_from(["a", "1", "?"]))))
def test_counts(pairs: list[tuple[str, str]]) -> None:
    facts = look_at(pairs, KINDS)
    assert facts.letterless == sum(src != "a" for src, _ in pairs)
    assert facts.unchanged == sum(src == tgt != "a" for src, tgt in pairs)
