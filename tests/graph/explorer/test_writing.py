"""Mutations by the explorer's dialogs: each after its dry run, with errors at their fields, conflicts and ends."""

import re

import pytest
from playwright.sync_api import expect

from clade import Settings, create_app
from graph.hierarchies.locations import Location
from tests.browser import wait_until
from tests.graph.explorer.extremes import BEYOND_DOUBLES, LEAST, MOST, NUMBERS
from tests.graph.explorer.steps import (
    EVIL,
    ask,
    discard,
    expect_at,
    fill,
    heading,
    line,
    opened,
    plan,
    planted,
    press,
    preview,
    restore,
    violations,
    write,
)  # fmt: skip
from tests.serving import serving

READ = """query ($path: Path!) { node: location(path: $path) { name names { language text } revision
  ... on City { population } ... on State { population } } }"""


def test_a_node_is_created_edited_restored_renamed_moved_and_deleted_each_after_its_preview(url, visit, country):
    page = visit(url, f"#location/{country}")
    opened(page, "Add child…")
    page.get_by_label("Level", exact=True).select_option("CITY")
    expect_told_at(
        page,
        Population=("12,50", "“12,50” is no whole number."),
        Latitude=("1e", "“1e” is no number; write one such as 12.5."),
    )
    fill(page, Latitude="")
    page.get_by_role("button", name="Add a language").click()
    fill(page, Key="New", Name=EVIL, Population="12", Language="de", Text_in_de="Neu")
    path = f"{country}/New"
    assert f"{path} is created. Level: city." in preview(page)
    assert page.inner_text(".write-plan dl").split("\n") == ["Name", EVIL, "Name (de)", "Neu", "Population", "12"]
    assert ask(url, READ, path=path) == {"node": None}
    press(page, "Create")
    expect_at(page, path)
    new = {"name": EVIL, "names": [{"language": "de", "text": "Neu"}], "population": 12, "revision": 1}
    assert ask(url, READ, path=path) == {"node": new}

    opened(page, "Edit…")
    fill(page, Population="", Name="Renamed")
    page.get_by_role("button", name="Remove de").click()
    assert "Population\n12 → –" in preview(page)
    press(page, "Write")
    expect(heading(page)).to_have_text("Renamed")
    expect(page.get_by_role("button", name="Edit…")).to_be_focused()
    expect(line(page, "Renamed")).to_be_visible()
    edited = {"name": "Renamed", "names": [], "population": None, "revision": 2}
    assert ask(url, READ, path=path)["node"] == edited
    page.get_by_role("button", name="Show what changed").click()
    restore(page)
    press(page, "Write")
    expect(heading(page)).to_have_text(EVIL)
    assert ask(url, READ, path=path)["node"] == new | {"revision": 3}
    expect(page.get_by_role("heading", name="History")).to_be_focused()

    opened(page, "Rename…")
    fill(page, Key="Newer")
    assert f"{path} → {country}/Newer" in preview(page)
    press(page, "Rename")
    expect_at(page, f"{country}/Newer")
    opened(page, "Move…")
    fill(page, New_parent=f"{country}/S")
    assert f"{country}/Newer → {country}/S/Newer" in preview(page)
    press(page, "Move")
    path = f"{country}/S/Newer"
    expect_at(page, path)
    # Where the page hears of the move before the answer comes, it is there already, and the button keeps the focus.
    opener = page.get_by_role("button", name="Move…")
    expect(page.locator(":focus").and_(heading(page).or_(opener))).to_be_visible()

    opened(page, "Delete…")
    assert f"{path} is deleted." in preview(page)
    assert page.inner_text(".write-plan dl").split("\n") == ["Name", EVIL, "Name (de)", "Neu", "Population", "12"]
    press(page, "Delete")
    press(page, "Undo…")
    assert f"{path} is restored." in plan(page)
    assert ask(url, READ, path=path) == {"node": None}
    press(page, "Restore")
    expect_at(page, path)
    assert ask(url, READ, path=path)["node"]["revision"] == 4
    opened(page, "Delete…")
    preview(page)
    press(page, "Delete")
    press(page, "Close")
    expect_at(page, f"{country}/S")
    expect(heading(page)).to_be_focused()
    expect(line(page, EVIL)).to_have_count(0)
    assert page.locator("img").count() == 0


