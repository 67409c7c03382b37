"""Panels of the explorer in a real browser, over a server that accepts writes, under a strict policy."""

import asyncio
import itertools
import json
import re
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from playwright.sync_api import Page, expect, sync_playwright

from clade import Settings
from graph.hierarchies.locations import Location
from store.connect import open_store
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from tests.clients.programs import PROGRAMS
from tests.graph.explorer.panels_app import make_app
from tests.serving import serving

CHROMIUM = shutil.which("chromium")
AXE = PROGRAMS.parent / "axe-core" / "axe.min.js"
SERVED = "graph.hierarchies.locations,tests.classes.shops"
EVIL = '<img src=x onerror="alert(1)">'
KEYS = (f"C{number}" for number in itertools.count())

pytestmark = pytest.mark.skipif(
    not CHROMIUM or not AXE.exists(), reason="chromium or the packages of tests/package.json are missing"
)


def created(store: str, rows: Sequence[tuple[str, str]] = ()) -> str:
    """The URL of a store, with a new table and these paths and levels; made in a thread: the browser's has a loop."""

    async def create() -> None:
        plan = ImportPlan(Location.definition())
        for number, (path, level) in enumerate(rows):
            plan.take(Row(number, tuple(path.split("/")), [Part(level)]))
        async with open_store(store) as opened:
            await opened.create()
            await load(opened, plan, LoadResult())

    with ThreadPoolExecutor() as threads:
        threads.submit(asyncio.run, create()).result()
    return store


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return created(f"sqlite:///{tmp_path_factory.mktemp('panels') / 'clade.db'}")


@pytest.fixture(scope="module")
def url(store):
    with serving(make_app(Settings(store=store, writes="on", hierarchies=SERVED))) as url:
        yield url


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, url):
    """Opens a panel; at the end the page asked no other server, and neither code nor policy complained."""
    complaints, pages = [], []

    def open_panel(
        panel: str, path: str = "", *, at: str = url, more: str = "", script: str = "", **options: object
    ) -> Page:
        page = browser.new_page(**{"viewport": {"width": 1000, "height": 900}, "locale": "en-US", **options})
        pages.append(page)
        page.on("request", lambda request: None if request.url.startswith(at) else complaints.append(request.url))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.add_init_script(
            "globalThis.violated = []; addEventListener('securitypolicyviolation', e => violated.push(e.violatedDirective));"
            + script
        )
        page.set_default_timeout(10_000)
        page.goto(f"{at}/panels?panel={panel}&path={path}{more}")
        page.wait_for_selector("body[data-ready]")
        return page

    yield open_panel
    for page in pages:
        complaints += page.evaluate("violated")
        page.close()
    assert complaints == []


@pytest.fixture
def data(url):
    """Sends a document to the server, as another client does."""
    return lambda document, **variables: ask(url, document, **variables)


def ask(url: str, document: str, **variables: object) -> dict:
    answer = httpx.post(f"{url}/graphql", json={"query": document, "variables": variables}).json()
    assert "errors" not in answer, answer
    return answer["data"]


@pytest.fixture
def country(data):
    """The path of a new country with a state, which has a city."""
    root = next(KEYS)
    data(
        """mutation ($root: String!, $state: Path!) {
          a: createLocation(key: $root, name: "Country", attributes: { country: {} }) { node { id } }
          b: createLocation(parent: $root, key: "S", name: "State", attributes: { state: { population: 5 } }) { node { id } }
          c: createLocation(parent: $state, key: "City", name: "City", attributes: { city: {} }) { node { id } }
        }""".replace("parent: $root", f'parent: "{root}"'),
        root=root, state=f"{root}/S",
    )  # fmt: skip
    return root


def opened(page: Page, button: str) -> None:
    page.get_by_role("button", name=button).click()
    page.wait_for_selector("dialog form")


def press(page: Page, button: str) -> None:
    page.get_by_role("dialog").get_by_role("button", name=button, exact=True).click()


def preview(page: Page) -> str:
    press(page, "Preview")
    page.wait_for_selector(".write-plan")
    return page.inner_text(".write-plan")


