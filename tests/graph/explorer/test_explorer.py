"""Explorer in a real browser: tree, search, nodes, addresses and errors, under its strict policy."""

import re

import httpx
import pytest
from playwright.sync_api import expect

from clade import Settings, create_app
from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from tests.classes.shops import Place
from tests.clients.programs import HERE
from tests.graph.explorer.data import SECRET, planted, token
from tests.graph.explorer.steps import DEVICES, cost, heading, line, tree, use_key
from tests.serving import serving

AXE = HERE.parent / "node_modules" / "axe-core" / "axe.min.js"
MAX_FIRST_VIEW_BYTES, MAX_FIRST_VIEW_FILES = 130_000, 32
CHILDREN, PAGE, ROW_PIXELS, LINE_PIXELS = 10_000, 100, 36, 32
EVIL = '<img src=x onerror="window.evil = true">'


@pytest.fixture(scope="module")
def family(tmp_path_factory):
    """A server of a category with 10,000 children."""
    rows = [(["All"], "CATEGORY"), *((["All", f"Number {number:05}"], "CATEGORY") for number in range(CHILDREN))]
    store = planted(tmp_path_factory.mktemp("family") / "clade.db", CategoryNode, rows)
    with serving(create_app(Settings(store=store))) as address:
        yield address


@pytest.fixture
def zoo(tmp_path):
    """A server that takes writes, of a category whose child has a name that is HTML."""
    rows = [(["All"], "CATEGORY"), (["All", "Zoo"], "CATEGORY", EVIL), (["All", "Other"], "CATEGORY")]
    url = planted(tmp_path / "clade.db", CategoryNode, rows)
    with serving(create_app(Settings(store=url, writes="on"))) as address:
        yield address


def expect_active(page, name):
    """The tree says that the node of this name is active."""
    line = page.locator(".line.active")
    expect(line.locator(".name")).to_have_text(name)
    expect(tree(page)).to_have_attribute("aria-activedescendant", line.get_attribute("id"))


