"""Explorer in a real browser: tree, nodes, search, addresses, keys and errors, under its strict policy."""

import re

import pytest
from playwright.sync_api import expect

from clade import Settings, create_app
from graph.hierarchies.locations import Location
from tests.browser import wait_until
from tests.graph.explorer.extremes import CHAIN, MANY
from tests.graph.explorer.steps import (
    DEVICES,
    EVIL,
    NONE,
    SECRET,
    children,
    cost,
    expect_no_children,
    fill,
    go,
    heading,
    line,
    opened,
    planted,
    preview,
    sort,
    token,
    tree,
    use_key,
    violations,
    write,
)  # fmt: skip
from tests.serving import serving

MAX_FIRST_VIEW_BYTES, MAX_FIRST_VIEW_FILES = 100_000, 24
PAGE, ROW_PIXELS, LINE_PIXELS, MIN_NAME_PIXELS = 100, 36, 32, 60


def expect_active(page, name):
    """The tree says that the node of this name is active."""
    line = page.locator(".line.active")
    expect(line.locator(".name")).to_have_text(name)
    expect(tree(page)).to_have_attribute("aria-activedescendant", line.get_attribute("id"))


# -- the first view ----------------------------------------------------------------------------------------------------


def test_the_first_view_is_small_and_its_queries_are_sent_before_the_parts_of_the_page_are_loaded(url, visit):
    late, sent, loaded = [], [], []

    def release():
        if len(sent) == 2 and late:
            loaded.append(late.pop())
            loaded[0].continue_()

    def hold(route):
        late.append(route)
        release()

    def note(request):
        if request.method == "POST":
            sent.append(request)
            release()

    def prepare(page):
        page.route("**/tree.js", hold)
        page.on("request", note)

    page = visit(url, "#location", prepare=prepare)
    expect(line(page, "Andorra")).to_be_visible()
    assert loaded
    files = page.evaluate(
        "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
        ".map((one) => [one.name, one.encodedBodySize])"
    )
    assert sum(name.endswith("/graphql") for name, _ in files) == 2
    assert 10 < len(files) <= MAX_FIRST_VIEW_FILES
    assert sum(size for _, size in files) < MAX_FIRST_VIEW_BYTES, files


@pytest.mark.thorough
def test_a_link_to_the_deepest_level_takes_one_query_for_the_node_and_one_for_all_above_it_at_the_same_time(url, visit):
    held, sent = [], []

    def hold(route):
        if "subscription" in route.request.post_data:
            return route.continue_()
        sent.append(route.request.post_data_json["query"].split()[1].split("(")[0])
        held.append(route)
        if sent[-1] == "Hierarchies" or {"Above", "Node"} <= set(sent):
            while held:
                held.pop().continue_()
        return None

    page = visit(url, "#thing/" + "/".join(CHAIN), prepare=lambda page: page.route("**/graphql", hold))
    expect(heading(page)).to_have_text(CHAIN[-1])
    expect(line(page, CHAIN[-1])).to_have_attribute("aria-selected", "true")
    beside = f"Beside {len(CHAIN) - 1}"
    expect(line(page, beside)).to_be_visible()
    names = page.locator(".line .name", has_text="Beside")  # other tests add nodes with shorter ones
    widths = names.evaluate_all("all => all.map(one => one.getBoundingClientRect().width)")
    assert min(widths) > MIN_NAME_PIXELS * 0.6
    assert all(page.locator(".line").evaluate_all("all => all.map(one => one.scrollWidth <= one.clientWidth)"))
    go(page, beside)
    assert [*sorted(sent[:3]), *sent[3:]] == ["Above", "Hierarchies", "Node", "Node"]
    page.unroute("**/graphql")


# -- the tree ----------------------------------------------------------------------------------------------------------


def test_the_tree_is_walked_by_keyboard_and_a_line_counts_children_by_level(url, visit):
    page = visit(url, "#location")
    expect(line(page, "Andorra").locator(".count")).to_have_text("2 states, 1 city")
    tree(page).focus()
    expect_active(page, "Andorra")
    page.keyboard.press("a")
    expect_active(page, "Afghanistan")
    page.keyboard.press("ArrowUp")
    expect_active(page, "United Arab Emirates")
    page.keyboard.press("ArrowRight")
    expect(line(page, "United Arab Emirates")).to_have_attribute("aria-expanded", "true")
    expect(line(page, "Dubai")).to_have_attribute("aria-posinset", "1")
    page.keyboard.press("ArrowRight")
    expect_active(page, "Dubai")
    page.keyboard.press("Enter")
    expect(heading(page)).to_have_text("Dubai")
    page.keyboard.press("ArrowLeft")
    expect_active(page, "United Arab Emirates")
    page.keyboard.press("ArrowLeft")
    expect(line(page, "United Arab Emirates")).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Home")
    expect_active(page, "Andorra")


