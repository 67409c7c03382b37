"""Unique values in the explorer: nodes that its search field finds by them, and faults of those that are taken."""

import json
import re
from enum import Enum

import pytest
from playwright.sync_api import expect

from clade import Date, Long, Node, Settings, attribute, create_app
from tests.graph.explorer.steps import SECRET, ask, expect_at, fill, heading, opened, planted, press, preview, write
from tests.serving import serving


class Colour(Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Stock(Node, hierarchy="stock", search="hierarchy"):
    """What a shop has."""


class Shelf(Stock, under=[None]):
    """A shelf."""


class Article(Stock, under=[Shelf]):
    """An article."""

    sku: str | None = attribute("SKU of the article.", unique=True)
    number: int | None = attribute("Its number.", unique=True)
    day: Date | None = attribute("The day that has its name.", unique=True)
    colour: Colour | None = attribute("Its colour.", unique=True)


class Variant(Stock, under=[Article]):
    """A variant of an article."""

    sku: str | None = attribute("SKU of the variant.", unique=True)


class Member(Node, hierarchy="member"):
    """Members, who are not searched by words."""


class Person(Member, under=[None]):
    """A person."""

    card_number: Long | None = attribute("The number of the card.", unique=True)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A server of two shelves with articles, and of one member."""
    store = planted(tmp_path_factory.mktemp("unique") / "clade.db", Stock, [])
    options = {"hierarchies": __name__, "cache_mb": 0, "jwt_secret": SECRET, "writes": "on"}
    with serving(create_app(Settings(store=store, **options))) as url:
        for key in ("East", "West"):
            write(url, "createStock", key=key, name=f"{key} 48", attributes={"shelf": {}})
        television = {"sku": "TV-48", "number": 48, "day": "2026-10-05", "colour": "RED"}
        for parent, key, level, values in (
            ("East", "T", "article", television), ("East", "U", "article", {"sku": "48"}), ("West", "V", "article", {}),
            ("East/T", "W", "variant", {"sku": "TV-48-W"}),
        ):  # fmt: skip
            write(url, "createStock", parent=parent, key=key, name=f"Item {key}", attributes={level: values})
        write(url, "createMember", key="A", name="Ada", attributes={"person": {"cardNumber": str(2**63 - 1)}})
        yield url


def expect_found(page, text, path):
    """A text, entered before anything is found, opens this node, which is not the one that is shown."""
    page.get_by_role("combobox").fill(text)
    page.get_by_role("combobox").press("Enter")
    expect_at(page, path)
    expect(page.get_by_role("combobox")).to_have_value("")


def test_the_search_field_opens_the_node_of_a_unique_value_and_lists_it_before_others(url, visit):
    page = visit(url, "#stock")
    field, options = page.get_by_role("combobox", name="Search"), page.get_by_role("option")
    said, below = page.locator(".popup [role=status]"), page.get_by_role("checkbox", name="Only below")
    expect(field).to_have_attribute("placeholder", "Search stocks, or enter SKU or Number or Day or Colour")
    for text, path in (("2026-10-05", "East/T"), (" TV-48-W ", "East/T/W"), ("RED", "East/T")):
        expect_found(page, text, path)
    field.fill("East")
    expect(options).to_have_text(["East 48 shelf "])
    expect_found(page, "TV-48-W", "East/T/W")  # and not what was found before
    with page.expect_request(lambda request: "query Lookup" in (request.post_data or "")) as sent:
        field.fill("48")
    asked = json.loads(sent.value.post_data)
    assert asked["variables"] == {"String": "48", "Int": 48}
    assert re.findall(r"(\w+)\((\w+): ", asked["query"]) == [
        ("article", "sku"), ("article", "number"), ("variant", "sku")
    ]  # fmt: skip
    found = ["Item U article, SKU East 48", "Item T article, Number East 48", "East 48 shelf ", "West 48 shelf "]
    expect(options).to_have_text(found)
    page.goto(f"{url}/#stock/West")
    expect(heading(page)).to_have_text("West 48")
    field.fill("TV-48")
    expect(options).to_have_text(["Item T article, SKU East 48"])
    below.check()
    expect(said).to_have_text("Nothing below West has words that begin with “TV-48”.")
    below.uncheck()
    field.press("Enter")
    expect_at(page, "East/T")
    for text in ("2026-02-30", "99999999999"):  # no values of any attribute but text
        field.fill(text)
        expect(said).to_have_text(f"Nothing has words that begin with “{text}”.")


@pytest.mark.thorough
def test_a_hierarchy_that_is_not_searched_has_the_field_for_its_unique_values(url, visit):
    page = visit(url, "#member")
    expect(page.get_by_role("combobox")).to_have_attribute("placeholder", "Enter Card number")
    for text in ("x", "9223372036854775808"):
        page.get_by_role("combobox").fill(text)
        expect(page.locator(".popup [role=status]")).to_have_text(f"Nothing has the Card number “{text}”.")
    expect_found(page, "9223372036854775807", "A")


@pytest.mark.thorough
def test_a_taken_value_is_a_fault_at_its_field_also_of_one_node_among_several(url, visit):
    page = visit(url, "#stock/West")
    opened(page, "Add child…")
    fill(page, Key="X", Name="X", SKU="TV-48", Number="48")
    press(page, "Preview")
    for label, value in (("SKU", "TV-48"), ("Number", "48")):
        expect_taken(page.get_by_label(label, exact=True), value, "East/T")
    fill(page, SKU="X", Number="1")
    preview(page)
    press(page, "Create")
    expect_at(page, "West/X")

    page.goto(f"{url}/#stock/West")
    expect(heading(page)).to_have_text("West 48")
    opened(page, "Edit…")
    press(page, "Articles")
    rows = page.locator("dialog tbody tr")
    for key, value in (("V", "X"), ("X", "48")):
        rows.filter(has=page.get_by_text(key, exact=True)).get_by_label("SKU").fill(value)
    press(page, "Preview")
    expect_taken(rows.filter(has=page.get_by_text("X", exact=True)).get_by_label("SKU"), "48", "East/U")
    expect(page.locator("dialog [aria-invalid=true]")).to_have_count(1)
    rows.filter(has=page.get_by_text("X", exact=True)).get_by_label("SKU").fill("Y")
    preview(page)
    press(page, "Write")
    expect_at(page, "West")
    found = ask(url, '{ stock(path: "West") { children { nodes { key ... on Article { sku } } } } }')["stock"]
    assert {one["key"]: one["sku"] for one in found["children"]["nodes"]} == {"V": "X", "X": "Y"}


def expect_taken(field, value, path):
    expect(field).to_have_accessible_description(re.compile(rf"{value} is the \w+ of {path}; choose another\."))
