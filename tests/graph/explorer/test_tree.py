"""Explorer's tree: its width, deep levels, letters, and drops between its lines."""

import httpx
import pytest
from playwright.sync_api import expect

from clade import Settings, create_app
from graph.hierarchies.categories import CategoryNode
from tests.graph.explorer.data import planted
from tests.graph.explorer.steps import heading, line, tree
from tests.serving import serving

LEVELS = 32
CHAIN = [f"Level {number}" for number in range(LEVELS)]
NAMES = ("Alba", "Alma", "Alto", "Beta")


@pytest.fixture
def url(tmp_path):
    """A server that takes writes: a chain of categories, and some beside each other."""
    chain = [(CHAIN[: number + 1], "CATEGORY") for number in range(LEVELS)]
    rows = [*chain, *((["Short", name], "CATEGORY") for name in NAMES), (["Short"], "CATEGORY")]
    store = planted(tmp_path / "clade.db", CategoryNode, rows)
    with serving(create_app(Settings(store=store, writes="on"))) as address:
        yield address


def test_the_edge_of_the_tree_is_moved_by_mouse_and_keys(url, visit):
    page = visit(url, "#category/Short")
    side, edge = page.locator(".side"), page.get_by_role("separator", name="Width of the tree")
    before = side.bounding_box()["width"]
    edge.focus()
    page.keyboard.press("ArrowRight")
    expect(edge).to_have_attribute("aria-valuenow", str(round(before) + 24))
    page.wait_for_timeout(100)
    assert side.bounding_box()["width"] == before + 24
    box = edge.bounding_box()
    page.mouse.move(box["x"] + 4, 400)
    page.mouse.down()
    page.mouse.move(500, 400)
    page.mouse.up()
    expect(edge).to_have_attribute("aria-valuenow", "500")
    assert abs(side.bounding_box()["width"] - 500) <= 1


def test_a_deep_tree_begins_below_an_ancestor_and_leads_up_and_down(url, visit):
    page = visit(url, "#category/" + "/".join(CHAIN))
    expect(line(page, CHAIN[-1])).to_have_attribute("aria-selected", "true")
    expect(line(page, CHAIN[0])).to_have_count(0)
    lefts = tree(page).locator(".line").evaluate_all("all => all.map(one => parseFloat(one.style.paddingLeft))")
    assert max(lefts) <= 8 + 14 * 10
    up = tree(page).get_by_role("treeitem", name="Show what is above")
    while up.count():
        up.click()
        page.wait_for_timeout(100)
    expect(line(page, CHAIN[0])).to_be_visible()
    expect(line(page, CHAIN[-1])).to_have_count(0)
    tree(page).get_by_role("treeitem", name="Show what is deeper").click()
    expect(line(page, CHAIN[9])).to_be_visible()
    expect(line(page, CHAIN[12])).to_be_visible()
    page.get_by_role("button", name="Collapse all").click()
    expect(tree(page).locator(".name")).to_have_text(["Level 0", "Short"])


def test_letters_add_up(url, visit):
    page = visit(url, "#category/Short/Beta")
    expect(line(page, "Alto")).to_be_visible()
    tree(page).focus()
    page.keyboard.type("alt")
    expect(page.locator(".line.active .name")).to_have_text("Alto")
    page.wait_for_timeout(800)
    page.keyboard.type("a")
    expect(page.locator(".line.active .name")).to_have_text("Alba")


def test_a_drop_between_lines_is_one_move_with_its_position(url, visit):
    page = visit(url, "#category/Short")
    expect(line(page, "Beta")).to_be_visible()
    line(page, "Beta").drag_to(line(page, "Alba"), target_position={"x": 60, "y": 3})
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".write-plan")).to_contain_text("Short/Beta → Short/Beta, before Short/Alba")
    dialog.get_by_role("button", name="Move", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(heading(page)).to_have_text("Beta")
    document = '{ category(path: "Short") { children { nodes { key } } } }'
    nodes = httpx.post(f"{url}/graphql", json={"query": document}).json()["data"]["category"]["children"]["nodes"]
    assert [one["key"] for one in nodes] == ["Beta", "Alba", "Alma", "Alto"]
