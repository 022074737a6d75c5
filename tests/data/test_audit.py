"""The audit, on a corpus into which faults were planted: what it finds of them, and what it takes for one."""

import random
from collections.abc import Callable

import pytest

from tfm.data import Pair
from tfm.data.alignment import find_shifts
from tfm.data.audit import KINDS, Audit, Kind, audit
from tfm.data.toy import toy_pairs

SIZE, PLANTED = 2_000, 100
NUMBERED = [(f"{src} 1{n} {{x}}", f"{tgt} 1{n} {{x}}") for n, (src, tgt) in enumerate(toy_pairs("train", size=SIZE))]
"""Sound pairs, with a number and a placeholder in each."""

DAMAGE: dict[Kind, Callable[[Pair], Pair]] = {
    "empty": lambda pair: (pair[0], "  "),
    "identical": lambda pair: (pair[0], pair[0]),
    "duplicate": lambda pair: NUMBERED[0],
    "script": lambda pair: (pair[0], "это совсем другой текст " + pair[1][-9:]),
    "mojibake": lambda pair: (pair[0], "für äh ".encode().decode("cp1252") + pair[1]),
    "numbers": lambda pair: (pair[0], pair[1].replace(" 1", " 77")),
    "tags": lambda pair: (pair[0], pair[1].replace("{x}", "{y}")),
}


def planted(kind: Kind, share: float = PLANTED / SIZE) -> tuple[list[Pair], set[int]]:
    rows = set(random.Random(kind).sample(range(1, SIZE), round(share * SIZE)))
    return [DAMAGE[kind](pair) if row in rows else pair for row, pair in enumerate(NUMBERED)], rows


def rates(found: Audit, kind: Kind, rows: set[int]) -> tuple[float, float]:
    """Precision and recall."""
    marked = found.rows([kind])
    return len(marked & rows) / max(len(marked), 1), len(marked & rows) / len(rows)


def test_a_sound_corpus_has_no_faults() -> None:
    found = audit(NUMBERED)
    assert found.pairs == SIZE and not found.faults and not found.shifts
    assert found.src.unit == "words" and 5 < found.src.median <= found.src.most


@pytest.mark.parametrize("kind", DAMAGE)
def test_planted_faults_are_found_and_nothing_else_is_called_so(kind: Kind) -> None:
    pairs, rows = planted(kind)
    found = audit(pairs)
    precision, recall = rates(found, kind, rows)
    assert precision >= 0.98 and recall >= 0.98, (precision, recall)
    assert all(fault.row in rows for fault in found.faults), "another pair was called faulty"


def test_eight_kinds_at_once() -> None:
    rng = random.Random(8)
    pairs, rows = list(NUMBERED), dict[Kind, set[int]]()
    free = list(range(1, SIZE - 300))
    rng.shuffle(free)
    for kind in DAMAGE:
        rows[kind] = {free.pop() for _ in range(15)}
        for row in rows[kind]:
            pairs[row] = DAMAGE[kind](pairs[row])
    first = SIZE - 200
    pairs = pairs[:first] + [(pairs[i][0], pairs[i + 1][1]) for i in range(first, SIZE - 100)] + pairs[SIZE - 100 :]
    rows["shifted"] = set(range(first, SIZE - 100))
    rows["overlap"] = {free.pop() for _ in range(15)}
    found = audit(pairs, [pairs[row] for row in rows["overlap"]])
    for kind in set(KINDS) - {"untranslated"}:
        precision, recall = rates(found, kind, rows[kind])
        # At the ends of the shifted lines one that is not marked as shifted may have other numbers.
        assert precision >= (0.9 if kind == "numbers" else 0.95) and recall >= 0.95, (kind, precision, recall)


@pytest.mark.parametrize("offset", [-2, -1, 1, 3])
@pytest.mark.parametrize("first", [0, 700])
def test_a_shift_is_found_where_it_begins(offset: int, first: int) -> None:
    first, last = max(first, -offset), first + 300
    moved = [(NUMBERED[row][0], NUMBERED[row + offset][1]) for row in range(first, last)]
    without_numbers = [
        (s.rsplit(" ", 2)[0], t.rsplit(" ", 2)[0]) for s, t in [*NUMBERED[:first], *moved, *NUMBERED[last:]]
    ]
    (shift,) = find_shifts(without_numbers)
    assert shift.offset == -offset and abs(shift.first - first) <= 3 and abs(shift.last - last + 1) <= 3


