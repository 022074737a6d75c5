"""LibreTranslate's API over some directions: its paths, parameters, answers and errors."""

import asyncio
import hmac
import json
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyio import from_thread, to_thread
from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...data.config import DataConfig
from ...data.formats import suffix_of
from ...data.languages import language_name
from ...system.errors import TfmError
from ..documents import DOCUMENTS, open_document, written_as
from ..translation import Translation
from .directions import Direction, likeliest_source
from .gatherer import Busy
from .html_text import translate_html
from .openapi import openapi

LONGEST_BODY = 1_000_000
LONGEST_FILE = 20_000_000
"""Bytes of a request."""
MOST_TEXTS = 1_000
"""Lines of a request, those of all its texts together."""
MOST_ALTERNATIVES = 10
MOST_FILES = 50
"""Translated files that wait to be fetched; the oldest goes first."""

Answer = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Limits:
    """What one request may take.

    Attributes:
        characters: Of all its texts together.
        seconds: Until its answer; a file has ten times as long.
        api_key: What it has to name, if that is set.
    """

    characters: int
    seconds: float
    api_key: str = ""


class Problem(HTTPException):
    """An answer that says what is wrong with a request."""


class _BoundedBody:
    """Refuses bodies that are too long, also those that do not say how long they are."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = LONGEST_FILE if scope.get("path") == "/translate_file" else LONGEST_BODY
        read = 0

        async def bounded() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > limit:
                raise Problem(413, f"a request has at most {limit:,} bytes here")
            return message

        await self._app(scope, bounded, send)


@dataclass
class Server:
    """What the paths answer.

    Args:
        directions: At least one.
        folder: For files, while they are translated and until they are fetched.
        page: Makes the HTML of `/`; called once, when somebody asks for it.
    """

    directions: list[Direction]
    limits: Limits
    folder: Path
    page: Callable[[], str] = str
    _files: "OrderedDict[str, Path]" = field(default_factory=OrderedDict)
    _made: str | None = None
    _page_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def app(self) -> Starlette:
        """The application, for an ASGI server."""
        routes = [
            Route("/translate", _closing(self._translate), methods=["POST"]),
            Route("/detect", _closing(self._detect), methods=["POST"]),
            Route("/languages", self._languages),
            Route("/translate_file", _closing(self._translate_file), methods=["POST"]),
            Route("/download_file/{name}", self._download, name="download"),
            Route("/frontend/settings", self._settings),
            Route("/suggest", self._suggest, methods=["POST"]),
            Route("/health", self._health),
            Route("/spec", self._spec),
            Route("/", self._page),
        ]
        handlers: Any = {HTTPException: _as_json, Exception: _as_json}
        return Starlette(routes=routes, middleware=[Middleware(_BoundedBody)], exception_handlers=handlers)

    # --- paths ---

    async def _translate(self, request: Request) -> Response:
        given = await self._given(request)
        texts, is_list = _texts(given)
        as_html, alternatives = _format(given) == "html", _alternatives(given)
        self._check_size(texts)
        answer: dict[str, Any] = {}
        source, target = _code(given, "source"), _code(given, "target")
        if source == "auto":
            detected = await self._detected(texts[0] if texts else "")
            source = _first_with(target, detected, self.directions)
            answer["detectedLanguage"] = detected[0] if not is_list else [detected[0]] * len(texts)
        direction = self._direction(source, target)
        if as_html:
            found = [[await self._html(direction, text)] for text in texts]
        else:
            found = await self._lines(direction, texts, alternatives)
        outputs = [one[0] for one in found]
        answer["translatedText"] = outputs if is_list else outputs[0]
        if alternatives:
            others = [one[1:] for one in found]
            answer["alternatives"] = others if is_list else others[0]
        return JSONResponse(answer)

    async def _detect(self, request: Request) -> Response:
        given = await self._given(request)
        texts, _ = _texts(given)
        self._check_size(texts)
        return JSONResponse(await self._detected(texts[0] if texts else ""))

    async def _languages(self, request: Request) -> Response:
        """All languages, also those that are only targets: Weblate looks for both sides here."""
        del request
        codes = dict.fromkeys(code for one in self.directions for code in (one.source, one.target))
        return JSONResponse(
            [{"code": code, "name": language_name(code), "targets": self._targets(code)} for code in codes]
        )

    async def _translate_file(self, request: Request) -> Response:
        given = await self._given(request)
        file = given.get("file")
        if not isinstance(file, UploadFile) or not file.filename:
            raise Problem(400, "Invalid request: missing file parameter")
        direction = self._direction(_code(given, "source"), _code(given, "target"))
        suffix = suffix_of(Path(file.filename))
        if suffix not in self.file_formats():
            raise Problem(400, f"Invalid request: file format {suffix or 'without a suffix'} is not supported")
        name = f"{secrets.token_urlsafe(16)}{suffix}"
        source, target = self.folder / f"in-{name}", self.folder / name
        content = await file.read()
        try:
            await to_thread.run_sync(source.write_bytes, content)
            target = await self._translate_document(direction, source, target)
        except TfmError as error:
            raise Problem(400, str(error).replace(str(source), file.filename)) from error
        finally:
            source.unlink(missing_ok=True)
        self._files[target.name] = target
        while len(self._files) > MOST_FILES:
            self._files.popitem(last=False)[1].unlink(missing_ok=True)
        return JSONResponse({"translatedFileUrl": str(request.url_for("download", name=target.name))})

    async def _download(self, request: Request) -> Response:
        path = self._files.get(request.path_params["name"])
        if path is None:
            raise Problem(404, "Invalid filename")
        return FileResponse(path, filename=f"translated{path.suffix}", media_type="application/octet-stream")

    async def _settings(self, request: Request) -> Response:
        del request
        first = self.directions[0]
        sides = {"source": first.source, "target": first.target}
        return JSONResponse(
            {
                "apiKeys": bool(self.limits.api_key),
                "keyRequired": bool(self.limits.api_key),
                "charLimit": self.limits.characters,
                "frontendTimeout": 500,
                "suggestions": False,
                "filesTranslation": True,
                "supportedFilesFormat": self.file_formats(),
                "language": {side: {"code": code, "name": language_name(code)} for side, code in sides.items()},
            }
        )

    async def _suggest(self, request: Request) -> Response:
        del request
        raise Problem(403, "Suggestions are disabled on this server.")

    async def _health(self, request: Request) -> Response:
        del request
        return JSONResponse({"status": "ok"})

    async def _spec(self, request: Request) -> Response:
        del request
        return JSONResponse(openapi(self.file_formats()))

    async def _page(self, request: Request) -> Response:
        del request
        async with self._page_lock:
            if self._made is None:
                self._made = await to_thread.run_sync(self.page)
        return HTMLResponse(self._made)

    # --- what they need ---

    @staticmethod
    def file_formats() -> list[str]:
        """Suffixes of the files that are translated."""
        return [".txt", *DOCUMENTS]

    def _targets(self, code: str) -> list[str]:
        return [one.target for one in self.directions if one.source == code]

    def _direction(self, source: str, target: str) -> Direction:
        for one in self.directions:
            if (one.source.lower(), one.target.lower()) == (source.lower(), target.lower()):
                return one
        known = {code.lower() for one in self.directions for code in (one.source, one.target)}
        if source.lower() not in known:
            raise Problem(400, f"{source} is not supported")
        raise Problem(400, f"{target} is not available as a target language from {source}")

    async def _given(self, request: Request) -> Mapping[str, Any]:
        """The parameters of a request, as JSON or as a form."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        given: Mapping[str, Any]
        if kind == "application/json":
            try:
                given = json.loads(await request.body())
            except (ValueError, RecursionError) as error:
                raise Problem(400, "Invalid request: the body is no JSON") from error
            if not isinstance(given, dict):
                raise Problem(400, "Invalid request: the body must be a JSON object")
        else:
            given = {**request.query_params, **await request.form(max_files=1, max_part_size=LONGEST_FILE)}
        key = given.get("api_key") or ""
        if self.limits.api_key:
            if not key:
                raise Problem(400, "Please contact the server operator to get an API key")
            if not hmac.compare_digest(str(key).encode("utf-8", "replace"), self.limits.api_key.encode()):
                raise Problem(403, "Invalid API key")
        return given

    def _check_size(self, texts: list[str]) -> None:
        characters, lines = sum(map(len, texts)), sum(text.count("\n") + 1 for text in texts)
        if characters > self.limits.characters:
            limit = self.limits.characters
            raise Problem(400, f"Invalid request: request ({characters}) exceeds text limit ({limit})")
        if lines > MOST_TEXTS:
            raise Problem(400, f"Invalid request: request ({lines} lines) exceeds the limit of {MOST_TEXTS} lines")

    async def _ask(
        self, direction: Direction, texts: list[str], alternatives: int = 0, seconds: float | None = None
    ) -> list[Translation]:
        if not texts:
            return []
        try:
            return await direction.gatherer.translate(texts, alternatives, seconds or self.limits.seconds)
        except Busy as error:
            raise Problem(429, "The server is busy; try again in a moment", {"Retry-After": "2"}) from error
        except TimeoutError as error:
            raise Problem(504, f"The translation took longer than {self.limits.seconds:g} seconds") from error

    async def _lines(self, direction: Direction, texts: list[str], alternatives: int) -> list[list[str]]:
        """The translations of each text, the best first. Each line of a text is translated by itself."""
        lines = [text.split("\n") for text in texts]
        flat = [line for some in lines for line in some]
        found = iter(await self._ask(direction, flat, alternatives))
        result = list[list[str]]()
        for some in lines:
            translated = [next(found) for _ in some]
            ranks = range(alternatives + 1)
            result.append(["\n".join(_ranked(one, rank) for one in translated) for rank in ranks])
        return result

    async def _html(self, direction: Direction, text: str) -> str:
        """A text in HTML. The cutting is done in a thread, which asks this one for translations."""

        def translate(texts: list[str]) -> list[str]:
            return [one.text for one in from_thread.run(self._ask, direction, texts)]

        return await to_thread.run_sync(translate_html, text, translate)

    async def _detected(self, text: str) -> list[dict[str, Any]]:
        line = next((line for line in text.split("\n") if line.strip()), "")
        found = [(await self._ask(one, [line]))[0] for one in self.directions]
        shares = likeliest_source(self.directions, found)
        return [{"language": language, "confidence": round(share, 1)} for language, share in shares]

    async def _translate_document(self, direction: Direction, source: Path, target: Path) -> Path:
        seconds = 10 * self.limits.seconds
        if source.suffix == ".txt":
            try:
                lines = source.read_bytes().decode("utf-8-sig").split("\n")
            except UnicodeDecodeError as error:
                raise Problem(400, "Invalid request: the file is not UTF-8") from error
            found = await self._ask(direction, lines, seconds=seconds)
            target.write_text("\n".join(one.text for one in found), encoding="utf-8", newline="")
            return target
        target = target.with_suffix(written_as(target.suffix))
        await to_thread.run_sync(self._fill_document, direction, source, target, seconds)
        return target

    def _fill_document(self, direction: Direction, source: Path, target: Path, seconds: float) -> None:
        """Fills a document. It runs in a thread, which asks the server's own for translations."""

        def translate(texts: list[str]) -> list[Translation]:
            return from_thread.run(self._ask, direction, texts, 0, seconds)

        config = DataConfig(src_language=direction.source, tgt_language=direction.target)
        document = open_document(source, target, config)
        outputs = [one.text for one in translate(document.fields.texts)]
        document.fields.without_ends(outputs, translate)
        document.fields.fill(outputs)
        with open(target, "wb") as stream:
            document.save(stream)


