"""Chromium for tests of pages: its start, and pages that note what they asked for and what went wrong."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium")
TIMEOUT_MS = 60_000  # so that nothing hangs for ever; a busy machine takes seconds for what usually takes none
# The browser's own words, such as those about a wrong value, follow the language of the machine otherwise.
LOCALE = {"LANG": "en_US.UTF-8", "LC_ALL": "en_US.UTF-8", "LANGUAGE": "en", "TZ": "UTC"}

expect.set_options(timeout=TIMEOUT_MS)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser until the block ends; without one the test is skipped.

    Its event loop runs meanwhile in this thread, so that no test of another module can be in the block.
    """
    if CHROMIUM is None:
        pytest.skip("chromium is missing")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--lang=en-US"], env={**os.environ, **LOCALE}, timeout=TIMEOUT_MS
        )
        yield browser
        browser.close()


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
