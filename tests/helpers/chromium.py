"""Chromium, if it is here, and pages that are opened in it."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@contextmanager
def opened_pages(browser: Any, folder: Path, ready: str, **options: Any) -> Iterator[Callable[..., Any]]:
    """Opens pages from a file, without a network; afterwards they have asked for nothing, and have not failed.

    Args:
        ready: What a page shows when it can be used.
        options: More of a context of the browser.
    """
    asked: list[str] = []
    failed: list[str] = []
    contexts: list[Any] = []

    def open_(html: str, width: int = 1280, scheme: str = "light") -> Any:
        path = folder / "page.html"
        path.write_text(html, encoding="utf-8")
        size = {"width": width, "height": 800}
        context = browser.new_context(viewport=size, color_scheme=scheme, offline=True, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("pageerror", lambda error: failed.append(str(error)))
        tab.goto(path.as_uri())
        tab.wait_for_selector(ready, timeout=60_000)
        return tab

    yield open_
    for context in contexts:
        context.close()
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []
    assert failed == []