def _closing(answer: Answer) -> Answer:
    """Closes the files that came with a request."""

    async def closing(request: Request) -> Response:
        try:
            return await answer(request)
        finally:
            await request.close()

    return closing


def _ranked(translation: Translation, rank: int) -> str:
    others = translation.alternatives
    return others[min(rank, len(others) - 1)].text if others else translation.text


def _texts(given: Mapping[str, Any]) -> tuple[list[str], bool]:
    """The texts of a request, and whether it gave a list of them."""
    q = given.get("q")
    if q is None or isinstance(q, UploadFile):
        raise Problem(400, "Invalid request: missing q parameter")
    texts = q if isinstance(q, list) else [q]
    if not all(isinstance(text, str) for text in texts):
        raise Problem(400, "Invalid request: q must be a text or a list of texts")
    return [text.encode("utf-8", "replace").decode() for text in texts], isinstance(q, list)


def _code(given: Mapping[str, Any], side: str) -> str:
    code = given.get(side)
    if not code or not isinstance(code, str):
        raise Problem(400, f"Invalid request: missing {side} parameter")
    return code


def _format(given: Mapping[str, Any]) -> str:
    format_ = given.get("format") or "text"
    if format_ not in ("text", "html"):
        raise Problem(400, f"{format_!s:.20} format is not supported")
    return format_


def _alternatives(given: Mapping[str, Any]) -> int:
    try:
        number = int(given.get("alternatives") or 0)
    except (TypeError, ValueError) as error:
        raise Problem(400, "Invalid request: alternatives must be a number") from error
    return min(max(number, 0), MOST_ALTERNATIVES)


def _first_with(target: str, detected: list[dict[str, Any]], directions: list[Direction]) -> str:
    """The likeliest language that can be translated to the target; the likeliest of all if there is none."""
    pairs = {(one.source, one.target.lower()) for one in directions}
    languages = [one["language"] for one in detected]
    return next((one for one in languages if (one, target.lower()) in pairs), languages[0])


async def _as_json(request: Request, error: Exception) -> Response:
    """An error as LibreTranslate words it."""
    del request
    if isinstance(error, HTTPException):
        return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)
    return JSONResponse({"error": "Internal error: the server's own messages say more"}, 500)