def ended(page: Page) -> object:
    """What the panel reported when its dialog closed."""
    expect(page.get_by_role("dialog")).to_have_count(0)
    return page.wait_for_function("reported.length && reported").json_value()[-1]


def violations(page: Page) -> list[str]:
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run()")
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found["violations"]]


# -- map and bars ------------------------------------------------------------------------------------------------------


def points(*places: tuple[str, float, float]) -> str:
    listed = [{"path": f"X/{name}", "name": name, "latitude": at, "longitude": on} for name, at, on in places]
    return f"globalThis.points = {json.dumps(listed)};"


def test_points_of_a_map_open_by_pointer_and_keys(visit):
    page = visit("map", script=points(("Omaha", 41.3, -95.9), (EVIL, 40.8, -96.7), ("Kearney", 40.7, -99.1)))
    page.wait_for_selector(".map-land")
    page.get_by_role("link", name="Kearney").click()
    page.get_by_role("link", name="Omaha").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("circle:focus")).to_have_attribute("aria-label", EVIL)
    page.keyboard.press("Enter")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    assert page.evaluate("reported") == ["X/Kearney", f"X/{EVIL}", "X/Kearney"]
    assert page.locator("circle[tabindex='0']").count() == 1
    assert page.locator("figure img").count() == 0


def test_a_map_across_the_date_line_is_narrow_and_the_world_is_whole(visit):
    page = visit("map", script=points(("Fiji", -17.7, 178.0), ("Samoa", -13.8, -172.0)))
    box = lambda: [float(part) for part in page.get_attribute("figure > svg", "viewBox").split()]  # noqa: E731
    assert box()[2] < 30
    places = page.locator("circle").evaluate_all("all => all.map(one => +one.getAttribute('cx'))")
    assert 0 < places[1] - places[0] < 10
    assert all(box()[0] < place < box()[0] + box()[2] for place in places)
    page.get_by_role("button", name="Whole world").click()
    assert box()[2] == 360
    assert page.locator("circle").evaluate_all("all => all.map(one => +one.getAttribute('cx'))") == [178, 188]


def test_a_map_shows_1000_points_and_says_how_many_there_are(visit):
    many = [(f"P{number}", number % 120 - 60, number % 359 - 179) for number in range(1200)]
    page = visit("map", script=points(*many))
    assert page.locator("circle").count() == 1000
    expect(page.locator("figcaption")).to_contain_text("1,000 places of 1,200")


def test_bars_have_numbers_and_are_logarithmic_over_orders(visit):
    listed = [
        {"level": name.upper(), "title": name, "count": count}
        for name, count in [("A", 1), ("B", 50), ("C", 19876), ("D", 0)]
    ]
    page = visit("bars", script=f"globalThis.counts = {json.dumps(listed)};")
    assert page.locator("td.bars-count").all_inner_texts() == ["1", "50", "19,876", "0"]
    widths = [
        float(one[:-1]) for one in page.locator("rect").evaluate_all("all => all.map(one => one.getAttribute('width'))")
    ]
    assert widths[3] == 0 < 5 < widths[0] < widths[1] < widths[2] == 100
    expect(page.locator("caption")).to_contain_text("logarithmic")


# -- writing -----------------------------------------------------------------------------------------------------------


