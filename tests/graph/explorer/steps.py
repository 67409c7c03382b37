"""Steps of tests of the explorer's page: what a user looks at and does."""

import pytest

from tests.clients.programs import PROGRAMS

AXE = PROGRAMS.parent / "axe-core" / "axe.min.js"
DEVICES = {
    "light": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "color_scheme": "light", "has_touch": True},
}


def tree(page):
    return page.get_by_role("tree")


def line(page, name):
    """The line of a node in the tree."""
    return tree(page).get_by_role("treeitem").filter(has=page.get_by_text(name, exact=True))


def heading(page):
    return page.get_by_role("heading", level=1)


def cost(page):
    return page.locator("footer.cost").get_by_role("status")


def use_key(page, text):
    page.get_by_label("API key or token").fill(text)
    page.get_by_role("button", name="Use it").click()


def violations(page):
    """What axe finds on a page, in words; without axe the test is skipped."""
    if not AXE.exists():
        pytest.skip("the packages of tests/package.json are missing")
    if not page.evaluate("'axe' in globalThis"):
        page.evaluate(AXE.read_text())
    options = "{resultTypes: ['violations'], preload: false}"
    found = page.evaluate(f"axe.run(document, {options}).then((result) => result.violations)")
    return [f"{one['id']}: {[node['html'][:200] for node in one['nodes'][:3]]}" for one in found]