@pytest.mark.thorough
def test_a_path_is_completed_as_typed_siblings_are_reordered_and_what_is_dropped_on_a_node_moves(url, visit, country):
    write(url, "createLocation", key=f"Z{country}", name=f"Z{country}", attributes={"country": {}})
    for key in ("Oma", "Omaha", "Om/50%", "Lincoln"):
        write(url, "createLocation", parent=f"{country}/S", key=key, name=key, attributes={"city": {}})
    page = visit(url, f"#location/{country}/S/Oma")
    opened(page, "Move…")
    for typed, keys in (
        ("Om", ["Om%2F50%25", "Oma", "Omaha"]),
        ("Om%2f50%25", ["Om%2F50%25"]),
        ("", ["City", "Lincoln", "Om%2F50%25", "Oma", "Omaha"]),
    ):
        fill(page, New_parent=f"{country}/S/{typed}")
        options = "[...document.querySelectorAll('dialog datalist option')].map((one) => one.value)"
        wait_until(page, lambda: page.evaluate(options) == [f"{country}/S/{key}" for key in keys])  # noqa: B023
    discard(page)
    opened(page, "Reorder…")
    page.get_by_label("Place").select_option("After")
    page.get_by_label("Sibling").select_option(f"{country}/S/Lincoln")
    assert f"{country}/S/Oma comes after {country}/S/Lincoln." in preview(page)
    page.get_by_label("Place").select_option("First")
    assert f"{country}/S/Oma becomes the first of its siblings." in preview(page)
    press(page, "Reorder")
    expect_at(page, f"{country}/S/Oma")
    state = ask(url, f'{{ location(path: "{country}/S") {{ children {{ nodes {{ key }} }} }} }}')["location"]
    assert [one["key"] for one in state["children"]["nodes"]] == ["Oma", "City", "Lincoln", "Om/50%", "Omaha"]
    line(page, "State").locator(".name").drag_to(line(page, f"Z{country}").locator(".name"))
    assert f"{country}/S → Z{country}/S, with 5 descendants" in plan(page)
    press(page, "Move")
    expect_at(page, f"Z{country}/S")
    assert ask(url, READ, path=f"Z{country}/S/City")["node"]["name"] == "City"


# -- fields ------------------------------------------------------------------------------------------------------------


def expect_marked(field, fault):
    """A field has a fault by the browser's rules, whose sentence is at the field, which has the focus."""
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")
    has_fault, sentence = field.evaluate("(field, name) => [field.validity[name], field.validationMessage]", fault)
    assert has_fault
    assert sentence
    expect(field).to_have_accessible_description(re.compile(re.escape(sentence)))


def expect_refused_at(page, label, text, fault, **rule):
    """A text in a field, whose attributes have the rule, is refused there, before anything is sent."""
    sent = []

    def note(request):
        sent.append(request.url)

    page.on("request", note)
    field = page.get_by_label(label, exact=True)
    field.fill(text)
    press(page, "Preview")
    expect_marked(field, fault)
    for name, value in rule.items():
        expect(field).to_have_attribute(name, value)
    page.remove_listener("request", note)
    assert sent == []


def expect_told_at(page, **faults):
    """Texts in fields, by label, are as they were typed after a preview that says what is wrong with each."""
    fill(page, **{label: text for label, (text, _) in faults.items()})
    press(page, "Preview")
    for label, (text, said) in faults.items():
        expect(page.get_by_label(label, exact=True)).to_have_accessible_description(re.compile(said))
        expect(page.get_by_label(label, exact=True)).to_have_value(text)


