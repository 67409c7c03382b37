"""Map, bars and history in a real browser, and how panels look."""

import gzip
import json

import pytest
from playwright.sync_api import expect

from tests.graph.explorer.panels.app import ASSETS
from tests.graph.explorer.panels.steps import EVIL, ended, opened, points, press, preview, violations


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
    expect(page.locator("figcaption")).to_contain_text("1000 places of 1200")


def test_the_outline_of_the_world_is_small_and_names_its_source():
    outline = (ASSETS / "world.js").read_bytes()
    assert len(outline) < 40_000
    assert len(gzip.compress(outline)) < 15_000
    assert b"Natural Earth" in outline
    assert outline.count(b"M") > 300


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


# -- history -----------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_history_shows_differences_and_moves_and_restores_values(visit, data, country):
    change = (
        "mutation ($path: Path!, $name: String!) { updateLocation(input: {node: {path: $path},"
        " name: $name}) { node { id } } }"
    )
    data(change, path=f"{country}/S", name=EVIL)
    for number in range(25):
        data(change, path=f"{country}/S", name=f"N{number}")
    data(f'mutation {{ moveLocation(input: {{node: {{path: "{country}/S"}}, key: "T"}}) {{ node {{ id }} }} }}')
    data(f'mutation {{ moveLocation(input: {{node: {{path: "{country}"}}, key: "X{country}"}}) {{ node {{ id }} }} }}')
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


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
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
