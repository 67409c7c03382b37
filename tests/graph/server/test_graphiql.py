"""GraphiQL in a real browser under its strict policy."""

import json

import pytest
from playwright.sync_api import expect

from graph.auth.authentication import Authenticator
from graph.hierarchies.examples import Example
from resolvers.access.callers import ANYONE
from tests.browser import Visit, wait_until
from tests.graph.small_app import SmallStore, small_app
from tests.selection import thorough
from tests.serving import serving

EDITOR = ".graphiql-query-editor .CodeMirror"
VARIABLES = ".graphiql-editor-tool .CodeMirror:visible"
RESPONSE = ".result-window .CodeMirror"
PHONES = [{"width": 390, "height": 844}, {"width": 320, "height": 568}]


EXAMPLES = [
    Example("Boxes", "query Boxes { box { name } }"),
    Example("Hello", "query Hello($name: String!) { hello(name: $name) }", {"name": "tab"}),
]


async def examples():
    return EXAMPLES


class AnyKey:
    """Accepts every API key, since it matters what the page sends."""

    async def caller(self, text):
        return ANYONE


@pytest.fixture(scope="module")
def url():
    with serving(small_app(SmallStore(), examples=examples, authenticator=Authenticator(AnyKey()))) as url:
        yield url


@pytest.fixture
def page(browser, url):
    """GraphiQL, opened; at the end nothing was asked of another host, and nothing was refused by the policy."""
    visit = Visit(browser)
    # GraphiQL keeps its tabs, and writes them late.
    page = visit.page(viewport={"width": 1400, "height": 850}, apart=True)
    with page.expect_response(lambda answer: answer.request.method == "POST"):  # the schema
        page.goto(f"{url}/graphql")
    page.wait_for_selector(EDITOR)
    yield page
    visit.close()
    assert visit.asked_elsewhere(url) == []
    assert visit.complaints == []


def write_into(page, editor, text):
    """Replaces the text of an editor by another one at once, since a busy machine takes seconds for typing it."""
    page.locator(editor).click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)


def write_query(page, text, *operations):
    """Writes a query, and waits until GraphiQL, which waits for a pause, has noticed its operations."""
    write_into(page, EDITOR, text)
    notice(page, text, *(operations or ["A"]))


def notice(page, text, *operations):
    """Waits until GraphiQL knows the operations in its editor."""
    editor = f"document.querySelector('{EDITOR}').CodeMirror"
    names = f"{editor}.getValue().startsWith({text!r}) && {editor}.operations?.map((one) => one.name.value)"
    wait_until(page, lambda: page.evaluate(names) == list(operations))


def response(page):
    return page.locator(RESPONSE)


def test_a_query_is_typed_with_completion_run_with_a_key_once_there_is_one_and_answered_with_what_it_cost(page):
    footer, calls = page.get_by_role("status"), page.get_by_role("list", name="Calls of the store")
    expect(footer).to_have_text("Reads: none yet")
    write_into(page, EDITOR, "")
    page.keyboard.type("query A { hel")
    notice(page, "query A { hel", "A")
    page.locator(".CodeMirror-hint", has_text="hello").first.wait_for()
    page.keyboard.press("Enter")
    page.locator(".CodeMirror-hints").wait_for(state="detached")
    with page.expect_request("**/graphql") as without:
        page.keyboard.press("Control+Enter")
    assert "authorization" not in without.value.headers  # a placeholder is in the header editor, which is closed
    assert without.value.headers["clade-reads"] == "2"
    response(page).get_by_text('"Hello world!"').wait_for()
    response(page).get_by_text('"reads"').wait_for()
    assert '"items": 7' in response(page).inner_text()
    expect(footer).to_have_text("Reads: requests 2, rounds 1, items 7, units 1")
    summary = page.get_by_text("10 calls; from the cache: 4 pages, 9 records")
    summary.wait_for()
    expect(calls).to_be_hidden()
    assert "calls" not in response(page).inner_text()
    summary.click()
    assert calls.get_by_role("listitem").all_inner_texts() == [
        'Round 1: BatchGetItem of table, 5 items, 0.5 units\npk = "box" AND sk = "#"\npk = "box" AND sk = "#"\n'
        "and 3 more keys",
        'Round 1: Query of by_parent, limit 21, 2 items, 0.5 units\nparent = "box#"',
        "8 more calls",
    ]
    write_query(page, "query A { nothing }")
    page.locator(".CodeMirror-lint-mark-error").first.wait_for()  # before it is sent
    page.keyboard.press("Control+Enter")
    expect(footer).to_have_text("Reads: none yet")
    expect(page.locator(".clade-footer summary")).to_have_count(0)
    assert not page.locator(".graphiql-editor-tool .CodeMirror:visible", has_text="Authorization").is_visible()
    page.get_by_role("button", name="Headers").click()
    expect(page.locator(VARIABLES)).to_contain_text('"Authorization": "Bearer clade_…"')
    write_into(page, VARIABLES, '{"authorization": "Bearer clade_key"}')
    with page.expect_request("**/graphql") as sent:
        page.get_by_label("Execute query (Ctrl-Enter)").click()
    assert sent.value.headers["authorization"] == "Bearer clade_key"