@pytest.mark.thorough
def test_every_kind_of_attribute_is_written_and_what_is_refused_stays_as_it_was_typed(url, visit):
    visit.expected.append("Failed to load resource")  # of addresses that the server refuses
    page = visit(url, "#place/Mall")
    opened(page, "Edit…")
    expect_told_at(page, Floors=("0", "0 is less than the minimum 1"))
    expect_told_at(page, Floors=("2.5", "“2.5” is no whole number."))
    expect_refused_at(page, "Site", "example", "typeMismatch", type="url")
    expect_refused_at(page, "Name", "", "valueMissing")
    fill(page, Site="", Name="Other", Floors="2")
    press(page, "Shops")
    checked = page.locator("dialog tbody tr").first.get_by_label("Checked")
    checked.fill("soon")
    press(page, "Preview")
    expect(checked).to_have_accessible_description(re.compile("soon"))
    discard(page)
    opened(page, "Delete…")
    press(page, "Preview")
    expect(page.get_by_label("Delete", exact=True)).to_have_accessible_description(re.compile("has 2 children"))
    press(page, "Cancel")
    opened(page, "Add child…")
    expect(page.get_by_role("heading", name="Children")).to_have_count(1)  # of the page: shops have none
    fill(page, Key="s", Name="Shop")
    expect_refused_at(page, "Owner (required)", "", "valueMissing")
    expect_refused_at(page, "Owner (required)", "ada", "patternMismatch")
    texts = {
        "Owner (required)": "Ada", "Site": "https://example.com/a",
        "Address": '{"street": "Main 1", "hours": [{"day": "MONDAY"}]}',
        "Rent": "12.50", "Currency": "EUR", "Fees": '[{"amount": "1", "currency": "EUR"}]', "Area": "12.5",
        "Opened": "2020-02-03", "Checked": "2020-02-03T10:00:00Z", "Codes": "a\nb",
    }  # fmt: skip
    for label, text in texts.items():
        page.get_by_label(label, exact=True).fill(text)
    expect_told_at(page, Area=("12,50", '"12,50" is not a number'), Rent=("1,5", '"1,5" is not a number'))
    expect_told_at(page, Area=("0.25", "0.25.* is less than the minimum 0.5"))
    fill(page, Area="12.5", Rent="12.50")
    expect_refused_at(page, "Opened", "1989-12-31", "rangeUnderflow", min="1990-01-01")
    page.get_by_label("Opened", exact=True).press("Delete")  # the month alone
    press(page, "Preview")
    expect_marked(page.get_by_label("Opened", exact=True), "badInput")
    fill(page, Opened="2020-02-03")
    page.get_by_label("Weekday", exact=True).select_option("MONDAY")
    greeting = page.get_by_role("group", name="Greeting")
    greeting.get_by_role("button").click()
    greeting.get_by_label("Language", exact=True).fill("de")
    greeting.get_by_label("Text in de").fill("Hallo")
    greeting.get_by_role("button", name="Add").click()
    greeting.get_by_label("Text in this language").fill("x" * 21)
    press(page, "Preview")
    expect(greeting.get_by_role("alert")).to_contain_text('"" is not a language tag')
    greeting.get_by_role("button", name="Remove this row").click()
    for address, said in (
        ('{"street": "Lane 1", "town": "Omaha"}', "There is no “town” here."),
        ('{"street": "Lane 1", "hours": [{"day": "FUNDAY"}]}', "“FUNDAY” is none of the values that are allowed."),
    ):
        fill(page, Address=address)
        press(page, "Preview")
        expect(page.locator(".write-error")).to_have_text(said)
    fill(page, Address='{"street": "Lane 1", "postcode": "x"}', Codes="a\nB")
    press(page, "Preview")
    for label, said in (("Address", '"x" does not match'), ("Codes", '"B" does not match')):
        expect(page.get_by_label(label, exact=True)).to_have_accessible_description(re.compile(said))
    fill(page, Address=texts["Address"], Codes=texts["Codes"])
    expect_told_at(page, Key=("Ada", "Mall/Ada"))
    fill(page, Key="s")
    preview(page)
    assert page.inner_text(".write-plan dl").split("\n") == [
        "Name", "Shop", "Site", "https://example.com/a", "Greeting", "de: Hallo", "Owner", "Ada",
        "Address", "street: Main 1; hours: day: MONDAY", "Rent", "12.50 EUR", "Fees", "1 EUR", "Area", "12.5",
        "Opened", "3 Feb 2020", "Checked", "3 Feb 2020, 10:00", "Codes", "a, b", "Weekday", "monday",
    ]  # fmt: skip
    press(page, "Create")
    expect_at(page, "Mall/s")
    opened(page, "Edit…")
    press(page, "Preview")
    expect(page.get_by_role("alert")).to_have_text("Nothing is changed yet.")
    (shop,) = ask(
        url,
        """{ shop(path: "Mall/s") { owner site area opened checked codes weekday rent { amount currency }
          fees { amount } address { street hours { day } } greeting { texts { language text } } } }""",
    ).values()
    assert shop == {
        "owner": "Ada", "site": "https://example.com/a", "area": "12.5", "opened": "2020-02-03",
        "checked": "2020-02-03T10:00:00Z", "codes": ["a", "b"], "weekday": "MONDAY",
        "rent": {"amount": "12.50", "currency": "EUR"}, "fees": [{"amount": "1"}],
        "address": {"street": "Main 1", "hours": [{"day": "MONDAY"}]},
        "greeting": {"texts": [{"language": "de", "text": "Hallo"}]},
    }  # fmt: skip


# -- between a dry run and the end of its mutation ---------------------------------------------------------------------


READ_NUMBERS = "query ($path: Path!) { part(path: $path) { serial serials count { number numbers } name revision } }"