def violations(page):
    """What axe finds on a page, in words."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']}).then((result) => result.violations)")
    return [f"{one['id']}: {[node['html'][:200] for node in one['nodes'][:3]]}" for one in found]


# -- the tree ----------------------------------------------------------------------------------------------------------


def test_the_tree_is_walked_by_keyboard(demo_server, visit):
    page = visit(demo_server)
    expect(line(page, "Andorra")).to_be_visible()
    tree(page).focus()
    expect_active(page, "Andorra")
    page.keyboard.press("a")
    expect_active(page, "Afghanistan")
    page.keyboard.press("ArrowUp")
    expect_active(page, "United Arab Emirates")
    page.keyboard.press("ArrowRight")
    expect(line(page, "United Arab Emirates")).to_have_attribute("aria-expanded", "true")
    below = tree(page).locator("[aria-level='2']").first
    expect(below).to_have_attribute("aria-posinset", "1")
    expect(below).not_to_contain_text("Loading")
    page.keyboard.press("ArrowRight")
    expect_active(page, below.locator(".name").inner_text())
    page.keyboard.press("Enter")
    expect(heading(page)).to_have_text(below.locator(".name").inner_text())
    page.keyboard.press("ArrowLeft")
    expect_active(page, "United Arab Emirates")
    page.keyboard.press("ArrowLeft")
    expect(line(page, "United Arab Emirates")).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Home")
    expect_active(page, "Andorra")


def test_a_line_counts_the_children_of_its_node_by_level(demo_server, visit):
    page = visit(demo_server)
    expect(line(page, "Andorra").locator(".count")).to_have_text("7 states, 2 cities")


@pytest.mark.thorough
def test_10_000_children_come_page_by_page_and_few_are_in_the_document(family, visit):
    page = visit(family, "#category/All")
    sent = []
    page.on("request", lambda request: sent.append(request.post_data_json) if request.method == "POST" else None)
    table = page.get_by_role("region", name="Children")
    expect(table.get_by_role("link", name="Number 00000")).to_be_visible()
    for number in range(2, 7):
        table.evaluate("element => element.scrollTo(0, element.scrollHeight)")
        while table.evaluate("element => element.scrollHeight") < number * PAGE * ROW_PIXELS:
            page.wait_for_timeout(50)
    expect(table.get_by_role("row").last).to_have_attribute("aria-rowindex", re.compile(r"^5\d\d$"))
    tree(page).evaluate(f"element => element.scrollTo(0, {500 * LINE_PIXELS})")
    expect(line(page, "Number 00499")).to_be_attached()
    assert page.locator("*").count() < 1_000
    assert all(one["variables"]["first"] == PAGE for one in sent if "first" in one["variables"])
    assert len(sent) <= 9  # both lists show the same pages


def test_a_node_far_down_its_family_is_shown_in_the_tree_at_once(family, visit):
    page = visit(family, "#category/All/Number 09000")
    expect(line(page, "Number 09000")).to_have_attribute("aria-selected", "true")
    expect(heading(page)).to_have_text("Number 09000")


# -- nodes -------------------------------------------------------------------------------------------------------------


def test_a_click_shows_a_node_and_costs_one_query(demo_server, visit):
    page = visit(demo_server)
    line(page, "Andorra").click()
    expect(heading(page)).to_have_text("Andorra")
    expect(cost(page)).to_have_text(
        re.compile(r"^1 query in \d+ ms: \d+ reads? of the store, \d+ items, .* read units\.$")
    )
    expect(page.locator("dt", has_text="Population").locator("+ dd")).to_have_text("77,006")
    names = page.locator(".names li")
    expect(names.filter(has_text="Japanese")).to_have_text("Japanese アンドラ")
    assert page.title() == "Andorra · Clade"


def test_children_are_sorted_by_the_server(demo_server, visit):
    page = visit(demo_server, "#location/US/NE")
    rows = page.get_by_role("region", name="Children").locator("tbody a")
    expect(rows.first).to_have_text("Bellevue")
    population = page.get_by_role("columnheader", name="Population")
    population.get_by_role("button").click()
    expect(population).to_have_attribute("aria-sort", "ascending")
    expect(rows.first).to_have_text("La Vista")
    population.get_by_role("button").click()
    expect(rows.first).to_have_text("Omaha")
    population.get_by_role("button").click()
    expect(rows.first).to_have_text("Bellevue")
    assert population.get_attribute("aria-sort") is None


def test_what_is_near_is_listed_with_distances(demo_server, visit):
    page = visit(demo_server, "#location/US/NE/Omaha")
    page.get_by_role("button", name="Show what is near").click()
    expect(page.locator(".near li").first).to_have_text(re.compile(r"^\S.* \w+, \d+\.\d km$"))
    page.locator(".near a").first.click()
    expect(heading(page)).not_to_have_text("Omaha")


def test_a_place_that_lies_nowhere_is_left_out_of_the_map(visit, tmp_path):
    places = {"Omaha": 41.3, "Lincoln": 40.8, "Nowhere": 500.0}
    cities = [(["US", name], "CITY", name, {"latitude": at, "longitude": -96.0}) for name, at in places.items()]
    store = planted(tmp_path / "clade.db", Location, [(["US"], "COUNTRY"), *cities])
    with serving(create_app(Settings(store=store))) as url:
        page = visit(url, "#location/US")
        expect(page.locator("circle")).to_have_count(2)
        expect(line(page, "Nowhere")).to_be_visible()
        page.close()  # with its event stream, for which the server would wait


def test_the_query_of_a_click_opens_in_graphiql(demo_server, visit):
    page = visit(demo_server, "#location/US/NE")
    expect(line(page, "Nebraska")).to_be_visible()
    expect(cost(page)).to_contain_text("3 queries")
    page.get_by_role("button", name="Show the query").click()
    link = page.get_by_role("link", name="Open in GraphiQL").nth(1)
    document = page.locator(".calls article").nth(1).locator("pre").first.inner_text()
    assert document.startswith("query ")
    with page.expect_popup() as opened:
        link.click()
    graphiql = opened.value
    expect(graphiql.locator(".graphiql-query-editor")).to_contain_text(document.split("(")[0])
    graphiql.close()


def test_every_type_of_attribute_is_shown(visit, tmp_path):
    values = {
        "owner": "Ada", "site": "https://ada.example/", "greeting": {"de": "Hallo"}, "codes": ["ab", "c"],
        "rent": {"amount": "12.50", "currency": "EUR"}, "weekday": "SUNDAY", "checked": "2026-01-02T03:04:05Z",
        "address": {"street": "Lane 1", "hours": [{"day": "MONDAY", "opens": 480}]}, "area": "2.5",
    }  # fmt: skip
    rows = [(["Mall"], "MALL"), (["Mall", "Ada"], "SHOP", "Ada's", values)]
    store = planted(tmp_path / "clade.db", Place, rows)
    with serving(create_app(Settings(store=store, hierarchies="tests.classes.shops"))) as url:
        page = visit(url, "#place/Mall/Ada")
        shown = page.locator(".attributes")
        for text in (
            "https://ada.example/",
            "German",
            "Hallo",
            "12.50 EUR",
            "sunday",
            "2 Jan 2026, 03:04",
            "Lane 1",
            "480",
            "2.5",
        ):
            expect(shown).to_contain_text(text)
        expect(page.get_by_role("link", name="https://ada.example/")).to_have_attribute("rel", "noopener noreferrer")
        assert page.get_by_role("combobox").count() == 0  # this hierarchy is not searched
        page.close()  # with its event stream, for which the server would wait


# -- search and addresses ----------------------------------------------------------------------------------------------


def test_search_lists_nodes_with_their_breadcrumbs_and_opens_one(demo_server, visit):
    page = visit(demo_server)
    field = page.get_by_role("combobox", name="Search")
    field.press_sequentially("omah")
    first = page.get_by_role("option").first
    expect(first).to_contain_text("Omaha city United States › Nebraska")
    field.press("ArrowDown")
    expect(first).to_have_attribute("aria-selected", "true")
    assert field.get_attribute("aria-activedescendant") == first.get_attribute("id")
    field.press("Enter")
    expect(heading(page)).to_have_text("Omaha")
    expect(field).to_have_value("")
    field.fill("xqzzy")
    expect(page.locator(".popup [role=status]")).to_have_text("Nothing has words that begin with “xqzzy”.")
    field.press("Escape")
    expect(page.locator(".popup [role=status]")).to_be_hidden()
    field.fill("omah")
    expect(first).to_be_visible()
    field.press("Tab")
    below = page.get_by_role("checkbox")
    expect(below).to_be_focused()
    below.press("Tab")
    expect(first).to_be_hidden()


def test_search_is_over_all_hierarchies_and_leads_back_to_what_was_opened_last(demo_server, visit):
    page = visit(demo_server, "#location/US/NE")
    expect(heading(page)).to_have_text("Nebraska")
    page.keyboard.press("/")
    field, options = page.get_by_role("combobox", name="Search"), page.get_by_role("option")
    expect(field).to_be_focused()
    expect(options).to_have_text(re.compile("Nebraska state.*United States"))
    field.fill("televisions")
    expect(options.first).to_contain_text("in category")
    field.press("Enter")
    expect(heading(page)).to_have_text("Televisions")
    page.keyboard.press("Control+k")
    expect(options).to_have_text([re.compile("Televisions category"), re.compile("Nebraska state in location")])
    field.fill("US/N")
    expect(options).to_have_count(0)
    field.press("Escape")
    page.get_by_role("navigation", name="Hierarchies").get_by_role("link", name="locations").click()
    field.fill("US/N")
    expect(options.filter(has_text="US/NE")).to_be_visible()


def test_search_can_be_limited_to_what_is_below_a_node(demo_server, visit):
    page = visit(demo_server, "#location/US/NE")
    expect(heading(page)).to_have_text("Nebraska")
    field, options = page.get_by_role("combobox", name="Search"), page.get_by_role("option")
    field.fill("lincoln")
    expect(options.filter(has_not_text="› Nebraska").first).to_be_visible()
    below = page.get_by_role("checkbox", name="Only below US/NE")
    below.check()
    expect(options.filter(has_not_text="› Nebraska")).to_have_count(0)
    expect(options.filter(has_text="Lincoln").first).to_be_visible()
    below.uncheck()
    expect(options.filter(has_not_text="› Nebraska").first).to_be_visible()
    below.check()
    field.fill("xqzzy")
    expect(page.locator(".popup [role=status]")).to_have_text("Nothing below US/NE has words that begin with “xqzzy”.")
    page.get_by_role("link", name="Clade").click()
    expect(below).to_have_count(0)


def test_addresses_are_states_and_the_back_button_returns(demo_server, visit):
    page = visit(demo_server, "#location/US/NE/Omaha")
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


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("#location/US/Atlantis", "Nothing is at US/Atlantis, or you may not see it."),
        ("#planet/Mars", "There is no hierarchy planet that you may read."),
        ("#location/US//NE", "Nebraska"),
        ("#location/%", "has a lone %"),
    ],
)
def test_addresses_that_lead_nowhere_are_answered_by_a_sentence(demo_server, visit, address, said):
    page = visit(demo_server, address)
    expect(page.get_by_role("main")).to_contain_text(said)


def test_an_old_path_leads_on_and_says_so(zoo, visit):
    rename = 'mutation { moveCategoryNode(input: {node: {path: "All/Zoo"}, key: "Animals / Zoo"}) { node { path } } }'
    assert "errors" not in httpx.post(f"{zoo}/graphql", json={"query": rename}).json()
    page = visit(zoo, "#category/All/Zoo")
    expect(page.locator(".state.moved")).to_have_text(
        "All/Zoo is a former path of this node, which is now at All/Animals %2F Zoo."
    )
    expect(page).to_have_url(re.compile("#category/All/Animals%20%252F%20Zoo$"))
    page.reload()
    expect(heading(page)).to_have_text(EVIL)


def test_names_are_text_wherever_they_stand(zoo, visit):
    page = visit(zoo, "#category/All/Zoo")
    expect(heading(page)).to_have_text(EVIL)
    page.get_by_role("combobox", name="Search").fill("img")
    expect(page.get_by_role("option").first).to_contain_text(EVIL)
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="All").click()
    page.get_by_role("columnheader", name="Name").get_by_role("button").click()
    expect(page.get_by_role("region", name="Children").get_by_role("link", name=EVIL)).to_be_visible()
    assert page.evaluate("window.evil") is None
    assert page.locator("img").count() == 0


@pytest.mark.thorough
def test_what_others_write_is_shown_as_it_is_written(zoo, visit):
    page = visit(zoo)
    page.get_by_role("navigation", name="Hierarchies").get_by_role("link", name="categories").click()
    with page.expect_response(lambda answer: "event-stream" in answer.headers["content-type"]):
        line(page, "All").click()
    create = """mutation {
        createCategoryNode(input: {parent: {path: "All"}, key: "New", name: "Brand new", level: CATEGORY})
          { node { path } }
    }"""
    assert "errors" not in httpx.post(f"{zoo}/graphql", json={"query": create}).json()
    expect(line(page, "Brand new")).to_be_visible()
    expect(page.get_by_role("region", name="Children").get_by_role("link", name="Brand new")).to_be_visible()
    delete = 'mutation { deleteCategoryNode(input: {node: {path: "All/New"}}) { node { path } } }'
    assert "errors" not in httpx.post(f"{zoo}/graphql", json={"query": delete}).json()
    expect(line(page, "Brand new")).to_have_count(0)


# -- callers and errors ------------------------------------------------------------------------------------------------


@pytest.fixture
def granted(tmp_path):
    """A server that shows each caller what is granted."""
    rows = [(["US"], "COUNTRY", "United States"), (["CA"], "COUNTRY"), (["US", "NE"], "STATE", "Nebraska"),
            (["US", "IA"], "STATE"), (["US", "NE", "Omaha"], "CITY", "Omaha", {"population": 486051})]  # fmt: skip
    store = planted(tmp_path / "clade.db", Location, rows)
    with serving(create_app(Settings(store=store, reads="granted", jwt_secret=SECRET))) as url:
        yield url


def test_a_key_is_asked_for_and_its_grants_are_roots(granted, visit):
    page = visit(granted, "#location/US/NE/Omaha")
    expect(page.get_by_role("alert")).to_contain_text("Missing credential")
    use_key(page, token("read:location/US/NE"))
    expect(heading(page)).to_have_text("Omaha")
    expect(line(page, "Nebraska")).to_contain_text("1 city")
    expect(line(page, "Omaha")).to_be_visible()
    assert tree(page).get_by_role("treeitem").count() == 2
    line(page, "Nebraska").click()
    expect(page.get_by_label("Breadcrumb").get_by_role("listitem")).to_have_count(1)
    expect(page.get_by_role("region", name="Children").get_by_text("486,051")).to_be_visible()
    expect(cost(page)).to_have_text(re.compile(r"^1 query in \d+ ms\.$"))  # what it read is not said to this caller
    assert page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 0, ""]
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("Missing credential")
    visit.complaints[:] = [one for one in visit.complaints if "401" not in one]


def test_a_wrong_key_is_refused_by_a_sentence(granted, visit):
    page = visit(granted)
    use_key(page, "clade_“quoted”")
    expect(page.get_by_role("alert")).to_contain_text("The key has characters that no key has; copy it again.")
    use_key(page, "clade_nonsense")
    expect(page.get_by_role("alert")).to_contain_text("Invalid or expired credential")
    visit.complaints[:] = [one for one in visit.complaints if "401" not in one]


def test_an_unreachable_server_is_said_and_tried_again(demo_server, visit):
    page = visit(demo_server)
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
    visit.complaints[:] = [one for one in visit.complaints if "Failed to load resource" not in one]


# -- the whole page ----------------------------------------------------------------------------------------------------


def test_the_first_view_takes_two_queries_and_is_small(demo_server, visit):
    page = visit(demo_server)
    expect(line(page, "Andorra")).to_be_visible()
    loaded = page.evaluate(
        "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
        ".map((one) => [one.name, one.encodedBodySize])"
    )
    assert sum(name.endswith("/graphql") for name, _ in loaded) == 2
    assert 10 < len(loaded) <= MAX_FIRST_VIEW_FILES
    assert sum(size for _, size in loaded) < MAX_FIRST_VIEW_BYTES, loaded


def test_the_first_queries_are_sent_before_the_parts_of_the_page_are_loaded(demo_server, visit):
    late, sent = [], []

    def note(request):
        if request.method == "POST":
            sent.append(request)
        if len(sent) == 2 and late:
            late.pop().continue_()

    def prepare(page):
        page.route("**/tree.js", lambda route: late.append(route))
        page.on("request", note)

    page = visit(demo_server, prepare=prepare)
    expect(line(page, "Andorra")).to_be_visible()


def test_what_a_link_shows_is_asked_for_at_the_same_time(demo_server, visit):
    waiting = []

    def wait_for_both(route):
        if "query Hierarchies" in route.request.post_data or "subscription" in route.request.post_data:
            return route.continue_()
        waiting.append(route)
        if len(waiting) == 2:  # the node, and what is above it
            for one in waiting:
                one.continue_()
        return None

    page = visit(demo_server, "#location/US/NE", prepare=lambda page: page.route("**/graphql", wait_for_both))
    expect(heading(page)).to_have_text("Nebraska")
    expect(line(page, "Nebraska")).to_be_visible()
    assert len(waiting) == 2


@pytest.mark.skipif(not AXE.exists(), reason="the packages of tests/package.json are missing")
@pytest.mark.parametrize(
    "device", [pytest.param(one, marks=[] if one == "light" else pytest.mark.thorough) for one in DEVICES]
)
def test_axe_finds_no_violation_and_nothing_is_wider_than_the_window(demo_server, visit, device):
    page = visit(demo_server, "#location/US/NE", device)
    expect(heading(page)).to_have_text("Nebraska")
    expect(page.get_by_role("region", name="Children")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="Show the query").click()
    page.get_by_role("combobox", name="Search").fill("lin")
    expect(page.get_by_role("option").first).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="Hide the query").click()
    page.get_by_role("button", name="Key").click()
    assert violations(page) == []
    page.keyboard.press("Escape")
    if device == "phone":
        page.get_by_role("button", name="Show the tree").click()
        expect(line(page, "Nebraska")).to_be_visible()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == DEVICES[device]["viewport"]["width"]


@pytest.mark.thorough
def test_every_query_of_a_long_visit_is_within_the_default_limits(demo_server, visit):
    page, answers = visit(demo_server), []
    page.on("response", lambda one: answers.append(one) if one.request.method == "POST" else None)
    places = {"location/US": "United States", "location/US/NE": "Nebraska", "location/US/NE/Omaha": "Omaha",
              "location/DE": "Germany", "location/FR": "France", "location/JP": "Japan", "location/US/CA": "California",
              "location/US/TX": "Texas", "category/Electronics": "Electronics", "location/BR": "Brazil"}  # fmt: skip
    for path, name in places.items():
        page.evaluate("path => { location.hash = path; }", path)
        expect(heading(page)).to_have_text(name)
        for place in range(min(4, page.locator("button.heading").count())):
            with page.expect_response("**/graphql"):
                page.locator("button.heading").nth(place).click()
    for text in ("om", "san", "lin", "new y", "par", "tok", "ber", "mun", "lon", "del"):
        with page.expect_response("**/graphql"):
            page.get_by_role("combobox", name="Search").fill(text)
    page.evaluate("location.hash = 'location/US/NE/Omaha'")
    expect(heading(page)).to_have_text("Omaha")
    page.get_by_role("button", name="Show what is near").click()
    page.get_by_role("button", name="Show what changed").click()
    page.get_by_role("button", name="Moves of the last 90 days").click()
    expect(page.get_by_text("No moves in the last 90 days.")).to_be_visible()
    answers = [one for one in answers if "event-stream" not in one.headers["content-type"]]
    assert len(answers) >= 60
    assert [one.json()["errors"] for one in answers if "errors" in one.json()] == []