def test_a_node_is_created_edited_renamed_moved_and_deleted_each_after_its_preview(visit, data, country):
    page = visit("write", f"{country}/S")
    opened(page, "Add child…")
    page.get_by_label("Level").select_option("CITY")
    page.get_by_label("Key").fill("New")
    page.get_by_label("Name", exact=True).fill(EVIL)
    page.get_by_label("Population").fill("12")
    page.get_by_role("button", name="Add a language").click()
    page.get_by_label("Language", exact=True).fill("de")
    page.get_by_label("Text in de").fill("Neu")
    read = "query ($path: Path!) { node: city(path: $path) { name names { language text } population revision } }"
    assert f"{country}/S/New is created." in preview(page)
    assert data(read, path=f"{country}/S/New") == {"node": None}
    press(page, "Create")
    assert ended(page) == f"{country}/S/New"
    new = {"name": EVIL, "names": [{"language": "de", "text": "Neu"}], "population": 12, "revision": 1}
    assert data(read, path=f"{country}/S/New") == {"node": new}

    opened(page, "Edit…")
    page.get_by_label("Population").fill("")
    page.get_by_role("button", name="Remove de").click()
    assert "Population\n12 → –" in preview(page)
    press(page, "Write")
    ended(page)
    assert data(read, path=f"{country}/S/New")["node"] == {"name": EVIL, "names": [], "population": None, "revision": 2}

    opened(page, "Rename…")
    page.get_by_label("Key").fill("Newer")
    assert f"{country}/S/New → {country}/S/Newer" in preview(page)
    press(page, "Rename")
    assert ended(page) == f"{country}/S/Newer"

    opened(page, "Move…")
    page.get_by_label("New parent").fill(country)
    assert f"{country}/S/Newer → {country}/Newer" in preview(page)
    press(page, "Move")
    assert ended(page) == f"{country}/Newer"

    opened(page, "Delete…")
    assert f"{country}/Newer is deleted." in preview(page)
    press(page, "Delete")
    press(page, "Undo…")
    page.wait_for_selector(".write-plan")
    assert data(read, path=f"{country}/Newer") == {"node": None}
    press(page, "Create")
    assert ended(page) == f"{country}/Newer"
    assert data(read, path=f"{country}/Newer")["node"]["revision"] == 3
    assert page.locator("#panel img").count() == 0


def test_siblings_are_reordered(visit, data, country):
    for key in "AB":
        data(
            f'mutation {{ createLocation(parent: "{country}/S", key: "{key}", name: "{key}", attributes: {{ city: {{}} }}) {{ node {{ id }} }} }}'
        )
    page = visit("write", f"{country}/S/B")
    opened(page, "Reorder…")
    page.get_by_label("Place").select_option("After")
    page.get_by_label("Sibling").select_option(f"{country}/S/A")
    press(page, "Preview")
    page.wait_for_selector(".write-plan")
    page.get_by_label("Place").select_option("First")
    preview(page)
    press(page, "Reorder")
    ended(page)
    (listed,) = data(f'{{ location(path: "{country}/S") {{ children {{ nodes {{ key }} }} }} }}').values()
    assert [one["key"] for one in listed["children"]["nodes"]] == ["B", "A", "City"]


def test_errors_are_at_their_fields(visit, country):
    page = visit("write", f"{country}/S")
    opened(page, "Add child…")
    page.get_by_label("Key").fill("City")
    page.get_by_label("Level").select_option("CITY")
    page.get_by_label("Latitude").fill("north")
    page.get_by_label("Name", exact=True).fill("x")
    press(page, "Preview")
    expect(page.get_by_label("Latitude")).to_have_accessible_description(re.compile("“north” is no number."))
    expect(page.get_by_label("Latitude")).to_be_focused()
    page.get_by_label("Latitude").fill("1")
    press(page, "Preview")
    expect(page.get_by_label("Key")).to_have_accessible_description(re.compile(f"{country}/S/City"))
    page.keyboard.press("Escape")
    opened(page, "Delete…")
    press(page, "Preview")
    expect(page.get_by_role("alert")).to_contain_text("has 1 child")