@pytest.mark.thorough
def test_1_000_children_come_page_by_page_and_few_are_in_the_document(url, visit):
    page = visit(url, "#category/All")
    sent = []
    page.on("request", lambda request: sent.append(request.post_data_json) if request.method == "POST" else None)
    table = children(page)
    expect(table.get_by_role("link", name="Number 00000")).to_be_visible()
    for number in range(2, 7):
        table.evaluate("element => element.scrollTo(0, element.scrollHeight)")
        height = number * PAGE * ROW_PIXELS
        wait_until(page, lambda: table.evaluate("element => element.scrollHeight") >= height)  # noqa: B023
    expect(table.get_by_role("row").last).to_have_attribute("aria-rowindex", re.compile(r"^5\d\d$"))
    tree(page).evaluate(f"element => element.scrollTo(0, {500 * LINE_PIXELS})")
    expect(line(page, "Number 00499")).to_be_attached()
    assert page.locator("*").count() < MANY
    assert all(one["variables"]["first"] == PAGE for one in sent if "first" in one["variables"])
    assert len(sent) <= 9  # both lists show the same pages


# -- nodes -------------------------------------------------------------------------------------------------------------


def test_a_click_costs_one_query_that_opens_in_graphiql_and_a_line_of_the_tree_is_a_link(url, visit):
    page = visit(url, "#location")
    go(page, "Andorra")
    expect(cost(page)).to_have_text(
        re.compile(r"^1 query in \d+ ms: \d+ reads? of the store, \d+ items, .* read units\.$")
    )
    expect(page.locator("dt", has_text="Population").locator("+ dd")).to_have_text("77,006")
    expect(page.locator(".names li").filter(has_text="Japanese")).to_have_text("Japanese アンドラ")
    expect(page).to_have_title("Andorra · Clade")
    page.get_by_role("button", name="Show the query").click()
    document = page.locator(".calls article pre").first.inner_text()
    assert document.startswith("query ")
    with page.expect_popup() as popup:
        page.get_by_role("link", name="Open in GraphiQL").first.click()
    expect(popup.value.locator(".graphiql-query-editor")).to_contain_text(document.split("(")[0])
    popup.value.close()
    link = line(page, "Canillo").locator("a")
    expect(link).to_have_attribute("href", "#location/AD/02")
    with page.context.expect_page() as new:
        link.click(modifiers=["ControlOrMeta"])
    expect(heading(new.value)).to_have_text("Canillo")
    expect(heading(page)).to_have_text("Andorra")
    new.value.close()


def test_a_node_has_its_parts_in_their_places_children_that_the_server_sorts_and_what_is_near(url, visit):
    page = visit(url, "#location/US/NE")
    expect(page.locator("dl.attributes dt")).to_have_text(["Population", "Latitude", "Longitude"])
    expect(page.locator("dl.facts dt")).to_have_text(["Children", "Descendants", "Revision", "Changed", "ID"])
    menu = page.get_by_role("group", name="Change US/NE")
    expect(menu.locator("button.primary")).to_have_text("Edit…")
    expect(menu.locator("button.danger")).to_have_text("Delete…")
    expect(menu.get_by_role("button").last).to_have_text("Delete…")
    expect(children(page).get_by_role("row").nth(1)).to_contain_text("OmahaOMA")
    rows = children(page).locator("tbody a")
    for column, order, first in (
        ("Population", "ascending", "Papillion"),
        ("Population", "descending", "Omaha"),
        ("Key", "ascending", "Omaha"),
        ("Key", "descending", "Town 29"),
    ):
        sort(page, column, order)
        expect(rows.first).to_have_text(first)
    page.get_by_role("columnheader", name="Key").get_by_role("button").click()
    expect(page.locator("th[aria-sort]")).to_have_count(0)
    expect(rows.first).to_have_text("Omaha")
    go(page, "Omaha")
    page.get_by_role("button", name="Show what is near").click()
    expect(page.locator(".near li").first).to_have_text(re.compile(r"^Papillion city, \d+\.\d km$"))
    page.locator(".near a").first.click()
    expect(heading(page)).to_have_text("Papillion")


