"""Phrases of small vocabularies, and whether an output has them: by trying all ways to place them."""

from collections.abc import Collection, Sequence

from helpers.languages import BOS
from hypothesis import strategies as st

from tfm.seq2seq.decoding.phrases import Phrase, Spelling


def plain(*tokens: int) -> Phrase:
    """A phrase that is spelt in one way and may stand anywhere."""
    return Phrase((Spelling(tokens),))


def contains(ids: Sequence[int], phrases: Sequence[Phrase], only_in_phrases: Collection[int] = ()) -> bool:
    """Whether an output has each phrase at a place of its own, and some tokens nowhere else."""
    return _has(tuple(ids), tuple(phrases), only_in_phrases, 0)


def _has(ids: tuple[int, ...], phrases: tuple[Phrase, ...], only: Collection[int], place: int) -> bool:
    if place == len(ids):
        return not phrases
    if ids[place] not in only and _has(ids, phrases, only, place + 1):
        return True
    return any(
        _stands(ids, place, spelling) and _has(ids, phrases[:i] + phrases[i + 1 :], only, place + len(spelling.tokens))
        for i, phrase in enumerate(phrases)
        for spelling in phrase.spellings
    )


def _stands(ids: tuple[int, ...], place: int, spelling: Spelling) -> bool:
    end = place + len(spelling.tokens)
    before, after = ids[place - 1] if place else BOS, ids[end : end + 1]
    return (
        ids[place:end] == spelling.tokens
        and (spelling.after is None or before in spelling.after)
        and (spelling.before is None or not after or after[0] in spelling.before)
    )


_TOKENS = st.integers(1, 4)
_SPELLINGS = st.builds(
    Spelling,
    st.lists(_TOKENS, min_size=1, max_size=3).map(tuple),
    st.none() | st.frozensets(_TOKENS | st.just(BOS)),
    st.none() | st.frozensets(_TOKENS),
)
Phrases = st.lists(st.lists(_SPELLINGS, min_size=1, max_size=3).map(tuple).map(Phrase), max_size=3)
