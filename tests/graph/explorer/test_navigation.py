"""Explorer between nodes and dialogs: what is shown belongs together, what was typed is kept, and values look alike."""

import re

import httpx
import pytest
from playwright.sync_api import expect

from clade import Settings, create_app
from graph.hierarchies.locations import Location
from tests.classes.shops import Place
from tests.graph.explorer.data import planted
from tests.graph.explorer.steps import heading, line
from tests.graph.explorer.test_explorer import violations
from tests.serving import serving

OMAHA = {"population": 486051, "latitude": 41.26, "longitude": -95.94}
TOWNS = 30
SHOP = {
    "owner": "Ada",
    "opened": "2026-01-02",
    "checked": "2026-01-02T03:04:05Z",
    "rent": {"amount": "12345.50", "currency": "EUR"},
}


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A server that takes writes, of a state with many towns and of a shop."""
    file = tmp_path_factory.mktemp("navigation") / "clade.db"
    state = {"population": 1961504, "latitude": 41.5, "longitude": -99.9}
    towns = [
        (
            ["US", "NE", f"T{number:02}"],
            "CITY",
            f"Town {number}",
            {"population": 100, "latitude": 40.5 + number / 20, "longitude": -97},
        )
        for number in range(TOWNS)
    ]
    rows = [(["US"], "COUNTRY", "United States"), (["US", "NE"], "STATE", "Nebraska", state), *towns]
    planted(file, Location, [*rows, (["US", "NE", "OMA"], "CITY", "Omaha", OMAHA)])
    store = planted(file, Place, [(["Mall"], "MALL"), (["Mall", "Ada"], "SHOP", "Ada's", SHOP)])
    hierarchies = "graph.hierarchies.locations,tests.classes.shops"
    with serving(create_app(Settings(store=store, writes="on", hierarchies=hierarchies))) as address:
        yield address


def written(url, document):
    answer = httpx.post(f"{url}/graphql", json={"query": document}).json()
    assert "errors" not in answer, answer


def edit(page):
    """Open the form of the node, and wait for it."""
    page.get_by_role("button", name="Edit…").click()
    expect(page.get_by_role("dialog").locator("form")).to_be_visible()


# -- dialogs -----------------------------------------------------------------------------------------------------------


def test_the_former_node_cannot_be_changed_while_the_next_one_loads(url, visit):
    page, held = visit(url, "#location/US/NE"), []
    expect(heading(page)).to_have_text("Nebraska")
    page.route(
        "**/graphql", lambda route: held.append(route) if "query Node" in route.request.post_data else route.continue_()
    )
    line(page, "United States").click()
    expect(page.locator("[inert] .write-menu")).to_have_count(1)
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()
    expect(heading(page)).to_have_text("United States")
    expect(page.locator("[inert]")).to_have_count(0)
    page.unroute("**/graphql")


def test_back_closes_a_dialog_unless_something_was_typed(url, visit):
    page = visit(url, "#location/US")
    expect(heading(page)).to_have_text("United States")
    line(page, "Nebraska").click()
    expect(heading(page)).to_have_text("Nebraska")
    edit(page)
    page.go_back()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(heading(page)).to_have_text("United States")
    line(page, "Nebraska").click()
    expect(heading(page)).to_have_text("Nebraska")
    edit(page)
    page.get_by_label("Population", exact=True).fill("7")
    page.go_back()
    expect(page.get_by_role("alertdialog")).to_contain_text("Discard what you typed?")
    expect(page).to_have_url(re.compile("#location/US/NE$"))
    page.get_by_role("button", name="Keep editing").click()
    expect(page.get_by_label("Population", exact=True)).to_have_value("7")
    expect(page.locator("h1")).to_have_text(["Locations", "Nebraska"])


def test_escape_asks_before_it_discards_what_was_typed(url, visit):
    page = visit(url, "#location/US/NE")
    edit(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    edit(page)
    page.get_by_label("Population", exact=True).fill("7")
    for _ in range(3):
        page.keyboard.press("Escape")
    expect(page.get_by_role("alertdialog")).to_be_visible()
    expect(page.get_by_label("Population", exact=True)).to_have_value("7")
    page.get_by_role("button", name="Discard").click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_form_says_what_is_wrong_in_its_own_words(url, visit):
    visit.expected.append("Failed to load resource")
    page = visit(url, "#place/Mall/Ada")
    edit(page)
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Address", exact=True).fill('{"street": "Lane 1", "town": "Omaha"}')
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.locator(".write-error")).to_have_text("There is no “town” here.")
    dialog.get_by_label("Address", exact=True).fill('{"street": "Lane 1", "hours": [{"day": "FUNDAY"}]}')
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.locator(".write-error")).to_have_text("“FUNDAY” is none of the values that are allowed.")


@pytest.mark.thorough
def test_of_the_changes_one_stands_out_and_deletion_is_apart(url, visit):
    page = visit(url, "#location/US/NE")
    menu = page.get_by_role("group", name="Change US/NE")
    expect(menu.locator("button.primary")).to_have_text("Edit…")
    expect(menu.locator("button.danger")).to_have_text("Delete…")
    expect(menu.get_by_role("button").last).to_have_text("Delete…")


def test_a_value_is_edited_in_its_place(url, visit):
    page = visit(url, "#location/US/NE/T03")
    place = page.locator(".attributes > div", has_text="Population")
    place.get_by_role("button", name="Edit Population").click()
    field = page.get_by_label("Population", exact=True)
    expect(field).to_be_focused()
    field.press("Escape")
    expect(place.locator("dd")).to_have_text("100")
    place.get_by_role("button", name="Edit Population").click()
    field.fill("12")
    page.keyboard.press("Enter")
    expect(page.locator(".write-here [role=status]")).to_contain_text("100 → 12, about")
    assert violations(page) == []
    page.keyboard.press("Enter")
    expect(place.locator("dd")).to_have_text("12")
    expect(page.locator(".toast")).to_contain_text("US/NE/T03 is changed.")
    assert violations(page) == []


# -- nodes -------------------------------------------------------------------------------------------------------------


def test_a_node_that_somebody_deletes_says_when_and_comes_back_or_leads_to_its_parent(url, visit):
    written(
        url,
        'mutation { createLocation(input: {parent: {path: "US"}, key: "Gone", name: "G", attributes: { city: {}'
        " }}) { node { id } } }",
    )
    page = visit(url, "#location/US/Gone")
    with page.expect_response(lambda answer: "event-stream" in answer.headers["content-type"]):
        page.reload()
    expect(heading(page)).to_have_text("G")
    written(url, 'mutation { deleteLocation(input: {node: {path: "US/Gone"}}) { node { id } } }')
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text(re.compile(r"US/Gone was deleted.* on \d+ \w+ 20\d\d, \d\d:\d\d\."))
    alert.get_by_role("button", name="Undo").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Create").click()
    expect(heading(page)).to_have_text("G")
    expect(page.locator("dl.facts")).to_contain_text("Revision2")
    written(url, 'mutation { deleteLocation(input: {node: {path: "US/Gone"}}) { node { id } } }')
    alert.get_by_role("link", name="Go to US").click()
    expect(heading(page)).to_have_text("United States")


def test_a_dot_says_whether_changes_of_others_come_at_once(url, visit):
    visit.expected.append("Failed to load resource")
    page = visit(url, "#location/US")
    live = page.locator(".live")
    expect(live).to_have_text("Live")
    streams = []
    page.route(
        "**/graphql",
        lambda route: (
            (streams.append(route), route.abort()) if "subscription" in route.request.post_data else route.continue_()
        ),
    )
    line(page, "United States").click()
    page.get_by_role("link", name="Locations", exact=True).click()
    expect(live).to_have_count(0)
    line(page, "United States").click()
    expect(live).to_have_text("Reconnecting")
    page.unroute("**/graphql")
    expect(live).to_have_text("Live")


@pytest.mark.thorough
def test_values_look_alike_wherever_they_stand(url, visit):
    page = visit(url, "#place/Mall/Ada")
    page.get_by_role("button", name="Show what changed").click()
    expect(page.locator(".history li")).to_have_count(1)
    for text in ("2 Jan 2026, 03:04", "2 Jan 2026", "12,345.50 EUR"):
        expect(page.locator(".attributes dd").get_by_text(text, exact=True)).to_have_count(1)
        expect(page.locator(".history dd").get_by_text(text, exact=True)).to_have_count(1)


@pytest.mark.thorough
def test_attributes_are_apart_from_what_the_server_knows_of_a_node(url, visit):
    page = visit(url, "#location/US/NE")
    expect(page.locator("dl.attributes dt")).to_have_text(["Population", "Latitude", "Longitude"])
    expect(page.locator("dl.facts dt")).to_have_text(["Children", "Descendants", "Revision", "Changed", "ID"])


def test_a_table_shows_the_keys_that_it_is_ordered_by(url, visit):
    page = visit(url, "#location/US/NE")
    column = page.get_by_role("columnheader", name="Key")
    expect(column).to_be_visible()
    expect(page.get_by_role("region", name="Children").get_by_role("row").nth(1)).to_contain_text("OmahaOMA")
    column.get_by_role("button").click()
    expect(column).to_have_attribute("aria-sort", "ascending")


def test_a_line_of_the_tree_is_a_link(url, visit):
    page = visit(url, "#location/US/NE")
    link = line(page, "Omaha").locator("a")
    expect(link).to_have_attribute("href", "#location/US/NE/OMA")
    with page.context.expect_page() as opened:
        link.click(modifiers=["ControlOrMeta"])
    expect(heading(opened.value)).to_have_text("Omaha")
    expect(heading(page)).to_have_text("Nebraska")
    opened.value.close()


# -- the map -----------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_the_map_of_one_place_shows_its_surroundings(url, visit):
    page = visit(url, "#location/US/NE/OMA")
    page.wait_for_selector(".map-land")
    assert float(page.get_attribute("figure.map > svg", "viewBox").split()[2]) <= 20


@pytest.mark.thorough
def test_the_largest_of_many_places_have_labels(url, visit):
    page = visit(url, "#location/US/NE")
    page.wait_for_selector(".map-land")
    labels = page.locator("figure.map text").all_text_contents()
    assert "Omaha" in labels
    assert 1 < len(labels) <= 15
