"""A node and its children in one dialog: what it sends, and what it says and keeps of a batch that is refused."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.graph.explorer.steps import (
    EVIL,
    ask,
    children,
    discard,
    expect_at,
    fill,
    heading,
    line,
    opened,
    plan,
    press,
    preview,
    token,
    use_key,
    violations,
    write,
)  # fmt: skip

CHILDREN = """query ($path: Path!) { location(path: $path) { name revision children(first: 100) { nodes {
  key name level revision ... on City { population code } } } } }"""
QUOTED = f"{EVIL}'\"%"


def row(page, key):
    """The row of a child in a dialog."""
    return page.locator("dialog tbody tr").filter(has=page.get_by_text(key, exact=True))


def expect_said(field, text):
    expect(field).to_have_accessible_description(re.compile(re.escape(text)))


def sent_by(page, button):
    """The mutation that a click sends: its document and variables."""
    with page.expect_request(lambda request: "mutation" in (request.post_data or "")) as sent:
        press(page, button)
    return json.loads(sent.value.post_data).values()


def test_a_node_and_its_children_are_written_as_one_or_not_at_all_and_nothing_typed_is_lost(url, visit, country):
    state = f"{country}/S"
    cities = [
        {"create": {"parent": {"path": state}, "key": f"C{at:02}", "name": f"C {at}", "attributes": {"city": {}}}}
        for at in range(8)
    ]
    many = "mutation ($edits: [LocationEdit!]!) { editLocations(edits: $edits) { nodes { path } } }"
    ask(url, many, edits=cities)
    write(url, "createLocation", parent=f"{state}/C05", key="P", name="P", attributes={"postalCode": {}})
    page = visit(url, f"#location/{state}")
    opened(page, "Edit…")
    press(page, "Cities")
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("tbody tr")).to_have_count(9)
    row(page, "C01").get_by_label("Population").fill("12,50")
    press(page, "Delete C 2")
    expect(row(page, "C02")).to_contain_text("C 2 will be deleted, if it has no children.")
    press(page, "Delete C 5")
    row(page, "C03").get_by_label("Population").fill("-1")
    row(page, "C04").get_by_label("Population").fill("4")
    row(page, "C06").get_by_label("Name").fill("C 7")
    row(page, "C06").get_by_label("Name").fill("C 6")  # as it was: nothing is sent of it
    press(page, "Add city")
    key = page.get_by_label("Key", exact=True)
    expect(key).to_be_focused()
    press(page, "Preview")
    expect_said(key, "fill out")
    key.fill("City")
    dialog.locator("tbody tr").last.get_by_label("Name").fill(QUOTED)
    press(page, "Preview")
    expect_said(row(page, "C01").get_by_label("Population"), "“12,50” is no whole number.")
    row(page, "C01").get_by_label("Population").fill("1")
    fill_own(page, "State of it")
    press(page, "Preview")
    expect_said(row(page, "C03").get_by_label("Population"), "-1 is less than the minimum 0")
    expect_said(key, f"{state}/City already")
    expect(page.get_by_role("alert")).to_contain_text("C 5: ")
    expect(row(page, "C03").get_by_label("Population")).to_be_focused()
    assert violations(page, "dialog") == []
    press(page, "Keep C 5")
    expect(row(page, "C05").get_by_label("Name")).to_be_focused()
    row(page, "C03").get_by_label("Population").fill("3")
    key.fill("C02")  # which the deletion makes free
    document, variables = sent_by(page, "Preview")
    said = plan(page)
    for text in (f"{state}/C02 is deleted.", "Population\n– → 3", QUOTED, "6 nodes in 1 transaction"):
        assert text in said
    assert "editLocations" in document
    assert [(*edit, edit[next(iter(edit))].get("expectedRevision")) for edit in variables["edits"]] == [
        ("update", 1), ("delete", 1), ("update", 1), ("update", 1), ("update", 1), ("create", None)
    ]  # fmt: skip

    write(url, "updateLocation", node=f"{state}/C03", name="Theirs", attributes={"city": {"population": 7}})
    write(url, "deleteLocation", node=f"{state}/C04")
    press(page, "Write")
    said = page.get_by_role("alert")
    expect(said).to_contain_text("C 3: Somebody else wrote this meanwhile (Name: C 3 → Theirs; Population: – → 7).")
    expect(said).to_contain_text("C 4: There is no node")
    expect(row(page, "C03").get_by_label("Population")).to_have_value("3")
    press(page, "Undo C 4")
    assert "Population\n7 → 3" in preview(page)
    write(url, "updateLocation", node=state, name="Other state")
    press(page, "Write")
    expect(page.locator(".write-conflict")).to_contain_text("Other state")
    press(page, "Take theirs")
    fill_own(page, "State of it")
    assert "Other state → State of it" in preview(page)
    found = ask(url, CHILDREN, path=state)["location"]
    assert (found["name"], found["revision"], len(found["children"]["nodes"])) == ("Other state", 2, 8)
    press(page, "Write")
    expect(heading(page)).to_have_text("State of it")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Edit…")).to_be_focused()
    expect(line(page, QUOTED)).to_be_visible()
    expect(children(page).get_by_role("row", name=re.compile("Theirs C03 3"))).to_be_visible()
    found = ask(url, CHILDREN, path=state)["location"]
    nodes = {one["key"]: (one["name"], one["population"], one["revision"]) for one in found["children"]["nodes"]}
    assert (found["name"], found["revision"], len(nodes)) == ("State of it", 3, 8)
    assert {key: nodes.get(key) for key in ("C01", "C02", "C03", "C04", "C05")} == {
        "C01": ("C 1", 1, 2), "C02": (QUOTED, None, 1), "C03": ("Theirs", 3, 3), "C04": None, "C05": ("C 5", None, 1)
    }  # fmt: skip
    assert page.locator("img").count() == 0


def fill_own(page, name):
    page.get_by_role("dialog").get_by_label("Name", exact=True).first.fill(name)


def add(page, level, key):
    press(page, f"Add {level}")
    new = page.get_by_role("dialog").locator("tbody tr").last
    new.get_by_label("Key").fill(key)
    new.get_by_label("Name").fill(key)


@pytest.mark.thorough
def test_children_of_several_levels_limits_and_rights_of_one_form(url, visit, country):
    visit.expected.append("Failed to load resource")
    page = visit(url, "#category/All")
    opened(page, "Edit…")
    press(page, "Categories")
    expect(page.locator(".write-children > .write-hint")).to_contain_text("The first 100 of 1001 categories.")
    fill_own(page, "Everything")
    page.evaluate("document.querySelectorAll('tbody [aria-label^=Delete]').forEach((button) => button.click())")
    press(page, "Preview")
    expect(page.get_by_role("alert")).to_have_text(re.compile("101 changes are too many; undo some"))
    press(page, "Keep Number 00000")
    press(page, "Preview")
    expect(page.get_by_role("alert")).to_contain_text("Number 00001: All/Number 00001 has 1 child")
    discard(page)
    page.get_by_role("button", name="Show the query").click()
    expect(page.locator(".calls")).to_contain_text("editCategories(edits: $edits")

    page.goto(f"{url}/#location")
    opened(page, "Add root…")
    fill(page, Key=f"{country}/50%", Name="New")
    press(page, "States")
    add(page, "state", "S/1")
    press(page, "Cities")
    add(page, "city", "C")
    expect(page.get_by_role("button", name="States (1 changed)")).to_have_attribute("aria-pressed", "false")
    root = f"{country}%2F50%25"
    said = preview(page)
    for text in (f"{root} is created.", f"{root}/S%2F1 is created. Level: state.", "3 nodes in 1 transaction"):
        assert text in said
    press(page, "Create")
    expect_at(page, root)
    expect(children(page).get_by_role("row")).to_have_count(3)

    opened(page, "Add child…")
    press(page, "Counties")
    add(page, "county", "P")
    page.get_by_label("Level", exact=True).select_option("CITY")
    expect(page.get_by_role("button", name="Counties")).to_have_count(0)
    page.get_by_label("Level", exact=True).select_option("STATE")
    expect(page.get_by_role("dialog").get_by_label("Key", exact=True).last).to_have_value("P")
    discard(page)

    page.get_by_role("button", name="Key", exact=True).click()
    use_key(page, token("read:location", f"write:location/{root}/C"))
    opened(page, "Edit…")
    press(page, "Cities")
    row(page, "C").get_by_label("Name").fill("Newer")
    fill_own(page, "Newer")
    press(page, "Preview")
    expect(page.get_by_role("alert")).to_contain_text("write")
    expect(row(page, "C").get_by_label("Name")).to_have_value("Newer")
    fill_own(page, "New")
    document, variables = sent_by(page, "Preview")
    plan(page)
    assert "updateLocation" in document
    assert variables["input"]["name"] == "Newer"
    press(page, "Write")
    expect_at(page, root)
    expect(children(page).get_by_role("link", name="Newer")).to_be_visible()
