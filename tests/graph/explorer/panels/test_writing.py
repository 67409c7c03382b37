"""Mutations by the explorer's dialogs: each after its dry run, with errors at their fields."""

import re

from playwright.sync_api import expect

from clade import Settings
from tests.graph.explorer.panels.app import make_app
from tests.graph.explorer.panels.steps import EVIL, SERVED, ended, opened, press, preview
from tests.serving import serving

CREATE = """mutation ($parent: Path!, $key: String!) {
  createLocation(input: {parent: {path: $parent}, key: $key, name: $key, attributes: { city: {} }}) { node { id } } }"""


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
    ended(page)
    page.evaluate("undo() && null")
    page.wait_for_selector(".write-plan")
    assert data(read, path=f"{country}/Newer") == {"node": None}
    press(page, "Create")
    assert ended(page) == f"{country}/Newer"
    assert data(read, path=f"{country}/Newer")["node"]["revision"] == 3
    assert page.locator("#panel img").count() == 0


def expect_refused_at(page, label, text, sentence):
    """A text in a field is refused there, before anything is sent."""
    sent = []

    def note(request):
        sent.append(request.url)

    page.on("request", note)
    field = page.get_by_label(label, exact=True)
    field.fill(text)
    press(page, "Preview")
    expect(field).to_have_accessible_description(re.compile(sentence))
    expect(field).to_be_focused()
    page.remove_listener("request", note)
    assert sent == []


def test_rules_of_attributes_are_checked_before_anything_is_sent(visit, data):
    data(
        'mutation { createPlace(input: {key: "rules", name: "Mall", attributes: { mall: { floors: 2 } }})'
        " { node { id } } }"
    )
    page = visit("write", "rules", more="&hierarchy=PLACE")
    opened(page, "Edit…")
    expect_refused_at(page, "Floors", "0", "greater than or equal to 1")
    expect_refused_at(page, "Floors", "10", "less than or equal to 9")
    expect_refused_at(page, "Floors", "2.5", "valid value")
    expect_refused_at(page, "Site", "example", "URL")
    expect_refused_at(page, "Name", "", "fill out")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Discard").click()
    opened(page, "Add child…")
    page.get_by_label("Key").fill("s")
    page.get_by_label("Name", exact=True).fill("Shop")
    expect_refused_at(page, "Owner (required)", "ada", "match the requested format")
    page.get_by_label("Owner (required)").fill("Ada")
    expect_refused_at(page, "Area", "0.25", "greater than or equal to 0.5")
    page.get_by_label("Area").fill("0.5")
    expect_refused_at(page, "Opened", "1989-12-31", "01/01/1990")
    page.get_by_label("Opened").fill("1990-01-01")
    preview(page)


def test_siblings_are_reordered(visit, data, country):
    for key in "AB":
        data(CREATE, parent=f"{country}/S", key=key)
    page = visit("write", f"{country}/S/B")
    opened(page, "Move…")
    page.get_by_label("Place").select_option("After a sibling")
    page.get_by_role("combobox", name="Sibling").press("ArrowDown")
    page.get_by_role("option", name="A city").click()
    press(page, "Preview")
    page.wait_for_selector(".write-plan")
    page.get_by_label("Place").select_option("First of its level")
    preview(page)
    press(page, "Move")
    ended(page)
    (listed,) = data(f'{{ location(path: "{country}/S") {{ children {{ nodes {{ key }} }} }} }}').values()
    assert [one["key"] for one in listed["children"]["nodes"]] == ["B", "A", "City"]


