"""Chromium for tests of pages: one for each process, and pages that note what they asked for and what went wrong."""

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect, sync_playwright

# The shell has the engine without the windows, and takes half of the processor time.
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
TIMEOUT_MS = 60_000  # so that nothing hangs for ever; a busy machine takes seconds for what usually takes none
# The browser's own words, such as those about a wrong value, follow the language of the machine otherwise.
LOCALE = {"LANG": "en_US.UTF-8", "LC_ALL": "en_US.UTF-8", "LANGUAGE": "en", "TZ": "UTC"}

ColorScheme = Literal["light", "dark"]

_contexts: dict[str, BrowserContext] = {}  # of the browser that runs

expect.set_options(timeout=TIMEOUT_MS)


class Chromium:
    """The browser of this process, for the modules that use it one after the other; without it their tests are skipped.

    Playwright's event loop counts as running in this thread all the time, although it runs within Playwright's calls
    alone. Tests of other modules run loops of their own, so it counts while the browser is in use.
    """

    def __init__(self) -> None:
        if CHROMIUM is None:
            pytest.skip("chromium-headless-shell and chromium are missing")
        self._playwright = sync_playwright().start()
        self._loop = asyncio.get_running_loop()
        self._browser = self._playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--lang=en-US", "--process-per-site"],
            env={**os.environ, **LOCALE},
            timeout=TIMEOUT_MS,
        )
        asyncio._set_running_loop(None)

    @contextmanager
    def in_use(self) -> Iterator[Browser]:
        """The browser, until the block ends."""
        asyncio._set_running_loop(self._loop)
        try:
            yield self._browser
        finally:
            asyncio._set_running_loop(None)

    def end(self) -> None:
        """End the browser, and Playwright."""
        with self.in_use():
            _contexts.clear()
            self._browser.close()
            self._playwright.stop()


def new_page(
    browser: Browser,
    viewport: ViewportSize | None = None,
    color_scheme: ColorScheme = "light",
    *,
    apart: bool = False,
    **options: Any,
) -> Page:
    """A new page. Pages with the same options share a process, which takes a second to start, a cache, and storage.

    They would also share the clock that a test sets, and what a page stores late: such a page is `apart`.
    """
    page = browser.new_page(**options) if apart else _context(browser, options).new_page()
    page.set_default_timeout(TIMEOUT_MS)
    page.emulate_media(color_scheme=color_scheme)
    page.set_viewport_size(viewport or {"width": 1280, "height": 720})
    return page


def _context(browser: Browser, options: dict[str, Any]) -> BrowserContext:
    name = str(sorted(options.items()))
    if name not in _contexts:
        _contexts[name] = browser.new_context(**options)
        lasting = _contexts[name].new_page()  # without a page of the site its process would end
        lasting.route("**", lambda route: route.fulfill(body=""))
        lasting.goto("http://127.0.0.1/")
    return _contexts[name]


def wait_until(page: Page, is_so: Callable[[], bool]) -> None:
    """Handle the events of a page until something is so."""
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while not is_so():
        assert time.monotonic() < deadline, "What the test waits for does not come."
        page.wait_for_timeout(20)


class Visit:
    """Pages of a browser: `asked` has the addresses that they asked for, `complaints` errors and refusals by policy."""

    def __init__(self, browser: Browser) -> None:
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self._browser = browser
        self._pages: list[Page] = []

    def page(self, **options: Any) -> Page:
        """A new page."""
        page = new_page(self._browser, **options)
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self.complaints.append(message.text) if message.type == "error" else None)
        page.add_init_script("addEventListener('securitypolicyviolation', e => console.error(e.violatedDirective))")
        self._pages.append(page)
        return page

    def close(self) -> None:
        """Close the pages."""
        for page in self._pages:
            page.close()

    def asked_elsewhere(self, url: str) -> list[str]:
        """The addresses of other servers than this one."""
        return [one for one in self.asked if not one.startswith((f"{url}/", "data:"))]
