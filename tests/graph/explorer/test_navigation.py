"""Explorer between nodes, dialogs and changes: what is shown belongs together, and what was typed is kept."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser import TIMEOUT_MS, wait_until
from tests.graph.explorer.steps import children, go, heading, line, opened, write

TABS = 7  # a browser has six connections to a host
VISIBILITY = """
    let state = "visible";
    Object.defineProperty(Document.prototype, "visibilityState", { get: () => state });
    globalThis.setVisibility = (to) => { state = to; document.dispatchEvent(new Event("visibilitychange")); };
"""

# -- dialogs -----------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_dialogs_close_but_ask_before_they_discard_and_the_focus_goes_to_what_is_opened_and_stays_where_one_closes(
    url, visit
):
    page = visit(url, "#location/US")
    children(page).get_by_role("link", name="Nebraska").press("Enter")
    expect(heading(page)).to_have_text("Nebraska")
    expect(heading(page)).to_be_focused()
    page.keyboard.press("Tab")
    edit, population = page.get_by_role("button", name="Edit…"), page.get_by_role("textbox", name="Population")
    expect(edit).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog form")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    opened(page, "Edit…")
    page.go_back()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(heading(page)).to_have_text("United States")
    page.go_forward()
    expect(heading(page)).to_have_text("Nebraska")
    opened(page, "Edit…")
    population.fill("7")
    page.go_back()
    expect(page.get_by_role("alertdialog")).to_contain_text("Discard what you typed?")
    expect(page).to_have_url(re.compile("#location/US/NE$"))
    page.get_by_role("button", name="Keep editing").press("Enter")
    expect(population).to_be_focused()
    expect(population).to_have_value("7")
    expect(page.locator("h1")).to_have_text(["Locations", "Nebraska"])
    for _ in range(3):
        page.keyboard.press("Escape")
    expect(page.get_by_role("alertdialog")).to_be_visible()
    expect(population).to_have_value("7")
    page.get_by_role("button", name="Discard").press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(edit).to_be_focused()


@pytest.mark.thorough
def test_the_focus_stays_in_its_part_and_the_former_node_cannot_be_changed_while_the_next_one_loads(url, visit):
    page, held = visit(url, "#location/US"), []
    go(page, "Nebraska")
    name = page.get_by_role("columnheader", name="Name").get_by_role("button")
    name.press("Enter")
    expect(page.get_by_role("columnheader", name="Name")).to_have_attribute("aria-sort", "ascending")
    expect(name).to_be_focused()
    expect(children(page)).to_have_attribute("aria-busy", "false")  # until then the rows are those of the former order
    children(page).get_by_role("link").first.focus()
    children(page).evaluate("element => element.scrollTo(0, element.scrollHeight)")
    expect(children(page)).to_be_focused()  # the row is in the document no more
    page.get_by_role("button", name="Show what changed").press("Enter")
    expect(page.get_by_role("heading", name="History")).to_be_focused()
    page.get_by_role("button", name="Show the query").press("Enter")
    page.get_by_role("region", name="Queries of the last click").focus()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Show the query")).to_be_focused()
    page.route(
        "**/graphql", lambda route: held.append(route) if "query Node" in route.request.post_data else route.continue_()
    )
    page.go_back()
    expect(page.locator("[inert] .write-menu")).to_have_count(1)
    wait_until(page, lambda: held)
    held[0].continue_()
    expect(heading(page)).to_have_text("United States")
    expect(page.locator("[inert]")).to_have_count(0)
    expect(heading(page)).to_be_focused()
    page.unroute("**/graphql")
    page.route("**/graphql", lambda route: route.abort())
    visit.expected.append("Failed to load resource")
    page.go_forward()
    alert = page.get_by_role("main").get_by_role("alert")
    expect(alert).to_contain_text("cannot be reached")
    page.unroute("**/graphql")
    page.route(  # or what follows changes might find the server, and load the node, before the button is pressed
        "**/graphql",
        lambda route: route.abort() if "subscription" in (route.request.post_data or "") else route.continue_(),
    )
    alert.get_by_role("button", name="Try again").press("Enter")
    expect(heading(page)).to_have_text("Nebraska")
    expect(heading(page)).to_be_focused()


# -- changes of others -------------------------------------------------------------------------------------------------


def test_what_others_write_is_shown_as_it_is_written_and_does_not_bring_back_a_node_that_was_left(url, visit, country):
    page, held, asked = visit(url, f"#location/{country}", is_live=True), [], []
    expect(heading(page)).to_have_text("Country")
    write(url, "createLocation", parent=country, key="New", name="Brand new", attributes={"state": {}})
    expect(children(page).get_by_role("link", name="Brand new")).to_be_visible()
    go(page, "Brand new")
    page.get_by_role("button", name="Edit…").focus()
    write(url, "deleteLocation", node=f"{country}/New")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text(re.compile(rf"{country}/New was deleted.* on \d+ \w+ 20\d\d, \d\d:\d\d\."))
    expect(line(page, "Brand new")).to_have_count(0)
    expect(page.locator(".content")).to_be_focused()
    alert.get_by_role("link", name=f"Go to {country}").click()
    expect(heading(page)).to_have_text("Country")

    def answer(route):
        if not held:
            return held.append(route)
        if "query Node" in route.request.post_data:
            asked.append(route.request.post_data_json["variables"]["path"])
        return route.continue_()

    page.route("**/graphql", answer)
    write(url, "updateLocation", node=country, name="Changed")
    wait_until(page, lambda: held)
    line(page, "State").click()
    expect(heading(page)).to_have_text("State")
    held[0].continue_()
    wait_until(page, lambda: len(asked) > 1)
    assert {*asked} == {f"{country}/S"}
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
    for number, page in enumerate(pages):
        pages[number - 1].evaluate("setVisibility('hidden')")
        write(url, "updateLocation", node=country, name=f"Name {number}")
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


@pytest.mark.thorough
def test_what_could_not_be_read_is_neither_edited_nor_restored_and_what_is_shown_stays(url, visit, country):
    write(url, "updateLocation", node=f"{country}/S", attributes={"state": {"population": 6}})
    page = visit(url, f"#location/{country}/S", is_live=True)
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
    page.unroute_all(behavior="wait")  # for what the server has not answered yet
    children(page).get_by_role("button", name="Try again").click()
    expect(children(page).get_by_role("alert")).to_have_count(0)
    page.route("**/graphql", without_population)
    write(url, "updateLocation", node=f"{country}/S", attributes={"state": {"population": 9}})
    expect(page.get_by_role("main").get_by_role("alert").first).to_contain_text("A population cannot be represented.")
    expect(heading(page)).to_have_text("Country")
    expect(children(page).get_by_role("link", name="State")).to_be_visible()
    expect(line(page, "State")).to_be_visible()
    page.unroute_all(behavior="wait")
    children(page).get_by_role("button", name="Try again").click()
    expect(children(page).get_by_role("alert")).to_have_count(0)
