"""The type-ahead page in a real browser, over the demo data, under its strict policy."""

import logging
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from playwright.sync_api import Page, expect
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from clade import Settings, create_app
from examples import type_ahead
from examples.type_ahead import make_app
from graph.observability.access_log import RequestLog
from tests.browser import TIMEOUT_MS, Visit, wait_until
from tests.serving import serving

HITS = "#hits [role=option]"
TOMORROW = datetime.now(UTC) + timedelta(days=1)  # a page's clock stops at a later time than its own


@pytest.fixture(scope="module")
def url(demo_store):
    with pytest.MonkeyPatch.context() as patch:
        # A slow request is a warning, and a busy machine is slow.
        patch.setattr("graph.app.RequestLog", lambda: RequestLog(slow_seconds=600))
        app = make_app(Settings(store=demo_store))
    with serving(app) as url:
        yield url


@pytest.fixture
def new_page(browser, url, caplog):
    """Opens the page; at the end nothing was asked of another address, and neither browser nor server complained."""
    visit = Visit(browser)

    def open_page(address=url, **options):
        page = visit.page(**{"viewport": {"width": 1200, "height": 800}, "locale": "en-US", **options})
        page.goto(address)
        return page

    open_page.complaints = visit.complaints
    with caplog.at_level(logging.WARNING):
        yield open_page
    visit.close()
    assert {address for address in visit.asked if not address.startswith("data:")} <= {f"{url}/", f"{url}/graphql"}
    assert visit.complaints == []
    # Playwright's task of a request that a test holds to its end is collected some time later.
    assert [one for one in caplog.messages if "Page._on_route()" not in one] == []


@pytest.fixture
def page(new_page) -> Page:
    return new_page()


def field(page):
    return page.get_by_role("combobox", name="Place")


def status(page):
    return page.get_by_role("status")


def search(page, text):
    """Write a text, and wait for its hits."""
    field(page).fill(text)
    page.locator(HITS).first.wait_for()


def text_of(request):
    """What a request of the page searches."""
    return request.post_data_json["variables"]["text"]


def active(page):
    """The text of the option that the field says is active; None without one. It is the one that is selected."""
    name = field(page).get_attribute("aria-activedescendant")
    selected = page.locator(f"{HITS}[aria-selected=true]")
    if name is None:
        expect(selected).to_have_count(0)
        return None
    assert selected.get_attribute("id") == name
    return selected.inner_text()


class Held:
    """Requests of the page by their texts, which wait, so that they can be answered in any order."""

    def __init__(self, page):
        self.page, self.routes = page, {}
        page.route("**/graphql", lambda route: self.routes.update({text_of(route.request): route}))

    def search(self, text):
        """Write a text, and wait for its request."""
        field(self.page).fill(text)
        wait_until(self.page, lambda: text in self.routes)

    def answer(self, text, name):
        node = {"id": name, "path": name, "key": name, "level": "CITY", "name": name, "nameLanguage": None, "names": [],
                "ancestors": []}  # fmt: skip
        self.routes[text].fulfill(json={"data": {"searchLocations": {"complete": True, "nodes": [node]}}})


def test_three_letters_show_hits_with_their_breadcrumbs_by_one_request(new_page):
    page, sent = new_page(apart=True), []
    page.on("request", lambda request: sent.append(text_of(request)))
    page.clock.install()
    page.clock.pause_at(TOMORROW)
    for letter in "oma":  # typed in a row
        field(page).press(letter)
        page.clock.run_for(100)
    page.clock.run_for(100)
    omaha = page.locator(HITS, has_text="Nebraska")
    expect(omaha).to_be_visible()
    assert omaha.inner_text() == "Omaha city\nUnited States › Nebraska"
    assert omaha.locator("mark").all_inner_texts() == ["Oma"]
    expect(status(page)).to_have_text("The first 8 places.")
    assert sent == ["oma"]


def test_roles_and_states_are_those_of_a_combobox(page):
    expect(field(page)).to_be_focused()
    expect(field(page)).to_have_attribute("aria-expanded", "false")
    expect(page.get_by_role("listbox", name="Places")).to_be_hidden()
    search(page, "oma")
    expect(field(page)).to_have_attribute("aria-expanded", "true")
    assert field(page).get_attribute("aria-controls") == page.get_by_role("listbox", name="Places").get_attribute("id")
    assert active(page) is None
    page.keyboard.press("ArrowDown")
    assert active(page).startswith("Oman")
    expect(field(page)).to_be_focused()  # options are active, and never have the focus


