"""LibreTranslate's API: its answers and errors, asked without a network."""

import asyncio
import json
import re
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tfm.engine.serve.app import LONGEST_BODY, MOST_FILES, MOST_TEXTS, Limits, Server
from tfm.engine.serve.directions import Direction
from tfm.engine.serve.gatherer import Gatherer
from tfm.engine.translation import Translation


def direction(source: str, target: str, sure: float = -1.0) -> Direction:
    """One that answers `de:TEXT`, and as alternatives `de1:TEXT` and so on."""

    def translate(texts: list[str], alternatives: Hashable) -> list[Translation]:
        assert isinstance(alternatives, int)
        if "fail" in texts:
            raise ValueError("secret")

        def one(text: str, rank: int) -> Translation:
            return Translation(f"{target}{rank or ''}:{text}" if text else "", log_prob=sure)

        several = [[one(text, rank) for rank in range(alternatives + 1)] for text in texts]
        return [Translation(some[0].text, log_prob=sure, alternatives=tuple(some)) for some in several]

    return Direction(source, target, Path("run"), Gatherer(translate, wait=0))


class Client:
    """Asks an application as a server would."""

    def __init__(self, folder: Path, *directions: Direction, **limits: Any) -> None:
        self.server = Server(list(directions), Limits(**{"characters": 2000, "seconds": 5.0} | limits), folder)
        self.app = self.server.app()

    def ask(self, method: str, path: str, body: bytes = b"", kind: str = "") -> tuple[int, Any, dict[str, str]]:
        """Status, content (parsed if it is JSON) and headers."""
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"content-type", kind.encode()), (b"host", b"here:5000")],
            "scheme": "http",
            "server": ("here", 5000),
        }
        sent: list[Any] = []
        pieces = [body[start : start + 50_000] for start in range(0, len(body), 50_000)] or [b""]

        async def receive() -> Any:
            if not pieces:
                await asyncio.Event().wait()  # nobody hangs up
            piece = pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        content = b"".join(message.get("body", b"") for message in sent[1:])
        is_json = headers.get("content-type") == "application/json"
        return sent[0]["status"], json.loads(content) if is_json else content, headers

    def post(self, path: str, given: Any, *, form: bool = False) -> tuple[int, Any]:
        body = urlencode(given) if form else json.dumps(given)
        kind = "application/x-www-form-urlencoded" if form else "application/json; charset=utf-8"
        return self.ask("POST", path, body.encode(), kind)[:2]

    def upload(self, name: str, content: bytes, **fields: str) -> tuple[int, Any]:
        parts = [
            f'--xyz\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'.encode() for k, v in fields.items()
        ]
        head = f'--xyz\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
        body = b"".join(parts) + head + content + b"\r\n--xyz--\r\n"
        return self.ask("POST", "/translate_file", body, "multipart/form-data; boundary=xyz")[:2]


@pytest.fixture
def directions() -> Iterator[list[Direction]]:
    made = [direction("en", "de", -1.0), direction("de", "en", -4.0), direction("en", "pt-BR", -2.0)]
    yield made
    for one in made:
        one.gatherer.close()


@pytest.fixture
def client(directions: list[Direction], tmp_path: Path) -> Client:
    return Client(tmp_path, *directions)


EN_DE = {"source": "en", "target": "de"}


@pytest.mark.parametrize("form", [False, True])
def test_a_text(client: Client, form: bool) -> None:
    assert client.post("/translate", {"q": "ä b", **EN_DE}, form=form) == (200, {"translatedText": "de:ä b"})
    assert client.post("/translate", {"q": "a", "source": "EN", "target": "pt-br"}, form=form)[0] == 200


def test_lines_are_translated_one_by_one_and_blank_ones_stay(client: Client) -> None:
    assert client.post("/translate", {"q": "a\n\nb", **EN_DE})[1] == {"translatedText": "de:a\n\nde:b"}


