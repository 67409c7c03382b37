"""What comes between a dry run and the end of its mutation: conflicts, lost responses and large moves."""

import re

import pytest
from playwright.sync_api import expect

from clade import Settings
from tests.graph.explorer.panels.app import make_app
from tests.graph.explorer.panels.steps import ask, created, ended, opened, press, preview, violations
from tests.serving import serving


def test_a_conflict_shows_what_the_other_wrote_and_keeps_both_changes(visit, data, country):
    page = visit("write", f"{country}/S")
    opened(page, "Edit…")
    page.get_by_label("Population").fill("6")
    preview(page)
    other = """mutation ($path: Path!) { updateLocation(input: {node: {path: $path}, name: "Theirs", names: [{
      language: "de", text: "Ihrer" }], attributes: { state: { population: 7 } }}) { node { id } } }"""
    data(other, path=f"{country}/S")
    press(page, "Write")
    rows = page.locator(".write-conflict tbody tr")
    expect(rows).to_have_text(["NameStateTheirs–", "Name (de)–Ihrer–", "Population5 7 6"])
    expect(page.get_by_role("alert")).to_contain_text("It was at revision 1, and is at revision 2 now.")
    assert violations(page) == []
    press(page, "Write mine again")
    page.wait_for_selector(".write-plan")
    assert page.locator(".write-plan dl").inner_text() == "Population\n7 → 6"
    press(page, "Write")
    ended(page)
    read = f'{{ state(path: "{country}/S") {{ name names {{ text }} population revision }} }}'
    assert data(read)["state"] == {"name": "Theirs", "names": [{"text": "Ihrer"}], "population": 6, "revision": 3}


def test_of_two_values_of_a_field_either_is_chosen(visit, data, country):
    page = visit("write", f"{country}/S")
    opened(page, "Edit…")
    page.get_by_label("Population").fill("6")
    page.get_by_label("Name", exact=True).fill("Mine")
    other = """mutation ($path: Path!) { updateLocation(input: {node: {path: $path}, name: "Theirs",
      attributes: { state: { population: 7 } }}) { node { id } } }"""
    data(other, path=f"{country}/S")
    press(page, "Preview")
    page.get_by_role("row", name="Name").get_by_role("radio", name="Theirs").check()
    press(page, "Write mine again")
    page.wait_for_selector(".write-plan")
    press(page, "Write")
    ended(page)
    read = f'{{ state(path: "{country}/S") {{ name population }} }}'
    assert data(read)["state"] == {"name": "Theirs", "population": 6}


def test_theirs_can_be_taken_also_where_they_moved_the_node(visit, data, country):
    page = visit("write", f"{country}/S")
    opened(page, "Rename…")
    page.get_by_label("Key").fill("T")
    data(f'mutation {{ moveLocation(input: {{node: {{path: "{country}/S"}}, key: "U"}}) {{ node {{ id }} }} }}')
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


LONG = "m" * 500


@pytest.fixture(scope="module")
def large(engine):
    """A server over DynamoDB with two states of 60 cities, whose moves are large ones."""
    rows = [("A", "COUNTRY"), ("B", "COUNTRY"), (f"B/{LONG}", "REGION"), ("A/S", "STATE"), ("A/T", "STATE")]
    rows += [(f"A/{state}/{number}", "CITY") for state in "ST" for number in range(60)]
    rows += [(f"A/T/{LONG}", "CITY"), (f"A/T/{LONG}/{'n' * 20}", "NEIGHBORHOOD")]
    store = created(engine.address("panels"), rows)
    with serving(make_app(Settings(store=store, writes="on", request_seconds=2.5))) as url:
        yield url


@pytest.mark.thorough
def test_large_moves_after_a_drop_show_their_previews_their_progress_and_their_ends(visit, large, monkeypatch):
    monkeypatch.setattr("store.edits.move.MAX_CHECKED_NODES", 10)  # more nodes are only looked at while they are copied
    pages = visit("move", "A/S", at=large, more="&to=B"), visit("move", "A/T", at=large, more=f"&to=B/{LONG}")
    for page, name, size in zip(pages, "ST", (60, 62), strict=True):
        page.get_by_role("button", name="Drop").click()
        page.wait_for_selector(".write-plan")
        assert re.search(f"A/{name} → B/.*{name}, with {size} descendants", page.inner_text(".write-plan"))
    assert ask(large, '{ location(path: "B/S") { path } }') == {"location": None}
    for page in pages:
        press(page, "Move")
    for page, size in zip(pages, (61, 63), strict=True):
        expect(page.locator("#write-progress")).to_contain_text(f"of {size} nodes")
    assert violations(pages[0]) == []
    assert ended(pages[0], seconds=30) == "B/S"
    assert ask(large, '{ location(path: "B/S") { childCount } }') == {"location": {"childCount": 60}}
    alert = pages[1].get_by_role("alert")
    expect(alert).to_contain_text("Nothing was changed.", timeout=30_000)
    expect(alert).to_contain_text("at most 32 and 1024 are allowed")
    pages[1].keyboard.press("Escape")
    assert ended(pages[1]) is None
    assert ask(large, '{ location(path: "A/T") { childCount } }') == {"location": {"childCount": 61}}
