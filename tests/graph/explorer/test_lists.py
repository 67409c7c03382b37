"""Explorer's lists: filtered, with chosen columns, selected, exported, and all of it in the address."""

import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from playwright.sync_api import expect

from clade import Settings, create_app
from graph.hierarchies.locations import Location
from tests.graph.explorer.data import planted
from tests.graph.explorer.steps import DEVICES, cost, heading
from tests.graph.explorer.test_explorer import violations
from tests.serving import serving

CITIES, FORMULA = 250, '=1+"1"'


@pytest.fixture
def url(tmp_path):
    """A server that takes writes: two states, of which one has many cities, and some of these have shops."""
    cities = [
        (["US", "NE", f"C{number:03}"], "CITY", f"City {number}", {"population": 1000 * number})
        for number in range(CITIES)
    ]
    rows = [
        (["US"], "COUNTRY", "United States"),
        (["US", "NE"], "STATE", "Nebraska"),
        (["US", "IA"], "STATE", "Iowa"),
        *cities,
    ]
    shop = (["US", "NE", "C001", "Shop"], "STORE", FORMULA, {"brand": "A, B"})
    store = planted(tmp_path / "clade.db", Location, [*rows, shop])
    with serving(create_app(Settings(store=store, writes="on"))) as address:
        yield address


def asked(url, document, **variables):
    answer = httpx.post(f"{url}/graphql", json={"query": document, "variables": variables}).json()
    assert "errors" not in answer, answer
    return answer["data"]


def names(page):
    return page.get_by_role("region", name="Children").locator("tbody a")


def condition(page, field, operator, value):
    """Fill in the condition at the end of the row."""
    new = page.get_by_role("group", name="New condition")
    new.get_by_label("Value of").select_option(field)
    page.get_by_role("group", name="New condition").get_by_label("Comparison").select_option(operator)
    page.get_by_role("group", name="New condition").get_by_label("Compared with").fill(value)
    page.keyboard.press("Enter")


def total(page):
    return page.locator(".list .total")


# -- conditions --------------------------------------------------------------------------------------------------------


def test_a_list_is_filtered_by_conditions_of_its_attributes_and_the_address_has_them(url, visit):
    page = visit(url, "#location/US/NE")
    expect(total(page)).to_have_text("250")
    page.get_by_role("button", name="Filter").click()
    condition(page, "Population", "is at least", "100000")
    expect(total(page)).to_have_text("150")
    condition(page, "Name", "contains", "9")
    expect(total(page)).to_have_text("24")
    page.get_by_role("columnheader", name="Population").get_by_role("button").click()
    page.get_by_role("columnheader", name="Population").get_by_role("button").click()
    expect(names(page).first).to_have_text("City 249")
    expect(cost(page)).to_have_text(re.compile("^1 query"))
    address = page.url
    assert address.endswith("?population.gte=100000&name.contains=9&sort=-POPULATION")

    other = visit(url, address.removeprefix(f"{url}/"))
    expect(total(other)).to_have_text("24")
    expect(names(other).first).to_have_text("City 249")
    other.close()
    page.reload()
    expect(names(page).first).to_have_text("City 249")
    page.get_by_role("link", name="City 249").click()
    expect(heading(page)).to_have_text("City 249")
    page.go_back()
    expect(total(page)).to_have_text("24")
    expect(names(page).first).to_have_text("City 249")
    page.get_by_role("group", name="Population").get_by_role("button", name="Remove").click()
    expect(total(page)).to_have_text("43")
    page.go_back()
    expect(total(page)).to_have_text("24")


def test_a_condition_is_changed_in_its_place(url, visit):
    page = visit(url, "#location/US/NE?name.contains=9")
    expect(total(page)).to_have_text("43")
    first = page.get_by_role("group", name="Name contains 9")
    first.get_by_label("Value of").select_option("Population")
    comparison = page.locator(".condition").first.get_by_label("Comparison")
    expect(comparison).to_have_value("gte")
    comparison.select_option("is less than")
    page.locator(".condition").first.get_by_label("Compared with").fill("5000")
    page.keyboard.press("Enter")
    expect(total(page)).to_have_text("5")
    expect(page.locator(".condition")).to_have_count(2)
    page.locator(".condition").first.get_by_label("Comparison").select_option("is empty")
    expect(page.locator(".list")).to_contain_text("None of them meets these conditions.")
    page.go_back()
    expect(total(page)).to_have_text("5")
    page.locator(".condition").first.get_by_label("Compared with").fill("")
    page.keyboard.press("Enter")
    expect(total(page)).to_have_text("250")