@pytest.mark.thorough
def test_it_opens_with_a_tab_for_each_example_and_every_dialog_and_menu_and_fits_on_a_phone(page):
    assert page.locator(".graphiql-tab-button").all_inner_texts() == ["Boxes", "Hello"]
    page.get_by_role("button", name="Hello", exact=True).click()
    page.locator(VARIABLES, has_text='"name": "tab"').wait_for()
    notice(page, "query Hello", "Hello")
    page.get_by_label("Execute query (Ctrl-Enter)").click()
    response(page).get_by_text('"Hello tab!"').wait_for()
    for dialog in ("Open settings dialog", "Open short keys dialog"):
        page.get_by_label(dialog).click()
        page.locator("[role=dialog]:focus-within").wait_for()  # since then it listens to keys
        page.keyboard.press("Escape")
        page.get_by_role("dialog").wait_for(state="detached")
    write_query(page, "query A { hello } query B { hello }", "A", "B")
    page.locator("[aria-label='Execute query (Ctrl-Enter)'][aria-haspopup]").click()
    page.get_by_role("menuitem", name="B").click()
    response(page).get_by_text('"Hello world!"').wait_for()
    page.get_by_text("The schema's documentation").click()
    expect(page.get_by_text("Root Types")).to_be_in_viewport()
    page.locator(".graphiql-doc-explorer").get_by_text("Query", exact=True).click()
    page.get_by_text("Says hello, some times.").wait_for()
    page.get_by_label("Go back to Docs").click()
    page.get_by_label("Hide Documentation Explorer").click()
    write_query(page, "query A { hello(times: 20) }")
    for size in PHONES[: 1 + thorough()]:  # the editor is above the answer, and everything can be reached
        page.set_viewport_size(size)
        page.get_by_label("Execute query (Ctrl-Enter)").click()
        expect(response(page).get_by_text('"Hello world! ')).to_be_in_viewport()
        for part in (page.locator(EDITOR), response(page), page.get_by_role("status")):
            expect(part).to_be_in_viewport(ratio=1)
        bars = page.locator(".graphiql-sidebar, .graphiql-toolbar, .graphiql-editor-tools")
        for button in bars.get_by_role("button").all():
            expect(button).to_be_in_viewport(ratio=1)
            button.click(trial=True)  # nothing covers it
        above, below = page.locator(EDITOR).bounding_box(), response(page).bounding_box()
        assert above["y"] + above["height"] <= below["y"]
        assert min(above["width"], below["width"]) > page.viewport_size["width"] * 0.8
        assert min(above["height"], below["height"]) > 70, "some lines can be read"
        assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]
        page.get_by_text("The schema's documentation").click()
        expect(page.locator(".graphiql-doc-explorer")).to_be_in_viewport(ratio=1)
        page.get_by_label("Hide Documentation Explorer").click()
        expect(page.locator(EDITOR)).to_be_in_viewport(ratio=1)
        page.get_by_label("Open settings dialog").click()
        dialog = page.locator("[role=dialog]:focus-within")
        assert dialog.evaluate("dialog => dialog.scrollWidth <= dialog.clientWidth"), "it scrolls up and down only"
        page.keyboard.press("Escape")
        dialog.wait_for(state="detached")


def test_integers_that_javascript_rounds_are_sent_and_shown_as_they_are_typed(page):
    least, large = -(2**63), 2**53 + 1
    typed = {"a": least, "b": [large, 1]}
    write_query(page, "query A($a: Long!, $b: [Long!]!) { a: long(value: $a) b: longs(values: $b) }")
    write_into(page, VARIABLES, f'{{"a": {least}, "b": [{large}, 1]}}')
    page.get_by_label("Prettify query").click()
    texts = "Array.from(document.querySelectorAll('.CodeMirror'), (one) => one.CodeMirror.getValue())"
    wait_until(page, lambda: json.dumps(typed, indent=2) in page.evaluate(texts))
    page.get_by_role("button", name="Headers").click()
    write_into(page, VARIABLES, f'{{"x-large": {large}}}')

    def run(values):
        with page.expect_request("**/graphql") as sent:
            page.get_by_label("Execute query (Ctrl-Enter)").click()
        assert f'"variables":{json.dumps(values, separators=(",", ":"))}' in sent.value.post_data
        assert sent.value.headers["x-large"] == str(large)
        shown = json.dumps({"data": values}, indent=2)[:-2]  # the costs follow
        wait_until(page, lambda: any(text.startswith(shown) for text in page.evaluate(texts)))

    run(typed)
    page.evaluate("delete JSON.rawJSON")  # as in browsers of 2024
    run({"a": str(least), "b": [str(large), 1]})
