"""Explorer over extreme data: integers past 2^53, 32 levels, more children than are sorted, and many tabs."""

import json
import re

import httpx
import pytest
from playwright.sync_api import expect

from clade import Settings, create_app
from graph.hierarchies.categories import CategoryNode
from tests.graph.explorer.data import planted
from tests.graph.explorer.extremes import BEYOND_DOUBLES, LEAST, MOST, Thing
from tests.graph.explorer.steps import heading, line
from tests.serving import serving

CHILDREN, LEVELS = 10_001, 32
MIN_NAME_PIXELS = 60
TABS = 7  # a browser has six connections to a host
NUMBERS = {
    "serial": BEYOND_DOUBLES,
    "serials": [LEAST, MOST],
    "count": {"number": BEYOND_DOUBLES, "numbers": [LEAST, MOST]},
}
CHAIN = [f"Level {number}" for number in range(LEVELS)]
VISIBILITY = """
    let state = "visible";
    Object.defineProperty(Document.prototype, "visibilityState", { get: () => state });
    globalThis.setVisibility = (to) => { state = to; document.dispatchEvent(new Event("visibilitychange")); };
"""
WRITE = """mutation ($path: Path!, $serial: Long, $serials: [Long!], $number: Long) {
  updateThing(input: {node: {path: $path}, attributes: { part: {
    serial: $serial, serials: $serials, count: { number: $number, numbers: $serials } } }}) { node { revision } } }"""
