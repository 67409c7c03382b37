"""Map, bars and history of a node in a real browser."""

import gzip

import pytest
from playwright.sync_api import expect

from graph.server.pages import EXPLORER_FILES
from tests.graph.explorer.steps import EVIL, expect_at, heading, press, restore, write


def view_box(page):
    return [float(part) for part in page.get_attribute("figure > svg", "viewBox").split()]


def test_a_map_is_narrow_its_points_open_by_pointer_and_keys_the_largest_have_labels_and_bars_numbers(url, visit):
    page = visit(url, "#location/Sea")
    page.wait_for_selector(".map-land")
    expect(page.locator("circle")).to_have_count(3)  # of four places, of which one lies nowhere on Earth
    assert view_box(page)[2] < 30
    places = page.locator("circle").evaluate_all("all => all.map(one => +one.getAttribute('cx'))")
    assert 0 < places[-1] - places[0] < 10
    assert all(view_box(page)[0] < place < view_box(page)[0] + view_box(page)[2] for place in places)
    page.get_by_role("button", name="Whole world").click()
    assert view_box(page)[2] == 360
    assert page.locator("circle").evaluate_all("all => all.map(one => +one.getAttribute('cx'))") == [178, 179, 188]
    page.get_by_role("button", name="Whole world").click()
    page.locator("circle").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("circle:focus")).to_have_attribute("aria-label", EVIL)
    page.keyboard.press("End")
    expect(page.locator("circle:focus")).to_have_attribute("aria-label", "Samoa")
    assert page.locator("circle[tabindex='0']").count() == 1
    assert page.locator("figure img").count() == 0
    page.keyboard.press("Enter")
    expect_at(page, "Sea/3")
    assert view_box(page)[2] <= 20  # the surroundings of one place
    page.go_back()
    expect(heading(page)).to_have_text("Pacific")
    page.locator("circle").first.click()
    expect_at(page, "Sea/1")
    page.goto(f"{url}/#location/US/NE")
    expect(heading(page)).to_have_text("Nebraska")
    labels = page.locator("figure.map text")
    expect(labels.filter(has_text="Omaha")).to_have_count(1)
    assert 1 < labels.count() <= 15
    page.goto(f"{url}/#category/All")
    expect(page.locator("table.bars caption")).to_contain_text("logarithmic")
    assert page.locator("td.bars-count").all_inner_texts() == ["1001", "1"]
    widths = page.locator("table.bars rect").evaluate_all(
        "all => all.map(one => parseFloat(one.getAttribute('width')))"
    )
    assert 5 < widths[1] < widths[0] == 100


def test_the_outline_of_the_world_is_small_and_names_its_source():
    outline = EXPLORER_FILES.content("world.js")
    assert len(outline) < 40_000
    assert len(gzip.compress(outline)) < 15_000
    assert b"Natural Earth" in outline
    assert outline.count(b"M") > 300


@pytest.mark.thorough
def test_a_history_shows_differences_and_moves_and_restores_values(url, visit, country):
    for name in (EVIL, *(f"N{number}" for number in range(25))):
        write(url, "updateLocation", node=f"{country}/S", name=name)
    write(url, "moveLocation", node=f"{country}/S", key="T")
    write(url, "moveLocation", node=country, key=f"X{country}")
    page = visit(url, f"#location/X{country}/T")
    page.get_by_role("button", name="Show what changed").click()
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
    restore(page)
    assert page.locator(".write-plan dl").inner_text() == "Name\nN24 → State"
    press(page, "Write")
    expect(heading(page)).to_have_text("State")
    expect(entries.first).to_contain_text("NameN24 → State")
    assert page.locator("main img").count() == 0
