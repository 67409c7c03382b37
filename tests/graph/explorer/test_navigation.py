"""Explorer between nodes, dialogs and changes: what is shown belongs together, and what was typed is kept."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser import TIMEOUT_MS, wait_until
from tests.graph.explorer.extremes import CHAIN
from tests.graph.explorer.steps import ask, children, go, heading, line, opened, sort, tree

MIN_NAME_PIXELS = 60
TABS = 7  # a browser has six connections to a host
VISIBILITY = """
    let state = "visible";
    Object.defineProperty(Document.prototype, "visibilityState", { get: () => state });
    globalThis.setVisibility = (to) => { state = to; document.dispatchEvent(new Event("visibilitychange")); };
"""

# -- dialogs -----------------------------------------------------------------------------------------------------------


def test_the_former_node_cannot_be_changed_while_the_next_one_loads(url, visit):
    page, held = visit(url, "#location/US/NE"), []
    expect(heading(page)).to_have_text("Nebraska")
    page.route(
        "**/graphql", lambda route: held.append(route) if "query Node" in route.request.post_data else route.continue_()
    )
    line(page, "United States").click()
    expect(page.locator("[inert] .write-menu")).to_have_count(1)
    wait_until(page, lambda: held)
    held[0].continue_()
    expect(heading(page)).to_have_text("United States")
    expect(page.locator("[inert]")).to_have_count(0)
    page.unroute("**/graphql")


def test_back_and_escape_close_a_dialog_but_ask_before_they_discard_what_was_typed(url, visit):
    page = visit(url, "#location/US")
    expect(heading(page)).to_have_text("United States")
    go(page, "Nebraska")
    opened(page, "Edit…")
    page.go_back()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(heading(page)).to_have_text("United States")
    go(page, "Nebraska")
    opened(page, "Edit…")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    opened(page, "Edit…")
    page.get_by_label("Population").fill("7")
    page.go_back()
    expect(page.get_by_role("alertdialog")).to_contain_text("Discard what you typed?")
    expect(page).to_have_url(re.compile("#location/US/NE$"))
    page.get_by_role("button", name="Keep editing").click()
    expect(page.get_by_label("Population")).to_have_value("7")
    expect(page.locator("h1")).to_have_text(["Locations", "Nebraska"])
    for _ in range(3):
        page.keyboard.press("Escape")
    expect(page.get_by_role("alertdialog")).to_be_visible()
    expect(page.get_by_label("Population")).to_have_value("7")
    page.get_by_role("button", name="Discard").click()
    expect(page.get_by_role("dialog")).to_have_count(0)


# -- nodes -------------------------------------------------------------------------------------------------------------


def test_a_node_has_its_attributes_changes_and_keys_in_their_places(url, visit):
    page = visit(url, "#location/US/NE")
    expect(page.locator("dl.attributes dt")).to_have_text(["Population", "Latitude", "Longitude"])
    expect(page.locator("dl.facts dt")).to_have_text(["Children", "Descendants", "Revision", "Changed", "ID"])
    menu = page.get_by_role("group", name="Change US/NE")
    expect(menu.locator("button.primary")).to_have_text("Edit…")
    expect(menu.locator("button.danger")).to_have_text("Delete…")
    expect(menu.get_by_role("button").last).to_have_text("Delete…")
    expect(page.get_by_role("columnheader", name="Key")).to_be_visible()
    expect(children(page).get_by_role("row").nth(1)).to_contain_text("OmahaOMA")
    sort(page, "Key", "ascending")


def test_a_line_of_the_tree_is_a_link(url, visit):
    page = visit(url, "#location/US/NE")
    link = line(page, "Omaha").locator("a")
    expect(link).to_have_attribute("href", "#location/US/NE/OMA")
    with page.context.expect_page() as new:
        link.click(modifiers=["ControlOrMeta"])
    expect(heading(new.value)).to_have_text("Omaha")
    expect(heading(page)).to_have_text("Nebraska")
    new.value.close()


def test_a_link_to_the_deepest_level_takes_one_query_for_the_node_and_one_for_all_above_it(url, visit):
    sent = []

    def note(request):
        if request.method == "POST" and "subscription" not in request.post_data:
            sent.append(json.loads(request.post_data)["query"].split()[1].split("(")[0])

    page = visit(url, "#thing/" + "/".join(CHAIN), prepare=lambda page: page.on("request", note))
    expect(heading(page)).to_have_text(CHAIN[-1])
    expect(line(page, CHAIN[-1])).to_have_attribute("aria-selected", "true")
    beside = f"Beside {len(CHAIN) - 1}"
    expect(line(page, beside)).to_be_visible()
    widths = page.locator(".line .name").evaluate_all("all => all.map(one => one.getBoundingClientRect().width)")
    assert min(widths) > MIN_NAME_PIXELS * 0.6
    assert all(page.locator(".line").evaluate_all("all => all.map(one => one.scrollWidth <= one.clientWidth)"))
    go(page, beside)
    assert sent == ["Hierarchies", "Above", "Node", "Node"]


def test_the_focus_goes_to_what_is_opened_and_stays_where_something_is_closed(url, visit):
    page = visit(url, "#location/US")
    children(page).get_by_role("link", name="Nebraska").press("Enter")
    expect(heading(page)).to_have_text("Nebraska")
    expect(heading(page)).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Edit…")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_label("Population").press_sequentially("7")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Keep editing").press("Enter")
    expect(page.get_by_label("Population")).to_be_focused()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Discard").press("Enter")
    expect(page.get_by_role("button", name="Edit…")).to_be_focused()
    name = page.get_by_role("columnheader", name="Name").get_by_role("button")
    name.press("Enter")
    expect(page.get_by_role("columnheader", name="Name")).to_have_attribute("aria-sort", "ascending")
    expect(name).to_be_focused()
    children(page).get_by_role("link").first.focus()
    children(page).evaluate("element => element.scrollTo(0, element.scrollHeight)")
    expect(children(page)).to_be_focused()  # the row is in the document no more
    page.get_by_role("button", name="Show what changed").press("Enter")
    expect(page.get_by_role("heading", name="History")).to_be_focused()
    page.get_by_role("button", name="Show the query").press("Enter")
    page.get_by_role("region", name="Queries of the last click").focus()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Show the query")).to_be_focused()
    page.go_back()
    expect(heading(page)).to_have_text("United States")
    expect(heading(page)).to_be_focused()
    page.route("**/graphql", lambda route: route.abort())
    visit.expected.append("Failed to load resource")
    page.go_forward()
    expect(page.get_by_role("main").get_by_role("alert")).to_contain_text("cannot be reached")
    page.unroute("**/graphql")
    page.get_by_role("button", name="Try again").press("Enter")
    expect(heading(page)).to_have_text("Nebraska")
    expect(heading(page)).to_be_focused()


# -- changes of others -------------------------------------------------------------------------------------------------


def test_what_others_write_is_shown_as_it_is_written(url, visit, country):
    page = visit(url, f"#location/{country}", is_live=True)
    expect(heading(page)).to_have_text("Country")
    create = """mutation ($path: Path!) { createLocation(input: {parent: {path: $path}, key: "New", name:
      "Brand new", attributes: { state: {} }}) { node { id } } }"""
    ask(url, create, path=country)
    expect(children(page).get_by_role("link", name="Brand new")).to_be_visible()
    go(page, "Brand new")
    page.get_by_role("button", name="Edit…").focus()
    ask(url, f'mutation {{ deleteLocation(input: {{node: {{path: "{country}/New"}}}}) {{ node {{ id }} }} }}')
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text(re.compile(rf"{country}/New was deleted.* on \d+ \w+ 20\d\d, \d\d:\d\d\."))
    expect(line(page, "Brand new")).to_have_count(0)
    expect(page.locator(".content")).to_be_focused()
    alert.get_by_role("link", name=f"Go to {country}").click()
    expect(heading(page)).to_have_text("Country")


def test_a_change_that_is_read_while_another_node_is_opened_does_not_bring_the_former_one_back(url, visit, country):
    page, held, opened = visit(url, f"#location/{country}", is_live=True), [], []
    expect(heading(page)).to_have_text("Country")

    def answer(route):
        if not held:
            return held.append(route)
        if "query Node" in route.request.post_data:
            opened.append(route.request.post_data_json["variables"]["path"])
        return route.continue_()

    page.route("**/graphql", answer)
    ask(
        url,
        f'mutation {{ updateLocation(input: {{node: {{path: "{country}"}}, name: "Changed"}}) {{ node {{ id }} }} }}',
    )
    wait_until(page, lambda: held)
    line(page, "State").click()
    expect(heading(page)).to_have_text("State")
    held[0].continue_()
    wait_until(page, lambda: len(opened) > 1)
    assert {*opened} == {f"{country}/S"}
    expect(page.locator("[inert]")).to_have_count(0)
    page.unroute("**/graphql")


@pytest.mark.thorough
def test_seven_tabs_answer_and_follow_changes_when_they_are_shown_again(url, browser, country):
    context = browser.new_context()
    context.add_init_script(VISIBILITY)
    pages = []
    for _ in range(TABS):
        if pages:
            pages[-1].evaluate("setVisibility('hidden')")
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(f"{url}/#location/{country}")
        expect(heading(page)).to_have_text("Country")
        pages.append(page)
    rename = (
        "mutation ($path: Path!, $name: String!) { updateLocation(input: {node: {path: $path}, "
        "name: $name}) { node { id } } }"
    )
    for number, page in enumerate(pages):
        pages[number - 1].evaluate("setVisibility('hidden')")
        ask(url, rename, path=country, name=f"Name {number}")
        page.evaluate("setVisibility('visible')")
        expect(heading(page)).to_have_text(f"Name {number}")
        expect(line(page, f"Name {number}")).to_be_visible()
    context.close()


# -- answers with errors -----------------------------------------------------------------------------------------------


def without_population(route):
    """The answer of the server, in which the populations are missing because of an error."""
    answer = route.fetch()
    body, places = answer.json(), []

    def clear(value, path):
        if isinstance(value, dict) and value.get("population") is not None:
            value["population"] = None
            places.append([*path, "population"])
        for key, part in (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        ):
            clear(part, [*path, key])

    clear(body.get("data"), [])
    if places:
        body["errors"] = [{"message": "A population cannot be represented.", "path": path} for path in places]
    route.fulfill(response=answer, body=json.dumps(body))


def test_what_could_not_be_read_is_neither_edited_nor_restored(url, visit, country):
    change = "attributes: { state: { population: 6 } }"
    ask(url, f'mutation {{ updateLocation(input: {{node: {{path: "{country}/S"}}, {change}}}) {{ node {{ id }} }} }}')
    page = visit(url, f"#location/{country}/S")
    expect(heading(page)).to_have_text("State")
    page.route("**/graphql", without_population)
    page.get_by_role("button", name="Show what changed").click()
    expect(page.locator(".history").get_by_role("alert")).to_contain_text("A population cannot be represented.")
    expect(page.get_by_role("button", name="Restore")).to_have_count(0)
    page.get_by_role("button", name="Edit…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("alert")).to_contain_text("A population cannot be represented.")
    expect(dialog.get_by_role("textbox")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="Country").click()
    expect(heading(page)).to_have_text("Country")
    expect(children(page).get_by_role("alert")).to_contain_text("A population cannot be represented.")
    page.unroute("**/graphql")
    children(page).get_by_role("button", name="Try again").click()
    expect(children(page).get_by_role("alert")).to_have_count(0)


def test_what_is_shown_stays_when_it_cannot_be_read_again(url, visit):
    page = visit(url, "#location/US/NE", is_live=True)
    expect(children(page).get_by_role("link", name="Omaha")).to_be_visible()
    page.route("**/graphql", without_population)
    ask(
        url,
        'mutation { updateLocation(input: {node: {path: "US/NE/T29"}, attributes: { city: { '
        "population: 9 } }}) { node { id } } }",
    )
    expect(page.get_by_role("main").get_by_role("alert").first).to_contain_text("A population cannot be represented.")
    expect(heading(page)).to_have_text("Nebraska")
    expect(children(page).get_by_role("link", name="Omaha")).to_be_visible()
    expect(tree(page).get_by_role("treeitem", name="Omaha")).to_be_visible()
    page.unroute("**/graphql")
    children(page).get_by_role("button", name="Try again").click()
    expect(children(page).get_by_role("alert")).to_have_count(0)