def test_a_conflict_shows_and_keeps_both_changes_with_all_digits_of_64_bit_integers_and_is_written_once(url, visit):
    page = visit(url, "#thing/Numbers")
    for text in ("9,007,199,254,740,993", "-9,223,372,036,854,775,808", "9,223,372,036,854,775,807"):
        expect(page.locator(".attributes")).to_contain_text(text)
    opened(page, "Edit…")
    serial, dialog = page.get_by_label("Serial", exact=True), page.get_by_role("dialog")
    expect(serial).to_have_value(str(BEYOND_DOUBLES))
    expect_told_at(page, Serial=(str(MOST + 1), f'"{MOST + 1}" is out of range'))
    fill(page, Serial=str(BEYOND_DOUBLES + 2), Serials=f"{LEAST + 1}\n{MOST - 1}")
    assert "9,007,199,254,740,993 → 9,007,199,254,740,995" in preview(page)
    theirs = {"serial": str(MOST), "serials": [str(LEAST)], "count": {"number": str(MOST), "numbers": [str(LEAST)]}}
    names = [{"language": "de", "text": "Ihrer"}]
    write(url, "updateThing", node="Numbers", name="Theirs", names=names, attributes={"part": theirs})
    press(page, "Write")
    rows = dialog.locator(".write-conflict tbody tr")
    expect(rows.first).to_have_text("NameNumbersTheirs–")
    expect(rows.nth(1)).to_have_text("Name (de)–Ihrer–")
    row = rows.filter(has=page.get_by_role("rowheader", name="Serial", exact=True))
    expect(row).to_have_text("Serial9,007,199,254,740,9939,223,372,036,854,775,8079,007,199,254,740,995")
    expect(page.get_by_role("alert")).to_contain_text("It was at revision 1, and is at revision 2 now.")
    assert violations(page) == []
    press(page, "Write mine again")
    assert "9,223,372,036,854,775,807 → 9,007,199,254,740,995" in plan(page)
    assert "Theirs" not in page.locator(".write-plan dl").inner_text()

    def lose(route):
        if "mutation" not in route.request.post_data:  # what the other wrote is read meanwhile
            return route.continue_()
        route.fetch()  # the server has written
        return route.abort()

    visit.expected.append("Failed to load resource")
    page.route("**/graphql", lose)
    press(page, "Write")
    expect(page.get_by_role("alert")).to_contain_text("It is not certain whether this was written.")
    page.unroute("**/graphql")
    press(page, "Send again")
    expect(dialog).to_have_count(0)
    assert ask(url, READ_NUMBERS, path="Numbers")["part"] == {
        "serial": BEYOND_DOUBLES + 2, "serials": [LEAST + 1, MOST - 1], "count": {"number": MOST, "numbers": [LEAST]},
        "name": "Theirs", "revision": 3,  # what is sent again is written once
    }  # fmt: skip
    page.get_by_role("button", name="Show what changed").click()
    restored = restore(page)
    assert "9,007,199,254,740,995 → 9,007,199,254,740,993" in restored
    assert "-9,223,372,036,854,775,808, 9,223,372,036,854,775,807" in restored
    press(page, "Write")
    expect(dialog).to_have_count(0)
    found = ask(url, READ_NUMBERS, path="Numbers")["part"]
    assert {name: found[name] for name in NUMBERS} == NUMBERS


@pytest.mark.thorough
def test_a_node_that_was_moved_meanwhile_is_changed_where_it_is_and_not_what_came_to_its_place(url, visit, country):
    page = visit(url, f"#location/{country}/S")
    opened(page, "Rename…")
    fill(page, Key="T")
    write(url, "moveLocation", node=f"{country}/S", key="U")
    write(url, "createLocation", parent=country, key="S", name="Another", attributes={"state": {}})
    press(page, "Preview")
    press(page, "Rename")
    expect_at(page, f"{country}/T")
    expect(heading(page)).to_have_text("State")
    assert ask(url, f'{{ location(path: "{country}/S") {{ name }} }}')["location"] == {"name": "Another"}


@pytest.mark.thorough
def test_a_large_move_shows_its_progress_and_its_end(engine, visit):
    rows = [(["A"], "COUNTRY"), (["B"], "COUNTRY"), (["A", "S"], "STATE")]
    rows += [(["A", "S", str(number)], "CITY") for number in range(60)]
    store = planted(engine.address("panels"), Location, rows)
    with serving(create_app(Settings(store=store, writes="on", request_seconds=2.5))) as url:
        page = visit(url, "#location/A/S")
        opened(page, "Move…")
        fill(page, New_parent="B")
        assert "A/S → B/S, with 60 descendants" in preview(page)
        press(page, "Move")
        expect(page.locator("#write-progress")).to_contain_text("of 61 nodes")
        expect_at(page, "B/S")
        assert ask(url, '{ location(path: "B/S") { childCount } }') == {"location": {"childCount": 60}}
        page.close()  # with its event stream, for which the server would wait