def test_descendants_are_listed_by_level(url, visit):
    page = visit(url, "#location/US")
    page.get_by_role("button", name="Filter").click()
    page.get_by_label("Which nodes").select_option("All descendants")
    page.get_by_label("Level", exact=True).select_option("store")
    expect(total(page)).to_have_text("1")
    expect(names(page)).to_have_text([FORMULA])
    assert page.url.endswith("#location/US?level=STORE&below=1")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("population.gte=many", "Population: “many” is no whole number."),
        ("planet.eq=Mars", "planet"),
        ("name.contains=nowhere", "None of them meets these conditions."),
    ],
)
def test_what_no_node_meets_and_what_is_no_condition_is_said(url, visit, query, said):
    visit.expected.append("Failed to load resource")
    page = visit(url, f"#location/US/NE?{query}")
    expect(page.locator(".list")).to_contain_text(said)
    page.locator(".condition button").first.click()
    expect(total(page)).to_have_text("250")


# -- columns, place and export -----------------------------------------------------------------------------------------


def test_columns_are_chosen_and_ordered_in_the_address(url, visit):
    page = visit(url, "#location/US/NE?columns=population,name")
    headers = page.get_by_role("columnheader")
    expect(headers).to_have_text(["Population", "Name"])
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="Path").check()
    expect(headers).to_have_text(["Population", "Name", "Path"])
    page.get_by_role("button", name="Move Path to the left").click()
    expect(headers).to_have_text(["Population", "Path", "Name"])
    page.reload()
    expect(headers).to_have_text(["Population", "Path", "Name"])
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("button", name="Usual columns").click()
    expect(headers.first).to_have_text("Name")


def test_back_and_reload_lead_to_the_place_in_the_list(url, visit):
    page = visit(url, "#location/US/NE")
    table = page.get_by_role("region", name="Children")
    expect(names(page).first).to_be_visible()
    for _ in range(2):
        table.evaluate("element => element.scrollTo(0, element.scrollHeight)")
        page.wait_for_timeout(400)
    table.evaluate("element => element.scrollTo(0, 7000)")
    link = table.get_by_role("link", name="City 200")
    expect(link).to_be_visible()
    page.wait_for_timeout(300)
    link.click()
    expect(heading(page)).to_have_text("City 200")
    page.go_back()
    expect(heading(page)).to_have_text("Nebraska")
    expect(table.get_by_role("link", name="City 200")).to_be_in_viewport()
    page.reload()
    expect(table.get_by_role("link", name="City 200")).to_be_in_viewport()


def test_the_page_stays_where_it_is_when_a_list_changes(url, visit):
    page = visit(url, "#location/US/NE")
    content, table = page.locator(".content"), page.get_by_role("region", name="Children")
    expect(names(page).first).to_be_visible()
    content.evaluate("element => element.scrollTo(0, 150)")
    table.evaluate("element => element.scrollTo(0, 1000)")
    page.wait_for_timeout(300)
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="Path").check()
    expect(page.get_by_role("columnheader", name="Path")).to_be_visible()
    assert table.evaluate("element => element.scrollTop") == 1000
    place = content.evaluate("element => element.scrollTop")
    assert place > 0
    page.get_by_role("columnheader", name="Name").get_by_role("button").click()
    expect(page.get_by_role("columnheader", name="Name")).to_have_attribute("aria-sort", "ascending")
    expect(page.locator(".list tbody.former")).to_have_count(0)
    assert content.evaluate("element => element.scrollTop") == place
    assert table.evaluate("element => element.scrollTop") == 0