@pytest.mark.thorough
def test_a_list_that_cannot_be_sorted_keeps_its_header_and_says_why(poor_url, visit):
    page = visit(poor_url, "#category/All/Number 00900")
    expect(line(page, "Number 00900")).to_have_attribute("aria-selected", "true")  # far down its family
    page.goto(f"{poor_url}/#category/All")
    expect(children(page).get_by_role("link", name="Number 00000")).to_be_visible()
    sort(page, "Name", "ascending")
    expect_no_children(page, "1,001 nodes")
    expect(children(page).get_by_role("alert").get_by_role("button")).to_have_text("Try again")
    sort(page, "Name", "descending")
    page.get_by_role("columnheader", name="Name").get_by_role("button").click()
    expect(children(page).get_by_role("link", name="Number 00000")).to_be_visible()


@pytest.mark.thorough
def test_attributes_are_shown_alike_in_a_node_and_its_history_and_computed_fields_in_columns(url, visit):
    page = visit(url, "#place/Mall")
    for name in ("Shout", "Square"):
        expect(page.get_by_role("columnheader", name=name)).to_be_visible()
    shown = page.locator(".attributes")
    expect(shown).to_contain_text("ShoutMALL")
    rows = children(page).locator("tbody tr")
    expect(rows.filter(has_text="Ada's")).to_contain_text("6.25")
    expect(rows.filter(has_text="Bob's")).to_contain_text("BOB'S")
    expect(rows.filter(has_text="Bob's")).to_contain_text("failed: Internal server error.")
    expect(page.get_by_role("alert")).to_have_count(0)
    go(page, "Bob's")
    expect(shown).to_contain_text("Squarefailed: Internal server error.")
    opened(page, "Edit…")
    expect(page.get_by_label("Owner (required)")).to_have_value("Bob")
    expect(page.get_by_label("Square")).to_have_count(0)
    page.keyboard.press("Escape")
    go(page, "Ada's")
    for text in ("German", "Hallo", "sunday", "Lane 1", "480", "2.5"):
        expect(shown).to_contain_text(text)
    expect(page.get_by_role("link", name="https://ada.example/")).to_have_attribute("rel", "noopener noreferrer")
    assert page.get_by_role("combobox").count() == 0  # this hierarchy is not searched
    page.get_by_role("button", name="Show what changed").click()
    for text in ("2 Jan 2026, 03:04", "2 Jan 2026", "12,345.50 EUR"):
        expect(shown.locator("dd").get_by_text(text, exact=True)).to_have_count(1)
        expect(page.locator(".history dd").get_by_text(text, exact=True)).to_have_count(1)


# -- search and addresses ----------------------------------------------------------------------------------------------