def test_a_line_too_many_shifts_all_that_follow() -> None:
    src, tgt = [pair[0] for pair in NUMBERED], [pair[1] for pair in NUMBERED]
    tgt.insert(400, "das war zu viel")
    (shift,) = find_shifts(list(zip(src, tgt, strict=False)))
    assert shift.offset == 1 and abs(shift.first - 400) <= 8 and shift.last >= SIZE - 30


def test_sides_that_do_not_belong_together_are_not_called_shifted() -> None:
    src, tgt = [pair[0] for pair in NUMBERED], [pair[1] for pair in NUMBERED]
    random.Random(5).shuffle(tgt)
    assert find_shifts(list(zip(src, tgt, strict=True))) == []


@pytest.mark.parametrize("pairs", [[], [("a b", "c d")], [("", "")] * 20, [("same", "same")] * 30])
def test_corpora_too_small_to_tell(pairs: list[Pair]) -> None:
    assert find_shifts(pairs) == [] and audit(pairs).pairs == len(pairs)


@pytest.mark.parametrize(
    ("src", "tgt", "kinds"),
    [
        ("It costs 1,500 euros", "Es kostet 1.500 Euro", []),
        ("two dogs", "2 Hunde", []),
        ("in 1999", "im Jahr", ["numbers"]),
        ("half past 8:30", "um 8h30", []),
        ("３０ minutes", "30 Minuten", []),
        ("874 books, 1,250 pens", "۸۷۴ Bücher, ۱٬۲۵۰ Stifte", []),
        ("874 books", "۷۸۴ Bücher", ["numbers"]),
        ("Tom", "Tom", []),
        ("New York City", "New York City", ["identical"]),
        ("a café", "ein CafÃ©", ["mojibake"]),
        ("it’s", "c’est à nous", []),
        ("a menu", "ein „MENÜ“", []),
        ("a café", "« CAFÉ»", []),
        ("to us", "Ã\u00a0 nous", ["mojibake"]),
        ("“so”", "â€œsoâ€\u009d", ["mojibake"]),
        ("I said “yes”", "Я сказал", ["script"]),
        ("x �", "y", ["mojibake"]),
    ],
)
def test_what_is_a_fault_of_a_pair(src: str, tgt: str, kinds: list[Kind]) -> None:
    usual = [(f"some words here {n}", f"ein paar Wörter hier {n}") for n in range(50)]
    assert [fault.kind for fault in audit([*usual, (src, tgt)]).faults] == kinds


def test_broken_japanese_is_seen_with_bytes_that_windows_has_no_character_for() -> None:
    usual = [(f"some words {n}", f"これはペンです{n}号") for n in range(50)]
    broken = "ここは東京です".encode().decode("latin1")
    windows = "".join(
        bytes([b]).decode("cp1252") if b not in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else chr(b) for b in "これ".encode()
    )
    found = audit([*usual, ("this is Tokyo", broken), ("this", windows)])
    assert [(fault.row, fault.kind) for fault in found.faults if fault.kind == "mojibake"] == [
        (50, "mojibake"),
        (51, "mojibake"),
    ]


def test_a_side_that_is_broken_as_a_whole_is_seen_and_so_are_signs() -> None:
    pairs = [(f"some words {n}", f"это слова номер {n}".encode().decode("latin1")) for n in range(60)]
    assert audit(pairs).count("mojibake") == 60
    usual = [(f"some words {n}", f"ein paar Wörter {n}") for n in range(60)]
    signs = [("so", sign.encode().decode("latin1")) for sign in ("gut 😀", "ja ♥", "✓ fertig")]
    assert audit([*usual, *signs]).count("mojibake") == 3


def test_latin_names_are_no_other_script() -> None:
    usual = [(f"some words {n}", f"несколько слов {n}") for n in range(50)]
    found = audit([*usual, ("Apple Inc. of California", "Apple из Калифорнии"), ("some text", "some other text")])
    assert [(fault.row, fault.kind, fault.detail) for fault in found.faults] == [(51, "script", "target: latin")]


def test_japanese_is_counted_in_characters_and_kana_are_its_script() -> None:
    pairs = [(f"words {n} x", f"これはペンです{n}号線の道") for n in range(40)]
    found = audit([*pairs, ("more", "漢字ばかりの文章")])
    assert found.tgt.unit == "characters" and found.src.unit == "words" and not found.faults