def test_keys_move_choose_and_close(page):
    search(page, "omah")
    texts = page.locator(HITS).all_inner_texts()
    assert len(texts) >= 2
    for key, expected in [
        ("ArrowDown", texts[0]), ("ArrowDown", texts[1]), ("End", texts[-1]), ("ArrowDown", None),
        ("ArrowUp", texts[-1]), ("Home", texts[0]), ("ArrowUp", None),
    ]:  # fmt: skip
        page.keyboard.press(key)
        assert active(page) == expected, key
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox")).to_be_hidden()
    expect(field(page)).to_have_value("omah")
    page.keyboard.press("ArrowDown")
    assert active(page) == texts[0]
    page.keyboard.press("Enter")
    expect(page.get_by_role("listbox")).to_be_hidden()
    expect(field(page)).to_have_value("Omaha")
    assert page.locator("#chosen dd").all_inner_texts()[:3] == ["city", "United States › Nebraska", "US/NE/Omaha"]
    page.keyboard.press("Escape")
    expect(field(page)).to_have_value("")
    expect(status(page)).to_have_text("Type two letters or more.")


def test_home_and_end_move_the_caret_while_no_option_is_active(page):
    search(page, "oma")
    page.keyboard.press("Home")
    assert active(page) is None
    assert field(page).evaluate("field => field.selectionStart") == 0


def test_a_pointer_chooses_and_leaving_closes(page):
    search(page, "oma")
    page.locator(HITS, has_text="Nebraska").click()
    expect(page.locator("#chosen h2")).to_have_text("Omaha")
    expect(field(page)).to_be_focused()
    field(page).click()
    expect(page.get_by_role("listbox")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("listbox")).to_be_hidden()


def test_one_letter_is_no_search_but_one_character_of_a_script_without_spaces_is(new_page):
    page, sent = new_page(apart=True), []
    page.on("request", lambda request: sent.append(text_of(request)))
    page.clock.install()
    field(page).fill("o")
    expect(status(page)).to_have_text("Type one letter more.")
    page.clock.run_for(10_000)
    field(page).fill("日")
    expect(page.locator(HITS).first).to_have_text("Japan countryfound as 日本")
    assert sent == ["日"]


def test_two_letters_say_that_there_may_be_better_ones(page):
    search(page, "sa")
    expect(status(page)).to_have_text("The first 8 places. There may be better ones: type on.")


def test_no_hit_is_said(page):
    field(page).fill("xqz")
    expect(status(page)).to_have_text("No place has words that begin with “xqz”.")
    expect(page.get_by_role("listbox")).to_be_hidden()


def test_options_show_the_name_in_the_readers_language_and_the_name_that_matched(new_page):
    page = new_page(locale="fr-CA")
    search(page, "deutsch")
    germany = page.locator(HITS).first
    assert germany.inner_text() == "Allemagne country\nfound as Deutschland"
    assert germany.locator("[lang=fr]").inner_text() == "Allemagne"
    assert germany.locator("[lang=de] mark").inner_text() == "Deutsch"
    page.get_by_label("Names").focus()
    page.get_by_label("Names").select_option("日本語")
    expect(page.locator(HITS).first).to_contain_text("ドイツ")
    expect(page.get_by_role("listbox")).to_be_hidden()  # until the focus is in its field again
    field(page).press("ArrowDown")
    assert active(page).startswith("ドイツ country")


@pytest.mark.parametrize(
    ("name", "text", "marked"),
    [
        ("São Tomé", "sao tome", ["São", "Tomé"]),
        ("Sa\u0303o Tome\u0301", "SAO", ["Sa\u0303o"]),  # marks of their own stay with their letters
        pytest.param("Großenhain", "grosse", ["Große"], marks=pytest.mark.thorough),
        pytest.param("Großenhain", "gros", ["Groß"], marks=pytest.mark.thorough),
        pytest.param("Łódź", "lod", ["Łód"], marks=pytest.mark.thorough),
        pytest.param("Saint-Denis", "den", ["Den"], marks=pytest.mark.thorough),
        ("Garden", "den", []),  # only words begin
        ("東京都", "京", ["京"]),
        ("<b>Bad</b> & Co", "ba", ["Ba"]),
        pytest.param("🏔 Alpha", "al", ["Al"], marks=pytest.mark.thorough),
    ],
)
def test_the_matched_part_is_marked_and_every_name_is_text(page, name, text, marked):
    held = Held(page)
    held.search(text)
    held.answer(text, name)
    shown = page.locator(f"{HITS} span").first
    expect(shown).to_be_visible()
    assert shown.text_content() == name
    assert shown.locator("mark").all_text_contents() == marked
    assert shown.locator("b").count() == 0


def test_an_earlier_request_is_aborted(page):
    held = Held(page)
    held.search("om")
    with page.expect_event("requestfailed") as failed:
        held.search("oma")
    assert text_of(failed.value) == "om"


# Requests that cannot be aborted, and the number of responses that the page has handled.
WITHOUT_ABORTS = """() => {
  const real = fetch;
  window.handled = 0;
  window.fetch = async (url, {signal, ...rest}) => {
    const response = await real(url, rest);
    return { ok: response.ok, status: response.status, json: () => {
      const body = response.json();
      body.then(() => setTimeout(() => window.handled++));
      return body;
    } };
  };
}"""


