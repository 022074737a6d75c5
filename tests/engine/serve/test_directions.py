"""Which run translates from what to what."""

from pathlib import Path

import pytest

from tfm.engine.serve.directions import Direction, likeliest_source, open_directions
from tfm.engine.translation import Translation
from tfm.engine.translator import Translator
from tfm.system.errors import UsageError


def opened(monkeypatch: pytest.MonkeyPatch, *specs: str) -> list[tuple[str, str, Path]]:
    loaded: list[Path] = []
    monkeypatch.setattr(Translator, "load", lambda run, **_: loaded.append(run))
    found = open_directions(specs, checkpoint="best", device="cpu", beam_size=None, warn=print)
    for one in found:
        one.gatherer.close()
    assert loaded == [one.run for one in found]
    return [(one.source, one.target, one.run) for one in found]


def test_languages_stand_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert opened(monkeypatch, "en-de=runs/a", "pt_BR-en=runs/b=c") == [
        ("en", "de", Path("runs/a")),
        ("pt-BR", "en", Path("runs/b=c")),
    ]


@pytest.mark.parametrize("spec", ["en=run", "en-=run", "e-de=run", "en-de-fr=run", "a b-de=run"])
def test_what_is_no_pair_of_languages_is_refused(monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    with pytest.raises(UsageError, match="pt_BR-en=RUN"):
        opened(monkeypatch, spec)


def test_a_run_that_does_not_know_its_languages_needs_them(monkeypatch: pytest.MonkeyPatch, in_tmp_path: Path) -> None:
    (in_tmp_path / "x=run").mkdir()
    with pytest.raises(UsageError, match="--run en-de=x=run"):
        opened(monkeypatch, "x=run")


def test_two_runs_of_one_direction_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="two runs translate from en to de"):
        opened(monkeypatch, "en-de=a", "en-de=b")


def test_unknown_text_speaks_against_a_language() -> None:
    nobody: object = None
    pair = [Direction(a, b, Path(), nobody) for a, b in (("en", "de"), ("de", "en"))]  # pyright: ignore[reportArgumentType]
    surer = Translation("x", log_prob=-2.0, tokens=("x",))
    strange = Translation("x", log_prob=-1.0, tokens=("x",), unknown_share=0.9)
    (first, share), (second, rest) = likeliest_source(pair, [surer, strange])
    assert (first, second) == ("en", "de") and share > rest and share + rest == pytest.approx(100)
