"""Steps of the tests of panels: what a user does in a dialog, and what another client does meanwhile."""

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx
from playwright.sync_api import Page, expect

from graph.hierarchies.locations import Location
from store.connect import open_store
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row

SERVED = "graph.hierarchies.locations,tests.classes.shops"
EVIL = '<img src=x onerror="alert(1)">'


def created(store: str, rows: Sequence[tuple[str, str]] = ()) -> str:
    """The URL of a store, with a new table and these paths and levels; made in a thread: the browser's has a loop."""

    async def create() -> None:
        plan = ImportPlan(Location.definition())
        for number, (path, level) in enumerate(rows):
            plan.take(Row(number, tuple(path.split("/")), [Part(level)]))
        async with open_store(store) as opened:
            await opened.create()
            await load(opened, plan, LoadResult())

    with ThreadPoolExecutor() as threads:
        threads.submit(asyncio.run, create()).result()
    return store


def ask(url: str, document: str, **variables: object) -> dict:
    """The data of a response without errors."""
    answer = httpx.post(f"{url}/graphql", json={"query": document, "variables": variables}).json()
    assert "errors" not in answer, answer
    return answer["data"]


def opened(page: Page, button: str) -> None:
    """Open a dialog, and wait for its form."""
    page.get_by_role("button", name=button).click()
    page.wait_for_selector("dialog form")


def press(page: Page, button: str) -> None:
    page.get_by_role("dialog").get_by_role("button", name=button, exact=True).click()


def preview(page: Page) -> str:
    """The text of the dry run."""
    press(page, "Preview")
    page.wait_for_selector(".write-plan")
    return page.inner_text(".write-plan")


def ended(page: Page) -> object:
    """What the panel reported when its dialog closed; the panel shows it."""
    expect(page.get_by_role("dialog")).to_have_count(0)
    return page.evaluate("shown.then(() => reported.at(-1))")


def points(*places: tuple[str, float, float]) -> str:
    listed = [{"path": f"X/{name}", "name": name, "latitude": at, "longitude": on} for name, at, on in places]
    return f"globalThis.points = {json.dumps(listed)};"