def test_lists_and_alternatives(client: Client) -> None:
    found = client.post("/translate", {"q": ["a\nb", "c"], "alternatives": 2, **EN_DE})[1]
    assert found["translatedText"] == ["de:a\nde:b", "de:c"]
    assert found["alternatives"] == [["de1:a\nde1:b", "de2:a\nde2:b"], ["de1:c", "de2:c"]]
    assert client.post("/translate", {"q": "c", "alternatives": 1, **EN_DE})[1]["alternatives"] == ["de1:c"]
    assert client.post("/translate", {"q": [], **EN_DE}) == (200, {"translatedText": []})


def test_html(client: Client) -> None:
    found = client.post("/translate", {"q": "<p>a</p><p>b &amp; c</p>", "format": "html", **EN_DE})
    assert found == (200, {"translatedText": "<p>de:a</p><p>de:b &amp; c</p>"})


def test_the_language_that_a_model_is_surest_of(client: Client) -> None:
    found = client.post("/translate", {"q": "a", "source": "auto", "target": "de"})[1]
    assert found["translatedText"] == "de:a" and found["detectedLanguage"]["language"] == "en"
    found = client.post("/translate", {"q": ["a", "b"], "source": "auto", "target": "en"})[1]
    assert found["translatedText"] == ["en:a", "en:b"] and len(found["detectedLanguage"]) == 2
    shares = client.post("/detect", {"q": "a"})[1]
    assert [one["language"] for one in shares] == ["en", "de"]
    assert sum(one["confidence"] for one in shares) == pytest.approx(100, abs=0.2)


def test_languages_and_settings(client: Client) -> None:
    status, languages, _ = client.ask("GET", "/languages")
    assert status == 200 and languages == [
        {"code": "en", "name": "English", "targets": ["de", "pt-BR"]},
        {"code": "de", "name": "German", "targets": ["en"]},
        {"code": "pt-BR", "name": "Portuguese (Brazil)", "targets": []},  # Weblate looks for both sides among the codes
    ]
    settings = client.ask("GET", "/frontend/settings")[1]
    assert settings["charLimit"] == 2000 and ".po" in settings["supportedFilesFormat"]
    assert settings["language"]["target"] == {"code": "de", "name": "German"}
    assert client.ask("GET", "/spec")[1]["openapi"].startswith("3.")


WRONG: list[tuple[Any, int, str]] = [
    ({}, 400, "missing q parameter"),
    ({"q": 5, **EN_DE}, 400, "q must be"),
    ({"q": "a", "target": "de"}, 400, "missing source parameter"),
    ({"q": "a", "source": "en"}, 400, "missing target parameter"),
    ({"q": "a", "source": "xx", "target": "de"}, 400, "xx is not supported"),
    ({"q": "a", "source": "de", "target": "pt-BR"}, 400, "pt-BR is not available as a target language from de"),
    ({"q": "a", "source": "pt-BR", "target": "en"}, 400, "en is not available as a target language from pt-BR"),
    ({"q": "a", "format": "docx", **EN_DE}, 400, "docx format is not supported"),
    ({"q": "a", "alternatives": "many", **EN_DE}, 400, "alternatives must be a number"),
    ({"q": "a" * 2001, **EN_DE}, 400, "exceeds text limit (2000)"),
    ({"q": "\n" * MOST_TEXTS, **EN_DE}, 400, "lines"),
    ([1], 400, "must be a JSON object"),
    ({"q": "fail", **EN_DE}, 500, "Internal error"),
]


@pytest.mark.parametrize(("given", "status", "said"), WRONG)
def test_what_is_wrong_is_said(client: Client, given: Any, status: int, said: str) -> None:
    try:
        found, answer = client.post("/translate", given)
    except ValueError as error:  # starlette raises it once more, for the server's own log
        assert status == 500 and str(error) == "secret"
        return
    assert found == status and set(answer) == {"error"} and said in answer["error"]
    assert client.post("/translate", {"q": "a", **EN_DE})[0] == 200


def test_bodies_are_bounded(client: Client) -> None:
    status, answer, _ = client.ask("POST", "/translate", b"x" * (LONGEST_BODY + 1), "application/json")
    assert status == 413 and "1,000,000 bytes" in answer["error"]
    assert client.ask("POST", "/translate", b"{", "application/json")[:2] == (
        400,
        {"error": "Invalid request: the body is no JSON"},
    )
    assert client.ask("POST", "/translate", b"[" * 100_000, "application/json")[0] == 400