def test_search_lists_nodes_with_their_breadcrumbs_of_everything_or_below_a_node(url, visit):
    page = visit(url, "#location/US/NE")
    field, options = page.get_by_role("combobox", name="Search"), page.get_by_role("option")
    said, below = page.locator(".popup [role=status]"), page.get_by_role("checkbox", name="Only below US/NE")
    field.fill("omah")
    expect(options).to_have_text(["Omaha city United States › Nebraska", "Omaha Beach city United States"])
    field.press("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    expect(field).to_have_attribute("aria-activedescendant", options.first.get_attribute("id"))
    field.press("Tab")
    expect(below).to_be_focused()
    below.press("Tab")
    expect(options.first).to_be_hidden()
    field.focus()
    field.fill("omaha")
    below.check()
    expect(options).to_have_count(1)
    below.uncheck()
    expect(options).to_have_count(2)
    below.check()
    field.fill("xqzzy")
    expect(said).to_have_text("Nothing below US/NE has words that begin with “xqzzy”.")
    field.press("Escape")
    expect(said).to_be_hidden()
    page.get_by_role("link", name="Clade").click()
    expect(below).to_have_count(0)
    page.get_by_role("link", name="locations").click()
    expect(heading(page)).to_have_text("Locations")
    field.fill("xqzzy")
    expect(said).to_have_text("Nothing has words that begin with “xqzzy”.")
    field.fill("omah")
    expect(options.first).to_contain_text("Nebraska")
    field.press("ArrowDown")
    field.press("Enter")
    expect(heading(page)).to_have_text("Omaha")
    expect(field).to_have_value("")


def test_addresses_are_states_that_back_returns_to_or_are_answered_by_a_sentence(url, visit):
    page = visit(url, "#location/US/NE/OMA")
    expect(heading(page)).to_have_text("Omaha")
    expect(line(page, "Omaha")).to_have_attribute("aria-selected", "true")
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="Nebraska").click()
    expect(heading(page)).to_have_text("Nebraska")
    expect(page).to_have_url(re.compile("#location/US/NE$"))
    page.get_by_role("navigation", name="Hierarchies").get_by_role("link", name="categories").click()
    expect(heading(page)).to_have_text("Categories")
    page.go_back()
    page.go_back()
    expect(heading(page)).to_have_text("Omaha")
    for address, said in (
        ("#location/US/Atlantis", "Nothing is at US/Atlantis, or you may not see it."),
        ("#planet/Mars", "There is no hierarchy planet that you may read."),
        ("#location/US//NE", "Nebraska"),
        ("#location/%", "has a lone %"),
    ):
        page.goto(f"{url}/{address}")
        expect(page.get_by_role("main")).to_contain_text(said)


def test_names_are_text_wherever_they_stand_and_an_old_path_leads_on_and_says_so(url, visit):
    page = visit(url, "#category/Zoo/Evil")
    expect(heading(page)).to_have_text(EVIL)
    page.get_by_role("combobox", name="Search").fill("img")
    expect(page.get_by_role("option").first).to_contain_text(EVIL)
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="The zoo").click()
    page.get_by_role("columnheader", name="Name").get_by_role("button").click()
    expect(children(page).get_by_role("link", name=EVIL)).to_be_visible()
    assert page.evaluate("window.evil") is None
    assert page.locator("img").count() == 0
    write(url, "moveCategoryNode", node="Zoo/Evil", key="Animals / Zoo")
    page.goto(f"{url}/#category/Zoo/Evil")
    expect(page.locator(".notice")).to_have_text(
        "Zoo/Evil is a former path of this node, which is now at Zoo/Animals %2F Zoo."
    )
    expect(page).to_have_url(re.compile("#category/Zoo/Animals%20%252F%20Zoo$"))
    page.reload()
    expect(heading(page)).to_have_text(EVIL)


# -- keys and errors ---------------------------------------------------------------------------------------------------


@pytest.fixture
def granted(tmp_path):
    """A server that shows each caller what is granted."""
    rows = [(["US"], "COUNTRY", "United States"), (["CA"], "COUNTRY"), (["US", "NE"], "STATE", "Nebraska"),
            (["US", "IA"], "STATE"), (["US", "NE", "Omaha"], "CITY", "Omaha", {"population": 486051})]  # fmt: skip
    store = planted(tmp_path / "clade.db", Location, rows)
    with serving(create_app(Settings(store=store, reads="granted", jwt_secret=SECRET))) as url:
        yield url