def handled(page, number):
    wait_until(page, lambda: page.evaluate("handled") == number)


def test_a_late_response_of_an_earlier_request_is_dropped(page):
    """The order alone decides: an abort that comes after the response changes nothing."""
    page.evaluate(WITHOUT_ABORTS)
    held = Held(page)
    held.search("om")
    held.search("oma")
    held.answer("oma", "Omaha")
    expect(page.locator(HITS)).to_have_text(["Omaha city"])
    held.answer("om", "Ommen")
    handled(page, 2)
    expect(page.locator(HITS)).to_have_text(["Omaha city"])


def test_a_response_that_comes_after_the_text_was_cleared_is_dropped(page):
    page.evaluate(WITHOUT_ABORTS)
    held = Held(page)
    held.search("oma")
    page.keyboard.press("Escape")
    held.answer("oma", "Omaha")
    handled(page, 1)
    expect(page.get_by_role("listbox")).to_be_hidden()
    expect(field(page)).to_have_value("")


def test_errors_are_said_and_enter_tries_again(new_page, page):
    answers = [
        lambda route: route.abort(),
        lambda route: route.fulfill(status=503, json={"errors": [{"message": "Too many requests; retry later."}]}),
        lambda route: route.fulfill(status=502, body="<html>"),
        lambda route: route.continue_(),
    ]
    page.route("**/graphql", lambda route: answers.pop(0)(route))
    field(page).fill("oma")
    for said in (
        "The server cannot be reached.",
        "Too many requests; retry later.",
        "The server answered with HTTP status 502.",
    ):
        expect(status(page)).to_have_text(f"{said} Press Enter to try again.")
        page.keyboard.press("Enter")
    page.locator(HITS).first.wait_for()
    assert len(new_page.complaints) == 3  # of Chromium, about the failed requests
    new_page.complaints.clear()


def test_what_the_server_rejects_is_said(page):
    field(page).fill(" ".join(map(str, range(9))))
    expect(status(page)).to_contain_text("text has 9 words; at most 8 are allowed.")


def test_a_text_without_a_word_finds_nothing(page):
    field(page).fill("!!")
    expect(status(page)).to_contain_text("No place has words that begin with “!!”.")


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_it_fits_on_a_small_screen_and_texts_have_contrast(new_page, scheme):
    page = new_page(viewport={"width": 360, "height": 720}, color_scheme=scheme)
    search(page, "san jos")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.evaluate(CONTRAST) >= 4.5
    page.keyboard.press("Enter")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.evaluate(CONTRAST) >= 4.5


# The lowest contrast of WCAG between a text and the background that lies below it.
CONTRAST = """() => {
  const rgb = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (color) => {
    const linear = (c) => (c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
    const [r, g, b] = rgb(color).map((c) => linear(c / 255));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const below = (element) => {
    const color = getComputedStyle(element).backgroundColor;
    return rgb(color)[3] === 0 && element.parentElement ? below(element.parentElement) : color;
  };
  const hasText = (one) => [...one.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
  const seen = [...document.querySelectorAll("main *")]
    .filter((one) => one.checkVisibility() && one.tagName !== "OPTION" && hasText(one));
  return Math.min(...seen.map((one) => {
    const [low, high] = [light(getComputedStyle(one).color), light(below(one))].sort((a, b) => a - b);
    return (high + .05) / (low + .05);
  }));
}"""


# The application


def test_the_policy_names_the_page_s_own_script_and_style_and_nothing_else(url):
    answer = httpx.get(url)
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    names = "default-src script-src style-src connect-src img-src base-uri form-action frame-ancestors"
    assert set(policy) == set(names.split())
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert all(policy[kind].startswith("'sha256-") for kind in ("script-src", "style-src"))
    assert "innerHTML" not in answer.text
    assert "style=" not in answer.text


def test_clade_answers_beside_the_page(url):
    assert httpx.post(f"{url}/graphql", json={"query": "{ __typename }"}).json() == {"data": {"__typename": "Query"}}
    assert httpx.get(f"{url}/readyz").json() == {"ready": True}


@pytest.mark.thorough
def test_a_page_of_another_origin_searches_where_clade_admits_it(browser, demo_store):
    async def elsewhere(request):
        return HTMLResponse(type_ahead.PAGE.replace('ENDPOINT = "graphql"', f'ENDPOINT = "{clade}/graphql"'))

    with serving(Starlette(routes=[Route("/", elsewhere)])) as origin:
        for admitted, said in [
            (f"{origin.upper()}/", "The first 8 places."),
            ("https://shop.example", "The server cannot be reached."),
        ]:
            with serving(create_app(Settings(store=demo_store, cors_origins=admitted))) as clade:
                page = browser.new_page(locale="en-US")
                page.set_default_timeout(TIMEOUT_MS)
                page.goto(origin)
                field(page).fill("oma")
                expect(status(page)).to_contain_text(said)
                page.close()