def test_a_key(directions: list[Direction], tmp_path: Path) -> None:
    client = Client(tmp_path, *directions, api_key="sesame")
    assert client.post("/translate", {"q": "a", **EN_DE})[0] == 400
    assert client.post("/translate", {"q": "a", "api_key": "x", **EN_DE}) == (403, {"error": "Invalid API key"})
    assert client.post("/translate", {"q": "a", "api_key": "sesame", **EN_DE})[0] == 200
    assert client.upload("a.txt", b"a", api_key="x", **EN_DE)[0] == 403
    assert client.ask("GET", "/languages")[0] == 200


def test_busy_and_slow(tmp_path: Path) -> None:
    one = direction("en", "de")
    one.gatherer._room = 1  # pyright: ignore[reportPrivateUsage]
    client = Client(tmp_path, one)
    status, answer, headers = client.ask(
        "POST", "/translate", json.dumps({"q": ["a", "b"], **EN_DE}).encode(), "application/json"
    )
    assert status == 429 and "busy" in answer["error"] and headers["retry-after"]
    slow = Client(tmp_path, one, seconds=0.0)
    assert slow.post("/translate", {"q": "a", **EN_DE})[0] == 504
    one.gatherer.close()


def fetched(client: Client, answer: Any) -> bytes:
    url = answer["translatedFileUrl"]
    assert url.startswith("http://here:5000/download_file/")
    status, content, _ = client.ask("GET", url.removeprefix("http://here:5000"))
    assert status == 200
    return content


def test_files(client: Client) -> None:
    _, answer = client.upload("a.txt", b"one\r\n\ntwo", **EN_DE)
    assert fetched(client, answer) == b"de:one\r\n\nde:two"
    vtt = b"WEBVTT\n\n00:01.000 --> 00:02.000\nhello\n"
    _, answer = client.upload("A.VTT", vtt, **EN_DE)
    assert fetched(client, answer) == vtt.replace(b"hello", b"de:hello")
    assert client.upload("a.exe", b"", **EN_DE)[0] == 400
    status, answer = client.upload("broken.xlf", b"<xliff", **EN_DE)
    assert status == 400 and answer["error"].startswith("broken.xlf:1:")
    assert client.post("/translate_file", EN_DE, form=True)[0] == 400
    assert client.ask("GET", "/download_file/..%2f..%2fetc%2fpasswd")[0] == 404


def test_a_message_keeps_its_arguments_as_it_does_in_tfm_translate(tmp_path: Path) -> None:
    """The translator loses all arguments: what stands at the ends is put around a second translation."""

    def translate(texts: list[str], alternatives: Hashable) -> list[Translation]:
        del alternatives
        return [Translation(re.sub(r"[{}\d]", "", text).strip().upper()) for text in texts]

    one = Direction("en", "de", Path("run"), Gatherer(translate, wait=0))
    row = {"src": "{n, plural, one {{name} cat} other {{name} cats}}", "tgt": ""}
    _, answer = (client := Client(tmp_path, one)).upload("a.jsonl", json.dumps(row).encode() + b"\n", **EN_DE)
    assert json.loads(fetched(client, answer))["tgt"] == "{n, plural, one {{name} CAT} other {{name} CATS}}"
    one.gatherer.close()


def test_only_the_last_files_are_kept(client: Client, tmp_path: Path) -> None:
    first = client.upload("a.txt", b"a", **EN_DE)[1]["translatedFileUrl"].removeprefix("http://here:5000")
    for _ in range(MOST_FILES):
        client.upload("a.txt", b"b", **EN_DE)
    assert client.ask("GET", first)[0] == 404 and len(list(tmp_path.iterdir())) == MOST_FILES


def test_the_page_is_made_once_and_when_it_is_asked_for(client: Client) -> None:
    made: list[str] = []
    client.server.page = lambda: made.append("x") or "<p>page"  # pyright: ignore[reportAttributeAccessIssue]
    for _ in range(2):
        status, content, headers = client.ask("GET", "/")
        assert status == 200 and content == b"<p>page" and headers["content-type"].startswith("text/html")
    assert made == ["x"]