def test_every_kind_of_attribute_is_written(visit, data):
    data('mutation { createPlace(key: "m", name: "Mall", attributes: { mall: { floors: 2 } }) { node { id } } }')
    page = visit("write", "m", more="&hierarchy=PLACE")
    opened(page, "Add child…")
    page.get_by_label("Key").fill("s")
    page.get_by_label("Name", exact=True).fill("Shop")
    press(page, "Preview")
    expect(page.get_by_label("Owner (required)")).to_have_accessible_description(re.compile("owner"))
    texts = {
        "Owner (required)": "Ada", "Site": "https://example.com/a", "Address": '{"street": "Main 1", "hours": [{"day": "MONDAY"}]}',
        "Rent": "12.50", "Currency": "EUR", "Fees": '[{"amount": "1", "currency": "EUR"}]', "Area": "12.5",
        "Opened": "2020-02-03", "Checked": "2020-02-03T10:00:00Z", "Codes": "a\nb",
    }  # fmt: skip
    for label, text in texts.items():
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_label("Weekday").select_option("MONDAY")
    greeting = page.get_by_role("group", name="Greeting")
    greeting.get_by_role("button").click()
    greeting.get_by_label("Language", exact=True).fill("de")
    greeting.get_by_label("Text in de").fill("Hallo")
    preview(page)
    press(page, "Create")
    assert ended(page) == "m/s"
    opened(page, "Edit…")
    press(page, "Preview")
    expect(page.get_by_role("alert")).to_have_text("Nothing is changed yet.")
    (shop,) = data(
        """{ shop(path: "m/s") { owner site area opened checked codes weekday rent { amount currency } fees { amount }
          address { street hours { day } } greeting { texts { language text } } } }"""
    ).values()
    assert shop == {
        "owner": "Ada", "site": "https://example.com/a", "area": "12.5", "opened": "2020-02-03", "checked": "2020-02-03T10:00:00Z",
        "codes": ["a", "b"], "weekday": "MONDAY", "rent": {"amount": "12.50", "currency": "EUR"}, "fees": [{"amount": "1"}],
        "address": {"street": "Main 1", "hours": [{"day": "MONDAY"}]},
        "greeting": {"texts": [{"language": "de", "text": "Hallo"}]},
    }  # fmt: skip


def test_nothing_is_offered_to_those_who_may_not_write(visit, country, store):
    with serving(make_app(Settings(store=store, hierarchies=SERVED))) as reading:
        page = visit("write", country, at=reading)
        expect(page.locator("#path")).to_have_text(country)
        assert page.get_by_role("button").count() == 0
        page = visit("history", country, at=reading)
        page.wait_for_selector(".history li")
        assert page.get_by_role("button", name="Restore").count() == 0


# -- what comes in between ---------------------------------------------------------------------------------------------


def test_a_conflict_shows_what_the_other_wrote_and_keeps_both_changes(visit, data, country):
    page = visit("write", f"{country}/S")
    opened(page, "Edit…")
    page.get_by_label("Population").fill("6")
    preview(page)
    other = """mutation ($path: Path!) { updateLocation(path: $path, name: "Theirs", names: [{ language: "de", text: "Ihrer" }],
        attributes: { state: { population: 7 } }) { node { id } } }"""
    data(other, path=f"{country}/S")
    press(page, "Write")
    rows = page.locator(".write-conflict tbody tr")
    expect(rows).to_have_text(["NameStateTheirs–", "Name (de)–Ihrer–", "Population576"])
    expect(page.get_by_role("alert")).to_contain_text("It was at revision 1, and is at revision 2 now.")
    assert violations(page) == []
    press(page, "Write mine again")
    page.wait_for_selector(".write-plan")
    assert page.locator(".write-plan dl").inner_text() == "Population\n7 → 6"
    press(page, "Write")
    ended(page)
    read = f'{{ state(path: "{country}/S") {{ name names {{ text }} population revision }} }}'
    assert data(read)["state"] == {"name": "Theirs", "names": [{"text": "Ihrer"}], "population": 6, "revision": 3}


def test_theirs_can_be_taken_also_where_they_moved_the_node(visit, data, country):
    page = visit("write", f"{country}/S")
    opened(page, "Rename…")
    page.get_by_label("Key").fill("T")
    data(f'mutation {{ renameLocation(path: "{country}/S", key: "U") {{ node {{ id }} }} }}')
    press(page, "Preview")
    expect(page.get_by_role("alert")).to_contain_text(f"It was at {country}/S, and is at {country}/U now.")
    press(page, "Take theirs")
    assert ended(page) == f"{country}/U"


def test_a_write_whose_response_was_lost_is_sent_again_and_made_once(visit, data, country):
    page = visit("write", f"{country}/S")
    opened(page, "Edit…")
    page.get_by_label("Population").fill("8")
    preview(page)

    def lose(route):
        route.fetch()  # the server has written
        route.abort()

    page.route("**/graphql", lose, times=1)
    press(page, "Write")
    expect(page.get_by_role("alert")).to_contain_text("It is not certain whether this was written.")
    press(page, "Send again")
    ended(page)
    assert data(f'{{ state(path: "{country}/S") {{ population revision }} }}')["state"] == {
        "population": 8,
        "revision": 2,
    }