def test_what_is_shown_is_exported_to_the_last_node(url, visit):
    page = visit(url, "#location/US/NE?population.gte=10000&columns=name,population&sort=-POPULATION")
    expect(names(page).first).to_be_visible()
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    lines = Path(download.value.path()).read_text().split("\n")
    assert lines[:2] == ["name,population", "City 249,249000"]
    assert len(lines) == 1 + 240 + 1
    with page.expect_download() as download:
        page.get_by_role("button", name="JSON lines").click()
    rows = [json.loads(one) for one in Path(download.value.path()).read_text().splitlines()]
    assert rows[-1] == {"name": "City 10", "population": 10000}
    expect(page.locator(".list .panel [role=status]")).to_have_text("240 written.")


def test_the_query_of_a_list_is_linked(url, visit):
    page = visit(url, "#location/US/NE?population.gte=10000")
    link = page.get_by_role("link", name="Query")
    given = parse_qs(urlsplit(link.get_attribute("href")).fragment)
    answer = httpx.post(
        f"{url}/graphql", json={"query": given["query"][0], "variables": json.loads(given["variables"][0])}
    )
    assert answer.json()["data"]["node"]["children"]["totalCount"] == 240


# -- selection ---------------------------------------------------------------------------------------------------------

POPULATIONS = '{ state(path: "US/NE") { children(first: 4) { nodes { key population } } } }'


def test_several_nodes_change_together_or_not_at_all(url, visit):
    page = visit(url, "#location/US/NE")
    dialog = page.get_by_role("dialog")
    page.get_by_role("checkbox", name="Select City 0", exact=True).click()
    page.get_by_role("checkbox", name="Select City 2", exact=True).click(modifiers=["Shift"])
    selected = page.get_by_role("group", name="Selected nodes")
    expect(selected).to_contain_text("3 nodes selected")
    selected.get_by_role("button", name="Change a value").click()
    dialog.get_by_label("Attribute").select_option("Population")
    dialog.get_by_label("Population").fill("7")
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.locator(".write-plan")).to_contain_text("3 nodes in 1 transaction")
    dialog.get_by_role("button", name="Write", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(selected).to_have_count(0)
    nodes = asked(url, POPULATIONS)["state"]["children"]["nodes"]
    assert [one["population"] for one in nodes] == [7, 7, 7, 3000]
    expect(page.get_by_role("row", name="City 1 ", exact=False).first).to_contain_text("7")

    page.get_by_role("checkbox", name="Select City 0", exact=True).click()
    page.get_by_role("checkbox", name="Select City 1", exact=True).click()
    selected.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.get_by_role("combobox")).to_have_accessible_description(re.compile("US/NE/C001: .*child"))
    dialog.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Discard").click() if page.get_by_role("alertdialog").count() else None

    selected.get_by_role("button", name="Move").click()
    dialog.get_by_label("New parent").fill("US/IA")
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.locator(".write-plan")).to_contain_text("US/NE/C001 → US/IA/C001")
    dialog.get_by_role("button", name="Move", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(total(page)).to_have_text("248")
    listed = asked(url, '{ state(path: "US/IA") { children { nodes { key } } } }')["state"]["children"]["nodes"]
    assert [one["key"] for one in listed] == ["C000", "C001"]


def test_who_may_not_write_selects_nothing(visit, demo_server):
    page = visit(demo_server, "#location/US/NE")
    expect(names(page).first).to_be_visible()
    expect(page.get_by_role("checkbox")).to_have_count(0)


@pytest.mark.parametrize(
    "device", [pytest.param(one, marks=[] if one == "phone" else pytest.mark.thorough) for one in DEVICES]
)
def test_axe_finds_nothing_in_a_filtered_list_with_its_menus(url, visit, device):
    page = visit(url, "#location/US/NE?population.gte=1000&level=CITY", device)
    expect(names(page).first).to_be_visible()
    page.get_by_role("checkbox", name="Select City 1", exact=True).click()
    assert violations(page) == []
    for name in ("Columns", "Export"):
        page.get_by_role("button", name=name).click()
        expect(page.locator(".list .panel")).to_be_visible()
        assert violations(page) == []
        page.keyboard.press("Escape")
    page.get_by_role("group", name="Selected nodes").get_by_role("button", name="Change a value").click()
    expect(page.get_by_role("dialog").locator("form")).to_be_visible()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == DEVICES[device]["viewport"]["width"]
