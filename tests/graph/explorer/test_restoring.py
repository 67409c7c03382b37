"""Undo of deletions in the explorer: after a deletion, at the place of the node, and from the history."""

import re

import pytest
from playwright.sync_api import expect

from clade import Settings, create_app
from graph.hierarchies.locations import Location
from tests.graph.explorer.steps import (
    ask,
    children,
    expect_at,
    fill,
    heading,
    line,
    opened,
    plan,
    planted,
    press,
    preview,
    token,
    use_key,
    violations,
    write,
)  # fmt: skip
from tests.serving import serving

DELETIONS = "Deletions of the last 90 days"


def go_up(page):
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="Country").click()
    expect(heading(page)).to_have_text("Country")


def deletions(page):
    """The list of deletions in the history, which is opened."""
    if heading(page).inner_text() != "Locations":
        page.get_by_role("button", name="Show what changed").click()
    page.get_by_role("button", name=DELETIONS).click()
    return page.get_by_role("list", name=DELETIONS)


def test_deletions_are_undone_where_they_are_told_and_from_the_history(url, visit, country):
    restored_twice(url, visit(url, f"#location/{country}/S", is_live=True), country)


def restored_twice(url, page, country):
    """Restore a deleted state by the keyboard at its place, and once more from the history under another key."""
    state = f"{country}/S"
    opened(page, "Delete…")
    page.get_by_label("Delete", exact=True).select_option("CASCADE")
    preview(page)
    press(page, "Delete")
    expect(page.get_by_role("status").filter(has_text="Undo restores it, with all")).to_be_visible()
    press(page, "Undo…")
    assert f"{state} is restored, with 1 descendant.\n\n2 nodes in 1 transaction" in plan(page)
    press(page, "Cancel")
    expect_at(page, country)
    page.go_back()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text(f"{state} was deleted")
    alert.get_by_role("button", name="Restore…").press("Enter")
    plan(page)
    page.keyboard.press("Enter")
    expect_at(page, state)
    expect(heading(page)).to_be_focused()
    expect(children(page).get_by_role("link", name="City")).to_be_visible()
    expect(line(page, "State")).to_have_attribute("aria-selected", "true")
    expect(line(page, "State")).to_contain_text("1 city")

    write(url, "deleteLocation", node=state, policy="CASCADE")
    expect(alert).to_contain_text(re.compile(rf"{state} was deleted.* on \d+ "))
    alert.get_by_role("link", name=f"Go to {country}").click()
    expect(heading(page)).to_have_text("Country")
    entries = deletions(page).get_by_role("listitem")
    expect(entries).to_contain_text([f"{state} was deleted, with 1 descendant.", "it was restored since"])
    assert violations(page) == []
    write(url, "createLocation", parent=country, key="S", name="Another", attributes={"state": {}})
    expect(line(page, "Another")).to_be_visible()
    expect(page.get_by_role("button", name=f"Restore {state}")).to_have_count(1)
    page.get_by_role("button", name=f"Restore {state}").click()
    expect(page.get_by_label("Key", exact=True)).to_have_accessible_description(re.compile("already|exists"))
    fill(page, Key="T%/1")
    assert f"{state} is restored as T%/1, with 1 descendant." in preview(page)
    press(page, "Restore")
    expect_at(page, f"{country}/T%25%2F1")
    expect(line(page, "State")).to_have_attribute("aria-selected", "true")


@pytest.mark.thorough
def test_deletions_are_undone_at_another_place_beside_others_of_roots_and_not_by_readers(url, visit, country):
    state = f"{country}/S"
    page = visit(url, f"#location/{state}", is_live=True)
    restored_twice(url, page, country)
    place, city = f"{country}/T%25%2F1", f"{country}/T%25%2F1/City"
    node_id = ask(url, "query ($path: Path!) { location(path: $path) { id } }", path=place)["location"]["id"]
    go_up(page)
    write(url, "deleteLocation", node=city)
    write(url, "deleteLocation", node=place)
    deletions(page).get_by_role("button", name=f"Restore {city}").click()
    told = re.compile("is deleted as well; restore that first, or choose a new parent.")
    expect(page.get_by_label("New parent")).to_have_accessible_description(told)
    fill(page, New_parent=state)
    assert f"{city} is restored below {state}." in preview(page)
    press(page, "Restore")
    expect_at(page, f"{state}/City")
    go_up(page)
    deletions(page).get_by_role("button", name=f"Restore {place}").click()
    plan(page)
    write(url, "restoreLocation", id=node_id, key="U")
    press(page, "Restore")
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("There is no deleted node with the id")
    press(page, "Cancel")

    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="Locations").click()
    expect(heading(page)).to_have_text("Locations")
    write(url, "deleteLocation", node=country, policy="CASCADE")
    entry = deletions(page).get_by_role("listitem").filter(has_text=f"{country} was deleted")
    entry.get_by_role("button").click()
    assert f"{country} is restored, with 3 descendants." in plan(page)
    press(page, "Restore")
    expect_at(page, country)
    expect(page.get_by_role("treeitem", selected=True)).to_contain_text("Country")

    page.get_by_role("banner").get_by_role("button", name="Key").click()
    use_key(page, token("read:location"))
    expect(page.locator(".write-menu")).to_have_count(0)
    expect(deletions(page).get_by_role("listitem").first).to_contain_text(f"{country} was deleted")
    expect(page.get_by_role("button", name="Restore")).to_have_count(0)


@pytest.mark.thorough
def test_deletions_are_listed_in_pages_and_of_those_of_one_node_the_last_is_undone(url, visit, country):
    for key in ("Same", *(f"N{number}" for number in range(20)), "Same"):
        write(url, "createLocation", parent=country, key=key, name=key, attributes={"state": {}})
        node = f"{country}/{key}"
        node_id = ask(url, "query ($path: Path!) { location(path: $path) { id } }", path=node)["location"]["id"]
        write(url, "deleteLocation", node=node)
    write(url, "restoreLocation", id=node_id)
    write(url, "deleteLocation", node=node)
    page = visit(url, f"#location/{country}")
    listed, same = deletions(page), f"Restore {country}/Same"
    expect(listed.get_by_role("listitem")).to_have_count(20)
    expect(listed.get_by_role("button")).to_have_count(19)
    page.get_by_role("button", name="Older deletions").click()
    expect(listed.get_by_role("listitem")).to_have_count(23)
    expect(listed.get_by_role("button", name=same)).to_have_count(2)
    expect(listed.get_by_role("listitem").nth(1)).to_contain_text("it was restored since")
    expect(page.get_by_role("button", name="Older deletions")).to_have_count(0)


@pytest.mark.thorough
def test_a_large_restore_shows_its_progress_and_its_end(engine, visit):
    rows = [(["A"], "COUNTRY"), (["A", "S"], "STATE"), *((["A", "S", str(number)], "CITY") for number in range(60))]
    store = planted(engine.address("panels"), Location, rows)
    with serving(create_app(Settings(store=store, writes="on", request_seconds=2.5))) as url:
        page = visit(url, "#location/A/S")
        opened(page, "Delete…")
        page.get_by_label("Delete", exact=True).select_option("CASCADE")
        preview(page)
        press(page, "Delete")
        press(page, "Undo…")
        assert "A/S is restored, with 60 descendants." in plan(page)
        press(page, "Restore")
        expect(page.locator("#write-progress")).to_contain_text("of 61 nodes")
        expect_at(page, "A/S")
        expect(line(page, "S")).to_contain_text("60 cities")
        page.close()  # with its event stream, for which the server would wait