@pytest.fixture(scope="module")
def large(engine):
    """A server over DynamoDB with a state of 60 cities, whose moves are large ones."""
    rows = [("A", "COUNTRY"), ("B", "COUNTRY"), ("A/S", "STATE"), *[(f"A/S/{number}", "CITY") for number in range(60)]]
    store = created(engine.address("panels"), rows)
    with serving(make_app(Settings(store=store, writes="on", request_seconds=1.5, move_wait_seconds=0))) as url:
        yield url


def test_a_large_move_after_a_drop_shows_its_preview_and_its_progress(visit, large):
    page = visit("move", "A/S", at=large, more="&to=B")
    page.get_by_role("button", name="Drop").click()
    page.wait_for_selector(".write-plan")
    assert "A/S → B/S, with 60 descendants" in page.inner_text(".write-plan")
    assert ask(large, '{ location(path: "B/S") { path } }') == {"location": None}
    press(page, "Move")
    page.wait_for_selector("progress")
    expect(page.locator("#write-progress")).to_contain_text("of 61 nodes")
    assert violations(page) == []
    page.wait_for_function("reported.length", timeout=30_000)
    assert ended(page) == "B/S"
    assert ask(large, '{ location(path: "B/S") { childCount } }') == {"location": {"childCount": 60}}


# -- history -----------------------------------------------------------------------------------------------------------


def test_a_history_shows_differences_and_moves_and_restores_values(visit, data, country):
    change = "mutation ($path: Path!, $name: String!) { updateLocation(path: $path, name: $name) { node { id } } }"
    data(change, path=f"{country}/S", name=EVIL)
    for number in range(25):
        data(change, path=f"{country}/S", name=f"N{number}")
    data(f'mutation {{ renameLocation(path: "{country}/S", key: "T") {{ node {{ id }} }} }}')
    data(f'mutation {{ renameLocation(path: "{country}", key: "X{country}") {{ node {{ id }} }} }}')
    page = visit("history", f"X{country}/T")
    entries = page.locator(".history li")
    expect(entries).to_have_count(19)  # of 20 revisions that were read
    expect(entries.first).to_contain_text("NameN23 → N24")
    page.get_by_role("button", name="Older revisions").click()
    expect(entries).to_have_count(27)
    expect(entries.nth(25)).to_contain_text(f"NameState → {EVIL}")
    page.get_by_role("button", name="Moves of the last 90 days").click()
    expect(entries).to_have_count(29)
    expect(entries.nth(0)).to_contain_text(f"Renamed with a node above it: {country} → X{country}")
    expect(entries.nth(1)).to_contain_text(f"Renamed: {country}/S → {country}/T")
    page.get_by_role("button", name="Restore revision 1", exact=True).click()
    page.wait_for_selector(".write-plan")
    assert page.locator(".write-plan dl").inner_text() == "Name\nN24 → State"
    press(page, "Write")
    assert ended(page) == f"X{country}/T"
    expect(entries.first).to_contain_text("NameN24 → State")
    assert page.locator("#panel img").count() == 0


# -- looks -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_panels_are_accessible_and_fit_small_screens(visit, country, scheme):
    script = (
        points(("Omaha", 41.3, -95.9), ("Kearney", 40.7, -99.1))
        + """globalThis.counts =
        [{ level: "CITY", title: "City", count: 3 }, { level: "STATE", title: "State", count: 1 }];"""
    )
    page = visit("all", f"{country}/S", script=script, viewport={"width": 360, "height": 740}, color_scheme=scheme)
    page.wait_for_selector(".map-land")
    page.wait_for_selector(".history li")
    assert violations(page) == []
    opened(page, "Edit…")
    page.get_by_role("button", name="Add a language").click()
    page.get_by_label("Population").fill("7")
    preview(page)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 360