def test_a_path_is_completed_by_children_whose_keys_begin_as_typed(visit, data, country):
    for key in ("Oma", "Omaha", "Om/50%", "Lincoln"):
        data(CREATE, parent=f"{country}/S", key=key)
    page = visit("write", f"{country}/S/City")
    opened(page, "Move…")
    for typed, keys in (
        ("Om", ["Om%2F50%25", "Oma", "Omaha"]),
        ("Om%2f50%25", ["Om%2F50%25"]),
        ("", ["City", "Lincoln", "Om%2F50%25", "Oma", "Omaha"]),
    ):
        page.get_by_label("New parent").fill(f"{country}/S/{typed}")
        trails = page.get_by_role("option").locator(".trail")
        expect(trails).to_have_text([f"{country}/S/{key}" for key in keys])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_label("New parent")).to_have_value(f"{country}/S/City")
    page.get_by_label("New parent").fill("state")
    expect(page.locator("dialog .popup li").first).to_contain_text("State state Country")
    page.keyboard.press("Escape")
    expect(page.locator("dialog .popup li")).to_have_count(0)
    expect(page.get_by_role("dialog")).to_be_visible()


def test_errors_are_at_their_fields(visit, country):
    page = visit("write", f"{country}/S")
    opened(page, "Add child…")
    page.get_by_label("Key").fill("City")
    page.get_by_label("Level").select_option("CITY")
    page.get_by_label("Latitude").press_sequentially("1e")
    page.get_by_label("Name", exact=True).fill("x")
    press(page, "Preview")
    expect(page.get_by_label("Latitude")).to_have_accessible_description(re.compile("Please enter a number."))
    expect(page.get_by_label("Latitude")).to_be_focused()
    page.get_by_label("Latitude").fill("1")
    press(page, "Preview")
    expect(page.get_by_label("Key")).to_have_accessible_description(re.compile(f"{country}/S/City"))
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Discard").click()
    opened(page, "Delete…")
    press(page, "Preview")
    expect(page.get_by_role("combobox")).to_have_accessible_description(re.compile("has 1 child"))


def test_all_faults_of_an_input_are_shown_at_once_each_at_its_field(visit, country):
    page = visit("write", f"{country}/S")
    opened(page, "Add child…")
    page.get_by_label("Key").fill("City")
    page.get_by_label("Level").select_option("CITY")
    page.get_by_label("Name", exact=True).fill("x" * 17_000)
    press(page, "Preview")
    expect(page.get_by_label("Key")).to_have_accessible_description(re.compile(f"{country}/S/City"))
    expect(page.get_by_label("Name", exact=True)).to_have_accessible_description(re.compile("at most 16,384"))


def test_every_kind_of_attribute_is_written(visit, data):
    data(
        'mutation { createPlace(input: {key: "m", name: "Mall", attributes: { mall: { floors: 2 } }}) { node { id } } }'
    )
    page = visit("write", "m", more="&hierarchy=PLACE")
    opened(page, "Add child…")
    page.get_by_label("Key").fill("s")
    page.get_by_label("Name", exact=True).fill("Shop")
    expect_refused_at(page, "Owner (required)", "", "fill out")
    texts = {
        "Owner (required)": "Ada", "Site": "https://example.com/a",
        "Address": '{"street": "Main 1", "hours": [{"day": "MONDAY"}]}',
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
        "owner": "Ada", "site": "https://example.com/a", "area": "12.5", "opened": "2020-02-03",
        "checked": "2020-02-03T10:00:00Z", "codes": ["a", "b"], "weekday": "MONDAY",
        "rent": {"amount": "12.50", "currency": "EUR"}, "fees": [{"amount": "1"}],
        "address": {"street": "Main 1", "hours": [{"day": "MONDAY"}]},
        "greeting": {"texts": [{"language": "de", "text": "Hallo"}]},
    }  # fmt: skip


def test_nothing_is_offered_to_those_who_may_not_write(visit, country, writable):
    with serving(make_app(Settings(store=writable, hierarchies=SERVED))) as reading:
        page = visit("write", country, at=reading)
        expect(page.locator("#path")).to_have_text(country)
        assert page.get_by_role("button").count() == 0
        page = visit("history", country, at=reading)
        page.wait_for_selector(".history li")
        assert page.get_by_role("button", name="Restore").count() == 0
