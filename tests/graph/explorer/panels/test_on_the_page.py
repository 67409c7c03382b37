"""Writing on the explorer's page itself: drag and drop, and what the page shows after a write."""

from playwright.sync_api import expect

from tests.graph.explorer.panels.steps import opened, press, preview, violations


def test_a_node_that_is_dropped_on_another_moves_after_its_preview(visit, data, country):
    data(
        """mutation ($key: String!) {
          createLocation(input: {key: $key, name: "Target", attributes: { country: {} }}) { node { id } } }""",
        key=f"Z{country}",
    )
    page = visit("write", country)
    page.goto(f"{page.url.partition('/panels')[0]}/#location/{country}/S/City")
    page.locator(".tree .name", has_text="State").drag_to(page.locator(".tree .name", has_text="Target"))
    page.wait_for_selector(".write-plan")
    assert f"{country}/S → Z{country}/S, with 1 descendant" in page.inner_text(".write-plan")
    assert violations(page) == []
    press(page, "Move")
    expect(page.locator("main code.path")).to_have_text(f"Z{country}/S")
    expect(page.get_by_role("heading", level=1)).to_have_text("State")
    assert data(f'{{ location(path: "Z{country}/S/City") {{ name }} }}') == {"location": {"name": "City"}}


def test_the_page_follows_what_was_created_restored_and_deleted(visit, country):
    page = visit("write", country)
    page.goto(f"{page.url.partition('/panels')[0]}/#location")
    opened(page, "Add root…")
    page.get_by_label("Key", exact=True).fill(f"N{country}")
    page.get_by_label("Name", exact=True).fill("New root")
    preview(page)
    press(page, "Create")
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("New root")
    opened(page, "Edit…")
    page.get_by_label("Name", exact=True).fill("Renamed")
    preview(page)
    press(page, "Write")
    expect(heading).to_have_text("Renamed")
    expect(page.get_by_role("treeitem", name="Renamed")).to_be_visible()
    page.locator(".toast").get_by_role("button", name="Undo").click()
    page.wait_for_selector(".write-plan")
    press(page, "Write")
    expect(page.locator(".toast")).to_contain_text(f"N{country} is changed.")
    expect(heading).to_have_text("New root")
    opened(page, "Edit…")
    page.get_by_label("Name", exact=True).fill("Renamed")
    preview(page)
    press(page, "Write")
    expect(heading).to_have_text("Renamed")
    page.get_by_role("button", name="Show what changed").click()
    page.get_by_role("button", name="Restore revision 1").click()
    page.wait_for_selector(".write-plan")
    press(page, "Write")
    expect(heading).to_have_text("New root")
    opened(page, "Delete…")
    preview(page)
    press(page, "Delete")
    expect(heading).to_have_text("Locations")
    expect(page.get_by_role("treeitem", name="New root")).to_have_count(0)