@pytest.mark.thorough
def test_a_key_is_asked_for_and_its_grants_are_the_roots(granted, visit):
    visit.expected.append("Failed to load resource")
    page = visit(granted, "#location/US/NE/Omaha")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Missing credential")
    use_key(page, "clade_“quoted”")
    expect(alert).to_contain_text("The key has characters that no key has; copy it again.")
    use_key(page, "clade_nonsense")
    expect(alert).to_contain_text("Invalid or expired credential")
    use_key(page, token("read:location/US/NE"))
    expect(heading(page)).to_have_text("Omaha")
    expect(page.get_by_role("button", name="Key in use")).to_be_focused()
    breadcrumb = page.get_by_role("navigation", name="Breadcrumb")
    expect(breadcrumb.get_by_role("listitem")).to_have_text(["Locations", "Nebraska"])
    expect(line(page, "Nebraska")).to_contain_text("US/NE")
    expect(line(page, "Nebraska")).to_contain_text("1 city")
    expect(tree(page).get_by_role("treeitem")).to_have_count(2)
    breadcrumb.get_by_role("link", name="Locations").click()
    expect(page.get_by_role("cell", name="US/NE", exact=True)).to_be_visible()
    page.goto(page.url.partition("#")[0] + "#location/US")
    expect(alert).to_contain_text("Nothing is at US, or you may not see it.")
    alert.get_by_role("link", name="Go to Locations").click()
    line(page, "Nebraska").click()
    expect(children(page).get_by_text("486,051")).to_be_visible()
    page.get_by_role("button", name="Filter by Population").click()
    expect(page.get_by_role("dialog").get_by_role("listitem")).to_have_text(["486,051 1"])
    expect(page.locator(".write-menu button")).to_have_count(0)  # of a server that takes no writes
    page.get_by_role("button", name="Show what changed").click()
    expect(page.locator(".history li")).not_to_have_count(0)
    expect(page.get_by_role("button", name="Restore")).to_have_count(0)
    expect(cost(page)).to_have_text(re.compile(r"^1 query in \d+ ms\.$"))  # what it read is not said to this caller
    # A key that expires later is said where it was used, and asked for.
    expired = lambda route: route.continue_(headers={**route.request.headers, "authorization": "Bearer x.y.z"})  # noqa: E731
    page.route("**/graphql", expired)
    sort(page, "Name", "ascending")
    expect_no_children(page, "Invalid or expired credential")
    page.unroute("**/graphql")
    use_key(page, token("read:location/US/NE"))
    expect(children(page).get_by_role("link", name="Omaha")).to_be_visible()
    assert page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 0, ""]
    page.reload()
    expect(alert).to_contain_text("Missing credential")
    page.close()  # with its event stream, for which the server would wait


@pytest.mark.thorough
def test_a_server_or_a_store_that_is_missing_is_said_and_tried_again_and_is_not_an_empty_one(url, visit, tmp_path):
    visit.expected.append("Failed to load resource")
    page = visit(url, "#location")
    expect(line(page, "Andorra")).to_be_visible()
    page.route("**/graphql", lambda route: route.abort())
    line(page, "Andorra").click()
    expect(page.get_by_role("alert")).to_contain_text("The server cannot be reached; try again.")
    page.route("**/graphql", lambda route: route.fulfill(status=502, body="<html>"))
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("alert")).to_contain_text("The server answered with HTTP status 502 and no JSON.")
    page.unroute("**/graphql")
    page.get_by_role("button", name="Try again").click()
    expect(heading(page)).to_have_text("Andorra")
    expect(children(page)).to_be_visible()
    page.route("**/graphql", lambda route: route.abort())
    sort(page, "Name", "ascending")
    expect_no_children(page, "The server cannot be reached; try again.")
    expect(page.get_by_role("columnheader", name="Level")).to_be_visible()
    page.unroute("**/graphql")
    with serving(create_app(Settings(store=f"sqlite:///{tmp_path / 'nothing.db'}"))) as url:
        page = visit(url)
        expect(page.get_by_role("alert").first).to_contain_text("Try again")
        expect(page.get_by_text(NONE)).to_have_count(0)


# -- the whole page ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "device", [pytest.param(one, marks=[] if one == "light" else pytest.mark.thorough) for one in DEVICES]
)
def test_axe_finds_no_violation_and_nothing_is_wider_than_the_window(url, visit, device):
    page = visit(url, "#location/AD", device)
    expect(heading(page)).to_have_text("Andorra")
    expect(children(page)).to_be_visible()
    page.wait_for_selector(".map-land")
    page.get_by_role("button", name="Show what changed").click()
    page.wait_for_selector(".history li")
    page.get_by_role("button", name="Show the query").click()
    page.get_by_role("combobox", name="Search").fill("omah")
    expect(page.get_by_role("option").first).to_be_visible()
    assert violations(page, "header.top") == []
    page.get_by_role("banner").get_by_role("button", name="Key").click()
    expect(page.get_by_label("API key or token")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("banner").get_by_role("button", name="Key")).to_be_focused()
    expect(page.get_by_role("button", name="Show the query")).to_be_visible()
    if device == "phone":
        page.get_by_role("button", name="Show the tree").click()
        expect(line(page, "Andorra")).to_be_visible()
        assert violations(page) == []
        page.get_by_role("button", name="Hide the tree").click()
    opened(page, "Edit…")
    page.get_by_role("button", name="Add a language").click()
    fill(page, Population="7")
    preview(page)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == DEVICES[device]["viewport"]["width"]
