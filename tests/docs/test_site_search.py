"""The site's search in a real browser: the page of a task is among the first hits, and shows how it is done."""

import html
import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

FIRST = 3
WAIT_MS = 15_000
TASKS = {
    "paginate": ("lists.html", "children(first: 3)"),
    "sort by population": ("lists.html", "orderBy: [{field: POPULATION, direction: DESC}"),
    "filter": ("lists.html", "where: {"),
    "deploy on AWS": ("deploy.html", "aws cloudformation deploy"),
    "lambda": ("deploy.html", "deploy/lambda/template.yaml"),
    "terraform": ("dynamodb.html", "clade table template --format terraform"),
    "back up": ("backup.html", "clade backup backup.db"),
    "translate names": ("languages.html", 'names: [{ language: "de"'),
    "import csv": ("importing.html", "clade import location stores.csv"),
    "from my table": ("from-your-table.html", "--describe"),
    "rename a level": ("changing-a-hierarchy.html", 'was="Town"'),
    "move a subtree": ("writing.html", "moveLocation("),
    "who may see what": ("rights.html", "clade key create"),
    "api key": ("rights.html", "clade key create"),
    "cache": ("caching.html", "CLADE_MAX_AGE_SECONDS=60 clade serve"),
    "federation": ("federation.html", "clade schema --federation"),
    "type-ahead": ("type-ahead.html", "searchLocations("),
    "near me": ("find-nodes.html", "locationsNear("),
    "subscribe to changes": ("following-changes.html", "subscription {"),
    "BUDGET_EXCEEDED": ("querying.html", "first: 100"),
    "codegen": ("frontends.html", "typescript-operations"),
    "draft": ("publishing.html", "moveCategoryNode("),
    "i18n": ("languages.html", "name(languages:"),
    "hasura": ("compare.html", "PostGraphile"),
}
"""What is typed: the page that has to be among the first hits, and what it shows."""


@pytest.fixture(scope="module")
def hits(address: str) -> dict[str, list[str]]:
    """The pages of the first hits of each search, in their order."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium is missing")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        page = browser.new_page()
        page.set_default_timeout(WAIT_MS)
        requested: list[str] = []
        page.on("request", lambda request: requested.append(request.url))
        page.goto(f"{address}/index.html")
        page.locator(".md-search__button").click()
        found = {typed: first_hits(page, typed) for typed in TASKS}
        browser.close()
    assert all(url.startswith((address, "data:", "blob:")) for url in requested)
    return found


def first_hits(page: Page, typed: str) -> list[str]:
    box, options = page.get_by_role("combobox", name="Search"), page.get_by_role("option")
    box.fill("")
    expect(options).to_have_count(0)  # those of the text before
    box.fill(typed)
    options.first.wait_for()
    return [re.sub(r"^.*?//[^/]*/|[?#].*$", "", str(link.get_attribute("href"))) for link in options.all()[:FIRST]]


@pytest.mark.thorough
@pytest.mark.parametrize("typed", TASKS)
def test_the_page_of_a_task_is_among_the_first_hits(typed: str, hits: dict[str, list[str]], site: Path) -> None:
    name, shown = TASKS[typed]
    assert name in hits[typed]
    text = re.sub(r"<[^>]+>", "", (site / name).read_text("utf-8"))
    assert shown in html.unescape(text)
