"""Filters of the explorer's tables in a real browser: menus with the values of columns, chips, and all below a node."""

import pytest
from playwright.sync_api import expect

from tests.browser import wait_until
from tests.graph.explorer.extremes import MAKERS, WARES
from tests.graph.explorer.steps import EVIL, children, go, heading, sort, violations, write

ALL = len(WARES)
MAKER = list(dict.fromkeys(MAKERS))


def funnel(page, column):
    return page.get_by_role("button", name=f"Filter by {column}", exact=True)


def menu(page, column):
    """The menu of a column, which is opened unless it is open."""
    if funnel(page, column).get_attribute("aria-expanded") != "true":
        funnel(page, column).click()
    return page.get_by_role("dialog", name=f"Filter by {column}", exact=True)


def values(page, column):
    return menu(page, column).get_by_role("listitem")


def choose(page, column, *texts):
    for text in texts:
        menu(page, column).get_by_role("checkbox", name=text).click()


def expect_found(page, count, *chips, of=ALL):
    """So many nodes of all are listed, and these are the filters."""
    status = page.locator(".list-bar [role=status]")
    expect(status).to_have_text(f"{count} of {of}" if chips else "")
    expect(page.get_by_role("list", name="Filters").get_by_role("button", name="Remove")).to_have_text(
        [f"{chip} ×" for chip in chips]
    )
    if count <= 20:
        expect(children(page).locator("tbody a")).to_have_count(count)


def test_a_menu_has_the_values_of_its_column_with_their_numbers_and_filters_by_them(url, visit):
    page = visit(url, "#thing/Shelf")
    maker = menu(page, "Maker")
    expect(maker).to_be_focused()
    expect(values(page, "Maker")).to_have_count(21)  # 20 and those without one
    expect(values(page, "Maker").first).to_have_text("Big 5")
    expect(values(page, "Maker").last).to_have_text("no value 4")
    maker.get_by_role("button", name=f"{len(MAKER) - 20} more…").click()
    expect(values(page, "Maker")).to_have_count(101)
    expect(maker).to_contain_text(f"and {len(MAKER) - 100} more values")
    choose(page, "Maker", EVIL)
    expect_found(page, 3, f"Maker: {EVIL}")
    choose(page, "Maker", "O'Neil", "(blank)", "Big")
    expect_found(page, 11, f"Maker: {EVIL}", 'Maker: O\'Neil & "Söhne"', "Maker: (blank)", "Maker: Big")
    expect(values(page, "Maker").filter(has_text="Big")).to_have_text("Big 5")  # whatever Maker is filtered by
    expect(values(page, "Maker").nth(20)).to_be_attached()
    assert violations(page, "main section:has(.list)") == []
    page.keyboard.press("Escape")
    expect(maker).to_have_count(0)
    expect(funnel(page, "Maker")).to_be_focused()
    expect(funnel(page, "Maker")).to_have_attribute("aria-expanded", "false")
    sort(page, "Price", "ascending")
    sort(page, "Price", "descending")
    expect(children(page).locator("tbody a").first).to_have_text("Ware 125")
    expect(children(page).locator("tbody a")).to_have_count(11)
    page.get_by_role("button", name="Remove the filter Maker: Big").click()
    expect_found(page, 6, f"Maker: {EVIL}", 'Maker: O\'Neil & "Söhne"', "Maker: (blank)")
    expect(page.locator("th[aria-sort]")).to_have_text("Price ↓")
    choose(page, "Sold", "yes")
    choose(page, "Sold", "no")
    expect(menu(page, "Sold").get_by_role("checkbox", checked=True)).to_have_count(1)
    expect_found(page, 3, f"Maker: {EVIL}", 'Maker: O\'Neil & "Söhne"', "Maker: (blank)", "Sold: no")
    go(page, "Numbers")
    page.go_back()
    expect(heading(page)).to_have_text("Shelf with wares")
    expect_found(page, ALL)
    expect(page.locator("th[aria-sort]")).to_have_count(0)
    assert page.evaluate("window.evil") is None
    assert page.locator("main img").count() == 0


