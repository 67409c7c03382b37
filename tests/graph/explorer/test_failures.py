"""Explorer when answers have errors: what was not read is neither shown as missing nor written."""

import json
import time

import httpx
import jwt
import pytest
from playwright.sync_api import expect

from clade import Settings, create_app
from graph.auth.jwt_tokens import LEEWAY_SECONDS
from graph.hierarchies.locations import Location
from tests.commands.serving.test_stop import served
from tests.graph.explorer.data import SECRET, planted
from tests.graph.explorer.steps import heading, line, tree, use_key
from tests.serving import serving

NONE = "There are none that you may read."
KEY_SECONDS = 4
CITIES = [(["US", "NE", name], "CITY", name, {"population": number}) for number, name in enumerate(("Omaha", "Alma"))]
PLACES = [(["US"], "COUNTRY", "United States"), (["US", "NE"], "STATE", "Nebraska", {"population": 2}), *CITIES]


@pytest.fixture(autouse=True)
def expected_complaints(visit):
    """The browser says on its console which requests failed."""
    visit.expected.append("Failed to load resource")


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A server that takes writes."""
    store = planted(tmp_path_factory.mktemp("failures") / "clade.db", Location, PLACES)
    with serving(create_app(Settings(store=store, writes="on"))) as address:
        change = (
            'mutation { updateLocation(input: {node: {path: "US/NE"}, attributes: { state: { population: 3 }'
            " }}) { node { name } } }"
        )
        assert "errors" not in httpx.post(f"{address}/graphql", json={"query": change}).json()
        yield address


def sort(page):
    """Sort the children by name; the column of names."""
    column = page.get_by_role("columnheader", name="Name")
    column.get_by_role("button").click()
    return column


@pytest.mark.thorough
def test_a_list_keeps_its_header_while_the_server_is_gone(visit, tmp_path):
    store = planted(tmp_path / "clade.db", Location, PLACES)
    with served(tmp_path, store) as (url, process):
        page = visit(url, "#location/US/NE")
        table = page.get_by_role("region", name="Children")
        expect(table.get_by_role("link", name="Omaha")).to_be_visible()
        process.kill()
        process.wait()
        column = sort(page)
        expect(table.get_by_role("alert")).to_contain_text("The server cannot be reached; try again.")
        expect(column).to_have_attribute("aria-sort", "ascending")
        expect(page.get_by_role("columnheader", name="Population")).to_be_visible()
        expect(page.get_by_text(NONE)).to_have_count(0)
        expect(line(page, "Nebraska")).to_be_visible()


@pytest.mark.thorough
def test_a_store_that_is_missing_is_not_an_empty_one(visit, tmp_path):
    store = planted(tmp_path / "clade.db", Location, PLACES)
    with served(tmp_path, store) as (url, _):
        for file in tmp_path.glob("clade.db*"):
            file.unlink()
        page = visit(url)
        expect(page.get_by_role("alert").first).to_contain_text("Try again")
        expect(page.get_by_text(NONE)).to_have_count(0)


def test_an_expired_key_is_said_where_it_was_used_and_asked_for(visit, tmp_path):
    store = planted(tmp_path / "clade.db", Location, PLACES)
    claims = {"sub": "somebody", "grants": ["read:location"]}
    token = lambda seconds: jwt.encode({**claims, "exp": int(time.time()) + seconds}, SECRET, "HS256")  # noqa: E731
    with serving(create_app(Settings(store=store, reads="granted", jwt_secret=SECRET))) as url:
        page = visit(url, "#location/US/NE")
        use_key(page, token(KEY_SECONDS - LEEWAY_SECONDS))
        table = page.get_by_role("region", name="Children")
        expect(table.get_by_role("link", name="Omaha")).to_be_visible()
        page.wait_for_timeout(1000 * KEY_SECONDS)
        column = sort(page)
        expect(table.get_by_role("alert")).to_contain_text("Invalid or expired credential")
        expect(column).to_have_attribute("aria-sort", "ascending")
        expect(page.get_by_text(NONE)).to_have_count(0)
        use_key(page, token(600))
        expect(table.get_by_role("link", name="Omaha")).to_be_visible()
        page.close()  # with its event stream, for which the server would wait


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


def test_a_revision_of_which_a_value_could_not_be_read_is_not_restored(url, visit):
    page = visit(url, "#location/US/NE")
    expect(heading(page)).to_have_text("Nebraska")
    page.route("**/graphql", without_population)
    page.get_by_role("button", name="Show what changed").click()
    expect(page.locator(".history").get_by_role("alert")).to_contain_text("A population cannot be represented.")
    expect(page.get_by_role("button", name="Restore")).to_have_count(0)
    page.unroute("**/graphql")


def test_a_node_of_which_a_value_could_not_be_read_is_not_edited(url, visit):
    page = visit(url, "#location/US/NE")
    expect(heading(page)).to_have_text("Nebraska")
    page.route("**/graphql", without_population)
    page.get_by_role("button", name="Edit…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("alert")).to_contain_text("A population cannot be represented.")
    expect(dialog.get_by_role("textbox")).to_have_count(0)
    page.unroute("**/graphql")


def test_what_is_shown_stays_when_it_cannot_be_read_again(url, visit):
    page = visit(url, "#location/US/NE")
    expect(page.get_by_role("region", name="Children").get_by_role("link", name="Omaha")).to_be_visible()
    page.route("**/graphql", without_population)
    change = (
        'mutation { updateLocation(input: {node: {path: "US/NE/Alma"}, attributes: { city: { population: 9 }'
        " }}) { node { name } } }"
    )
    assert "errors" not in httpx.post(f"{url}/graphql", json={"query": change}).json()
    expect(page.get_by_role("main").get_by_role("alert").first).to_contain_text("A population cannot be represented.")
    expect(heading(page)).to_have_text("Nebraska")
    expect(page.get_by_role("region", name="Children").get_by_role("link", name="Omaha")).to_be_visible()
    expect(tree(page).get_by_role("treeitem", name="Omaha")).to_be_visible()
    page.unroute("**/graphql")
    page.get_by_role("region", name="Children").get_by_role("button", name="Try again").click()
    expect(page.get_by_role("region", name="Children").get_by_role("alert")).to_have_count(0)