READ = "query ($path: Path!) { part(path: $path) { serial serials count { number numbers } } }"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A server that takes writes."""
    folder = tmp_path_factory.mktemp("extremes")
    rows = [(["All"], "CATEGORY"), *((["All", f"Number {number:05}"], "CATEGORY") for number in range(CHILDREN))]
    store = planted(folder / "clade.db", CategoryNode, rows)
    chain = [(CHAIN[: number + 1], "PART") for number in range(LEVELS)]
    beside = [([*CHAIN[:number], f"Beside {number}"], "PART") for number in range(1, LEVELS)]
    planted(
        folder / "clade.db",
        Thing,
        [*chain, *beside, (["Numbers"], "PART", "Numbers", NUMBERS), (["Copy"], "PART", "Copy", NUMBERS)],
    )
    hierarchies = "graph.hierarchies.categories,tests.graph.explorer.extremes"
    with serving(create_app(Settings(store=store, writes="on", hierarchies=hierarchies))) as address:
        yield address


def ask(url, document, **variables):
    answer = httpx.post(f"{url}/graphql", json={"query": document, "variables": variables}).json()
    assert "errors" not in answer, answer
    return answer["data"]


def requests_of(page):
    """The documents that a page sends, without its event streams."""
    sent = []

    def note(request):
        if request.method == "POST" and "subscription" not in request.post_data:
            sent.append(json.loads(request.post_data))

    page.on("request", note)
    return sent


# -- integers past 2^53 ------------------------------------------------------------------------------------------------


def test_64_bit_integers_are_shown_and_restored_with_all_digits(url, visit):
    page = visit(url, "#thing/Numbers")
    shown = page.locator(".attributes")
    for text in ("9,007,199,254,740,993", "-9,223,372,036,854,775,808", "9,223,372,036,854,775,807"):
        expect(shown).to_contain_text(text)
    ask(url, WRITE, path="Numbers", serial=1, serials=[2], number=3)
    page.get_by_role("button", name="Show what changed").click()
    page.get_by_role("button", name="Restore revision 1").click()
    plan = page.locator(".write-plan dl")
    expect(plan).to_contain_text("1 → 9,007,199,254,740,993")
    expect(plan).to_contain_text("-9,223,372,036,854,775,808, 9,223,372,036,854,775,807")
    page.get_by_role("dialog").get_by_role("button", name="Write", exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert ask(url, READ, path="Numbers")["part"] == NUMBERS


def test_64_bit_integers_are_edited_and_keep_their_digits_in_a_conflict(url, visit):
    page = visit(url, "#thing/Copy")
    page.get_by_role("button", name="Edit…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Serial", exact=True)).to_have_value(str(BEYOND_DOUBLES))
    dialog.get_by_label("Serial", exact=True).fill(str(MOST + 1))
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.get_by_label("Serial", exact=True)).to_have_accessible_description(re.compile(str(MOST)))
    dialog.get_by_label("Serial", exact=True).fill(str(BEYOND_DOUBLES + 2))
    dialog.get_by_label("Serials", exact=True).fill(f"{LEAST + 1}\n{MOST - 1}")
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.locator(".write-plan dl")).to_contain_text("9,007,199,254,740,993 → 9,007,199,254,740,995")
    ask(url, WRITE, path="Copy", serial=MOST, serials=[LEAST], number=MOST)
    dialog.get_by_role("button", name="Write", exact=True).click()
    row = dialog.locator(".write-conflict tr").filter(has=page.get_by_role("rowheader", name="Serial", exact=True))
    expect(row).to_contain_text("9,007,199,254,740,993 9,223,372,036,854,775,807 9,007,199,254,740,995")
    dialog.get_by_role("button", name="Write mine again").click()
    expect(dialog.locator(".write-plan")).to_be_visible()
    dialog.get_by_role("button", name="Write", exact=True).click()
    expect(dialog).to_have_count(0)
    found = ask(url, READ, path="Copy")["part"]
    assert found["serial"] == BEYOND_DOUBLES + 2
    assert found["serials"] == [LEAST + 1, MOST - 1]
    assert found["count"] == {"number": MOST, "numbers": [LEAST]}


# -- depth -------------------------------------------------------------------------------------------------------------


def test_a_link_to_the_deepest_level_takes_one_query_for_the_node_and_one_for_all_above_it(url, visit):
    sent = []
    page = visit(url, "#thing/" + "/".join(CHAIN), prepare=lambda page: sent.append(requests_of(page)))
    expect(heading(page)).to_have_text(CHAIN[-1])
    expect(line(page, CHAIN[-1])).to_have_attribute("aria-selected", "true")
    expect(line(page, f"Beside {LEVELS - 1}")).to_be_visible()
    page.wait_for_timeout(300)
    assert [one["query"].split()[1].split("(")[0] for one in sent[0]] == ["Hierarchies", "Above", "Node"]


@pytest.mark.parametrize("device", ["light", pytest.param("phone", marks=pytest.mark.thorough)])
def test_names_have_room_at_every_level(url, visit, device):
    page = visit(url, "#thing/" + "/".join(CHAIN), device)
    expect(heading(page)).to_have_text(CHAIN[-1])
    if device == "phone":
        page.get_by_role("button", name="Show the tree").click()
    expect(line(page, CHAIN[-1])).to_be_visible()
    widths = page.locator(".line .name").evaluate_all("all => all.map(one => one.getBoundingClientRect().width)")
    fits = page.locator(".line").evaluate_all("all => all.map(one => one.scrollWidth <= one.clientWidth)")
    assert min(widths) > MIN_NAME_PIXELS * 0.6
    assert all(fits)


# -- long lists --------------------------------------------------------------------------------------------------------


def test_a_list_that_cannot_be_sorted_keeps_its_header_and_says_why(url, visit):
    page = visit(url, "#category/All")
    table = page.get_by_role("region", name="Children")
    expect(table.get_by_role("link", name="Number 00000")).to_be_visible()
    column = page.get_by_role("columnheader", name="Name")
    with page.expect_response("**/graphql") as response:
        column.get_by_role("button").click()
    expect(column).to_have_attribute("aria-sort", "ascending")
    if "errors" in response.value.json():
        expect(table.get_by_role("alert")).to_contain_text("10,001 nodes")
        expect(table.get_by_role("alert").get_by_role("button")).to_have_text("Try again")
    expect(page.get_by_text("There are none that you may read.")).to_have_count(0)
    column.get_by_role("button").click()
    expect(column).to_have_attribute("aria-sort", "descending")
    column.get_by_role("button").click()
    expect(table.get_by_role("link", name="Number 00000")).to_be_visible()


# -- tabs --------------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_seven_tabs_answer_and_follow_changes_when_they_are_shown_again(url, browser):
    context = browser.new_context()
    context.add_init_script(VISIBILITY)
    pages = []
    for _ in range(TABS):
        if pages:
            pages[-1].evaluate("setVisibility('hidden')")
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.goto(f"{url}/#thing/Numbers")
        expect(heading(page)).to_have_text("Numbers")
        pages.append(page)
    for number, page in enumerate(pages):
        name = f"Name {number}"
        pages[number - 1].evaluate("setVisibility('hidden')")
        ask(
            url,
            'mutation ($name: String!) { updateThing(input: {node: {path: "Numbers"}, name: $name})'
            " { node { name } } }",
            name=name,
        )
        page.evaluate("setVisibility('visible')")
        expect(heading(page)).to_have_text(name)
        expect(line(page, name)).to_be_visible()
    context.close()
