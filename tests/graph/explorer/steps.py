"""Steps of tests of the explorer: stores and servers for them, and what a user looks at and does."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from playwright.sync_api import Page, expect

from graph.hierarchies.node import Node
from store.connect import open_store
from store.engine import ReadUsage
from store.model.keys import node_key
from store.model.records import Put
from tests.clients.programs import PROGRAMS
from tests.systems.asking import plant

SECRET = "a secret of the tests with 32 bytes or more"
NONE = "There are none that you may read."
EVIL = '<img src=x onerror="window.evil = true">'
AXE = PROGRAMS.parent / "axe-core" / "axe.min.js"
DEVICES = {
    "light": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "color_scheme": "light", "has_touch": True},
}


# -- servers -----------------------------------------------------------------------------------------------------------


def planted(
    store: Path | str,
    hierarchy: type[Node],
    rows: Sequence[tuple[Any, ...]],
    stored: Mapping[tuple[str, ...], Any] | None = None,
) -> str:
    """The URL of a store, or of a new file, with these nodes: path, level, and perhaps name and attributes.

    `stored` are attributes by path that no rule allows any more.
    """
    url = store if isinstance(store, str) else f"sqlite:///{store}"

    async def fill() -> None:
        async with open_store(url) as opened:
            await opened.create()
            await plant(opened, hierarchy, rows)
            for path, values in (stored or {}).items():
                (item,) = await opened.get([node_key(hierarchy.name, path)], ReadUsage())
                await opened.commit([Put({**item, **values})])

    with ThreadPoolExecutor() as threads:  # the event loop of the browser is in the thread of the tests
        threads.submit(asyncio.run, fill()).result()
    return url


def token(*grants: str) -> str:
    """A token that a server with SECRET accepts."""
    return jwt.encode({"sub": "somebody", "exp": int(time.time()) + 600, "grants": grants}, SECRET, "HS256")


def ask(url: str, document: str, **variables: object) -> dict[str, Any]:
    """The data of a response without errors, as another client gets it."""
    answer = httpx.post(f"{url}/graphql", json={"query": document, "variables": variables}).json()
    assert "errors" not in answer, answer
    return answer["data"]


def write(url: str, mutation: str, **given: object) -> None:
    """Another client's mutation, with the fields of its input; `node` and `parent` are paths."""
    by_path = {name: {"path": value} if name in ("node", "parent") else value for name, value in given.items()}
    kind = f"{mutation[0].upper()}{mutation[1:]}Input"
    ask(url, f"mutation ($input: {kind}!) {{ {mutation}(input: $input) {{ node {{ id }} }} }}", input=by_path)


# -- the page ----------------------------------------------------------------------------------------------------------


def tree(page):
    return page.get_by_role("tree")


def line(page, name):
    """The line of a node in the tree."""
    return tree(page).get_by_role("treeitem").filter(has=page.get_by_text(name, exact=True))


def heading(page):
    return page.get_by_role("heading", level=1)


def go(page, name):
    """Open a node by its line in the tree."""
    line(page, name).click()
    expect(heading(page)).to_have_text(name)


def children(page):
    return page.get_by_role("region", name="Children")


def cost(page):
    return page.locator("footer.cost").get_by_role("status")


def sort(page, name, order):
    """Sort the children by a column, whose header says then that it is."""
    column = page.get_by_role("columnheader", name=name)
    column.get_by_role("button").first.click()
    expect(column).to_have_attribute("aria-sort", order)


def expect_no_children(page, said):
    """The children could not be read, which the page says, and not that there are none."""
    expect(children(page).get_by_role("alert")).to_contain_text(said)
    expect(page.get_by_text(NONE)).to_have_count(0)


def use_key(page, text):
    page.get_by_label("API key or token").fill(text)
    page.get_by_role("button", name="Use it").click()


def violations(page, within="body"):
    """What axe finds on a page, or within an element of it, in words; without axe the test is skipped."""
    if not AXE.exists():
        pytest.skip("the packages of tests/package.json are missing")
    if not page.evaluate("'axe' in globalThis"):
        page.evaluate(AXE.read_text())
    options = "{resultTypes: ['violations'], preload: false}"
    found = page.evaluate(f"axe.run('{within}', {options}).then((result) => result.violations)")
    return [f"{one['id']}: {[node['html'][:200] for node in one['nodes'][:3]]}" for one in found]


# -- dialogs -----------------------------------------------------------------------------------------------------------


def opened(page: Page, button: str) -> None:
    """Open a dialog, and wait for its form."""
    page.get_by_role("button", name=button).click()
    page.wait_for_selector("dialog form")


def press(page: Page, button: str) -> None:
    page.get_by_role("dialog").get_by_role("button", name=button, exact=True).click()


def fill(page: Page, **texts: str) -> None:
    """Fill in fields by their labels, in which `_` is a space."""
    for label, text in texts.items():
        page.get_by_label(label.replace("_", " "), exact=True).fill(text)


def discard(page: Page) -> None:
    """Close a dialog in which something was typed."""
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Discard").click()


def plan(page: Page) -> str:
    """The text of the dry run, when it is there."""
    page.wait_for_selector(".write-plan")
    return page.inner_text(".write-plan")


def preview(page: Page) -> str:
    """The text of the dry run that a dialog asks for."""
    press(page, "Preview")
    return plan(page)


def restore(page: Page, number: int = 1) -> str:
    """Begin to restore a revision; the text of the dry run."""
    page.get_by_role("button", name=f"Restore revision {number}", exact=True).click()
    return plan(page)


def expect_at(page: Page, path: str) -> None:
    """No dialog is open, and the page shows the node at this path."""
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("main code.path")).to_have_text(path)
