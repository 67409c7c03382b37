"""Chromium for tests of pages: its start, and pages that note what they asked for and what went wrong."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium")
TIMEOUT_MS = 60_000


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser until the block ends; without one the test is skipped.

    Its event loop runs meanwhile in this thread, so that no test of another module can be in the block.
    """
    if CHROMIUM is None:
        pytest.skip("chromium is missing")
    with sync_playwright() as playwright:
        expect.set_options(timeout=TIMEOUT_MS)
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


class Visit:
    """Pages of a browser: `asked` has the addresses that they asked for, `complaints` errors and refusals by policy."""

    def __init__(self, browser: Browser) -> None:
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self._browser = browser
        self._pages: list[Page] = []

    def page(self, **options: Any) -> Page:
        """A new page."""
        page = self._browser.new_page(**options)
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self.complaints.append(message.text) if message.type == "error" else None)
        page.add_init_script("addEventListener('securitypolicyviolation', e => console.error(e.violatedDirective))")
        page.set_default_timeout(TIMEOUT_MS)
        self._pages.append(page)
        return page

    def close(self) -> None:
        """Close the pages."""
        for page in self._pages:
            page.close()

    def asked_elsewhere(self, url: str) -> list[str]:
        """The addresses of other servers than this one."""
        return [one for one in self.asked if not one.startswith((f"{url}/", "data:"))]