@pytest.mark.thorough
def test_ranges_missing_values_and_lists_are_filtered_by_and_what_the_server_refuses_is_said(url, visit):
    page = visit(url, "#thing/Shelf")
    price = menu(page, "Price")
    expect(price).to_contain_text("0.50 to 125.50")
    price.get_by_label("From").fill(" 100.5 ")
    price.get_by_label("To", exact=True).fill("104.50")
    price.get_by_label("To", exact=True).press("Enter")
    expect_found(page, 5, "Price: 100.5 to 104.50")
    expect(price).to_contain_text("0.50 to 125.50")
    price.get_by_label("To", exact=True).fill("12,50")
    price.get_by_role("button", name="Apply").click()
    expect(children(page).get_by_role("alert")).to_contain_text("12,50")
    weight = menu(page, "Weight")
    expect(weight.get_by_role("alert")).to_contain_text("12,50")
    page.get_by_role("button", name="Clear the filter").click()
    expect_found(page, ALL)
    menu(page, "Weight").get_by_label("From").fill("1e3")
    menu(page, "Weight").get_by_role("button", name="Apply").click()
    expect(children(page)).to_contain_text("No node meets this.")
    expect_found(page, 0, "Weight: from 1000")
    expect(values(page, "Maker")).to_have_count(0)
    expect(menu(page, "Maker")).to_contain_text("There are no values.")
    page.get_by_role("button", name="Remove the filter").click()
    choose(page, "Maker", "no value")
    expect_found(page, 4, "Maker: no value")
    choose(page, "Tags", "blue", "red")
    expect_found(page, 1, "Maker: no value", "Tags: blue", "Tags: red")
    choose(page, "Tags", "red")
    expect(values(page, "Tags")).to_have_text(["blue 2", "red 1"])
    since = menu(page, "Since")
    since.get_by_label("From").fill("2026-01-02")
    since.get_by_label("From").press("Enter")
    expect_found(page, 1, "Maker: no value", "Tags: blue", "Since: from 2 Jan 2026")
    page.get_by_role("button", name="Clear the filter").click()
    page.get_by_role("button", name="All below").click()
    expect(page.get_by_role("columnheader", name="Path")).to_be_visible()
    choose(page, "Maker", "Big")
    expect_found(page, 6, "Maker: Big", of=ALL + 1)
    expect(children(page).get_by_role("link", name="Screw")).to_be_visible()
    page.get_by_role("group", name="List").get_by_role("button", name="Children").click()
    expect_found(page, 5, "Maker: Big")


def test_a_table_is_searched_together_with_its_filters(url, visit):
    page = visit(url, "#location/US")
    page.get_by_role("button", name="All below").click()
    field = page.get_by_role("searchbox", name="Search in this list")
    field.fill("  town 1 ")
    expect(page.locator(".list-bar [role=status]")).to_have_text("11 of 34")
    expect(children(page).locator("tbody a").first).to_have_text("Town 1")
    choose(page, "Level", "city")
    field.fill("-")
    expect_found(page, 33, "Level: city", of=34)
    field.fill("omaha")
    expect(children(page).locator("tbody a")).to_have_text(["Omaha", "Omaha Beach"])
    field.fill("'<xq>")
    expect(children(page)).to_contain_text("No node meets this.")
    page.get_by_role("button", name="Clear the filter").click()
    expect(field).to_have_value("")
    expect_found(page, 34)


@pytest.mark.thorough
def test_late_answers_change_nothing_and_an_open_menu_counts_what_others_write(url, visit, country):
    write(url, "createLocation", parent=country, key="T", name="Other", attributes={"state": {"population": 6}})
    page, held = visit(url, f"#location/{country}", is_live=True), []
    expect(values(page, "Population")).to_have_text(["5 1", "6 1"])
    write(url, "updateLocation", node=f"{country}/T", attributes={"state": {"population": 5}})
    expect(values(page, "Population")).to_have_text(["5 2"])
    page.route(
        "**/graphql", lambda route: held.append(route) if "query C" in route.request.post_data else route.continue_()
    )
    choose(page, "Population", "5")
    wait_until(page, lambda: len(held) == 2)  # the list and the menu
    expect(children(page)).to_have_attribute("aria-busy", "true")
    expect(children(page).locator("tbody a")).to_have_count(2)
    page.get_by_role("button", name="Clear the filter").click()
    for route in held:
        route.continue_()
    page.unroute("**/graphql")
    expect(children(page)).to_have_attribute("aria-busy", "false")
    expect(page.get_by_role("list", name="Filters")).to_have_count(0)
    expect(values(page, "Population")).to_have_text(["5 2"])
