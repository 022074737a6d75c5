"""`tfm explain`: a page or a walk in the terminal."""

import re
from pathlib import Path

from helpers.command import Tfm, error_of
from helpers.explained import read_page


def test_a_page(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    done = tfm("explain", "--run", tiny_run, "one two three", "--output", "page.html", "--checkpoints", "--head", 2)
    assert done.returncode == 0, error_of(done)
    assert done.stdout == b""
    assert re.search(r"page\.html: \d\.\d MB", error_of(done))
    data, arrays = read_page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert data["text"] == "one two three"
    assert data["begin"] == {"layer": 0, "head": 1, "token": None, "step": 0}
    assert len(arrays) > 50 and data["snapshots"]
    assert (tmp_path / "page.html").stat().st_size < 5_000_000


def test_a_page_is_live_unless_it_is_told_not_to_be(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    for flags, live in (([], True), (["--live"], True), (["--no-live"], False)):
        done = tfm("explain", "--run", tiny_run, "one two three", "--output", "page.html", *flags)
        assert done.returncode == 0, error_of(done)
        html = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert read_page(html)[0]["live"] == live == ('id="model"' in html)
        assert "does not compute" not in error_of(done)


def test_a_walk_in_the_terminal(tfm: Tfm, tiny_run: Path) -> None:
    done = tfm("explain", "--run", tiny_run, "one two three", "--format", "text", "--step", 1)
    assert done.returncode == 0, error_of(done)
    assert "S = Q K^T / sqrt(d_k)" in done.stdout.decode()
    translated = tfm("translate", "--run", tiny_run, "one two three").stdout.decode().strip()
    assert f"-> {translated}\n" in done.stdout.decode()


def test_what_is_refused(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    for flags, code, words in (
        (["one"], 2, "a page needs a file: add --output page.html, or --format text"),
        (["one", "--format", "pdf"], 2, "there is no format 'pdf'; --format takes html or text"),
        (["one", "--format", "text", "--live"], 2, "only a page is live"),
        (["one", "--format", "text", "--layer", 99], 2, "--layer 99: there is 1 layer"),
        (["one", "--format", "text", "--head", 99], 2, "--head 99: there are"),
        (["one", "--format", "text", "--piece", 99], 2, "--piece 99: there are"),
        (["one", "--format", "text", "--step", 999], 2, "--step 999: there"),
        (["   ", "--format", "text"], 3, "the text is blank"),
        (["one", "--output", "no/such/folder/page.html"], 5, "cannot write no/such/folder/page.html"),
        (["one", "--output", "."], 5, "cannot write .: it is a directory"),
    ):
        done = tfm("explain", "--run", tiny_run, *flags)
        assert done.returncode == code, error_of(done)
        assert words in error_of(done)
    assert list(tmp_path.iterdir()) == []
